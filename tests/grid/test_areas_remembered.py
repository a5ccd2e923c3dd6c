"""What a world remembers of areas between ticks is what it would find anew, whatever moves, comes, goes or joins.

Two ways: a world that was just restored has forgotten which cells areas reach, and must go on to the bit like one that
was not; and what agents gained must be what plain Python adds up from where everything stands after the tick. In the
games here nothing moves after areas were applied, except by the areas' own rules; those games have no second check.
"""

from __future__ import annotations

import math
import random
from collections import Counter
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from random_games import agents_of
from twins import Twins

from gridmill import Game
from gridmill.grid import (
    AgentType,
    Align,
    Area,
    ChangeVibe,
    Collective,
    Effect,
    Event,
    Give,
    HasVibe,
    Move,
    ObjectType,
    Observation,
    Periodic,
    Push,
    Relocate,
    Remove,
    Rule,
    Scatter,
    Spawn,
    SwapPlaces,
    Take,
    Transfer,
    Unalign,
)

SEEDS = st.integers(0, 2**32 - 1)
TYPES = ("beacon", "drone", "totem")
COUNTED = ("gold", "hp")  # what only areas' `changes` touch
START = 30_000  # so much that nothing reaches 0 or its limit
TICKS = 14


class Maker:
    """Throws the dice of one game. Lively areas have rules of their own, which may move what areas surround."""

    def __init__(self, seed: int, lively: bool) -> None:
        self.dice, self.lively = random.Random(seed), lively
        self.plain = self.dice.random() < 0.5 and not lively  # only areas of which the number matters

    def one(self, *choices: Any) -> Any:
        return self.dice.choice(choices)

    def changes(self) -> dict[str, int]:
        return {name: self.one(-3, -1, 1, 2) for name in COUNTED if self.dice.random() < 0.8}

    def area(self) -> Area:
        fields: dict[str, Any] = {
            "radius": self.one(0, 1, 2, 3, 5, 8, 4096),
            "affects": self.one("all", "friend", "enemy", "all", "friend", "enemy", "self"),
            "changes": self.changes(),
        }
        if self.plain:
            return Area(**fields)
        fields |= {"metric": self.one("chebyshev", "euclid"), "territory": self.one(False, False, True)}
        if self.dice.random() < 0.4:
            fields["when"] = (HasVibe(who=self.one("actor", "target"), vibe=self.one("calm", "angry")),)
        if self.dice.random() < 0.3:
            fields |= {"enter": {"silver": self.one(-2, 3)}, "exit": {"silver": self.one(-1, 5)}}
        if self.lively and self.dice.random() < 0.5:
            fields[self.one("rules", "on_enter", "on_exit")] = (Rule(then=(self.effect("actor"),)),)
        return Area(**fields)

    def areas(self) -> tuple[Area, ...]:
        return tuple(self.area() for _ in range(self.one(1, 1, 2)))

    def effect(self, who: Any) -> Effect:
        """Something that moves somebody, makes it come or go, or changes its side."""
        return self.one(
            Relocate(who=who),
            Move(who=who, direction=self.one("north", "south", "west", "east")),
            Align(who=who, to=self.one("blue", "red")),
            Unalign(who=who),
            Remove(who=who),
            Spawn(object=self.one(*TYPES), near=who),
            ChangeVibe(who=who, vibe=self.one("calm", "angry")),
        )

    def use(self) -> Rule:
        """What a bump does."""
        first = self.one(
            Push(distance=self.one(1, 3)),
            SwapPlaces(),
            Align(),
            Transfer(source="target", to="actor", amounts={"ore": 1}, remove_empty=True),
            self.effect("target"),
        )
        return Rule(then=(first,))

    def happenings(self, tags: list[str]) -> dict[str, Event]:
        return {
            f"event {i}": Event(
                at=(self.dice.randint(0, 3),), every=self.one(0, 2, 3, 5), targets=self.one(*tags),
                max_targets=self.one(0, 1, 1), then=(self.effect("target"),),
            )
            for i in range(self.dice.randint(0, 4))
        }  # fmt: skip

    def kind(self) -> ObjectType:
        """With a side and ore of its own or not, and with its own ways of getting about."""
        rules = [Rule(when=(Periodic(every=self.one(1, 2, 3)),), then=(self.effect("actor"),))]
        return ObjectType(
            inventory=self.one({}, {"ore": 1}, {"ore": 2}),
            collective=self.one("", "blue", "red"),
            pushable=self.one(False, True),
            swappable=self.one(False, True),
            on_use=(self.use(),) if self.dice.random() < 0.6 else (),
            on_tick=tuple(rules) if self.dice.random() < 0.3 else (),
            areas=self.areas() if self.dice.random() < 0.9 else (),
        )

    def game(self) -> Game:
        crowd = self.dice.random() < 0.25  # more sources than fit one word of bits
        most, size = (40, (24, 30)) if crowd else (4, (10, 12))
        upkeep = Rule(then=(self.one(Give(amounts={"silver": 1}), Take(amounts={"silver": 1})),))
        return Game(
            name="remembered", num_agents=4, max_steps=self.one(5, 9, 100), resources=("ore", "silver", *COUNTED),
            vibes=("calm", "angry"), swap=True, territory=self.one("nearest", "strongest"),
            spawn_room=self.one(0, 2, 64),
            agent=AgentType(
                inventory=dict.fromkeys(COUNTED, START), collectives=self.one((), *3 * [("blue", "red")]),
                areas=self.areas() if self.dice.random() < 0.4 else (), on_tick=self.one((), (upkeep,)),
                on_use=(self.use(),) if self.dice.random() < 0.3 else (),
            ),
            collectives={"blue": Collective(), "red": Collective()},
            objects={"wall": ObjectType(), **{name: self.kind() for name in TYPES}},
            events=self.happenings([f"type:{name}" for name in (*TYPES, *TYPES, "agent")]),
            map=Scatter(height=size[0], width=size[1], groups=3, objects={
                "wall": 3, **{name: self.dice.randint(1, most) for name in TYPES},
            }),
            observation=Observation(height=5, width=5, overflow="drop"),
        )  # fmt: skip


