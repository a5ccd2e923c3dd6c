"""Ctrl-C and SIGTERM at random moments: the running update is finished, a checkpoint written, the command to go on
printed, exit code 130 or 143. A second Ctrl-C leaves at once and the last checkpoint stays.

A process of its own (this file, run as a script) forks the runs, so that torch is loaded once.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import random
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from tiny import difference, epochs_of, process, tiny, without_times

from gridmill.policy import checkpoint
from gridmill.runs import train

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


def one_run(folder: Path, first: bool, said: Path) -> None:
    """In a child: train, or go on; its output goes to a file, its exit code is the run's."""
    from gridmill.runs import resume

    os.dup2(os.open(said, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), 1)
    run = tiny(ENDLESS, run=folder.name)
    result = train(run, folder.parent, panel=False) if first else resume(folder, panel=False)
    os._exit(result.exit_code)


def signals_again_and_again(folder: Path, count: int, seed: int) -> dict[str, int]:
    """Stop a run `count` times, each time going on from there."""
    draw, longest = random.Random(seed), 0.0
    with contextlib.redirect_stdout(io.StringIO()):
        train(tiny(1), folder.parent, panel=False)  # all that torch loads late is loaded before the forks
    for number in range(count):
        sent = signal.SIGINT if number % 2 else signal.SIGTERM
        said, before = folder.parent / "said.txt", lines(folder)
        child = os.fork()
        if child == 0:
            one_run(folder, number == 0, said)
        wait_for(lambda: lines(folder) > before)  # noqa: B023
        time.sleep(draw.uniform(0.0, 0.1))
        began = time.monotonic()
        os.kill(child, sent)
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        longest = max(longest, time.monotonic() - began)
        assert code == 128 + sent, said.read_text()
        found, skipped = checkpoint.newest(folder)
        assert skipped == []
        assert found.epoch == epochs_of(folder)[-1]["epoch"] == lines(folder)  # the epoch that ran was finished
        told = said.read_text().splitlines()
        assert f"resume with: gridmill resume {folder}" in told
        assert told[-1] == f"ended: stopped by {signal.Signals(sent).name}"
    return {"signals": count, "epochs": lines(folder), "slowest_ms": round(1000 * longest)}


@pytest.mark.parametrize("signals", [4, pytest.param(50, marks=pytest.mark.long)])
def test_a_run_stopped_at_random_moments_is_the_same_run(
    signals: int, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    """Each time all is saved and said; the run that comes out is the one nobody disturbed."""
    folder = tmp_path / "stopped"
    done = subprocess.run(
        [sys.executable, __file__, str(folder), str(signals)],
        capture_output=True,
        text=True,
        env=os.environ | {"PYTHONPATH": os.pathsep.join([str(SUPPORT), *filter(None, sys.path)])},
    )
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    undisturbed = train(tiny(result["epochs"], run="undisturbed"), tmp_path, panel=False).folder
    assert difference(folder, undisturbed) == 0
    for mine, theirs in zip(epochs_of(folder), epochs_of(undisturbed), strict=True):
        assert without_times(mine) | {"total_timesteps": 0} == without_times(theirs) | {"total_timesteps": 0}
    record_property("figure", "{signals} signals, {epochs} epochs, slowest end {slowest_ms} ms".format(**result))


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
        child.wait(5)
    assert child.returncode == 130
    assert checkpoint.newest(tmp_path / "mine")[0].epoch == 3


def test_the_printed_command_goes_on(tmp_path: Path) -> None:
    """The real command, Ctrl-C, and what it prints typed in."""
    place = tmp_path / "a folder"
    place.mkdir()
    run = place / "my runs" / "mine"
    command = ["train", f"{SUPPORT / 'tiny.py'}:tiny", "run=mine", "--runs-dir", "my runs"]
    with subprocess.Popen(
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
    name, *words = shlex.split(printed)
    assert name == "gridmill"
    wanted = epochs_of(run)[-1]["agent_steps"] + 256
    words.append(f"trainer.total_timesteps={wanted}")
    subprocess.run([sys.executable, "-m", name, *words], cwd=place, check=True, capture_output=True)
    assert epochs_of(run)[-1]["agent_steps"] == wanted


if __name__ == "__main__":
    print(json.dumps(signals_again_and_again(Path(sys.argv[1]), int(sys.argv[2]), seed=1)))
