"""LSTM and GRU on a device by torch's own module, which is cuDNN on a GPU: one call for all steps.

cuDNN knows no episodes. Segments are cut where one starts inside, and the pieces, of different lengths and each with a
first state of its own, are one packed call: no step is computed twice and none is padded. Where episodes start must be
known on the host for that. Who has it there says so (`starts_known`); otherwise the device is asked, which waits.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gridmill.policy.device import sent

_known: ContextVar[NDArray[np.uint8] | None] = ContextVar("starts", default=None)


@contextmanager
def starts_known(starts: NDArray[np.uint8] | None) -> Iterator[None]:
    """While forwards run over steps whose `episode_starts` [T, N] are these on the host (None: not known)."""
    token = _known.set(starts)
    try:
        yield
    finally:
        _known.reset(token)


def fits(x: Tensor) -> bool:
    """Where this form runs. A compiled graph is one of its own, with a loop over time that the compiler joins."""
    return x.device.type != "cpu" and not torch.compiler.is_compiling()


class Pieces(NamedTuple):
    """Segments cut where an episode starts inside, the longest piece first; `steps` counts t * N + n."""

    steps: NDArray[np.int64]  # [T * N], in packed order: the first steps of all pieces, then their second ones, ...
    places: NDArray[np.int64]  # [T * N], where each step is in that order
    sizes: NDArray[np.int64]  # [longest], how many pieces have so many steps
    segments: NDArray[np.int64]  # [pieces], which segment each is of
    carried: NDArray[np.float32]  # [pieces], 1 where it begins with the segment's state, 0 where an episode starts
    ends: NDArray[np.int64]  # [N], the piece that each segment ends with


def cut(starts: NDArray[np.uint8]) -> Pieces:
    """The pieces of segments whose episodes start where `starts` [T, N] is not 0."""
    steps, rows = starts.shape
    begins = starts != 0
    begins[0] = True
    segment, time = np.nonzero(begins.T)  # pieces in the order of segments, and of time within one
    follow = np.append(time[1:], steps)
    last = np.append(segment[1:] != segment[:-1], True)
    length = np.where(last, steps, follow) - time
    order = np.argsort(-length, kind="stable")
    segment, time, length, last = segment[order], time[order], length[order], last[order]
    sizes = np.count_nonzero(length[None] > np.arange(length[0])[:, None], axis=1)
    within = [((time[:size] + i) * rows + segment[:size]) for i, size in enumerate(sizes)]
    packed = np.concatenate(within)
    places = np.empty_like(packed)
    places[packed] = np.arange(len(packed))
    ends = np.empty(rows, np.int64)
    ends[segment[last]] = np.flatnonzero(last)
    carried = (starts[time, segment] == 0).astype(np.float32)
    return Pieces(packed, places, sizes.astype(np.int64), segment, carried, ends)


def run(kind: str, x: Tensor, states: tuple[Tensor, ...], starts: Tensor, weights: list[Tensor]) -> tuple[Tensor, Any]:
    """h [T, N, H] of torch's `lstm` or `gru` and the states after the last step, each [N, H]; in float32.

    A state that is carried in fewer bits forgets: rounding to bfloat16 at every step loses what a slow gate keeps.
    """
    call: Callable[..., Any] = getattr(torch, kind)
    options = (True, 1, 0.0, torch.is_grad_enabled(), False)  # biases, layers, dropout, training, both directions
    with torch.autocast(x.device.type, enabled=False), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="RNN module weights")  # they are joined anew after every update
        x, states = x.float(), tuple(state.float() for state in states)
        known = None if len(x) == 1 else _starts_on_host(starts)
        if known is None or not known[1:].any():
            keep = (1 - starts[0].float())[:, None]
            found, *last = call(x, _first([state * keep for state in states]), weights, *options, False)
            return found, tuple(state[0] for state in last)
        pieces = cut(known)
        there = {n: sent(torch.from_numpy(value), x.device) for n, value in pieces._asdict().items() if n != "sizes"}
        first = [state.index_select(0, there["segments"]) * there["carried"][:, None] for state in states]
        packed = x.flatten(0, 1).index_select(0, there["steps"])
        found, *last = call(packed, torch.from_numpy(pieces.sizes), _first(first), weights, *options)
        found = found.index_select(0, there["places"]).view(*x.shape[:2], -1)
        return found, tuple(state[0].index_select(0, there["ends"]) for state in last)


def _first(states: list[Tensor]) -> Any:
    """As torch wants them: a pair for an LSTM, one for a GRU, each with a first axis of layers."""
    layered = [state[None].contiguous() for state in states]
    return layered if len(layered) > 1 else layered[0]


def _starts_on_host(starts: Tensor) -> NDArray[np.uint8]:
    known = _known.get()
    if known is not None and known.shape == tuple(starts.shape):
        return known
    found: NDArray[np.uint8] = starts.cpu().numpy()
    return found
