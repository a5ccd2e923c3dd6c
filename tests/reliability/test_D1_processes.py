"""D1: the same seed in two processes gives the same bytes: 1 000 steps of 64 worlds of every shipped game.

Run as a program (`python test_D1_processes.py GAME`) it prints the hash of one such trajectory.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1]))

from random_games import Digest, scripted_actions

import gridmill

STEPS, WORLDS = 1_000, 64


def trajectory_hash(name: str) -> str:
    """Everything the env shows, over episodes that end at different times."""
    digest = Digest()
    game = gridmill.games.build(name)
    if isinstance(game, gridmill.Game):
        game = game.replace("max_steps", min(game.max_steps, STEPS))
    with gridmill.make(game, num_worlds=WORLDS, seed=7, desync_episodes=True) as env:
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


@pytest.mark.parametrize("name", gridmill.games.names())
def test_D1_two_processes_agree(name: str) -> None:
    running = [
        subprocess.Popen(
            [sys.executable, __file__, name],
            stdout=subprocess.PIPE,
            text=True,
            env=os.environ | {"PYTHONHASHSEED": hash_seed},
        )
        for hash_seed in ("1", "2")
    ]
    hashes = [process.communicate()[0].strip() for process in running]
    assert [process.returncode for process in running] == [0, 0]
    assert len(hashes[0]) == 64
    assert hashes[0] == hashes[1]


if __name__ == "__main__":
    print(trajectory_hash(sys.argv[1]))
