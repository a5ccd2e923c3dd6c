"""A saved state of training, compared with the trainer that shall take it before anything is taken.

A checkpoint may be damaged or made by a stranger, and torch's kernels believe the sizes they are given: a moment that
is shorter than its weights would be read, and written, behind its end.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

COUNTERS = (6, 7)  # how many there may be; older checkpoints do not say whether the teacher was asked
LISTS = {"worlds": torch.uint8, "recent": torch.float64, "curriculum": torch.uint8}  # of any length
NOTHING_YET = (0,)  # of a player of the user's own, which says how much it remembers only when it acts


def refuse_other(saved: Mapping[str, Tensor], own: Mapping[str, Tensor], needed: Sequence[str]) -> None:
    """ValueError naming the first tensor that is not there, or is not as the trainer's own is."""
    for name in needed:
        if name not in saved:
            raise ValueError(f"{name}: expected a tensor of this name, got none")
    for name, tensor in saved.items():
        if name in LISTS:
            _expect(name, tensor, LISTS[name], None)
        elif name in own and own[name].shape != NOTHING_YET:
            _expect(name, tensor, own[name].dtype, tuple(own[name].shape))
    counters = saved["counters"]
    _expect("counters", counters, torch.int64, None)
    if len(counters) not in COUNTERS or bool((counters < 0).any()):
        raise ValueError("counters: expected six or seven numbers, each at least 0")


def refuse_other_moments(
    saved: Mapping[str, Tensor], start: str, parameters: Sequence[Tensor], usual: Mapping[str, Tensor]
) -> None:
    """ValueError naming the first number of an optimizer's that does not fit its parameter, or is not there.

    They are called `start`, the place of the parameter and a name: `optimizer.0.3.exp_avg`. `usual` is what the
    optimizer keeps of a parameter with more than one number, by name.
    """
    found: dict[int, set[str]] = {}
    for key, tensor in saved.items():
        place, _, name = key.removeprefix(start).partition(".")
        if not key.startswith(start) or (place == "group" and tensor.numel() == 1):
            continue
        if not (place.isascii() and place.isdigit() and len(place) < 10 and int(place) < len(parameters)):
            raise ValueError(f"{key:.200}: belongs to none of the {len(parameters)} parameters")
        if name not in usual:
            raise ValueError(f"{key:.200}: expected {', '.join(usual)} of a parameter, got something else")
        shape = parameters[int(place)].shape if usual[name].numel() > 1 else usual[name].shape
        _expect(key, tensor, usual[name].dtype, tuple(shape))
        found.setdefault(int(place), set()).add(name)
    for number, names in found.items():
        for name in usual.keys() - names:
            raise ValueError(f"{start}{number}.{name}: expected a tensor of this name, got none")


def _expect(name: str, tensor: Tensor, dtype: torch.dtype, shape: tuple[int, ...] | None) -> None:
    if tensor.dtype != dtype:
        raise ValueError(f"{name}: expected {dtype}, got {tensor.dtype}")
    if shape is None and tensor.ndim != 1:
        raise ValueError(f"{name}: expected a list of numbers, got the shape {tuple(tensor.shape)}")
    if shape is not None and tuple(tensor.shape) != shape:
        raise ValueError(f"{name}: expected the shape {shape}, got {tuple(tensor.shape)}")
