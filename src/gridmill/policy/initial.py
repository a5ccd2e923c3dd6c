"""Initial weights: orthogonal, drawn by NumPy in float64, so that a seed gives the same weights on every machine."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

import numpy as np
import torch
from torch import Tensor, nn

from gridmill.policy.layers import Dense

RELU = math.sqrt(2.0)  # gain before a ReLU


_left_out: ContextVar[bool] = ContextVar("left_out", default=False)


@contextmanager
def left_out() -> Iterator[None]:
    """While networks are made whose weights come from a file: theirs are zero, and nothing is drawn for them."""
    token = _left_out.set(True)
    try:
        yield
    finally:
        _left_out.reset(token)


def orthogonal(shape: tuple[int, ...], gain: float, rng: np.random.Generator) -> Tensor:
    """A matrix with orthogonal rows or columns; further dimensions (of convolutions) count as columns."""
    if _left_out.get():
        return torch.zeros(shape)
    rows, columns = shape[0], math.prod(shape[1:])
    drawn = rng.standard_normal((max(rows, columns), min(rows, columns)))
    q, r = np.linalg.qr(drawn)
    q *= np.sign(np.diag(r))  # makes the result unique
    matrix = q if rows >= columns else q.T
    return torch.from_numpy((gain * matrix).astype(np.float32).reshape(shape))


def dense(inputs: int, outputs: int, gain: float, rng: np.random.Generator, relu: bool = False) -> Dense:
    """A dense layer with such weights and no bias at first."""
    layer = Dense(inputs, outputs, relu)
    with torch.no_grad():
        layer.weight.copy_(orthogonal((outputs, inputs), gain, rng))
        layer.bias.zero_()
    return layer


def convolution(inputs: int, outputs: int, size: int, stride: int, rng: np.random.Generator) -> nn.Conv2d:
    layer = nn.Conv2d(inputs, outputs, size, stride)
    with torch.no_grad():
        layer.weight.copy_(orthogonal((outputs, inputs, size, size), RELU, rng))
        assert layer.bias is not None
        layer.bias.zero_()
    return layer


def table(rows: int, columns: int, scale: float, rng: np.random.Generator) -> nn.Parameter:
    """An embedding table of normal numbers."""
    if _left_out.get():
        return nn.Parameter(torch.zeros(rows, columns))
    return nn.Parameter(torch.from_numpy((scale * rng.standard_normal((rows, columns))).astype(np.float32)))
