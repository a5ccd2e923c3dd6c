"""Events: when they happen, in which order, to whom, and what happens instead when there is nobody."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scenes import do, finish, held, play, stored

from gridmill import Env
from gridmill.grid import (
    AddStat,
    AgentType,
    Align,
    Aligned,
    Collective,
    Event,
    Give,
    Holds,
    Not,
    ObjectType,
    Remove,
    Take,
)

STUFF = ("ore", "wood")
ORE = Give(who="target", amounts={"ore": 1})


def clock(events: dict[str, Event], text: str = "@", kinds: dict[str, ObjectType] | None = None, **fields: Any) -> Env:
    return play(text, kinds or {}, resources=STUFF, events=events, collectives={"red": Collective()},
                **({"max_steps": 100} | fields))  # fmt: skip


def ticks_of(event: Event, until: int = 40) -> list[int]:
    """The ticks in which an event that gives ore to the agent happens."""
    env = clock({"e": event})
    seen = []
    for tick in range(1, until + 1):
        before = held(env).get("ore", 0)
        do(env, "noop")
        seen += [tick] * (held(env).get("ore", 0) - before)
    return seen


@pytest.mark.parametrize(
    ("fields", "ticks"),
    [
        ({"at": (3,)}, [3]), ({"at": (7, 2)}, [2, 7]), ({"at": (0,)}, [1]), ({"at": (0, 1)}, [1, 1]),
        ({"every": 10}, [1, 10, 20, 30, 40]), ({"every": 10, "start": 5}, [5, 15, 25, 35]),
        ({"every": 10, "start": 5, "until": 25}, [5, 15, 25]), ({"every": 1, "start": 38}, [38, 39, 40]),
        ({"every": 20, "start": 3, "at": (9,)}, [3, 9, 23]), ({}, []),
    ],
)  # fmt: skip
def test_when(fields: dict[str, Any], ticks: list[int]) -> None:
    assert ticks_of(Event(targets="type:agent", then=(ORE,), **fields)) == ticks


def test_events_begin_anew_in_every_episode() -> None:
    env = clock({"e": Event(at=(2,), targets="type:agent", then=(ORE,))}, max_steps=4)
    for _ in range(3):
        do(env, "noop")
        assert held(env) == {}
        do(env, "noop")
        assert held(env) == {"ore": 1}
        finish(env)


def test_events_come_before_the_actions() -> None:
    """The wall of crates opens in the tick in which the agent steps through."""
    env = clock({"open": Event(at=(2,), targets="type:kind C", then=(Remove(),))}, "@C", {"C": ObjectType()})
    assert do(env, "move_east") == [False]
    assert do(env, "move_east") == [True]


# ---- order


def double_and_add(**fields: Any) -> tuple[Event, Event]:
    """Two events whose order shows: one gives a unit, the other takes one unit if there is none."""
    give = Event(targets="type:agent", then=(ORE,), **fields)
    swap = Event(
        targets="type:agent",
        when=(Holds(who="target", amounts={"ore": 1}),),
        then=(Take(who="target", amounts={"ore": 1}), Give(who="target", amounts={"wood": 1})),
        **fields,
    )
    return give, swap


def test_declaration_decides_within_a_tick() -> None:
    give, swap = double_and_add(at=(3,))
    for events, left in (({"a": give, "b": swap}, {"wood": 1}), ({"b": swap, "a": give}, {"ore": 1})):
        env = clock(events)
        for _ in range(3):
            do(env, "noop")
        assert held(env) == left


@pytest.mark.parametrize(("priority", "left"), [(0, {"wood": 1}), (1, {"ore": 1}), (-1, {"wood": 1})])
def test_a_higher_priority_comes_first(priority: int, left: dict[str, int]) -> None:
    give, swap = double_and_add(at=(3,))
    env = clock({"give": give, "swap": swap.replace("priority", priority)})
    for _ in range(3):
        do(env, "noop")
    assert held(env) == left


def test_the_tick_comes_before_the_priority() -> None:
    """Both are due at tick 1; the one listed for 0 comes first, whatever the priorities."""
    give, swap = double_and_add()
    env = clock({"swap": swap.replace("at", [1]).replace("priority", 5), "give": give.replace("at", [0])})
    do(env, "noop")
    assert held(env) == {"wood": 1}


# ---- targets


def test_all_targets_without_a_limit() -> None:
    env = clock({"e": Event(at=(1,), targets="box", then=(ORE,))}, "@AAB",
                {"A": ObjectType(tags=("box",)), "B": ObjectType(inventory={"wood": 1})})  # fmt: skip
    do(env, "noop")
    got = [o["inventory"].get("ore", 0) for o in env.inspect(0)["objects"] if o["agent"] is None]
    assert sorted(got) == [0, 1, 1]


def test_without_targets_it_happens_once_to_nobody() -> None:
    env = clock({"e": Event(every=5, start=5, then=(AddStat(of="game", name="bells"),))}, max_steps=20)
    assert finish(env)["game/bells"] == [4]


def test_conditions_choose_among_the_targets() -> None:
    event = Event(at=(1,), targets="type:agent", when=(Holds(who="target", amounts={"wood": 1}),), then=(ORE,))
    for start, gets in (({"wood": 1}, 1), ({}, 0)):
        env = clock({"e": event}, agent=AgentType(inventory=start))
        do(env, "noop")
        assert held(env).get("ore", 0) == gets


def test_at_most_so_many_that_pass() -> None:
    """Of twenty boxes ten pass; three of those are drawn, never another, in every world others."""
    kinds = {"A": ObjectType(tags=("box",), collective="red"), "B": ObjectType(tags=("box",), inventory={"wood": 1})}
    event = Event(at=(1,), targets="box", when=(Aligned(to="red"),), then=(ORE,), max_targets=3)
    env = clock({"e": event}, "@" + "AB" * 10, kinds, num_worlds=400)
    env.step(np.zeros(env.num_rows, np.int32))
    counts = np.zeros(10, int)
    for world in range(env.num_worlds):
        boxes = sorted((o for o in env.inspect(world)["objects"] if o["agent"] is None), key=lambda o: o["column"])
        ore = [o["inventory"].get("ore", 0) for o in boxes]
        assert sum(ore) == 3
        assert max(ore) == 1
        assert not any(ore[1::2])
        counts += np.array(ore[::2])
    assert counts.sum() == 1200
    assert abs(counts - 120).max() < 46  # five standard deviations: no place is preferred


def test_more_allowed_than_there_are() -> None:
    env = clock({"e": Event(at=(1,), targets="type:kind A", then=(ORE,), max_targets=9)}, "@A",
                {"A": ObjectType(inventory={"wood": 1})})  # fmt: skip
    do(env, "noop")
    assert stored(env, "A") == {"wood": 1, "ore": 1}


def test_a_target_that_cannot_take_it_does_not_count() -> None:
    """The full one is passed over, and the draw goes to the other."""
    kinds = {
        "A": ObjectType(tags=("box",), inventory={"ore": 65_535}),
        "B": ObjectType(tags=("box",), inventory={"wood": 1}),
    }
    env = clock({"e": Event(at=(1,), targets="box", then=(ORE,), max_targets=1)}, "@AB", kinds, num_worlds=20)
    env.step(np.zeros(env.num_rows, np.int32))
    for world in range(env.num_worlds):
        got = {o["type"]: o["inventory"].get("ore", 0) for o in env.inspect(world)["objects"] if o["agent"] is None}
        assert got == {"kind A": 65_535, "kind B": 1}


# ---- instead


def coming(first: tuple[int, ...]) -> dict[str, Event]:
    """A box turns red at `first`; every ten ticks it is looked whether one is red, and if not, one turns red."""
    return {
        "come": Event(
            at=first, targets="box", when=(Not(conditions=(Aligned(),)),), then=(Align(to="red"),), max_targets=1
        ),
        "look": Event(every=10, start=10, targets="box", when=(Aligned(to="red"),), fallback="come"),
    }


def red_after(events: dict[str, Event], ticks: int) -> int:
    env = clock(events, "@AA", {"A": ObjectType(tags=("box",))})
    for _ in range(ticks):
        do(env, "noop")
    return sum(o["collective"] == "red" for o in env.inspect(0)["objects"])


@pytest.mark.parametrize(
    ("first", "ticks", "red"), [((50,), 9, 0), ((50,), 10, 1), ((10,), 10, 1), ((10,), 30, 1), ((3,), 20, 1)]
)
def test_the_fallback_runs_only_if_there_was_no_target(first: tuple[int, ...], ticks: int, red: int) -> None:
    assert red_after(coming(first), ticks) == red


def test_declared_the_other_way_round_both_happen() -> None:
    """At tick 10 nothing is red when the look comes first: the fallback, and then the event itself."""
    events = coming((10,))
    assert red_after({"look": events["look"], "come": events["come"]}, 10) == 2


def test_a_fallback_of_a_fallback() -> None:
    events = {
        "one": Event(at=(1,), targets="nothing has it", then=(ORE,), fallback="two"),
        "two": Event(targets="nothing has it", then=(ORE,), fallback="three"),
        "three": Event(targets="type:agent", then=(ORE,)),
    }
    env = clock(events, "@", {"A": ObjectType(tags=("nothing has it",))})  # declared, and not on the map
    do(env, "noop")
    assert held(env) == {"ore": 1}
