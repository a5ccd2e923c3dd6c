"""Nothing that only watches a run can stop it. A full disk for its logs, a tracker that is dead, slow or gone:
training ends well, its weights are those of a run without them, and what was lost is said.
"""

from __future__ import annotations

import contextlib
import errno
import functools
import importlib.metadata
import importlib.util
import multiprocessing
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import types
from collections.abc import Callable, Iterator
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import pytest
from tiny import difference, epochs_of, tiny
from warm import process

from gridmill import recipes
from gridmill.runs import lines as lines_room
from gridmill.runs import loop, train
from gridmill.runs import trackers as track
from gridmill.workshop.statistics import paired_ratio

pytestmark = pytest.mark.R10

PLAIN_APPEND = lines_room._append


@functools.cache
def undisturbed(epochs: int = 6) -> Path:
    return train(tiny(epochs, run="undisturbed"), tempfile.mkdtemp(), panel=False).folder


def said_by(folder: Path) -> str:
    return (folder / "log.txt").read_text()


def test_a_full_disk_for_logs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No line of log or metrics can be written for four epochs: they wait, and are there in the end."""
    full = {"left": 8}

    def append(file: int, line: bytes) -> None:
        if full["left"] > 0 and re.match(rb"\{|     +\d+ ", line) and b'"epoch": 1,' not in line:
            full["left"] -= 1
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        PLAIN_APPEND(file, line)

    monkeypatch.setattr(lines_room, "_append", append)
    result = train(tiny(6, run="full"), tmp_path, panel=False)
    assert (result.exit_code, full["left"]) == (0, 0)
    assert [record["epoch"] for record in epochs_of(result.folder)] == [1, 2, 3, 4, 5, 6]
    assert "warning: metrics.jsonl cannot be written: No space left on device; training continues" in said_by(
        result.folder
    )
    monkeypatch.undo()
    assert difference(undisturbed(), result.folder) == 0


def test_a_disk_that_stays_full(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing but checkpoints can be written, ever: the run ends well all the same."""

    def append(file: int, line: bytes) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(lines_room, "_append", append)
    result = train(tiny(6, run="full"), tmp_path, panel=False)
    assert (result.exit_code, result.epochs) == (0, 6)
    monkeypatch.undo()
    assert difference(undisturbed(), result.folder) == 0


class Dead:
    """A tracker's library that fails in the way it is told to."""

    def __init__(self, how: str, release: threading.Event) -> None:
        self.how, self.release = how, release

    def Settings(self, **_: Any) -> None: ...

    def init(self, **_: Any) -> Any:
        if self.how == "refuses":
            raise ConnectionError("no route to host")
        if self.how == "hangs":
            self.release.wait(60)
        return self

    def log(self, *_: Any, **__: Any) -> None:
        if self.how == "loses":
            raise BrokenPipeError("the service is gone")

    def finish(self) -> None:
        if self.how == "never finishes":
            self.release.wait(60)


