"""The heading of log.txt, the monitor, and how figures are written."""

from __future__ import annotations

import subprocess
import sys
import time
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

import gridmill
from gridmill import games
from gridmill.grid import Log, Stat
from gridmill.prospector.config import ProspectorConfig
from gridmill.run import PolicyConfig, Run, Schedule, SignalTerm, TrainerConfig
from gridmill.runs import monitor
from gridmill.runs.figures import Trend, count, duration, memory, number, percent, phases, sparkline
from gridmill.runs.heading import Origin, heading


def lines_for(run: Run, base: Run | None = None) -> list[str]:
    with gridmill.make(run.game, num_worlds=2) as env:
        lines = heading(run, env, base)
    assert max(map(len, lines)) <= 80
    assert all(line.isascii() for line in lines)
    return lines


def test_heading_says_which_recipe_really_runs() -> None:
    game = games.arena_basic_easy_shaped()
    base = Run(recipe="arena", game=game)
    slower = Schedule(start=0.002, end=0.0002)
    run = base.replace("game.attack.cost.laser", 1).replace("optimizer.learning_rate", slower).replace("seed", 3)
    lines = lines_for(run, base)
    assert lines[:3] == [
        "recipe: arena, seed 3",
        "differs from the recipe:",
        "  game.attack.cost.laser = 1 (recipe: 100)",
    ]
    assert "  optimizer.learning_rate = 0.002 -> 0.0002 (linear over steps) (recipe: 0.001)" in lines
    text = "\n".join(lines)
    assert run.game.fingerprint() in text
    assert "  altar (20 on the map): 1 battery -> 1 heart in 10 ticks" in lines
    assert "  attack: 1 laser" in lines
    [heart] = [line.split() for line in lines if line.startswith("  1 x heart")]
    assert heart[-2:] == ["90", "30.8"]
    assert any(line.startswith("warning: reward `0.5 x laser") for line in lines)
    assert "differs from the recipe: nothing" in lines_for(base, base)


def test_heading_tells_the_presets_settings_from_somebodys_changes() -> None:
    recipe = Run(recipe="toy", game=games.toy())
    merged = recipe.replace_all([("trainer.gamma", 0.9), ("trainer.gae_lambda", 0.5)])
    run = merged.replace_all([("trainer.gamma", 0.8), ("checkpoint.keep", 7)])
    gamma, trace = recipe.trainer.gamma, recipe.trainer.gae_lambda
    assert lines_for(run, Origin(recipe, "mine.toml", merged))[1:6] == [
        "preset mine.toml:",
        f"  trainer.gae_lambda = 0.5 (otherwise: {trace})",
        "changed:",
        f"  trainer.gamma = 0.8 (recipe: {gamma})",
        f"  checkpoint.keep = 7 (recipe: {recipe.checkpoint.keep})",
    ]
    assert lines_for(merged, Origin(recipe, "mine.toml", merged))[4] == "changed: nothing"
    assert lines_for(run, Origin(recipe, "none", recipe))[1] == "changed:"


@pytest.mark.parametrize("name", ["toy", "navigation", "cogsguard"])
def test_heading_of_other_games(name: str) -> None:
    run = Run(recipe=name, game=games.build(name))
    text = "\n".join(lines_for(run))
    assert f"game: {run.game.name} {run.game.fingerprint()}" in text
    assert "differs" not in text


def test_heading_says_what_is_learned_from() -> None:
    terms = (
        SignalTerm(value="battery.put", weight=0.45),
        SignalTerm(value=Log(values=(Stat(name="reward"),)), weight=2.0),
    )
    run = Run(recipe="arena", game=games.arena(), trainer=TrainerConfig(signal=terms))
    assert "training signal: 0.45 x battery.put, 2 x log(reward)" in lines_for(run)
    assert not any(line.startswith("training signal") for line in lines_for(Run(recipe="arena", game=games.arena())))


def test_heading_of_prospector() -> None:
    run = Run(recipe="p", run="mine", game=ProspectorConfig(), policy=PolicyConfig(encoder="mlp", core="none"))
    lines = lines_for(run)
    assert lines[0] == "recipe: p, seed 0, run mine"
    assert lines[-1] == "score: net profit"


# ---- the monitor


def test_monitor_looks_at_this_process() -> None:
    monitor.sample()
    began = time.monotonic()
    while time.monotonic() - began < 0.3:  # the clock of CPU time has ticks of 10 ms: a short look says nothing
        sum(range(10_000))
    found = monitor.sample()
    assert found["memory/rss"] > 1e6
    assert 0 < found["cpu/util"] <= 1.1
    assert found["memory/free"] > 0


