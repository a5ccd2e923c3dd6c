"""Windows of a run: metrics of every `trainer.window_env_steps` env steps, from whole rollouts.

The open window is part of a run's state, so that a resumed run closes the same windows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gridmill.env import Env, Episodes
from gridmill.env.episodes import is_figure
from gridmill.env.windows import MetricsWindow, Ticks, Windows
from gridmill.train.experience import Experience


class RunWindows:
    """Windows of `size` env steps of an env; what is counted in them is of the agents that are learned from."""

    def __init__(self, size: int, env: Env, learners: Sequence[int]) -> None:
        self.learners, self.shape = learners, (-1, env.num_worlds, len(learners))  # of this rank's worlds
        self.names = ["length", *filter(is_figure, env.stat_names)]
        self.windows = Windows(size)
        self.signal = env.signal is not None

    def steps(self, x: Experience) -> dict[str, NDArray[np.float64]]:
        """What each step of each world of a rollout brought, each [T, worlds]."""
        paid = {"reward": x.rewards} | ({"signal": x.signal} if "signal" in x.columns else {})
        return {name: c.cpu().numpy().reshape(self.shape).sum(2, dtype=np.float64) for name, c in paid.items()}

    def add(
        self, steps: Mapping[str, NDArray[np.float64]], ended: NDArray[np.bool_], episodes: Episodes
    ) -> list[MetricsWindow]:
        """The windows that a rollout made full: what its steps brought, which of them ended episodes, and those."""
        ours = np.isin(episodes["agent"], self.learners)
        return self.windows.add(Ticks(steps, ended, episodes.where(ours)))

    def tensors(self) -> dict[str, Tensor]:
        """The open window."""
        w = self.windows.current
        sums = [w.steps.get("reward", 0.0), *(w.sums.get(name, 0.0) for name in self.names)]
        signal = {"window.signal": torch.tensor([w.steps.get("signal", 0.0)], dtype=torch.float64)}
        return (signal if self.signal else {}) | {
            "window.counts": torch.tensor([self.windows.size, w.index, w.env_steps, w.episodes, w.records]),
            "window.sums": torch.tensor(sums, dtype=torch.float64),
        }

    def restore(self, tensors: Mapping[str, Tensor]) -> None:
        """Continue the window that was open. One of another size ends unseen, and so does none at all."""
        if "window.counts" not in tensors:
            return
        size, index, env_steps, episodes, records = (int(count) for count in tensors["window.counts"])
        if size != self.windows.size:
            self.windows.current = MetricsWindow(index + 1)
            return
        reward, *sums = tensors["window.sums"].tolist()
        statistics = dict(zip(self.names, sums, strict=True)) if records else {}
        steps = {"reward": reward} if env_steps else {}
        if env_steps and self.signal:  # a signal that is new begins with nothing
            steps["signal"] = float(tensors["window.signal"][0]) if "window.signal" in tensors else 0.0
        self.windows.current = MetricsWindow(index, env_steps, episodes, records, steps, statistics)
