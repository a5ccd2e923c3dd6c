"""Areas: who is reached and how far, that changes are added up before they are applied, coming and going, territory.

Nothing in an outcome may depend on where sources stand on the map or in which order they were declared, except the
order of their rules.
"""

from __future__ import annotations

from itertools import permutations
from typing import Any

import numpy as np
import pytest
from scenes import do, finish, held, places, play

from gridmill import Env
from gridmill.grid import (
    AddStat,
    AgentType,
    Align,
    Area,
    AtLeast,
    Chance,
    Collective,
    Count,
    Event,
    Freeze,
    Give,
    HasVibe,
    Holds,
    Inventory,
    Limit,
    ObjectType,
    Remove,
    Rule,
    Take,
)

STUFF = ("hp", "influence", "gear", "gold")
TEAMS = {"blue": Collective(), "red": Collective()}
LIMITS = (Limit(resources=("hp",), base=100), Limit(resources=("influence",), base=20))


def field(text: str, kinds: dict[str, ObjectType], **fields: Any) -> Env:
    me = {"inventory": {"hp": 50}, "limits": LIMITS, "collectives": ("blue",)} | fields.pop("me", {})
    fields = {"vibes": ("calm", "angry"), "max_steps": 60} | fields
    return play(text, kinds, resources=STUFF, collectives=TEAMS, agent=AgentType(**me), **fields)


def wait(env: Env, ticks: int = 1) -> None:
    for _ in range(ticks):
        env.step(np.zeros(env.num_rows, np.int32))


def source(collective: str = "", **area: Any) -> ObjectType:
    return ObjectType(collective=collective, areas=(Area(**area),))


HEAL = source(radius=9, changes={"hp": 100, "influence": 10})
HURT = source(radius=9, changes={"hp": -1, "influence": -100})


# ---- adding up


@pytest.mark.parametrize("text", ["H@E", "E@H", "HE@", "@EH", "E.\n.@\n.H", "H.\n@.\n.E"])
def test_changes_are_added_up_and_applied_once(text: str) -> None:
    env = field(text, {"H": HEAL, "E": HURT}, me={"inventory": {"hp": 50, "influence": 7}})
    wait(env)
    assert held(env) == {"hp": 100}


@pytest.mark.parametrize("order", list(permutations("ABCD")), ids="".join)
def test_the_order_on_the_map_does_not_matter(order: tuple[str, ...]) -> None:
    """Two that heal and two that hurt, around an agent in every order."""
    changes = ({"hp": 30, "gold": 1}, {"hp": -45}, {"hp": 10, "influence": 5}, {"influence": -3, "gold": 2})
    kinds = {letter: source(radius=3, changes=change) for letter, change in zip("ABCD", changes, strict=True)}
    env = field("{}{}@{}{}".format(*order), kinds)
    seen = []
    for _ in range(4):
        wait(env)
        seen.append(held(env))
    assert seen == [{"hp": 50 - 5 * n, "influence": 2 * n, "gold": 3 * n} for n in (1, 2, 3, 4)]


def test_the_order_of_declaration_does_not_matter() -> None:
    for kinds in ({"H": HEAL, "E": HURT}, {"E": HURT, "H": HEAL}):
        env = field("H@E", kinds)
        wait(env)
        assert held(env) == {"hp": 100}


def test_several_sources_add_up() -> None:
    env = field("D@D\n.D.", {"D": source(radius=1, changes={"hp": -3})})
    wait(env, 2)
    assert held(env)["hp"] == 50 - 18


def test_two_areas_of_one_object() -> None:
    both = ObjectType(areas=(Area(radius=1, changes={"hp": 2}), Area(radius=3, changes={"hp": 5, "gold": 1})))
    env = field("B.@", {"B": both})
    wait(env)
    assert held(env) == {"hp": 55, "gold": 1}
    do(env, "move_west")
    assert held(env) == {"hp": 62, "gold": 2}


def test_sums_are_clamped_and_limits_checked_again_after_a_fall() -> None:
    """hp carries the gear; in the same tick hp falls to 0, the gear goes, and with it the room for influence."""
    limits = (
        Limit(resources=("hp",), base=100),
        Limit(resources=("influence",), base=0, bonus={"gear": 20}),
        Limit(resources=("gear",), base=0, max=1, bonus={"hp": 1}),
    )
    me = {"inventory": {"hp": 5, "gear": 1, "influence": 20}, "limits": limits}
    env = field("@D", {"D": source(radius=1, changes={"hp": -9})}, me=me)
    wait(env)
    assert held(env) == {}


