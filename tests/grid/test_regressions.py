"""Small scenes that once went wrong, one test each; the name says what must hold."""

from __future__ import annotations

from typing import Literal

import numpy as np
import pytest
from random_games import quiet_make
from scenes import do, finish, held, places, play, stored, tokens_at

from gridmill import Game
from gridmill.grid import (
    AddStat,
    AgentType,
    Area,
    Ascii,
    AtLeast,
    Canvas,
    Clear,
    Converter,
    Count,
    Event,
    Give,
    Index,
    Limit,
    Mirror,
    Move,
    Objects,
    ObjectType,
    Observation,
    ObservedValue,
    OneOf,
    Part,
    Remove,
    Rule,
    Scatter,
    SetTag,
    Spawn,
    Stat,
    Take,
    Transfer,
)


def test_what_was_removed_is_no_side_of_a_transfer() -> None:
    """Removed a second time it would clear the corner beyond the map, and an agent could walk out."""
    bump = Rule(then=(Remove(), Transfer(amounts={"ore": 1}, remove_empty=True)))
    env = play("@X", {"X": ObjectType(inventory={"ore": 1}, on_use=(bump,))}, resources=("ore",), masks=True)
    assert env.masks is not None
    assert not env.masks[0, env.action_names.index("move_east")]
    assert do(env, "move_east") == [False]
    assert stored(env, "X") == {"ore": 1}
    assert do(env, "move_northwest") == [False]
    assert places(env) == [(0, 0)]


def test_a_later_rule_finds_nobody_where_the_target_was_removed() -> None:
    rules = (Rule(then=(Remove(),)), Rule(then=(Transfer(amounts={"ore": 5}),)))
    env = play("@X", {"X": ObjectType(use="all", inventory={"ore": 9}, on_use=rules)}, resources=("ore",))
    assert do(env, "move_east") == [True]
    assert held(env) == {}


def test_an_object_in_a_freed_place_is_not_taken_for_the_old_one() -> None:
    """An area removes its object; the next object in that place has fewer areas than the one that must be left."""
    last = Area(radius=3, exit={"ore": 7}, rules=(Rule(then=(Remove(who="actor"),)),))
    old = ObjectType(areas=(Area(radius=3), Area(radius=3), last))
    new = ObjectType(areas=(Area(radius=0),))
    spawn = Event(at=(2, 3), targets="type:agent", then=(Spawn(object="kind Y"),))
    env = play("@X.", {"X": old, "Y": new}, resources=("ore",), spawn_room=0, events={"spawn": spawn})
    amounts = []
    for _ in range(4):
        do(env, "noop")
        amounts.append((held(env).get("ore", 0), len(env.inspect(0)["objects"])))
    assert amounts == [(0, 1), (7, 1), (7, 2), (7, 2)]


def test_masks_know_which_places_are_free_in_the_next_tick() -> None:
    kinds = {
        "X": ObjectType(inventory={"ore": 1}, on_use=(Rule(then=(Spawn(object="kind Y"),)),)),
        "Y": ObjectType(inventory={"ore": 2}, on_use=(Rule(then=(Remove(),)),)),
    }
    env = play("Y@X.", kinds, resources=("ore",), spawn_room=0, masks=True)
    assert env.masks is not None
    east = env.action_names.index("move_east")
    assert do(env, "move_west") == [True]
    seen = []
    for _ in range(3):
        seen.append((bool(env.masks[0, east]), *do(env, "move_east")))
    assert seen == [(False, False), (True, True), (False, False)]


def test_rules_of_a_tag_may_give_an_object_more_than_one_digit() -> None:
    stuff = ("ore", "wood", "iron", "clay")
    env = play(
        "@X",
        {"X": ObjectType(on_use=(Rule(then=(SetTag(tag="lit"),)),))},
        resources=stuff,
        agent=AgentType(limits=tuple(Limit(resources=(name,), base=5) for name in stuff)),
        on_tag_added={"lit": (Rule(then=(Give(who="actor", amounts=dict.fromkeys(stuff, 300)),)),)},
    )
    do(env, "move_east")
    shown = {f"inv:{name}": 44 for name in stuff} | {f"inv:{name}:p1": 1 for name in stuff}
    assert tokens_at(env, 0, 1) == shown


