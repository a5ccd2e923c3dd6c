"""Different seeds, worlds and episodes are different; no two worlds of a batch share a random stream."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from random_games import agents_of, scripted_actions

import gridmill
from gridmill import Env, Game
from gridmill.grid import Ascii

pytestmark = pytest.mark.D3

WORLDS, STEPS = 256, 50


def crowd() -> Game:
    """A fixed map: only the order in which agents act can tell two worlds apart."""
    rows = ["@.@.@.@.@.", ".@.@.@.@.@"] * 3
    return Game(name="crowd", num_agents=30, map=Ascii(text="\n".join(rows)))


def per_world(env: Env) -> np.ndarray:
    return env.obs.reshape(env.num_worlds, -1)


def run_alike(env: Env, steps: int) -> list[bytes]:
    """What each world looks like after the same actions in all of them (as seen by agents, without the seed)."""
    actions = [scripted_actions(step, env.num_agents, env.num_actions) for step in range(steps)]
    seen = [per_world(env).copy()]
    for step in range(steps):
        env.step(np.tile(actions[step], env.num_worlds))
        seen.append(per_world(env).copy())
    return [np.concatenate([tick[w] for tick in seen]).tobytes() for w in range(env.num_worlds)]


def test_no_two_of_256_worlds_agree_after_50_steps() -> None:
    with gridmill.make("toy", num_worlds=WORLDS, seed=0) as env:
        env.reset()
        assert len({row.tobytes() for row in per_world(env)}) == WORLDS
        run_alike(env, STEPS)
        assert len({row.tobytes() for row in per_world(env)}) == WORLDS
        assert len(set(env.state_hash().tolist())) == WORLDS


def test_worlds_on_one_map_shuffle_differently() -> None:
    """Same map, same actions: 256 different histories, because each world draws its own order of acting."""
    with gridmill.make(crowd(), num_worlds=WORLDS, seed=0) as env:
        env.reset()
        assert len({row.tobytes() for row in per_world(env)}) == 1
        assert len(set(run_alike(env, STEPS))) == WORLDS


def test_different_seeds_differ() -> None:
    histories = set()
    seeds = [0, 1, 2, 3, 2**31, 2**32, 2**32 + 1, 2**63, 2**64 - 1, *range(100, 123)]
    with gridmill.make(crowd(), num_worlds=2) as env:
        for seed in seeds:
            env.reset(seed=seed)
            histories.update(run_alike(env, 20))
    assert len(histories) == 2 * len(seeds)


def test_seed_and_world_do_not_add_up() -> None:
    """World w of seed s is not world w + 1 of seed s - 1: neighbours in one run are no neighbours in the next."""
    maps = {}
    with gridmill.make("toy", num_worlds=16) as env:
        for seed in range(16):
            env.reset(seed=seed)
            for world, row in enumerate(per_world(env)):
                maps[seed, world] = row.tobytes()
    assert len(set(maps.values())) == 256


def test_the_same_seed_starts_the_same_worlds() -> None:
    with gridmill.make("toy", num_worlds=4) as env:
        env.reset(seed=5)
        first = run_alike(env, 20)
        env.reset(seed=6)
        second = run_alike(env, 20)
        env.reset(seed=5)
        assert run_alike(env, 20) == first
        assert not set(first) & set(second)


def test_episodes_of_one_world_differ() -> None:
    """Every episode draws its own map, by auto-reset and by reset() without a seed alike."""
    game = gridmill.games.toy(num_agents=4, map_size=12, density=0.2, max_steps=3)
    maps = []
    with gridmill.make(game, num_worlds=1, seed=0) as env:
        env.reset()
        for episode, _ in itertools.product(range(20), range(3)):
            if env.inspect(0)["tick"] == 0:
                maps.append(str(env.inspect(0)["objects"]))
                assert env.inspect(0)["episode"] == episode
            env.step()
        env.reset()
        assert env.inspect(0)["episode"] == 21
        maps.append(str(env.inspect(0)["objects"]))
    assert len(set(maps)) == len(maps) == 21


def test_start_places_are_spread() -> None:
    """An agent starts in each quarter of a free map about as often as in the others."""
    game = gridmill.games.toy(num_agents=1, map_size=12, density=0.0)
    with gridmill.make(game, num_worlds=2_000, seed=1) as env:
        env.reset()
        counts = np.zeros(4, int)
        for world in range(env.num_worlds):
            agent = agents_of(env.inspect(world))[0]
            counts[2 * (agent["row"] > 5) + (agent["column"] > 5)] += 1
    assert counts.min() > 400, counts  # 500 expected, 19 the standard deviation
