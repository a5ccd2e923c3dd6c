"""Nothing leaks: memory, threads and file handles stay flat over many envs and many steps."""

from __future__ import annotations

import gc
import resource
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from random_games import num_handles, num_threads, quiet_make, scripted_actions, settled
from tiny import tiny

import gridmill
from gridmill import Game
from gridmill.policy.checkpoint import Checkpoint
from gridmill.runs import resume, train

pytestmark = pytest.mark.S3

PAGE = resource.getpagesize()


def resident() -> int:
    """Bytes of this process in memory."""
    gc.collect()
    return int(Path("/proc/self/statm").read_text().split()[1]) * PAGE


def small() -> Game:
    return gridmill.games.toy(num_agents=4, map_size=12, max_steps=20)


def live_and_die(index: int) -> None:
    """One env's whole life, ended in one of three ways."""
    env = quiet_make(small(), num_worlds=8, seed=index, threads=3, lanes=2, masks=True)
    env.reset()
    for step in range(25):
        env.step(scripted_actions(step, env.num_rows, env.num_actions))
    env.restore(env.save())
    env.take_episodes()
    kept = env.obs
    if index % 3 == 0:
        env.close()
    elif index % 3 == 1:
        env.send(0)
        env.close()
    del env
    assert kept.shape == (32, 200, 3)


def test_fifty_envs_leave_no_thread_and_no_handle() -> None:
    live_and_die(0)
    gc.collect()  # what other tests of this process left behind goes first
    threads, handles = num_threads(), num_handles()
    for index in range(50):
        live_and_die(index)
    gc.collect()
    assert settled(num_threads, threads) <= threads  # fewer where a thread of an earlier test has ended meanwhile
    assert num_handles() <= handles


def test_episodes_nobody_takes_are_dropped_and_counted() -> None:
    """A caller who never asks for records does not collect them for ever: the newest stay, the rest are counted."""
    game = gridmill.games.toy(num_agents=64, map_size=20, max_steps=1, density=0.0)
    with quiet_make(game, num_worlds=64) as env:
        env.reset()
        for _ in range(20):
            env.step()
        taken = env.take_episodes()
        assert len(taken["world"]) == 65_536
        assert env.episodes_dropped == 20 * 64 * 64 - 65_536
        assert taken["episode"].min() == 4
        assert taken["episode"].max() == 19


def slope(sizes: list[int]) -> float:
    """Bytes per sample by least squares."""
    return float(np.polyfit(np.arange(len(sizes)), np.array(sizes, float), 1)[0])


@pytest.mark.long
def test_two_thousand_envs(record_property: Callable[[str, object], None]) -> None:
    for index in range(50):
        live_and_die(index)
    threads, handles, sizes = num_threads(), num_handles(), []
    for index in range(2_000):
        live_and_die(index)
        if index % 100 == 99:
            sizes.append(resident())
    assert settled(num_threads, threads) <= threads  # fewer where a thread of an earlier test has ended meanwhile
    assert num_handles() <= handles
    record_property("figure", f"{slope(sizes) / 100:.0f} bytes an environment")
    assert slope(sizes) < 100 * 1024, sizes  # a kilobyte per env


@pytest.mark.long
@pytest.mark.parametrize("threads", [1, 2])
def test_ten_million_agent_steps(threads: int, record_property: Callable[[str, object], None]) -> None:
    """Less than 1 MB per million, with episodes ending, records taken, states saved and arrays looked at."""
    game = gridmill.games.toy(num_agents=20, map_size=20, max_steps=50)
    with quiet_make(game, num_worlds=50, threads=threads, masks=True, desync_episodes=True) as env:
        env.reset()
        handles, sizes = num_handles(), []
        for step in range(10_000):
            env.step(scripted_actions(step % 97, env.num_rows, env.num_actions))
            if step % 100 == 99:
                env.take_episodes()
                env.restore(env.save([step % 50]), [step % 50])
                env.state_hash()
                env.inspect(0)
                env.decode(0)
            if step % 1_000 == 999:
                sizes.append(resident())
        assert num_handles() == handles
    record_property("figure", f"{slope(sizes[1:]) / 1024:.1f} KB a million steps, {threads} threads")
    assert slope(sizes[1:]) < 2**20, sizes


def test_a_run_lets_go_of_the_checkpoint_it_began_with(tmp_path: Path) -> None:
    """Resumed, or begun with a policy: what was loaded is not kept beside what is trained, worlds and all."""
    kept: list[int] = []

    def look(epoch: Any) -> None:
        gc.collect()
        kept.append(sum(isinstance(thing, Checkpoint) for thing in gc.get_objects()))

    folder = train(tiny(2, run="mine"), tmp_path, panel=False).folder
    resume(folder, ["trainer.total_timesteps=1024"], panel=False, callbacks=[look])
    train(tiny(2, run="next", policy__init_from=str(folder)), tmp_path, panel=False, callbacks=[look])
    assert len(kept) == 8
    assert set(kept) == {0}
