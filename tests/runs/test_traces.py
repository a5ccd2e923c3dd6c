"""Traces: a run leaves one though it is shorter than what the profiler was told to wait."""

from __future__ import annotations

from pathlib import Path

import pytest
from tiny import tiny

from gridmill import recipes
from gridmill.runs import overrides, train


@pytest.mark.parametrize("epochs", [1, 3, 9])
def test_a_run_of_any_length_leaves_a_trace(epochs: int, tmp_path: Path) -> None:
    profiler = {"enabled": True, "wait_steps": 2, "warmup_steps": 2, "active_steps": 4}
    changes = {f"profiler__{name}": value for name, value in profiler.items()}
    folder = train(tiny(epochs, run="traced", **changes), tmp_path, panel=False).folder
    assert [path.name for path in (folder / "traces").iterdir()] == ["epoch-00000000.json"]


def test_the_profiled_run_from_supervised_to_ppo(tmp_path: Path) -> None:
    """The run that people profile: so short that it ends inside of its first steps, in fewer worlds."""
    words = [
        "run=profile", "supervised_steps=5_000", "trainer.total_timesteps=10_000", "profiler.enabled=True",
        "profiler.wait_steps=2", "profiler.warmup_steps=2", "profiler.active_steps=4", "profiler.record_shapes=True",
        "profiler.rollout_timing=1", "evaluation.enabled=False",
        "trainer.num_worlds=4", "trainer.batch_size=1_024", "trainer.minibatch_size=512",
    ]  # fmt: skip
    run = overrides.apply(recipes.build("extractor_hub_supervised_to_ppo"), words)
    result = train(run, tmp_path, panel=False)
    assert result.exit_code == 0
    assert len(list((result.folder / "traces").glob("*.json"))) == 1
    assert "teacher calls" in (result.folder / "log.txt").read_text()
