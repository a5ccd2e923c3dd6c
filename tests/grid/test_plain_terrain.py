"""Walls in runs: where walls are most of what there is, their tokens are written many at a time between those of
everything else. Whatever the window, the budget and the width of the map, rows are those of the reference, with every
set of kernels this CPU can run; and walls that can move or appear are seen where they are.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from random_games import Digest, quiet_make
from test_isa import HERE
from twins import Twins, check_shadow

from gridmill import Game
from gridmill.grid import AgentType, Ascii, Event, ObjectType, Observation, RewardTerm, SetTag, Spawn, Stat

SEEDS = st.integers(0, 2**32 - 1)
WIDTHS = (5, 9, 15, 16, 17, 31, 32, 33, 34, 48, 63, 64, 65, 66, 95, 97, 129)
ODD = (1, 3, 5, 7, 9, 11, 13, 15)
TICKS = 8


def walled(seed: int) -> Game:
    """Full of walls but for a few ways, with very few things among them: at least 20 walls for each."""
    dice = random.Random(seed)
    height, width = dice.randint(7, 20), dice.choice(WIDTHS)
    cells = height * width
    full = np.full(cells, "#")
    free = dice.sample(range(cells), max(cells // 60, int(cells * dice.choice((0.02, 0.1, 0.3, 0.5)))) + 2)
    full[free] = "."
    walls = int((full == "#").sum())
    things = max(1, min(len(free), 12, walls // 21))  # one of them at least is an agent
    agents = dice.randint(1, things)
    letters = ["@"] * agents + [dice.choice("BCT") for _ in range(things - agents)]
    full[free[:things]] = letters
    text = "\n".join("".join(row) for row in full.reshape(height, width))
    disc, side = dice.random() < 0.4, dice.choice(ODD)
    return Game(
        name="walled", num_agents=agents, max_steps=dice.choice((4, 100)), resources=("ore",), vibes=("calm", "glad"),
        agent=AgentType(inventory={"ore": dice.choice((0, 3, 300))}, tags=dice.choice(((), ("a", "b", "c")))),
        objects={
            "wall": ObjectType(), "block": ObjectType(tags=("soft", "heavy"), pushable=True),
            "chest": ObjectType(inventory={"ore": 700}), "totem": ObjectType(vibe="glad"),
        },
        map=Ascii(text=text, legend={"B": "block", "C": "chest", "T": "totem"}),
        observation=Observation(
            window="disc" if disc else "square", height=side, width=side if disc else dice.choice(ODD),
            num_tokens=dice.choice((dice.randint(1, 45), dice.randint(30, 160), 240, 700)), overflow="drop",
            local_position=dice.random() < 0.3,
        ),
        rewards=(RewardTerm(value=Stat(name="cell.visited")),),
    )  # fmt: skip


def has_runs(game: Game) -> bool:
    """A world with runs keeps a second bitmap, which the same one with walls that can be pushed does not need."""
    with quiet_make(game, num_worlds=1) as env, quiet_make(pushable(game), num_worlds=1) as other:
        return bool(env.bytes_per_world > other.bytes_per_world)


def pushable(game: Game) -> Game:
    return game.replace("objects", dict(game.objects) | {"wall": ObjectType(pushable=True)})


def spawning(game: Game) -> Game:
    events = {"wall": Event(every=1, targets="type:agent", then=(Spawn(object="wall"),), max_targets=1)}
    return Game.load(game.tree() | {"events": {name: event.tree() for name, event in events.items()}})


def tagged(game: Game, seed: int) -> Game:
    """Walls that show more than one tag, by themselves or because it is one that rules set on others."""
    events = {"light": Event(at=(2,), targets="type:agent", then=(SetTag(tag="lit"),))}
    walls = {"wall": ObjectType(tags=(("hard",), ("lit",), ("hard", "lit"))[seed % 3]).tree()}
    tree = game.tree()
    return Game.load(
        tree | {"objects": tree["objects"] | walls, "events": {name: e.tree() for name, e in events.items()}}
    )


def play(game: Game, seed: int) -> None:
    with Twins(game, seed, forgets=0.5) as twins:
        for _ in range(TICKS):
            twins.step()


def played(seeds: range) -> str:
    """A hash of all rows of these games, which shadow validation found equal to the reference."""
    digest = Digest()
    for seed in seeds:
        with Twins(walled(seed), seed, num_worlds=1, forgets=0.3) as twins:
            for _ in range(TICKS):
                twins.step()
                digest.add_arrays(twins.kept)
    return digest.hex()


def test_the_games_here_have_walls_in_runs() -> None:
    assert all(has_runs(walled(seed)) for seed in range(20))
    assert not any(has_runs(spawning(walled(seed))) for seed in range(5))


@settings(max_examples=50)
@given(SEEDS)
def test_walls_in_runs_are_the_rows_of_the_reference(seed: int) -> None:
    play(walled(seed), seed)


@settings(max_examples=30)
@given(SEEDS)
def test_walls_that_can_be_pushed_are_seen_where_they_are(seed: int) -> None:
    play(pushable(walled(seed)), seed)


@settings(max_examples=30)
@given(SEEDS)
def test_walls_that_appear_are_seen(seed: int) -> None:
    play(spawning(walled(seed)), seed)


@settings(max_examples=30)
@given(SEEDS)
def test_walls_with_several_tags_show_them_all(seed: int) -> None:
    play(tagged(walled(seed), seed), seed)


@pytest.mark.parametrize("window", ["square", "disc"])
def test_a_full_row_ends_where_the_next_begins(window: str) -> None:
    """Tokens are written many at a time; those of one lane's last row must not reach into the other lane's first."""
    text = "\n".join("#" * 40 if row != 10 else "#" * 33 + "@T" + "#" * 5 for row in range(20))
    for budget in range(1, 90):
        game = Game(
            name="full", vibes=("calm", "glad"), map=Ascii(text=text, legend={"T": "totem"}),
            objects={"wall": ObjectType(), "totem": ObjectType(vibe="glad")},
            observation=Observation(window=window, num_tokens=budget, overflow="drop"),
        )  # fmt: skip
        with quiet_make(game, num_worlds=2, lanes=2) as env:
            env.reset()
            env.obs[1] = 0x5A
            env.actions[:] = 0
            env.send(0)
            env.recv(0)
            assert (env.obs[1] == 0x5A).all(), budget


@pytest.mark.parametrize("word", HERE)
def test_walls_in_runs_are_the_same_bytes_with_every_set_of_kernels(word: str) -> None:
    here = Path(__file__)
    found = os.pathsep.join([str(here.parent), *filter(None, sys.path)])
    code = f"import {here.stem} as t; print(t.played(range(60)))"
    environment = {**os.environ, "GRIDMILL_ISA": word, "PYTHONPATH": found}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, timeout=300)
    assert done.stdout.strip() == played(range(60)), done.stderr


@pytest.mark.parametrize("side", [3, 9, 15])
@pytest.mark.parametrize("window", ["square", "disc"])
def test_every_budget_cuts_a_run_where_it_ends(window: str, side: int) -> None:
    """A row for any budget is the beginning of the whole one, and what does not fit is counted."""
    text = "\n".join("#" * 40 if row != 10 else "#" * 33 + "@T" + "#" * 5 for row in range(20))
    whole = None
    for budget in (400, *range(1, 3 + side * side + 5)):
        game = Game(
            name="cut", max_steps=1, vibes=("calm", "glad"), map=Ascii(text=text, legend={"T": "totem"}),
            objects={"wall": ObjectType(), "totem": ObjectType(vibe="glad")},
            observation=Observation(window=window, height=side, width=side, num_tokens=budget, overflow="drop"),
        )  # fmt: skip
        with quiet_make(game, num_worlds=1, validation=True) as env:
            env.reset()
            row = env.obs[0].copy()
            if whole is None:
                assert has_runs(game)
                whole = row[row[:, 0] != 0xFF]
            np.testing.assert_array_equal(row[: len(whole)], whole[:budget])
            env.step()
            check_shadow(env)
            assert env.take_episodes()["tokens_dropped"][0] == 2 * max(0, len(whole) - budget)


@pytest.mark.long
@settings(max_examples=5_000)
@given(SEEDS)
def test_walls_in_runs_are_the_rows_of_the_reference_in_five_thousand_games(seed: int) -> None:
    play(walled(seed), seed)
