"""What an agent shows is kept ready and changed in place: an amount that gains or loses a digit, a vibe that comes and
goes, and whatever else changes in the same tick must leave the rows of the reference, and no trace of the way there.

A world that was just restored does not know where in its tokens an agent's digits stand, so it builds them anew; its
state must still be equal to that of a world that did not.
"""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from random_games import quiet_make
from twins import Twins, check_shadow

from gridmill import Env, Game
from gridmill.grid import (
    Add,
    AgentType,
    Align,
    Area,
    Ascii,
    Assembler,
    Attack,
    ChangeVibe,
    ClearTag,
    Collective,
    Constant,
    Converter,
    Event,
    Freeze,
    Give,
    HasVibe,
    Limit,
    ObjectType,
    Observation,
    ObservedValue,
    Periodic,
    Recipe,
    Rule,
    SetTag,
    Stat,
    Take,
    Unalign,
)

SEEDS = st.integers(0, 2**32 - 1)
EDGES = (0, 1, 2, 254, 255, 256, 257, 511, 512, 65_534, 65_535)
STEPS = (0, 1, 2, 254, 255, 256, 257, 65_535)
VIBES = ("calm", "angry", "glad")
TICKS = 16


class Maker:
    """Throws the dice of one game in which nearly everything an agent shows changes all the time."""

    def __init__(self, seed: int) -> None:
        self.dice = random.Random(seed)
        self.names = [f"r{i:02}" for i in range(self.one(1, 3, 3, 70))]  # 63 of them have a bit of their own

    def one(self, *choices: Any) -> Any:
        return self.dice.choice(choices)

    def some(self) -> list[str]:
        """Often the last ones."""
        return self.dice.sample(self.names, min(3, len(self.names))) + self.names[-1:]

    def amounts(self) -> dict[str, int]:
        return {name: self.one(*STEPS) for name in self.some()}

    def effect(self, who: Any) -> Any:
        return self.one(
            Give(who=who, amounts=self.amounts()),
            Give(who=who, amounts={self.one(*self.some()): self.one(*STEPS)}),
            Take(who=who, amounts=self.amounts()),
            Add(who=who, resource=self.one(*self.some()), value=Constant(value=float(self.one(-256, -1, 1, 255, 256)))),
            ChangeVibe(who=who, vibe=self.one(*VIBES)),
            ChangeVibe(who=who, vibe=self.one(*VIBES)),
            SetTag(who=who, tag=self.one("lit", "a first")),
            ClearTag(who=who, tag=self.one("lit", "a first")),
            Freeze(who=who, ticks=self.one(1, 2, 300)),
            Align(who=who, to=self.one("blue", "red")),
            Unalign(who=who),
        )

    def rule(self) -> Rule:
        when = self.one((), (Periodic(every=self.one(2, 3)),), (HasVibe(vibe=self.one(*VIBES)),))
        return Rule(when=when, then=(self.effect("actor"),))

    def game(self) -> Game:
        spread = self.dice.random() < 0.5
        pairs = carried(self.names) if self.dice.random() < 0.3 else ()
        return Game(
            name="slots", num_agents=4, max_steps=self.one(6, 100), resources=self.names, vibes=VIBES,
            attack=Attack(freeze_duration=self.one(1, 3, 300), aim="nearest") if self.dice.random() < 0.5 else None,
            swap=self.one(False, True),
            agent=AgentType(
                inventory={name: self.one(*EDGES) for name in (self.names if spread else self.some())}, limits=pairs,
                collectives=("blue", "red"), vibe=self.one("", *VIBES), tags=("hero",),
                on_tick=tuple(self.rule() for _ in range(self.dice.randint(0, 4))),
                on_use=tuple(Rule(then=(self.effect("target"),)) for _ in range(self.dice.randint(0, 2))),
                areas=(Area(radius=2, changes={self.names[-1]: self.one(-255, -1, 1, 256)}),) if spread else (),
            ),
            collectives={"blue": Collective(), "red": Collective()},
            objects={"wall": ObjectType(), "shrine": ObjectType(
                vibe="glad", on_use=tuple(Rule(then=(self.effect("actor"),)) for _ in range(2)), use="all")},
            events={f"event {i}": Event(every=self.one(1, 2, 3), targets="type:agent", then=(self.effect("target"),),
                                        max_targets=self.one(0, 1)) for i in range(self.dice.randint(0, 3))}
            | {"marks": Event(at=(3,), targets="type:agent", then=(SetTag(tag="lit"),))},
            map=Ascii(text="0.S.\n.@.1\nS.#@", legend={"S": "shrine"}),
            observation=Observation(height=5, width=5, num_tokens=self.one(12, 60, 700), overflow="drop"),
        )  # fmt: skip


