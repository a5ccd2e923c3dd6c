"""The reference Prospector as an environment to train in (trainer.env_impl = reference): plain Python, very slow.

Behind the arrays and words of a batch that the trainer uses. With trainer.desync_episodes = false a run is equal to one
on the native core, bit by bit: that is what it is for. Here first episodes are never shortened.
"""

from __future__ import annotations

import json
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from gridmill.batch import Env
from gridmill.config import ConfigError
from gridmill.prospector.actions import ACTION_NAMES
from gridmill.prospector.config import NUM_ACTIONS, OBS_SIZE, ProspectorConfig
from gridmill.prospector.draws import Pcg32
from gridmill.prospector.reference import ReferenceWorld
from gridmill.prospector.reference_views import info, mask, observe
from gridmill.run import Run


class ReferenceEnv:
    """Worlds of Prospector, one after the other; a lane is stepped when it is sent."""

    num_agents, num_actions, threads = 1, NUM_ACTIONS, 1

    @staticmethod
    def of(run: Run) -> Env:
        """The environment of a run; it has all of an Env that training asks for."""
        if not isinstance(run.game, ProspectorConfig):
            raise ConfigError(
                f"expected a game that has a reference to train in (prospector), got {run.game.name}; use auto",
                "$.trainer.env_impl",
            )
        t = run.trainer
        return cast(Env, ReferenceEnv(run.game, t.num_worlds, run.seed, t.async_factor, t.masks))

    def __init__(self, game: ProspectorConfig, num_worlds: int, seed: int, lanes: int, masks: bool) -> None:
        self.game, self.num_worlds, self.num_rows, self.lanes = game, num_worlds, num_worlds, lanes
        self.action_names = list(ACTION_NAMES)
        self.obs = np.zeros((num_worlds, OBS_SIZE), np.float32)
        self.final_obs = np.zeros_like(self.obs)
        self.actions = np.zeros(num_worlds, np.int32)
        self.rewards = np.zeros(num_worlds, np.float32)
        self.terminals, self.truncations = np.zeros(num_worlds, np.bool_), np.zeros(num_worlds, np.bool_)
        self.masks = np.zeros((num_worlds, NUM_ACTIONS), np.uint8) if masks else None
        self._first_seed = seed
        self._worlds: list[ReferenceWorld] = []
        # What an episode is made of: the random state it began with, and its actions. Nothing else is saved.
        self._began: list[int] = []
        self._played: list[list[int]] = []
        self._returns: list[float] = []
        self._episodes: list[int] = []
        self._finished: list[dict[str, Any]] = []

    def reset(self) -> None:
        """The first episode of every world."""
        self._worlds = [ReferenceWorld(self.game, self._first_seed + w) for w in range(self.num_worlds)]
        self._episodes = [0] * self.num_worlds
        self._began = [Pcg32(self._first_seed + w).state for w in range(self.num_worlds)]
        self._played, self._returns = [[] for _ in self._worlds], [0.0] * self.num_worlds
        for row in range(self.num_worlds):
            self._show(row)

    def rows(self, lane: int) -> slice:
        size = self.num_worlds // self.lanes
        return slice(lane * size, (lane + 1) * size)

    def send(self, lane: int) -> None:
        rows = self.rows(lane)
        for row in range(rows.start, rows.stop):
            self._step(row, int(self.actions[row]))

    def recv(self, lane: int) -> None:
        """All was done when it was sent."""

    def _step(self, row: int, action: int) -> None:
        world = self._worlds[row]
        reward = world.step(action)
        self.rewards[row], self.terminals[row], self.truncations[row] = reward, world.terminated, world.truncated
        self._played[row].append(action)
        self._returns[row] += reward
        if world.terminated or world.truncated:
            self.final_obs[row] = observe(world)
            self._finish(row, world)
            self._began[row] = world.rng.state
            world.reset()
        self._show(row)

    def _show(self, row: int) -> None:
        self.obs[row] = observe(self._worlds[row])
        if self.masks is not None:
            self.masks[row] = mask(self._worlds[row])

    def _finish(self, row: int, world: ReferenceWorld) -> None:
        facts = info(world)
        facts |= {"ticks": world.ticks, "node_context": facts["node_context"] == "field"}
        head = {"world": row, "agent": 0, "game": 0, "episode": self._episodes[row], "short_first": False}
        record = head | {"length": len(self._played[row]), "reward": self._returns[row]} | facts
        self._finished.append(record)
        self._episodes[row] += 1
        self._played[row], self._returns[row] = [], 0.0

    def take_episodes(self) -> dict[str, NDArray[Any]]:
        """Episodes finished since the last call."""
        taken, self._finished = self._finished, []
        names = taken[0] if taken else ("short_first",)
        return {name: np.array([record[name] for record in taken], None if taken else np.bool_) for name in names}

    # ---- state

    def save(self) -> bytes:
        """The worlds as their episodes so far; `restore` plays them again."""
        state = {"began": self._began, "played": self._played, "episodes": self._episodes}
        return json.dumps(state).encode()

    def restore(self, data: bytes) -> None:
        state = json.loads(data)
        self.reset()
        self._began, self._episodes = state["began"], state["episodes"]
        for row, actions in enumerate(state["played"]):
            world = self._worlds[row]
            world.rng.state = self._began[row]
            world.reset()
            for action in actions:
                self._returns[row] += world.step(action)
            self._played[row] = actions
            self._show(row)

    def close(self) -> None:
        """Nothing is held."""
