"""Checkpoints and replays that commit 4590d82 wrote (tests/data/4590d82) are loaded, continued and played again.

They hold settings by the names of that commit. Worlds are compared exactly, weights and metrics with a small tolerance,
since the kernels of another CPU add in another order. That commit scaled rewards by all history and did not clip them.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from safetensors.torch import load_file

from gridmill import evaluate, replay
from gridmill.policy import checkpoint
from gridmill.run import Run
from gridmill.runs import resume
from gridmill.train.reward_scale import RewardScale
from gridmill.train.trainer import Trainer

pytestmark = pytest.mark.R5

OLD = Path(__file__).resolve().parents[1] / "data" / "4590d82"
GAMES = ("grid", "prospector")
AS_THEN = ["trainer.reward_time_scale=1e12", "trainer.reward_clip=0"]


def worlds_of(path: Path) -> list[str]:
    """The hashes of a checkpoint's worlds, put back into an environment."""
    found = checkpoint.load(path)
    trainer = Trainer(Run.load(Run.upgraded(found.record["run"])))
    trainer.restore(found.policy, found.trainer, found.record["last"])
    hashes = [f"{int(value):016x}" for value in trainer.env.state_hash()]
    trainer.close()
    return hashes


def metrics_of(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]


@pytest.mark.parametrize("game", GAMES)
def test_an_older_run_is_continued_as_its_own_commit_did(game: str, tmp_path: Path) -> None:
    """Two more epochs from the checkpoint of an older commit: the worlds, weights and metrics which that commit got."""
    folder = tmp_path / game
    shutil.copytree(OLD / game / "checkpoints", folder / "checkpoints")
    expected = json.loads((OLD / game / "after.json").read_text())
    assert worlds_of(folder / "checkpoints" / "epoch-00000004") == expected["half"]

    result = resume(folder, AS_THEN, panel=False)
    assert (result.epochs, result.exit_code) == (6, 0)
    end = folder / "checkpoints" / "epoch-00000006"
    assert worlds_of(end) == expected["end"]
    weights, theirs = checkpoint.load(end).policy, load_file(OLD / game / "after.safetensors")
    assert weights.keys() == theirs.keys()
    for name, tensor in theirs.items():
        apart = float((weights[name] - tensor).abs().max())
        assert apart <= 1e-5, f"{name} differs by {apart}"
    for now, then in zip(metrics_of(folder), expected["metrics"], strict=True):
        assert {name: now[name] for name in then} == pytest.approx(then, rel=1e-4, abs=1e-6)


@pytest.mark.parametrize("game", GAMES)
def test_an_older_run_goes_on_with_settings_of_today(game: str, tmp_path: Path) -> None:
    """Its scale of rewards is taken over: nothing jumps."""
    folder = tmp_path / game
    shutil.copytree(OLD / game / "checkpoints", folder / "checkpoints")
    count, _, apart = checkpoint.load(folder / "checkpoints" / "epoch-00000004").trainer["reward.seen"].tolist()
    assert (resume(folder, panel=False).epochs, len(metrics_of(folder))) == (6, 2)
    tensors = checkpoint.load(folder / "checkpoints" / "epoch-00000006").trainer
    scale = RewardScale("scaled", len(tensors["reward.running"]))
    scale.restore(tensors)
    assert "reward.seen" not in tensors
    assert scale.deviation == pytest.approx((apart / count) ** 0.5, rel=0.5)


@pytest.mark.parametrize("game", GAMES)
def test_an_older_policy_plays_its_game(game: str) -> None:
    """Its checkpoint is enough to build the game and to play it."""
    saved = OLD / game / "checkpoints" / "epoch-00000004"
    result = evaluate.evaluate(evaluate.run_of(saved), str(saved), episodes=1, seed=3)
    assert result.stats["length"].mean > 0


@pytest.mark.parametrize("game", GAMES)
def test_an_older_replay_plays_again(game: str) -> None:
    """Every tick has the state it had, not only those whose hash the file itself holds."""
    expected = json.loads((OLD / f"{game}.hashes.json").read_text())
    played = [f"{int(env.state_hash()[0]):016x}" for env in replay.read(OLD / f"{game}.replay").play()]
    assert played == expected
