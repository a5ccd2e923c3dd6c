"""Rules of every tick that only change an agent's own amounts take a short way, without a rule context or a trial.

The same rules with a condition that always holds take the long one. Both must leave the same amounts, rewards, rows,
records and states, whatever the limits are.
"""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from random_games import Digest, quiet_make, random_actions
from twins import check_shadow

from gridmill import Game
from gridmill.grid import (
    Add,
    AgentType,
    Ascii,
    Collective,
    Constant,
    Count,
    Give,
    Holds,
    Inventory,
    Limit,
    Max,
    ObjectType,
    Observation,
    RewardTerm,
    Rule,
    Stat,
    Sum,
    Take,
    Transfer,
)

SEEDS = st.integers(0, 2**32 - 1)
NAMES = ("ore", "gem", "wood", "heart")
FEW = (0, 1, 2, 5, 255, 256, 300, 65_535)
ALWAYS = Holds(amounts={})
TICKS = 20


class Maker:
    """Throws the dice of one game whose agents have rules of every tick, and things to fetch and to bring."""

    def __init__(self, seed: int) -> None:
        self.dice = random.Random(seed)

    def one(self, *choices: Any) -> Any:
        return self.dice.choice(choices)

    def who(self) -> Any:
        return self.one("actor", "actor", "actor", "target", "actor_collective")

    def amounts(self, least: int, most: int) -> dict[str, int]:
        return {name: self.one(*FEW) for name in self.dice.sample(NAMES, self.dice.randint(least, most))}

    def value(self) -> Any:
        resource = self.one(*NAMES)
        return self.one(
            Inventory(resource=resource),
            Inventory(resource=resource, of=self.one("actor", "target", "collective")),
            Constant(value=self.one(-70_000.0, -2.5, -0.5, 0.49, 0.5, 1.5, 300.0)),
            Sum(values=(Constant(value=-1.0), Inventory(resource=resource))),
            Max(values=(Inventory(resource=resource), Stat(name="cell.visited"))),
            Count(tag="type:agent", resource=resource),
        )

    def effect(self) -> Any:
        return self.one(
            Give(who=self.who(), amounts=self.amounts(1, 1)),
            Give(who=self.who(), amounts=self.amounts(0, 3)),
            Take(who=self.who(), amounts=self.amounts(0, 3)),
            Take(who=self.who(), amounts=self.amounts(1, 1)),
            Add(who=self.who(), resource=self.one(*NAMES), value=self.value()),
        )

    def rules(self) -> tuple[Rule, ...]:
        sizes = [self.one(1, 1, 1, 2, 3) for _ in range(self.dice.randint(1, 4))]
        return tuple(Rule(then=tuple(self.effect() for _ in range(n))) for n in sizes)

    def limits(self) -> tuple[Limit, ...]:
        """Some together, some carried by others; starting amounts may be above all of them."""
        names = self.dice.sample(NAMES, 4)
        bonus = self.one({}, {names[2]: self.one(1, 2, 300), names[3]: 1})
        together = Limit(resources=tuple(names[: self.one(1, 2)]), base=self.one(*FEW), max=self.one(*FEW), bonus=bonus)
        return self.one((), (together,), (together, Limit(resources=(names[2],), base=self.one(*FEW))))

    def game(self) -> Game:
        fetch = Rule(then=(Transfer(source="target", to="actor", amounts=self.amounts(1, 2)),))
        bring = Rule(then=(Transfer(source="actor", to="target", amounts=self.amounts(1, 2)),))
        terms = [RewardTerm(value=Inventory(resource=name), weight=self.one(-1.0, 0.3), mode=mode)
                 for name, mode in zip(NAMES, ("change", "gained", "per_tick"), strict=False)]  # fmt: skip
        return Game(
            name="alone", num_agents=3, max_steps=self.one(7, 100), resources=NAMES,
            collectives={"blue": Collective(inventory={"ore": 300})},
            agent=AgentType(
                inventory={name: self.one(*FEW) for name in NAMES}, limits=self.limits(),
                collectives=self.one((), ("blue",)), on_tick=self.rules(),
            ),
            objects={"wall": ObjectType(), "chest": ObjectType(inventory=dict.fromkeys(NAMES, 500), on_use=(
                self.one(fetch, bring),))},
            map=Ascii(text="@C@\n.@C", legend={"C": "chest"}),
            observation=Observation(height=5, width=5), rewards=terms[: self.dice.randint(0, 3)],
        )  # fmt: skip


