"""Rules: each condition where it holds and where it does not, which rules run, and that a rule pays all or nothing.

The effects are in `test_effects.py`. An agent west of `X` bumps into it; the rule under test gives it a coin.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scenes import agent, bump, do, finish, held, play, stored, thing

from gridmill import Env
from gridmill.grid import (
    Add,
    AddStat,
    AgentType,
    Aligned,
    AnyOf,
    AtLeast,
    Chance,
    ChangeVibe,
    ClearTag,
    Collective,
    Condition,
    Constant,
    Count,
    Empty,
    Give,
    HasTag,
    HasVibe,
    Holds,
    Inventory,
    Limit,
    Max,
    Near,
    Not,
    ObjectType,
    OtherCollective,
    Periodic,
    Ratio,
    Rule,
    SameCollective,
    SetTag,
    Stat,
    Sum,
    Take,
    Transfer,
    Within,
)

STUFF = ("ore", "wood", "coin", "bag")
TEAMS = {"blue": Collective(inventory={"ore": 5}), "red": Collective(inventory={"wood": 2})}
COIN = Give(amounts={"coin": 1})
BLUE = AgentType(collectives=("blue",))


def beside(text: str = "@X", agent: AgentType | None = None, kinds: dict[str, Any] | None = None, **kind: Any) -> Env:
    """A world in which `X` has these fields; every other field of the game is the same in all scenes."""
    return play(
        text,
        {"X": ObjectType(**kind), **(kinds or {})},
        resources=STUFF,
        vibes=("calm", "angry"),
        collectives=TEAMS,
        agent=agent or AgentType(),
        masks=True,
        max_steps=50,
    )


def coin_if(*when: Condition) -> tuple[Rule, ...]:
    return (Rule(when=when, then=(COIN,)),)


def bumps(env: Env, direction: str = "east") -> bool:
    """One bump; one that fails changes nothing of what the agent holds."""
    before = held(env)
    worked = bump(env, direction)
    assert worked or held(env) == before
    return worked


# ---- conditions

ORE = AgentType(inventory={"ore": 3})
# A condition, a scene in which it holds, and one in which it does not (None: it always holds).
CASES: dict[str, tuple[Condition, dict[str, Any], dict[str, Any] | None]] = {
    "holds enough": (
        Holds(amounts={"ore": 3}), {"agent": ORE}, {"agent": AgentType(inventory={"ore": 2, "wood": 9})},
    ),
    "holds all of several": (
        Holds(amounts={"ore": 1, "wood": 1}), {"agent": AgentType(inventory={"ore": 1, "wood": 1})}, {"agent": ORE},
    ),
    "holds nothing in particular": (Holds(amounts={"ore": 0}), {}, None),
    "target holds": (Holds(who="target", amounts={"ore": 3}), {"inventory": {"ore": 4}}, {"inventory": {"ore": 2}}),
    "own team holds": (
        Holds(who="actor_collective", amounts={"ore": 5}),
        {"agent": BLUE}, {"agent": AgentType(collectives=("red",))},
    ),
    "nobody's team holds nothing": (Holds(who="actor_collective", amounts={"ore": 1}), {"agent": BLUE}, {}),
    "target's team holds": (
        Holds(who="target_collective", amounts={"wood": 1}), {"collective": "red"}, {"collective": "blue"},
    ),
    "vibe": (HasVibe(vibe="angry"), {"agent": AgentType(vibe="angry")}, {"agent": AgentType(vibe="calm")}),
    "the first vibe": (HasVibe(vibe="calm"), {}, {"agent": AgentType(vibe="angry")}),
    "target's vibe": (HasVibe(who="target", vibe="angry"), {"vibe": "angry"}, {"agent": AgentType(vibe="angry")}),
    "tag": (HasTag(tag="hot"), {"tags": ("hot",)}, {"tags": ("cold",), "kinds": {"Y": ObjectType(tags=("hot",))}}),
    "actor's tag": (
        HasTag(who="actor", tag="hot"), {"agent": AgentType(tags=("hot",))}, {"tags": ("hot",)},
    ),
    "type as a tag": (HasTag(tag="type:kind X"), {}, None),
    "same team": (SameCollective(), {"agent": BLUE, "collective": "blue"}, {"agent": BLUE, "collective": "red"}),
    "same team needs a team": (SameCollective(), {"agent": BLUE, "collective": "blue"}, {}),
    "other team": (OtherCollective(), {"agent": BLUE, "collective": "red"}, {"agent": BLUE, "collective": "blue"}),
    "other team needs a team": (OtherCollective(), {"agent": BLUE, "collective": "red"}, {"agent": BLUE}),
    "a neutral is in no other team": (OtherCollective(), {"agent": BLUE, "collective": "red"}, {"collective": "red"}),
    "aligned": (Aligned(), {"collective": "red"}, {}),
    "aligned to": (Aligned(to="red"), {"collective": "red"}, {"collective": "blue"}),
    "actor aligned": (Aligned(who="actor", to="blue"), {"agent": BLUE}, {"collective": "blue"}),
    "value": (
        AtLeast(value=Inventory(resource="ore"), number=2.5),
        {"agent": ORE}, {"agent": AgentType(inventory={"ore": 2})},
    ),
    "target's value": (
        AtLeast(value=Inventory(resource="ore", of="target"), number=2), {"inventory": {"ore": 2}}, {"agent": ORE},
    ),
    "own team's value": (AtLeast(value=Inventory(resource="ore", of="collective"), number=5), {"agent": BLUE}, {}),
    "a named team's value": (
        AtLeast(value=Inventory(resource="wood", of="collective", collective="red"), number=2),
        {"agent": BLUE}, None,
    ),
    "a count": (AtLeast(value=Count(tag="type:kind X"), number=3), {"text": "@X.X.X"}, {"text": "@X.X"}),
    "a count of a team": (
        AtLeast(value=Count(tag="type:kind Y", collective="red"), number=1),
        {"text": "@XY", "kinds": {"Y": ObjectType(collective="red")}},
        {"text": "@XY", "kinds": {"Y": ObjectType(collective="blue")}},
    ),
    "what counted things hold": (
        AtLeast(value=Count(tag="type:kind X", resource="ore"), number=7),
        {"text": "@X.X", "inventory": {"ore": 4}}, {"text": "@X.X", "inventory": {"ore": 3}},
    ),
    "a sum of values": (
        AtLeast(value=Sum(values=(Inventory(resource="ore"), Constant(value=-2.0))), number=1), {"agent": ORE}, {},
    ),
    "a ratio and a maximum": (
        AtLeast(value=Ratio(values=(Max(values=(Constant(value=6.0), Constant(value=1.0))), Constant(value=4.0))),
                number=1.5), {}, None,
    ),
    "empty": (Empty(), {}, {"inventory": {"wood": 1}}),
    "empty of some": (Empty(resources=("ore",)), {"inventory": {"wood": 1}}, {"inventory": {"ore": 1}}),
    "actor empty": (Empty(who="actor"), {"inventory": {"ore": 1}}, {"agent": ORE}),
    "team empty": (Empty(who="actor_collective", resources=("wood",)), {"agent": BLUE},
                   {"agent": AgentType(collectives=("red",))}),
    "not": (Not(conditions=(Aligned(),)), {}, {"collective": "red"}),
    "not all": (Not(conditions=(Aligned(), HasVibe(vibe="calm"))),
                {"collective": "red", "agent": AgentType(vibe="angry")}, {"collective": "red"}),
    "any": (AnyOf(conditions=(Aligned(), HasVibe(vibe="angry"))),
            {"agent": AgentType(vibe="angry")}, {}),
    "deep": (Not(conditions=(AnyOf(conditions=(Not(conditions=(Aligned(),)), Holds(amounts={"ore": 1}))),)),
             {"collective": "red"}, {"collective": "red", "agent": ORE}),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_a_condition_holds_and_does_not(case: str) -> None:
    condition, yes, no = CASES[case]
    for fields, expected in ((yes, True), (no, False)):
        if fields is None:
            continue
        text = fields.get("text", "@X")
        legend = fields.get("kinds", {})
        text += "".join(letter for letter in legend if letter not in text)
        env = beside(**(fields | {"text": text}), on_use=coin_if(condition))
        assert bumps(env) == expected, fields
        assert held(env).get("coin", 0) == expected
        env.close()


@pytest.mark.parametrize(
    ("distance", "metric", "direction", "holds"),
    [
        (0, "chebyshev", "east", False), (1, "chebyshev", "east", True), (1, "euclid", "east", True),
        (1, "chebyshev", "southeast", True), (1, "euclid", "southeast", False),
        (2, "euclid", "southeast", True),
    ],
)  # fmt: skip
def test_within(distance: int, metric: Any, direction: str, holds: bool) -> None:
    env = beside("@X\n.X", on_use=coin_if(Within(distance=distance, metric=metric)))
    assert bumps(env, direction) == holds


@pytest.mark.parametrize(
    ("row", "column", "radius", "metric", "holds"),
    [
        (0, 3, 3, "chebyshev", True), (0, 4, 3, "chebyshev", False), (3, 3, 3, "chebyshev", True),
        (3, 3, 4, "euclid", False), (3, 3, 5, "euclid", True), (4, 0, 4, "euclid", True), (4, 1, 4, "euclid", False),
        (4, 3, 5, "euclid", True), (4, 4, 5, "euclid", False),
    ],
)  # fmt: skip
def test_near_looks_around_the_target(row: int, column: int, radius: int, metric: Any, holds: bool) -> None:
    cells = [list(".........") for _ in range(6)]
    cells[0][0], cells[0][1], cells[row][1 + column] = "@", "X", "B"
    text = "\n".join("".join(line) for line in cells)
    near = Near(tag="beacon", radius=radius, metric=metric)
    env = beside(text, kinds={"B": ObjectType(tags=("beacon",))}, on_use=coin_if(near))
    assert bumps(env) == holds


@pytest.mark.parametrize(("team", "holds"), [("red", True), ("blue", False), ("", False)])
def test_near_judges_what_it_finds_as_the_target(team: str, holds: bool) -> None:
    near = Near(tag="type:kind B", radius=5, when=(Aligned(to="red"),))
    env = beside("@X..B", kinds={"B": ObjectType(collective=team)}, on_use=coin_if(near), collective="blue")
    assert bumps(env) == holds


def test_near_counts_the_object_itself() -> None:
    env = beside(on_use=coin_if(Near(tag="type:kind X", radius=0)))
    assert bumps(env)


def test_near_the_actor() -> None:
    near = Near(who="actor", tag="type:kind B", radius=1)
    for text, holds in ((".B\n@X", True), ("@XB", False)):
        env = beside(text, kinds={"B": ObjectType()}, on_use=coin_if(near))
        assert bumps(env) == holds


def test_periodic() -> None:
    env = beside(on_use=coin_if(Periodic(every=3, start=2)))
    worked = [tick for tick in range(1, 13) if do(env, "move_east") == [True]]
    assert worked == [2, 5, 8, 11]


def test_chance_is_possible_in_the_mask_and_falls_as_often_as_it_says() -> None:
    env = beside(on_use=coin_if(Chance(probability=0.3)))
    worlds = play("@X", {"X": ObjectType(on_use=coin_if(Chance(probability=0.3)))}, resources=STUFF, num_worlds=500,
                  masks=True)  # fmt: skip
    east = worlds.action_names.index("move_east")
    counted = []
    for _ in range(8):
        assert worlds.masks is not None
        assert worlds.masks[:, east].all()
        worlds.step(np.full(worlds.num_rows, east, np.int32))
        counted.append(int((worlds.obs[:, 1, 2] == east).sum()))
    assert abs(sum(counted) - 1200) < 150  # five standard deviations
    assert len(set(counted)) > 1
    assert env.masks is not None
    assert env.masks[0, east] == 1


@pytest.mark.parametrize(("probability", "worked"), [(0.0, False), (1.0, True)])
def test_chances_that_are_none(probability: float, worked: bool) -> None:
    env = beside(on_use=coin_if(Chance(probability=probability)))
    assert {do(env, "move_east")[0] for _ in range(20)} == {worked}


# ---- which rules run


def add(name: str, *when: Condition) -> Rule:
    return Rule(name=name, when=when, then=(Give(amounts={name: 1}),))


def test_the_first_that_applies_runs() -> None:
    env = beside(on_use=(add("ore", Holds(amounts={"wood": 2})), add("wood"), add("coin")))
    for _ in range(3):
        assert bumps(env)
    assert held(env) == {"wood": 2, "ore": 1}


def test_with_all_each_that_applies_runs_in_order() -> None:
    rules = (add("ore"), add("wood", Holds(amounts={"ore": 2})), add("coin", Holds(amounts={"wood": 1})))
    env = beside(use="all", on_use=rules)
    assert bumps(env)
    assert held(env) == {"ore": 1}
    assert bumps(env)
    assert held(env) == {"ore": 2, "wood": 1, "coin": 1}


def test_what_has_no_rules_cannot_be_used() -> None:
    assert not bumps(beside(inventory={"ore": 1}))


def test_a_use_costs_what_a_move_costs_and_only_if_it_works() -> None:
    rule = Rule(when=(HasVibe(vibe="angry"),), then=(COIN,))
    env = play("@X", {"X": ObjectType(on_use=(rule,))}, resources=STUFF, vibes=("calm", "angry"), move_cost={"ore": 2},
               agent=AgentType(inventory={"ore": 3}))  # fmt: skip
    assert do(env, "move_east") == [False]
    assert held(env) == {"ore": 3}
    do(env, "change_vibe_angry")
    assert do(env, "move_east") == [True]
    assert held(env) == {"ore": 1, "coin": 1}
    assert do(env, "move_east") == [False]  # two are no longer there
    assert held(env) == {"ore": 1, "coin": 1}


# ---- all or nothing


@pytest.mark.parametrize("first", [True, False], ids=["price first", "price last"])
def test_who_has_no_room_pays_nothing(first: bool) -> None:
    price, ware = Take(amounts={"ore": 2}), Give(amounts={"coin": 5})
    rule = Rule(when=(Holds(amounts={"ore": 2}),), then=(price, ware) if first else (ware, price))
    limits = (Limit(resources=("coin",), base=6),)
    env = beside(agent=AgentType(inventory={"ore": 9}, limits=limits), on_use=(rule,))
    assert bumps(env)
    assert held(env) == {"ore": 7, "coin": 5}
    assert bumps(env)
    assert held(env) == {"ore": 5, "coin": 6}  # one unit of five fits: that is enough
    assert not bumps(env)
    assert held(env) == {"ore": 5, "coin": 6}


def test_of_everything_given_one_unit_must_fit() -> None:
    rule = Rule(then=(Take(amounts={"ore": 1}), Give(amounts={"coin": 1, "wood": 1})))
    limits = (Limit(resources=("wood",), base=2),)
    env = beside(agent=AgentType(inventory={"ore": 9, "wood": 2}, limits=limits), on_use=(rule,))
    assert not bumps(env)
    assert held(env) == {"ore": 9, "wood": 2}


def test_what_an_effect_frees_the_next_can_use() -> None:
    """Gear of which one piece fits: the old one goes, the new one comes."""
    rule = Rule(then=(Take(amounts={"ore": 1}), Give(amounts={"coin": 1})))
    limits = (Limit(resources=("ore", "coin"), base=2),)
    env = beside(agent=AgentType(inventory={"ore": 2}, limits=limits), on_use=(rule,))
    assert bumps(env)
    assert held(env) == {"ore": 1, "coin": 1}


def test_a_transfer_of_nothing_stops_the_rule_and_the_next_is_tried() -> None:
    rules = (
        Rule(then=(Take(amounts={"wood": 1}), Transfer(amounts={"ore": 5}), Give(who="target", amounts={"bag": 1}))),
        Rule(then=(COIN,)),
    )
    env = beside(agent=AgentType(inventory={"wood": 9}), inventory={"ore": 7}, on_use=rules)
    assert bumps(env)
    assert bumps(env)
    assert (held(env), stored(env, "X")) == ({"wood": 7, "ore": 7}, {"bag": 2})
    assert bumps(env)
    assert (held(env), stored(env, "X")) == ({"wood": 7, "ore": 7, "coin": 1}, {"bag": 2})


def test_giving_to_a_team_one_has_not_stops_the_rule() -> None:
    rule = Rule(then=(Take(amounts={"wood": 1}), Give(who="actor_collective", amounts={"ore": 1})))
    env = beside(agent=AgentType(inventory={"wood": 3}), on_use=(rule,))
    assert not bumps(env)
    assert held(env) == {"wood": 3}


# ---- the other places where rules stand


def test_on_tick_of_an_agent_runs_every_rule_that_applies() -> None:
    on_tick = (
        Rule(when=(Periodic(every=2),), then=(Give(amounts={"ore": 1}),)),
        Rule(when=(Holds(amounts={"ore": 2}),), then=(Take(amounts={"ore": 2}), COIN)),
    )
    env = beside(agent=AgentType(on_tick=on_tick))
    seen = []
    for _ in range(6):
        do(env, "noop")
        seen.append((held(env).get("ore", 0), held(env).get("coin", 0)))
    assert seen == [(0, 0), (1, 0), (1, 0), (0, 1), (0, 1), (1, 1)]


def test_on_tick_of_an_object() -> None:
    decay = Rule(when=(Holds(amounts={"ore": 1}),), then=(Take(amounts={"ore": 2}), Give(amounts={"wood": 1})))
    env = beside(inventory={"ore": 5}, on_tick=(decay,))
    seen = []
    for _ in range(4):
        do(env, "noop")
        seen.append(stored(env, "X"))
    assert seen == [{"ore": 3, "wood": 1}, {"ore": 1, "wood": 2}, {"wood": 3}, {"wood": 3}]


def test_on_tick_of_the_game_happens_to_nobody() -> None:
    counted = Rule(when=(Periodic(every=10),), then=(AddStat(of="game", name="tens", amount=2.5),))
    env = play("@", resources=STUFF, on_tick=(counted,), max_steps=40)
    assert finish(env)["game/tens"] == [10.0]


def test_on_tick_comes_after_the_actions() -> None:
    """What was fetched in a tick can be used up in it."""
    eat = Rule(when=(Holds(amounts={"ore": 1}),), then=(Take(amounts={"ore": 1}), COIN))
    env = beside(agent=AgentType(on_tick=(eat,)), on_use=(add("ore"),))
    assert do(env, "move_east") == [True]
    assert held(env) == {"coin": 1}


def test_rules_when_a_tag_comes_and_goes() -> None:
    switch = (
        Rule(when=(HasTag(tag="lit"),), then=(ClearTag(tag="lit"),)),
        Rule(then=(SetTag(tag="lit"),)),
    )
    env = play(
        "@X", {"X": ObjectType(on_use=switch)}, resources=STUFF, vibes=("calm", "angry"), max_steps=20,
        on_tag_added={"lit": (Rule(then=(Give(who="target", amounts={"ore": 1}), ChangeVibe(vibe="angry"))),)},
        on_tag_removed={"lit": (Rule(then=(Give(who="actor", amounts={"wood": 1}), ChangeVibe(vibe="calm"))),)},
    )  # fmt: skip
    seen = []
    for _ in range(3):
        assert do(env, "move_east") == [True]
        seen.append((dict(stored(env, "X")), thing(env, "X")["vibe"], "lit" in thing(env, "X")["tags"]))
    assert seen == [
        ({"ore": 1}, "angry", True), ({"ore": 1, "wood": 1}, "calm", False), ({"ore": 2, "wood": 1}, "angry", True),
    ]  # fmt: skip


def test_statistics_as_conditions() -> None:
    """The third use is the last."""
    often = AtLeast(value=Stat(name="used"), number=3)
    rule = Rule(when=(Not(conditions=(often,)),), then=(COIN, AddStat(name="used")))
    env = beside(on_use=(rule,))
    assert [bumps(env) for _ in range(5)] == [True, True, True, False, False]
    assert finish(env)["used"] == [3]


def test_a_rule_in_which_a_value_is_rounded() -> None:
    half = Ratio(values=(Inventory(resource="ore"), Constant(value=2.0)))
    env = beside(agent=AgentType(inventory={"ore": 5}), on_use=(Rule(then=(Add(resource="coin", value=half),)),))
    assert bumps(env)
    assert held(env)["coin"] == 3  # 2.5, half away from zero
    assert agent(env)["collective"] is None
