"""The core `none`: no memory."""

from __future__ import annotations

from torch import Tensor

from gridmill.policy.config import Size
from gridmill.policy.cores import Core


class NoCore(Core):
    """What comes in goes out."""

    @classmethod
    def size(cls, hidden: int) -> Size:
        return Size(parameters=0, activations=0, state=0)

    def forward(self, x: Tensor, state: Tensor, episode_starts: Tensor) -> tuple[Tensor, Tensor]:
        return x, state
