"""The core `lstm`: an LSTM of torch's form."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from gridmill.policy import sequences
from gridmill.policy.config import Size
from gridmill.policy.cores import Core
from gridmill.policy.initial import dense, orthogonal
from gridmill.policy.kernels import native_fits
from gridmill.policy.layers import lstm, packed


class Lstm(Core):
    """An LSTM of torch's form; its output replaces the input."""

    def __init__(self, hidden: int, rng: np.random.Generator) -> None:
        super().__init__(hidden, rng)
        self.into = dense(hidden, 4 * hidden, 1.0, rng)
        self.back = nn.Parameter(orthogonal((4 * hidden, hidden), 1.0, rng))
        self._cached: Any = None

    @classmethod
    def size(cls, hidden: int) -> Size:
        return Size(parameters=4 * hidden * (2 * hidden + 1), activations=10 * hidden, state=2 * hidden)

    def freeze(self, frozen: bool) -> None:
        """Pack the recurrent weights once, for forwards without gradients."""
        self._cached = packed(self.back, True) if frozen and native_fits(self.back) else None

    def forward(self, x: Tensor, state: Tensor, episode_starts: Tensor) -> tuple[Tensor, Tensor]:
        if sequences.fits(x):
            weights = [self.into.weight, self.back, self.into.bias, torch.zeros_like(self.into.bias)]
            h, states = sequences.run("lstm", x, state.chunk(2, -1), episode_starts, weights)
            return h, torch.cat(states, -1).detach()
        gates = self.into(x).float()
        transposed = None if torch.is_grad_enabled() or not native_fits(gates) else self._cached
        h, last = lstm(gates, self.back, state, episode_starts, transposed)
        return h, last.detach()