# ---- how far


@pytest.mark.parametrize("metric", ["chebyshev", "euclid"])
@pytest.mark.parametrize("radius", [0, 1, 2, 3, 5])
def test_every_cell_in_reach_and_no_other(metric: Any, radius: int) -> None:
    side = 13
    rows = [["1"] * side for _ in range(side)]
    rows[6][6] = "S"
    text = "\n".join("".join(row) for row in rows)
    env = field(text, {"S": source(radius=radius, metric=metric, changes={"gold": 1})})
    wait(env)
    for index, (row, column) in enumerate(places(env)):
        south, east = abs(row - 6), abs(column - 6)
        inside = max(south, east) <= radius if metric == "chebyshev" else south**2 + east**2 <= radius**2
        assert held(env, index).get("gold", 0) == inside, (row, column)


def test_an_area_reaches_over_the_edge_of_the_map() -> None:
    env = field("S@", {"S": source(radius=4000, changes={"gold": 1})})
    wait(env)
    assert held(env)["gold"] == 1


# ---- whom


@pytest.mark.parametrize(
    ("affects", "team", "reached"),
    [
        ("all", "", True), ("all", "red", True), ("all", "blue", True), ("friend", "blue", True),
        ("friend", "red", False), ("friend", "", False), ("enemy", "red", True), ("enemy", "blue", False),
        ("enemy", "", False), ("self", "blue", False),
    ],
)  # fmt: skip
def test_whom_an_object_reaches(affects: Any, team: str, reached: bool) -> None:
    env = field("@S", {"S": source(team, radius=1, affects=affects, changes={"gold": 1})})
    wait(env)
    assert held(env).get("gold", 0) == reached


def test_an_agent_without_a_team_has_neither_friends_nor_enemies() -> None:
    for affects in ("friend", "enemy"):
        env = field("@S", {"S": source("blue", radius=1, affects=affects, changes={"gold": 1})}, me={"collectives": ()})
        wait(env)
        assert "gold" not in held(env)


def test_alignment_counts_as_it_is_now() -> None:
    junction = ObjectType(
        on_use=(Rule(then=(Align(),)),), areas=(Area(radius=2, affects="friend", changes={"gold": 1}),)
    )
    env = field("@J", {"J": junction})
    wait(env)
    assert "gold" not in held(env)
    do(env, "move_east")
    assert held(env)["gold"] == 1  # taken in this tick, works in this tick


@pytest.mark.parametrize(
    ("affects", "expected"), [("all", [0, 1, 1]), ("self", [1, 0, 0]), ("friend", [0, 1, 0]), ("enemy", [0, 0, 1])]
)
def test_areas_of_agents_go_with_them(affects: Any, expected: list[int]) -> None:
    """Groups 0 and 2 are blue, group 1 is red; only who is angry has an area that works."""
    angry = HasVibe(who="actor", vibe="angry")
    area = Area(radius=2, affects=affects, when=(angry,), changes={"gold": 1})
    env = field("0.....2.1", {}, me={"areas": (area,), "collectives": ("blue", "red")})
    do(env, "change_vibe_angry", "noop", "noop")
    got = np.array([held(env, i).get("gold", 0) for i in range(3)])
    assert got.tolist() == [int(affects == "self"), 0, 0]
    for _ in range(5):  # towards the others
        do(env, "move_east", "noop", "noop")
    before = np.array([held(env, i).get("gold", 0) for i in range(3)])
    do(env, "noop", "noop", "noop")
    after = np.array([held(env, i).get("gold", 0) for i in range(3)])
    at = {place[1]: i for i, place in enumerate(places(env))}
    assert at == {5: 0, 6: 1, 8: 2}
    reached = [int(affects in ("all", "friend")), 0]
    assert (after - before).tolist() == [expected[0], reached[0], 0]  # column 8 is three away
    do(env, "noop", "noop", "move_west")
    assert held(env, 2).get("gold", 0) - after[2] == expected[2]


