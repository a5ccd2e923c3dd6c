"""What `explain` and `diff` say: the figures of the arenas, every warning provoked, pages that fit.

The clocks behind the figures are held against the core in `test_converter_schedule`.
"""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

import pytest
import random_games
from hypothesis import given, settings
from test_converter_schedule import EASY, bench

import gridmill
from gridmill import Game
from gridmill.games.arena import MACHINES
from gridmill.grid import (
    Ascii,
    Attack,
    Constant,
    Converter,
    Inventory,
    Log,
    Min,
    ObjectType,
    Observation,
    RewardTerm,
    Scatter,
    Stat,
)
from gridmill.grid.analysis.diff import differences
from gridmill.grid.analysis.explain import Explanation, Product, explain, text
from gridmill.grid.analysis.rule_text import describe


def product_of(said: Explanation, name: str) -> Product:
    return next(product for product in said.products if product.name == name)


# ---- the figures of the arenas


@pytest.mark.parametrize(
    ("game", "ready", "paid", "sequence"), [("arena_basic_easy_shaped", 89, 90, 85), ("arena", 189, 190, 235)]
)
def test_first_hearts(game: str, ready: int, paid: int, sequence: int) -> None:
    heart = product_of(explain(gridmill.games.build(game)), "heart")
    assert (heart.one_ready, heart.one_paid, heart.sequence) == (ready, paid, sequence)
    assert (heart.all_ready, heart.all_paid) == (89, 90)


def test_rewards_of_the_easy_arena() -> None:
    said = explain(gridmill.games.arena_basic_easy_shaped())
    first = {reward.text: (reward.one_paid, reward.sequence, reward.all_paid) for reward in said.rewards}
    assert first == {
        "0.1 x ore, up to 1": (51, 50, 51),
        "0.8 x battery, up to 1": (78, 75, 78),
        "0.5 x laser, up to 1": (None, None, None),
        "0.5 x armor, up to 1": (None, None, None),
        "0.5 x blueprint, up to 1": (None, None, None),
        "1 x heart, up to 100": (90, 85, 90),
    }
    assert [round(reward.ceiling or 0, 1) for reward in said.rewards] == [0.1, 0.8, 0, 0, 0, 30.8]


def test_the_ceiling_of_the_easy_arena_and_what_holds_it() -> None:
    found = product_of(explain(gridmill.games.arena_basic_easy_shaped()), "heart").ceiling
    assert round(found.per_agent, 1) == 30.8
    tightest, ore, altar = found.stages
    assert (tightest.machine, tightest.machines, tightest.runs, tightest.cooldown) == ("generator", 20, 37, 25)
    assert (tightest.first, tightest.last) == (52, 987)
    assert (ore.machine, round(ore.allows / 24, 1)) == ("mine", 31.7)
    assert (altar.first, altar.last) == (79, 999)


def test_chains_and_makers() -> None:
    said = explain(gridmill.games.arena())
    assert said.resources == {
        "ore": ("mine",),
        "battery": ("generator",),
        "heart": ("altar",),
        "laser": ("lasery",),
        "armor": ("armory",),
        "blueprint": (),
    }
    assert {product.name: product.chain for product in said.products} == {
        "ore": "1 mine",
        "battery": "1 mine > 1 generator",
        "armor": "3 mine > 1 armory",
        "laser": "3 mine > 1 generator > 1 lasery",
        "heart": "3 mine > 3 generator > 1 altar",
    }
    assert {machine.name: machine.count for machine in said.machines} == {
        "mine": 40,
        "generator": 20,
        "altar": 20,
        "lasery": 4,
        "armory": 4,
    }


# ---- warnings


def mine(**fields: Any) -> Game:
    return bench({"mine": MACHINES["mine"]}, "ore", **fields)


@pytest.mark.parametrize(
    ("game", "said"),
    [
        (mine(rewards=[]), "no reward terms: every reward is 0"),
        (
            mine(rewards=[RewardTerm(value=Inventory(resource="ore"), weight=0.0)]),
            "reward `0 x ore` can never be earned",
        ),
        (
            mine(max_steps=50),
            "reward `1 x ore.get` is unreachable within max_steps = 50: it can first be earned at tick 51",
        ),
        (
            mine(observation=Observation(num_tokens=3, overflow="drop")),
            "token overflow possible: an agent could see",
        ),
        (
            mine(observation=Observation(num_tokens=3, overflow="error")),
            "and observation.overflow = 'error' would stop the run",
        ),
        (mine(resources=["ore", "blueprint", "wood"]), "nothing makes blueprint, wood"),
        (bench({"altar": MACHINES["altar"]}), "altar can never run: its inputs are not available (battery)"),
        (
            bench(EASY, map=Ascii(text="m@", legend={"m": "mine"})),
            "altar is declared but is not on the map",
        ),
        (
            mine(resources=["ore", "laser"], attack=Attack(cost={"laser": 1}), map=Ascii(text="@@")),
            "attack has no possible target",
        ),
        (
            mine(resources=["ore", "laser"], attack=Attack(cost={"laser": 1}), map=Ascii(text="@@"), num_agents=2),
            "attack can never succeed: it costs 1 laser",
        ),
    ],
)
def test_each_warning(game: Game, said: str) -> None:
    found = explain(game).warnings
    assert any(said in warning for warning in found), found
    assert text(explain(game)).count("warning: ") == len(found)