def test_the_first_look_of_a_monitor_has_no_share_of_the_cpu() -> None:
    """Two looks microseconds apart give any share at all, so the first share is of the second look."""
    watched = monitor.Monitor(1e6)
    try:
        found = watched.take()
    finally:
        watched.close()
    assert found["memory/rss"] > 1e6
    assert "cpu/util" not in found


def test_monitor_with_a_gpu_and_with_a_dead_one(monkeypatch: pytest.MonkeyPatch) -> None:
    class Library(ModuleType):
        NVMLError = OSError
        dead = False

        def nvmlInit(self) -> None: ...

        def nvmlDeviceGetHandleByIndex(self, index: int) -> int:
            return index

        def nvmlDeviceGetUtilizationRates(self, device: int) -> Any:
            if self.dead:
                raise self.NVMLError
            return SimpleNamespace(gpu=40)

        def nvmlDeviceGetMemoryInfo(self, device: int) -> Any:
            return SimpleNamespace(used=5_000)

    library = Library("pynvml")
    monkeypatch.setitem(sys.modules, "pynvml", library)
    monitor._gpu.cache_clear()
    try:
        found = monitor.sample()
        assert (found["gpu/util"], found["gpu/memory"]) == (0.4, 5000.0)
        library.dead = True
        assert "gpu/util" not in monitor.sample()
        monkeypatch.setitem(sys.modules, "pynvml", None)
        monitor._gpu.cache_clear()
        assert "gpu/util" not in monitor.sample()
    finally:
        monitor._gpu.cache_clear()


# ---- figures


def test_figures_are_short() -> None:
    assert [number(x) for x in (0, 14.123, -0.01234, 0.312, 1.2e-5, 123456.0, None, float("nan"), "x", True)] == [
        "0", "14.1", "-0.0123", "0.312", "1.2e-05", "123 k", "-", "-", "-", "-",
    ]  # fmt: skip
    assert [count(x) for x in (0, 999, 999.6, 1234, 99_960, 786_432, 50e6, 1e16)] == [
        "0", "999", "1 k", "1.23 k", "100 k", "786 k", "50 M", "1e+16",
    ]  # fmt: skip
    assert [duration(x) for x in (0, 5, 75.4, 7511, 4 * 86400, 40 * 86400, -1)] == [
        "0:00", "0:05", "1:15", "2:05:11", "4 d 00:00", "40 d", "-",
    ]  # fmt: skip
    assert [memory(x) for x in (12, 1.24e9)] == ["12 B", "1.24 GB"]
    assert [percent(x) for x in (0.62, 0.041, 1.0)] == ["62 %", "4.1 %", "100 %"]


def test_a_number_of_any_length_is_none() -> None:
    """A file of somebody may have one, and a report goes on."""
    assert (number(10**400), count(-(10**400)), duration(10**400)) == (number(None), count(None), duration(None))


def test_no_second_is_counted_twice() -> None:
    times = {"time/rollout": 5.0, "time/env": 1.0, "time/act": 3.0, "time/learn": 5.0, "time/optimizer": 1.0}
    parts = {"time/teacher": 0.5, "time/teacher_store": 0.5, "time/core": 2.0, "time/other": 0.25}
    found = phases({**times, **parts, "time/bad": float("nan"), "sps": 3.0})
    inside = {"env": 1.0, "act": 3.0, "teacher": 0.5, "rollout": 0.5}
    assert found == {**inside, "learn": 4.0, "optimizer": 1.0, "other": 0.25}


def test_trends() -> None:
    assert sparkline([0, 1, 2, 3, 4, 5, 6, 7], 80) == "▁▂▃▄▅▆▇█"
    assert sparkline([0, 2, 8, 8], 2) == "▁█"
    assert sparkline([3, 3], 10) == "▁▁"
    assert sparkline([], 10) == ""
    trend = Trend()
    for k in range(100_000):
        trend.add(k)
    trend.add(None)
    assert trend.best == 99_999
    assert len(trend.values) < Trend.MOST
    assert trend.values == sorted(trend.values)


def test_what_people_see_needs_no_torch() -> None:
    rooms = "console, dry_run, figures, heading, lines, listing, log, monitor, report, trackers"
    code = f"import sys; sys.modules['torch'] = None\nfrom gridmill.runs import {rooms}"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
