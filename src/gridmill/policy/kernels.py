"""The native kernels as torch functions with gradients, and beside each the slow and obvious form in plain torch.

On a CPU in float32 the native form runs; everywhere else (another device, a compiled graph) one in torch's operations
does that launches few of them and never waits. Tests hold all of them equal. Native kernels use no threads: whoever
calls them splits the rows. What is carried along time is float32, whatever the products' precision is.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.autograd.function import FunctionCtx, once_differentiable
from torch.nn import functional as F

from gridmill import _native
from gridmill.env.tokens import NO_TOKEN
from gridmill.policy import onednn
from gridmill.policy.recurrence import linear_scan
from gridmill.policy.spec import Layout

onednn.settle()  # before torch's first product
native: Any = _native


def arrays(*tensors: Tensor) -> list[Any]:
    """The same memory as NumPy arrays: twenty times cheaper to hand to the core than tensors are."""
    return [tensor.detach().numpy() for tensor in tensors]


def native_fits(x: Tensor) -> bool:
    """True where the native kernels can take these numbers."""
    return x.device.type == "cpu" and x.dtype == torch.float32 and not torch.compiler.is_compiling()


# ---- the bag: sums of embedding rows


class Tokens:
    """A layout on a device: what the encoders read token bytes with."""

    def __init__(self, layout: Layout, device: torch.device) -> None:
        self.layout = layout
        self.place = torch.from_numpy(layout.place).to(device, torch.int64)
        self.slot = torch.from_numpy(layout.slot).to(device, torch.int64)
        self.amount = torch.from_numpy(layout.amount).to(device)
        self.bag: Any = native.TokenBag(
            layout.place.tolist(), layout.slot.ravel().tolist(), layout.amount.ravel().tolist(), layout.slots
        )
        by_place, by_word, weights = _rows_of_bytes(layout)
        self.by_place, self.by_word = torch.from_numpy(by_place).to(device), torch.from_numpy(by_word).to(device)
        self.weights = torch.from_numpy(weights).to(device)

    def named(self, obs: Tensor) -> tuple[Tensor, Tensor]:
        """The rows of the table that each observation names, int32 [rows, 2 K], and what each counts; those of what
        does not count are the row behind the table."""
        bytes_ = obs.int()
        word = torch.add(bytes_[..., 2], bytes_[..., 1], alpha=256)
        row = self.by_place[bytes_[..., 0]].unsqueeze(-1) + self.by_word[word]
        return row.clamp_(max=self.layout.rows).flatten(1), self.weights[word].flatten(1)

    def read(self, obs: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Place, slot, amount and whether it counts, each [rows, tokens]; obs uint8 [rows, K, 3].

        On a CPU as many tokens as the longest row has. To find that out on a device would be to wait for it: there
        whoever calls shows no more tokens than it knows there are.
        """
        location = obs[..., 0]
        longest = obs.shape[1]
        compiled = torch.compiler.is_compiling() or torch.compiler.is_exporting()  # its shapes depend on no number
        if obs.device.type == "cpu" and not compiled:
            longest = max(1, int((location != NO_TOKEN).sum(-1).max()))
        place = self.place[location[:, :longest].long()]
        feature = obs[:, :longest, 1].long()
        known = feature < self.slot.shape[0]
        feature = feature.clamp(max=self.slot.shape[0] - 1)
        value = obs[:, :longest, 2].long()
        slot = self.slot[feature, value]
        counts = known & (place >= 0) & (slot >= 0)
        return place.clamp(min=0), slot.clamp(min=0), self.amount[feature, value], counts


OUTSIDE = 2**29  # a row that is in no table; the sum of two of them still fits 32 bits


def _rows_of_bytes(layout: Layout) -> tuple[Any, Any, Any]:
    """A token's rows of the table as a sum: by its place [256], and by its feature and value [256 * 256, 2], of which
    the second is that of an amount; and what each of the two counts."""
    by_place = np.where(layout.place < 0, OUTSIDE, layout.place * layout.slots).astype(np.int32)
    by_word = np.full((256, 256, 2), OUTSIDE, np.int32)
    weights = np.zeros((256, 256, 2), np.float32)
    known = slice(0, len(layout.slot))
    by_word[known, :, 0] = np.where(layout.slot < 0, OUTSIDE, layout.slot)
    by_word[known, :, 1] = np.where((layout.slot < 0) | (layout.amount == 0), OUTSIDE, layout.slot + 1)
    weights[known, :, 0], weights[known, :, 1] = 1.0, layout.amount
    return by_place, by_word.reshape(-1, 2), weights.reshape(-1, 2)