def test_walls_show_a_tag_that_rules_change_on_others() -> None:
    lamp = ObjectType(on_use=(Rule(then=(SetTag(tag="red"),)),))
    objects = {"wall": ObjectType(tags=("red",)), "lamp": lamp}
    game = Game(name="tags", num_agents=1, objects=objects, map=Ascii(text="L@#", legend={"L": "lamp"}))
    with quiet_make(game, num_worlds=1, validation=True) as env:
        env.reset()
        assert env.observation_validation is not None
        assert env.observation_validation.mismatches == 0
        assert {t.text for t in env.decode(0) if t.column == 1} == {"type:wall", "red"}


def test_units_are_counted_after_the_cost_is_paid() -> None:
    """The only unit there is pays for the use; the use that needs one around fails and costs nothing."""
    needs = AtLeast(value=Count(tag="type:agent", resource="ore"), number=1)
    lamp = ObjectType(on_use=(Rule(when=(needs,), then=(SetTag(tag="lit"),)),))
    me = AgentType(inventory={"ore": 1})
    env = play("@X", {"X": lamp}, resources=("ore",), agent=me, move_cost={"ore": 1}, masks=True)
    assert env.masks is not None
    assert not env.masks[0, env.action_names.index("move_east")]
    assert do(env, "move_east") == [False]
    assert held(env) == {"ore": 1}


def test_a_machine_fed_by_a_rule_starts_by_itself() -> None:
    machine = Converter(inputs={"ore": 1}, outputs={"bar": 1}, cooldown=2)
    feed = Rule(then=(Transfer(source="actor", to="target", amounts={"ore": 1}),))
    env = play(
        "@X",
        {"X": ObjectType(converter=machine, on_use=(feed,))},
        resources=("ore", "bar"),
        agent=AgentType(inventory={"ore": 1}),
    )
    assert do(env, "move_east") == [True]
    seen = [stored(env, "X")]
    for _ in range(2):
        do(env, "noop")
        seen.append(stored(env, "X"))
    assert seen == [{}, {}, {"bar": 1}]


def test_borders_are_walls_and_not_what_counts_as_wall() -> None:
    objects = {"fence": ObjectType(counts_as="wall", inventory={"ore": 3}), "wall": ObjectType()}
    game = Game(
        name="fence", num_agents=1, resources=("ore",), objects=objects, map=Scatter(height=5, width=5, border=1)
    )
    with quiet_make(game, num_worlds=1) as env:
        env.reset()
        assert [o["inventory"] for o in env.inspect(0)["objects"] if o["agent"] is None] == [{}] * 16


def test_more_kinds_of_terrain_than_a_byte_can_count() -> None:
    """Variants of a type share its name, so there may be more of them than names."""
    objects = {"wall": ObjectType()} | {f"wall {i}": ObjectType(counts_as="wall") for i in range(299)}
    objects["wall 290"] = ObjectType(counts_as="wall", tags=("hot",), pushable=True)
    game = Game(name="many", num_agents=1, objects=objects, map=Ascii(text="@H.", legend={"H": "wall 290"}))
    with quiet_make(game, num_worlds=1) as env:
        env.reset()
        assert env.inspect(0)["objects"][1]["tags"] == ["hot", "type:wall"]
        env.step(np.array([env.action_names.index("move_east")], np.int32))
        assert places(env) == [(0, 1)]


def test_a_slash_in_the_name_of_a_statistic_means_nothing() -> None:
    shown = Observation(
        values=(
            ObservedValue(name="amount", value=Stat(name="ore.amount")),
            ObservedValue(name="bells", value=Stat(name="bells/loud")),
        )
    )
    env = play(
        "@X",
        {"X": ObjectType(on_use=(Rule(then=(AddStat(name="bells/loud", amount=5),)),))},
        resources=("ore",),
        agent=AgentType(inventory={"ore": 2}),
        observation=shown,
    )
    do(env, "move_east")
    assert {t.feature: t.value for t in env.decode(0) if t.feature in ("amount", "bells")} == {"amount": 2, "bells": 5}


