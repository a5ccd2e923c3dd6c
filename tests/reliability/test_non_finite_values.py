"""Non-finite values (NaN, Inf, -Inf) at every place where one can come from.

A wrong reward or observation stops the run at once. Wrong logits, log-probs, losses or gradients skip the update and
count it; three in a row stop the run. Both leave a dump and exit code 4, and no checkpoint is ever made of them.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from tiny import epochs_of, tiny
from torch import Tensor

from gridmill import recipes
from gridmill.policy import checkpoint
from gridmill.run import PolicyConfig, Run
from gridmill.runs import train
from gridmill.runs.epoch import Result
from gridmill.train import learner as learner_room
from gridmill.train.guard import dump
from gridmill.train.rollout import Rollout
from gridmill.train.trainer import Trainer

pytestmark = pytest.mark.N1

VALUES = (math.nan, math.inf, -math.inf)
HIT = 3  # the epoch in which the first wrong number comes
UPDATES = 4  # in an epoch
Patch = pytest.MonkeyPatch


def vectors(epochs: int) -> Run:
    """Prospector, whose observations are floats; 4 updates an epoch, as in `tiny`."""
    return recipes.build("prospector").replace_all(
        [
            ("policy", PolicyConfig(encoder="mlp", core="none", hidden=16)),
            ("trainer.num_worlds", 4),
            ("trainer.threads", 1),
            ("trainer.batch_size", 128),
            ("trainer.minibatch_size", 32),
            ("trainer.bptt_horizon", 32),
            ("trainer.total_timesteps", 128 * epochs),
            ("checkpoint.seconds", 0.0),
        ]
    )


def run_it(run: Run, folder: Path) -> Result:
    return train(run.replace_all([("run", "mine"), ("checkpoint.epochs", 1)]), folder, panel=False)


class Injection:
    """Puts a number into what passes by, from the first update of epoch HIT on, `times` times."""

    def __init__(self, number: float, times: int) -> None:
        self.number, self.left, self.epoch, self.done = number, times, 0, 0

    def into(self, tensor: Tensor) -> Tensor:
        if self.epoch < HIT or self.left == 0:
            return tensor
        self.left -= 1
        self.done += 1
        changed = tensor.clone()
        changed.view(-1)[changed.numel() // 2] = self.number
        return changed


def counting(patch: Patch, injection: Injection) -> None:
    """The injection learns which epoch it is."""
    plain = Trainer.epoch

    def epoch(trainer: Trainer) -> dict[str, Any]:
        injection.epoch = trainer.epochs + 1
        return plain(trainer)

    patch.setattr(Trainer, "epoch", epoch)


def inject(place: str, patch: Patch, injection: Injection) -> None:
    """Install an injection at one of the places of learning."""
    counting(patch, injection)
    if place == "logits":
        plain = learner_room.Objective.__call__
        patch.setattr(
            learner_room.Objective,
            "__call__",
            lambda self, batch, out, share: plain(self, batch, out._replace(logits=injection.into(out.logits)), share),
        )
    elif place == "loss":
        plain_loss = learner_room.Objective.__call__

        def loss(self: Any, batch: Any, out: Any, share: float) -> tuple[Tensor, dict[str, Tensor]]:
            found, metrics = plain_loss(self, batch, out, share)
            return found * injection.into(torch.ones(1)).squeeze(), metrics

        patch.setattr(learner_room.Objective, "__call__", loss)
    elif place == "gradient":
        plain_sum = learner_room.add_up

        def add_up(several: Any) -> list[Tensor]:
            first, *others = plain_sum(several)
            return [injection.into(first), *others]

        patch.setattr(learner_room, "add_up", add_up)
    else:
        raise AssertionError(place)


def assert_only_good_checkpoints(folder: Path, newest: int) -> None:
    for path in (folder / "checkpoints").iterdir():
        found = checkpoint.load(path)
        assert found.epoch <= newest
        for name, tensor in {**found.policy, **found.trainer}.items():
            assert not tensor.is_floating_point() or torch.isfinite(tensor).all(), f"{path.name}: {name}"
    assert checkpoint.newest(folder)[0].epoch == newest


def assert_dump(folder: Path, minibatch: bool) -> dict[str, Tensor]:
    (file,) = (folder / "dump").iterdir()
    tensors = load_file(file)
    assert tensors["last.rewards"].shape[0] == tensors["last.obs"].shape[0] > 0
    assert any(name.startswith("minibatch.") for name in tensors) == minibatch
    assert str(file) in (folder / "log.txt").read_text()
    return tensors


def ended(folder: Path) -> str:
    return (folder / "log.txt").read_text().splitlines()[-1]


# ---- the world is wrong


@pytest.mark.parametrize("number", VALUES)
@pytest.mark.parametrize("place", ["rewards", "obs"])
def test_a_wrong_world_stops_the_run_at_once(place: str, number: float, tmp_path: Path, monkeypatch: Patch) -> None:
    """Reward or observation: the epoch it came in is not learned from; the line says which row and what."""
    plain = Rollout.collect

    def collect(rollout: Rollout, *given: Any) -> None:
        plain(rollout, *given)
        if rollout.step == HIT * rollout.sizes.horizon:
            numbers = getattr(rollout.experience, place)
            numbers[(5, 2, 7)[: numbers.ndim]] = number

    monkeypatch.setattr(Rollout, "collect", collect)
    result = run_it(vectors(9) if place == "obs" else tiny(9), tmp_path)
    assert (result.exit_code, result.epochs) == (4, HIT - 1)
    assert_only_good_checkpoints(result.folder, HIT - 1)
    dumped = assert_dump(result.folder, minibatch=False)
    assert not torch.isfinite(dumped[f"last.{place}"]).all()
    name, agents = {"obs": ("observation", 1), "rewards": ("reward", 2)}[place]
    horizon = {"obs": 32, "rewards": 16}[place]
    told = f"stopped: {name} of row 2 (world {2 // agents}) is {number} at step {(HIT - 1) * horizon + 5} of the run"
    assert told in (result.folder / "log.txt").read_text()
    assert ended(result.folder) == "ended: non-finite values"


# ---- learning is wrong


@pytest.mark.parametrize("number", VALUES)
@pytest.mark.parametrize("place", ["logits", "loss", "gradient"])
def test_an_update_is_skipped_and_counted(place: str, number: float, tmp_path: Path, monkeypatch: Patch) -> None:
    """One wrong number in learning: that update is skipped and counted, the run goes on and ends well."""
    injection = Injection(number, times=1)
    inject(place, monkeypatch, injection)
    result = run_it(tiny(HIT + 1), tmp_path)
    assert injection.done == 1
    assert (result.exit_code, result.epochs) == (0, HIT + 1)
    assert [record["skipped_updates"] for record in epochs_of(result.folder)] == [0, 0, 1, 1]
    for record in epochs_of(result.folder):
        assert all(math.isfinite(record[name]) for name in ("loss/policy", "loss/value", "kl", "gradient_norm"))
    assert_only_good_checkpoints(result.folder, HIT + 1)


@pytest.mark.parametrize("number", VALUES)
@pytest.mark.parametrize("place", ["logits", "loss", "gradient"])
def test_three_in_a_row_stop_the_run(place: str, number: float, tmp_path: Path, monkeypatch: Patch) -> None:
    """The third skipped update in a row is the last thing that happens; the weights are those before the first."""
    injection = Injection(number, times=-1)
    inject(place, monkeypatch, injection)
    result = run_it(tiny(9), tmp_path)
    assert (result.exit_code, result.epochs) == (4, HIT)
    assert epochs_of(result.folder)[-1]["skipped_updates"] == 3
    assert_only_good_checkpoints(result.folder, HIT - 1)
    assert_dump(result.folder, minibatch=True)
    assert ended(result.folder) == "ended: non-finite values"


def test_a_dump_has_the_last_hundred_steps(tmp_path: Path) -> None:
    trainer = Trainer(tiny(1, trainer__batch_size=8 * 128, trainer__total_timesteps=8 * 128))
    trainer.epoch()
    tensors = load_file(dump(tmp_path, trainer))
    rewards = trainer.experience.rewards
    assert rewards.shape[0] == 128
    assert torch.equal(tensors["last.rewards"], rewards[28:].cpu())
    assert tensors["last.obs"].shape[0] == 100
    trainer.close()


def test_a_skipped_update_leaves_everything_as_it_was(tmp_path: Path, monkeypatch: Patch) -> None:
    """Weights and the optimizer's state of a run whose epoch was all skipped are those of the epoch before."""
    injection = Injection(math.nan, times=-1)
    inject("gradient", monkeypatch, injection)
    trainer = Trainer(tiny(9))
    for _ in range(HIT - 1):
        trainer.epoch()
    before = {**trainer.weights(), **trainer.learner.optimizer.tensors()}
    trainer.epoch()
    after = {**trainer.weights(), **trainer.learner.optimizer.tensors()}
    trainer.close()
    assert trainer.learner.in_a_row == 3
    assert before.keys() == after.keys()
    assert all(torch.equal(before[name], after[name]) for name in before)


