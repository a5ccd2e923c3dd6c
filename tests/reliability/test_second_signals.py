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
from dataclasses import dataclass
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


@dataclass
class Called:
    """A process in the middle of a call, its signal, and when it gets that, in seconds."""

    child: Any
    number: signal.Signals
    wait: float
    place: Path


def seconds_to_end(called: Sequence[Called]) -> float:
    """The longest that one of them lived after its second signal; each ends by that, with its exit code."""
    for one in called:
        assert one.child.stdout.readline() == "HERE\n"
    began = time.monotonic()
    for one in sorted(called, key=lambda one: one.wait):
        time.sleep(max(0.0, began + one.wait - time.monotonic()))
        one.child.send_signal(one.number)
    time.sleep(0.2)
    slowest = 0.0
    for one in called:
        assert one.child.poll() is None  # the first is only noted
        one.child.send_signal(one.number)
    sent = time.monotonic()
    for one in called:
        assert send_until_it_ends(one.child, one.number, sent=True) == 128 + one.number
        slowest = max(slowest, time.monotonic() - sent)
    return slowest


def send_until_it_ends(child: Any, number: signal.Signals, sent: bool = False) -> int:
    """A second signal, and again: one that comes before the first was delivered is lost in it, on a busy machine."""
    for _ in range(60):
        if not sent:
            child.send_signal(number)
        sent = False
        with suppress(subprocess.TimeoutExpired):
            return int(child.wait(timeout=0.5))
    return int(child.wait(timeout=1))


def signals_at_random_moments(
    calls: Sequence[str],
    count: int,
    seed: int,
    folder: Path,
    popen: Callable[..., Any] = Popen,
    at_once: int = 1,
) -> float:
    """The longest that a process lived after its second signal; so many of them side by side."""
    draw, slowest = random.Random(seed), 0.0
    for first in range(0, count, at_once):
        called: list[Called] = []
        try:
            for i in range(first, min(first + at_once, count)):
                place = folder / str(i)
                place.mkdir()
                child = process(BEFORE + calls[i % len(calls)], str(place), popen=popen)
                number = draw.choice([signal.SIGINT, signal.SIGTERM])
                called.append(Called(child, number, draw.uniform(0.0, 0.3), place))
            slowest = max(slowest, seconds_to_end(called))
        finally:
            for one in called:
                one.child.kill()
                one.child.wait()
                one.child.stdout.close()
        for one in called:
            if list(one.place.iterdir()):  # what was saved is there, whole
                found, skipped = checkpoint.newest(one.place)
                assert skipped == []
                assert_whole(found, 1 << 20 if found.epoch else 64)
    return slowest


ALL = [*LONG_CALLS.values(), *MOMENTS.values()]


def test_a_second_signal_ends_any_call(tmp_path: Path, record_property: Callable[[str, object], None]) -> None:
    slowest = signals_at_random_moments(ALL, 50, 1, tmp_path, at_once=len(ALL))
    assert slowest < 10  # the promise of a second is the long tier's; here ten calls share the cores with other tests
    record_property("figure", f"50 signals, slowest end {1000 * slowest:.0f} ms")


@pytest.mark.long
def test_fifty_second_signals(tmp_path: Path, record_property: Callable[[str, object], None]) -> None:
    slowest = signals_at_random_moments(ALL, 50, 2, tmp_path, subprocess.Popen)
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
    """As `gridmill` begins, and in what measures: the first signal waits for the call to end, the second does not."""
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
