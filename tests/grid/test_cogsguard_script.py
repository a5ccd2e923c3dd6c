"""The script of CogsGuard plays the whole game: gear, hearts, junctions; the same everywhere, and only where it can."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

import gridmill
from gridmill import games
from gridmill.evaluate import evaluate
from gridmill.games.cogsguard import ELEMENTS, GEAR_COSTS
from gridmill.grid import Game

ROOT = Path(__file__).resolve().parents[2]
SHORT = games.cogsguard(max_steps=400)


def play(game: Game, worlds: int, seed: int, threads: int = 1) -> dict[str, NDArray[np.float64]]:
    """One episode of every world with scripts for all agents; statistics [worlds, agents]."""
    with gridmill.make(game, num_worlds=worlds, seed=seed, threads=threads, players={"cogsguard": 1.0}) as env:
        env.reset()
        for _ in range(game.max_steps):
            env.step()
        taken = env.take_episodes()
    order = np.lexsort((taken["agent"], taken["world"]))
    return {name: column[order].reshape(worlds, -1) for name, column in taken.items()}


def test_it_buys_gear_makes_hearts_and_takes_junctions() -> None:
    stats = play(SHORT, worlds=4, seed=7)
    assert (stats["miner.gained"].sum(axis=1) >= 3).all()
    assert (stats["aligner.gained"].sum(axis=1) >= 3).all()
    assert (stats["heart.gained"].sum(axis=1) >= 6).all()  # the hub has five to begin with
    assert (stats["junction.aligned_by_agent"].sum(axis=1) >= 5).all()
    held = stats["cogs/aligned.junction.held"][:, 0] / SHORT.max_steps
    assert held.mean() > 6, held


def test_it_plays_the_arena_map_too() -> None:
    game = games.cogsguard_arena(max_steps=400)
    held = play(game, worlds=2, seed=3)["cogs/aligned.junction.held"][:, 0] / game.max_steps
    assert held.mean() > 6, held


@pytest.mark.parametrize("agents", [1, 20])
def test_it_plays_alone_and_in_a_crowd(agents: int) -> None:
    stats = play(games.cogsguard(num_agents=agents, max_steps=150), worlds=1, seed=1)
    assert stats["aligner.gained"].sum() >= 1


def test_any_number_of_threads_and_a_saved_state_play_the_same() -> None:
    game = games.cogsguard(max_steps=120)
    one, two = play(game, worlds=4, seed=5), play(game, worlds=4, seed=5, threads=2)
    for name, column in one.items():
        np.testing.assert_array_equal(column, two[name], name)
    with gridmill.make(game, num_worlds=2, seed=5, players={"cogsguard": 1.0}) as env:
        env.reset()
        for _ in range(60):
            env.step()
        saved = env.save()
        hashes = []
        for _ in range(2):
            env.restore(saved)
            for _ in range(40):
                env.step()
            hashes.append(env.state_hash().copy())
        np.testing.assert_array_equal(hashes[0], hashes[1])


def test_it_plays_only_games_that_show_enough() -> None:
    assert "cogsguard" in games.cogsguard().scripts()
    assert "cogsguard" in games.cogsguard_arena().scripts()
    for other in (
        SHORT.replace("observation.local_position", False),
        SHORT.replace("observation.window", "disc"),
        SHORT.replace("observation.values", ()),
        games.arena(),
        games.toy(),
    ):
        assert "cogsguard" not in other.scripts()


def test_its_prices_are_the_games() -> None:
    text = (ROOT / "native/grid/scripts/cogsguard_roles.cpp").read_text()
    table = re.search(r"kGearCosts\[kGears\]\[kElements\] = (.*?);", text, re.S)
    assert table
    prices = [int(digit) for digit in re.findall(r"\d+", table[1])]
    order = ("carbon", "oxygen", "germanium", "silicon")
    assert set(order) == set(ELEMENTS)
    assert prices == [GEAR_COSTS[gear][element] for gear in GEAR_COSTS for element in order]


@pytest.mark.long
def test_it_holds_more_junctions_than_the_best_published_script() -> None:
    """16.2 is the best reported for a script without full information; the bar of the aim is 40."""
    played = evaluate("cogsguard", "script:cogsguard", episodes=10, seed=1000)
    assert played.score.mean - 2 * played.score.se > 40, played.score
    assert evaluate("cogsguard", "random", episodes=10, seed=1000).score.mean < 3
