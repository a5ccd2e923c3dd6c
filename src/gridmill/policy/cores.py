"""Cores: memory along time. Each maps x [T, N, H] with the state [N, S] before it and the flags of first steps
(starts, uint8 [T, N]) to y [T, N, H] and the state after it. A state is forgotten before a first step, here and nowhere
else, so that acting and learning cannot differ.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from gridmill.policy.initial import dense, orthogonal
from gridmill.policy.kernels import Held, native_fits, scan
from gridmill.policy.layers import lstm, panels


class NoCore(nn.Module):
    """No memory."""

    def __init__(self, hidden: int, rng: np.random.Generator) -> None:
        super().__init__()
        self.state_size = 0

    def forward(self, x: Tensor, state: Tensor, starts: Tensor) -> tuple[Tensor, Tensor]:
        return x, state


class GatedScan(nn.Module):
    """h = h + z (c - h) with gate and candidate from the input only (minGRU, Feng et al. 2024), added to the input."""

    def __init__(self, hidden: int, rng: np.random.Generator) -> None:
        super().__init__()
        self.state_size = hidden
        self.into = dense(hidden, 2 * hidden, 1.0, rng)

    def forward(self, x: Tensor, state: Tensor, starts: Tensor) -> tuple[Tensor, Tensor]:
        h = scan(self.into(x), state, starts)
        return x + h, h[-1].detach()


class Lstm(nn.Module):
    """An LSTM of torch's form; its output replaces the input."""

    def __init__(self, hidden: int, rng: np.random.Generator) -> None:
        super().__init__()
        self.state_size = 2 * hidden
        self.into = dense(hidden, 4 * hidden, 1.0, rng)
        self.back = nn.Parameter(orthogonal((4 * hidden, hidden), 1.0, rng))
        self._held: Held[Any] | None = None

    def hold(self, still: bool) -> None:
        fits, weight = still and native_fits(self.back), self.back
        self._held = Held(lambda: panels(weight, True), weight) if fits else None

    def forward(self, x: Tensor, state: Tensor, starts: Tensor) -> tuple[Tensor, Tensor]:
        turned = self._held.get() if self._held and native_fits(x) else None
        h, last = lstm(self.into(x), self.back, state, starts, turned)
        return h, last.detach()


class Gru(nn.Module):
    """A GRU of torch's form; its output replaces the input."""

    def __init__(self, hidden: int, rng: np.random.Generator) -> None:
        super().__init__()
        self.state_size = hidden
        self.into = dense(hidden, 3 * hidden, 1.0, rng)
        self.back = dense(hidden, 3 * hidden, 1.0, rng)

    def forward(self, x: Tensor, state: Tensor, starts: Tensor) -> tuple[Tensor, Tensor]:
        into = self.into(x)
        keep = (1 - starts.to(into.dtype)).unsqueeze(-1)
        h, found = state.to(into.dtype), []
        for t in range(x.shape[0]):
            h = h * keep[t]
            reset, update, new = into[t].chunk(3, -1)
            back_reset, back_update, back_new = self.back(h).chunk(3, -1)
            z = (update + back_update).sigmoid()
            h = z * h + (1 - z) * (new + (reset + back_reset).sigmoid() * back_new).tanh()
            found.append(h)
        return torch.stack(found), h.detach()


CORES: dict[str, type[NoCore | GatedScan | Lstm | Gru]] = {
    "none": NoCore,
    "scan": GatedScan,
    "lstm": Lstm,
    "gru": Gru,
}
