"""Effects: what each does, how much of it, and where it cannot be done.

An agent bumps into `X` to the east of it; the effect under test is all that the rule does. A rule whose effect cannot
be delivered does not apply: the bump fails.
"""

from __future__ import annotations

from typing import Any

import pytest
from scenes import agent, bump, do, finish, held, places, play, stored, thing, tokens_at, where

from gridmill import Env
from gridmill.grid import (
    Add,
    AddStat,
    AgentType,
    Align,
    Attack,
    ChangeVibe,
    Clear,
    ClearTag,
    Collective,
    Constant,
    Effect,
    Freeze,
    Give,
    HasTag,
    Inventory,
    Limit,
    Move,
    ObjectType,
    Push,
    Relocate,
    Remove,
    Rule,
    SetTag,
    Spawn,
    Strike,
    Sum,
    SwapPlaces,
    Take,
    Transfer,
    Unalign,
)

STUFF = ("ore", "wood", "armor")
TEAMS = {
    "blue": Collective(inventory={"ore": 5}, limits=(Limit(resources=("ore", "wood"), base=10),)),
    "red": Collective(),
}


def scene(*effects: Effect, text: str = "@X", me: dict[str, Any] | None = None, **kind: Any) -> Env:
    """A bump into `X` (which has the fields of `kind`) runs the effects; `me` are the fields of the agents."""
    options = {name: kind.pop(name) for name in ("attack", "kinds", "on_tag_added", "num_worlds") if name in kind}
    kinds = options.pop("kinds", {})
    return play(
        text,
        {"X": ObjectType(on_use=(Rule(then=effects),), **kind), **kinds},
        resources=STUFF,
        vibes=("calm", "angry"),
        collectives=TEAMS,
        agent=AgentType(**(me or {})),
        masks=True,
        max_steps=50,
        **options,
    )


def team(env: Env, name: str = "blue") -> dict[str, int]:
    return dict(env.inspect(0)["collectives"][name]["inventory"])


BLUE = {"collectives": ("blue",)}


# ---- goods


def test_give_as_far_as_it_fits() -> None:
    env = scene(Give(amounts={"ore": 4}), me={"limits": (Limit(resources=("ore",), base=6),)})
    assert [bump(env) for _ in range(3)] == [True, True, False]
    assert held(env) == {"ore": 6}


@pytest.mark.parametrize(("who", "mine", "its", "theirs"), [
    ("actor", {"ore": 2}, {}, {"ore": 5}), ("target", {}, {"ore": 2}, {"ore": 5}),
    ("actor_collective", {}, {}, {"ore": 7}), ("target_collective", {}, {}, {"ore": 7}),
])  # fmt: skip
def test_give_to_each(who: Any, mine: dict[str, int], its: dict[str, int], theirs: dict[str, int]) -> None:
    env = scene(Give(who=who, amounts={"ore": 2}), me=BLUE, collective="blue")
    assert bump(env)
    assert (held(env), stored(env, "X"), team(env)) == (mine, its, theirs)


def test_take_what_there_is() -> None:
    env = scene(Take(amounts={"ore": 2, "wood": 1}), me={"inventory": {"ore": 3}})
    assert [bump(env) for _ in range(3)] == [True, True, True]
    assert held(env) == {}


@pytest.mark.parametrize(("who", "left"), [("target", 3), ("target_collective", 5)])
def test_take_from_the_target(who: Any, left: int) -> None:
    env = scene(Take(who=who, amounts={"ore": 2}), collective="blue", inventory={"ore": 5})
    assert bump(env)
    assert stored(env, "X")["ore"] == left
    assert team(env)["ore"] == 8 - left


def test_transfer_moves_what_is_there_and_fits() -> None:
    me = {"limits": (Limit(resources=("ore", "wood"), base=7),), "inventory": {"wood": 1}}
    env = scene(Transfer(amounts={"ore": 4, "wood": 1}), me=me, inventory={"ore": 9})
    assert bump(env)
    assert (held(env), stored(env, "X")) == ({"ore": 4, "wood": 1}, {"ore": 5})
    assert bump(env)
    assert (held(env), stored(env, "X")) == ({"ore": 6, "wood": 1}, {"ore": 3})
    assert not bump(env)
    assert (held(env), stored(env, "X")) == ({"ore": 6, "wood": 1}, {"ore": 3})


