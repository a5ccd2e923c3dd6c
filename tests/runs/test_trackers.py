"""Trackers: what they are given, and that none of them, however broken, holds a run up (R10)."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import threading
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from gridmill import games
from gridmill.config import ConfigError
from gridmill.run import Run, TrackConfig
from gridmill.runs import trackers as track
from gridmill.runs.log import RunLog
from gridmill.runs.trackers import Tracker


def run_with(**switches: Any) -> Run:
    return Run(recipe="toy", game=games.toy(), track=TrackConfig(**switches))


class Sink:
    """Keeps what it is given; fails where told to."""

    notice = ""

    def __init__(self, broken: bool = False) -> None:
        self.broken = broken
        self.got: list[tuple[int, dict[str, float]]] = []
        self.closed = False

    def write(self, step: int, numbers: Any) -> None:
        if self.broken:
            raise ConnectionError("no route to host")
        self.got.append((step, dict(numbers)))

    def close(self) -> None:
        self.closed = True


@pytest.mark.parametrize(
    ("switches", "package"), [({"tensorboard": True}, "tensorboard"), ({"wandb": "offline"}, "wandb")]
)
def test_a_missing_package_is_said_before_training(
    switches: dict[str, Any], package: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(ConfigError) as error:
        RunLog(tmp_path, run_with(**switches), [], panel=False)
    said = str(error.value)
    assert said.startswith(f"expected the package `{package}` for track.{package} = ")
    assert said.endswith(f"-m pip install 'gridmill[track]' - at `$.track.{package}`")
    assert "\n" not in said


def test_numbers_arrive_with_their_step(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sink = Sink()
    monkeypatch.setattr("gridmill.runs.log.trackers", lambda run, folder: [Tracker("fake", lambda: sink)])
    with RunLog(tmp_path, run_with(), [], panel=False) as log:
        log.epoch({"epoch": 1, "agent_steps": 500, "score": 2.5, "reward": float("nan"), "last_checkpoint": "x"})
    assert sink.got == [(500, {"epoch": 1.0, "agent_steps": 500.0, "score": 2.5})]
    assert sink.closed


@pytest.mark.R10
def test_a_dead_tracker_is_said_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    dead = Tracker("fake", lambda: Sink(broken=True))

    def no_sink() -> Sink:
        raise OSError("server down")

    never = Tracker("other", no_sink)
    monkeypatch.setattr("gridmill.runs.log.trackers", lambda run, folder: [dead, never])
    with RunLog(tmp_path, run_with(), [], panel=False) as log:
        for epoch in range(50):
            log.epoch({"epoch": epoch, "agent_steps": epoch})
    out = " ".join(capsys.readouterr().out.split())
    assert out.count("warning: fake: no route to host; training continues") == 1
    assert out.count("warning: other: server down; training continues") == 1
    assert (dead.missed, never.missed) == (50, 51)


@pytest.mark.R10
def test_a_hanging_tracker_holds_nothing_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(track, "MOST_WAITING", 10)
    wake = threading.Event()

    def hang() -> Sink:
        wake.wait(30)
        return Sink()

    tracker = Tracker("slow", hang)
    for step in range(1000):
        tracker.put(step, {})
    # Had one of them waited, the tracker would be there and none missed.
    assert (tracker.missed, tracker.trouble) == (990, "slow: it cannot keep up; training continues")
    monkeypatch.setattr(track, "PATIENCE", 0.05)
    track.close([tracker])
    assert tracker.missed == 992  # one made room for the end, which did not come in time
    wake.set()


@pytest.mark.R10
def test_trackers_share_the_time_they_have(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of three that hang the first takes all of it; those that did not finish are left, and only they."""
    now, waited, left = 0.0, list[float](), list[str]()
    wake = threading.Event()

    def hang() -> Sink:
        wake.wait(30)
        return Sink()

    names = ("first", "second", "third")
    hanging = [Tracker(name, hang, lambda name=name: left.append(name)) for name in names]
    quick = Tracker("quick", Sink, lambda: left.append("quick"))
    quick.end()
    quick._thread.join()

    def join(timeout: float) -> None:
        nonlocal now
        waited.append(timeout)
        now += timeout

    monkeypatch.setattr(track, "time", SimpleNamespace(monotonic=lambda: now))
    for tracker in hanging:
        monkeypatch.setattr(tracker._thread, "join", join)
    track.close([*hanging, quick])
    wake.set()
    assert (waited, left) == ([track.PATIENCE, 0.0, 0.0], list(names))
    assert [tracker.trouble for tracker in hanging] == [
        f"{name}: not finished 30 s after the run; training continues" for name in names
    ]


