"""Ctrl-C, SIGTERM and closed terminals at random moments: the running update is finished, a checkpoint written, the
command to go on printed, exit code 130, 143 or 129. A second Ctrl-C leaves at once and the last checkpoint stays.

A process of its own (this file, run as a script) forks the runs, so that torch is loaded once.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import pty
import random
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tiny import difference, epochs_of, tiny, without_times
from warm import Popen, Start, fresh, process, warm

from gridmill.config.install import command
from gridmill.policy import checkpoint
from gridmill.runs import train
from gridmill.runs.stop import Stop

pytestmark = pytest.mark.R6

SUPPORT = Path(__file__).parents[1] / "support"
ENDLESS = 1_000_000


def wait_for(what: Callable[[], bool], seconds: float = 120.0) -> None:
    end = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < end, f"nothing came within {seconds} s"
        time.sleep(0.01)


def lines(folder: Path) -> int:
    file = folder / "metrics.jsonl"
    return file.read_bytes().count(b"\n") if file.exists() else 0


def one_run(folder: Path, first: bool) -> None:
    """In a child: train, or go on; its exit code is the run's."""
    from gridmill.runs import resume

    signal.signal(signal.SIGHUP, signal.SIG_DFL)  # tests that are started with nohup would have it ignored
    run = tiny(ENDLESS, run=folder.name)
    result = train(run, folder.parent, panel=False) if first else resume(folder, panel=False)
    os._exit(result.exit_code)


def forked(folder: Path, first: bool, said: Path) -> tuple[int, Callable[[int], None]]:
    """A run whose output goes to a file, and what sends it a signal."""
    child = os.fork()
    if child == 0:
        os.dup2(os.open(said, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), 1)
        one_run(folder, first)
    return child, lambda number: os.kill(child, number)


def at_a_terminal(folder: Path, first: bool, said: Path) -> tuple[int, Callable[[int], None]]:
    """A run that has a terminal, and what closes it: the system sends SIGHUP. What it says later nobody reads."""
    child, terminal = pty.fork()
    if child == 0:
        one_run(folder, first)
    os.set_blocking(terminal, False)

    def close(number: int) -> None:
        with contextlib.suppress(BlockingIOError):
            while os.read(terminal, 4096):
                pass
        os.close(terminal)

    return child, close


def stopped_again_and_again(folder: Path, signals: int, closes: int, seed: int) -> dict[str, int]:
    """Stop a run so often, each time going on from there."""
    draw, longest = random.Random(seed), 0.0
    with contextlib.redirect_stdout(io.StringIO()):
        train(tiny(1), folder.parent, panel=False)  # all that torch loads late is loaded before the forks
    ways = [(signal.SIGINT if number % 2 else signal.SIGTERM, forked) for number in range(signals)]
    ways += [(signal.SIGHUP, at_a_terminal)] * closes
    draw.shuffle(ways)
    for number, (sent, start) in enumerate(ways):
        said, before = folder.parent / "said.txt", lines(folder)
        child, stop = start(folder, number == 0, said)
        wait_for(lambda: lines(folder) > before)  # noqa: B023
        time.sleep(draw.uniform(0.0, 0.1))
        began = time.monotonic()
        stop(sent)
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        longest = max(longest, time.monotonic() - began)
        assert code == 128 + sent, said.read_text()
        found, skipped = checkpoint.newest(folder)
        assert skipped == []
        assert found.epoch == epochs_of(folder)[-1]["epoch"] == lines(folder)  # the epoch that ran was finished
        told = (folder / "log.txt" if sent == signal.SIGHUP else said).read_text().splitlines()
        assert f"resume with: {command('resume', str(folder))}" in told
        assert told[-1] == f"ended: stopped by {signal.Signals(sent).name}"
    return {"signals": signals, "closes": closes, "epochs": lines(folder), "slowest_ms": round(1000 * longest)}


