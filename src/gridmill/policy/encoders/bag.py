"""The encoder `bag`: sums of embeddings of the tokens that are there."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from gridmill.policy.config import PolicyConfig, Size
from gridmill.policy.encoders import TABLE_SCALE, Encoder
from gridmill.policy.initial import table
from gridmill.policy.kernels import bag, native_fits, with_nothing
from gridmill.policy.spec import Layout, Spec


class Bag(Encoder):
    """The sum of one embedding per (place, feature, value): no dense grid, and cost by the tokens that are there.

    An embedding is the sum of three: of the place, of its row and of its column. What was learned about a mine two
    cells north is so known in part of all mines north; without it every place is learned alone.
    """

    any_length = True
    named_axes: ClassVar[Mapping[str, tuple[int, str]]] = {
        "table": (0, "places x slots"),
        "rows": (0, "rows x slots"),
        "columns": (0, "columns x slots"),
    }

    def __init__(self, config: PolicyConfig, spec: Spec, layout: Layout, rng: np.random.Generator) -> None:
        super().__init__(config, spec, layout, rng)
        self.window, self.slots = spec.window, layout.slots
        self.table = table(layout.rows, config.hidden, TABLE_SCALE, rng)
        self.rows = nn.Parameter(torch.zeros(spec.window[0] * layout.slots, config.hidden))
        self.columns = nn.Parameter(torch.zeros(spec.window[1] * layout.slots, config.hidden))
        self.bias = nn.Parameter(torch.zeros(config.hidden))
        self._cached: Tensor | None = None

    @classmethod
    def size(cls, config: PolicyConfig, spec: Spec, layout: Layout | None) -> Size:
        assert layout is not None
        rows = layout.rows + sum(spec.window) * layout.slots + 1
        return Size(rows * config.hidden, config.hidden + 3 * spec.num_tokens // 4)  # tokens are bytes

    def freeze(self, frozen: bool) -> None:
        """Make the joined table once, for forwards without gradients."""
        self._cached = None
        if frozen:
            with torch.no_grad():
                joined = self.joined()
                self._cached = joined if native_fits(joined) else with_nothing(joined)

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
        compiled = torch.compiler.is_compiling() and not torch.compiler.is_exporting()
        cached = None if torch.is_grad_enabled() or compiled else self._cached
        return bag(self.joined() if cached is None else cached, self.bias, obs, self.tokens)


class _Joined(torch.autograd.Function):
    """Every row of the table that lies in the window, with its row's and its column's added; the others as they are.

    By hand, since it happens for every microbatch: no copy but one, and a gradient that is passed on.
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
