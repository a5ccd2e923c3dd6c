"""2N updates at once equal N, a SIGKILL, a resume and N more: every tensor to the bit, every metric but times.

The run to be killed is a process of its own that stops at a chosen place and tells so; then it is really killed.
"""

from __future__ import annotations

import functools
import signal
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from small_runs import needs_bf16
from tiny import berries, difference, epochs_of, tiny, without_times
from warm import started

from gridmill import games, recipes
from gridmill.losses.clone import Clone
from gridmill.run import PPO, PolicyConfig, Run, Schedule
from gridmill.runs import resume, train
from gridmill.runs.loop import Session

pytestmark = pytest.mark.R3

EPOCHS = 12  # of four updates each
HALF = EPOCHS // 2

# Stops for good at the n-th call of a function and says so.
HANG = """
import importlib, sys, time
from tiny import tiny
from gridmill.runs import train
folder, core, module, owner, name, count = sys.argv[1:]
owner = getattr(importlib.import_module(module), owner) if owner else importlib.import_module(module)
plain, calls = getattr(owner, name), 0
def hang(*arguments, **options):
    global calls
    calls += 1
    if calls == int(count):
        print("HERE", flush=True)
        time.sleep(600)
    return plain(*arguments, **options)
setattr(owner, name, hang)
train(tiny(12, core, run="killed", checkpoint__epochs=6), folder, panel=False)
"""
PLACES = {
    "between epochs": ("gridmill.runs.loop", "Session", "evaluate", HALF),  # its checkpoint is there
    "in a rollout": ("gridmill.train.rollout", "Rollout", "_think", (HALF + 3) * 32 + 9),
    "in an update": ("gridmill.train.optimizer", "Optimizer", "step", (HALF + 4) * 4 + 2),
    "in a save": ("gridmill.policy.checkpoint", "", "_put_in_place", 2),  # the last: all but the rename is done
}


def killed(folder: Path, core: str, place: str) -> Path:
    """A run with a checkpoint in its middle, killed at a place after it; its folder."""
    module, owner, name, count = PLACES[place]
    said = folder / "said"
    child = started([sys.executable, "-c", HANG, str(folder), core, module, owner, name, str(count)], folder, said)
    try:
        while "HERE\n" not in said.read_text():
            assert child.poll() is None, said.read_text()
            time.sleep(0.01)
    finally:
        child.kill()
        child.wait()
    assert child.returncode == -signal.SIGKILL
    return folder / "killed"


def whole(folder: Path, run: Run) -> Path:
    result = train(run.replace("run", "whole"), folder, panel=False)
    assert result.exit_code == 0
    return result.folder


@functools.cache
def whole_of(core: str) -> Path:
    """One undisturbed run for each core, whatever it is compared with."""
    return whole(Path(tempfile.mkdtemp()), tiny(EPOCHS, core))


def assert_equal(one: Path, other: Path) -> None:
    assert difference(one, other) == 0
    mine, theirs = ([without_times(record) for record in epochs_of(folder)] for folder in (one, other))
    assert mine == theirs


