"""The arena's script in the core decides what the slow reference decides, and plays where it can."""

from __future__ import annotations

import numpy as np
import pytest
from support.reference.arena_script import ArenaScript, script_draws

import gridmill
from gridmill import games
from gridmill.grid import Game

SMALL = {
    "easy": games.arena_basic_easy_shaped(num_agents=6, max_steps=60),
    "lasers": games.arena(num_agents=12, max_steps=90),
    "small window": games.arena(num_agents=6, max_steps=40)
    .replace("observation.height", 3)
    .replace("observation.width", 7),
    "disc": games.arena(num_agents=6, max_steps=40).replace("observation.window", "disc"),
    "few tokens": games.arena_basic_easy_shaped(num_agents=6, max_steps=60).replace("observation.num_tokens", 40),
}


@pytest.mark.parametrize("game", SMALL.values(), ids=SMALL)
def test_the_core_decides_what_the_reference_decides(game: Game) -> None:
    """Over the ends of episodes, with a share of the actions at random so that agents get everywhere."""
    worlds, agents, seed = 3, game.num_agents, 11
    rng = np.random.default_rng(0)
    with gridmill.make(game, num_worlds=worlds, seed=seed, teacher="arena") as env:
        env.reset()
        script, heading = ArenaScript(env), None
        episode, tick, ways = 0, 0, set()
        for _ in range(2 * game.max_steps + 20):
            draws = [script_draws(seed, w, episode, tick, a) for w in range(worlds) for a in range(agents)]
            wanted, heading = script.act(env.obs, heading, np.array(draws, np.uint64))
            np.testing.assert_array_equal(env.teacher_actions, wanted)
            ways |= set(wanted.tolist())
            at_random = rng.random(env.num_rows) < 0.2
            env.step(np.where(at_random, rng.integers(0, env.num_actions, env.num_rows), wanted))
            tick += 1
            if env.truncations.any():
                episode, tick, heading = episode + 1, 0, None
    assert len(ways) >= 8  # it went everywhere


def test_it_plays_where_hearts_are_made_and_agents_walk_in_eight_directions() -> None:
    assert list(games.arena().scripts()) == ["arena"]
    easy = games.arena_basic_easy_shaped()
    assert "arena" in easy.scripts()
    for other in (
        easy.replace("moves", 4),
        easy.replace("map.maps.0.objects", {"mine": 5, "generator": 5}),
        easy.replace("objects.mine.converter.max_conversions", 0),
        easy.replace("observation.width", 1),
        games.toy(),
    ):
        assert "arena" not in other.scripts()
    waiting = easy.replace("objects.altar.converter.initial_resource_count", 1)
    assert "arena" in waiting.scripts()
