"""Your own loss: a head that predicts each step's reward, so that the network learns what rewards depend on.

gridmill train ci losses.forecast.kind=examples/own_loss.py:Forecast losses.forecast.weight=0.1
"""

from collections.abc import Mapping
from typing import Any, ClassVar

from torch import nn

from gridmill import recipes
from gridmill.config.schedule import Number, Progress
from gridmill.losses import Column, Loss, LossResult, Minibatch
from gridmill.policy import PolicyConfig, Spec


class Forecast(Loss):
    """The squared error of the forecast, times a scale: rewards are small."""

    scale: Number = 10.0
    reads: ClassVar[tuple[str, ...]] = ("rewards",)

    def needs(self) -> Mapping[str, Column]:
        return {"hidden_then": Column(output="hidden")}  # what the policy acted with, to see how far it has moved since

    def heads(self, spec: Spec, config: PolicyConfig) -> nn.Module:
        return nn.Linear(config.hidden, 1)  # trained and saved with the policy

    def __call__(self, batch: Minibatch, out: Any, now: Progress, heads: Any = None) -> LossResult:
        error = (heads(out.hidden).squeeze(-1) - now.at(self.scale) * batch.rewards).square().mean()
        return error, {"loss/forecast": error, "forecast/moved": (out.hidden - batch.hidden_then).abs().mean()}


if __name__ == "__main__":
    from gridmill.train.trainer import Trainer

    trainer = Trainer(recipes.build("ci").replace("losses.forecast", Forecast(weight=0.1)))
    print({name: value for name, value in trainer.epoch().items() if "forecast" in name})
    trainer.close()
