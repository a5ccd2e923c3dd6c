"""What `explain` says of games made of rules: who provides what, what a bump does, bounds of first rewards.

That the bounds are bounds is held in `test_bounds`.
"""

from __future__ import annotations

from typing import Any

import pytest
from test_converter_schedule import bench

import gridmill
from gridmill import Game
from gridmill.games.arena import MACHINES
from gridmill.games.navigation import navigation_eval, navigation_eval_names
from gridmill.grid import (
    AgentType,
    Area,
    Ascii,
    Assembler,
    Collective,
    Converter,
    Count,
    Event,
    GameValue,
    Give,
    Holds,
    Index,
    Instances,
    Inventory,
    Limit,
    Not,
    ObjectType,
    Periodic,
    Ratio,
    Recipe,
    RewardTerm,
    Rule,
    Spawn,
    Stat,
    Sum,
    Take,
    Transfer,
)
from gridmill.grid.analysis.explain import Explanation, Gathering, Reward, explain, text
from gridmill.grid.analysis.rule_text import rule_text
from gridmill.grid.effects import Effect
from gridmill.grid.text import names


def flat(said: Explanation) -> str:
    return " ".join(text(said).split())


def ticks(reward: Reward) -> tuple[str, int | None, int | None]:
    return reward.certainty, reward.one_paid, reward.all_paid


def gathering_of(said: Explanation, name: str) -> Gathering:
    return next(one for one in said.gatherings if one.name == name)


# ---- the games that ship


@pytest.mark.parametrize("name", ["cogsguard", "cogsguard_arena"])
def test_cogsguard(name: str) -> None:
    game = gridmill.games.build(name)
    said = explain(game)
    page = flat(said)
    (reward,) = said.rewards
    assert reward.text == f"{1 / game.max_steps:g} x team's aligned.junction.held"
    assert ticks(reward) == ("exact", 1, 1)  # a junction is theirs from the start
    assert reward.ceiling is None
    assert said.min_first_episode == 1
    assert not [warning for warning in said.warnings if "token overflow possible" not in warning]
    assert (
        "heart: c:hub (get heart, get and make heart, get last heart, make heart); at the start c:hub 5 "
        "for junction (align, scramble)"
    ) in page
    assert (
        "oxygen: oxygen_extractor (mine, extract); at the start oxygen_extractor 100, store of cogs 24 for junction "
        "(deposit); c:hub (deposit, get and make heart, make heart); c:aligner, c:scrambler, c:miner, c:scout (change "
        "gear)"
    ) in page
    assert "energy: agents each tick (sun); area of junction, c:hub; at the start agents 100" in page
    assert "solar: event weather_day; at the start agents 1 for event weather_night" in page
    assert (
        "align: agent pays 1 heart, it joins the team, if it belongs to no team, agent has 1 aligner, 1 influence"
        in page
    )
    assert "area of junction, within 10, other teams: -1 hp, -100 influence" in page
    assert "initial_clips at 10: 1 junction: it joins clips" in page
    assert "store: 24 each of oxygen, carbon, germanium, silicon" in page
    assert "nothing makes" not in page
    assert "influence (c:aligner)" in page  # the limit is 0 without one


def test_what_cogsguard_pays_for_single_steps() -> None:
    said = explain(gridmill.games.cogsguard(rewards=("milestones", "credit", "role_conditional")))
    first = {reward.text: ticks(reward) for reward in said.rewards}
    assert first["1 x junction.aligned_by_agent, up to 100"] == ("at least", 3, 2)  # gear, heart, junction
    assert first["0.05 x heart.gained, up to 10"] == ("at least", 1, 1)
    assert first["0.002 x team's oxygen.deposited gained, up to 100"] == ("at least", 2, 2)  # mine, bring
    assert first["20 x junction.scrambled_by_agent / (agent index mod 4 = 2)"] == ("at least", 3, 2)
    assert said.min_first_episode == 3


