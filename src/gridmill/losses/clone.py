"""Imitation of a scripted teacher: the cross entropy of the actions that it would take where the policy is.

The policy acts, so it learns what to do in the places it comes to by itself (Ross et al. 2011). With `lead` the teacher
acts in a share of the rows, a segment at a time, and the policy also sees where the teacher would have come to; it
learns to imitate there, and its critic learns there, but nothing that takes its actions for its own (`acted`) does.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from gridmill.config import ConfigError
from gridmill.config.schedule import NotNegativeNumber, Progress, ShareNumber
from gridmill.losses import TEACHER, Column, Loss, Minibatch, Result

if TYPE_CHECKING:
    from gridmill.policy.network import Output
    from gridmill.run import Run


class Clone(Loss):
    """The cross entropy with the teacher's actions."""

    weight: NotNegativeNumber = 1.0
    lead: ShareNumber = 0.0  # share of the rows in which the teacher acts

    def check(self, run: Run) -> None:
        if not run.teacher:
            raise ConfigError("expected a teacher to imitate, got none; name a script of the game: teacher=NAME")

    def needs(self) -> Mapping[str, Column]:
        return {TEACHER: Column(env=TEACHER)}

    def leads(self, now: Progress) -> float:
        return now.at(self.lead)

    def active(self, now: Progress) -> bool:
        """Without a weight it does not ask the teacher either."""
        return super().active(now) and now.at(self.weight) > 0

    def __call__(self, batch: Minibatch, out: Output, now: Progress, heads: Any = None) -> Result:
        """Where a mask forbids what the teacher would do, there is nothing to imitate: the step counts 0."""
        wanted = batch.teacher_actions.long().unsqueeze(-1)
        log_prob = out.logits.log_softmax(-1).gather(-1, wanted).squeeze(-1)
        agrees = out.logits.argmax(-1, keepdim=True) == wanted
        metrics = {"teacher/agreement": agrees.float().mean()}
        if batch.masks is not None:
            possible = batch.masks.gather(-1, wanted).squeeze(-1) != 0
            log_prob = log_prob.where(possible, 0.0)
            metrics["teacher/forbidden"] = 1 - possible.float().mean()
        loss = -(log_prob * batch.weights).mean()
        return loss, {"loss/clone": loss.detach()} | metrics