def the_long_way(game: Game) -> Game:
    """The same game whose agents' rules have a condition that always holds."""
    rules = tuple(Rule(when=(ALWAYS, *rule.when), then=rule.then) for rule in game.agent.on_tick)
    return game.replace("agent", game.agent.tree() | {"on_tick": [rule.tree() for rule in rules]})


def compare(game: Game, seed: int, ticks: int = TICKS) -> None:
    digests = Digest(), Digest()
    with (
        quiet_make(game, num_worlds=2, seed=seed, masks=True, validation=True) as short,
        quiet_make(the_long_way(game), num_worlds=2, seed=seed, masks=True, validation=True) as long,
    ):
        assert short.features == long.features
        actions = random_actions(short, seed)
        short.reset(), long.reset()
        for tick in range(ticks):
            chosen = actions()
            for env, digest in zip((short, long), digests, strict=True):
                env.step(chosen)
                digest.add_arrays(env)
                digest.add_episodes(env)
                check_shadow(env)
            assert short.inspect(0) == long.inspect(0), tick
            assert digests[0].hex() == digests[1].hex(), tick
            np.testing.assert_array_equal(short.state_hash(), long.state_hash(), f"tick {tick}")


@settings(max_examples=25)
@given(SEEDS)
def test_the_short_way_and_the_long_way_are_the_same(seed: int) -> None:
    compare(Maker(seed).game(), seed)


@pytest.mark.long
@settings(max_examples=5_000)
@given(SEEDS)
def test_the_short_way_and_the_long_way_are_the_same_in_five_thousand_games(seed: int) -> None:
    compare(Maker(seed).game(), seed)


@pytest.mark.parametrize(
    ("rules", "start", "after"),
    [
        ([Give(amounts={"ore": 3})], 4, [7, 10, 10]),
        ([Give(amounts={"ore": 3})], 10, [10, 10, 10]),
        ([Give(amounts={"ore": 3})], 20, [20, 20, 20]),  # above its limit there is no room, so nothing changes
        ([Take(amounts={"ore": 3})], 20, [10, 7, 4]),  # what changes falls to its limit
        ([Take(amounts={"ore": 3})], 5, [2, 0, 0]),
        ([Add(resource="ore", value=Inventory(resource="ore"))], 3, [6, 10, 10]),
        ([Add(resource="ore", value=Constant(value=1.0))], 20, [10, 10, 10]),
        ([Add(resource="ore", value=Constant(value=-0.5))], 2, [1, 0, 0]),
        ([Give(amounts={"ore": 0})], 20, [20, 20, 20]),
        ([Take(amounts={"ore": 0})], 20, [20, 20, 20]),
        ([Take(amounts={"ore": 1}), Give(amounts={"ore": 3})], 9, [10, 10, 10]),
    ],
)
def test_amounts_at_and_above_their_limit(rules: list[Any], start: int, after: list[int]) -> None:
    me = AgentType(
        inventory={"ore": start},
        limits=(Limit(resources=("ore",), base=10),),
        on_tick=tuple(Rule(then=(effect,)) for effect in rules),
    )
    game = Game(name="limit", resources=("ore",), agent=me, map=Ascii(text="@"))
    for played in (game, the_long_way(game)):
        with quiet_make(played, num_worlds=1) as env:
            env.reset()
            seen = []
            for _ in after:
                env.step([0])
                seen.append(env.inspect(0)["objects"][0]["inventory"].get("ore", 0))
            assert seen == after


def test_what_is_carried_is_lost_with_its_carrier() -> None:
    """A unit of gem carries two of ore; a rule takes the gems, one a tick."""
    me = AgentType(
        inventory={"ore": 6, "gem": 3},
        limits=(Limit(resources=("ore",), base=0, bonus={"gem": 2}),),
        on_tick=(Rule(then=(Take(amounts={"gem": 1}),)), Rule(then=(Give(amounts={"ore": 1}),))),
    )
    game = Game(name="carried", resources=("ore", "gem"), agent=me, map=Ascii(text="@"))
    for played in (game, the_long_way(game)):
        with quiet_make(played, num_worlds=1) as env:
            env.reset()
            for expected in ({"ore": 4, "gem": 2}, {"ore": 2, "gem": 1}, {}, {}):
                env.step([0])
                assert env.inspect(0)["objects"][0]["inventory"] == expected
