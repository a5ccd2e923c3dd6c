"""Your own encoder and core in the built-in policy: a dense layer over the mean token, and a memory that fades.

gridmill train ci policy.encoder=examples/own_parts.py:Mean policy.core=examples/own_parts.py:Fading policy.hidden=64
"""

from typing import Any

from torch import Tensor, nn, relu, stack

from gridmill import recipes
from gridmill.policy import cores, encoders
from gridmill.policy.config import Size
from gridmill.train.trainer import Trainer


class Mean(encoders.Encoder):
    def __init__(self, config: Any, *others: Any) -> None:
        super().__init__(config, *others)
        self.layer = nn.Linear(3, config.hidden)

    def forward(self, obs: Tensor) -> Tensor:  # uint8 [rows, tokens, 3] -> [rows, hidden]
        return relu(self.layer((obs / 255).mean(-2)))


class Fading(cores.Core):
    @classmethod
    def size(cls, hidden: int) -> Size:
        return Size(parameters=0, activations=hidden, state=hidden)

    def forward(self, x: Tensor, state: Tensor, episode_starts: Tensor) -> tuple[Tensor, Tensor]:  # x [T, rows, hidden]
        found = [state]
        for now, start in zip(x, episode_starts, strict=True):
            found.append(now + 0.5 * found[-1] * (1 - start[:, None]))  # an episode begins without memory
        return stack(found[1:]), found[-1]


if __name__ == "__main__":
    own = {"encoder": f"{__file__}:Mean", "core": f"{__file__}:Fading", "hidden": 32}
    print(Trainer(recipes.build("ci").replace("policy", own)).epoch()["loss/policy"])
