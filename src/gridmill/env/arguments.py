"""What is given to an env's calls, checked before the core sees it: a binding would answer with its C++ signature."""

from __future__ import annotations

import operator
from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

INT64 = 2**63


def whole(name: str, value: Any) -> int:
    """A number that the core can judge; it knows which worlds, rows and games there are."""
    try:
        number = operator.index(value)
    except TypeError:
        raise TypeError(f"{name}: expected an int, got {value!r:.60}") from None
    if not -INT64 <= number < INT64:
        raise ValueError(f"{name}: expected an int of at most 64 bits, got {number.bit_length()} bits")
    return number


def not_negative(name: str, value: Any) -> int:
    number = whole(name, value)
    if number < 0:
        raise ValueError(f"{name}: expected an int of at least 0, got {number}")
    return number


def seed_of(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int | np.integer):
        raise TypeError(f"seed: expected an int, got {value!r:.60}")
    if not 0 <= value < 2**64:
        raise ValueError(f"seed: expected an int in [0, 2**64), got {value!r:.60}")
    return int(value)


def numbers(name: str, values: int | Iterable[int]) -> list[int]:
    """One number, or several."""
    if isinstance(values, int | np.integer):
        return [whole(name, values)]
    if not isinstance(values, Iterable):
        raise TypeError(f"{name}: expected an int or ints, got {values!r:.60}")
    return [whole(name, value) for value in values]


def saved_bytes(data: Any) -> bytes:
    """What `save` returned, or a copy of it."""
    if not isinstance(data, bytes | bytearray | memoryview):
        raise TypeError(f"expected the bytes that `save` returned, got {type(data).__name__}")
    return bytes(data)


def rows_of_bytes(name: str, array: Any, dimensions: int) -> npt.NDArray[np.uint8]:
    """An array of unsigned bytes; how long it is in each dimension is the core's to judge."""
    if not isinstance(array, np.ndarray):
        raise TypeError(f"{name}: expected an array of uint8, got {type(array).__name__}")
    if array.dtype != np.uint8:
        raise TypeError(f"{name}: expected an array of uint8, got one of {array.dtype}")
    if array.ndim != dimensions:
        raise ValueError(f"{name}: expected {dimensions} dimensions, got {array.ndim}")
    return array


def written_rows(name: str, array: Any, dimensions: int) -> npt.NDArray[np.uint8]:
    """Such an array that can be written from its first byte to its last."""
    found = rows_of_bytes(name, array, dimensions)
    if not found.flags.c_contiguous or not found.flags.writeable:
        raise ValueError(f"{name}: expected a writable array without gaps (C-contiguous)")
    return found
