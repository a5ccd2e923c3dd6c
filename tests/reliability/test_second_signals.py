"""A second Ctrl-C or SIGTERM ends the process within a second, also where Python cannot hear of it: inside a call of
the core that has released the interpreter, in one that has not, in a thread pool, and in plain Python.
"""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from checkpoints import assert_whole
from warm import Popen, process

from gridmill.policy import checkpoint

pytestmark = pytest.mark.R13

# Each takes minutes, in one call; `HERE` comes before it.
LONG_CALLS = {
    "without the interpreter": "from gridmill import _native; HERE(); _native.memcpy_limit(100, 100, 600.0)",
    "with the interpreter": "HERE(); (3 ** (10 ** 8)) ** 9",
    "python": "HERE()\nwhile True: pass",
    "threads": (
        "import gridmill\n"
        "env = gridmill.make('toy', num_worlds=4096, threads=2, validation=True)\n"
        "HERE()\n"
        "env.reset()\n"
        "while True: env.step()"
    ),
}
# What a run is in at any moment, again and again; `FOLDER` is an empty one.
MOMENTS = {
    "compile": (
        "import gridmill\ngame = gridmill.games.build('cogsguard')\nHERE()\n"
        "while True: gridmill.make(game, num_worlds=1).close()"
    ),
    "reset": (
        "import gridmill\nenv = gridmill.make('navigation', num_worlds=256, threads=2)\nHERE()\nwhile True: env.reset()"
    ),
    "tick": (
        "import gridmill\nenv = gridmill.make('arena', num_worlds=256)\nenv.reset()\nHERE()\nwhile True: env.step()"
    ),
    "explain": "import gridmill\ngame = gridmill.games.build('arena')\nHERE()\nwhile True: game.explain(None)",
    "evaluation": (
        "from gridmill.evaluate import evaluate\nHERE()\nwhile True: evaluate('toy', 'random', episodes=10_000, seed=1)"
    ),
    "save": (
        "from pathlib import Path\nfrom itertools import count\nfrom checkpoints import save_epoch\n"
        "save_epoch(Path(FOLDER), 0)\nHERE()\n"
        "for epoch in count(1): save_epoch(Path(FOLDER), epoch, floats=1 << 20)"
    ),
}
BEFORE = """
import signal, sys
FOLDER = sys.argv[-1]
from gridmill import _native
def HERE(): print("HERE", flush=True)
stop = []
def handle(number, frame):  # as a run does it: the first is noted, whatever else is to be done is done
    stop.append(number)
for number in (signal.SIGINT, signal.SIGTERM): signal.signal(number, handle)
_native.leave_on_second_signal(True)
"""


def seconds_to_end(
    code: str, number: signal.Signals, wait: float, folder: Path, popen: Callable[..., Any]
) -> tuple[int, float]:
    """The exit code of a process that got a signal twice, and how long it took after the second."""
    child = process(BEFORE + code, str(folder), popen=popen)
    try:
        assert child.stdout is not None
        assert child.stdout.readline() == "HERE\n"
        time.sleep(wait)
        child.send_signal(number)
        time.sleep(0.2)
        assert child.poll() is None  # the first is only noted
        sent = time.monotonic()
        return send_until_it_ends(child, number), time.monotonic() - sent
    finally:
        child.kill()
        child.wait()
        if child.stdout is not None:
            child.stdout.close()


def send_until_it_ends(child: Popen | subprocess.Popen[str], number: signal.Signals) -> int:
    """A second signal, and again: one that comes before the first was delivered is lost in it, on a busy machine."""
    for _ in range(60):
        child.send_signal(number)
        with suppress(subprocess.TimeoutExpired):
            return child.wait(timeout=0.5)
    return child.wait(timeout=1)


def signals_at_random_moments(
    calls: Sequence[str], count: int, seed: int, folder: Path, popen: Callable[..., Any] = Popen
) -> float:
    draw, slowest = random.Random(seed), 0.0
    for i in range(count):
        place = folder / str(i)
        place.mkdir()
        number = draw.choice([signal.SIGINT, signal.SIGTERM])
        exit_code, seconds = seconds_to_end(calls[i % len(calls)], number, draw.uniform(0.0, 0.3), place, popen)
        assert exit_code == 128 + number
        slowest = max(slowest, seconds)
        if list(place.iterdir()):  # what was saved is there, whole
            found, skipped = checkpoint.newest(place)
            assert skipped == []
            assert_whole(found, 1 << 20 if found.epoch else 64)
    return slowest


def test_a_second_signal_ends_any_call(tmp_path: Path, record_property: Callable[[str, object], None]) -> None:
    calls = list(LONG_CALLS.values())
    slowest = signals_at_random_moments(calls, len(calls), 1, tmp_path)
    record_property("figure", f"slowest end {1000 * slowest:.0f} ms")


@pytest.mark.long
def test_fifty_second_signals(tmp_path: Path, record_property: Callable[[str, object], None]) -> None:
    slowest = signals_at_random_moments([*LONG_CALLS.values(), *MOMENTS.values()], 50, 2, tmp_path, subprocess.Popen)
    assert slowest < 1.0
    record_property("figure", f"50 signals, slowest end {1000 * slowest:.0f} ms")


@pytest.mark.parametrize(
    ("within", "number"),
    [
        ("nullcontext", signal.SIGINT),
        ("stoppable", signal.SIGINT),
        ("stoppable", signal.SIGTERM),
        ("between_pieces", signal.SIGINT),
        ("between_pieces", signal.SIGTERM),
    ],
)
def test_a_command_is_left_with_the_second_signal(within: str, number: signal.Signals) -> None:
    """As `gridmill` begins, and in what measures: the first signal waits for the call to come back, the second does not."""
    code = (
        "import signal\nfrom contextlib import nullcontext\nfrom gridmill import _native\n"
        "from gridmill.cli import app, main\nfrom gridmill.workshop.progress import between_pieces, stoppable\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"  # a shell's background job ignores it
        "@app.command()\ndef wait():\n"
        f"    with {within}(): print('HERE', flush=True); _native.memcpy_limit(100, 100, 600.0)\n"
        "main(['wait'])"
    )
    child = process(code)
    try:
        assert child.stdout is not None
        assert child.stdout.readline() == "HERE\n"
        time.sleep(0.2)
        child.send_signal(number)
        time.sleep(0.2)
        assert child.poll() is None
        assert send_until_it_ends(child, number) == 128 + number
    finally:
        child.kill()
        child.wait()
        if child.stdout is not None:
            child.stdout.close()


def test_nobody_listens_any_more_when_told_so() -> None:
    code = (
        BEFORE + "assert _native.leave_on_second_signal(False)\nassert not _native.leave_on_second_signal(False)\n"
        "import os, time\n"
        "for _ in range(3): os.kill(os.getpid(), signal.SIGINT)\n"
        "time.sleep(0.6)\n"
        "assert len(stop) >= 1\nprint('still here')"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "still here\n")


def test_who_comes_back_in_time_goes_on() -> None:
    """Turned off after the second signal: nothing ends the process later, and SIGALRM is whose it was."""
    code = (
        BEFORE + "import os, time\n"
        "rung = []\n"
        "signal.signal(signal.SIGALRM, lambda number, frame: rung.append(number))\n"
        "for _ in range(2): os.kill(os.getpid(), signal.SIGINT)\n"
        "_native.leave_on_second_signal(False)\n"
        "time.sleep(0.8)\n"
        "assert not rung\n"
        "os.kill(os.getpid(), signal.SIGALRM)\n"
        "assert rung == [signal.SIGALRM]\nprint('still here')"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "still here\n"), done.stderr