def test_extractor_hub() -> None:
    said = explain(gridmill.games.extractor_hub())
    page = flat(said)
    (reward,) = said.rewards
    assert reward.text == "0.25 x heart in chest"
    # Four elements, a vibe, the assembler, another vibe, the chest: eight acts; four agents share them.
    assert ticks(reward) == ("at least", 8, 2)
    assert "0.25 x heart in chest >= 8 >= 8 >= 2 not known" in page
    heart = gathering_of(said, "heart")
    assert (heart.alone, heart.together) == (6, 2)
    assert set(heart.acts) == {
        "carbon_extractor", "oxygen_extractor", "germanium_extractor", "silicon_extractor", "change_vibe_heart",
        "assembler",
    }  # fmt: skip
    assert said.min_first_episode == 8
    assert "heart: assembler; chest (withdraw with withdraw) for chest (deposit with deposit)" in page
    assert "silicon_extractor (2 on the map) 20 energy -> 18 silicon, 20 uses" in page
    assert "charger (5 on the map) 62 energy, then rests 10 ticks, usable earlier in part" in page
    assert not [warning for warning in said.warnings if "token overflow possible" not in warning]


def test_navigation() -> None:
    said = explain(gridmill.games.navigation())
    page = flat(said)
    assert "heart: altar (40 on the map): 1 available at the start, no more are made" in page
    assert "heart: 10.0, bottleneck altar: 40 heart available from the start" in page
    assert [ticks(reward) for reward in said.rewards] == [("exact", 1, 1)]
    assert said.gatherings == ()
    assert not [warning for warning in said.warnings if "token overflow possible" not in warning]


@pytest.mark.parametrize("name", navigation_eval_names())
def test_altars_of_evaluation_maps_are_in_reach(name: str) -> None:
    assert not [warning for warning in explain(navigation_eval(name)).warnings if "reached" in warning]


# ---- bounds of small games


def small(then: tuple[Effect, ...] = (), when: tuple[Any, ...] = (), **fields: Any) -> Game:
    """One agent beside a box with one rule."""
    box = ObjectType(on_use=(Rule(when=when, then=then),)) if then else ObjectType()
    given: dict[str, Any] = {
        "name": "small",
        "resources": ["coin", "key", "gem"],
        "objects": {"wall": ObjectType(), "box": box},
        "map": Ascii(text="@b", legend={"b": "box"}),
        "rewards": [RewardTerm(value=Inventory(resource="coin"))],
    }
    return Game(**(given | fields))


GIVE = Give(amounts={"coin": 1})
KEY = ObjectType(on_use=(Rule(then=(Give(amounts={"key": 1}),)),))


@pytest.mark.parametrize(
    ("game", "expected"),
    [
        (small((GIVE,)), ("at least", 1, 1)),
        (small((GIVE,), (Holds(amounts={"key": 1}),)), ("exact", None, None)),  # nothing brings keys, so no coins
        (small((GIVE,), (Holds(amounts={"key": 3}),), agent=AgentType(inventory={"key": 3})), ("at least", 1, 1)),
        (small(events={"rain": Event(at=(7,), targets="type:agent", then=(Give(who="target", amounts={"coin": 1}),))}),
         ("at least", 7, 7)),
        (small(agent=AgentType(on_tick=(Rule(when=(Periodic(every=5, start=5),), then=(GIVE,)),))), ("at least", 5, 5)),
        (small((GIVE,), agent=AgentType(limits=(Limit(resources=("coin",), base=0),))), ("at least", None, None)),
        (small((Transfer(amounts={"coin": 1}),)), ("at least", None, None)),  # the box is empty
    ],
)  # fmt: skip
def test_first_ticks_of_single_rules(game: Game, expected: tuple[str, int | None, int | None]) -> None:
    (reward,) = explain(game).rewards
    if expected[1] is None:
        assert (reward.one_paid, reward.all_paid) == (None, None)
        assert any("can never be earned" in warning for warning in explain(game).warnings)
    else:
        assert ticks(reward) == expected
    assert game.min_first_episode() == (expected[1] or 1)


def test_acts_in_series_are_counted() -> None:
    """Three keys, one at a time, open the box; a gem is needed too."""
    price = {"key": 3, "gem": 1}
    game = small((Take(amounts=price), GIVE), (Holds(amounts=price),), num_agents=2)
    objects = dict(game.objects) | {"hook": KEY, "vein": MACHINES["mine"].replace("converter.outputs", {"gem": 1})}
    legend = {"b": "box", "h": "hook", "v": "vein"}
    game = game.replace("objects", objects).replace("map", Ascii(text="@b\n@h\n.v", legend=legend))
    said = explain(game)
    coin = gathering_of(said, "coin")
    assert dict(coin.acts) == {"hook": 3, "vein": 1, "box": 1}
    assert (coin.alone, coin.together) == (52, 52)  # the first gem lies ready at 50, is taken at 51
    assert [product.name for product in said.products] == ["gem"]  # only a machine makes it: an exact time
    quick = game.replace("objects.vein.converter.cooldown", 1)
    coin = gathering_of(explain(quick), "coin")
    assert (coin.alone, coin.together) == (5, 3)