@pytest.mark.parametrize("mode", ["offline", "online"])
@pytest.mark.parametrize("how", ["refuses", "hangs", "loses", "never finishes"])
def test_a_dead_tracker(how: str, mode: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Four ways to be dead: the run is the same, the trouble is one line."""
    release = threading.Event()
    fake: Any = types.ModuleType("wandb")
    dead = Dead(how, release)
    fake.Settings, fake.init = dead.Settings, dead.init
    monkeypatch.setitem(sys.modules, "wandb", fake)
    monkeypatch.setattr(track.Tracker.close, "__defaults__", (0.2,))
    try:
        result = train(tiny(6, run="watched", track__wandb=mode), tmp_path, panel=False)
    finally:
        release.set()
    assert (result.exit_code, result.epochs) == (0, 6)
    assert sum("warning: W&B: " in line for line in said_by(result.folder).splitlines()) == 1
    assert difference(undisturbed(), result.folder) == 0


def test_the_terminal_goes_away(tmp_path: Path) -> None:
    """Whoever reads the output leaves: the run goes on to its end."""
    code = (
        "import sys\nfrom tiny import tiny\nfrom gridmill.runs import train\n"
        "result = train(tiny(6, run='alone'), sys.argv[1], panel=False)\n"
        "sys.exit(10 + result.exit_code)\n"
    )
    with process(code, str(tmp_path)) as child:
        assert child.stdout is not None
        child.stdout.readline()
        child.stdout.close()
    assert child.returncode == 10
    assert difference(undisturbed(), tmp_path / "alone") == 0


@pytest.mark.long
def test_a_dead_server_for_the_real_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The real W&B with nobody listening: it writes to disk instead, and training ends well."""
    pytest.importorskip("wandb", reason="pip install 'gridmill[track]'")
    monkeypatch.setenv("WANDB_BASE_URL", "http://127.0.0.1:9")
    monkeypatch.setenv("WANDB_API_KEY", "0" * 40)
    result = train(tiny(40, run="online", track__wandb="online"), tmp_path, panel=False)
    assert (result.exit_code, result.epochs) == (0, 40)
    assert difference(undisturbed(40), result.folder) == 0


@contextlib.contextmanager
def silent_server() -> Iterator[tuple[int, list[socket.socket]]]:
    """A server that takes every connection and never answers; its port, and the connections so far."""
    taken: list[socket.socket] = []

    def accept() -> None:
        with contextlib.suppress(OSError):  # closed
            while True:
                taken.append(listening.accept()[0])

    with socket.create_server(("127.0.0.1", 0)) as listening:
        threading.Thread(target=accept, daemon=True).start()
        try:
            yield listening.getsockname()[1], taken
        finally:
            listening.shutdown(socket.SHUT_RDWR)
            for one in taken:
                one.close()


@pytest.mark.long
def test_a_silent_server_for_the_real_package(tmp_path: Path, record_property: Callable[[str, object], None]) -> None:
    """W&B's own client with a server that takes connections and says nothing: training does not wait for it, the end
    waits no longer than it says, and the process leaves.
    """
    if importlib.util.find_spec("wandb") is None:
        pytest.skip("pip install 'gridmill[track]'")
    code = (
        "import sys, time\nfrom tiny import tiny\nfrom gridmill.runs import train\n"
        "began = time.monotonic()\n"
        "result = train(tiny(40, run='silent', track__wandb='online'), sys.argv[1], panel=False)\n"
        "print(f'ENDED {result.exit_code} {result.epochs} {time.monotonic() - began:.1f}', flush=True)\n"
    )
    with silent_server() as (port, taken):
        variables = {"WANDB_BASE_URL": f"http://127.0.0.1:{port}", "WANDB_API_KEY": "0" * 40}
        with process(code, str(tmp_path), popen=subprocess.Popen, **variables) as child:
            assert child.stdout is not None
            said = child.stdout.read()
            left = time.monotonic()
            assert child.wait(120) == 0, said
            left = time.monotonic() - left
        assert taken, said  # it was asked, and is silent to this moment
    (ended,) = [line.split()[1:] for line in said.splitlines() if line.startswith("ENDED ")]
    assert ended[:2] == ["0", "40"]
    folder = tmp_path / "silent"
    assert difference(undisturbed(40), folder) == 0
    assert sum("warning: W&B: " in line for line in said_by(folder).splitlines()) == 1
    trained = epochs_of(folder)[-1]["seconds"]
    version = importlib.metadata.version("wandb")
    record_property(
        "figure", f"W&B {version}, {len(taken)} connections: 40 epochs in {trained:.1f} s, the end after {ended[2]} s"
    )


class Family:
    """A process and all that came from it, as a tracker's service does: stopped, let go on and counted together."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.members = {pid}

    def look(self) -> float:
        """Find new members; the CPU seconds of all that live, and of those that ended and were waited for."""
        found = {}
        for stat in Path("/proc").glob("[0-9]*/stat"):
            with contextlib.suppress(OSError):  # ended meanwhile
                found[int(stat.parent.name)] = stat.read_text().rpartition(")")[2].split()
        self.members = {self.pid}
        while more := {pid for pid, fields in found.items() if int(fields[1]) in self.members} - self.members:
            self.members |= more
        # Fields 11 to 14: its own ticks, then those of children it waited for.
        ticks = sum(int(found[pid][place]) for pid in self.members & set(found) for place in (11, 12, 13, 14))
        return ticks / os.sysconf("SC_CLK_TCK")

    def send(self, number: signal.Signals) -> None:
        for pid in self.members:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)


def by_turns(told: Connection, folder: Path, watched: bool) -> None:
    """In a process of its own: a run that waits before each epoch until told, then answers with the epoch's seconds."""

    def no_space(file: int, line: bytes) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def epoch(self: Any) -> Any:
        told.recv()
        began = time.monotonic()
        found = plain(self)
        told.send(time.monotonic() - began)
        return found

    plain, loop.Session.epoch = loop.Session.epoch, epoch  # type: ignore[method-assign]
    run = recipes.build("arena_basic_easy_shaped").replace_all([("run", "run"), ("trainer.device", "cpu")])
    if watched:
        lines_room._append = no_space
        run = run.replace("track.wandb", "online")
        if importlib.util.find_spec("wandb") is None:  # then a tracker that hangs stands for it
            fake: Any = types.ModuleType("wandb")
            dead = Dead("hangs", threading.Event())
            fake.Settings, fake.init = dead.Settings, dead.init
            sys.modules["wandb"] = fake
    train(run, folder, panel=False)


@pytest.mark.long
@pytest.mark.timeout(900)
def test_costs_no_speed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, record_property: Callable[[str, object], None]
) -> None:
    """A run with a full disk for its logs and a dead tracker takes turns with one without, epoch by epoch: 2 % at most.

    Whoever waits is stopped with all its threads and services, so that each has the machine and its costs to itself.
    2 % must lie within what the pairs can tell by the clock, and neither the median pair nor CPU time may be 4 % down.
    """
    monkeypatch.setenv("WANDB_BASE_URL", "http://127.0.0.1:9")
    monkeypatch.setenv("WANDB_API_KEY", "0" * 40)
    spawn = multiprocessing.get_context("spawn")
    runs: list[tuple[Connection, Any, Family]] = []
    took, began = [], [0.0, 0.0]
    try:
        for watched in (True, False):
            mine, its = spawn.Pipe()
            child = spawn.Process(target=by_turns, args=(its, tmp_path / str(watched), watched))
            child.start()
            its.close()  # or nobody would notice that the child has died
            runs.append((mine, child, Family(child.pid or 0)))
        for turn in range(125):
            if turn == 5:
                began = [family.look() for _, _, family in runs]
            seconds = [0.0, 0.0]
            for side in (0, 1) if turn % 2 else (1, 0):
                told, _, family = runs[side]
                told.send(True)
                family.send(signal.SIGCONT)
                seconds[side] = told.recv()
                family.send(signal.SIGSTOP)  # those known at once, so that nobody works on while we look for others
                family.look()
                family.send(signal.SIGSTOP)
            took.append(seconds)
        ended = [family.look() for _, _, family in runs]
    finally:
        for _, child, family in runs:
            family.look()
            family.send(signal.SIGKILL)
            child.join()
    written = [(tmp_path / side / "run" / "metrics.jsonl").stat().st_size > 0 for side in ("True", "False")]
    assert written == [False, True]
    with_it, without = zip(*took[5:], strict=True)
    by_clock = paired_ratio(without, with_it)  # of seconds: the slower needs more
    by_cpu = (ended[1] - began[1]) / (ended[0] - began[0])
    tracker = f"W&B {importlib.metadata.version('wandb')}" if importlib.util.find_spec("wandb") else "a stand-in"
    figure = f"speed {by_clock} of a run without by the clock, {by_cpu:.3f} by CPU time"
    record_property("figure", f"{figure} ({ended[1] / ended[0]:.3f} with the starts); {tracker}")
    assert by_clock.high > 0.98
    assert min(by_clock.ratio, by_cpu) > 0.96
