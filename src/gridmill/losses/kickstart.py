"""Learning from another policy while learning from rewards (Schmitt et al. 2018): a run or checkpoint is the teacher.

It is shown what ours sees and runs in the rollout, which stores its log-probs and its values; only those are read here.
The divergence is that of the teacher's distribution from ours, so whatever the teacher does must stay possible.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from gridmill.config import ConfigError
from gridmill.config.schedule import NotNegativeNumber, Progress
from gridmill.losses import Column, Loss, LossResult, Minibatch

if TYPE_CHECKING:
    from gridmill.policy.network import Output
    from gridmill.run import Run


class Kickstart(Loss):
    """KL(teacher || policy), and half the squared distance of the values."""

    weight: NotNegativeNumber = 1.0
    teacher: str = ""
    """The run or checkpoint folder of the teacher."""
    value_weight: NotNegativeNumber = 0.5
    """Weight of the distance between the values, inside the loss."""

    def check(self, run: Run) -> None:
        if not self.teacher:
            raise ConfigError("expected the folder of a run or checkpoint, got ''", "$.teacher")

    def needs(self) -> Mapping[str, Column]:
        return {
            "kickstart_log_probs": Column(actor=self.teacher, output="log_probs"),
            "kickstart_values": Column(actor=self.teacher, output="values"),
        }

    def active(self, now: Progress) -> bool:
        """Without a weight it does not run the teacher either."""
        return super().active(now) and now.at(self.weight) > 0

    def __call__(self, batch: Minibatch, out: Output, now: Progress, heads: Any = None) -> LossResult:
        theirs, ours = batch.kickstart_log_probs, out.logits.log_softmax(-1)
        apart = (theirs.exp() * (theirs - ours)).sum(-1)
        kl = (apart * batch.weights).mean()
        distance = (out.values - batch.kickstart_values).square()
        value = 0.5 * (distance * batch.weights).mean()
        agrees = ours.argmax(-1) == theirs.argmax(-1)
        metrics = {"loss/kickstart": kl, "loss/kickstart_value": value, "kickstart/agreement": agrees.float().mean()}
        return kl + now.at(self.value_weight) * value, {name: number.detach() for name, number in metrics.items()}
