"""Levels: entries with weights, one of them drawn in proportion, in constant time whatever their number.

A weight lies in the level of the next higher power of two. A draw takes a level by what its entries could weigh at
most, then any entry of it, and keeps that with weight / power, which is a half at least: two tries on average. A weight
that changes moves its entry from one list to another.
"""

from __future__ import annotations

import math
from collections.abc import Callable

LOWEST, HIGHEST = -20, 2  # exponents of the powers; what is lighter than the lowest weighs nothing
_POWERS = [2.0**e for e in range(LOWEST, HIGHEST + 1)]


class Levels:
    """Weights of entries 0, 1, 2, ..."""

    def __init__(self) -> None:
        self.weights: list[float] = []
        self._lists: list[list[int]] = [[] for _ in _POWERS]
        self._place: list[tuple[int, int]] = []  # level and place in its list; level -1: weighs nothing

    def __len__(self) -> int:
        return len(self.weights)

    def set(self, entry: int, weight: float) -> None:
        """Change the weight of an entry; the next new entry is len(self)."""
        if entry == len(self.weights):
            self.weights.append(0.0)
            self._place.append((-1, 0))
        self._take_out(entry)
        exponent = math.frexp(weight)[1] if weight > 0.0 else LOWEST - 1  # weight < 2 ** exponent <= 2 * weight
        if exponent < LOWEST:
            self.weights[entry] = 0.0
            return
        level = min(exponent, HIGHEST) - LOWEST
        self.weights[entry] = min(weight, _POWERS[-1])
        self._place[entry] = (level, len(self._lists[level]))
        self._lists[level].append(entry)

    def _take_out(self, entry: int) -> None:
        level, place = self._place[entry]
        if level < 0:
            return
        last = self._lists[level].pop()
        if last != entry:
            self._lists[level][place] = last
            self._place[last] = (level, place)
        self._place[entry] = (-1, 0)

    def draw(self, share: Callable[[int], float]) -> int | None:
        """An entry in proportion to its weight; None if nothing weighs. `share(i)` is the i-th number in [0, 1)."""
        most = [len(entries) * power for entries, power in zip(self._lists, _POWERS, strict=True)]
        total = sum(most)
        if total == 0.0:
            return None
        count = 0
        while True:
            at, kept = share(count) * total, share(count + 1)
            count += 2
            level = 0
            while level < len(most) - 1 and at >= most[level]:
                at -= most[level]
                level += 1
            entries = self._lists[level]
            if not entries:  # the last level after rounding
                continue
            entry = entries[min(int(at / _POWERS[level]), len(entries) - 1)]
            if kept * _POWERS[level] < self.weights[entry]:
                return entry

    def order(self) -> list[int]:
        """Entries that weigh something, as they lie in their lists: what a draw depends on beside the weights."""
        return [entry for entries in self._lists for entry in entries]
