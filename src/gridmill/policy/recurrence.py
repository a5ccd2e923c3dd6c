"""h = a h + b along time, for devices on which every operation costs a launch: some 3 sqrt(T) of them in place of 3 T.

Time is cut into about sqrt(T) parts of as many steps. All parts take their steps side by side, each from nothing; then
what one part ends with is carried into the next, and every step is told what came before its part. A step is read and
written some four times, whatever the length. On a CPU the native scan runs (kernels.py).
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor


def linear_scan(a: Tensor, b: Tensor, first: Tensor) -> Tensor:
    """h [T, ...] with h[t] = a[t] h[t - 1] + b[t], where h[-1] is `first` [...]."""
    return _LinearScan.apply(a, b, first)  # type: ignore[no-any-return, no-untyped-call]


def scanned(a: Tensor, b: Tensor, first: Tensor, backwards: bool = False) -> Tensor:
    """The same without gradients; `backwards`: h[t] = a[t] h[t + 1] + b[t], where h[T] is `first`."""
    steps = len(b)
    if steps == 1:
        return torch.addcmul(b, a, first[None])
    part = math.isqrt(steps - 1) + 1
    parts = -(-steps // part)
    left, h = (_in_parts(x, parts, part, backwards) for x in (a, b))  # left: how much of what came before is left
    inside = range(part - 2, -1, -1) if backwards else range(1, part)
    way = 1 if backwards else -1
    for i in inside:
        h[:, i].addcmul_(left[:, i], h[:, i + way])
        left[:, i].mul_(left[:, i + way])
    end, order = (0, range(parts - 1, -1, -1)) if backwards else (part - 1, range(parts))
    for p in order:
        h[p, end].addcmul_(left[p, end], first if p == order[0] else h[p + way, end])
    before = torch.cat((h[1:, end], first[None]) if backwards else (first[None], h[:-1, end]))
    rest = slice(1, part) if backwards else slice(0, part - 1)
    h[:, rest].addcmul_(left[:, rest], before[:, None])
    flat = h.flatten(0, 1)
    return flat[len(flat) - steps :] if backwards else flat[:steps]


def _in_parts(x: Tensor, parts: int, part: int, backwards: bool) -> Tensor:
    """A copy as [parts, part, ...]; where steps are missing, behind the last that is reached, there are zeros."""
    missing = parts * part - len(x)
    if not missing:
        return x.clone(memory_format=torch.contiguous_format).view(parts, part, *x.shape[1:])
    nothing = x.new_zeros(missing, *x.shape[1:])
    return torch.cat((nothing, x) if backwards else (x, nothing)).view(parts, part, *x.shape[1:])


class _LinearScan(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, a: Tensor, b: Tensor, first: Tensor) -> Tensor:
        h = scanned(a, b, first)
        ctx.save_for_backward(a, h, first)
        return h

    @staticmethod
    def backward(ctx: Any, d_h: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """What a step's h is worth: its own slope, and a[t + 1] of what the next one's is."""
        a, h, first = ctx.saved_tensors
        last = torch.zeros_like(first)
        d_b = scanned(torch.cat((a[1:], last[None])), d_h, last, backwards=True)
        d_a = d_b * torch.cat((first[None], h[:-1]))
        return d_a, d_b, a[0] * d_b[0]
