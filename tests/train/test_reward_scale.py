"""Rewards as the learner sees them, against a slow form."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import pytest
import torch

from gridmill.train.reward_scale import RewardScale


class Slow:
    """Every return ever seen in a list; nothing clever."""

    def __init__(self, rows: int, gamma: float) -> None:
        self.running, self.gamma, self.seen = [0.0] * rows, gamma, [0.0] * 0

    def scaled(self, rewards: Any, ended: Any) -> Any:
        for t in range(len(rewards)):
            for row in range(rewards.shape[1]):
                self.running[row] = self.running[row] * self.gamma + float(rewards[t, row])
                self.seen.append(self.running[row])
                if ended[t, row]:
                    self.running[row] = 0.0
        return rewards / max(1e-4, float(np.std(self.seen)))

    def centered(self, rewards: Any) -> Any:
        self.seen += [float(reward) for reward in rewards.flatten()]
        return rewards - float(np.mean(self.seen))


class Batch:
    """The fields of an experience that rewards are made of."""

    def __init__(self, seed: int) -> None:
        draw = torch.Generator().manual_seed(seed)
        self.rewards = self.learned_from = 3 + 2 * torch.randn(6, 4, generator=draw)
        self.terminals = torch.rand(6, 4, generator=draw) < 0.2
        self.truncations = torch.rand(6, 4, generator=draw) < 0.1


@pytest.mark.parametrize("kind", ["scaled", "centered"])
def test_rewards_against_a_slow_reference(kind: Literal["scaled", "centered"]) -> None:
    scale = RewardScale(kind, 4)
    slow = Slow(4, 0.9)
    for epoch in range(4):
        x: Any = Batch(epoch)
        ended = (x.terminals | x.truncations).numpy()
        expected = slow.scaled(x.rewards.numpy(), ended) if kind == "scaled" else slow.centered(x.rewards.numpy())
        if epoch == 2:  # through a checkpoint
            kept = scale.tensors()
            scale = RewardScale(kind, 4)
            scale.restore(kept)
        np.testing.assert_allclose(scale(x, 0.9), expected, rtol=1e-5, atol=1e-5)


def test_raw_rewards_stay() -> None:
    x: Any = Batch(0)
    assert torch.equal(RewardScale("raw", 4)(x, 0.9), x.rewards)


def test_rewards_of_nothing_are_not_divided_by_nothing() -> None:
    x: Any = Batch(0)
    x.learned_from = torch.zeros(6, 4)
    assert not RewardScale("scaled", 4)(x, 0.9).any()