def test_transfer_of_nothing_fails() -> None:
    env = scene(Transfer(amounts={"ore": 4}), inventory={"wood": 3})
    assert not bump(env)


@pytest.mark.parametrize(("start", "moved", "worked"), [(3, 3, True), (9, 5, True), (0, 0, False)])
def test_transfer_to_the_team_is_limited_by_its_room(start: int, moved: int, worked: bool) -> None:
    env = scene(Transfer(source="actor", to="actor_collective", amounts={"ore": 100}),
                me=BLUE | {"inventory": {"ore": start}})  # fmt: skip
    assert bump(env) == worked
    assert team(env) == {"ore": 5 + moved}
    assert held(env).get("ore", 0) == start - moved


def test_transfer_without_a_team_fails() -> None:
    env = scene(Transfer(source="actor", to="actor_collective", amounts={"ore": 1}), me={"inventory": {"ore": 1}})
    assert not bump(env)


def test_an_emptied_store_leaves_the_map() -> None:
    env = scene(Transfer(amounts={"ore": 2}, remove_empty=True), inventory={"ore": 3})
    assert bump(env)
    assert stored(env, "X") == {"ore": 1}
    assert bump(env)
    assert [o["type"] for o in env.inspect(0)["objects"]] == ["agent"]
    assert tokens_at(env, 0, 1) == {}
    assert bump(env)  # a step into the empty cell
    assert places(env) == [(0, 1)]


def test_clear_some_or_everything() -> None:
    full = {"ore": 3, "wood": 2, "armor": 1}
    for resources, left in ((("ore", "armor"), {"wood": 2}), ((), {})):
        env = scene(Clear(resources=resources), me={"inventory": full}, inventory=full)
        assert bump(env)
        assert (held(env), stored(env, "X")) == (left, full)
        env = scene(Clear(who="target", resources=resources), me={"inventory": full}, inventory=full)
        assert bump(env)
        assert (held(env), stored(env, "X")) == (full, left)


@pytest.mark.parametrize(
    ("start", "constant", "after"), [(3, 1.4, 7), (3, 1.5, 8), (3, -2.0, 4), (3, -20.0, 0), (9, 9.0, 12)]
)
def test_add_a_value(start: int, constant: float, after: int) -> None:
    """As much again as is held, plus a constant, rounded, between nothing and the limit."""
    value = Sum(values=(Inventory(resource="ore"), Constant(value=constant)))
    me = {"inventory": {"ore": start}, "limits": (Limit(resources=("ore",), base=12),)}
    env = scene(Add(resource="ore", value=value), me=me)
    assert bump(env)
    assert held(env).get("ore", 0) == after


def test_giving_is_counted_as_gained_and_taking_as_lost() -> None:
    env = scene(Give(amounts={"ore": 3}), Take(amounts={"wood": 2}), Add(resource="armor", value=Constant(value=2.0)),
                me={"inventory": {"wood": 9}})  # fmt: skip
    bump(env)
    bump(env)
    counted = finish(env)
    assert (counted["ore.gained"], counted["wood.lost"], counted["armor.gained"]) == ([6], [4], [4])
    assert "wood.gained" not in counted


# ---- marks


def test_set_and_clear_a_tag() -> None:
    env = scene(SetTag(tag="hot"), tags=("box",))
    assert thing(env, "X")["tags"] == ["box", "type:kind X"]
    assert bump(env)
    assert thing(env, "X")["tags"] == ["box", "hot", "type:kind X"]
    env = scene(ClearTag(tag="box"), tags=("box", "hot"))
    assert bump(env)
    assert thing(env, "X")["tags"] == ["hot", "type:kind X"]


def test_a_tag_on_an_agent_is_seen() -> None:
    env = scene(SetTag(who="actor", tag="hot"))
    tags = [t.text for t in env.decode(0) if t.feature == "tag" and (t.row, t.column) == (0, 0)]
    assert bump(env)
    now = [t.text for t in env.decode(0) if t.feature == "tag" and (t.row, t.column) == (0, 0)]
    assert len(now) == len(tags) + 1
    assert agent(env)["tags"] == ["hot", "type:agent"]


