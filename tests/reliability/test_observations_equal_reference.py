"""The fast observations equal the native reference, and both equal a reference in plain Python.

Shadow validation compares fast and native reference inside the engine; `reference/observation.py` knows nothing of
either. The long tier makes a million comparisons.
"""

from __future__ import annotations

import warnings

import draws
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from random_games import ascii_maps, game_plans, games, quiet_make, random_actions, scatter_maps, scripted_actions
from reference.observation import Follower, action_names, feature_names, tag_names, window_cells

import gridmill
from gridmill import Env, Game
from gridmill.grid import (
    AgentType,
    Align,
    Ascii,
    Assembler,
    ClearTag,
    Collective,
    Count,
    Event,
    Inventory,
    ObjectType,
    Observation,
    ObservedValue,
    Recipe,
    Rule,
    SetTag,
    Stat,
    Transfer,
    Unalign,
)

pytestmark = pytest.mark.D5

SEEDS = st.integers(0, 2**64 - 1)


def shadow(game: Game, num_worlds: int, ticks: int, seed: int, threads: int = 1) -> int:
    """Comparisons made by shadow validation, which must have found no difference."""
    with quiet_make(game, num_worlds=num_worlds, seed=seed, validation=True, threads=threads) as env:
        actions = random_actions(env, seed)
        env.reset()
        for _ in range(ticks):
            env.step(actions())
        report = env.observation_validation
        assert report is not None
        assert report.mismatches == 0, report.first_mismatch
        assert report.comparisons >= num_worlds * env.num_agents * (ticks + 1)
        return report.comparisons


@settings(max_examples=2_000)
@given(games(), SEEDS)
def test_fast_equals_native_reference_in_2000_random_worlds(game: Game, seed: int) -> None:
    """Every example is a game of its own, drawn anew: 2 000 different worlds, not copies of fewer."""
    shadow(game, num_worlds=1, ticks=6, seed=seed)


@pytest.mark.long
@settings(max_examples=5_000)
@given(games(), SEEDS)
def test_fast_equals_native_reference_in_5000_random_worlds(game: Game, seed: int) -> None:
    shadow(game, num_worlds=1, ticks=6, seed=seed)


@settings(max_examples=150)
@given(games())
def test_names_equal_plain_python(game: Game) -> None:
    with quiet_make(game, num_worlds=1) as env:
        assert [f.name for f in env.features] == feature_names(game)
        assert env.tags == tag_names(game)
        assert env.action_names == action_names(game)


@settings(max_examples=150)
@given(games(quiet=True), SEEDS)
def test_obs_equals_plain_python(game: Game, seed: int) -> None:
    with quiet_make(game, num_worlds=2, seed=seed) as env:
        env.reset()
        actions = random_actions(env, seed)
        followers = [Follower(env, world) for world in range(env.num_worlds)]
        for tick in range(6):
            if tick:
                given_now = actions()
                env.step(given_now)
                for follower in followers:
                    follower.after_step(given_now)
            for follower in followers:
                np.testing.assert_array_equal(env.obs[follower.rows], follower.expected(), f"tick {tick}")


@settings(max_examples=60)
@given(games(), SEEDS)
def test_reference_as_primary_gives_the_same_arrays(game: Game, seed: int) -> None:
    rows = []
    for fast in ("1", "0"):
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("GRIDMILL_OBS_USE_OPTIMIZED", fast)
            env = quiet_make(game, num_worlds=3, seed=seed)
        actions = random_actions(env, seed)
        env.reset()
        for _ in range(5):
            env.step(actions())
        rows.append((env.obs.copy(), env.final_obs.copy(), env.rewards.copy(), env.take_episodes()))
        env.close()
    for mine, theirs in zip(rows[0][:3], rows[1][:3], strict=True):
        np.testing.assert_array_equal(mine, theirs)
    assert all((rows[0][3][name] == rows[1][3][name]).all() for name in rows[0][3])


@draws.composite
def two_games(draw: draws.Draw) -> list[Game]:
    """Two games of one shape that differ in map, rewards and what is shown."""
    one = draw(game_plans())
    maps = draw(draws.sampled_from([ascii_maps, scatter_maps]))
    two = one.replace("name", "other").replace("map", draw(maps(list(one.objects), one.num_agents)))
    shown = one.observation.tree() | {"local_position": draw(draws.booleans()), "values": []}
    return [one, two.replace("observation", shown).replace("rewards", [])]


