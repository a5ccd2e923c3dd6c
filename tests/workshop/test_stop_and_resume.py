"""Every long command of the workshop can be stopped: it leaves its artefact, ends with 130, and goes on with --resume.

A test sends itself the signal in the middle of a piece of work. `tune` has its own beside its other tests.
"""

from __future__ import annotations

import contextlib
import json
import os
import pty
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
from scripted_bench import scripted_bench
from typer.testing import CliRunner, Result

from gridmill.cli import app
from gridmill.train.trainer import Trainer
from gridmill.workshop import ab, artefact, gate, progress, runner, throughput
from gridmill.workshop.bench import train as bench_train

SMALL = ["trainer.batch_size=768", "trainer.minibatch_size=384", "trainer.bptt_horizon=16", "policy.hidden=16"]


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.chdir(tmp_path)
    before = dict(os.environ)
    ignored = signal.signal(signal.SIGINT, signal.default_int_handler)  # as it may be where tests run in the background
    yield
    signal.signal(signal.SIGINT, ignored)
    os.environ.clear()
    os.environ.update(before)


def call(*words: str) -> Result:
    return CliRunner().invoke(app, list(words))


def signalled(real: Callable[..., Any], at: int, number: int = signal.SIGINT) -> Callable[..., Any]:
    """A function that gets a signal in its `at`-th call, once."""
    calls = iter(range(1, 1_000_000))

    def wrapped(*arguments: Any, **more: Any) -> Any:
        if next(calls) == at:
            signal.raise_signal(number)
        return real(*arguments, **more)

    return wrapped


def left(kind: str, result: Result, name: str = "SIGINT") -> Path:
    """The artefact of a command that was stopped; what it said names it."""
    assert result.exit_code == 130, result.output
    path = max(Path("artifacts", kind.replace(" ", "-")).glob("*.json"))
    assert f"continue with --resume {path}" in " ".join(result.stdout.split())
    assert f"stopped by {name} after" in result.stdout
    record = artefact.read(path, kind)
    assert (record["finished"], record["exit_code"]) == (False, 130)
    return path


# ---- bench step, profile step


def test_bench_step_goes_on_where_it_was_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    run = scripted_bench(monkeypatch)
    with monkeypatch.context() as once:
        # a call for the warm-up of each, then a round of each: the third round is finished, the fourth not begun
        once.setattr(runner.Runner, "run", signalled(runner.Runner.run, 7))
        path = left("bench step", run("--sweep", "worlds=1,2", costs=(2.0,)))
    half = artefact.read(path)
    assert [len(one["rounds"]) for one in half["runs"]] == [3, 3]
    assert half["runs"][0]["instructions"] == {"reason": "stopped before they were counted"}
    result = run("--sweep", "worlds=1,2", "--resume", str(path), "--output", "whole.json", costs=(2.0,))
    assert result.exit_code == 0, result.output
    whole = artefact.read(Path("whole.json"), "bench step")
    assert whole["finished"]
    for one, before in zip(whole["runs"], half["runs"], strict=True):
        assert len(one["rounds"]) == 4
        assert one["rounds"][:3] == before["rounds"]
    refused = run("--sweep", "worlds=1,2", "--resume", str(path), "--iterations", "9")
    assert refused.exit_code == 64
    assert refused.stderr == f"gridmill: `{path}` was measured with other settings; start over without --resume\n"


def test_mismatches_before_a_stop_are_not_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    then = {"comparisons": 10, "mismatches": 1, "fast_ns": 10, "reference_ns": 20, "ratio": 2.0, "first_mismatch": "x"}
    now = {"comparisons": 30, "mismatches": 0, "fast_ns": 10, "reference_ns": 60, "ratio": 6.0, "first_mismatch": None}
    both = {"comparisons": 40, "mismatches": 1, "fast_ns": 20, "reference_ns": 80, "ratio": 4.0, "first_mismatch": "x"}
    assert runner.added_validation(now, then) == both
    assert runner.added_validation(now, None) == now
    assert runner.added_validation(None, then) == then


def test_a_stop_before_the_first_round_saves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    run = scripted_bench(monkeypatch)
    monkeypatch.setattr(runner.Runner, "run", signalled(runner.Runner.run, 1, signal.SIGTERM))
    result = run()
    assert result.exit_code == 130
    assert "stopped by SIGTERM before the first round was over; nothing is saved" in result.stdout
    assert not Path("artifacts").exists()


