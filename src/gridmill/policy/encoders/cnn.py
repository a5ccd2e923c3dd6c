"""The encoder `cnn`: convolutions over a dense box of the tokens."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from gridmill.policy.config import PolicyConfig, Size
from gridmill.policy.encoders import Encoder
from gridmill.policy.initial import RELU, convolution, dense
from gridmill.policy.spec import Layout, Spec


class Cnn(Encoder):
    """Tokens scattered to a dense box, 5x5 then 3x3 convolutions; what lies nowhere goes around them."""

    fixed_window = True
    any_length = True
    named_axes: ClassVar[Mapping[str, tuple[int, str]]] = {"wide.weight": (1, "slots"), "around.weight": (1, "slots")}

    def __init__(self, config: PolicyConfig, spec: Spec, layout: Layout, rng: np.random.Generator) -> None:
        super().__init__(config, spec, layout, rng)
        self.shape, self.slots = spec.window, layout.slots
        half = config.hidden // 2
        wide, small, flat = _shapes(config, spec)
        self.wide = convolution(layout.slots, half, wide, 3, rng)
        self.narrow = convolution(half, half, small, 1, rng)
        self.join = dense(flat, config.hidden, RELU, rng)
        self.around = dense(layout.slots, config.hidden, RELU, rng)

    @classmethod
    def size(cls, config: PolicyConfig, spec: Spec, layout: Layout | None) -> Size:
        assert layout is not None
        half, slots = config.hidden // 2, layout.slots
        wide, small, flat = _shapes(config, spec)
        parameters = (slots * wide**2 + 1 + half * small**2 + 1) * half + (flat + 1 + slots + 1) * config.hidden
        seen = half * math.prod(_over(side, wide) for side in spec.window)
        return Size(parameters, slots * layout.places + seen + flat + config.hidden + 3 * spec.num_tokens // 4)

    def forward(self, obs: Tensor) -> Tensor:
        place, slot, amount, counts = self.tokens.read(obs)
        places = self.shape[0] * self.shape[1] + 1
        box = obs.new_zeros((obs.shape[0], self.slots * places + 1), dtype=torch.float32)
        nothing = self.slots * places  # a cell for tokens that do not count
        there = torch.where(counts, slot * places + place, nothing)
        box.scatter_(1, there, 1.0)
        much = torch.where(counts & (amount != 0), (slot + 1) * places + place, nothing)
        box.scatter_(1, much, amount)
        planes = box[:, :nothing].view(-1, self.slots, places)
        picture = planes[..., :-1].reshape(-1, self.slots, *self.shape)
        seen = F.relu(self.narrow(F.relu(self.wide(picture)))).flatten(1)
        return F.relu(self.join(seen) + self.around(planes[..., -1]))


def _over(side: int, wide: int) -> int:
    """How often the first convolution fits into a side, three apart."""
    return max(1, (side - wide) // 3 + 1)


def _shapes(config: PolicyConfig, spec: Spec) -> tuple[int, int, int]:
    """The sides of the two convolutions, and the features that they leave."""
    wide = min(5, *spec.window)
    height, width = (_over(side, wide) for side in spec.window)
    small = min(3, height, width)
    return wide, small, config.hidden // 2 * (height - small + 1) * (width - small + 1)