@pytest.mark.parametrize("number", VALUES)
def test_wrong_log_probs_of_the_rollout(number: float, tmp_path: Path, monkeypatch: Patch) -> None:
    """A log-prob that is none spoils the one update that it is part of, in the epoch in which it came."""
    plain = Rollout.collect

    def collect(rollout: Rollout, *given: Any) -> None:
        plain(rollout, *given)
        if rollout.step == HIT * rollout.sizes.horizon:
            rollout.experience.log_probs[5, 2] = number

    monkeypatch.setattr(Rollout, "collect", collect)
    result = run_it(tiny(HIT + 1), tmp_path)
    assert result.exit_code == 0
    assert [record["skipped_updates"] for record in epochs_of(result.folder)] == [0, 0, 1, 1]
    assert_only_good_checkpoints(result.folder, HIT + 1)


@pytest.mark.parametrize("number", VALUES)
@pytest.mark.parametrize("core", ["none", "scan", "lstm"])
def test_poisoned_weights_are_never_saved(core: str, number: float, tmp_path: Path, monkeypatch: Patch) -> None:
    """Weights that turn bad after the last update of an epoch: neither that epoch nor a later one is saved."""
    plain = Trainer.epoch

    def epoch(trainer: Trainer) -> dict[str, Any]:
        metrics = plain(trainer)
        if trainer.epochs == HIT:
            with torch.no_grad():
                trainer.policy.actor.weight[1, 3] = number
        return metrics

    monkeypatch.setattr(Trainer, "epoch", epoch)
    result = run_it(tiny(9, core), tmp_path)
    assert (result.exit_code, result.epochs) == (4, HIT)
    assert_only_good_checkpoints(result.folder, HIT - 1)
    assert "stopped: `actor.weight` is not finite after epoch 3" in (result.folder / "log.txt").read_text()


