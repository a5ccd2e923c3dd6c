"""R10: nothing that only watches a run can stop it. A full disk for its logs, a tracker that is dead, slow or gone:
training ends well, its weights are those of a run without them, and what was lost is said.
"""

from __future__ import annotations

import errno
import functools
import importlib.util
import os
import sys
import tempfile
import threading
import time
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tiny import difference, epochs_of, process, tiny

from gridmill import recipes
from gridmill.train import lines as lines_room
from gridmill.train import track, train
from gridmill.workshop.statistics import paired_ratio

PLAIN_APPEND = lines_room._append


@functools.cache
def undisturbed(epochs: int = 6) -> Path:
    return train(tiny(epochs, run="undisturbed"), tempfile.mkdtemp(), panel=False).folder


def said(folder: Path) -> str:
    return (folder / "log.txt").read_text()


def test_R10_a_full_disk_for_logs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No line of log or metrics can be written for four epochs: they wait, and are there in the end."""
    full = {"left": 8}

    def append(file: int, line: bytes) -> None:
        if full["left"] > 0 and line.startswith((b"{", b"     ")) and b'"epoch": 1,' not in line:
            full["left"] -= 1
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        PLAIN_APPEND(file, line)

    monkeypatch.setattr(lines_room, "_append", append)
    result = train(tiny(6, run="full"), tmp_path, panel=False)
    assert (result.exit_code, full["left"]) == (0, 0)
    assert [record["epoch"] for record in epochs_of(result.folder)] == [1, 2, 3, 4, 5, 6]
    assert "warning: metrics.jsonl cannot be written: No space left on device; training goes on" in said(result.folder)
    monkeypatch.undo()
    assert difference(undisturbed(), result.folder) == 0


def test_R10_a_disk_that_stays_full(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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
def test_R10_a_dead_tracker(how: str, mode: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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
    assert sum("warning: W&B: " in line for line in said(result.folder).splitlines()) == 1
    assert difference(undisturbed(), result.folder) == 0


def test_R10_the_terminal_goes_away(tmp_path: Path) -> None:
    """Whoever reads the output leaves: the run goes on to its end."""
    code = (
        "import sys\nfrom tiny import tiny\nfrom gridmill.train import train\n"
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
def test_R10_a_dead_server_for_the_real_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The real W&B with nobody listening: it writes to disk instead, and training ends well."""
    pytest.importorskip("wandb", reason="pip install 'gridmill[track]'")
    monkeypatch.setenv("WANDB_BASE_URL", "http://127.0.0.1:9")
    monkeypatch.setenv("WANDB_API_KEY", "0" * 40)
    result = train(tiny(40, run="online", track__wandb="online"), tmp_path, panel=False)
    assert (result.exit_code, result.epochs) == (0, 40)
    assert difference(undisturbed(40), result.folder) == 0


@pytest.mark.long
@pytest.mark.timeout(900)
def test_R10_costs_no_speed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, record_property: Callable[[str, object], None]
) -> None:
    """Runs with a full disk for logs and a dead tracker take turns with runs without: 2 % of speed at most.

    Steps per second of CPU time and of the clock, of the median pair. It fails where 2 % of CPU time lie outside of
    what the pairs can tell, or where the median of either is 5 % down.
    """
    tracked = {"track__wandb": "online"}
    if importlib.util.find_spec("wandb") is None:  # then a tracker that hangs stands for it
        fake: Any = types.ModuleType("wandb")
        dead = Dead("hangs", threading.Event())
        fake.Settings, fake.init = dead.Settings, dead.init
        monkeypatch.setitem(sys.modules, "wandb", fake)
    monkeypatch.setenv("WANDB_BASE_URL", "http://127.0.0.1:9")
    monkeypatch.setenv("WANDB_API_KEY", "0" * 40)
    monkeypatch.setattr(track.Tracker.close, "__defaults__", (0.2,))

    def no_space(file: int, line: bytes) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def speed(name: str, **changes: Any) -> tuple[float, float]:
        settings = [("run", name), ("trainer.total_timesteps", 250_000), ("trainer.device", "cpu")]
        run = recipes.build("ci").replace_all([*settings, *((k.replace("__", "."), v) for k, v in changes.items())])
        began, clock = time.process_time(), time.monotonic()
        result = train(run, tmp_path, panel=False)
        assert result.exit_code == 0
        return result.agent_steps / (time.process_time() - began), result.agent_steps / (time.monotonic() - clock)

    pairs = []
    for turn in range(9):
        plain = speed(f"plain-{turn}")
        with monkeypatch.context() as disk:
            disk.setattr(lines_room, "_append", no_space)
            pairs.append((speed(f"full-{turn}", **tracked), plain))
    by_cpu, by_clock = (
        paired_ratio(*([run[k] for run in side] for side in zip(*pairs[1:], strict=True))) for k in (0, 1)
    )
    record_property("figure", f"speed {by_cpu} of a run without ({by_clock} by the clock)")
    assert by_cpu.high > 0.98
    assert min(by_cpu.ratio, by_clock.ratio) > 0.95