@settings(max_examples=80)
@given(draws.seeded(two_games()), SEEDS)
def test_worlds_that_change_their_game(pair: list[Game], seed: int) -> None:
    """What one game left in a row or in scratch space never shows through in the next."""
    with quiet_make(pair, num_worlds=4, seed=seed, validation=True, threads=1) as env:
        actions = random_actions(env, seed)
        env.assign(range(4), [0, 1, 0, 1])
        env.reset()
        for tick in range(8):
            env.assign(range(4), [(tick + world) % 2 for world in range(4)])
            env.step(actions())
            if tick == 5:
                env.reset()
        report = env.observation_validation
        assert report is not None
        assert report.mismatches == 0, report.first_mismatch


def follow(game: Game, ticks: int) -> Env:
    """One world compared with the Python reference for some ticks."""
    env = quiet_make(game, num_worlds=1)
    env.reset()
    follower = Follower(env, 0)
    np.testing.assert_array_equal(env.obs, follower.expected())
    for tick in range(ticks):
        actions = scripted_actions(tick, env.num_rows, env.num_actions)
        env.step(actions)
        follower.after_step(actions)
        np.testing.assert_array_equal(env.obs, follower.expected())
    return env


def test_more_than_256_agents() -> None:
    """Ids begin again at 0, and codes no longer fit one byte."""
    follow(gridmill.games.toy(num_agents=300, map_size=30), 3)


def test_teams_marks_and_assemblers() -> None:
    """Collectives that change, tags that come and go, and what an assembler shows of its rest and its uses."""
    well = Assembler(recipes=(Recipe(outputs={"ore": 3}),), cooldown=4, partial=True, max_uses=5)
    deep = Assembler(recipes=(Recipe(outputs={"ore": 1}),), max_uses=300)
    lamp = Rule(then=(Transfer(amounts={"ore": 1}), SetTag(tag="lit"), Align(to="reds")))
    objects = {
        "wall": ObjectType(),
        "well": ObjectType(assembler=well, collective="blues"),
        "deep": ObjectType(assembler=deep),
        "lamp": ObjectType(on_use=(lamp,), inventory={"ore": 9}, tags=("lit",)),
    }
    marks = (ClearTag(tag="lit"), Unalign())
    counted = Stat(name="aligned.agent.held", of="collective")
    shown = {
        "reds": Count(tag="lit", collective="reds"),
        "held": counted,
        "store": Inventory(resource="ore", of="collective"),
    }
    game = Game(
        name="marks",
        num_agents=4,
        moves=4,
        resources=("ore",),
        agent=AgentType(collectives=("reds", "blues")),
        collectives={"reds": Collective(inventory={"ore": 300}), "blues": Collective()},
        objects=objects,
        events={"dark": Event(every=7, targets="type:lamp", then=marks, max_targets=2)},
        map=Ascii(text="WLDL\n0.1.\nLWLD\n.2.3", legend={"W": "well", "L": "lamp", "D": "deep"}),
        observation=Observation(values=[ObservedValue(name=n, value=v, digits=2) for n, v in shown.items()]),
    )
    env = follow(game, 60)
    seen = {token.feature for row in range(4) for token in env.decode(row)}
    assert {"collective", "uses", "reds", "held", "store:p1"} <= seen


