"""How much an agent can hold: limits per resource and per group, what raises them, and what is lost when that goes.

Inventories are changed the only way a game can: an agent stands among machines, some full, some hungry.
"""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scenes import STEPS, do, finish, held, play

from gridmill import Env
from gridmill.grid import AgentType, Converter, Limit

RESOURCES = ("ore", "wood", "bag", "cart")
# Where the machine of each resource stands: a full one to the north, a hungry one to the south.
FULL = dict(zip(RESOURCES, ("northwest", "north", "northeast", "west"), strict=True))
HUNGRY = dict(zip(RESOURCES, ("southwest", "south", "southeast", "east"), strict=True))


def among(
    limits: list[Limit],
    start: dict[str, int] | None = None,
    waiting: dict[str, int] | None = None,
    room: dict[str, int] | None = None,
    **fields: Any,
) -> Env:
    """An agent with a source and a sink of every resource: `waiting` units there, `room` for as many here."""
    waiting, room = waiting or {}, room or {}
    kinds: dict[str, Converter] = {}
    cells = [["."] * 3 for _ in range(3)]
    cells[1][1] = "@"
    for i, name in enumerate(RESOURCES):
        never = {"max_conversions": 0, "cooldown": 1}
        kinds["ABCD"[i]] = Converter(outputs={name: 1}, initial_resource_count=waiting.get(name, 1_000), **never)
        kinds["abcd"[i]] = Converter(inputs={name: 1}, outputs={"made": 1}, max_input=room.get(name, 60_000), **never)
        for letter, direction in (("ABCD"[i], FULL[name]), ("abcd"[i], HUNGRY[name])):
            cells[1 + STEPS[direction][0]][1 + STEPS[direction][1]] = letter
    text = "\n".join("".join(row) for row in cells)
    agent = AgentType(inventory=start or {}, limits=limits)
    return play(text, kinds, resources=(*RESOURCES, "made"), agent=agent, **fields)


def take(env: Env, name: str) -> bool:
    return do(env, f"move_{FULL[name]}")[0]


def give(env: Env, name: str) -> bool:
    return do(env, f"move_{HUNGRY[name]}")[0]


def test_without_limits_only_65535() -> None:
    env = among([], start={"ore": 65_000}, waiting={"ore": 65_535})
    assert take(env, "ore")
    assert held(env) == {"ore": 65_535}
    assert not take(env, "ore")
    assert held(env) == {"ore": 65_535}


@pytest.mark.parametrize(("base", "most", "limit"), [(10, 65_535, 10), (10, 4, 4), (0, 9, 0), (65_535, 20, 20)])
def test_a_limit_per_resource(base: int, most: int, limit: int) -> None:
    env = among([Limit(resources=["ore"], base=base, max=most)])
    assert take(env, "ore") == (limit > 0)
    assert take(env, "wood")
    assert held(env) == {name: n for name, n in {"ore": limit, "wood": 1_000}.items() if n}
    assert not take(env, "ore")


def test_a_group_shares_one_limit() -> None:
    env = among([Limit(resources=["ore", "wood"], base=10)], start={"ore": 4})
    assert take(env, "wood")
    assert held(env) == {"ore": 4, "wood": 6}
    assert not take(env, "ore")
    assert give(env, "wood")
    assert take(env, "ore")
    assert held(env) == {"ore": 10}


@pytest.mark.parametrize(("bags", "limit"), [(0, 10), (1, 10), (2, 14), (3, 21), (9, 30)])
def test_a_bonus_replaces_the_base_up_to_the_maximum(bags: int, limit: int) -> None:
    env = among([Limit(resources=["ore"], base=10, max=30, bonus={"bag": 7})], start={"bag": bags})
    take(env, "ore")
    assert held(env)["ore"] == limit


def test_bonuses_of_several_resources_add_up() -> None:
    env = among([Limit(resources=["ore"], base=3, bonus={"bag": 5, "cart": 20})], start={"bag": 1, "cart": 2})
    take(env, "ore")
    assert held(env)["ore"] == 45


def test_losing_a_bonus_drops_the_last_declared_first() -> None:
    limits = [Limit(resources=["ore", "wood"], base=10, bonus={"bag": 10})]
    env = among(limits, start={"ore": 12, "wood": 8, "bag": 2}, max_steps=5)
    assert give(env, "bag")
    assert held(env) == {"ore": 10}  # all 8 wood first, then 2 ore
    counted = finish(env)
    assert counted["wood.lost"] == [8]
    assert counted["ore.lost"] == [2]
    assert counted["bag.put"] == [2]
    assert "wood.put" not in counted


