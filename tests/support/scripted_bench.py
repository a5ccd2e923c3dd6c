"""`gridmill bench step` with a clock that tells what a script says: no test depends on how fast a machine is."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from gridmill.cli import app
from gridmill.workshop import machine, runner

TINY = ["--agents", "4", "--map-size", "12", "--iterations", "20", "--warmup", "10", "--rounds", "4"]
Bench = Callable[..., Result]


class Clock:
    """Stands in for the time module: each measured stretch costs what the script says."""

    def __init__(self, costs: list[float], wall: list[float] | None = None) -> None:
        self._ends = {"cpu": itertools.cycle(costs), "wall": itertools.cycle(wall or costs)}
        self._now = {"cpu": 0.0, "wall": 0.0}
        self._running = {"cpu": False, "wall": False}

    def _read(self, name: str) -> float:
        if self._running[name]:
            self._now[name] += next(self._ends[name])
        self._running[name] = not self._running[name]
        return self._now[name]

    def process_time(self) -> float:
        return self._read("cpu")

    def perf_counter(self) -> float:
        return self._read("wall")


def scripted_bench(monkeypatch: pytest.MonkeyPatch) -> Bench:
    """Calls the command with a clock whose rounds cost the given seconds, warm-up first."""
    monkeypatch.setattr(runner, "MEMCPY_SECONDS", 0.01)
    monkeypatch.setattr(machine, "perf_works", lambda: False)

    def call(
        *arguments: str, costs: tuple[float, ...] = (1.0,), wall: tuple[float, ...] = (), tiny: bool = True
    ) -> Result:
        monkeypatch.setattr(runner, "time", Clock(list(costs), list(wall)))
        return CliRunner().invoke(app, ["bench", "step", *(TINY if tiny else ()), *arguments])

    return call


def saved(path: Path) -> dict[str, Any]:
    record = json.loads(path.read_text(encoding="utf-8"))
    assert isinstance(record, dict)
    return record