@pytest.mark.R10
def test_only_the_service_of_this_run_is_ended(tmp_path: Path) -> None:
    """W&B's client would wait for it at the exit of Python; one that the program started itself stays."""
    torn_down = 0

    def teardown() -> None:
        nonlocal torn_down
        torn_down += 1
        raise SystemExit(-9)  # as W&B does

    program = tmp_path / "wandb-core"
    shutil.copy("/bin/sleep", program)
    with subprocess.Popen([program, "60"]) as theirs:
        service = track._Service(SimpleNamespace(teardown=teardown))
        service.end()
        assert (torn_down, service.left) == (0, False)
        with subprocess.Popen([program, "60"]) as ours, subprocess.Popen(["/bin/sleep", "60"]) as other:
            service.leave()
            assert ours.wait() == -signal.SIGKILL
            assert (torn_down, service.left) == (1, True)
            assert theirs.poll() is None
            assert other.poll() is None
            other.kill()
        theirs.kill()


def test_tensorboard_gets_scalars(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    got: list[tuple[str, float, int]] = []

    class Writer:
        def __init__(self, folder: str) -> None:
            assert folder == str(tmp_path / "tensorboard")

        def add_scalar(self, name: str, value: float, step: int) -> None:
            got.append((name, value, step))

        def flush(self) -> None: ...

        def close(self) -> None: ...

    package, summary = ModuleType("tensorboard"), ModuleType("tensorboard.summary")
    summary.Writer = Writer  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "tensorboard", package)
    monkeypatch.setitem(sys.modules, "tensorboard.summary", summary)
    with RunLog(tmp_path, run_with(tensorboard=True), [], panel=False) as log:
        log.epoch({"agent_steps": 7, "score": 1.0})
    assert got == [("agent_steps", 7.0, 7), ("score", 1.0, 7)]


class FakeWandb(ModuleType):
    """Online it cannot be reached; offline it keeps what it is given."""

    def __init__(self) -> None:
        super().__init__("wandb")
        self.modes: list[str] = []
        self.got: list[tuple[int, dict[str, float]]] = []
        self.finished = False

    def Settings(self, **settings: Any) -> dict[str, Any]:
        return settings

    def init(self, mode: str, **options: Any) -> Any:
        self.modes.append(mode)
        assert options["config"]["recipe"] == "toy"
        if mode == "online":
            raise ConnectionError("connection refused\nsecond line")
        return self

    def log(self, numbers: dict[str, float], step: int) -> None:
        self.got.append((step, numbers))

    def finish(self) -> None:
        self.finished = True


@pytest.mark.R10
@pytest.mark.parametrize(("mode", "tried"), [("offline", ["offline"]), ("online", ["online", "offline"])])
def test_wandb_goes_offline_when_its_server_is_dead(
    mode: str, tried: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    wandb = FakeWandb()
    monkeypatch.setitem(sys.modules, "wandb", wandb)
    with RunLog(tmp_path, run_with(wandb=mode), [], panel=False) as log:
        log.epoch({"agent_steps": 7, "score": 1.0})
    assert (wandb.modes, wandb.got, wandb.finished) == (tried, [(7, {"agent_steps": 7.0, "score": 1.0})], True)
    said = f"warning: W&B: offline in {tmp_path / 'wandb'} (`wandb sync` sends it later), because: connection refused"
    assert (said in " ".join(capsys.readouterr().out.split())) == (mode == "online")


@pytest.mark.R10
def test_wandb_has_bounded_time_to_send(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If it knows of a bound; what it did not send is said."""
    asked: list[dict[str, Any]] = []

    class Settings:
        model_fields = ("finish_timeout", "finish_timeout_raises")

        def __init__(self, **settings: Any) -> None:
            asked.append(settings)

    wandb = FakeWandb()
    wandb.Settings = Settings  # type: ignore[method-assign]

    def finish() -> None:
        raise TimeoutError("Timed out finishing run.")

    wandb.finish = finish  # type: ignore[method-assign]
    monkeypatch.setitem(sys.modules, "wandb", wandb)
    monkeypatch.delenv("WANDB_ERROR_REPORTING", raising=False)
    RunLog(tmp_path, run_with(wandb="offline"), [], panel=False).close()
    assert [settings["finish_timeout"] for settings in asked] == [track.SENDING]
    assert track.SENDING < track.PATIENCE
    said = (tmp_path / "log.txt").read_text()
    assert "warning: W&B: not all was sent in 20 s; `wandb sync` sends it later; training continues" in said
    assert os.environ["WANDB_ERROR_REPORTING"] == "false"
    monkeypatch.setenv("WANDB_ERROR_REPORTING", "true")  # the person's word counts
    RunLog(tmp_path, run_with(wandb="offline"), [], panel=False).close()
    assert os.environ["WANDB_ERROR_REPORTING"] == "true"


@pytest.mark.R10
def test_nothing_begins_after_the_run_was_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An answer that never came, and a run that did not wait for it: no second try on disk that nobody would end."""
    wandb = FakeWandb()
    service = track._Service(wandb)
    service.leave()
    with pytest.raises(ConnectionError):
        track._WeightsAndBiases(wandb, run_with(wandb="online"), tmp_path, service)
    assert wandb.modes == ["online"]
