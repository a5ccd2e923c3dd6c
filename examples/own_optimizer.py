"""Your own optimizer: Lion (Chen et al. 2023), which steps by the sign of a momentum.

gridmill train ci run=lion optimizer.kind=examples/own_optimizer.py:Lion optimizer.learning_rate=3e-4
"""

from collections.abc import Iterable
from typing import Any

import torch

from gridmill import recipes
from gridmill.train.trainer import Trainer


class Lion(torch.optim.Optimizer):
    """lr, betas and weight_decay are the run's: optimizer.learning_rate and so on, which may be schedules."""

    def __init__(
        self, params: Iterable[Any], lr: float, betas: tuple[float, float] = (0.9, 0.99), weight_decay: float = 0.0
    ) -> None:
        super().__init__(params, {"lr": lr, "betas": betas, "weight_decay": weight_decay})

    @torch.no_grad()
    def step(self, closure: Any = None) -> None:  # type: ignore[override]
        for group in self.param_groups:
            for weight in (p for p in group["params"] if p.grad is not None):
                kept = self.state[weight].setdefault("momentum", torch.zeros_like(weight))  # saved with the run
                slow, fast = group["betas"]
                direction = kept.lerp(weight.grad, 1 - slow).sign_()
                weight.mul_(1 - group["lr"] * group["weight_decay"]).sub_(group["lr"] * direction)
                kept.lerp_(weight.grad, 1 - fast)


if __name__ == "__main__":
    trainer = Trainer(recipes.build("ci").replace("optimizer.kind", f"{__file__}:Lion"))
    print({name: value for name, value in trainer.epoch().items() if name.startswith("loss/")})
    trainer.close()
