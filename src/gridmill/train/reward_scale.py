"""Rewards, or the signal in their place, as the learner sees them; what they are scaled by is part of a run's state."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor

from gridmill.train.experience import Experience


class RewardScale:
    """Rewards raw, over the standard deviation of discounted returns, or less their mean."""

    def __init__(self, kind: Literal["raw", "scaled", "centered"], rows: int) -> None:
        self.kind = kind
        self.running = torch.zeros(rows, dtype=torch.float64)  # each row's discounted return so far
        self.seen = torch.zeros(3, dtype=torch.float64)  # count, mean, sum of squared distances (Welford)

    def __call__(self, x: Experience, gamma: float) -> Tensor:
        if self.kind == "raw":
            return x.learned_from
        rewards = x.learned_from.cpu().double()
        if self.kind == "centered":
            self._add(rewards)
            return (x.learned_from - float(self.seen[1])).to(x.learned_from.dtype)
        goes_on = (~(x.terminals | x.truncations)).cpu().double()
        returns = torch.empty_like(rewards)
        for t in range(len(rewards)):
            self.running = self.running * gamma + rewards[t]
            returns[t] = self.running
            self.running = self.running * goes_on[t]
        self._add(returns)
        return x.learned_from / max(1e-4, float((self.seen[2] / self.seen[0]).sqrt()))

    def _add(self, numbers: Tensor) -> None:
        """Join the statistics of more numbers to those seen (Chan et al. 1979)."""
        count, mean = float(numbers.numel()), numbers.mean()
        squares = (numbers - mean).square().sum()
        total = self.seen[0] + count
        apart = mean - self.seen[1]
        self.seen[2] += squares + apart.square() * self.seen[0] * count / total
        self.seen[1] += apart * count / total
        self.seen[0] = total

    def tensors(self) -> dict[str, Tensor]:
        return {"reward.running": self.running.clone(), "reward.seen": self.seen.clone()}

    def restore(self, tensors: dict[str, Tensor]) -> None:
        self.running, self.seen = tensors["reward.running"].clone(), tensors["reward.seen"].clone()