@pytest.mark.parametrize(
    ("core", "place", "threads"),
    [
        pytest.param("none", "between epochs", 1, marks=pytest.mark.long),
        ("lstm", "between epochs", 2),
        pytest.param("scan", "between epochs", 1, marks=pytest.mark.long),
        ("none", "in an update", 2),
        ("lstm", "in a rollout", 1),
        ("scan", "in a save", 2),
    ],
)
def test_killed_and_resumed_to_the_bit(
    core: str, place: str, threads: int, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    """48 updates == 24, kill -9, resume 24, for each core, each place and other numbers of threads."""
    folder = killed(tmp_path, core, place)
    assert [path.name for path in (folder / "checkpoints").glob("epoch-????????")] == [f"epoch-{HALF:08d}"]
    result = resume(folder, [f"trainer.threads={threads}"], panel=False)
    assert (result.epochs, result.exit_code) == (EPOCHS, 0)
    assert_equal(whole_of(core), folder)
    assert [record["epoch"] for record in epochs_of(folder)] == list(range(1, EPOCHS + 1))
    record_property("figure", f"{core}, killed {place}, {threads} threads: max abs difference 0")


# ---- everything that has a state

WITH_STATE: dict[str, dict[str, Any]] = {
    "gru, muon": {"policy__core": "gru", "optimizer__kind": "muon"},
    "cnn, schedule-free": {"policy__encoder": "cnn", "optimizer__kind": "schedule_free"},
    "attend, adamw": {"policy__encoder": "attend", "optimizer__kind": "adamw", "optimizer__weight_decay": 0.1},
    "centered, prioritised": {"trainer__reward": "centered", "trainer__prio_alpha": 0.6},
    "vtrace, two rounds": {"trainer__advantage": "vtrace", "trainer__update_epochs": 2},
    "a schedule that follows a metric": {
        "losses__ppo": PPO(entropy_weight=Schedule(start=0.05, end=0.0, over="metric:score_recent", until=3.0)),
        "optimizer__learning_rate": Schedule(start=3e-3, end=1e-4, shape="cosine"),
    },
    "a curriculum that turns over": {
        "curriculum": {
            "sets": {
                "short": {"vary": [{"kind": "range", "path": "max_steps", "low": 1, "high": 9}], "target": 0.5},
                "bushes": {
                    "vary": [{"kind": "values", "path": "map.objects.bush", "values": [1, 5, 9]}],
                    "target": 1.0,
                },
            },
            "tasks": 5,
            "tries": 1,
            "patience": 2,
        }
    },
    "a curriculum and a teacher that leads": {
        "game": games.arena_basic_easy_shaped(num_agents=6, max_steps=40),
        "score": "",
        "teacher": "arena",
        "supervised_steps": 4 * 384,
        "losses__clone": Clone(lead=0.5),
        "curriculum": {
            "sets": {"short": {"vary": [{"kind": "range", "path": "max_steps", "low": 3, "high": 9}], "target": 0.5}},
            "tasks": 5,
            "tries": 1,
            "patience": 2,
        },
        "trainer__batch_size": 384,
        "trainer__minibatch_size": 96,
        "trainer__max_microbatch": 48,
    },
    "one lane, no masks": {"trainer__async_factor": 1, "trainer__masks": False},
    "three agents, bf16": {
        "game": berries(3),
        "trainer__batch_size": 192,
        "trainer__minibatch_size": 48,
        "trainer__precision": "bf16",
    },
}


def stopped_after(run: Run, epochs: int, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """As Ctrl-C would: the run ends after an epoch and saves."""
    plain = Session.epoch

    def epoch(session: Session) -> tuple[int, str]:
        found = plain(session)
        if session.trainer.epochs == epochs:
            session.signal = signal.SIGINT
        return found

    with monkeypatch.context() as patch:
        patch.setattr(Session, "epoch", epoch)
        result = train(run.replace("run", "halved"), folder, panel=False)
    assert (result.epochs, result.exit_code) == (epochs, 130)
    return result.folder


WITH_BF16 = ("gru, muon", "three agents, bf16")


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[needs_bf16] if name in WITH_BF16 else []) for name in WITH_STATE]
)
def test_everything_that_has_a_state_comes_back(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Encoders, optimizers, reward scales, priorities and schedules: 8 epochs equal 4, a stop and 4."""
    run = tiny(1, **WITH_STATE[name])
    run = run.replace("trainer.total_timesteps", 8 * run.trainer.batch_size)
    folder = stopped_after(run, 4, tmp_path, monkeypatch)
    assert resume(folder, panel=False).exit_code == 0
    assert_equal(whole(tmp_path, run), folder)


def test_prospector(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same for vectors of floats."""
    run = recipes.build("prospector").replace_all(
        [
            ("policy", PolicyConfig(encoder="mlp", core="lstm", hidden=16)),
            ("trainer.num_worlds", 8),
            ("trainer.batch_size", 512),
            ("trainer.minibatch_size", 128),
            ("trainer.bptt_horizon", 32),
            ("trainer.total_timesteps", 8 * 512),
        ]
    )
    folder = stopped_after(run, 4, tmp_path, monkeypatch)
    assert resume(folder, panel=False).exit_code == 0
    assert_equal(whole(tmp_path, run), folder)


def test_from_a_checkpoint_that_is_not_the_newest(tmp_path: Path) -> None:
    """Going back to an older checkpoint and on again makes the same run once more."""
    once = whole(tmp_path, tiny(8, checkpoint__epochs=2, checkpoint__keep=4))
    again = tmp_path / "again"
    once.rename(again)
    whole(tmp_path, tiny(8))
    assert resume(again / "checkpoints" / "epoch-00000004", panel=False).epochs == 8
    assert_equal(once, again)