def carried(names: list[str]) -> tuple[Limit, ...]:
    """The last resource carries the first."""
    return (Limit(resources=names[:1], base=3, bonus={names[-1]: 2}),) if len(names) > 1 else ()


def play(seed: int) -> None:
    with Twins(Maker(seed).game(), seed) as twins:
        for _ in range(TICKS):
            twins.step()


@settings(max_examples=100)
@given(SEEDS)
def test_what_is_changed_in_place_is_as_if_built_anew(seed: int) -> None:
    play(seed)


@pytest.mark.long
@settings(max_examples=4_000)
@given(SEEDS)
def test_what_is_changed_in_place_is_as_if_built_anew_in_four_thousand_games(seed: int) -> None:
    play(seed)


@pytest.mark.parametrize("restored", [False, True])
@pytest.mark.parametrize("step", [1, 255, 256, 257])
@pytest.mark.parametrize("start", [0, 1, 254, 255, 256, 510, 512, 65_535])
def test_an_amount_that_gains_and_loses_digits(start: int, step: int, restored: bool) -> None:
    """Up for a while, then down for longer, past 0; the token values are those of the amount itself."""
    vibes = ("up", "down")
    ways = [Rule(when=(HasVibe(vibe=v),), then=(e,)) for v, e in zip(vibes, (Give(amounts={"ore": step}), Take(
        amounts={"ore": step})), strict=True)]  # fmt: skip
    game = Game(
        name="digits", resources=("gem", "ore", "wood"), vibes=vibes, map=Ascii(text="@"),
        agent=AgentType(inventory={"gem": 7, "ore": start, "wood": 300}, on_tick=ways),
    )  # fmt: skip
    amount = start
    with quiet_make(game, num_worlds=1, validation=True) as env:
        env.reset()
        down = env.action_names.index("change_vibe_down")
        for tick in range(9):
            if restored:
                env.restore(env.save())
            env.step([down if tick == 3 else 0])
            amount = min(65_535, amount + step) if tick < 3 else max(0, amount - step)
            seen = {t.feature: t.value for t in env.decode(0) if t.feature.startswith("inv:ore")}
            digits = {"inv:ore": amount & 255, "inv:ore:p1": amount >> 8}
            assert seen == {name: digit for name, digit in digits.items() if digit}
            check_shadow(env)


def everything() -> Game:
    """A game that has every built-in feature there is."""
    tools = Assembler(recipes=(Recipe(outputs={"zzz": 1}),), cooldown=3, max_uses=9)
    return Game(
        name="everything", num_agents=2, resources=("aaa", "zzz"), vibes=VIBES, attack=Attack(), swap=True,
        agent=AgentType(
            inventory={"aaa": 300, "zzz": 300}, collectives=("blue",), tags=("zzz",), vibe="glad",
            on_tick=(Rule(when=(Periodic(every=2),), then=(Freeze(ticks=2), SetTag(tag="zzzz"))),),
        ),
        collectives={"blue": Collective()},
        objects={"wall": ObjectType(), "press": ObjectType(assembler=tools),
                 "mine": ObjectType(converter=Converter(outputs={"aaa": 1}))},
        map=Ascii(text="@PM@", legend={"P": "press", "M": "mine"}),
        observation=Observation(
            local_position=True, values=(ObservedValue(name="zz value", value=Stat(name="reward")),)
        ),
    )  # fmt: skip


def own_tokens(env: Env, row: int) -> list[str]:
    """The features an agent shows itself, in the order of its row."""
    return [t.feature for t in env.decode(row) if (t.row, t.column) == (0, 0)]


def test_nothing_that_agents_show_sorts_behind_the_vibe() -> None:
    """Tokens of an object follow the features' names; that the vibe is an agent's last is what is relied on."""
    with quiet_make(everything(), num_worlds=1) as env:
        names = [feature.name for feature in env.features]
        assert names == sorted(names)
        assert {"agent:facing", "agent:frozen", "collective", "converting", "lp:west", "tag", "uses"} < set(names)
        assert names[names.index("vibe") + 1 :] == ["zz value"]  # a value that all see, and no agent shows


def test_the_vibe_is_the_last_token_of_an_agent() -> None:
    with quiet_make(everything(), num_worlds=1, validation=True) as env:
        env.reset()
        vibes = [env.action_names.index(f"change_vibe_{name}") for name in VIBES]
        seen = set()
        for tick in range(12):
            shown = own_tokens(env, 0)
            seen |= set(shown)
            assert shown.count("vibe") <= 1
            assert "vibe" not in shown or shown[-1] == "vibe"
            env.step([vibes[tick % 3], vibes[tick % 2]])
            check_shadow(env)
        assert {"agent:facing", "agent:frozen", "agent:id", "collective", "inv:zzz:p1", "tag", "vibe"} <= seen
