"""trainer.env_impl: a run on the reference Prospector equals one on the core, and comes back."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from tiny import difference, epochs_of, tiny, without_times

from gridmill import games
from gridmill.config import ConfigError
from gridmill.prospector import ProspectorConfig
from gridmill.run import PolicyConfig, Run
from gridmill.train import resume, train
from gridmill.train.trainer import Trainer


def ships(epochs: int, impl: str) -> Run:
    """Short episodes in eight worlds."""
    return tiny(
        epochs,
        game=ProspectorConfig(time_max=30.0),
        policy=PolicyConfig(encoder="mlp", core="scan", hidden=16),
        score="",
        trainer__num_worlds=8,
        trainer__env_impl=impl,
        trainer__desync_episodes=False,
    )


def test_a_run_on_the_reference_equals_one_on_the_core() -> None:
    native, reference = (Trainer(ships(4, impl)) for impl in ("native", "reference"))
    for _ in range(4):
        mine, theirs = (without_times(trainer.epoch()) for trainer in (native, reference))
        assert mine == theirs
        assert "score" in mine
    ours, others = native.weights(), reference.weights()
    native.close()
    reference.close()
    assert all(torch.equal(ours[name], others[name]) for name in ours)


def test_it_comes_back_from_a_checkpoint(tmp_path: Path) -> None:
    whole = train(ships(6, "reference").replace("run", "whole"), tmp_path, panel=False).folder
    halved = train(ships(3, "reference").replace("run", "halved"), tmp_path, panel=False).folder
    resume(halved, ["trainer.total_timesteps=768"], panel=False)
    assert difference(whole, halved) == 0
    assert len(epochs_of(halved)) == 6


def test_a_game_without_a_reference_is_refused() -> None:
    run = tiny(trainer__env_impl="reference").replace("game", games.toy(2))
    with pytest.raises(ConfigError, match=r"^expected a game that has a reference .*, got toy; use auto - at"):
        Trainer(run.replace("score", ""))