def test_a_full_feature_table() -> None:
    """254 features, up to 251 tokens per agent; one resource more is refused."""
    room = 254 - len(feature_names(Game(name="bare", num_agents=2, map=Ascii(text="@.@"))))
    names = [f"r{i:03}" for i in range((room + 1) // 2)]
    amounts = {name: 300 + i for i, name in enumerate(names)}  # two digits each, two features
    if room % 2:
        amounts[names[-1]] = 100
    game = Game(
        name="rich",
        num_agents=2,
        resources=names,
        agent=AgentType(inventory=amounts),
        map=Ascii(text="@.@"),
        observation=Observation(num_tokens=600),
    )
    env = follow(game, 3)
    assert len(env.features) == 254
    assert env.take_episodes()["world"].size == 0
    assert 3 + 2 * 249 < (env.obs[0, :, 0] != 0xFF).sum() <= 3 + 2 * 251
    more = {"resources": [*names, "one more"], "agent": {"inventory": amounts | {"one more": 300}}}
    with pytest.raises(ValueError, match=r"^expected at most 254 features, got 256 - at `\$`$"):
        quiet_make(Game.load(game.tree() | more), num_worlds=1)


@pytest.mark.parametrize(("side", "cells"), [(1, 1), (3, 5), (5, 21), (7, 37), (9, 57), (11, 89), (13, 121), (15, 157)])
def test_disc_sizes(side: int, cells: int) -> None:
    """The documented number of cells, in the Python reference and in the engine (a full map, one token a cell)."""
    assert len(window_cells("disc", side, side)) == cells
    text = "\n".join("#" * 15 if row != 7 else "#" * 7 + "@" + "#" * 7 for row in range(15))
    game = Game(name="full", map=Ascii(text=text), observation=Observation(window="disc", height=side, width=side))
    with quiet_make(game, num_worlds=1) as env:
        env.reset()
        seen = {(t.row, t.column) for t in env.decode(0) if t.row is not None}
        assert len(seen) == cells
        assert seen == set(window_cells("disc", side, side))


def test_overflow_keeps_the_nearest() -> None:
    """For every budget the row is the beginning of the full row, and what is missing is counted."""
    text = "#####\n#...#\n#.@.#\n#..@#\n#####"
    full = None
    for budget in [200, *range(1, 30)]:
        game = Game(
            name="tight",
            num_agents=2,
            max_steps=1,
            map=Ascii(text=text),
            observation=Observation(height=5, width=5, num_tokens=budget),
        )
        with quiet_make(game, num_worlds=1) as env:
            env.reset()
            row = env.obs[0].copy()
            if full is None:
                full = row[row[:, 0] != 0xFF]
            np.testing.assert_array_equal(row[: len(full)], full[:budget])
            env.step()
            taken = env.take_episodes()
            assert taken["tokens_dropped"][0] == 2 * max(0, len(full) - budget)
            assert taken["tokens_written"][0] == 2 * min(len(full), budget)


def test_shown_token_counts_do_not_upset_the_shadow() -> None:
    """Showing how many tokens were written must not make validation see a difference that is not there."""
    game = Game(
        name="self-aware",
        map=Ascii(text="@.#"),
        observation=Observation(values=[ObservedValue(name="written", value=Stat(name="tokens_written"))]),
    )
    assert shadow(game, num_worlds=1, ticks=3, seed=0) == 4


def test_overflow_is_warned_about_when_the_game_compiles() -> None:
    game = gridmill.games.toy().replace("observation.num_tokens", 20)
    with pytest.warns(gridmill.TokenBudgetWarning, match=r"^toy: an agent could see \d+ tokens at worst, more "):
        gridmill.make(game, num_worlds=1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        gridmill.make("toy", num_worlds=1)


@pytest.mark.long
def test_half_a_million_comparisons_on_toy() -> None:
    done = 0
    for window in ("square", "disc"):
        for num_agents, size in ((20, 40), (100, 40), (300, 70)):
            game = gridmill.games.toy(num_agents=num_agents, map_size=size, density=0.2, window=window)  # type: ignore[arg-type]
            done += shadow(game, num_worlds=16, ticks=84_000 // (16 * num_agents), seed=done, threads=2)
    assert done >= 500_000


@pytest.mark.long
@settings(max_examples=1_250)
@given(games(most_agents=20), SEEDS)
def test_half_a_million_comparisons_on_random_games(game: Game, seed: int) -> None:
    shadow(game, num_worlds=8, ticks=max(1, 400 // (8 * game.num_agents)), seed=seed)


def comparisons_on(name: str, least: int) -> int:
    game = gridmill.games.build(name)
    return shadow(game, num_worlds=16, ticks=-(-least // (16 * game.num_agents)), seed=1, threads=2)


@pytest.mark.parametrize("name", gridmill.games.names("grid"))
def test_twenty_thousand_comparisons_on_every_game(name: str) -> None:
    assert comparisons_on(name, 20_000) >= 20_000


@pytest.mark.long
@pytest.mark.parametrize("name", gridmill.games.names("grid"))
def test_a_million_comparisons_on_every_game(name: str) -> None:
    assert comparisons_on(name, 1_000_000) >= 1_000_000


@pytest.mark.parametrize("tokens", [5, 6, 10, 20, 21, 22, 41, 42, 43, 84, 85, 86])
def test_objects_whose_tokens_just_fill_their_slot(tokens: int) -> None:
    """Tokens are copied in blocks; whatever their number, nothing of the next object comes along."""
    tags = tuple(f"tag{i}" for i in range(tokens - 1))
    rich = {"wall": ObjectType(), "rich": ObjectType(tags=tags), "other": ObjectType(tags=tags[::2])}
    picture = Ascii(text="@..X.Y#\n......#", legend={"X": "rich", "Y": "other"})
    game = Game(name="slots", objects=rich, map=picture, observation=Observation(height=3, width=3, num_tokens=200))
    with quiet_make(game, num_worlds=1, validation=True) as env:
        env.reset()
        for action in (4, 4, 2, 4, 4, 3, 3, 1, 3, 3):
            env.step([action])
        report = env.observation_validation
        assert report is not None
        assert report.mismatches == 0, report.first_mismatch