def test_losing_a_bonus_drops_no_more_than_the_excess() -> None:
    """Without the bag 10 fit: both gems, a bonus themselves, and three of the ore go, not six."""
    limits = (Limit(resources=("ore", "gem"), base=10, bonus={"bag": 1, "gem": 1}),)
    env = play(
        "@X",
        {"X": ObjectType(on_use=(Rule(then=(Take(amounts={"bag": 13}),)),))},
        resources=("ore", "gem", "bag"),
        agent=AgentType(inventory={"ore": 13, "gem": 2, "bag": 13}, limits=limits),
    )
    do(env, "move_east")
    assert held(env) == {"ore": 10}


def test_statistics_of_large_flows_do_not_wrap() -> None:
    churn = (Rule(then=(Give(amounts={"ore": 65_535}), Clear())),) * 200
    env = play("@", resources=("ore",), agent=AgentType(on_tick=churn), max_steps=400, validation=False)
    ended = finish(env)
    assert ended["ore.gained"] == ended["ore.lost"] == [65_535 * 200 * 400]


def test_a_rule_can_move_to_where_it_removed_something() -> None:
    enter = Rule(then=(Remove(), Move(who="actor", direction="east")))
    env = play("@X", {"X": ObjectType(on_use=(enter,))}, masks=True)
    assert env.masks is not None
    assert env.masks[0, env.action_names.index("move_east")]
    assert do(env, "move_east") == [True]
    assert places(env) == [(0, 1)]


def test_an_object_has_no_place_among_agents() -> None:
    """The object's own index is 1, which would be the place asked for."""
    first = Rule(when=(AtLeast(value=Index(every=1, place=0), number=1),), then=(Give(amounts={"ore": 1}),))
    env = play("@X", {"X": ObjectType(on_tick=(first,))}, resources=("ore",))
    do(env, "noop")
    assert stored(env, "X") == {}


def test_a_game_listed_twice_keeps_its_number_when_restored() -> None:
    game = Game(name="twin", num_agents=1, objects={"wall": ObjectType()}, map=Ascii(text="@."))
    with quiet_make([game, game], num_worlds=2) as env:
        env.reset()
        numbers, hashes = env.game_of_world.tolist(), env.state_hash()
        env.restore(env.save())
        assert env.game_of_world.tolist() == numbers == [0, 1]
        assert (env.state_hash() == hashes).all()


@pytest.mark.parametrize("axis", ["horizontal", "vertical", "both"])
def test_a_mirror_has_room_for_what_it_copies_from_below(axis: Literal["horizontal", "vertical", "both"]) -> None:
    corner = Part(height=6, width=6, layers=(Objects(counts={"mine": 5}),))
    inner = Part(layers=(Mirror(axis=axis),))
    for mirror in (Mirror(axis=axis), OneOf(layers=(Mirror(axis=axis), Mirror(axis=axis))), inner):
        game = Game(
            name="mirror",
            num_agents=1,
            resources=("ore",),
            objects={"wall": ObjectType(), "mine": ObjectType(inventory={"ore": 1})},
            map=Canvas(height=18, width=18, layers=(corner, mirror)),
        )
        with quiet_make(game, num_worlds=4, validation=True) as env:
            env.reset()
            mines = [[o for o in env.inspect(w)["objects"] if o["type"] == "mine"] for w in range(4)]
            assert [len(each) for each in mines] == [20 if axis == "both" else 10] * 4
            assert env.observation_validation is not None
            assert env.observation_validation.mismatches == 0


def test_a_rule_that_only_takes_what_waits_lets_the_machine_start() -> None:
    """The machine holds as much as it may; once a rule has emptied it, it works again, here within three ticks."""
    empty = Rule(then=(Clear(who="target"),))
    mine = Converter(outputs={"ore": 1}, cooldown=3, max_output=1, initial_resource_count=1)
    env = play("@X", {"X": ObjectType(converter=mine, on_use=(empty,))}, resources=("ore",))
    do(env, "move_east")
    assert stored(env, "X") == {}
    for _ in range(3):
        do(env, "noop")
    assert stored(env, "X") == {"ore": 1}