def test_conditions_see_the_source_as_actor_and_the_agent_as_target() -> None:
    area = Area(
        radius=1,
        changes={"gold": 1},
        when=(HasVibe(who="actor", vibe="angry"), Holds(who="target", amounts={"hp": 40})),
    )
    for vibe, hp, reached in (("angry", 50, True), ("calm", 50, False), ("angry", 30, False)):
        env = field("@S", {"S": ObjectType(vibe=vibe, areas=(area,))}, me={"inventory": {"hp": hp}})
        wait(env)
        assert held(env).get("gold", 0) == reached


def test_conditions_are_judged_on_the_state_before_the_phase() -> None:
    """What one area gives does not open another in the same tick."""
    opens = Area(radius=1, changes={"gold": 1}, when=(Holds(who="target", amounts={"gold": 1}),))
    kinds = {"A": ObjectType(areas=(opens,)), "B": source(radius=1, changes={"gold": 5})}
    for text in ("A@B", "B@A"):
        env = field(text, kinds)
        wait(env)
        assert held(env)["gold"] == 5
        wait(env)
        assert held(env)["gold"] == 11


# ---- coming and going


def test_enter_and_exit() -> None:
    area = {"radius": 1, "enter": {"gold": 10}, "exit": {"gold": -3}, "changes": {"hp": 1}}
    env = field("@..S...", {"S": source(**area)})
    seen = []
    for action in ("move_east", "move_east", "noop", "move_west", "noop", "move_east"):
        do(env, action)
        seen.append((held(env).get("gold", 0), held(env)["hp"]))
    assert seen == [(0, 50), (10, 51), (10, 52), (7, 52), (7, 52), (17, 53)]


def test_who_starts_inside_enters_in_the_first_tick() -> None:
    env = field("@S", {"S": source(radius=1, enter={"gold": 10})})
    assert "gold" not in held(env)
    wait(env, 3)
    assert held(env)["gold"] == 10


def test_losing_ones_team_is_leaving() -> None:
    junction = ObjectType(
        collective="blue",
        on_use=(Rule(then=(Align(to="red"),)),),
        areas=(Area(radius=2, affects="friend", enter={"gold": 4}, exit={"gold": -1}),),
    )
    env = field("@J", {"J": junction})
    wait(env, 2)
    assert held(env)["gold"] == 4
    do(env, "move_east")
    assert held(env)["gold"] == 3


def test_a_source_that_is_removed_is_left() -> None:
    gone = ObjectType(on_use=(Rule(then=(Remove(),)),), areas=(Area(radius=2, enter={"gold": 4}, exit={"gold": -1}),))
    env = field("@S", {"S": gone})
    wait(env)
    do(env, "move_east")
    assert held(env)["gold"] == 3


def test_rules_of_areas() -> None:
    """Every tick inside, once on entering, once on leaving; after all changes."""
    area = Area(
        radius=1,
        changes={"hp": -20},
        rules=(Rule(when=(Holds(who="target", amounts={"hp": 20}),), then=(Give(who="target", amounts={"gold": 1}),)),),
        on_enter=(Rule(then=(AddStat(of="target", name="came"),)),),
        on_exit=(Rule(then=(AddStat(of="target", name="went"), Take(who="target", amounts={"gold": 1}))),),
    )
    env = field("@.S", {"S": ObjectType(areas=(area,))}, max_steps=10)
    seen = []
    for action in ("move_east", "noop", "noop", "move_west", "move_east"):
        do(env, action)
        seen.append((held(env).get("hp", 0), held(env).get("gold", 0)))
    assert seen == [(30, 1), (10, 1), (0, 1), (0, 0), (0, 0)]
    counted = finish(env)
    assert (counted["came"], counted["went"]) == ([2], [1])


def test_an_area_that_freezes() -> None:
    trap = Area(radius=1, on_enter=(Rule(then=(Freeze(ticks=3),)),))
    env = field("@.S.", {"S": ObjectType(areas=(trap,))})
    assert do(env, "move_east") == [True]
    still = [do(env, "move_west")[0] for _ in range(4)]
    assert still.count(False) in (2, 3)
    assert still == sorted(still)


