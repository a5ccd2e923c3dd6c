"""Rewards, or the signal in their place, as the learner sees them; the statistics they are scaled or centred by are
part of a run's state.

They are running means over about `trainer.reward_time_scale` agent-steps: what was long ago is forgotten, and what is
divided by is the sum of the weights, so the first rollout counts in full.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

import torch
from torch import Tensor

from gridmill.policy.portable import deviation
from gridmill.train.experience import Experience
from gridmill.train.ranks import ALONE, Ranks, in_order

LEAST = 1e-4  # that rewards are divided by


class RewardScale:
    """Rewards raw, over the standard deviation of discounted returns, or less their mean.

    A row's return is that of its episode so far. In the row's first episode the run began in the middle, so to speak:
    of a return after n steps the share gamma^n is `missing`. If rewards do not depend on each other, its mean is
    `1 - missing` of a whole return's, and its variance `1 - missing^2`; the sums make up for both.
    """

    def __init__(self, kind: Literal["raw", "scaled", "centered"], rows: int, ranks: Ranks = ALONE) -> None:
        self.kind, self.ranks = kind, ranks
        self.running = torch.zeros(rows, dtype=torch.float64)  # each row's discounted return so far
        self.missing = torch.ones(rows, dtype=torch.float64)  # 0 from its second episode on
        # Of returns: 1 - missing^2, and with m = 1 - missing: m^2, m return, return^2. Of centred rewards: 1, reward.
        self.sums = torch.zeros(4, dtype=torch.float64)

    def __call__(self, x: Experience, gamma: float, time_scale: float, clip: float) -> Tensor:
        """Rewards [T, B]; scaled ones within +-clip, if that is above 0."""
        if self.kind == "raw":
            return x.learned_from
        rewards = x.learned_from.cpu().double()
        count = rewards.numel() * self.ranks.count
        self._forget(count / time_scale, time_scale)
        if self.kind == "centered":
            self.sums[:2] += torch.cat((torch.tensor([float(count)], dtype=torch.float64), self._sums(x, [rewards])))
            return (x.learned_from - float(self.sums[1] / self.sums[0])).to(x.learned_from.dtype)
        goes_on = (~(x.terminals | x.truncations)).cpu().double()
        returns, whole = torch.empty_like(rewards), torch.empty_like(rewards)
        for t in range(len(rewards)):
            self.running = self.running * gamma + rewards[t]
            self.missing = self.missing * (gamma if gamma < 1 else 0.0)  # without a discount nothing can be made up for
            returns[t], whole[t] = self.running, 1 - self.missing
            self.running, self.missing = self.running * goes_on[t], self.missing * goes_on[t]
        variances = whole * (2 - whole)  # 1 - missing^2
        self.sums += self._sums(x, [variances, whole.square(), whole * returns, returns.square()])
        scaled = x.learned_from / max(LEAST, self.deviation)
        return scaled.clamp(-clip, clip) if clip > 0 else scaled

    def _sums(self, x: Experience, columns: Sequence[Tensor]) -> Tensor:
        """The sum of each column [T, B] over the rows of all ranks."""
        pieces = zip(*(x.by_piece(column) for column in columns), strict=True)
        return in_order(self.ranks.table(torch.stack([torch.stack([n.sum() for n in piece]) for piece in pieces])))

    def _forget(self, share: float, most: float) -> None:
        """Before a rollout that is this share of the time scale. No history weighs more than the time scale: only one
        of a longer scale, or of a checkpoint of before, could."""
        weight = float(self.sums[0])
        self.sums *= math.exp(-share) * (most / weight if weight > most else 1.0)

    @property
    def deviation(self) -> float:
        """The standard deviation of discounted returns; 0 before any was seen."""
        return deviation(self.sums)

    def begin_with(self, tensors: dict[str, Tensor]) -> None:
        """Go on with the statistics of another run, whose rows are not ours."""
        self.sums = _sums(tensors, self.kind)

    def tensors(self) -> dict[str, Tensor]:
        return self.by_row() | {"reward.sums": self.sums.clone()}

    def by_row(self) -> dict[str, Tensor]:
        return {"reward.running": self.running.clone(), "reward.missing": self.missing.clone()}

    def restore(self, tensors: dict[str, Tensor]) -> None:
        """Go on where these were taken; without any, from the beginning."""
        if "reward.running" not in tensors:
            return
        self.running, self.sums = tensors["reward.running"].clone(), _sums(tensors, self.kind)
        # A checkpoint of before says nothing of it: its rows count as those of whole episodes.
        self.missing = tensors.get("reward.missing", torch.zeros_like(self.running)).clone()


def _sums(tensors: dict[str, Tensor], kind: str) -> Tensor:
    """The saved sums. A checkpoint of before has count, mean and squared distances of all history instead."""
    if "reward.sums" in tensors:
        return tensors["reward.sums"].clone()
    if tensors.get("reward.seen", torch.zeros(0)).shape != (3,):
        raise ValueError("reward.sums: expected a tensor of this name, got none")
    count, mean, apart = tensors["reward.seen"].tolist()
    if kind == "centered":
        return torch.tensor([count, count * mean, 0.0, 0.0], dtype=torch.float64)
    return torch.tensor([count, count, count * mean, apart + count * mean**2], dtype=torch.float64)
