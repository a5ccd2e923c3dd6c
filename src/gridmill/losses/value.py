"""The critic's loss. Beside PPO it is computed in PPO's native pass; this is the plain form."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from gridmill.config.schedule import NotNegativeNumber, Number, Progress
from gridmill.losses import Loss, LossResult, Minibatch

if TYPE_CHECKING:
    from gridmill.policy.network import Output


class Value(Loss):
    """The critic's squared error; clip > 0 keeps it near the value it had when the step was taken."""

    weight: Number = 0.5
    clip: NotNegativeNumber = 0.0
    """Clips the critic's value to +- this around its value when the step was taken; 0 = off."""

    reads: ClassVar[tuple[str, ...]] = ("values", "returns")

    def __call__(self, batch: Minibatch, out: Output, now: Progress, heads: Any = None) -> LossResult:
        clip = now.at(self.clip)
        error = (out.values - batch.returns).square()
        if clip > 0:
            near = batch.values + (out.values - batch.values).clamp(-clip, clip)
            error = error.maximum((near - batch.returns).square())
        loss = 0.5 * (error * batch.weights).mean()
        return loss, {"loss/value": loss.detach()}
