"""Windows of env steps: borders and totals are those of a count made one step at a time."""

from __future__ import annotations

import numpy as np
import pytest

import gridmill
from gridmill.prospector import ProspectorEnv
from gridmill.windows import Window, Windows

WORLDS, STEPS = 5, 300


def actions() -> np.ndarray:
    return np.random.default_rng(1).integers(-2, 71, (STEPS, WORLDS), dtype=np.int32)


def counted_one_by_one(size: int) -> list[Window]:
    """Single envs, one step call after the other in the order of rows."""
    envs = [ProspectorEnv(seed=30 + world) for world in range(WORLDS)]
    returns, lengths = [0.0] * WORLDS, [0] * WORLDS
    windows, current = [], Window(0)
    for step in actions():
        for world, action in enumerate(step):
            _, reward, terminated, truncated, info = envs[world].step(int(action))
            returns[world] += reward
            lengths[world] += 1
            current.env_steps += 1
            current.ticks += info["dt"]
            current.invalid_actions += info["invalid_action"]
            current.reward += float(np.float32(reward))
            if terminated or truncated:
                current.episodes += 1
                info |= {"reward": returns[world], "length": lengths[world]}
                for name in ("reward", "length", "net_profit", "survival", "pirate_encounters", "scan_count"):
                    current.sums[name] = current.sums.get(name, 0.0) + info[name]
                envs[world].reset()
                returns[world], lengths[world] = 0.0, 0
            if current.env_steps == size:
                windows.append(current)
                current = Window(current.index + 1)
    return windows


@pytest.mark.parametrize("size", [1, 7, 100, 333, 1_000])
def test_windows_equal_a_count_made_step_by_step(size: int) -> None:
    with gridmill.make("prospector", num_worlds=WORLDS, seed=30) as env:
        env.reset()
        windows, found = Windows(env, size), []
        for step in actions():
            env.step(step)
            found += windows.add()
    expected = counted_one_by_one(size)
    assert len(found) == len(expected) == WORLDS * STEPS // size
    assert sum(window.episodes for window in found) > 10
    for mine, theirs in zip(found, expected, strict=True):
        exact = ("index", "env_steps", "ticks", "invalid_actions", "episodes")
        assert [getattr(mine, name) for name in exact] == [getattr(theirs, name) for name in exact]
        assert mine.reward == pytest.approx(theirs.reward, rel=1e-12)
        for name, total in theirs.sums.items():
            assert mine.sums[name] == pytest.approx(total, rel=1e-12)


def test_steps_are_step_calls_and_ticks_have_their_own_name() -> None:
    with gridmill.make("prospector", num_worlds=2, seed=0) as env:
        env.reset()
        windows = Windows(env, 4)
        env.step(np.array([8, 10]))  # three ticks, and an invalid deep scan of one
        assert windows.add() == []
        env.step(np.array([33, 6]))
        (full,) = windows.add()
    assert (full.env_steps, full.ticks, full.invalid_actions) == (4, 3 + 1 + 2 + 1, 1)
    assert full.means() == {}


def test_what_cannot_be_counted_is_refused() -> None:
    with gridmill.make("prospector", num_worlds=1) as env, pytest.raises(ValueError, match="size: expected env steps"):
        Windows(env, 0)
    with gridmill.make("toy", num_worlds=1) as env, pytest.raises(ValueError, match="one agent, got 20 agents"):
        Windows(env, 10)
