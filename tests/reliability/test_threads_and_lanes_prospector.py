"""Prospector: results do not depend on threads, lanes, or the order lanes are sent in."""

from __future__ import annotations

import pytest
from random_games import Digest, quiet_make, scripted_actions

from gridmill import Env

pytestmark = pytest.mark.D2

STEPS, WORLDS = 500, 24


def trajectory(threads: int, lanes: int, order: list[int] | None = None) -> tuple[str, bytes, bytes]:
    with quiet_make(
        "prospector", num_worlds=WORLDS, seed=3, threads=threads, lanes=lanes, masks=True, desync_episodes=True
    ) as env:
        env.reset()
        digest, ended = Digest(), 0
        for step in range(STEPS):
            take_step(env, step, order)
            digest.add_arrays(env)
            digest.sha.update(env.step_info.dt.tobytes())
            ended += int((env.terminals | env.truncations).sum())
        assert ended > WORLDS
        digest.add_episodes(env)
        return digest.hex(), env.state_hash().tobytes(), env.rng_states.tobytes()


def take_step(env: Env, step: int, order: list[int] | None) -> None:
    actions = scripted_actions(step, env.num_rows, env.num_actions)
    if order is None:
        env.step(actions)
        return
    env.actions[:] = actions
    for lane in order:
        env.send(lane)
    for lane in reversed(order):
        env.recv(lane)


@pytest.fixture(scope="module")
def alone() -> tuple[str, bytes, bytes]:
    return trajectory(1, 1)


@pytest.mark.parametrize("lanes", [1, 2, 4])
@pytest.mark.parametrize("threads", [1, 2, 4, 8])
def test_prospector_threads_and_lanes_do_not_matter(alone: tuple[str, bytes, bytes], threads: int, lanes: int) -> None:
    assert trajectory(threads, lanes) == alone


@pytest.mark.parametrize("order", [[0, 1, 2, 3], [2, 0, 3, 1]])
@pytest.mark.parametrize("threads", [1, 4])
def test_prospector_order_of_lanes_does_not_matter(
    alone: tuple[str, bytes, bytes], threads: int, order: list[int]
) -> None:
    assert trajectory(threads, 4, order) == alone