def test_a_lost_bonus_can_cost_another_bonus() -> None:
    """The cart carries bags, the bags carry ore."""
    limits = [Limit(resources=["bag"], base=1, bonus={"cart": 4}), Limit(resources=["ore"], base=5, bonus={"bag": 10})]
    env = among(limits, start={"cart": 1, "bag": 4, "ore": 40})
    assert give(env, "cart")
    assert held(env) == {"bag": 1, "ore": 10}


def test_start_amounts_above_the_limit_fall_to_it_at_their_next_change() -> None:
    env = among([Limit(resources=["ore"], base=10)], start={"ore": 300}, room={"ore": 1})
    assert not take(env, "ore")
    assert held(env)["ore"] == 300  # nothing was moved
    assert take(env, "wood")
    assert held(env)["ore"] == 300
    assert give(env, "ore")
    assert held(env)["ore"] == 10


# ---- against a slow model


class Model:
    """The rules in plain Python for one agent among its machines."""

    def __init__(self, limits: list[Limit], start: dict[str, int], waiting: dict[str, int], room: dict[str, int]):
        self.limits, self.waiting, self.room = limits, dict(waiting), dict(room)
        self.held = {name: start.get(name, 0) for name in RESOURCES}

    def limit_of(self, limit: Limit) -> int:
        bonus = sum(each * self.held[name] for name, each in limit.bonus.items())
        return min(limit.max, max(limit.base, bonus))

    def most_of(self, name: str) -> int:
        for limit in self.limits:
            if name in limit.resources:
                others = sum(self.held[other] for other in limit.resources if other != name)
                return max(0, self.limit_of(limit) - others)
        return 65_535

    def take(self, name: str) -> bool:
        fits = min(self.waiting[name], max(0, self.most_of(name) - self.held[name]))
        self.waiting[name] -= fits
        self.held[name] += fits
        return fits > 0

    def give(self, name: str) -> bool:
        given = min(self.held[name], self.room[name])
        self.room[name] -= given
        if given:
            self.fall(name, min(self.held[name] - given, self.most_of(name)))
        return given > 0

    def fall(self, name: str, amount: int) -> None:
        self.held[name] = amount
        for limit in self.limits:
            if name in limit.bonus:
                self.drop_excess(limit)

    def drop_excess(self, limit: Limit) -> None:
        for name in sorted(limit.resources, key=RESOURCES.index, reverse=True):
            excess = sum(self.held[other] for other in limit.resources) - self.limit_of(limit)
            dropped = min(self.held[name], excess)
            if dropped > 0:
                self.fall(name, self.held[name] - dropped)


SOME = st.sampled_from([0, 1, 2, 3, 7, 20, 255, 256, 300, 65_535])


@st.composite
def limit_lists(draw: st.DrawFn) -> list[Limit]:
    """Every resource in at most one group; bonuses from resources that come later, so that none feeds itself."""
    groups = draw(st.sampled_from([[], [["ore"]], [["ore", "wood"]], [["ore"], ["wood"]], [["ore", "wood"], ["bag"]]]))
    limits = []
    for group in groups:
        later = [name for name in RESOURCES if RESOURCES.index(name) > max(RESOURCES.index(g) for g in group)]
        bonus = draw(st.dictionaries(st.sampled_from(later), st.sampled_from([1, 4, 9_000, 65_535]), max_size=2))
        limits.append(Limit(resources=group, base=draw(SOME), max=draw(SOME), bonus=bonus))
    return limits


AMOUNTS = st.fixed_dictionaries(dict.fromkeys(RESOURCES, SOME))
ROOM = st.fixed_dictionaries(dict.fromkeys(RESOURCES, st.sampled_from([1, 2, 5, 30, 400, 65_535])))
SEQUENCE = st.lists(st.tuples(st.booleans(), st.sampled_from(RESOURCES)), min_size=4, max_size=20)


@settings(max_examples=120)
@given(limit_lists(), AMOUNTS, AMOUNTS, ROOM, SEQUENCE)
def test_random_sequences_against_a_slow_model(
    limits: list[Limit],
    start: dict[str, int],
    waiting: dict[str, int],
    room: dict[str, int],
    sequence: list[tuple[bool, str]],
) -> None:
    model = Model(limits, start, waiting, room)
    env = among(limits, start, waiting, room, masks=True)
    assert env.masks is not None
    for taking, name in sequence:
        action = env.action_names.index(f"move_{(FULL if taking else HUNGRY)[name]}")
        expected = bool(env.masks[0, action])
        worked = (take if taking else give)(env, name)
        assert worked == (model.take if taking else model.give)(name) == expected
        assert held(env) == {name: n for name, n in model.held.items() if n}
    env.close()
