"""Layers made of matrix products: dense with its bias and ReLU, and the LSTM along time; each with its plain form.

The native forms (on a CPU, in float32) multiply by packed weights, laid out as the product reads them. While a policy
is frozen, they are packed once (`Dense.freeze`). Where the core has no fast products, dense layers are torch's.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.nn import functional as F

from gridmill.policy.kernels import arrays, native, native_fits

LEAST_OUTPUTS = 16  # a narrower product is a lane that is mostly empty: torch's is faster


def packed(matrix: Tensor, transposed: bool) -> Any:
    """A matrix, or its transpose, as native products read it."""
    rows, columns = matrix.shape
    inner, wide = (columns, rows) if transposed else (rows, columns)
    found = torch.empty(inner * -(-wide // 16) * 16).numpy()  # torch's memory begins with a line of the cache
    native.pack(*arrays(matrix.contiguous()), transposed, found)
    return found


# ---- a dense layer


class Product:
    """A product with given weights as the native form reads them, at the price of one call."""

    def __init__(self, weight: Tensor, bias: Tensor) -> None:
        self.transposed, (self.bias,), self.outputs = packed(weight, True), arrays(bias), weight.shape[0]

    def __call__(self, x: Tensor, relu: bool) -> Tensor:
        out = torch.empty(*x.shape[:-1], self.outputs)
        rows = x.numpy() if x.ndim == 2 else x.reshape(-1, x.shape[-1]).numpy()
        native.dense_forward(rows, self.transposed, self.bias, relu, out.view(-1, self.outputs).numpy(), None)
        return out

    def two(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """All outputs but the last, and the last."""
        first, last = torch.empty(*x.shape[:-1], self.outputs - 1), torch.empty(x.shape[:-1])
        rows = x.reshape(-1, x.shape[-1]).numpy()
        native.dense_forward(
            rows, self.transposed, self.bias, False, first.view(-1, self.outputs - 1).numpy(), last.view(-1).numpy()
        )
        return first, last


class Dense(nn.Linear):
    """x W + b, and no negative number of it with `relu`."""

    def __init__(self, inputs: int, outputs: int, relu: bool = False) -> None:
        super().__init__(inputs, outputs)
        self.relu = relu
        self._fast = native.fast_products() and outputs >= LEAST_OUTPUTS
        self._cached: Product | None = None

    def freeze(self, frozen: bool) -> None:
        """Pack the weights once, for forwards without gradients."""
        fits = frozen and self._fast and native_fits(self.weight)
        self._cached = Product(self.weight, self.bias) if fits else None

    def forward(self, x: Tensor) -> Tensor:
        if not self._fast or not native_fits(x) or torch.is_autocast_enabled("cpu"):
            return plain_dense(x, self.weight, self.bias, self.relu)
        cached = None if torch.is_grad_enabled() else self._cached
        return cached(x.detach(), self.relu) if cached else dense(x, self.weight, self.bias, self.relu)


def dense(x: Tensor, weight: Tensor, bias: Tensor, relu: bool) -> Tensor:
    """The native form, with gradients: [..., inputs] -> [..., outputs]."""
    rows = x.reshape(-1, x.shape[-1])
    out: Tensor = _Dense.apply(rows, weight, bias, relu)  # type: ignore[no-untyped-call]
    return out.view(*x.shape[:-1], weight.shape[0])


def plain_dense(x: Tensor, weight: Tensor, bias: Tensor, relu: bool) -> Tensor:
    found = F.linear(x, weight, bias)
    return F.relu(found, inplace=True) if relu else found


def _backward(
    x: Tensor, weight: Tensor, out: Tensor | None, d_out: Tensor, d_last: Tensor | None, wanted: bool
) -> tuple[Tensor | None, Tensor, Tensor]:
    """Gradients of x (if it is wanted), the weight and the bias."""
    d_x = torch.empty_like(x) if wanted else None
    d_weight, d_bias = torch.empty_like(weight), torch.empty(weight.shape[0])
    native.dense_backward(
        *arrays(x),
        None if out is None else out.detach().numpy(),
        *arrays(d_out.contiguous()),
        None if d_last is None else d_last.contiguous().numpy(),
        packed(weight, False) if wanted else None,
        None if d_x is None else d_x.numpy(),
        *arrays(d_weight, d_bias),
    )
    return d_x, d_weight, d_bias


class _Dense(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor, relu: bool) -> Tensor:
        x = x.detach().contiguous()
        out = Product(weight, bias)(x, relu)
        ctx.save_for_backward(x, weight, out if relu else None)
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, d_out: Tensor) -> tuple[Tensor | None, Tensor, Tensor, None]:
        x, weight, out = ctx.saved_tensors
        return *_backward(x, weight, out, d_out, None, ctx.needs_input_grad[0]), None


# ---- actor and critic: one product, since a critic's alone costs as much as a lane of actions


class Heads:
    """Two dense layers over the same x: [..., inputs] -> [..., outputs of the first] and [...]."""

    def __init__(self, actor: Dense, critic: Dense) -> None:
        self.actor, self.critic = actor, critic
        self._fast = native.fast_products()
        self._cached: Product | None = None

    def freeze(self, frozen: bool) -> None:
        """Join and pack the weights once, for forwards without gradients."""
        fits = frozen and self._fast and native_fits(self.actor.weight)
        self._cached = Product(*self._joined()) if fits else None

    def _joined(self) -> tuple[Tensor, Tensor]:
        actor, critic = self.actor, self.critic
        return torch.cat((actor.weight, critic.weight)), torch.cat((actor.bias, critic.bias))

    def __call__(self, x: Tensor) -> tuple[Tensor, Tensor]:
        if not self._fast or not native_fits(x) or torch.is_autocast_enabled("cpu"):
            return self.actor(x), self.critic(x).squeeze(-1)
        cached = None if torch.is_grad_enabled() else self._cached
        if cached:
            return cached.two(x.detach())
        first, last = _Heads.apply(x.reshape(-1, x.shape[-1]), *self._joined())  # type: ignore[no-untyped-call]
        return first.view(*x.shape[:-1], -1), last.view(x.shape[:-1])


class _Heads(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor) -> tuple[Tensor, Tensor]:
        x = x.detach().contiguous()
        ctx.save_for_backward(x, weight)
        return Product(weight, bias).two(x)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, d_first: Tensor, d_last: Tensor) -> tuple[Tensor | None, Tensor, Tensor]:
        x, weight = ctx.saved_tensors
        return _backward(x, weight, None, d_first, d_last, ctx.needs_input_grad[0])


# ---- the LSTM along time, from its input gates


def lstm(
    gates: Tensor, weight: Tensor, state: Tensor, episode_starts: Tensor, transposed: Any = None
) -> tuple[Tensor, Tensor]:
    """h [T, N, H] and the last (h, c) as [N, 2H]; gates [T, N, 4H] are x W + b, weight [4H, H] the recurrent one
    (`transposed`: its packed transpose, if it is at hand).

    The native form writes the gates' functions over them, as the scan does.
    """
    if native_fits(gates):
        return _Lstm.apply(gates, weight, state, episode_starts, transposed)  # type: ignore[no-any-return, no-untyped-call]
    return plain_lstm(gates, weight, state, episode_starts)


def plain_lstm(gates: Tensor, weight: Tensor, state: Tensor, episode_starts: Tensor) -> tuple[Tensor, Tensor]:
    keep = (1 - episode_starts.to(gates.dtype)).unsqueeze(-1)
    h, c = state.to(gates.dtype).chunk(2, -1)
    found = []
    for t in range(gates.shape[0]):
        h, c = h * keep[t], c * keep[t]
        i, f, g, o = (gates[t] + h @ weight.t()).chunk(4, -1)
        c = f.sigmoid() * c + i.sigmoid() * g.tanh()
        h = o.sigmoid() * c.tanh()
        found.append(h)
    return torch.stack(found), torch.cat((h, c), -1)


class _Lstm(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, gates: Tensor, weight: Tensor, state: Tensor, episode_starts: Tensor, transposed: Any
    ) -> tuple[Tensor, Tensor]:
        gates = gates.detach().contiguous()
        steps, rows, size = *gates.shape[:2], weight.shape[1]
        h, c = (torch.empty(steps + 1, rows, size) for _ in range(2))  # at t what step t begins with
        h[0], c[0] = state.detach().chunk(2, -1)
        transposed = packed(weight, True) if transposed is None else transposed
        native.lstm_forward(*arrays(episode_starts), transposed, *arrays(gates, h, c))
        ctx.save_for_backward(gates, h, c, weight, episode_starts)
        last = torch.cat((h[steps], c[steps]), -1)
        ctx.mark_non_differentiable(last)
        return h[1:], last

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, d_h: Tensor, _: Tensor) -> tuple[Tensor, Tensor, None, None, None]:
        gates, h, c, weight, episode_starts = ctx.saved_tensors
        d_gates = torch.empty_like(gates)
        native.lstm_backward(
            *arrays(episode_starts), packed(weight, False), *arrays(gates, c, d_h.contiguous(), d_gates)
        )
        before = h[:-1]
        if episode_starts.any():
            before = before * (1 - episode_starts.float()).unsqueeze(-1)
        d_weight = d_gates.view(-1, d_gates.shape[-1]).t() @ before.reshape(-1, weight.shape[1])
        return d_gates, d_weight, None, None, None
