"""The command lines of the performance documents that people come from, one by one: ours, and how it ends.

docs/older-words.md has the same table; here every line of it is run, as small as it can be, every script is started,
and every other name is looked up there.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
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
THINKY = "trainer.num_worlds=2 trainer.batch_size=1024 trainer.minibatch_size=512 policy.hidden=16 --steps 1024"
FAST = "trainer.num_worlds=8 trainer.batch_size=512 trainer.minibatch_size=256 trainer.total_timesteps=512"
PRESETS = f"prospector {FAST} --seconds 0.01 --seeds 0"
STAMP = "$(date +%Y%m%d_%H%M%S)"
SWITCHED = "METTAGRID_OBS_VALIDATION=1 METTAGRID_OBS_USE_OPTIMIZED=1 bash scripts/run_training_validation.sh"
PROFILED = (
    "supervised_steps=5_000 trainer.total_timesteps=10_000 trainer.profiler.enabled=True "
    "trainer.profiler.wait_steps=2 trainer.profiler.warmup_steps=2 trainer.profiler.active_steps=4 "
    "trainer.profiler.record_shapes=True evaluator.evaluate_local=False"
)

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
        f"./tools/run.py recipes.experiment.ci.train trainer.total_timesteps=100000 run=perf_baseline_{STAMP}",
        f"train ci trainer.total_timesteps=100000 run=perf_baseline_{STAMP}",
        f"{CI} trainer.total_timesteps=768",
        (0,),
    ),
    (f"{SWITCHED} smoke", "validate smoke", CI, (0,)),
    (f"{SWITCHED} soak", "validate soak", CI, (0,)),
    (f"{SWITCHED} 50000", "validate 50000", CI, (0,)),
    ("./run_ultra_fast.sh", "train prospector --preset ultra_fast", FAST, (0,)),
    ("python run_optimized.py", "train prospector --preset ultra_fast", FAST, (0,)),
    ("python benchmark_performance.py", "compare-presets", PRESETS, (0,)),
    (
        "tools/profile_training_throughput.py --target-steps-per-sec 100000 --enforce-target",
        "throughput --mode trainer --target-steps-per-sec 100000 --enforce-target",
        "--worlds 8 --steps 512 --repeats 2 --warmup 0 --target-steps-per-sec 1e12",
        (1,),
    ),
    (
        "recipes/experiment/cvc/profile_thinky_supervised.py",
        "profile train cogsguard_supervised_to_ppo",
        THINKY,
        (0,),
    ),
    (
        f"./tools/run.py cvc.thinky_supervised_to_ppo run=msb_profile base_missions=extractor_hub_30 {PROFILED}",
        f"train extractor_hub_supervised_to_ppo run=msb_profile base_missions=extractor_hub_30 {PROFILED}",
        f"{HUB} trainer.total_timesteps=1024",
        (2,),
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


# Two trainers, started three times: on every change test_stop_and_resume.py has them.
SLOW = ("compare-presets",)
MARKED = [pytest.param(*line, marks=[pytest.mark.long] * (line[1] in SLOW), id=line[0][:40]) for line in LINES]


@pytest.mark.parametrize(("theirs", "ours", "small", "codes"), MARKED)
def test_every_command_line_has_one_of_ours(
    theirs: str, ours: str, small: str, codes: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ours.replace(STAMP, "now").split() + small.split()
    if words[0] in ("throughput", "compare-presets"):
        monkeypatch.setattr(machine, "subprocess", FORKED)
    if words[0] == "validate":
        words[1] = "768"
    make_what_is_read(ours)
    result = CliRunner().invoke(app, words)
    assert result.exit_code in codes, result.output
    (row,) = [line for line in PAGE.splitlines() if line.startswith(f"| `{theirs}` |")]
    assert f"`gridmill {ours}`" in row
    assert tuple(map(int, re.findall(r"\b\d\b", row.split(" | ")[-1])))[: len(codes)] == codes


def test_the_profiled_run_without_its_mission_leaves_the_trace_where_the_page_says() -> None:
    words = ["train", "extractor_hub_supervised_to_ppo", "run=msb_profile", *PROFILED.split(), *HUB.split()]
    result = CliRunner().invoke(app, [*words, "trainer.total_timesteps=1024"])
    assert result.exit_code == 0, result.output
    assert list(Path().glob("runs/msb_profile/traces/profiler_trace_*.json"))
    assert "runs/msb_profile/traces/profiler_trace_*.json" in PAGE


def test_every_name_is_on_the_page() -> None:
    names = (ROOT / "tests" / "data" / "seed_names.txt").read_text().splitlines()
    missing = [name for name in names if not name.startswith("#") and name not in PAGE]
    assert not missing


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


# What makes each small; of those that train a dry run says that the words have come through.
STARTED = {
    "perf_benchmark.py": f"{BENCH} --map-size 12 --agents 2",
    "profile_multi_config.py": "--game toy --steps 3 --warmup 1",
    "run_training_validation.sh": "--help",
    "run_ultra_fast.sh": "trainer.num_worlds=8 --dry-run",
    "run_optimized.py": "trainer.num_worlds=8 --dry-run",
    "benchmark_performance.py": "--help",
    "profile_training_throughput.py": "--help",
    "profile_thinky_supervised.py": "--help",
}


def started(name: str, words: Sequence[str]) -> subprocess.CompletedProcess[str]:
    program = ["bash"] if name.endswith(".sh") else [sys.executable]
    environment = os.environ | {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    file = str(ROOT / "scripts" / name)
    return subprocess.run([*program, file, *words], capture_output=True, text=True, env=environment)


# What trains imports torch, for seconds.
BEGUN = [pytest.param(*one, marks=[pytest.mark.long] * ("--dry-run" in one[1]), id=one[0]) for one in STARTED.items()]


@pytest.mark.parametrize(("name", "words"), BEGUN)
def test_every_script_starts(name: str, words: str) -> None:
    done = started(name, words.split())
    assert done.returncode in ((0, 1) if "result: unstable" in done.stdout else (0,)), done.stderr
    if "--dry-run" in words:
        assert "recipe   prospector" in done.stdout
        assert "trainer.num_worlds = 8" in done.stdout


@pytest.mark.long
@pytest.mark.parametrize("name", ["run_ultra_fast.sh", "run_optimized.py"])
def test_a_recipe_may_come_before_the_settings(name: str) -> None:
    done = started(name, ["toy", "trainer.num_worlds=8", "--dry-run"])
    assert (done.returncode, "recipe   toy" in done.stdout) == (0, True), done.stderr


LONG = {
    "test_perf.sh": (BENCH, (0, 1)),
    "run_training_validation.sh": (f"768 {CI}", (0,)),
    "run_ultra_fast.sh": (FAST, (0,)),
    "run_optimized.py": (FAST, (0,)),
    "benchmark_performance.py": (PRESETS, (0,)),
    "profile_training_throughput.py": ("--worlds 8 --steps 512 --repeats 2 --warmup 0", (0,)),
    "profile_thinky_supervised.py": (THINKY, (0,)),
}


@pytest.mark.long
@pytest.mark.parametrize("name", LONG)
def test_every_script_does_what_it_is_for(name: str) -> None:
    words, codes = LONG[name]
    done = started(name, words.split())
    assert done.returncode in codes, done.stdout + done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("name", SCRIPTS)
def test_the_doors_are_thin_and_on_the_page(name: str) -> None:
    text = (ROOT / "scripts" / name).read_text()
    assert f"scripts/{name}" in PAGE
    if name != "test_perf.sh":  # that one also builds
        assert len(text.splitlines()) <= 10
        assert "argparse" not in text
