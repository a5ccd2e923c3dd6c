"""Nothing that only watches a run can stop it. A full disk for its logs, a tracker that is dead, slow or gone:
training ends well, its weights are those of a run without them, and what was lost is said.
"""

from __future__ import annotations

import contextlib
import errno
import functools
import importlib.metadata
import importlib.util
import json
import multiprocessing
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
import types
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
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
from gridmill.runs.log import RunLog
from gridmill.workshop.statistics import median

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
    monkeypatch.setattr(track, "PATIENCE", 0.2)
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


class Silent(BaseHTTPRequestHandler):
    """A W&B server that takes every request and never answers, or answers as long as runs begin and is silent then."""

    answers = False

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length") or 0))
        self.server.asked.append(self.path)  # type: ignore[attr-defined]
        if not self.answers or b"UpsertBucket" not in body:
            self.server.closing.wait(600)  # type: ignore[attr-defined]
            return
        name = json.loads(body)["variables"].get("name")
        project = {"id": "1", "name": "p", "entity": {"id": "1", "name": "e"}}
        bucket = {"id": "1", "name": name, "displayName": name, "config": "{}", "historyLineCount": 0}
        data = {"upsertBucket": {"bucket": bucket | {"project": project}, "inserted": True}}
        answer = json.dumps({"data": data}).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    do_GET = do_POST

    def log_message(self, *_: Any) -> None: ...


class Answering(Silent):
    answers = True


@contextlib.contextmanager
def silent_server(kind: type[Silent]) -> Iterator[tuple[int, list[str]]]:
    """Its port, and what it was asked so far."""
    with ThreadingHTTPServer(("127.0.0.1", 0), kind) as server:
        server.daemon_threads = True
        server.asked, server.closing = list[str](), threading.Event()  # type: ignore[attr-defined]
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield server.server_port, server.asked  # type: ignore[attr-defined]
        finally:
            server.closing.set()  # type: ignore[attr-defined]
            server.shutdown()


BUSY = 10.0  # seconds that a busy machine may take for what is not waiting


