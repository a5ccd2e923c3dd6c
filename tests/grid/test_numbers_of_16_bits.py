"""What rules are known by has numbers of 16 bits: one more than these is refused, not taken for the first."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import gridmill
from gridmill.grid import (
    AddStat,
    AnyOf,
    Area,
    Ascii,
    AtLeast,
    Chance,
    Constant,
    Game,
    ObjectType,
    Observation,
    Rule,
    Scatter,
)

MANY = 65_536


def game(**fields: Any) -> Game:
    some = {"objects": {"wall": ObjectType()}, "map": Scatter(height=9, width=9)} | fields
    return Game(name="many", num_agents=1, max_steps=2, observation=Observation(overflow="drop"), **some)


def values(count: int) -> Game:
    """The last of them holds, the others do not."""
    never = Rule(when=(AtLeast(value=Constant(value=0), number=1),))
    always = Rule(when=(AtLeast(value=Constant(value=5), number=1),), then=(AddStat(of="game", name="yes"),))
    return game(on_tick=(never,) * (count - 1) + (always,))


def chances(count: int) -> Game:
    """Two numbers of one tick that were the same."""
    rules = (Rule(when=(AnyOf(conditions=(Chance(probability=0.5),) * 32),)),) * (count // 32)
    return game(on_tick=rules + (Rule(when=(Chance(probability=0.5),)),) * (count % 32))


def areas(count: int) -> Game:
    """The last one changes something."""
    nothing, something = Area(radius=1), Area(radius=9, affects="all", metric="euclid", changes={"ore": 5})
    source = ObjectType(areas=(nothing,) * (count - 1) + (something,))
    return game(
        objects={"wall": ObjectType(), "s": source},
        resources=("ore",),
        map=Ascii(text="@..s", legend={"s": "s"}),
    )


def statistics(count: int) -> Game:
    return game(on_tick=tuple(Rule(then=(AddStat(of="game", name=f"s{i:06d}"),)) for i in range(count)))


REFUSED: dict[str, tuple[Callable[[int], Game], int, str]] = {
    "values": (values, MANY, r"^expected at most 65,536 values in rules in a game, got more - at `\$.on_tick\[65536\]"),
    "chances": (chances, MANY, r"^expected at most 65,536 conditions of `chance` in a game, got more - at `\$.on_tick"),
    "areas": (areas, MANY, r"^expected at most 65,536 areas in a game, got more - at `\$.objects.s.areas\[65536\]`"),
    "statistics": (
        statistics,
        MANY - 1,
        r"^expected at most 65535 statistics of the game that rules add to, got 65536 - at `\$`",
    ),
}


@pytest.mark.parametrize("what", REFUSED)
def test_one_more_than_there_are_numbers_is_refused(what: str) -> None:
    make, most, said = REFUSED[what]
    with pytest.raises(ValueError, match=said):
        gridmill.make(make(most + 1), num_worlds=1)


def test_the_last_number_is_its_own() -> None:
    with gridmill.make(values(MANY), num_worlds=1) as env:
        env.reset()
        env.step()
        env.step()
        assert env.take_episodes()["game/yes"].tolist() == [2.0]
