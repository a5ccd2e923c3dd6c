"""Rewards as the learner sees them, against a slow form."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from tiny import epochs_of, tiny

from gridmill.policy import checkpoint
from gridmill.runs import resume, train
from gridmill.train.reward_scale import RewardScale

LONG = 1e12  # a time scale that forgets nothing


class Slow:
    """Every return ever seen in a list, with its weight and the share of it that was not before the run."""

    def __init__(self, rows: int, gamma: float, time_scale: float) -> None:
        self.running, self.steps, self.first = [0.0] * rows, [0] * rows, [True] * rows
        self.gamma, self.time_scale = gamma, time_scale
        self.seen: list[tuple[float, float, float]] = []

    def forget(self, rewards: Any) -> None:
        kept = np.exp(-rewards.size / self.time_scale)
        self.seen = [(weight * kept, share, number) for weight, share, number in self.seen]

    def scaled(self, rewards: Any, ended: Any) -> Any:
        self.forget(rewards)
        for t in range(len(rewards)):
            for row in range(rewards.shape[1]):
                self.running[row] = self.running[row] * self.gamma + float(rewards[t, row])
                self.steps[row] += 1
                missing = self.gamma ** self.steps[row] if self.first[row] else 0.0
                self.seen.append((1.0, 1 - missing, self.running[row]))
                if ended[t, row]:
                    self.running[row], self.first[row] = 0.0, False
        weight, share, returns = np.array(self.seen).T
        mean = (weight * share * returns).sum() / (weight * share**2).sum()  # least squares: return ~ mean x share
        variance = (weight * (returns - mean * share) ** 2).sum() / (weight * (1 - (1 - share) ** 2)).sum()
        return np.clip(rewards / max(1e-4, float(np.sqrt(variance))), -0.8, 0.8)

    def centered(self, rewards: Any) -> Any:
        self.forget(rewards)
        self.seen += [(1.0, 1.0, float(reward)) for reward in rewards.flatten()]
        weight, _, seen = np.array(self.seen).T
        return rewards - float((weight * seen).sum() / weight.sum())


class Batch:
    """The fields of an experience that rewards are made of."""

    def __init__(self, seed: int, steps: int = 6, rows: int = 4, ends: float = 0.2) -> None:
        draw = torch.Generator().manual_seed(seed)
        self.rewards = 3 + 2 * torch.randn(steps, rows, generator=draw)
        self.terminals = torch.rand(steps, rows, generator=draw) < ends
        self.truncations = torch.rand(steps, rows, generator=draw) < ends / 2

    @property
    def learned_from(self) -> torch.Tensor:
        return self.rewards

    def by_piece(self, column: torch.Tensor) -> list[torch.Tensor]:
        return [column]


@pytest.mark.parametrize("kind", ["scaled", "centered"])
def test_rewards_against_a_slow_reference(kind: Literal["scaled", "centered"]) -> None:
    scale = RewardScale(kind, 4)
    slow = Slow(4, 0.9, 50.0)
    for epoch in range(4):
        x: Any = Batch(epoch)
        ended = (x.terminals | x.truncations).numpy()
        expected = slow.scaled(x.rewards.numpy(), ended) if kind == "scaled" else slow.centered(x.rewards.numpy())
        if epoch == 2:  # through a checkpoint
            kept = scale.tensors()
            scale = RewardScale(kind, 4)
            scale.restore(kept)
        found = scale(x, 0.9, 50.0, 0.8)
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)
        assert found.dtype == torch.float32
        if kind == "scaled":
            assert 0 < int((found.abs() == np.float32(0.8)).sum()) < found.numel()  # some are clipped


def test_raw_rewards_stay() -> None:
    x: Any = Batch(0)
    assert torch.equal(RewardScale("raw", 4)(x, 0.9, LONG, 0.1), x.rewards)


@pytest.mark.parametrize("gamma", [0.0, 0.9, 1.0])
def test_rewards_of_nothing_are_not_divided_by_nothing(gamma: float) -> None:
    x: Any = Batch(0)
    x.rewards = torch.zeros(6, 4)
    assert not RewardScale("scaled", 4)(x, gamma, LONG, 0.0).any()


@pytest.mark.parametrize("mean", [0.0, 0.5])
def test_the_first_rollout_has_the_scale_of_all_later_ones(mean: float) -> None:
    """Under rewards that do not change: 24 rollouts of 50 steps, a tenth of the horizon of the discount."""
    scale, found = RewardScale("scaled", 256), []
    for epoch in range(24):
        x: Any = Batch(epoch, 50, 256, 0.0)
        x.rewards = (x.rewards - 3) / 2 + mean
        scale(x, 0.998, LONG, 0.0)
        found.append(scale.deviation)
    assert found[-1] == pytest.approx(1 / np.sqrt(1 - 0.998**2), rel=0.15)
    assert max(found) / min(found) < 1.4, found  # without the correction from 4.9 to 14.9, with the mean to 73


def test_what_was_long_ago_is_forgotten() -> None:
    """Of either kind: after twelve time scales of other rewards nothing is left of the first ones."""
    for kind in ("scaled", "centered"):
        scale = RewardScale(kind, 64)  # type: ignore[arg-type]
        for epoch in range(80):
            x: Any = Batch(epoch, 50, 64)
            x.rewards *= 100 if epoch < 40 else 1
            last = scale(x, 0.9, 10_000.0, 0.0)
        fresh = RewardScale(kind, 64)(x, 0.9, 10_000.0, 0.0)  # type: ignore[arg-type]
        near = pytest.approx(float(fresh.mean()), rel=0.2, abs=0.2 if kind == "centered" else 0)
        assert float(last.mean()) == near


def test_a_shorter_time_scale_counts_at_once() -> None:
    long, short = RewardScale("scaled", 64), RewardScale("scaled", 64)
    for epoch in range(20):
        for scale in (long, short):
            scale(Batch(epoch, 50, 64), 0.9, LONG, 0.0)  # type: ignore[arg-type]
    late: Any = Batch(99, 50, 64)
    late.rewards *= 10
    long(late, 0.9, LONG, 0.0)
    short(late, 0.9, 3_200.0, 0.0)
    assert float(short.sums[0]) < 3_200 + 3_200
    assert short.deviation > 2 * long.deviation


@pytest.mark.parametrize("kind", ["scaled", "centered"])
def test_the_state_of_an_older_checkpoint_goes_on(kind: Literal["scaled", "centered"]) -> None:
    """It has count, mean and squared distances of all history: the same deviation and mean, rows as whole ones."""
    numbers = torch.randn(1_000, generator=torch.Generator().manual_seed(1), dtype=torch.float64) * 5 + 2
    apart = (numbers - numbers.mean()).square().sum()
    seen = torch.stack((torch.tensor(1_000.0, dtype=torch.float64), numbers.mean(), apart))
    scale = RewardScale(kind, 4)
    scale.restore({"reward.running": torch.ones(4, dtype=torch.float64), "reward.seen": seen})
    assert not scale.missing.any()
    if kind == "scaled":
        assert scale.deviation == pytest.approx(float(numbers.std(correction=0)))
    x: Any = Batch(0)
    found = scale(x, 0.9, LONG, 0.0)
    if kind == "centered":
        mean = float(torch.cat((numbers, x.rewards.double().flatten())).mean())
        torch.testing.assert_close(found, x.rewards - mean)


# ---- whole runs


def tensors_of(folder: Path) -> dict[str, torch.Tensor]:
    return load_file(checkpoint.find(folder) / "trainer.safetensors")


def test_a_run_that_begins_with_another_has_its_scale(tmp_path: Path) -> None:
    """The critic was trained on it: with the first rollouts' own scale it would be wrong for epochs."""
    rich = tiny(40, losses__value__weight=1.0, optimizer__learning_rate=5e-3, run="rich")
    first = train(rich, tmp_path, panel=False).folder
    begun = rich.replace_all(
        [("policy.init_from", str(first)), ("run", "second"), ("trainer.total_timesteps", 3 * 128)]
    )
    second = train(begun, tmp_path, panel=False).folder
    assert "; rewards are scaled as they were there" in " ".join((second / "log.txt").read_text().split())
    weights = [float(tensors_of(folder)["reward.sums"][0]) for folder in (first, second)]
    assert weights[1] == pytest.approx(weights[0] + 3 * 128, rel=0.02)
    # With as few epochs the critic still knows the returns: its loss is that of the first run's end.
    last = [record["loss/value"] for record in epochs_of(first)[-5:]]
    assert epochs_of(second)[0]["loss/value"] < 2 * max(last)


def test_a_critic_of_other_rewards_is_told_of(tmp_path: Path) -> None:
    first = train(tiny(2, run="first", trainer__reward="raw"), tmp_path, panel=False).folder
    second = train(tiny(2, run="second", policy__init_from=str(first)), tmp_path, panel=False).folder
    told = " ".join((second / "log.txt").read_text().split())
    assert "; its critic learned from raw rewards, here they are scaled" in told


def test_other_rewards_after_a_resume_begin_anew(tmp_path: Path) -> None:
    """The statistics of one kind mean nothing to another."""
    folder = train(tiny(4), tmp_path, panel=False).folder
    resume(folder, ["trainer.reward=centered", "trainer.total_timesteps=640"], panel=False)
    sums, mean = tensors_of(folder)["reward.sums"], epochs_of(folder)[-1]["reward"]
    assert sums.tolist() == pytest.approx([128, 128 * mean, 0, 0], abs=1e-4)
