"""The core `scan`: a gated scan, parallel in all but one multiplication and addition per step."""

from __future__ import annotations

import numpy as np
from torch import Tensor

from gridmill.policy.config import Size
from gridmill.policy.cores import Core
from gridmill.policy.initial import dense
from gridmill.policy.kernels import scan


class Scan(Core):
    """h = h + z (c - h) with gate and candidate from the input only (minGRU, Feng et al. 2024), added to the input."""

    def __init__(self, hidden: int, rng: np.random.Generator) -> None:
        super().__init__(hidden, rng)
        self.into = dense(hidden, 2 * hidden, 1.0, rng)

    @classmethod
    def size(cls, hidden: int) -> Size:
        return Size(parameters=2 * hidden * (hidden + 1), activations=5 * hidden, state=hidden)

    def forward(self, x: Tensor, state: Tensor, episode_starts: Tensor) -> tuple[Tensor, Tensor]:
        h = scan(self.into(x), state, episode_starts)
        return x + h, h[-1].detach()
