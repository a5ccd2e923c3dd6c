"""The same seed in two processes gives the same bytes: 1 000 steps of 64 worlds of every shipped game; long: of 256.

Run as a program it prints the hashes of such trajectories of so many worlds.
"""

from __future__ import annotations

import functools
import os
import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "support"))

from random_games import Digest, scripted_actions

import gridmill

pytestmark = pytest.mark.D1

STEPS = 1_000


def trajectory_hash(name: str, num_worlds: int) -> str:
    """Everything the env shows, over episodes that end at different times."""
    digest = Digest()
    game = gridmill.games.build(name)
    if isinstance(game, gridmill.Game):
        game = game.replace("max_steps", min(game.max_steps, STEPS))
    with gridmill.make(game, num_worlds=num_worlds, seed=7, desync_episodes=True) as env:
        env.reset()
        digest.add_arrays(env)
        ended = 0
        for step in range(STEPS):
            env.step(scripted_actions(step, env.num_rows, env.num_actions))
            digest.add_arrays(env)
            ended += int((env.terminals | env.truncations).sum())
        assert ended >= env.num_rows  # so final_obs and episode records are part of the hash
        digest.add_episodes(env)
        digest.sha.update(env.state_hash().tobytes())
    return digest.hex()


@functools.cache
def hashes_of_two_processes(num_worlds: int) -> list[dict[str, str]]:
    """The hash of each game, as two processes found them side by side."""
    running = [
        subprocess.Popen(
            [sys.executable, __file__, str(num_worlds)],
            stdout=subprocess.PIPE,
            text=True,
            env=os.environ | {"PYTHONHASHSEED": hash_seed},
        )
        for hash_seed in ("1", "2")
    ]
    said = [process.communicate()[0] for process in running]
    assert [process.returncode for process in running] == [0, 0]
    return [dict(line.split() for line in text.splitlines()) for text in said]


@pytest.mark.xdist_group("two processes")
@pytest.mark.parametrize("name", gridmill.games.names())
@pytest.mark.parametrize("num_worlds", [64, pytest.param(256, marks=[pytest.mark.long, pytest.mark.timeout(3_600)])])
def test_two_processes_agree(name: str, num_worlds: int) -> None:
    first, second = hashes_of_two_processes(num_worlds)
    assert len(first[name]) == 64
    assert first[name] == second[name]


if __name__ == "__main__":
    for game in gridmill.games.names():
        print(game, trajectory_hash(game, int(sys.argv[1])))