def test_profile_step_goes_on_with_the_games_that_are_left(monkeypatch: pytest.MonkeyPatch) -> None:
    words = ["profile", "step", "--game", "toy", "--game", "prospector", "--steps", "30", "--warmup", "5"]
    with monkeypatch.context() as once:
        once.setattr(runner.Runner, "run", signalled(runner.Runner.run, 17))  # 5 + 10 pieces of toy, then prospector
        path = left("profile step", call(*words))
    (toy,) = artefact.read(path)["games"]
    assert toy["game"] == "toy"
    result = call(*words, "--resume", str(path), "--output", "whole.json")
    assert result.exit_code == 0, result.output
    whole = artefact.read(Path("whole.json"), "profile step")
    assert whole["games"][0] == toy
    assert [one["game"] for one in whole["games"]] == ["toy", "prospector"]
    other = call(*words, "--steps", "31", "--resume", str(path))
    assert (other.exit_code, "was measured with other settings" in other.stderr) == (2, True)


def test_a_second_signal_is_heard() -> None:
    with progress.between_pieces() as stopped:
        signal.raise_signal(signal.SIGINT)
        assert stopped == ["stopped by SIGINT"]
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


# ---- what trains


class Answering:
    """A worker of `bench train` whose every epoch takes a second."""

    def __init__(self, kind: str, run: Any, command: Any = ()) -> None:
        self.run, self.ready = run, {"name": kind, "num_weights": 7}

    def ask(self, question: dict[str, int], needed: Any) -> dict[str, Any]:
        epochs = question["epochs"]
        found = {"epochs": epochs, "agent_steps": epochs * self.run.trainer.batch_size, "cpu_seconds": 1.0 * epochs}
        return found | {"wall_seconds": 1.0 * epochs, "phases": {"rollout": 0.5, "learn": 0.5}, "cpu_phases": {}}

    def close(self) -> None:
        pass


def test_bench_train_drops_the_round_that_was_cut_and_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench_train, "start", Answering)
    words = ["bench", "train", "--rounds", "4", "--recipe", "ci"]
    with monkeypatch.context() as once:
        once.setattr(Answering, "ask", signalled(Answering.ask, 8))  # trainer and env: 2 to warm up, 3 rounds, env cut
        path = left("bench train", call(*words))
    assert [len(taken) for taken in artefact.read(path)["runs"][0]["rounds"].values()] == [2, 2]
    result = call(*words, "--resume", str(path), "--output", "whole.json")
    assert result.exit_code == 0, result.output
    assert [len(taken) for taken in artefact.read(Path("whole.json"))["runs"][0]["rounds"].values()] == [4, 4]


@pytest.mark.parametrize(("mode", "at"), [("env_only", 4), ("trainer", 4)])
def test_throughput_goes_on(mode: str, at: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench_train, "start", Answering)
    words = ["throughput", "--mode", mode, "--worlds", "2", "--steps", "256", "--repeats", "3", "--warmup", "64"]
    of, name = (runner.Runner, "run") if mode == "env_only" else (Answering, "ask")
    with monkeypatch.context() as once:
        once.setattr(of, name, signalled(getattr(of, name), at))
        path = left("throughput", call(*words))
    rounds = artefact.read(path)["rounds"]
    assert len(rounds) == 2
    result = call(*words, "--resume", str(path), "--output", "whole")
    assert result.exit_code == 0, result.output
    (whole,) = Path("whole").glob("*.json")
    assert artefact.read(whole)["rounds"][:2] == rounds
    assert len(artefact.read(whole)["rounds"]) == 3


@pytest.mark.long
def test_throughput_with_evaluation_has_what_was_over_and_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """The training is a process of its own: it is looked at while it runs, and ended."""
    words = ["throughput", "--mode", "trainer_eval", "--worlds", "8", "--steps", "512", "--repeats", "2"]
    words += ["--warmup", "512"]
    real, rounds = throughput.Round, []

    def once(*figures: Any) -> Any:
        rounds.append(real(*figures))
        if len(rounds) == 2:
            signal.raise_signal(signal.SIGTERM)
        return rounds[-1]

    with monkeypatch.context() as patch:
        patch.setattr(throughput, "Round", once)
        path = left("throughput", call(*words), "SIGTERM")
    assert len(artefact.read(path)["rounds"]) == 1
    result = call(*words, "--resume", str(path), "--output", "whole")
    assert result.exit_code == 0, result.output
    (whole,) = Path("whole").glob("*.json")
    assert len(artefact.read(whole)["rounds"]) == 2


