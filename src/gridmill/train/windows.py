"""Windows of a run: metrics of every `trainer.window_env_steps` env steps, from whole rollouts.

The open window is part of a run's state, so that a resumed run closes the same windows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gridmill.env.env import Env
from gridmill.env.kind import EPISODE_KEYS
from gridmill.env.windows import Ticks, Window, Windows
from gridmill.train.experience import Experience


class RunWindows:
    """Windows of `size` env steps of an env; what is counted in them is of the agents that are learned from."""

    def __init__(self, size: int, env: Env, learners: Sequence[int]) -> None:
        self.learners, self.shape = learners, (-1, env.num_worlds, len(learners))
        self.names = ["length", *(name for name in env.stat_names if name not in EPISODE_KEYS)]
        self.windows = Windows(size)

    def add(self, x: Experience, episodes: Mapping[str, NDArray[Any]]) -> list[Window]:
        """The windows that a rollout made full; `episodes` are those that ended in it."""
        rewards = x.rewards.cpu().numpy().reshape(self.shape).sum(2, dtype=np.float64)
        ended = (x.terminals | x.truncations).cpu().numpy().reshape(self.shape)[:, :, 0]
        ours = np.isin(episodes["agent"], self.learners)
        return self.windows.add(
            Ticks({"reward": rewards}, ended, {name: all_[ours] for name, all_ in episodes.items()})
        )

    def tensors(self) -> dict[str, Tensor]:
        """The open window."""
        w = self.windows.current
        sums = [w.steps.get("reward", 0.0), *(w.sums.get(name, 0.0) for name in self.names)]
        return {
            "window.counts": torch.tensor([self.windows.size, w.index, w.env_steps, w.episodes, w.records]),
            "window.sums": torch.tensor(sums, dtype=torch.float64),
        }

    def restore(self, tensors: Mapping[str, Tensor]) -> None:
        """Continue the window that was open. One of another size ends unseen, and so does none at all."""
        if "window.counts" not in tensors:
            return
        size, index, env_steps, episodes, records = (int(count) for count in tensors["window.counts"])
        if size != self.windows.size:
            self.windows.current = Window(index + 1)
            return
        reward, *sums = tensors["window.sums"].tolist()
        statistics = dict(zip(self.names, sums, strict=True)) if records else {}
        steps = {"reward": reward} if env_steps else {}
        self.windows.current = Window(index, env_steps, episodes, records, steps, statistics)
