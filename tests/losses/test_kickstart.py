"""Learning from another policy: its value by hand, what the rollout stores of the teacher, when it runs, resumes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from small_runs import hash_of
from tiny import EPOCH, difference, tiny

from gridmill.config import ConfigError
from gridmill.config.schedule import Progress
from gridmill.losses import Minibatch
from gridmill.losses.kickstart import Kickstart
from gridmill.policy import load
from gridmill.policy.network import Output
from gridmill.runs import resume, train
from gridmill.train.trainer import Trainer

NOTHING = torch.zeros(0)


@pytest.fixture(scope="module")
def teacher(tmp_path_factory: pytest.TempPathFactory) -> str:
    run = tiny(2, core="gru", seed=9, run="teacher", policy__actor_gain=100.0)  # one who is sure of itself
    return str(train(run, tmp_path_factory.mktemp("teacher"), panel=False).folder)


def test_its_value_by_hand() -> None:
    theirs = torch.tensor([[[0.5, 0.5], [0.9, 0.1]]]).log()
    out = Output(torch.tensor([[[0.8, 0.2], [0.9, 0.1]]]).log(), torch.tensor([[1.0, 2.0]]), NOTHING, NOTHING)
    batch = Minibatch(kickstart_log_probs=theirs, kickstart_values=torch.tensor([[3.0, 2.0]]), weights=torch.ones(2))
    loss, metrics = Kickstart(teacher="x", value_weight=0.25)(batch, out, Progress(0, 1, 0, 1))
    kl = 0.5 * np.log(0.5 / 0.8) + 0.5 * np.log(0.5 / 0.2)
    assert float(metrics["loss/kickstart"]) == pytest.approx(kl / 2)
    assert float(metrics["loss/kickstart_value"]) == pytest.approx(0.5 * 4 / 2)
    assert float(loss) == pytest.approx(kl / 2 + 0.25 * 1.0)


def test_what_a_teacher_holds_for_impossible_breaks_nothing() -> None:
    theirs = torch.tensor([[[0.0, -1e9]]])
    logits = torch.zeros(1, 1, 2, requires_grad=True)
    batch = Minibatch(kickstart_log_probs=theirs, kickstart_values=torch.zeros(1, 1), weights=torch.ones(1))
    loss, _ = Kickstart(teacher="x")(batch, Output(logits, torch.zeros(1, 1), NOTHING, NOTHING), Progress(0, 1, 0, 1))
    assert float(loss.detach()) == pytest.approx(np.log(2))
    assert bool(torch.isfinite(torch.autograd.grad(loss, logits)[0]).all())


def kickstarted(teacher: str, epochs: int = 4, **changes: Any) -> Trainer:
    return Trainer(tiny(epochs).replace_all([("losses.kickstart", {"teacher": teacher} | changes)]))


def test_the_rollout_stores_what_the_teacher_makes_of_the_same_rows(teacher: str) -> None:
    """Step by step along two rollouts, episodes that end included."""
    trainer = kickstarted(teacher)
    player = load(teacher)
    player.bind(trainer.env)
    state = np.zeros((8, player.policy.state_size), np.float32)
    for _ in range(2):
        trainer._collect()
        x = trainer.experience
        for t in range(16):
            state = player.reset(state, x.episode_starts[t].numpy() != 0)
            thought = player.think(x.obs[t].numpy(), state, x.masks[t].numpy())
            state = thought.state
            torch.testing.assert_close(x.kickstart_log_probs[t].exp(), thought.log_probs().exp(), rtol=0, atol=1e-5)
            torch.testing.assert_close(x.kickstart_values[t], thought.values, rtol=0, atol=1e-5)
    assert bool((x.kickstart_log_probs[x.masks == 0] < -1e8).all())
    trainer.close()


def test_it_thinks_once_however_many_columns_it_fills(teacher: str) -> None:
    trainer = kickstarted(teacher)
    (actor,) = trainer.rollout.actors.values()
    thought, counted = actor.player.think, []

    def spy(obs: Any, *rest: Any) -> Any:
        counted.append(len(obs))
        return thought(obs, *rest)

    actor.player.think = spy  # type: ignore[method-assign]
    trainer.epoch()
    trainer.close()
    assert sum(counted) == EPOCH


def test_it_runs_only_while_it_counts(teacher: str) -> None:
    trainer = kickstarted(teacher, until=EPOCH)
    (actor,) = trainer.rollout.actors.values()
    first = trainer.epoch()
    actor.player.think = None  # type: ignore[method-assign, assignment]
    second = trainer.epoch()
    trainer.close()
    assert "loss/kickstart" in first
    assert "loss/kickstart" not in second


def test_it_learns_from_the_teacher(teacher: str) -> None:
    run = tiny(40, optimizer__learning_rate=0.01).replace("losses", {"kickstart": {"teacher": teacher}})
    trainer = Trainer(run)
    found = [trainer.epoch() for _ in range(40)]
    trainer.close()

    def mean(name: str, epochs: slice) -> float:
        return sum(metrics[name] for metrics in found[epochs]) / len(found[epochs])

    for name in ("loss/kickstart", "loss/kickstart_value"):
        assert mean(name, slice(30, 40)) < 0.8 * mean(name, slice(0, 3)), name
    assert mean("kickstart/agreement", slice(30, 40)) > mean("kickstart/agreement", slice(0, 3)) + 0.1


def test_a_resumed_run_is_equal_to_the_bit(teacher: str, tmp_path: Path) -> None:
    run = tiny(4, checkpoint__epochs=1, checkpoint__keep=9).replace("losses.kickstart", {"teacher": teacher})
    whole, again = (train(run.replace("run", name), tmp_path, panel=False).folder for name in ("whole", "again"))
    for path in sorted((again / "checkpoints").iterdir())[2:]:
        for part in path.iterdir():
            part.unlink()
        path.rmdir()
    assert resume(again, panel=False).exit_code == 0
    assert difference(whole, again) == 0


def test_threads_do_not_change_a_byte(teacher: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gridmill.train.rollout.MOST_ROWS", 3)
    found = set()
    for threads in (1, 2):
        trainer = Trainer(tiny(2, trainer__threads=threads).replace("losses.kickstart", {"teacher": teacher}))
        trainer.epoch()
        trainer.close()
        found.add(hash_of(trainer.weights()))
    assert len(found) == 1


def test_a_teacher_must_be_named() -> None:
    with pytest.raises(ConfigError) as caught:
        tiny(2).replace("losses.kickstart", {})
    assert str(caught.value) == "expected the folder of a run or checkpoint, got '' - at `$.losses.kickstart.teacher`"