@pytest.mark.long
@pytest.mark.parametrize("kind", [Silent, Answering])
def test_a_silent_server_for_the_real_package(
    kind: type[Silent], tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    """W&B's own client with a server that says nothing, or nothing more: training does not wait for it, the end waits
    no longer than it says, and the process leaves.
    """
    if importlib.util.find_spec("wandb") is None:
        pytest.skip("pip install 'gridmill[track]'")
    code = (
        "import sys\nfrom tiny import tiny\nfrom gridmill.runs import train\n"
        "result = train(tiny(40, run='silent', track__wandb='online'), sys.argv[1], panel=False)\n"
        "print(f'ENDED {result.exit_code} {result.epochs}', flush=True)\n"
    )
    with silent_server(kind) as (port, asked):
        variables = {"WANDB_BASE_URL": f"http://127.0.0.1:{port}", "WANDB_API_KEY": "0" * 40}
        with process(code, str(tmp_path), popen=subprocess.Popen, **variables) as child:
            assert child.stdout is not None
            said = child.stdout.read()
            assert child.wait(120) == 0, said
            gone = time.time()
        assert asked, said  # and it is silent to this moment
    assert "ENDED 0 40" in said
    folder = tmp_path / "silent"
    assert difference(undisturbed(40), folder) == 0
    warned = [line for line in said_by(folder).splitlines() if "warning: W&B: " in line]
    assert len(warned) == 1, said_by(folder)
    assert "Traceback" not in said
    # What was not sent can be sent later.
    assert list((folder / "wandb").glob("run-*/*.wandb" if kind.answers else "offline-run-*/*.wandb"))
    trained, ended = ((folder / name).stat().st_mtime for name in ("metrics.jsonl", "log.txt"))
    version = importlib.metadata.version("wandb")
    kinds = "silent after the start" if kind.answers else "silent"
    record_property(
        "figure", f"W&B {version}, {kinds}: the end waited {ended - trained:.1f} s, gone {gone - ended:.1f} s later"
    )
    assert ended - trained < track.PATIENCE + BUSY
    assert gone - ended < BUSY


class Family:
    """A process and all that came from it, as a tracker's service does: stopped and let go on together."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.members = {pid}

    def look(self) -> None:
        """Find new members."""
        parents = {}
        for stat in Path("/proc").glob("[0-9]*/stat"):
            with contextlib.suppress(OSError):  # ended meanwhile
                parents[int(stat.parent.name)] = int(stat.read_text().rpartition(")")[2].split()[1])
        self.members = {self.pid}
        while more := {pid for pid, parent in parents.items() if parent in self.members} - self.members:
            self.members |= more

    def send(self, number: signal.Signals) -> None:
        for pid in self.members:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)


def no_space(file: int, line: bytes) -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def without_wandb() -> None:
    """A tracker that hangs, in its place."""
    fake: Any = types.ModuleType("wandb")
    dead = Dead("hangs", threading.Event())
    fake.Settings, fake.init = dead.Settings, dead.init
    sys.modules["wandb"] = fake


def by_turns(told: Connection, folder: Path, watched: bool) -> None:
    """In a process of its own: a run that waits before each epoch until told, then answers with the epoch's seconds, by
    the clock and of CPU.
    """

    def epoch(self: Any) -> Any:
        told.recv()
        began, worked = time.monotonic(), time.process_time()
        found = plain(self)
        told.send((time.monotonic() - began, time.process_time() - worked))
        return found

    plain, loop.Session.epoch = loop.Session.epoch, epoch  # type: ignore[method-assign]
    run = recipes.build("arena_basic_easy_shaped").replace_all([("run", "run"), ("trainer.device", "cpu")])
    if watched:
        lines_room._append = no_space
        run = run.replace("track.wandb", "online")
        if importlib.util.find_spec("wandb") is None:
            without_wandb()
    train(run, folder, panel=False)


WARM_UP, TURNS = 5, 40


def speeds(folder: Path) -> tuple[float, float]:
    """The speed of a run with a full disk and a dead tracker, as a share of that of one without: by the clock, by CPU.

    Both take turns, epoch by epoch, and whoever waits is stopped with all its threads and services, so that each has
    its costs to itself; the median of the pairs, so that what slows both at a moment, or one of them once, is not seen.
    """
    spawn = multiprocessing.get_context("spawn")
    runs: list[tuple[Connection, Any, Family]] = []
    took: list[list[tuple[float, float]]] = []
    try:
        for watched in (True, False):
            mine, its = spawn.Pipe()
            child = spawn.Process(target=by_turns, args=(its, folder / str(watched), watched))
            child.start()
            its.close()  # or nobody would notice that the child has died
            runs.append((mine, child, Family(child.pid or 0)))
        for turn in range(WARM_UP + TURNS):
            seconds = [(0.0, 0.0), (0.0, 0.0)]
            for side in (0, 1) if turn % 2 else (1, 0):
                told, _, family = runs[side]
                told.send(True)
                family.send(signal.SIGCONT)
                seconds[side] = told.recv()
                family.send(signal.SIGSTOP)  # those known at once, so that nobody works on while we look for others
                family.look()
                family.send(signal.SIGSTOP)
            took.append(seconds)
    finally:
        for _, child, family in runs:
            family.look()
            family.send(signal.SIGKILL)
            child.join()
    written = [(folder / side / "run" / "metrics.jsonl").stat().st_size > 0 for side in ("True", "False")]
    assert written == [False, True]
    with_it, without = zip(*took[WARM_UP:], strict=True)
    by_clock, by_cpu = (median(b[k] / a[k] for a, b in zip(with_it, without, strict=True)) for k in (0, 1))
    return by_clock, by_cpu


@pytest.mark.long
@pytest.mark.timeout(1_800)
def test_costs_no_speed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, record_property: Callable[[str, object], None]
) -> None:
    """2 % at most, of CPU time and by the clock, in the median of three or five pairs of processes.

    Two processes that do the same differ by some per cent for as long as they live, because of where their memory lies;
    and a machine with other work shows its own noise by the clock. So there are several pairs, and two more if three
    leave it open.
    """
    monkeypatch.setenv("WANDB_BASE_URL", "http://127.0.0.1:9")
    monkeypatch.setenv("WANDB_API_KEY", "0" * 40)
    found = [speeds(tmp_path / str(pair)) for pair in range(3)]
    if min(median(values) for values in zip(*found, strict=True)) < 0.98:
        found += [speeds(tmp_path / str(pair)) for pair in (3, 4)]
    clock, cpu = zip(*found, strict=True)
    tracker = f"W&B {importlib.metadata.version('wandb')}" if importlib.util.find_spec("wandb") else "a stand-in"
    said = [
        f"{median(values):.3f} {by} ({', '.join(f'{value:.3f}' for value in values)})"
        for by, values in (("by the clock", clock), ("by CPU time", cpu))
    ]
    record_property("figure", f"speed of a run without: {said[0]}, {said[1]}; {tracker}")
    assert median(cpu) > 0.98
    assert median(clock) > 0.98


def calls_of_an_epoch(folder: Path, track_: str) -> float:
    """Calls of functions, Python's and C's, in the thread that trains, for what is said of an epoch."""
    epochs, calls = 50, 0
    numbers = {f"metric {k}": float(k) for k in range(50)}

    def count(_frame: object, event: str, _argument: object) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    log = RunLog(folder, tiny(6, run="x", track__wandb=track_), panel=False)
    log.epoch({"epoch": 0, "agent_steps": 0, **numbers})  # says what is wrong, once
    sys.setprofile(count)
    try:
        for epoch in range(1, 1 + epochs):
            log.epoch({"epoch": epoch, "agent_steps": epoch, **numbers})
    finally:
        sys.setprofile(None)
    return calls / epochs


def test_costs_few_calls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A full disk and a dead tracker: a copy of the numbers for the tracker, and a line that is kept."""
    plain = calls_of_an_epoch(tmp_path / "plain", "off")
    monkeypatch.setitem(sys.modules, "wandb", None)
    without_wandb()
    monkeypatch.setattr(lines_room, "_append", no_space)
    watched = calls_of_an_epoch(tmp_path / "watched", "online")
    assert watched - plain < 150, (watched, plain)
