"""Windows of env steps: borders and totals are those of a count made one step at a time."""

from __future__ import annotations

import numpy as np
import pytest

import gridmill
from gridmill.env.episodes import Episodes
from gridmill.env.windows import MetricsWindow, Ticks, Windows, last_step
from gridmill.prospector import ProspectorEnv

WORLDS, STEPS = 5, 300


def actions() -> np.ndarray:
    return np.random.default_rng(1).integers(-2, 71, (STEPS, WORLDS), dtype=np.int32)


def counted_one_by_one(size: int) -> list[MetricsWindow]:
    """Single envs, one step call after the other in the order of rows."""
    envs = [ProspectorEnv(seed=30 + world) for world in range(WORLDS)]
    returns, lengths = [0.0] * WORLDS, [0] * WORLDS
    windows, current = [], MetricsWindow(0)
    for step in actions():
        for world, action in enumerate(step):
            _, reward, terminated, truncated, info = envs[world].step(int(action))
            returns[world] += reward
            lengths[world] += 1
            current.env_steps += 1
            brought = {
                "reward": float(np.float32(reward)),
                "ticks": info["dt"],
                "invalid_actions": info["invalid_action"],
            }
            for name, number in brought.items():
                current.steps[name] = current.steps.get(name, 0.0) + number
            if terminated or truncated:
                current.episodes += 1
                current.records += 1
                info |= {"reward": returns[world], "length": lengths[world]}
                for name in ("reward", "length", "net_profit", "survival", "pirate_encounters", "scan_count"):
                    current.sums[name] = current.sums.get(name, 0.0) + info[name]
                envs[world].reset()
                returns[world], lengths[world] = 0.0, 0
            if current.env_steps == size:
                windows.append(current)
                current = MetricsWindow(current.index + 1)
    return windows


@pytest.mark.parametrize("at_once", [1, 4, 300])
@pytest.mark.parametrize("size", [1, 7, 100, 333, 1_000])
def test_windows_equal_a_count_made_step_by_step(size: int, at_once: int) -> None:
    with gridmill.make("prospector", num_worlds=WORLDS, seed=30) as env:
        env.reset()
        windows, found, waiting = Windows(size), [], list[Ticks]()
        for step in actions():
            env.step(step)
            waiting.append(last_step(env))
            if len(waiting) == at_once:
                found += windows.add(joined(waiting))
                waiting.clear()
    expected = counted_one_by_one(size)
    assert len(found) == len(expected) == WORLDS * STEPS // size
    assert sum(window.episodes for window in found) > 10
    for mine, theirs in zip(found, expected, strict=True):
        exact = ("index", "env_steps", "episodes", "records")
        assert [getattr(mine, name) for name in exact] == [getattr(theirs, name) for name in exact]
        assert mine.steps == pytest.approx(theirs.steps, rel=1e-12, abs=1e-12)
        for name, total in theirs.sums.items():
            assert mine.sums[name] == pytest.approx(total, rel=1e-12)


def joined(parts: list[Ticks]) -> Ticks:
    """Several ticks as one."""

    def along(arrays: list[np.ndarray]) -> np.ndarray:
        return np.concatenate(arrays)

    steps = {name: along([part.steps[name] for part in parts]) for name in parts[0].steps}
    ended = [part.episodes for part in parts if part.episodes]
    episodes = Episodes.joined(ended)
    return Ticks(steps, along([part.ended for part in parts]), episodes)


def test_steps_are_step_calls_and_ticks_have_their_own_name() -> None:
    with gridmill.make("prospector", num_worlds=2, seed=0) as env:
        env.reset()
        windows = Windows(4)
        env.step(np.array([8, 10]))  # three ticks, and an invalid deep scan of one
        assert windows.add(last_step(env)) == []
        env.step(np.array([33, 6]))
        (full,) = windows.add(last_step(env))
    assert (full.env_steps, full.steps["ticks"], full.steps["invalid_actions"]) == (4, 3 + 1 + 2 + 1, 1)
    assert full.means() == {}


def test_records_that_were_dropped_or_are_older_move_no_other() -> None:
    """World 0 ends at its steps 0, 1 and 2, and the oldest record is gone; world 1's record is of an end before."""
    ended = np.array([[True, False], [True, False], [True, False]])
    episodes = Episodes(world=np.array([1, 0, 0]), agent=np.zeros(3, int), length=np.array([99, 10, 20]))
    windows = Windows(2).add(Ticks({"reward": np.ones((3, 2))}, ended, episodes))
    assert [(w.episodes, w.records, w.sums.get("length")) for w in windows] == [(1, 0, None), (1, 1, 10), (1, 1, 20)]


def test_what_cannot_be_counted_is_refused() -> None:
    with pytest.raises(ValueError, match="size: expected env steps >= 1, got 0"):
        Windows(0)
