"""The command lines of the performance documents that people come from, one by one: ours, and how it ends.

docs/older-words.md has the same table; here every line of it is run, as small as it can be.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner
from warm import FORKED

from gridmill.cli import app
from gridmill.workshop import machine

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "older-words.md").read_text()
BENCH = "--iterations 3 --rounds 3 --warmup 0"
CI = "trainer.batch_size=768 trainer.minibatch_size=384 trainer.bptt_horizon=16 policy.hidden=16"
HUB = "trainer.num_worlds=4 trainer.batch_size=1024 trainer.minibatch_size=512 policy.hidden=16"
FAST = "trainer.num_worlds=8 trainer.batch_size=512 trainer.minibatch_size=256 trainer.total_timesteps=512"

# Theirs, ours, what makes it small, and how it may end (a benchmark of three rounds is seldom steady: 1).
LINES = [
    ("perf_benchmark.py", "bench step", BENCH, (0, 1)),
    ("perf_benchmark.py --profile", "bench step --profile", BENCH, (0, 1)),
    (
        "perf_benchmark.py --profile --phase baseline --output results/baseline.json",
        "bench step --profile --phase baseline --output results/baseline.json",
        BENCH,
        (0, 1),
    ),
    (
        "perf_benchmark.py --profile --phase optimized --output results/optimized.json "
        "--baseline results/baseline.json",
        "bench step --profile --phase optimized --output results/optimized.json --baseline results/baseline.json",
        BENCH,
        (0, 1),
    ),
    ("perf_benchmark.py --report results/", "bench step --report results/", "", (0,)),
    ("scripts/profile_multi_config.py", "profile step", "--steps 3 --warmup 1", (0,)),
    (
        "./tools/run.py recipes.experiment.ci.train trainer.total_timesteps=100000 run=perf_baseline",
        "train ci trainer.total_timesteps=100000 run=perf_baseline",
        f"{CI} trainer.total_timesteps=768",
        (0,),
    ),
    ("scripts/run_training_validation.sh smoke", "validate smoke", CI, (0,)),
    ("scripts/run_training_validation.sh 50000", "validate 50000", CI, (0,)),
    ("./run_ultra_fast.sh", "train prospector --preset ultra_fast", FAST, (0,)),
    ("python run_optimized.py", "train prospector --preset ultra_fast", FAST, (0,)),
    (
        "tools/profile_training_throughput.py --target-steps-per-sec 100000 --enforce-target",
        "throughput --mode trainer --target-steps-per-sec 100000 --enforce-target",
        "--worlds 8 --steps 512 --repeats 2 --warmup 0 --target-steps-per-sec 1e12",
        (1,),
    ),
    (
        "recipes/experiment/cvc/profile_thinky_supervised.py",
        "profile train cogsguard_supervised_to_ppo",
        "trainer.num_worlds=2 trainer.batch_size=1024 trainer.minibatch_size=512 policy.hidden=16 --steps 1024",
        (0,),
    ),
    (
        "./tools/run.py cvc.thinky_supervised_to_ppo run=msb_profile supervised_steps=5_000 "
        "trainer.total_timesteps=10_000 trainer.profiler.enabled=True trainer.profiler.wait_steps=2 "
        "trainer.profiler.warmup_steps=2 trainer.profiler.active_steps=4 trainer.profiler.record_shapes=True "
        "evaluator.evaluate_local=False",
        "train extractor_hub_supervised_to_ppo run=msb_profile supervised_steps=5_000 "
        "trainer.total_timesteps=10_000 trainer.profiler.enabled=True trainer.profiler.wait_steps=2 "
        "trainer.profiler.warmup_steps=2 trainer.profiler.active_steps=4 trainer.profiler.record_shapes=True "
        "evaluator.evaluate_local=False",
        f"{HUB} trainer.total_timesteps=1024",
        (0,),
    ),
]


@pytest.fixture(autouse=True)
def _there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A folder for each line, so that none needs another to have run before."""
    monkeypatch.chdir(tmp_path)
    before = dict(os.environ)
    yield
    os.environ.clear()
    os.environ.update(before)


def make_what_is_read(ours: str) -> None:
    """The results of earlier lines that this one reads."""
    if "--report" in ours or "--baseline" in ours:
        words = ["bench", "step", "--phase", "baseline", "--output", "results/baseline.json", *BENCH.split()]
        assert CliRunner().invoke(app, words).exit_code in (0, 1)


@pytest.mark.parametrize(("theirs", "ours", "small", "codes"), LINES, ids=[line[0][:40] for line in LINES])
def test_every_command_line_has_one_of_ours(
    theirs: str, ours: str, small: str, codes: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ours.split() + small.split()
    if words[0] == "throughput":
        monkeypatch.setattr(machine, "subprocess", FORKED)
    if words[0] == "validate":
        words[1] = "768"
    make_what_is_read(ours)
    result = CliRunner().invoke(app, words)
    assert result.exit_code in codes, result.output
    assert f"`{theirs}`" in PAGE, "not in docs/older-words.md"
    assert f"`gridmill {ours}`" in PAGE, "not in docs/older-words.md"
    if "profiler.enabled=True" in ours:  # and what it leaves is where the page says
        assert list(Path().glob("runs/msb_profile/traces/profiler_trace_*.json"))


def test_their_switches_work_and_what_they_leave_is_where_the_page_says(tmp_path: Path) -> None:
    os.environ |= {"METTAGRID_OBS_VALIDATION": "1", "METTAGRID_OBS_USE_OPTIMIZED": "1", "METTAGRID_PROFILING": "1"}
    result = CliRunner().invoke(app, ["train", "ci", "run=prod", *CI.split(), "trainer.total_timesteps=768"])
    assert result.exit_code == 0, result.output
    log = (tmp_path / "runs" / "prod" / "log.txt").read_text()
    assert "GRIDMILL_OBS_USE_OPTIMIZED=1, GRIDMILL_OBS_VALIDATION=1, GRIDMILL_PROFILING=1" in " ".join(log.split())
    assert "core phases during rollouts" in log
    assert "0 mismatches" in log


SCRIPTS = ("perf_benchmark.py", "profile_multi_config.py", "test_perf.sh", "run_training_validation.sh",
           "run_ultra_fast.sh", "run_optimized.py", "benchmark_performance.py", "profile_training_throughput.py",
           "profile_thinky_supervised.py")  # fmt: skip


@pytest.mark.parametrize("name", SCRIPTS)
def test_the_doors_are_thin_and_on_the_page(name: str) -> None:
    text = (ROOT / "scripts" / name).read_text()
    assert f"scripts/{name}" in PAGE
    if name != "test_perf.sh":  # that one also builds
        assert len(text.splitlines()) <= 10
        assert "argparse" not in text
