"""The scripts that remember a map: what they reach in navigation and in the extractor hub, and where they play."""

from __future__ import annotations

import numpy as np
import pytest

import gridmill
from gridmill import games
from gridmill.grid import Game

QUICK = ("radial_small", "obstacles", "memory_palace", "caves")
HEARTS = 90  # in the extractor hub; oxygen and carbon are there for 100


def play(game: Game, script: str, worlds: int, seed: int = 0, threads: int = 1) -> list[float]:
    """The game's score of each episode: its mean over the agents."""
    with gridmill.make(game, num_worlds=worlds, seed=seed, threads=threads, teacher=script) as env:
        env.reset()
        for _ in range(game.max_steps):
            env.step(env.teacher_actions)
        episodes = env.take_episodes()
        scores = np.array(game.score_of(episodes))
        return [float(scores[episodes["world"] == world].mean()) for world in range(worlds)]


def hearts_stored(game: Game, script: str, worlds: int, seed: int = 0) -> list[float]:
    """Hearts in the chest at the end: what the objective pays all agents together."""
    with gridmill.make(game, num_worlds=worlds, seed=seed, teacher=script) as env:
        env.reset()
        paid = np.zeros(env.num_rows)
        for _ in range(game.max_steps):
            env.step(env.teacher_actions)
            paid += env.rewards
        return [float(total) for total in paid.reshape(worlds, -1).sum(axis=1).round(3)]


@pytest.mark.parametrize("name", QUICK)
def test_navigation_takes_every_heart_of_a_map_that_leaves_time_for_it(name: str) -> None:
    assert play(games.navigation_eval(name), "navigation", 1) == [1.0]


def test_navigation_takes_the_hearts_of_drawn_maps() -> None:
    assert min(play(games.navigation(max_steps=600), "navigation", 1)) >= 0.9


def test_the_hub_stores_hearts() -> None:
    """In half the time; the whole episode is in the long tier."""
    assert min(hearts_stored(games.extractor_hub(max_steps=500), "extractor_hub", 1)) >= 25


def test_the_hub_is_played_alone_and_in_its_easy_form() -> None:
    assert min(hearts_stored(games.extractor_hub(num_agents=1, max_steps=400), "extractor_hub", 1)) >= 1
    easy = games.extractor_hub(easy_mode=True, max_steps=400)
    objective = easy.replace("rewards", easy.rewards[:1])
    assert min(hearts_stored(objective, "extractor_hub", 1)) >= 25


def test_a_teacher_whose_student_does_something_else_still_finds_its_way() -> None:
    """A third of the actions are drawn: the map is kept by what happened, not by what was advised."""
    game = games.navigation_eval("caves")
    rng = np.random.default_rng(3)
    with gridmill.make(game, num_worlds=2, seed=1, teacher="navigation") as env:
        env.reset()
        for _ in range(game.max_steps):
            drawn = rng.random(env.num_rows) < 1 / 3
            env.step(np.where(drawn, rng.integers(0, env.num_actions, env.num_rows), env.teacher_actions))
        assert np.mean(game.score_of(env.take_episodes())) >= 2 / 3


def test_a_teacher_that_was_off_begins_anew() -> None:
    game = games.navigation_eval("radial_small")
    with gridmill.make(game, num_worlds=1, seed=1, teacher="navigation") as env:
        env.reset()
        env.teach(False)
        for _ in range(20):
            env.step(np.ones(env.num_rows, np.int32))
        env.teach(True)
        for _ in range(game.max_steps - 20):
            env.step(env.teacher_actions)
        assert np.mean(game.score_of(env.take_episodes())) == 1.0


def test_which_games_they_play() -> None:
    navigation, hub = games.navigation(), games.extractor_hub()
    assert list(navigation.scripts()) == ["navigation"]
    assert list(hub.scripts()) == ["extractor_hub"]
    assert "navigation" in games.navigation_eval("caves").replace("moves", 8).scripts()
    for other in (
        navigation.replace("observation.height", 1),
        navigation.replace("moves", 0),
        navigation.replace("objects.altar.converter", None),
        games.arena(),
        games.toy(),
    ):
        assert "navigation" not in other.scripts()
    for other in (
        hub.replace("rewards", []),
        hub.replace("objects.chest.on_use", []),
        hub.replace("objects.assembler.assembler", None),
        games.cogsguard(),
    ):
        assert "extractor_hub" not in other.scripts()


@pytest.mark.long
@pytest.mark.parametrize("altars", [3, 10, 20])
def test_navigation_takes_nine_tenths_of_the_hearts(altars: int) -> None:
    assert np.mean(play(games.navigation(altars=altars), "navigation", 10, seed=7)) >= 0.9


@pytest.mark.long
@pytest.mark.parametrize("name", games.navigation_eval_names())
def test_navigation_takes_nine_tenths_of_the_hearts_of_evaluation_maps(name: str) -> None:
    """In `empty_space` 300 ticks are not enough to see all of the 60 x 60 cells."""
    least = 0.7 if name == "empty_space" else 0.9
    assert np.mean(play(games.navigation_eval(name), "navigation", 60, seed=7)) >= least


@pytest.mark.long
def test_the_hub_delivers_in_every_episode_of_twenty() -> None:
    stored = hearts_stored(games.extractor_hub(), "extractor_hub", 20, seed=7)
    assert len(stored) == 20
    assert min(stored) >= HEARTS - 10
