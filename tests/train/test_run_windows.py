"""Windows of a run: equal to a count made step by step, wherever they end, over a resume, and in metrics.jsonl."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

import gridmill
from gridmill import recipes
from gridmill.env.windows import MetricsWindow
from gridmill.run import Run
from gridmill.runs import overrides, resume, train
from gridmill.runs.lines import read_records
from gridmill.runs.listing import rows
from gridmill.runs.report import page as report
from gridmill.train.trainer import Trainer

GRID = ["game.max_steps=30", "trainer.num_worlds=4", "trainer.batch_size=6_144", "trainer.minibatch_size=3_072"]
SHIP = ["game.time_max=40", "trainer.num_worlds=6", "trainer.batch_size=384", "trainer.minibatch_size=192"]
EPOCHS = 3


def small(recipe: str, *more: str) -> Run:
    """Rollouts of 64 ticks: 256 env steps of the grid, 384 of the ship."""
    sizes = GRID if recipe == "ci" else SHIP
    small = ["policy.hidden=16", "trainer.bptt_horizon=32", "trainer.threads=1", *sizes, *more]
    return overrides.apply(recipes.build(recipe), small)


@contextmanager
def trainer(run: Run) -> Iterator[Trainer]:
    made = Trainer(run)
    try:
        yield made
    finally:
        made.close()


def counted_one_by_one(run: Run, actions: np.ndarray, size: int) -> list[MetricsWindow]:
    """The same actions in an env of its own, world by world and agent by agent."""
    t, full, current = run.trainer, [], MetricsWindow(0)
    with gridmill.make(run.game, num_worlds=t.num_worlds, seed=run.seed, desync_episodes=True, signal=t.signal) as env:
        brought = {"reward": env.rewards} | ({} if env.signal is None else {"signal": env.signal})
        env.reset()
        for tick in actions:
            env.step(tick)
            episodes = env.take_episodes()
            for world in range(env.num_worlds):
                current.env_steps += 1
                mine = range(world * env.num_agents, (world + 1) * env.num_agents)
                for name, column in brought.items():
                    current.steps[name] = current.steps.get(name, 0.0) + sum(float(column[row]) for row in mine)
                current.episodes += bool(env.terminals[mine[0]] or env.truncations[mine[0]])
                for record in np.flatnonzero(episodes["world"] == world):
                    current.records += 1
                    for name in ("length", *env.stat_names):
                        current.sums[name] = current.sums.get(name, 0.0) + float(episodes[name][record])
                if current.env_steps == size:
                    full.append(current)
                    current = MetricsWindow(current.index + 1)
    return full


# Several in a rollout, one that ends with it, and some that span rollouts.
@pytest.mark.parametrize(("recipe", "size"), [("ci", 1), ("ci", 50), ("ci", 256), ("ci", 300), ("prospector", 101)])
def test_windows_equal_a_count_made_step_by_step(recipe: str, size: int) -> None:
    run, found, actions = small(recipe, f"trainer.window_env_steps={size}"), [], []
    with trainer(run) as made:
        for _ in range(EPOCHS):
            made.epoch()
            found += made.full_windows
            actions.append(made.experience.actions.numpy().copy())
    expected = counted_one_by_one(run, np.concatenate(actions), size)
    assert len(found) == len(expected) > 1
    assert sum(window.episodes for window in found) > 4
    for mine, theirs in zip(found, expected, strict=True):
        exact = ("index", "env_steps", "episodes", "records")
        assert [getattr(mine, name) for name in exact] == [getattr(theirs, name) for name in exact]
        assert mine.steps == pytest.approx(theirs.steps, rel=1e-12, abs=1e-12)
        assert mine.sums == pytest.approx(theirs.sums, rel=1e-12, abs=1e-12)


def test_a_resumed_run_closes_the_same_windows() -> None:
    run = small("ci", "trainer.window_env_steps=300")
    with trainer(run) as whole, trainer(run) as second:
        whole.epoch()
        second.restore(whole.weights(), whole.tensors(), whole.last)
        for _ in range(2):
            whole.epoch()
            second.epoch()
            assert whole.full_windows == second.full_windows != []


def test_another_size_begins_a_new_window() -> None:
    with trainer(small("ci", "trainer.window_env_steps=300")) as first:
        first.epoch()
        saved = first.weights(), first.tensors(), first.last
    with trainer(small("ci", "trainer.window_env_steps=100")) as second:
        second.restore(*saved)
        second.epoch()
        assert [(w.index, w.env_steps) for w in second.full_windows] == [(1, 100), (2, 100)]
    with trainer(small("ci")) as off:
        off.restore(*saved)
        off.epoch()
        assert off.full_windows == []
        saved = off.weights(), off.tensors(), off.last
    with trainer(small("ci", "trainer.window_env_steps=100")) as third:
        third.restore(*saved)
        third.epoch()
        assert [w.index for w in third.full_windows] == [0, 1]


def test_windows_are_lines_of_the_metrics(tmp_path: Path) -> None:
    """Also after a resume; the report and the list of runs go on without them."""
    more = ["run=w", "trainer.window_env_steps=100", "trainer.total_timesteps=12_288", "checkpoint.epochs=1"]
    train(small("ci", *more), runs_dir=tmp_path, panel=False)
    resume(tmp_path / "w", ["trainer.total_timesteps=18_432"], panel=False)
    records = read_records(tmp_path / "w" / "metrics.jsonl")
    windows = [record["window"] for record in records if "window" in record]
    assert [window["index"] for window in windows] == list(range(7))
    assert {window["env_steps"] for window in windows} == {100}
    assert any(window["means"].get("heart.get") is not None for window in windows)
    assert [record["epoch"] for record in records if "window" not in record] == [1, 2, 3]
    assert "window" not in records[-1]
    assert rows(tmp_path)[0].agent_steps == 18_432
    page = report.write(tmp_path / "w").read_text()
    without = [line for line in (tmp_path / "w" / "metrics.jsonl").read_text().splitlines() if '"window"' not in line]
    (tmp_path / "w" / "metrics.jsonl").write_text("\n".join(without) + "\n")
    assert report.write(tmp_path / "w").read_text() == page