def bag(table: Tensor, bias: Tensor, obs: Tensor, tokens: Tokens) -> Tensor:
    """ReLU of the bias and the sum of the table's rows that each observation names: [rows, hidden]."""
    if native_fits(table):
        return _Bag.apply(table, bias, obs, tokens)  # type: ignore[no-any-return, no-untyped-call]
    form = plain_bag if torch.compiler.is_exporting() else indexed_bag  # other programs know few operations
    return form(table, bias, obs, tokens)


def with_nothing(table: Tensor) -> Tensor:
    """A table with a row of zeros behind it, for tokens that do not count."""
    return F.pad(table, (0, 0, 0, 1))


def indexed_bag(table: Tensor, bias: Tensor, obs: Tensor, tokens: Tokens) -> Tensor:
    """By torch's sum of embeddings, which keeps no row of them; the table may have its row of zeros already."""
    nothing = tokens.layout.rows
    row, weights = tokens.named(obs)
    table = table if len(table) > nothing else with_nothing(table)
    found = F.embedding_bag(row, table, mode="sum", per_sample_weights=weights, padding_idx=nothing)
    return (found + bias).relu()


def plain_bag(table: Tensor, bias: Tensor, obs: Tensor, tokens: Tokens) -> Tensor:
    place, slot, amount, counts = tokens.read(obs)
    row = place * tokens.layout.slots + slot
    there = table[row] * counts.unsqueeze(-1)
    much = table[(row + 1).clamp(max=table.shape[0] - 1)] * (amount * counts).unsqueeze(-1)
    return (bias + (there + much).sum(1)).relu()


class _Bag(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, table: Tensor, bias: Tensor, obs: Tensor, tokens: Tokens) -> Tensor:
        out = torch.empty(obs.shape[0], table.shape[1])
        tokens.bag.forward(*arrays(obs, table, bias, out))
        ctx.save_for_backward(obs, out)
        ctx.tokens, ctx.shape = tokens, table.shape
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, d_out: Tensor) -> tuple[Tensor, Tensor, None, None]:
        obs, out = ctx.saved_tensors
        d_table, d_bias = torch.zeros(ctx.shape), torch.zeros(ctx.shape[1])
        ctx.tokens.bag.backward(*arrays(obs, out, d_out.contiguous(), d_table, d_bias))
        return d_table, d_bias, None, None


# ---- the gated scan: h = h + z (c - h), z and c from the gates


def scan(gates: Tensor, state: Tensor, episode_starts: Tensor) -> Tensor:
    """h along time, [T, N, H], from gates [T, N, 2H], the state [N, H] before it and episode_starts uint8 [T, N].

    The native form writes z and c over the gates: nobody else may want to read them.
    """
    gates = gates.float()
    if native_fits(gates):
        return _Scan.apply(gates, state, episode_starts)  # type: ignore[no-any-return, no-untyped-call]
    form = plain_scan if torch.compiler.is_exporting() else parallel_scan
    return form(gates, state, episode_starts)


def parallel_scan(gates: Tensor, state: Tensor, episode_starts: Tensor) -> Tensor:
    """As a linear recurrence: of h what neither an episode's start nor the gate forgets, and what the gate lets in."""
    gate, candidate = gates.chunk(2, -1)
    z = gate.sigmoid()
    kept = (1 - z) * (episode_starts == 0).unsqueeze(-1)
    return linear_scan(kept, z * candidate.tanh(), state)


def plain_scan(gates: Tensor, state: Tensor, episode_starts: Tensor) -> Tensor:
    gate, candidate = gates.chunk(2, -1)
    z, c = gate.sigmoid(), candidate.tanh()
    keep = (1 - episode_starts.to(z.dtype)).unsqueeze(-1)
    h, found = state.to(z.dtype), []
    for t in range(z.shape[0]):
        h = keep[t] * h
        h = h + z[t] * (c[t] - h)
        found.append(h)
    return torch.stack(found)


class _Scan(torch.autograd.Function):
    @staticmethod
    def forward(ctx: FunctionCtx, gates: Tensor, state: Tensor, episode_starts: Tensor) -> Tensor:
        gates, state = gates.detach().contiguous(), state.detach().contiguous()
        h = torch.empty(*gates.shape[:2], gates.shape[2] // 2)
        native.scan_forward(*arrays(episode_starts, gates, state, h))
        ctx.save_for_backward(gates, state, episode_starts, h)
        return h

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, d_h: Tensor) -> tuple[Tensor, Tensor, None]:
        gates, state, episode_starts, h = ctx.saved_tensors
        d_gates, d_state = torch.empty_like(gates), torch.empty_like(state)
        native.scan_backward(*arrays(episode_starts, gates, state, h, d_h.contiguous(), d_gates, d_state))
        return d_gates, d_state, None