# ---- what areas add, in plain Python


def squared(area: Area, one: dict[str, Any], other: dict[str, Any]) -> int:
    south, east = abs(one["row"] - other["row"]), abs(one["column"] - other["column"])
    return int(south**2 + east**2 if area.metric == "euclid" else max(south, east) ** 2)


def concerns(area: Area, source: dict[str, Any], agent: dict[str, Any]) -> bool:
    if area.affects == "self" or source is agent:
        return area.affects == "self" and source is agent
    if area.affects == "all":
        return source["collective"] is not None or not area.territory
    sides = source["collective"], agent["collective"]
    return None not in sides and (sides[0] == sides[1]) == (area.affects == "friend")


def owner_of_ground(game: Game, near: list[tuple[Area, dict[str, Any]]], agent: dict[str, Any]) -> str | None:
    claims: dict[str, list[int]] = {}
    for area, source in near:
        if area.territory and source["collective"] is not None:
            claims.setdefault(source["collective"], []).append(
                1024 * area.radius - math.isqrt(1024**2 * squared(area, source, agent))
                if game.territory == "strongest"
                else 2**40 - squared(area, source, agent)
            )
    whole = {side: sum(c) if game.territory == "strongest" else max(c) for side, c in claims.items()}
    best = [side for side, claim in whole.items() if claim == max(whole.values()) > 0]
    return best[0] if len(best) == 1 else None


def gains(game: Game, world: dict[str, Any]) -> list[Counter[str]]:
    """By agent: what areas bring where everything stands as in this world."""
    areas = {name: kind.areas for name, kind in game.objects.items()} | {"agent": game.agent.areas}
    sources = [(area, thing) for thing in world["objects"] for area in areas[thing["type"]]]
    out = []
    for agent in agents_of(world):
        near = [(a, s) for a, s in sources if squared(a, s, agent) <= a.radius**2]
        owner = owner_of_ground(game, near, agent)
        total: Counter[str] = Counter()
        for area, source in near:
            whose = {"actor": source, "target": agent}
            held = all(isinstance(c, HasVibe) and whose[c.who]["vibe"] == c.vibe for c in area.when)
            ground = not area.territory or (owner is not None and source["collective"] == owner)
            if concerns(area, source, agent) and held and ground:
                total.update(area.changes)
        out.append(total)
    return out


def amounts(world: dict[str, Any]) -> list[Counter[str]]:
    return [Counter({name: a["inventory"].get(name, 0) for name in COUNTED}) for a in agents_of(world)]


def play(seed: int, lively: bool) -> int:
    """How many changes of amounts the model was asked about and that were not 0."""
    maker = Maker(seed, lively)
    game, found = maker.game(), 0
    with Twins(game, seed, num_worlds=2, forgets=maker.one(0.3, 1.0)) as twins:
        for _ in range(TICKS):
            before = [amounts(twins.kept.inspect(w)) for w in range(2)]
            twins.step()
            ended = (twins.kept.terminals | twins.kept.truncations).reshape(2, -1).all(axis=1)
            for w in range(2):
                world = twins.kept.inspect(w)
                if ended[w] or lively:
                    continue
                for then, now, gain in zip(before[w], amounts(world), gains(game, world), strict=True):
                    for name in COUNTED:
                        assert now[name] - then[name] == gain[name], (name, twins.tick)
                        found += gain[name] != 0
    return found


@settings(max_examples=60)
@given(SEEDS)
def test_areas_are_as_if_found_anew_and_as_plain_python_adds_them_up(seed: int) -> None:
    play(seed, lively=False)


@settings(max_examples=30)
@given(SEEDS)
def test_areas_whose_own_rules_move_things_are_as_if_found_anew(seed: int) -> None:
    play(seed, lively=True)


def test_the_games_here_have_areas_that_matter() -> None:
    assert sum(play(seed, lively=False) > 50 for seed in range(8)) >= 5


@pytest.mark.long
@settings(max_examples=3_000)
@given(SEEDS, st.booleans())
def test_three_thousand_games_with_areas_that_are_as_if_found_anew(seed: int, lively: bool) -> None:
    play(seed, lively)