def test_a_first_episode_that_is_too_short_is_named() -> None:
    game = gridmill.games.arena()
    assert not [warning for warning in explain(game).warnings if "first episode" in warning]
    (short,) = [warning for warning in explain(game, 100).warnings if "first episode" in warning]
    assert short == (
        "a first episode of 100 ticks (desync_episodes) ends before reward `1 x heart, up to 100` can be earned with "
        "one of each building, at tick 190"
    )


def test_a_game_without_faults_has_no_warnings() -> None:
    assert explain(mine()).warnings == ()


# ---- the page


@pytest.mark.parametrize("name", gridmill.games.names("grid"))
def test_the_page_is_plain_and_fits(name: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        said = explain(gridmill.games.build(name))
    page = text(said)
    assert page.isascii()
    assert max(map(len, page.splitlines())) <= 80
    assert said.actions[0] == "noop"
    for action in said.actions:
        assert action in page
    assert f"tokens: at worst {said.worst_tokens}, room for {said.num_tokens}" in page


@settings(max_examples=100)
@given(game=random_games.games())
def test_any_game_can_be_explained(game: Game) -> None:
    page = text(explain(game))
    assert page.isascii()
    assert max(map(len, page.splitlines())) <= 80
    assert 1 <= game.min_first_episode() <= game.max_steps


def test_long_and_foreign_names_fit_too() -> None:
    long = "\N{SNOWMAN} resource of some forty letters or more " * 3
    game = bench({"x" * 90: ObjectType(converter=Converter(outputs={long: 1}))}, long)
    page = text(replace(explain(game), name="y" * 200))
    assert page.isascii()
    assert max(map(len, page.splitlines())) <= 80


def test_the_page_of_the_easy_arena() -> None:
    page = " ".join(text(explain(gridmill.games.arena_basic_easy_shaped())).split())
    assert "heart 89 90 85 89 90" in page
    assert (
        "heart: 30.8, bottleneck generator: 20 x 37 battery, useful between ticks 52 and 987, one per 25 ticks; "
        "ore alone would allow 31.7"
    ) in page
    assert "1 x heart, up to 100 90 85 90 30.8" in page
    assert "at least 90 ticks" in page


def test_terms_in_words() -> None:
    value = Min(values=[Inventory(resource="ore"), Log(values=[Stat(name="heart.get")]), Constant(value=2.5)])
    assert describe(RewardTerm(weight=0.25, value=value, mode="gained")) == (
        "0.25 x min(ore, log(heart.get), 2.5) gained"
    )


# ---- differences


def test_the_arenas_differ_in_exactly_this() -> None:
    found = differences(gridmill.games.arena(), gridmill.games.arena_basic_easy_shaped())
    assert {(one.path, one.only) for one in found} == {
        ("name", ""),
        ("attack.cost.laser", ""),
        ("objects.altar.converter.inputs.battery", ""),
        ("objects.block", "b"),
        ("objects.lasery", "a"),
        ("objects.armory", "a"),
        ("map.maps[0].objects.wall", ""),
        ("map.maps[0].objects.block", "b"),
        ("map.maps[0].objects.lasery", "a"),
        ("map.maps[0].objects.armory", "a"),
        *((f"rewards[{i}]", "b") for i in range(5)),
    }
    values = {one.path: (one.a, one.b) for one in found if not one.only}
    assert values["attack.cost.laser"] == (1, 100)
    assert values["objects.altar.converter.inputs.battery"] == (3, 1)
    assert values["map.maps[0].objects.wall"] == (10, 20)


def test_order_kinds_and_lists_are_told_apart() -> None:
    a = bench({"mine": MACHINES["mine"], "altar": MACHINES["altar"]})
    b = a.replace("objects", dict(reversed(list(a.objects.items()))))
    assert [one.path for one in differences(a, b)] == ["objects (order)"]
    b = a.replace("map", Scatter(objects={"mine": 1}))
    assert [one.path for one in differences(a, b)] == ["map"]
    b = a.replace("resources", [*a.resources, "wood"])
    assert [(one.path, one.b, one.only) for one in differences(a, b)] == [("resources[3]", "wood", "b")]
    assert differences(a, a) == ()
