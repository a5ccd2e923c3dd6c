"""The native kernels as torch functions with gradients, and beside each the slow and obvious form in plain torch.

On a CPU in float32 the native form runs; everywhere else (another device, autocast to bfloat16, a compiled graph) the
plain form does. Tests hold the two equal. Native kernels use no threads: whoever calls them splits the rows.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import FunctionCtx, once_differentiable

from gridmill import _native
from gridmill.env.tokens import NO_TOKEN
from gridmill.policy import onednn
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

    def read(self, obs: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Place, slot, amount and whether it counts, each [rows, tokens of the longest row]; obs uint8 [rows, K, 3]."""
        location = obs[..., 0]
        longest = obs.shape[1]
        if not torch.compiler.is_exporting():  # the shapes of a program cannot depend on its numbers
            longest = max(1, int((location != NO_TOKEN).sum(-1).max()))
        place = self.place[location[:, :longest].long()]
        feature = obs[:, :longest, 1].long()
        known = feature < self.slot.shape[0]
        feature = feature.clamp(max=self.slot.shape[0] - 1)
        value = obs[:, :longest, 2].long()
        slot = self.slot[feature, value]
        counts = known & (place >= 0) & (slot >= 0)
        return place.clamp(min=0), slot.clamp(min=0), self.amount[feature, value], counts


def bag(table: Tensor, bias: Tensor, obs: Tensor, tokens: Tokens) -> Tensor:
    """ReLU of the bias and the sum of the table's rows that each observation names: [rows, hidden]."""
    if native_fits(table):
        return _Bag.apply(table, bias, obs, tokens)  # type: ignore[no-any-return, no-untyped-call]
    return plain_bag(table, bias, obs, tokens)


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
    if native_fits(gates):
        return _Scan.apply(gates, state, episode_starts)  # type: ignore[no-any-return, no-untyped-call]
    return plain_scan(gates, state, episode_starts)


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
