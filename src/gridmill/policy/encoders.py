"""Encoders: observations [rows, ...] -> features [rows, hidden]. Three read tokens, one a vector.

Shapes come from the spec alone; how bytes find their meaning is the layout's, so no encoder knows a game.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.nn import functional as F

from gridmill.policy.initial import RELU, convolution, dense, table
from gridmill.policy.kernels import Held, Tokens, bag
from gridmill.policy.spec import Spec
from gridmill.run import PolicyConfig

TABLE_SCALE = 0.1


class Encoder(nn.Module):
    """What all have: `tokens`, set by the policy for the bytes of the environment it plays in."""

    tokens: Tokens


class Bag(Encoder):
    """The sum of one embedding per (place, feature, value): no dense grid, and cost by the tokens that are there.

    An embedding is the sum of three: of the place, of its row and of its column. What was learned about a mine two
    cells north is so known in part of all mines north; without it every place is learned alone.
    """

    def __init__(self, config: PolicyConfig, spec: Spec, places: int, slots: int, rng: np.random.Generator) -> None:
        super().__init__()
        self.window, self.slots = spec.window, slots
        self.table = table(places * slots, config.hidden, TABLE_SCALE, rng)
        self.rows = nn.Parameter(torch.zeros(spec.window[0] * slots, config.hidden))
        self.columns = nn.Parameter(torch.zeros(spec.window[1] * slots, config.hidden))
        self.bias = nn.Parameter(torch.zeros(config.hidden))
        self._held: Held[Tensor] | None = None

    def hold(self, still: bool) -> None:
        self._held = Held(self.joined, self.table, self.rows, self.columns) if still else None

    def joined(self) -> Tensor:
        """The three tables as one: [places * slots, hidden]."""
        if torch.compiler.is_compiling():
            return self.plain_joined()
        return _Joined.apply(self.table, self.rows, self.columns, self.window)  # type: ignore[no-any-return, no-untyped-call]

    def plain_joined(self) -> Tensor:
        """The same as torch would have it written."""
        height, width = self.window
        inside = self.table[: height * width * self.slots].view(height, width, self.slots, -1)
        inside = inside + self.rows.view(height, 1, self.slots, -1) + self.columns.view(1, width, self.slots, -1)
        return torch.cat((inside.view(height * width * self.slots, -1), self.table[height * width * self.slots :]))

    def forward(self, obs: Tensor) -> Tensor:
        held = self._held.get() if self._held and not torch.compiler.is_compiling() else None
        return bag(self.joined() if held is None else held, self.bias, obs, self.tokens)


class _Joined(torch.autograd.Function):
    """Every row of the table that lies in the window, with its row's and its column's added; the others as they are.

    By hand, since it happens for every piece of every minibatch: no copy but one, and a gradient that is passed on.
    """

    @staticmethod
    def forward(ctx: Any, table: Tensor, rows: Tensor, columns: Tensor, window: tuple[int, int]) -> Tensor:
        ctx.window = window
        joined = table.detach().clone()
        inside = _in_window(joined, window, len(rows) // window[0])
        inside += rows.view(window[0], 1, -1, rows.shape[1])
        inside += columns.view(1, window[1], -1, columns.shape[1])
        ctx.slots = inside.shape[2]
        return joined

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, d_joined: Tensor) -> tuple[Tensor, Tensor, Tensor, None]:
        inside = _in_window(d_joined, ctx.window, ctx.slots)
        return d_joined, inside.sum(1).flatten(0, 1), inside.sum(0).flatten(0, 1), None


def _in_window(table: Tensor, window: tuple[int, int], slots: int) -> Tensor:
    """A view of the part that lies in the window: [height, width, slots, hidden]."""
    return table[: window[0] * window[1] * slots].view(*window, slots, table.shape[1])


class Box(Encoder):
    """Tokens scattered to a dense box, 5x5 then 3x3 convolutions; what lies nowhere goes around them."""

    def __init__(self, config: PolicyConfig, spec: Spec, places: int, slots: int, rng: np.random.Generator) -> None:
        super().__init__()
        self.shape = spec.window
        self.slots = slots
        self.wide = convolution(slots, config.hidden // 2, min(5, *spec.window), 3, rng)
        height, width = (max(1, (side - min(5, *spec.window)) // 3 + 1) for side in spec.window)
        small = min(3, height, width)
        self.narrow = convolution(config.hidden // 2, config.hidden // 2, small, 1, rng)
        flat = config.hidden // 2 * (height - small + 1) * (width - small + 1)
        self.join = dense(flat, config.hidden, RELU, rng)
        self.around = dense(slots, config.hidden, RELU, rng)

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


class Attend(Encoder):
    """A few latent queries attend to the tokens."""

    def __init__(self, config: PolicyConfig, spec: Spec, places: int, slots: int, rng: np.random.Generator) -> None:
        super().__init__()
        self.heads = config.heads
        self.place = table(places, config.hidden, TABLE_SCALE, rng)
        self.slot = table(slots, config.hidden, TABLE_SCALE, rng)
        self.latents = table(config.latents, config.hidden, 1.0, rng)
        self.mix = dense(config.hidden, config.hidden, RELU, rng, relu=True)
        self.key = dense(config.hidden, config.hidden, 1.0, rng)
        self.value = dense(config.hidden, config.hidden, 1.0, rng)
        self.join = dense(config.latents * config.hidden, config.hidden, RELU, rng, relu=True)

    def forward(self, obs: Tensor) -> Tensor:
        place, slot, amount, counts = self.tokens.read(obs)
        much = self.slot[(slot + 1).clamp(max=self.slot.shape[0] - 1)] * amount.unsqueeze(-1)
        tokens = self.mix(self.place[place] + self.slot[slot] + much)  # [rows, tokens, hidden]
        rows, _, hidden = tokens.shape
        split = (rows, -1, self.heads, hidden // self.heads)
        key = self.key(tokens).view(split).transpose(1, 2)
        value = self.value(tokens).view(split).transpose(1, 2)
        query = self.latents.to(key.dtype).expand(rows, -1, -1).reshape(split).transpose(1, 2)
        # A row without tokens would attend to nothing and give no number: it may look at what does not count, in vain.
        any_there = counts.any(1, keepdim=True)
        found = F.scaled_dot_product_attention(query, key, value, attn_mask=(counts | ~any_there)[:, None, None, :])
        return self.join(found.transpose(1, 2).reshape(rows, -1) * any_there)  # type: ignore[no-any-return]


class Vector(Encoder):
    """A dense layer over a vector observation."""

    def __init__(self, config: PolicyConfig, spec: Spec, places: int, slots: int, rng: np.random.Generator) -> None:
        super().__init__()
        self.first = dense(spec.obs_size, config.hidden, RELU, rng, relu=True)

    def forward(self, obs: Tensor) -> Tensor:
        return self.first(obs)  # type: ignore[no-any-return]


ENCODERS: dict[str, type[Bag | Box | Attend | Vector]] = {"bag": Bag, "cnn": Box, "attend": Attend, "mlp": Vector}