def test_tags_are_new_in_every_episode() -> None:
    env = scene(SetTag(tag="hot"))
    bump(env)
    finish(env)
    assert thing(env, "X")["tags"] == ["type:kind X"]


def test_change_vibe() -> None:
    env = scene(ChangeVibe(vibe="angry"))
    assert bump(env)
    assert (thing(env, "X")["vibe"], tokens_at(env, 0, 1)) == ("angry", {"vibe": 1})
    env = scene(ChangeVibe(who="actor", vibe="angry"))
    assert bump(env)
    assert agent(env)["vibe"] == "angry"


# ---- teams


def test_align_to_a_named_team_or_to_ones_own() -> None:
    for effect, before, after in (
        (Align(to="red"), "", "red"), (Align(to="red"), "blue", "red"), (Align(), "", "blue"), (Align(), "red", "blue"),
    ):  # fmt: skip
        env = scene(effect, me=BLUE, collective=before)
        assert thing(env, "X")["collective"] == (before or None)
        assert bump(env)
        assert thing(env, "X")["collective"] == after
        ids = {"blue": 0, "red": 1}
        assert tokens_at(env, 0, 1) == {"collective": ids[after]}


def test_unalign() -> None:
    env = scene(Unalign(), me=BLUE, collective="red")
    assert bump(env)
    assert thing(env, "X")["collective"] is None
    assert tokens_at(env, 0, 1) == {}
    assert tokens_at(env, 0, 0)["collective"] == 0


def test_an_agent_that_changes_sides() -> None:
    env = scene(Align(who="actor", to="red"), me=BLUE)
    assert bump(env)
    assert agent(env)["collective"] == "red"


# ---- places


def test_move_one_cell_if_it_is_empty() -> None:
    env = scene(Move(direction="south"), text="@X.\n...\n###")
    assert bump(env)
    assert where(env, "X") == (1, 1)
    assert not bump(env, "southeast")  # from (0, 0) into it at (1, 1): a wall is below
    assert where(env, "X") == (1, 1)


def test_move_the_actor() -> None:
    env = scene(Move(who="actor", direction="south"), text="@X\n..")
    assert bump(env)
    assert places(env) == [(1, 0)]


@pytest.mark.parametrize(("distance", "text", "column"), [(1, "@X..#", 2), (3, "@X..#", 3), (9, "@X....", 5)])
def test_push_away_as_far_as_it_goes(distance: int, text: str, column: int) -> None:
    env = scene(Push(distance=distance), text=text)
    assert bump(env)
    assert where(env, "X") == (0, column)
    assert places(env) == [(0, 0)]


def test_push_diagonally() -> None:
    env = scene(Push(distance=2), text="@...\n.X..\n....\n....")
    assert bump(env, "southeast")
    assert where(env, "X") == (3, 3)


def test_swap_places() -> None:
    env = scene(SwapPlaces(), text="@X.")
    assert bump(env)
    assert (places(env), where(env, "X")) == ([(0, 1)], (0, 0))


def test_relocate_to_a_random_empty_cell() -> None:
    seen = set()
    env = scene(Relocate(who="actor"), text="@X....\n......")
    for _ in range(30):
        action = "move_east" if places(env) == [(0, 0)] else "noop"
        do(env, action)
        seen.add(places(env)[0])
        finish(env)
    assert len(seen) > 5
    assert (0, 1) not in seen


def test_relocate_to_the_start() -> None:
    env = scene(Relocate(who="actor", to="start"), text="@..X")
    for _ in range(2):
        do(env, "move_east")
    assert places(env) == [(0, 2)]
    assert bump(env)
    assert places(env) == [(0, 0)]


def test_spawn_beside_or_in_the_place_of_what_was_removed() -> None:
    env = scene(Spawn(object="kind Y"), text="@X.\n###", kinds={"Y": ObjectType(inventory={"ore": 2})})
    assert bump(env)
    assert (where(env, "Y"), stored(env, "Y")) == ((0, 2), {"ore": 2})
    env = scene(Remove(), Spawn(object="kind Y"), text="@X.", kinds={"Y": ObjectType(inventory={"ore": 2})})
    assert bump(env)
    assert where(env, "Y") == (0, 1)
    assert [o["type"] for o in env.inspect(0)["objects"] if o["agent"] is None] == ["kind Y"]
    assert tokens_at(env, 0, 1) == {"inv:ore": 2}


