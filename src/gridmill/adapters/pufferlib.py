"""A batch as a native PufferLib env. Reached through `gridmill.adapters.puffer_env`, needs pufferlib(-core) 3.

On its own it gives PufferLib the batch's own arrays, so a step copies only dense observations. Inside PufferLib's
Serial or Multiprocessing, which have their own buffers, each step copies the rows into them. PufferLib has no place for
an ended episode's last observation; code that needs it reads `batch.final_obs` before the next step.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pufferlib
from gymnasium import spaces
from numpy.typing import NDArray

from gridmill.adapters.single_world import build_game
from gridmill.adapters.views import ObsForm, View
from gridmill.env import Env, GameConfig
from gridmill.games.make import make

Stats = list[dict[str, float]]


class GridmillPufferEnv(pufferlib.PufferEnv):  # type: ignore[misc]  # pufferlib ships no types
    """See `gridmill.adapters.puffer_env`. `num_agents` counts rows; infos hold means of the episode stats."""

    def __init__(
        self,
        game: GameConfig | str,
        num_worlds: int,
        threads: int,
        seed: int | None,
        buf: Any,
        obs: ObsForm,
        sizes: Mapping[str, Any],
    ) -> None:
        self._seed = 0 if seed is None else seed
        self.batch: Env = make(build_game(game, sizes), num_worlds=num_worlds, seed=self._seed, threads=threads)
        self._view = View(self.batch, obs)
        self.single_observation_space = self._view.space
        self.single_action_space = spaces.Discrete(self.batch.num_actions)
        self.num_agents = self.batch.num_rows
        super().__init__(buf)
        self._lent = buf is None
        if self._lent:
            self.observations = self._view.empty() if self._view.dense else self.batch.obs
            self.rewards = self.batch.rewards
            self.terminals, self.truncations = self.batch.terminals, self.batch.truncations

    def reset(self, seed: int | None = None) -> tuple[NDArray[np.uint8], Stats]:
        self._view.begin(self.observations)
        self.batch.reset(seed=self._seed if seed is None else seed)
        self._hand_over()
        return self.observations, []

    def step(
        self, actions: NDArray[np.integer[Any]]
    ) -> tuple[NDArray[np.uint8], NDArray[np.float32], NDArray[np.bool_], NDArray[np.bool_], Stats]:
        self._view.begin(self.observations)
        self.batch.step(actions)
        self._hand_over()
        return self.observations, self.rewards, self.terminals, self.truncations, self._finished()

    def _hand_over(self) -> None:
        if not self._lent or self._view.dense:
            self._view.end(self.observations)
        if not self._lent:
            self.rewards[:] = self.batch.rewards
            self.terminals[:] = self.batch.terminals
            self.truncations[:] = self.batch.truncations

    def _finished(self) -> Stats:
        if not (self.batch.terminals.any() or self.batch.truncations.any()):
            return []
        means = self.batch.take_episodes().whole().means()
        return [means] if means else []

    def close(self) -> None:
        self.batch.close()
