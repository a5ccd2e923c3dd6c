"""Workers of a sweep that are killed or stopped: no trial is lost, none counted twice, and the result is the same."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import Any, ClassVar

import psutil
import pytest
from postgres import server
from tiny import SUPPORT, epochs_of
from typer.testing import CliRunner
from warm import Popen

from gridmill.cli import app
from gridmill.workshop.sweep import command, record, worker

pytest.importorskip("optuna")
pytestmark = pytest.mark.R14

SPACE = ("optimizer.learning_rate=log(1e-4,1e-2)", "policy.core=choice(none,scan)")
WORDS = ["sweep", f"{SUPPORT / 'tiny.py'}:tiny", *SPACE, "checkpoint.epochs=2"]
EPOCHS = 12
LENGTH = f"trainer.total_timesteps={EPOCHS * 128}"


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


Begin = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture
def begun(request: pytest.FixtureRequest) -> Iterator[Begin]:
    """Begins a sweep in a process of its own, fresh in the long tier and forked on every change; none is left when the
    test is over, whatever its end.
    """
    processes: list[subprocess.Popen[str]] = []
    popen: Any = subprocess.Popen if request.node.get_closest_marker("long") else Popen

    def begin(*words: str) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "gridmill", *WORDS, LENGTH, *words]
        environment = os.environ | {"OMP_NUM_THREADS": "1"}
        processes.append(popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment))
        return processes[-1]

    yield begin
    for process in processes:
        if process.poll() is None:
            process.kill()
            process.communicate()


def wait_for(found: Callable[[], bool], process: subprocess.Popen[str]) -> None:
    until = time.monotonic() + 1_200  # a hang, whatever else the machine does
    while not found():
        assert process.poll() is None, process.communicate()[0]
        assert time.monotonic() < until, "it did not come so far"
        time.sleep(0.03)


def trained_by(process: psutil.Process) -> Path | None:
    """The run that a worker has open, once it has a checkpoint."""
    try:
        files = [Path(file.path) for file in process.open_files()]
    except (psutil.Error, OSError):
        return None
    runs = [file.parent for file in files if file.name == "metrics.jsonl"]
    return next((run for run in runs if any((run / "checkpoints").glob("epoch-????????"))), None)


def others(process: subprocess.Popen[str]) -> Iterator[psutil.Process]:
    for child in psutil.Process(process.pid).children():
        with suppress(psutil.Error):  # others come and go
            if any("beside" in word for word in child.cmdline()):
                yield child


def whole(name: str, trials: int, folder: str = "runs") -> record.State:
    """The state of a sweep of which every trial was made once, from its first epoch to its last."""
    state = record.read(Path(folder) / name)
    assert [trial.number for trial in state.trials] == list(range(trials))
    assert {trial.state for trial in state.trials} == {"done"}
    runs = sorted(path for path in (Path(folder) / name).glob("trial-*"))
    assert [run.name for run in runs if ".before-" not in run.name] == [f"trial-{k:04}" for k in range(trials)]
    for run in runs:
        if ".before-" not in run.name:
            assert [epoch["epoch"] for epoch in epochs_of(run)] == list(range(1, EPOCHS + 1)), run
    return state


def test_a_sweep_that_was_killed_goes_on_with_the_same_command_and_finds_the_same(begun: Begin) -> None:
    undisturbed = CliRunner().invoke(app, [*WORDS, LENGTH, "--trials", "2", "--runs-dir", "other"])
    assert undisturbed.exit_code == 0, undisturbed.output
    process = begun("--trials", "2")
    here = psutil.Process(process.pid)
    wait_for(lambda: (run := trained_by(here)) is not None and run.name == "trial-0001", process)
    process.kill()
    process.communicate()
    assert CliRunner().invoke(app, ["sweep", "runs/tiny-sweep"]).exit_code == 0
    again = CliRunner().invoke(app, [*WORDS, LENGTH, "--trials", "2"])
    assert again.exit_code == 0, again.output
    assert "resumed after epoch" in Path("runs/tiny-sweep/trial-0001/log.txt").read_text()
    mine, theirs = whole("tiny-sweep", 2), whole("tiny-sweep", 2, "other")
    for one, other in zip(mine.trials, theirs.trials, strict=True):
        assert (one.settings, one.scores, one.value) == (other.settings, other.scores, other.value)
        assert one.curve == other.curve


def killed_worker(begun: Begin, trials: int, *words: str) -> None:
    """Two workers, one of them killed in the middle of a trial; the other takes it up and does the rest."""
    process = begun("--workers", "2", "--trials", str(trials), *words)
    lost: list[Path] = []

    def at_work() -> bool:
        for child in others(process):
            run = trained_by(child)
            if run is not None:
                lost.append(run)
                child.kill()
                return True
        return False

    wait_for(at_work, process)
    said, _ = process.communicate(timeout=3_000)
    assert process.returncode == 0, said
    assert "1 of 2 workers died (SIGKILL); the others completed their trials" in said
    whole("tiny-sweep", trials)
    assert "resumed after epoch" in lost[0].joinpath("log.txt").read_text()


@pytest.mark.long  # on every change a whole sweep is killed
def test_a_killed_worker_leaves_its_trial_to_the_other(begun: Begin) -> None:
    killed_worker(begun, 5)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_stop_leaves_the_trial_to_the_same_command(number: signal.Signals, monkeypatch: pytest.MonkeyPatch) -> None:
    look, sent = worker.Worker._look, list[int]()

    def stopping(self: worker.Worker, trial: Any, run: Any, place: int, metrics: Any) -> str:
        if (trial.number, metrics["epoch"]) == (1, 3) and not sent:
            sent.append(number)
            os.kill(os.getpid(), number)
        return look(self, trial, run, place, metrics)

    monkeypatch.setattr(worker.Worker, "_look", stopping)
    words = [*WORDS, LENGTH, "--trials", "2"]
    result = CliRunner().invoke(app, words)
    assert result.exit_code == 128 + number, result.output
    assert "stopped; the same command continues the sweep:" in result.stdout
    assert [trial.state for trial in record.read(Path("runs/tiny-sweep")).trials] == ["done", "running"]
    assert "not all trials have ended" in CliRunner().invoke(app, ["sweep", "tiny-sweep"]).stdout
    again = CliRunner().invoke(app, words)
    assert again.exit_code == 0, again.output
    assert "continues: 2 of 2 trials: 1 done, 1 unfinished" in again.stdout
    assert "resumed after epoch 3" in Path("runs/tiny-sweep/trial-0001/log.txt").read_text()
    whole("tiny-sweep", 2)


class Beside:
    """A further worker that does nothing but end when it is asked to. The signal comes when it has just started."""

    made: ClassVar[list[Beside]] = []

    def __init__(self, words: list[str], **_: object) -> None:
        self.asked = list[int]()
        self.returncode = 0
        self.made.append(self)
        os.kill(os.getpid(), signal.SIGTERM)

    def poll(self) -> int | None:
        return -signal.SIGTERM if self.asked else None

    def send_signal(self, number: int) -> None:
        self.asked.append(number)


def test_a_stop_while_the_other_workers_start_ends_them_too(monkeypatch: pytest.MonkeyPatch) -> None:
    heard = list[int]()
    before = signal.signal(signal.SIGTERM, lambda number, frame: heard.append(number))  # not of the tests
    monkeypatch.setattr(command.subprocess, "Popen", Beside)
    Beside.made.clear()
    try:
        result = CliRunner().invoke(app, [*WORDS, LENGTH, "--trials", "2", "--workers", "2"])
    finally:
        signal.signal(signal.SIGTERM, before)
    assert (result.exit_code, heard) == (143, []), result.output
    assert "stopped; the same command continues the sweep:" in result.stdout
    assert [each.asked for each in Beside.made] == [[signal.SIGTERM]]
    assert record.read(Path("runs/tiny-sweep")).trials == []


@pytest.mark.long
@pytest.mark.timeout(3_600)
def test_a_stop_saves_the_trials_of_all_workers_and_the_same_command_continues(begun: Begin) -> None:
    process = begun("--workers", "2", "--trials", "6")
    wait_for(lambda: any(trained_by(child) is not None for child in others(process)), process)
    children = list(others(process))
    process.send_signal(signal.SIGINT)
    said, _ = process.communicate(timeout=300)
    assert process.returncode == 130, said
    assert "stopped; the same command continues the sweep:" in said
    assert not any(child.is_running() and child.status() != psutil.STATUS_ZOMBIE for child in children)
    again = CliRunner().invoke(app, [*WORDS, LENGTH, "--trials", "6"])
    assert again.exit_code == 0, again.output
    whole("tiny-sweep", 6)


@pytest.mark.long
@pytest.mark.timeout(3_600)
def test_workers_leave_when_their_command_is_killed(begun: Begin) -> None:
    process = begun("--workers", "2", "--trials", "6")
    wait_for(lambda: any(trained_by(child) is not None for child in others(process)), process)
    (child,) = others(process)
    process.kill()
    process.communicate()
    child.wait(timeout=120)
    again = CliRunner().invoke(app, [*WORDS, LENGTH, "--trials", "6"])
    assert again.exit_code == 0, again.output
    whole("tiny-sweep", 6)


@pytest.mark.long
@pytest.mark.timeout(3_600)
@pytest.mark.parametrize("kind", ["SQLite", "journal", "PostgreSQL"])
def test_thirty_trials_with_two_workers_one_of_them_killed(kind: str, begun: Begin) -> None:
    with server() if kind == "PostgreSQL" else nullcontext("shared/s.journal" if kind == "journal" else "") as url:
        killed_worker(begun, 30, *(["--storage", url] if url else []))
        if kind == "PostgreSQL":  # a second host: another folder, the same storage; nothing is left for it to do
            words = [*WORDS, LENGTH, "--trials", "31", "--storage", url, "--runs-dir", "second"]
            joined = CliRunner().invoke(app, words)
            assert joined.exit_code == 0, joined.output
            assert "continues: 30 of 31 trials: 30 done" in joined.stdout
            assert [path.name for path in Path("second/tiny-sweep").glob("trial-*")] == ["trial-0030"]
            assert len(record.read(Path("second/tiny-sweep")).trials) == 31
