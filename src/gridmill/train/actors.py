"""Actors: other policies of checkpoints beside ours. A teacher is shown what ours sees, and what it makes of it is
stored for the losses; a frozen player acts in rows that are not learned from.

Each remembers its own recurrent state, which is part of a run's state.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gridmill.env.env import Env
from gridmill.policy import load
from gridmill.policy.player import Thought


class Rows(NamedTuple):
    """Some rows: where they are in the arrays of the env, and where among those that somebody acts in."""

    env: slice | NDArray[np.int64]
    own: slice


class Actor:
    """A policy from a checkpoint, for some rows of an env."""

    def __init__(self, path: str, env: Env, seed: int, rows: int) -> None:
        self.player = load(Path(path))
        self.player.bind(env, seed)
        self.env = env
        self.state = np.zeros((rows, self.player.policy.state_size), np.float32)

    def think(self, rows: Rows, episode_starts: NDArray[np.uint8]) -> Thought:
        """What it makes of what it sees now; an episode begins where `episode_starts` [rows of the env] is not 0."""
        masks = None if self.env.masks is None else self.env.masks[rows.env]
        before = self.player.reset(self.state[rows.own], episode_starts[rows.env] != 0)
        thought = self.player.think(self.env.obs[rows.env], before, masks)
        self.state[rows.own] = thought.state
        return thought

    def outputs(self, thought: Thought, names: set[str], rows: Rows, step: int) -> dict[str, Any]:
        """What a column may ask for, by its name; the empty one is the action."""
        found: dict[str, Any] = {}
        if "" in names:
            found[""] = self.player.choose(thought, step, rows.own.start)
        if "log_probs" in names:
            masks = None if self.env.masks is None else self.env.masks[rows.env]
            found["log_probs"] = thought.log_probs(masks).numpy()
        if "values" in names:
            found["values"] = thought.values.numpy()
        return found

    def tensor(self) -> Tensor:
        return torch.from_numpy(self.state.copy())

    def restore(self, state: Tensor) -> None:
        self.state[:] = state.numpy()
