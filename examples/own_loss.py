"""Your own loss: a head that predicts each step's reward, so that the network learns what rewards depend on.

gridmill train ci losses.forecast.kind=examples/own_loss.py:Forecast losses.forecast.weight=0.1
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar

from gridmill import recipes
from gridmill.config.schedule import Number, Progress
from gridmill.losses import Column, Loss, Minibatch, Result
from gridmill.policy import PolicyConfig, Spec

if TYPE_CHECKING:
    from torch import nn

    from gridmill.policy.network import Output


class Forecast(Loss):
    """The squared error of the forecast, times a scale: rewards are small."""

    scale: Number = 10.0

    reads: ClassVar[tuple[str, ...]] = ("rewards",)

    def needs(self) -> Mapping[str, Column]:
        """The features that the policy acted with, for the metric of how far they have moved since."""
        return {"hidden_then": Column(output="hidden")}

    def heads(self, spec: Spec, config: PolicyConfig) -> nn.Module:
        from torch import nn

        return nn.Linear(config.hidden, 1)

    def __call__(self, batch: Minibatch, out: Output, now: Progress, heads: nn.Module | None = None) -> Result:
        assert heads is not None
        error = heads(out.hidden).squeeze(-1) - now.at(self.scale) * batch.rewards
        moved = (out.hidden - batch.hidden_then).abs().mean()
        return error.square().mean(), {"loss/forecast": error.square().mean(), "forecast/moved": moved}


def main() -> None:
    """The same from Python: one epoch, and what it was."""
    from gridmill.train.trainer import Trainer

    trainer = Trainer(recipes.build("ci").replace("losses.forecast", Forecast(weight=0.1)))
    metrics = trainer.epoch()
    print({name: metrics[name] for name in ("loss/policy", "loss/value", "loss/forecast", "forecast/moved")})
    trainer.close()


if __name__ == "__main__":
    main()
