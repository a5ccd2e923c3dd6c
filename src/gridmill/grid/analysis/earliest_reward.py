"""Earliest reward: the first tick at which each reward term of a game can pay, and the shortest useful first episode.

Works on any game value by asking when its parts can first change or first be above zero. It says when a term *could*
pay, not how likely an agent is to find out.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from gridmill.grid.analysis.earliest import Earliest, Way, soonest
from gridmill.grid.analysis.earliest_change import Certainty, Gains, Leaves
from gridmill.grid.parts import RewardTerm
from gridmill.grid.values import Constant, GameValue, Index, Log, Max, Min, Ratio, Sum


def min_first_episode(earliest: Earliest) -> int:
    """The tick by which every term that can pay at all could have paid with one of each building; at most max_steps.

    Where only a bound is known, the bound; where nothing is, 1.
    """
    paid = [tick for tick in first_rewards(earliest, "one") if tick is not None]
    return min(earliest.game.max_steps, max(paid, default=1))


def first_rewards(earliest: Earliest, way: Way) -> list[int | None]:
    """For each reward term the first tick it can pay something, in one of the three ways; None if never."""

    def gains(resource: str, amount: int) -> int | None:
        return earliest.gains(way, resource, amount)

    terms = earliest.game.rewards
    first = [_Look(earliest, way, gains, None).pays(term) for term in terms]
    others = [tick for tick in first if tick is not None]
    # The statistic `reward` moves one tick after the first term that pays.
    look = _Look(earliest, way, gains, 1 + min(others) if others else None)
    return [look.pays(term) for term in terms]


def certainty(earliest: Earliest, term: RewardTerm) -> Certainty:
    """Whether the first ticks of a term are exact, a bound, or nothing is known."""
    look = _Look(earliest, "one", lambda r, n: earliest.gains("one", r, n), None)
    found = [look.leaves.certainty(leaf) for leaf in leaves(term.value)]
    if "not known" in found or look.turns(term):
        return "not known"
    return "at least" if "at least" in found else "exact"


def leaves(value: GameValue) -> Iterator[GameValue]:
    """The simple values a value is made of."""
    if isinstance(value, Sum | Ratio | Min | Max | Log):
        for part in value.values:
            yield from leaves(part)
    else:
        yield value


class _Look:
    """Reads game values for their first moments."""

    def __init__(self, earliest: Earliest, way: Way, gains: Gains, reward: int | None) -> None:
        self.leaves = Leaves(earliest, way, gains, reward)
        self.sure = not earliest.ruled

    def pays(self, term: RewardTerm) -> int | None:
        if term.weight == 0 or term.cap == 0:
            return None
        if self.turns(term):
            return 1
        before = self.at_start(term.value)
        if term.mode == "per_tick":
            tick = self.above_zero(term.value)
            return None if tick is None else max(1, tick)
        if self.sure and term.mode == "change" and before >= term.cap:
            return None  # it is full from the start and can only be lost
        return self.above_zero(term.value) if before == 0 else self.changes(term.value)

    def turns(self, term: RewardTerm) -> bool:
        """Whether something that falls can make a term pay: then nothing is ruled out."""
        falls = term.weight < 0 and term.mode == "change" and self.at_start(term.value) != 0
        return (falls and not isinstance(term.value, Constant)) or self._divides(term.value)

    def _divides(self, value: GameValue) -> bool:
        """Whether a value is divided by one that is there at the start and may fall, or by one below zero."""
        if not isinstance(value, Sum | Ratio | Min | Max | Log):
            return False
        by = value.values[1] if isinstance(value, Ratio) and len(value.values) == 2 else Constant()
        falls = not isinstance(by, Constant | Index) and self.at_start(by) != 0
        falls |= isinstance(by, Constant) and by.value < 0
        return falls or any(map(self._divides, value.values))

    def at_start(self, value: GameValue) -> float:
        """The value before the first tick."""
        if not isinstance(value, Sum | Ratio | Min | Max | Log):
            return self.leaves.at_start(value)
        parts = [self.at_start(part) for part in value.values]
        if not parts or (isinstance(value, Ratio) and len(parts) != 2):
            return 0  # the core refuses it with its path
        if isinstance(value, Ratio):
            return parts[0] / parts[1] if parts[1] else 0
        if isinstance(value, Log):
            return math.log1p(max(0.0, parts[0]))
        return sum(parts) if isinstance(value, Sum) else min(parts) if isinstance(value, Min) else max(parts)

    def above_zero(self, value: GameValue) -> int | None:
        """The first tick at which the value can differ from zero; 0 if it does from the start."""
        if self.at_start(value) != 0:
            return 0
        if isinstance(value, Sum | Max | Log):
            # A part that differs already (and is cancelled, or below a log) must move first.
            settled = [part for part in value.values if self.at_start(part) == 0]
            moving = [part for part in value.values if self.at_start(part) != 0]
            return soonest([*map(self.above_zero, settled), *map(self.changes, moving)])
        if isinstance(value, Ratio | Min):
            ticks = [self.above_zero(part) for part in value.values]
            known = [tick for tick in ticks if tick is not None]
            return max(known, default=None) if len(known) == len(ticks) else None
        return self.changes(value)

    def changes(self, value: GameValue) -> int | None:
        """The first tick at which the value can differ from what it was at the start."""
        if isinstance(value, Sum | Ratio | Min | Max | Log):
            return soonest([self.changes(part) for part in value.values])
        return self.leaves.changes(value)
