"""Imitation: the cross entropy of the actions that a scripted teacher would take where the policy is, or of those that
somebody took in replays.

The policy acts, so it learns what to do in the places it comes to by itself (Ross et al. 2011). With `lead` the teacher
acts in a share of the rows, a segment at a time, and the policy also sees where the teacher would have come to; it
learns to imitate there, and its critic learns there, but nothing that takes its actions for its own (`acted`) does.

With `replays` there is no teacher: files are played again, and the policy learns what was done in them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from gridmill.config import ConfigError
from gridmill.config.schedule import NotNegativeNumber, Progress, ShareNumber
from gridmill.losses import TEACHER, Column, Loss, LossResult, Minibatch, Recorded

if TYPE_CHECKING:
    from torch import Tensor

    from gridmill.policy.network import Output
    from gridmill.run import Run


class Clone(Loss):
    """The cross entropy with the teacher's actions."""

    weight: NotNegativeNumber = 1.0
    lead: ShareNumber = 0.0
    """Share of the rows in which the teacher acts instead of the policy."""
    replays: str = ""
    """Replay files to learn from instead of a teacher, such as replays/*.replay."""
    who: tuple[str, ...] = ()
    """Whose steps of the replays to use: human, script, script:NAME, policy, random; none = everybody's."""

    def check(self, run: Run) -> None:
        if self.replays:
            if self.lead != 0:
                raise ConfigError("expected 0 with replays, where no teacher can act, got a share", "$.lead")
            return
        if self.who:
            raise ConfigError(
                "expected replays to choose from, got none; name some: losses.clone.replays=FILES", "$.who"
            )
        if not run.teacher:
            raise ConfigError(
                "expected a teacher or replays to imitate, got none; name a script of the game, teacher=NAME, "
                "or files, losses.clone.replays=FILES"
            )

    def needs(self) -> Mapping[str, Column]:
        return {} if self.replays else {TEACHER: Column(env=TEACHER)}

    def recorded(self) -> Recorded | None:
        return Recorded(self.replays, self.who) if self.replays else None

    def leads(self, now: Progress) -> float:
        return now.at(self.lead)

    def active(self, now: Progress) -> bool:
        """Without a weight it does not ask the teacher either."""
        return super().active(now) and now.at(self.weight) > 0

    def __call__(self, batch: Minibatch, out: Output, now: Progress, heads: Any = None) -> LossResult:
        """Where a mask forbids what the teacher would do, there is nothing to imitate: the step counts 0."""
        wanted = batch.teacher_actions.long().unsqueeze(-1)
        log_prob = out.logits.log_softmax(-1).gather(-1, wanted).squeeze(-1)
        agrees = (out.logits.argmax(-1, keepdim=True) == wanted).squeeze(-1).float()
        compared, metrics = batch.counted, {}
        if batch.masks is not None:
            possible = batch.masks.gather(-1, wanted).squeeze(-1) != 0
            log_prob = log_prob.where(possible, 0.0)
            metrics["teacher/forbidden"] = 1 - _mean(possible.float(), batch.counted)
            compared = possible.float() if compared is None else possible * compared
        metrics["teacher/agreement"] = _mean(agrees, compared)
        loss = -_mean(log_prob * batch.weights, batch.counted)
        return loss, {"loss/clone": loss.detach()} | metrics


def _mean(numbers: Tensor, counted: Tensor | None) -> Tensor:
    """Of the steps that count."""
    if counted is None:
        return numbers.mean()
    return (numbers * counted).sum() / counted.sum().clamp(min=1)
