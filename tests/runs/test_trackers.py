"""Trackers: what they are given, and that none of them, however broken, holds a run up (R10)."""

from __future__ import annotations

import sys
import threading
from pathlib import Path
from types import ModuleType
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
    tracker.close(patience=0.05)
    wake.set()


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
