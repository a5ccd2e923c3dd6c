"""Actors: others beside our policy. A teacher, a policy of a checkpoint, is shown what ours sees, and what it makes of
it is stored for the losses; a player, a policy of a checkpoint or code of the user's own, acts in rows that are not
learned from.

Each remembers its own state, which is part of a run's state.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gridmill.env.env import Env
from gridmill.env.own_players import from_file
from gridmill.policy import load
from gridmill.policy.player import Thought


class Rows(NamedTuple):
    """Some rows: where they are in the arrays of the env, and where among those that somebody acts in."""

    env: slice | NDArray[np.int64]
    own: slice


class Actor:
    """A policy from a checkpoint, for some rows of an env; the `first` of them among those of all ranks."""

    def __init__(self, path: str, env: Env, seed: int, rows: int, first: int = 0) -> None:
        self.player, self.first = load(Path(path)), first
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

    def act(self, rows: Rows, episode_starts: NDArray[np.uint8], step: int) -> NDArray[np.int32]:
        """Actions for some rows."""
        return self.player.choose(self.think(rows, episode_starts), step, self.first + rows.own.start)

    def outputs(self, thought: Thought, names: set[str], rows: Rows, step: int) -> dict[str, Any]:
        """What a column may ask for, by its name; the empty one is the action."""
        found: dict[str, Any] = {}
        if "" in names:
            found[""] = self.player.choose(thought, step, self.first + rows.own.start)
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


class OwnActor:
    """A player of the user's own in Python, for some rows of an env; it is asked once for each lane.

    What it remembers is None or an array with an entry for each row, since it is saved with the run. What it draws is
    its own affair: other ranks than 0 get other seeds.
    """

    def __init__(self, text: str, env: Env, seed: int, rows: int, first: int = 0) -> None:
        self.player, self.text, self.env = from_file(text, env, seed + first), text, env
        self.state: NDArray[Any] | None = None  # of all rows, once there is one
        self.begun = np.zeros(rows, np.bool_)  # which rows have one

    def act(self, rows: Rows, episode_starts: NDArray[np.uint8], step: int) -> NDArray[Any]:
        before, own = None, rows.own
        if self.state is not None and self.begun[own].all():
            before = self.player.reset(self.state[own].copy(), episode_starts[rows.env] != 0)
        masks = None if self.env.masks is None else self.env.masks[rows.env]
        actions, after = self.player.act(self.env.obs[rows.env], before, masks)
        if after is not None:
            self._keep(after, own)
        self.begun[own] = after is not None
        found: NDArray[Any] = actions
        return found

    def _keep(self, state: Any, own: slice) -> None:
        size = own.stop - own.start
        if not isinstance(state, np.ndarray) or len(state) != size or state.dtype == object:
            got = f"{state.dtype} {list(state.shape)}" if isinstance(state, np.ndarray) else type(state).__name__
            more = "; a recurrent model of Stable-Baselines3 plays only in eval" if isinstance(state, tuple) else ""
            raise TypeError(f"{self.text}: expected None or an array [{size}, ...] as the state, got {got}{more}")
        if self.state is None:
            self.state = np.zeros((len(self.begun), *state.shape[1:]), state.dtype)
        self.state[own] = state

    def tensor(self) -> Tensor:
        """Empty where nothing is remembered."""
        return torch.zeros(0) if self.state is None else torch.from_numpy(self.state.copy())

    def restore(self, state: Tensor) -> None:
        if state.numel():
            if state.shape[:1] != self.begun.shape:
                raise ValueError(
                    f"{self.text}: expected a state of {len(self.begun)} rows, got the shape {tuple(state.shape)}"
                )
            self.state, self.begun[:] = state.numpy().copy(), True