def test_rules_run_in_order_of_declaration_of_the_area() -> None:
    """The first area's rule takes the gold the second area's rule would need, wherever the two stand."""
    first = Area(radius=2, rules=(Rule(when=(Holds(who="target", amounts={"gold": 1}),), then=(
        Take(who="target", amounts={"gold": 1}), AddStat(of="target", name="first"))),))  # fmt: skip
    second = Area(radius=2, rules=(Rule(when=(Holds(who="target", amounts={"gold": 1}),), then=(
        Take(who="target", amounts={"gold": 1}), AddStat(of="target", name="second"))),))  # fmt: skip
    for text in ("A@B", "B@A"):
        env = field(text, {"A": ObjectType(areas=(first,)), "B": ObjectType(areas=(second,))},
                    me={"inventory": {"gold": 1}}, max_steps=3)  # fmt: skip
        counted = finish(env)
        assert counted["first"] == [1]
        assert "second" not in counted


# ---- territory


def fort(team: str, radius: int) -> ObjectType:
    """Gives its own side gold where the ground is its own, and costs the other side hp there."""
    return ObjectType(
        collective=team,
        areas=(
            Area(radius=radius, affects="friend", territory=True, changes={"gold": 1}),
            Area(radius=radius, affects="enemy", territory=True, changes={"hp": -1}),
        ),
    )


@pytest.mark.parametrize(
    ("text", "gold", "hp"),
    [
        ("B@....R", 1, 50), ("B....@R", 0, 49), ("B..@..R", 0, 50), ("B.@...R", 1, 50), ("B......@", 0, 50),
        ("B@", 1, 50), ("R@", 0, 49),
    ],
)  # fmt: skip
def test_the_nearest_holds_the_ground_and_a_tie_is_nobodys(text: str, gold: int, hp: int) -> None:
    env = field(text, {"B": fort("blue", 6), "R": fort("red", 6)})
    wait(env)
    assert (held(env).get("gold", 0), held(env)["hp"]) == (gold, hp)


def test_all_sources_of_the_side_that_holds_the_ground_act() -> None:
    env = field("BB@...R", {"B": fort("blue", 6), "R": fort("red", 6)})
    wait(env)
    assert (held(env)["gold"], held(env)["hp"]) == (2, 50)


@pytest.mark.parametrize(("text", "gold", "hp"), [("B@RR", 0, 48), ("BB@R", 2, 50), ("B@R", 0, 50), ("B@.RR", 0, 50)])
def test_the_strongest_holds_the_ground(text: str, gold: int, hp: int) -> None:
    """Strength is how much of its radius a source has left where the agent stands, summed over a side."""
    env = field(text, {"B": fort("blue", 4), "R": fort("red", 4)}, territory="strongest")
    wait(env)
    assert (held(env).get("gold", 0), held(env)["hp"]) == (gold, hp)


def test_a_plain_area_does_not_ask_who_holds_the_ground() -> None:
    plain = source("red", radius=6, affects="enemy", changes={"hp": -1})
    env = field("B@....P", {"B": fort("blue", 6), "P": plain})
    wait(env)
    assert (held(env)["gold"], held(env)["hp"]) == (1, 49)


# ---- with the clock


def test_areas_come_after_events_and_rules_of_the_tick() -> None:
    """Tick: -1 hp by a rule of the agent, then +100 by the area, clamped at 100."""
    wear = Rule(then=(Take(amounts={"hp": 1}),))
    env = field("@H", {"H": HEAL}, me={"on_tick": (wear,)}, events={
        "gift": Event(at=(2,), targets="type:agent", then=(Give(who="target", amounts={"gold": 1}),)),
    })  # fmt: skip
    wait(env)
    assert held(env) == {"hp": 100, "influence": 10}
    wait(env)
    assert held(env) == {"hp": 100, "influence": 20, "gold": 1}


def test_chance_and_values_in_areas() -> None:
    crowd = AtLeast(value=Count(tag="type:agent"), number=2)
    area = Area(radius=9, changes={"gold": 1}, when=(crowd, Chance(probability=1.0)))
    env = field("@S", {"S": ObjectType(areas=(area,))})
    wait(env)
    assert "gold" not in held(env)
    env = field("@S@", {"S": ObjectType(areas=(area,))})
    wait(env)
    assert (held(env, 0)["gold"], held(env, 1)["gold"]) == (1, 1)
    rich = AtLeast(value=Inventory(resource="hp", of="target"), number=50)
    env = field("@S", {"S": ObjectType(areas=(Area(radius=1, changes={"hp": -1}, when=(rich,)),))})
    wait(env, 5)
    assert held(env)["hp"] == 49