@pytest.mark.R11
@pytest.mark.parametrize(
    ("signals", "closes", "start"), [(20, 10, warm), pytest.param(50, 50, fresh, marks=pytest.mark.long)]
)
def test_a_run_stopped_at_random_moments_is_the_same_run(
    signals: int,
    closes: int,
    start: Start,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    record_property: Callable[[str, object], None],
) -> None:
    """Each time all is saved and said; the run that comes out is the one nobody disturbed."""
    folder = tmp_path / "stopped"
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(SUPPORT), *filter(None, sys.path)]))
    done = start([sys.executable, __file__, str(folder), str(signals), str(closes)], tmp_path)
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    undisturbed = train(tiny(result["epochs"], run="undisturbed"), tmp_path, panel=False).folder
    assert difference(folder, undisturbed) == 0
    for mine, theirs in zip(epochs_of(folder), epochs_of(undisturbed), strict=True):
        assert without_times(mine) | {"total_timesteps": 0} == without_times(theirs) | {"total_timesteps": 0}
    figure = "{signals} signals, {closes} closed terminals, {epochs} epochs, slowest end {slowest_ms} ms"
    record_property("figure", figure.format(**result))


@pytest.mark.R11
def test_a_second_sighup_changes_nothing() -> None:
    """The terminal sends one, and the shell another."""
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)  # it may be ignored here
    told: list[int] = []
    try:
        with Stop(told.append):
            for _ in range(3):
                os.kill(os.getpid(), signal.SIGHUP)
    finally:
        signal.signal(signal.SIGHUP, before)
    assert told == [signal.SIGHUP]


@pytest.mark.R11
def test_a_run_that_is_to_outlive_its_terminal_does() -> None:
    """`nohup gridmill train`: SIGHUP is ignored, and stays so."""
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    told: list[int] = []
    try:
        with Stop(told.append):
            os.kill(os.getpid(), signal.SIGHUP)
        assert signal.getsignal(signal.SIGHUP) == signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, before)
    assert told == []


def test_a_second_ctrl_c_leaves_at_once(tmp_path: Path) -> None:
    """The first waits for the update, which here never ends; the second does not, and what was saved stays."""
    code = (
        "import sys, time\nfrom tiny import tiny\nfrom gridmill.runs import session\n"
        "plain = session.Trainer.epoch\n"
        "def epoch(trainer):\n"
        "    while trainer.epochs == 3:\n        print('HERE', flush=True); time.sleep(0.05)\n"
        "    return plain(trainer)\n"
        "session.Trainer.epoch = epoch\n"
        "session.train(tiny(9, run='mine', checkpoint__epochs=1), sys.argv[1], panel=False)\n"
    )
    with process(code, str(tmp_path)) as child:
        assert child.stdout is not None
        while child.stdout.readline() != "HERE\n":
            assert child.poll() is None
        child.send_signal(signal.SIGINT)
        with pytest.raises(subprocess.TimeoutExpired):
            child.wait(0.5)
        child.send_signal(signal.SIGTERM)  # asks for the same as the first
        with pytest.raises(subprocess.TimeoutExpired):
            child.wait(0.5)
        child.send_signal(signal.SIGINT)
        child.wait(120)  # the update would never end
    assert child.returncode == 130
    assert checkpoint.newest(tmp_path / "mine")[0].epoch == 3


@pytest.mark.parametrize(
    ("popen", "start"), [(Popen, warm), pytest.param(subprocess.Popen, fresh, marks=pytest.mark.long)]
)
def test_the_printed_command_goes_on(popen: Callable[..., Any], start: Start, tmp_path: Path) -> None:
    """The real command, Ctrl-C, and what it prints typed in."""
    place = tmp_path / "a folder"
    place.mkdir()
    run = place / "my runs" / "mine"
    command = ["train", f"{SUPPORT / 'tiny.py'}:tiny", "run=mine", "--runs-dir", "my runs"]
    with popen(
        [sys.executable, "-m", "gridmill", *command, f"trainer.total_timesteps={ENDLESS}"],
        cwd=place,
        stdout=subprocess.PIPE,
        text=True,
    ) as child:
        assert child.stdout is not None
        wait_for(lambda: lines(run) > 0)
        child.send_signal(signal.SIGINT)
        said = child.stdout.read()
    assert child.returncode == 130
    (printed,) = [line.partition(": ")[2] for line in said.splitlines() if line.startswith("resume with: ")]
    wanted = epochs_of(run)[-1]["agent_steps"] + 256
    words = [*shlex.split(printed), f"trainer.total_timesteps={wanted}"]
    assert start(words, place).returncode == 0
    assert epochs_of(run)[-1]["agent_steps"] == wanted


if __name__ == "__main__":
    print(json.dumps(stopped_again_and_again(Path(sys.argv[1]), *map(int, sys.argv[2:]), seed=1)))