class Side:
    """A side of `ab` that trains 1 000 steps in a second."""

    def __init__(self, side: ab.Side, seed: int, phases: bool) -> None:
        self.seed = seed

    def ask(self, order: dict[str, int], needed: Any) -> dict[str, Any]:
        found = {"agent_steps": 1_000 * order["epochs"], "cpu_seconds": 1.0, "wall_seconds": 1.0, "core_ns": {}}
        return found | {"phases": {"rollout": 0.5, "learn": 0.5}, "score": 1.0 + self.seed, "rss": 2**20}

    def close(self) -> None:
        pass


@pytest.mark.parametrize(("at", "pairs"), [(3, 0), (5, 1), (10, 3)])
def test_ab_keeps_the_pairs_of_a_seed_that_was_cut(at: int, pairs: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both sides warm up, then blocks come A B, B A, A B: of a block without its other nothing is kept."""
    monkeypatch.setattr(ab, "start", Side)
    words = ["ab", "ci", "ci", "--seeds", "4", "--blocks", "4", "--no-phases"]
    with monkeypatch.context() as once:
        once.setattr(Side, "ask", signalled(Side.ask, at))
        result = call(*words)
        path = left("ab", result)
    half = artefact.read(path)
    assert f"after 0 of 1 seeds, {pairs} pair{'' if pairs == 1 else 's'} of blocks" in result.stdout
    assert [list(map(len, half["blocks"][side])) for side in "ab"] == 2 * [[pairs] if pairs else []]
    assert half["done_seeds"] == 0
    assert ("ratios" in half) == ("steps per CPU s" in result.stdout) == (pairs > 0)
    whole = call(*words, "--resume", str(path), "--output", "whole.json")
    assert whole.exit_code == 0, whole.output
    assert [list(map(len, artefact.read(Path("whole.json"))["blocks"][side])) for side in "ab"] == [[4], [4]]


def test_compare_presets_goes_on_with_the_seed_that_was_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ab, "start", Side)
    words = ["compare-presets", "prospector", "--seconds", "3", "--seeds", "4,5"]
    with monkeypatch.context() as once:
        once.setattr(Side, "ask", signalled(Side.ask, 10))  # 3 epochs each, then 3 in all of the second seed
        path = left("compare-presets", call(*words))
    half = artefact.read(path)
    assert {preset: [len(epochs) for epochs in seeds] for preset, seeds in half["epochs"].items()} == {
        "baseline": [3, 2],
        "ultra_fast": [3, 1],
    }
    result = call(*words, "--resume", str(path), "--output", "whole.json")
    assert result.exit_code == 0, result.output
    whole = artefact.read(Path("whole.json"))
    assert all(list(map(len, seeds)) == [3, 3] for seeds in whole["epochs"].values())
    assert whole["summary"]["baseline"]["score_after_equal_steps"] == [5.0, 6.0]
    assert "5.500" in result.stdout


def test_gate_goes_on_with_the_games_that_are_left(monkeypatch: pytest.MonkeyPatch) -> None:
    taken = {"instructions": 900.0, "ratio": 8.0, "low": 8.0, "high": 8.0, "ratios": [8.0]}
    monkeypatch.setattr(gate, "measure", lambda game, settings, floor: taken)
    words = ["gate", "--game", "toy", "--game", "arena", "--floors", "floors.json"]
    assert call(*words, "--record").exit_code == 0
    with monkeypatch.context() as once:
        once.setattr(gate, "measure", signalled(gate.measure, 2))
        path = left("gate", call(*words))
    assert list(artefact.read(path)["found"]) == ["toy"]
    asked: list[str] = []
    monkeypatch.setattr(gate, "measure", lambda game, settings, floor: asked.append(game) or taken)
    result = call(*words, "--resume", str(path))
    assert result.exit_code == 0, result.output
    assert asked == ["arena"]
    assert "result: not slower" in result.stdout


# ---- what trains a whole run: the run's own checkpoint is gone on from


def test_validate_counts_on(monkeypatch: pytest.MonkeyPatch) -> None:
    words = ["validate", "3000", *SMALL, "run=v"]
    with monkeypatch.context() as once:
        once.setattr(Trainer, "epoch", signalled(Trainer.epoch, 2))
        first = call(*words)
    assert first.exit_code == 130, first.output
    (path,) = Path("artifacts", "validate").glob("*.json")
    assert f"continue with --resume {path}" in first.stdout
    half = artefact.read(path)
    assert (half["finished"], half["agent_steps"]) == (False, 2 * 768)
    result = call(*words, "--resume", str(path))
    assert result.exit_code == 0, result.output
    whole = artefact.read(max(Path("artifacts", "validate").glob("*.json"), key=lambda file: file.stat().st_mtime_ns))
    assert (whole["finished"], whole["agent_steps"]) == (True, 4 * 768)
    assert whole["validation"]["comparisons"] >= half["validation"]["comparisons"] + 2 * 768
    assert f"equal to the byte, {whole['validation']['comparisons']:,} comparisons in total" in result.stdout


def test_profile_train_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    words = ["profile", "train", "ci", *SMALL, "--steps", "3000", "--rollout-timing", "1", "--active", "1"]
    with monkeypatch.context() as once:
        once.setattr(Trainer, "epoch", signalled(Trainer.epoch, 1))
        first = call(*words)
    assert first.exit_code == 130, first.output
    (path,) = Path("artifacts", "profile-train").glob("*.json")
    assert f"continue with --resume {path}" in first.stdout
    result = call(*words, "--resume", str(path))
    assert result.exit_code == 0, result.output
    (folder,) = Path("runs").iterdir()
    metrics = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    assert [one["epoch"] for one in metrics if "sps" in one] == [1, 2, 3, 4]
    assert "advice" in result.stdout
    assert "profiler_trace_00000000.json" in result.stdout


# ---- what is never continued


@pytest.mark.parametrize(("what", "key"), [("commit", "hash"), ("cpu", "model")])
def test_what_another_build_or_machine_measured_is_not_continued(what: str, key: str, tmp_path: Path) -> None:
    record = artefact.record("gate", 1, {"a": (1, 2)}, {})
    here = record["machine"][what][key]
    path = artefact.write(record, tmp_path / "x.json")
    assert artefact.continued(path, "gate", {"a": (1, 2)})["seed"] == 1
    record["machine"][what][key] = "another"
    artefact.write(record, path)
    with pytest.raises(ValueError) as refused:
        artefact.continued(path, "gate", {"a": (1, 2)})
    said = f"`{path}` was measured with the {what} another, this is {here}; start over without --resume"
    assert str(refused.value) == said


# ---- a closed terminal

AT_TERMINALS = {
    "throughput": "throughput --worlds 4 --steps 2000 --warmup 0 --repeats 1000000 --output artifacts",
    "bench step": "bench step --game toy --worlds 2 --iterations 20 --warmup 1 --rounds 1000000",
}


@pytest.mark.R11
@pytest.mark.parametrize("pause", [None, 0.001, 0.05, 0.3])
@pytest.mark.parametrize("kind", AT_TERMINALS)
def test_a_closed_terminal_leaves_what_was_measured(kind: str, pause: float | None, tmp_path: Path) -> None:
    """Also where a shell sends the signal once more."""
    child, terminal = pty.fork()
    if child == 0:
        signal.signal(signal.SIGHUP, signal.SIG_DFL)  # tests that are started with nohup would have it ignored
        os.execv(sys.executable, [sys.executable, "-P", "-m", "gridmill", *AT_TERMINALS[kind].split()])
    seen = b""
    while not re.search(rb"[1-9]\d* of ", seen):
        seen += os.read(terminal, 4096)
    os.close(terminal)
    if pause is not None:
        time.sleep(pause)
        with contextlib.suppress(ProcessLookupError):
            os.kill(child, signal.SIGHUP)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 130
    (path,) = Path("artifacts").rglob("*.json")
    record = artefact.read(path, kind)
    assert (record["finished"], record["exit_code"]) == (False, 130)


def test_a_training_that_is_measured_ends_with_what_measures_it(tmp_path: Path) -> None:
    """Killed, it can end nothing itself; the training went on at full speed, with nobody to read it."""
    words = "throughput --mode trainer_eval --worlds 8 --steps 100000 --repeats 1000"
    with subprocess.Popen(
        [sys.executable, "-P", "-m", "gridmill", *words.split()], stdout=subprocess.DEVNULL
    ) as parent:
        children: list[psutil.Process] = []
        while not children:
            assert parent.poll() is None
            children = psutil.Process(parent.pid).children()
            time.sleep(0.05)
        parent.kill()
    assert psutil.wait_procs(children, timeout=30)[1] == []


def test_a_closed_terminal_where_there_is_no_output(monkeypatch: pytest.MonkeyPatch) -> None:
    """As under pythonw, or in a service: sys.stdout and sys.stderr are None."""
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    try:
        with monkeypatch.context() as none:
            none.setattr(sys, "stdout", None)
            none.setattr(sys, "stderr", None)
            with progress.between_pieces() as reasons:
                signal.raise_signal(signal.SIGHUP)
        assert reasons == ["stopped by SIGHUP"]
    finally:
        signal.signal(signal.SIGHUP, before)
