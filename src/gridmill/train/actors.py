"""Actors: other policies that are shown what ours sees, and whose actions are stored for a loss, such as a teacher's.

Each remembers its own recurrent state, which is part of a run's state.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gridmill.env.env import Env
from gridmill.policy import load


class Actor:
    """A policy from a checkpoint, for every row of an env."""

    def __init__(self, path: str, env: Env, seed: int) -> None:
        self.player = load(path)
        self.player.bind(env, seed)
        self.env = env
        self.state = np.zeros((env.num_rows, self.player.policy.state_size), np.float32)

    def act(self, rows: slice, step: int, episode_starts: NDArray[np.uint8]) -> NDArray[np.int32]:
        """What it would do now in some rows; they have come to this step of the run."""
        masks = None if self.env.masks is None else self.env.masks[rows]
        before = self.player.reset(self.state[rows], episode_starts[rows] != 0)
        self.player.step = step  # with the seed and the row all that drawing an action depends on
        actions: Any
        actions, self.state[rows] = self.player.act(self.env.obs[rows], before, masks, rows.start)
        return actions  # type: ignore[no-any-return]

    def tensor(self) -> Tensor:
        return torch.from_numpy(self.state.copy())

    def restore(self, state: Tensor) -> None:
        self.state[:] = state.numpy()
