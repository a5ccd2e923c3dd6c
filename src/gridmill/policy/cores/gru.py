"""The core `gru`: a GRU of torch's form."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from gridmill.policy import sequences
from gridmill.policy.config import Size
from gridmill.policy.cores import Core
from gridmill.policy.initial import dense


class Gru(Core):
    """A GRU of torch's form; its output replaces the input."""

    def __init__(self, hidden: int, rng: np.random.Generator) -> None:
        super().__init__(hidden, rng)
        self.into = dense(hidden, 3 * hidden, 1.0, rng)
        self.back = dense(hidden, 3 * hidden, 1.0, rng)

    @classmethod
    def size(cls, hidden: int) -> Size:
        return Size(parameters=6 * hidden * (hidden + 1), activations=8 * hidden, state=hidden)

    def forward(self, x: Tensor, state: Tensor, episode_starts: Tensor) -> tuple[Tensor, Tensor]:
        if sequences.fits(x):
            weights = [self.into.weight, self.back.weight, self.into.bias, self.back.bias]
            found, (last,) = sequences.run("gru", x, (state,), episode_starts, weights)
            return found, last.detach()
        into = self.into(x).float()
        keep = (1 - episode_starts.to(into.dtype)).unsqueeze(-1)
        h, steps = state.to(into.dtype), []
        for t in range(x.shape[0]):
            h = h * keep[t]
            reset, update, new = into[t].chunk(3, -1)
            back_reset, back_update, back_new = self.back(h).chunk(3, -1)
            z = (update + back_update).sigmoid()
            h = z * h + (1 - z) * (new + (reset + back_reset).sigmoid() * back_new).tanh()
            steps.append(h)
        return torch.stack(steps), h.detach()
