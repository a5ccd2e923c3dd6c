"""Training with evaluation for a long time is as fast at its end as at its start and needs no more memory.

Speed is steps per second of the process's own CPU time, over the speed of a fixed piece of work measured beside every
epoch: neighbours on a shared machine slow both.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tiny import process

from gridmill.replay import read
from gridmill.runs.log_lines import TITLES

pytestmark = pytest.mark.S4

SOAK, TRIAL = 1_800.0, 60.0  # seconds
SLOWER = {TRIAL: 0.3, SOAK: 0.05}  # the share of speed that counts as lost; in a minute, neighbours decide
GROWN = 0.05  # of memory

# Trains until the time is over, evaluating every few seconds; prints a look at itself every epoch.
CODE = """
import json, signal, sys, time
import psutil, torch
from gridmill import recipes
from gridmill.runs import session
folder, seconds = sys.argv[1], float(sys.argv[2])
run = recipes.build("ci").replace_all([
    ("run", "soak"), ("trainer.total_timesteps", 10**12), ("trainer.device", "cpu"),
    ("checkpoint.seconds", seconds / 40), ("evaluation.enabled", True), ("evaluation.episodes", 2),
    ("evaluation.replays_every_epochs", 1),
    ("analysis.gradient_epochs", 10), ("analysis.weight_epochs", 10), ("monitor.seconds", 1.0),
])
began, process = time.monotonic(), psutil.Process()
plain = session._Session.epoch
left, right = torch.ones(1024, 128), torch.ones(128, 128)
def fixed_work():
    began = time.thread_time()
    for _ in range(10):
        (left @ right).relu_().sum()
        sum(range(2000))
    return time.thread_time() - began
def epoch(self):
    before = time.process_time()
    found = plain(self)
    used = time.process_time() - before
    look = {"seconds": time.monotonic() - began, "used": used, "fixed": fixed_work(), "rss": process.memory_info().rss}
    print("LOOK " + json.dumps(look | {"steps": self.trainer.sizes.batch_size}), flush=True)
    if look["seconds"] > seconds:
        self.signal = signal.SIGINT
    return found
session._Session.epoch = epoch
sys.exit(session.train(run, folder, panel=False).exit_code)
"""


def soak(folder: Path, seconds: float) -> tuple[list[dict[str, Any]], int]:
    """What a run said of itself at every epoch, and how often it was evaluated."""
    with process(CODE, str(folder), str(seconds)) as child:
        assert child.stdout is not None
        said = child.stdout.read()
    assert child.returncode == 130, said
    looks = [json.loads(line.removeprefix("LOOK ")) for line in said.splitlines() if line.startswith("LOOK ")]
    lines = (folder / "soak" / "metrics.jsonl").read_text().splitlines()
    log = (folder / "soak" / "log.txt").read_text()
    assert "warning" not in log.partition(TITLES)[2]  # the heading may warn of the game
    assert ": evaluation: " not in log  # how a failed one is told
    evaluated = sum("evaluation" in json.loads(line) for line in lines)
    replays = sorted((folder / "soak" / "replays").glob("*.replay"))
    assert len(replays) >= evaluated  # one more if the last evaluation was not waited for
    assert sum(1 for _ in read(replays[-1]).play()) == len(read(replays[-1]).actions)
    return looks, evaluated


def part(looks: list[dict[str, Any]], begin: float, end: float) -> list[dict[str, Any]]:
    last = looks[-1]["seconds"]
    return [look for look in looks if begin * last <= look["seconds"] <= end * last]


def speed(looks: list[dict[str, Any]]) -> tuple[float, float]:
    """The median over epochs of steps per CPU second, and of steps in the time of the fixed work."""
    steps, used, fixed = (np.array([look[name] for look in looks]) for name in ("steps", "used", "fixed"))
    return float(np.median(steps / used)), float(np.median(steps * fixed / used))


def check(looks: list[dict[str, Any]], evaluated: int, slower: float, told: Callable[[str, object], None]) -> None:
    early, late = part(looks, 0.2, 0.4), part(looks, 0.8, 1.0)
    by_clock, ratio = (one / other for one, other in zip(speed(late), speed(early), strict=True))
    grown = np.median([look["rss"] for look in late]) / np.median([look["rss"] for look in early]) - 1
    told(
        "figure",
        f"{looks[-1]['seconds']:.0f} s, speed {ratio:.3f} of the start ({by_clock:.3f} by CPU time alone), "
        f"memory {grown:+.1%}, {evaluated} evals",
    )
    assert evaluated >= 2
    assert ratio > 1 - slower
    assert grown < GROWN


@pytest.mark.long
@pytest.mark.timeout(SOAK + 600)
@pytest.mark.parametrize("seconds", [TRIAL, SOAK])
def test_as_fast_at_the_end_as_at_the_start(
    seconds: float, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    """A minute to try it, then half an hour: training, evaluation, replays, checkpoints, analysis, monitor."""
    check(*soak(tmp_path, seconds), SLOWER[seconds], record_property)