def test_no_room_to_spawn_in() -> None:
    env = scene(Spawn(object="kind Y"), text="@X\n##", kinds={"Y": ObjectType(inventory={"ore": 2})})
    assert not bump(env)


def test_what_was_spawned_can_be_used() -> None:
    fresh = ObjectType(on_use=(Rule(then=(Give(amounts={"wood": 1}),)),))
    env = scene(Remove(), Spawn(object="kind Y"), text="@X", kinds={"Y": fresh})
    assert bump(env)
    assert bump(env)
    assert held(env) == {"wood": 1}


def test_remove() -> None:
    env = scene(Remove(), text="@X.")
    assert bump(env)
    assert bump(env)
    assert places(env) == [(0, 1)]
    finish(env)
    assert where(env, "X") == (0, 1)  # back in the next episode


# ---- other agents


def meet(*effects: Effect, **fields: Any) -> Env:
    """Two agents side by side; a bump into the other runs the effects."""
    me = {"on_use": (Rule(then=effects),)} | fields.pop("me", {})
    return play(
        fields.pop("text", "12"), resources=STUFF, vibes=("calm", "angry"), collectives=TEAMS, max_steps=40,
        agent=AgentType(**me), masks=True, **fields,
    )  # fmt: skip


def test_a_bump_into_an_agent() -> None:
    env = meet(Transfer(amounts={"ore": 1}), me={"inventory": {"ore": 2}})
    assert do(env, "move_east", "noop") == [True, True]
    assert (held(env, 0), held(env, 1)) == ({"ore": 3}, {"ore": 1})


@pytest.mark.parametrize("ticks", [1, 2, 4])
def test_freeze(ticks: int) -> None:
    env = meet(Freeze(ticks=ticks), text="12.")
    do(env, "move_east", "noop")
    still = 0
    while not do(env, "noop", "move_east")[1]:
        still += 1
    assert still == ticks - 1  # the tick of the bump is the first


def test_strike_as_with_the_laser() -> None:
    env = meet(Strike(), attack=Attack(cost={"wood": 9}, armor="armor", freeze_duration=3),
               me={"inventory": {"ore": 2, "armor": 1}})  # fmt: skip
    assert do(env, "move_east", "noop") == [True, True]
    assert (held(env, 0), held(env, 1)) == ({"ore": 2, "armor": 1}, {"ore": 2})  # armor took it
    assert do(env, "move_east", "noop") == [True, True]
    assert (held(env, 0), held(env, 1)) == ({"ore": 4, "armor": 1}, {})
    assert do(env, "noop", "move_west") == [True, False]


def test_pushing_an_agent() -> None:
    env = meet(Push(distance=2), text="12..")
    assert do(env, "move_east", "noop") == [True, True]
    assert places(env) == [(0, 0), (0, 3)]


# ---- statistics


def test_add_to_statistics_of_each() -> None:
    effects = [AddStat(of=of, name=f"of {of}", amount=1.5) for of in ("actor", "collective", "game")]
    env = scene(*effects, me=BLUE, text="@X@")
    bump(env)
    bump(env)
    counted = finish(env)
    assert counted["of actor"] == [3.0, 0.0]
    assert counted["blue/of collective"] == [3.0, 3.0]
    assert counted["game/of game"] == [3.0, 3.0]


def test_add_to_the_targets_statistics() -> None:
    env = meet(AddStat(of="target", name="bumped"))
    do(env, "move_east", "noop")
    assert finish(env)["bumped"] == [0, 1]


def test_a_tag_set_in_a_rule_can_be_asked_for_in_the_next() -> None:
    rules = (Rule(then=(SetTag(tag="hot"),)), Rule(when=(HasTag(tag="hot"),), then=(Give(amounts={"ore": 1}),)))
    env = play("@X", {"X": ObjectType(use="all", on_use=rules)}, resources=STUFF)
    do(env, "move_east")
    assert held(env) == {"ore": 1}