@pytest.mark.parametrize("number", VALUES)
@pytest.mark.parametrize("core", ["none", "scan", "lstm"])
def test_a_rollout_with_poisoned_weights(core: str, number: float, tmp_path: Path, monkeypatch: Patch) -> None:
    """Weights that turn bad just before a rollout: the core still gets actions, the epoch is skipped, the run stops."""
    plain = Trainer.epoch

    def epoch(trainer: Trainer) -> dict[str, Any]:
        if trainer.epochs == HIT - 1:
            with torch.no_grad():
                trainer.policy.dense[0].weight[1, 3] = number
                trainer.policy.critic.weight[0, 3] = number
        return plain(trainer)

    monkeypatch.setattr(Trainer, "epoch", epoch)
    result = run_it(tiny(9, core), tmp_path)
    assert (result.exit_code, result.epochs) == (4, HIT)
    assert epochs_of(result.folder)[-1]["skipped_updates"] == 3
    assert_only_good_checkpoints(result.folder, HIT - 1)
    assert_dump(result.folder, minibatch=True)


def test_a_broken_run_without_a_disk(tmp_path: Path, monkeypatch: Patch) -> None:
    """The dump cannot be written: that is said, and the run ends as it would have."""
    inject("loss", monkeypatch, Injection(math.nan, times=-1))
    (tmp_path / "mine").mkdir()
    plain = Path.mkdir

    def mkdir(path: Path, *arguments: Any, **options: Any) -> None:
        if path.name == "dump":
            raise OSError(28, "No space left on device")
        plain(path, *arguments, **options)

    monkeypatch.setattr(Path, "mkdir", mkdir)
    result = run_it(tiny(9), tmp_path)
    assert result.exit_code == 4
    assert "no dump: [Errno 28] No space left on device" in (result.folder / "log.txt").read_text()
