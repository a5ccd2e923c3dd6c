"""What tests of kernels share: drawn arrays, and that two forms agree in what they give and in their gradients."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor

HIDDEN = [16, 48, 128, 144]  # one lane, a few, one block, a block and a lane


def drawn(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def flags(*shape: int, share: float = 0.3, seed: int = 5) -> Tensor:
    return (torch.rand(shape, generator=torch.Generator().manual_seed(seed)) < share).to(torch.uint8)


def gradients(run: Callable[..., Tensor], inputs: list[Tensor], seed: int = 9) -> tuple[Tensor, list[Tensor]]:
    """What `run` gives, and the gradients of a random sum of it."""
    leaves = [x.clone().requires_grad_() for x in inputs]
    out = run(*leaves)
    found = torch.autograd.grad((out * drawn(*out.shape, seed=seed)).sum(), leaves)
    return out.detach(), list(found)


def agree(one: Callable[..., Tensor], other: Callable[..., Tensor], inputs: list[Tensor]) -> None:
    a, da = gradients(one, inputs)
    b, db = gradients(other, inputs)
    torch.testing.assert_close(a, b, rtol=1e-5, atol=2e-6)
    assert float(a.abs().max()) > 0.1
    for x, y in zip(da, db, strict=True):
        assert float(y.abs().max()) > 0.01
        torch.testing.assert_close(x, y, rtol=1e-4, atol=1e-5)


# ---- arrays of sizes, for what is refused


def f(*shape: int) -> Any:
    return np.zeros(shape, np.float32)


def u(*shape: int) -> Any:
    return np.zeros(shape, np.uint8)