def test_machines_fed_by_rules_have_bounds_and_others_their_clocks() -> None:
    game = bench(MACHINES, agent=AgentType(on_tick=(Rule(then=(Give(amounts={"battery": 1}),)),)))
    said = explain(game)
    assert [product.name for product in said.products] == ["ore", "armor"]
    assert gathering_of(said, "heart").alone == 13  # batteries at 1, put at 2, ready at 12
    assert not said.warnings


# ---- warnings are true


def test_what_something_provides_is_not_said_to_be_made_by_nothing() -> None:
    heal = ObjectType(areas=(Area(changes={"key": 1}),))
    forge = ObjectType(assembler=Assembler(recipes=(Recipe(outputs={"gem": 1}),)))
    game = small(
        objects={"wall": ObjectType(), "box": heal, "forge": forge},
        map=Ascii(text="@bf", legend={"b": "box", "f": "forge"}),
        collectives={"us": Collective(inventory={"coin": 3})},
    )
    assert not [warning for warning in explain(game).warnings if "nothing makes" in warning]
    bare = game.replace("collectives", {})
    assert [warning for warning in explain(bare).warnings if "nothing makes" in warning] == ["nothing makes coin"]


def test_objects_out_of_reach_are_named() -> None:
    walled = small((GIVE,), map=Ascii(text="@b#b\n..#.", legend={"b": "box"}))
    assert "1 of 2 box on the map cannot be reached by any agent" in explain(walled).warnings
    diagonal = small((GIVE,), map=Ascii(text="@#\n#b", legend={"b": "box"}))
    assert not [warning for warning in explain(diagonal).warnings if "reached" in warning]
    assert "1 of 1 box on the map cannot be reached by any agent" in explain(diagonal.replace("moves", 4)).warnings
    places = small((GIVE,), map=Instances(maps=(walled.map,), columns=2, gap=1), num_agents=2)
    assert "2 of 4 box on the map cannot be reached by any agent" in explain(places).warnings


def test_a_machine_that_appears_later_is_not_missed() -> None:
    mint = ObjectType(converter=Converter(outputs={"coin": 1}, cooldown=4))
    game = small((Spawn(object="mint"),))
    game = game.replace("objects", dict(game.objects) | {"mint": mint})
    said = explain(game)
    assert said.sources["coin"] == ("mint, once it appears",)
    assert not [warning for warning in said.warnings if "coin" in warning or "mint" in warning]
    assert ticks(said.rewards[0]) == ("at least", 6, 6)  # there at 1, ready at 5, taken at 6


def test_a_first_episode_shorter_than_a_bound() -> None:
    (short,) = [
        warning for warning in explain(gridmill.games.extractor_hub(), 3).warnings if "first episode" in warning
    ]
    assert short.endswith("`0.25 x heart in chest` can be earned with one of each building, not before tick 8")


# ---- words


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (Count(tag="type:chest"), "count(chest)"),
        (Count(tag="type:chest", resource="heart"), "heart in chest"),
        (Count(tag="lit", collective="cogs"), "count(tag lit of cogs)"),
        (Stat(name="aligned.hub", of="collective", collective="cogs"), "cogs's aligned.hub"),
        (Stat(name="bells", of="game"), "game's bells"),
        (Inventory(resource="ore", of="collective"), "team's ore"),
        (Index(every=4, place=1), "(agent index mod 4 = 1)"),
        (Ratio(values=[Inventory(resource="ore"), Index(every=2)]), "ore / (agent index mod 2 = 0)"),
        (Ratio(values=[Sum(values=[Stat(name="a.get"), Stat(name="b.get")]), Stat(name="c.get")]),
         "sum(a.get, b.get) / c.get"),
    ],
)  # fmt: skip
def test_values_in_words(value: GameValue, said: str) -> None:
    assert value.text() == said


def test_what_is_asked_for_and_taken_is_paid() -> None:
    rule = Rule(
        when=(Holds(amounts={"a": 1, "b": 2}), Not(conditions=(Holds(amounts={"c": 1}),))),
        then=(Take(amounts={"b": 2}), Give(amounts={"d": 1})),
    )
    assert rule_text(rule, names("agent", "it")) == "agent pays 2 b, agent gets 1 d, if agent has 1 a, agent has no c"
