"""Random values by plan: hypothesis' words for what to draw, drawn by Python's own generator.

Drawing the hundreds of choices of a game with hypothesis takes ten times as long as compiling and playing it. A plan
takes them all from one seed, and `seeded(plan)` is the strategy of its values, so that hypothesis draws one number.
What fails is had again by its seed; it is not made smaller.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

from hypothesis import strategies as st

Draw = Callable[["Plan"], Any]  # what a composite plan is given
RANGES = ((0x20, 0x7E), (0xA1, 0x2FF), (0x370, 0x1FFF), (0x2010, 0xD7FF), (0xE000, 0xFFFD), (0x10000, 0x10FFFF))
CONTROL = ((0x00, 0x1F), (0x7F, 0x9F), (0x2028, 0x2029))


@dataclass(frozen=True)
class Plan:
    """How a value is made from a generator."""

    make: Callable[[Random], Any]

    def map(self, change: Callable[[Any], Any]) -> Plan:
        return Plan(lambda random: change(self.make(random)))


def seeded(plan: Plan) -> st.SearchStrategy[Any]:
    """The strategy of a plan's values, one for each seed."""
    return st.integers(0, 2**64 - 1).map(lambda seed: plan.make(Random(seed)))


def composite(function: Callable[..., Any]) -> Callable[..., Plan]:
    """As in hypothesis: `function(draw, ...)` makes a value, `draw(plan)` is a value of a plan."""

    @functools.wraps(function)
    def plan(*arguments: Any, **options: Any) -> Plan:
        return Plan(lambda random: function(lambda inner: inner.make(random), *arguments, **options))

    return plan


def just(value: Any) -> Plan:
    return Plan(lambda _: value)


def integers(low: int, high: int) -> Plan:
    return Plan(lambda random: random.randint(low, high))


def booleans() -> Plan:
    return Plan(lambda random: random.random() < 0.5)


def sampled_from(values: Sequence[Any]) -> Plan:
    return Plan(lambda random: random.choice(values))


def one_of(*plans: Plan) -> Plan:
    return Plan(lambda random: random.choice(plans).make(random))


def tuples(*plans: Plan) -> Plan:
    return Plan(lambda random: tuple(plan.make(random) for plan in plans))


def permutations(values: Sequence[Any]) -> Plan:
    return Plan(lambda random: random.sample(values, len(values)))


def lists(of: Plan, min_size: int = 0, max_size: int = 6) -> Plan:
    return Plan(lambda random: [of.make(random) for _ in range(random.randint(min_size, max_size))])


def subsets(values: Sequence[Any], max_size: int) -> Plan:
    """Some of the values, each once, in any order."""
    return Plan(lambda random: random.sample(values, random.randint(0, min(max_size, len(values)))))


def dictionaries(keys: Plan, values: Plan, min_size: int = 0, max_size: int = 6) -> Plan:
    """Of equal keys the last one counts, so there may be fewer entries than were drawn."""
    entries = lists(tuples(keys, values), min_size, max_size)
    return entries.map(dict)


def builds(kind: Callable[..., Any], **fields: Plan) -> Plan:
    return Plan(lambda random: kind(**{name: plan.make(random) for name, plan in fields.items()}))


def text(alphabet: str = "", min_size: int = 0, max_size: int = 8, control: bool = True) -> Plan:
    """Characters of an alphabet, or without one of all of Unicode but surrogates; half of them are ASCII then."""
    ranges = [RANGES[0]] * 6 + [*RANGES, *(CONTROL if control else ())]

    def character(random: Random) -> str:
        return random.choice(alphabet) if alphabet else chr(random.randint(*random.choice(ranges)))

    return Plan(lambda random: "".join(character(random) for _ in range(random.randint(min_size, max_size))))


def recursive(leaves: Plan, extend: Callable[[Plan], Plan], max_leaves: int) -> Plan:
    """A leaf, or `extend` of such values; at most about `max_leaves` leaves in all."""

    def make(random: Random) -> Any:
        left = max_leaves

        def inner(random: Random) -> Any:
            nonlocal left
            if left <= 1 or random.random() < 0.5:
                left -= 1
                return leaves.make(random)
            left -= 1
            return extended.make(random)

        extended = extend(Plan(inner))
        return inner(random)

    return Plan(make)
