"""Runs small enough to train in a moment, words of a game that does not exist, and an environment that is a script."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from gridmill import games
from gridmill.env import GameConfig
from gridmill.policy import onednn
from gridmill.policy.spec import Spec
from gridmill.run import Loss, OptimizerConfig, PolicyConfig, Run, TrainerConfig

needs_bf16 = pytest.mark.skipif(onednn.settle().state == "broken", reason=onednn.settle().text)

SHORT = 13  # steps of an episode: several end in a rollout, and none at the edge of a segment


def short_game(num_agents: int = 3) -> GameConfig:
    return games.toy(num_agents=num_agents, map_size=9, max_steps=SHORT)


def small_run(
    game: GameConfig | None = None,
    policy: dict[str, Any] | None = None,
    losses: Mapping[str, Loss] | None = None,
    optimizer: OptimizerConfig | None = None,
    seed: int = 0,
    **trainer: Any,
) -> Run:
    """Four worlds, two segments of eight steps per row and two minibatches, unless told otherwise."""
    game = short_game() if game is None else game
    rows = trainer.get("num_worlds", 4) * game.num_agents
    usual: dict[str, Any] = {
        "num_worlds": 4, "threads": 1, "async_factor": 2, "bptt_horizon": 8,
        "batch_size": 16 * rows, "minibatch_size": 8 * rows, "device": "cpu",
    }  # fmt: skip
    return Run(
        recipe="small",
        seed=seed,
        game=game,
        policy=PolicyConfig(**({"hidden": 32} | (policy or {}))),
        **({} if losses is None else {"losses": losses}),
        optimizer=optimizer or OptimizerConfig(),
        trainer=TrainerConfig(**(usual | trainer)),
    )


def hash_of(weights: dict[str, Tensor]) -> str:
    """One name for all bytes of some weights."""
    found = hashlib.sha256()
    for name, tensor in weights.items():
        found.update(name.encode() + tensor.detach().contiguous().numpy().tobytes())
    return found.hexdigest()


# ---- tokens without a game

WORDS = Spec(
    kind="tokens",
    actions=("noop", "north", "south", "use"),
    num_tokens=12,
    window=(5, 7),
    features=("facing", "inv:ore", "last_action", "last_reward", "tag", "vibe"),
    normalizers=(3.0, 255.0, 3.0, 255.0, 2.0, 1.0),
    tags=("altar", "mine", "wall"),
    vibes=("calm", "wild"),
)
VALUES = {"facing": 4, "inv:ore": 256, "last_action": 4, "last_reward": 256, "tag": 3, "vibe": 2}


def random_tokens(rows: int, seed: int, spec: Spec = WORDS) -> np.ndarray[Any, np.dtype[np.uint8]]:
    """Observations of these words: rows full, empty and between, with tokens that lie nowhere."""
    rng = np.random.default_rng(seed)
    obs = np.full((rows, spec.num_tokens, 3), 255, np.uint8)
    for row in range(rows):
        count = (0, spec.num_tokens, int(rng.integers(1, spec.num_tokens)))[row % 3]
        for k in range(count):
            feature = int(rng.integers(len(spec.features)))
            place = int(rng.integers(spec.window[0])) << 4 | int(rng.integers(spec.window[1]))
            value = int(rng.integers(VALUES[spec.features[feature]]))
            obs[row, k] = (254 if rng.random() < 0.2 else place, feature, value)
    return obs


# ---- an environment that is only arithmetic


class Scripted:
    """Rows that count: what a policy sees and what it gets is a plain function of row, episode, tick and action.

    An episode of row r has 3 + r % 4 steps; its end is a termination, a truncation, or both at once, in turn.
    """

    ACTIONS = 4

    def __init__(self, rows: int, lanes: int, masks: bool) -> None:
        self.lanes, self.count = lanes, rows
        self.obs = np.zeros((rows, 5), np.float32)
        self.final_obs = np.full_like(self.obs, np.nan)
        self.rewards = np.zeros(rows, np.float32)
        self.terminals, self.truncations = np.zeros(rows, np.bool_), np.zeros(rows, np.bool_)
        self.actions = np.zeros(rows, np.int32)
        self.masks = np.ones((rows, self.ACTIONS), np.uint8) if masks else None
        self.episode, self.tick = np.zeros(rows, np.int64), np.zeros(rows, np.int64)
        self.flying: set[int] = set()
        for row in range(rows):
            self._show(row)

    @property
    def spec(self) -> Spec:
        return Spec(kind="vector", actions=("a", "b", "c", "d"), obs_size=5)

    def rows(self, lane: int) -> slice:
        size = self.count // self.lanes
        return slice(lane * size, (lane + 1) * size)

    def send(self, lane: int) -> None:
        assert lane not in self.flying
        self.flying.add(lane)
        for row in range(self.rows(lane).start, self.rows(lane).stop):
            self._step(row)

    def recv(self, lane: int) -> None:
        self.flying.remove(lane)

    def seen_at(self, row: int, episode: int, tick: int) -> Any:
        return np.sin(np.arange(1, 6) * (0.7 * row + 1.3 * episode + 0.31 * tick + 0.1)).astype(np.float32)

    def reward_of(self, row: int, episode: int, tick: int, action: int) -> np.float32:
        return np.float32(np.cos(row + 2.0 * episode + 3.0 * tick + 5.0 * action))

    def end_of(self, row: int, episode: int) -> tuple[bool, bool]:
        """Whether the episode's last step is a termination and a truncation."""
        turn = (row + episode) % 3
        return turn in (0, 2), turn in (1, 2)

    def allowed_at(self, row: int, episode: int, tick: int) -> Any:
        return ((np.arange(self.ACTIONS) + row + episode + tick) % 3 != 0).astype(np.uint8)

    def _show(self, row: int) -> None:
        now = (row, int(self.episode[row]), int(self.tick[row]))
        self.obs[row] = self.seen_at(*now)
        if self.masks is not None:
            self.masks[row] = self.allowed_at(*now)

    def _step(self, row: int) -> None:
        episode, tick = int(self.episode[row]), int(self.tick[row])
        self.rewards[row] = self.reward_of(row, episode, tick, int(self.actions[row]))
        ended = tick + 1 == 3 + row % 4
        self.terminals[row], self.truncations[row] = self.end_of(row, episode) if ended else (False, False)
        if ended:
            self.final_obs[row] = self.seen_at(row, episode, tick + 1)
            self.episode[row] += 1
            self.tick[row] = 0
        else:
            self.tick[row] += 1
        self._show(row)


def zeros(*shape: int) -> Tensor:
    return torch.zeros(shape, dtype=torch.uint8)
