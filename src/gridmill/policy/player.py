"""Player: a trained policy behind NumPy arrays, loaded from a checkpoint: act(obs, state, masks) -> actions, state.

Actions are sampled from its distribution, at a temperature, or are the most likely ones (`greedy`); `think` gives
logits and values. It uses the checkpoint's own words: in an environment with other features, tags or actions, those
that both have are matched by name; unknown features are ignored, and unknown actions are never chosen.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gridmill.env import Env
from gridmill.policy import checkpoint, portable, record
from gridmill.policy.kernels import native
from gridmill.policy.network import FORBIDDEN, Policy
from gridmill.policy.spec import Spec

State = NDArray[np.float32]
COLDEST, HOTTEST = 1e-30, 1e30  # temperatures: logits of up to 1e8 stay finite in float32 when they are divided


class Thought(NamedTuple):
    """What a policy makes of some rows."""

    logits: Tensor  # [rows, actions of the environment]
    allowed: NDArray[np.uint8] | None  # the same shape: 0 where it would not act so; None = it may do anything
    values: Tensor  # [rows]
    state: State  # after it

    def log_probs(self, masks: NDArray[np.uint8] | None = None) -> Tensor:
        """[rows, actions]; actions that it does not know, or that a mask forbids, are practically impossible."""
        logits = self.logits
        for possible in (self.allowed, masks):
            if possible is not None:
                logits = logits.masked_fill(torch.from_numpy(possible) == 0, FORBIDDEN)
        return logits.log_softmax(-1)


class Player:
    """Plays rows of an environment. `masks` says whether it was trained with masks and needs them."""

    def __init__(
        self, policy: Policy, masks: bool, greedy: bool = False, temperature: float = 1.0, sha256: str = ""
    ) -> None:
        if not COLDEST <= temperature <= HOTTEST:
            said = f"expected a number from {COLDEST:g} to {HOTTEST:g}, or greedy for the likeliest action"
            raise ValueError(f"temperature: {said}, got {temperature!r}")
        self.policy, self.masks, self.seed = policy, masks, 0
        self.greedy, self.temperature = greedy, float(temperature)
        self.path: Path | None = None  # of the checkpoint
        self.sha256 = sha256  # of the weights and the record that it came from
        self._actions: list[int] | None = None  # where the environment's actions are among the policy's; -1 = nowhere
        self.step = 0
        self.gamma: float | None = None  # what its values are discounted by
        self.reward_scale: float | None = None  # and what the rewards in them were divided by; None = unknown

    def __repr__(self) -> str:
        how = "greedy" if self.greedy else "sampled" if self.temperature == 1 else f"temperature {self.temperature:g}"
        return f"<Player {self.path or 'without a checkpoint'}: {how}, {self.policy!r}>"

    def as_record(self) -> tuple[dict[str, Any], bytes]:
        """Everything needed to rebuild the player as plain data, and its weights; `of_record` is the inverse."""
        tree, data = portable.as_record(self.policy)
        return tree | {"masks": self.masks, "gamma": self.gamma, "reward_scale": self.reward_scale}, data

    def bind(self, env: Env, seed: int = 0) -> None:
        """Prepare for the words of this environment, and draw actions from this seed."""
        own, seen = self.policy.spec, Spec.of(env)
        if seen.kind != own.kind or seen.obs_size != own.obs_size:
            raise ValueError(f"the policy was trained on {_what(own)} and cannot read {_what(seen)}")
        self.policy.read(seen)
        places = [own.actions.index(name) if name in own.actions else -1 for name in seen.actions]
        self._actions = None if places == list(range(len(own.actions))) else places
        self.seed, self.step = seed, 0

    @torch.inference_mode()
    def think(self, obs: NDArray[Any], state: State | None = None, masks: NDArray[Any] | None = None) -> Thought:
        """The policy's outputs for some rows, for the environment's actions; with state None it starts over."""
        rows = len(obs)
        before = torch.zeros(rows, self.policy.state_size) if state is None else torch.from_numpy(state)
        never = torch.zeros(1, rows, dtype=torch.uint8)
        out = self.policy(torch.from_numpy(obs)[None], before, never, None)
        logits = out.logits[0]
        if self._actions is not None:
            wider = torch.cat((logits, logits.new_full((rows, 1), FORBIDDEN)), 1)
            logits = wider[:, self._actions].contiguous()
        allowed = None if masks is None or not self.masks else np.ascontiguousarray(masks, np.uint8)
        if self._actions is not None:  # a logit alone leaves an action a chance, however small
            known = np.asarray(self._actions) >= 0
            allowed = np.tile(known, (rows, 1)).view(np.uint8) if allowed is None else allowed & known
        return Thought(logits, allowed, out.values[0], out.state.numpy())

    def choose(self, thought: Thought, step: int, first_row: int = 0) -> NDArray[np.int32]:
        """Actions sampled from it, or the most likely ones; samples depend on the seed, the step and the row."""
        rows = len(thought.logits)
        if self.greedy:
            logits = thought.logits.numpy()
            allowed = logits if thought.allowed is None else np.where(thought.allowed != 0, logits, -np.inf)
            likeliest: NDArray[np.int32] = allowed.argmax(-1).astype(np.int32)
            return likeliest
        logits = thought.logits.numpy() if self.temperature == 1 else (thought.logits / self.temperature).numpy()
        actions, log_probs = np.zeros(rows, np.int32), np.zeros(rows, np.float32)
        native.sample_actions(logits, thought.allowed, self.seed, step, first_row, actions, log_probs)
        return actions

    def act(
        self, obs: NDArray[Any], state: State | None = None, masks: NDArray[Any] | None = None, first_row: int = 0
    ) -> tuple[NDArray[np.int32], State]:
        """Actions int32 [rows], and the state for the next call; with state None it starts over.

        `first_row` is the number of the first of these rows among all rows that share the seed.
        """
        thought = self.think(obs, state, masks)
        actions = self.choose(thought, self.step, first_row)
        self.step += 1
        return actions, thought.state

    def reset(self, state: State | None, ended: NDArray[np.bool_]) -> State | None:
        """Clear the state of the rows whose episode ended."""
        if state is not None and ended.any():
            state = np.where(ended[:, None], np.float32(0), state)
        return state


def load(path: Path, greedy: bool = False, temperature: float = 1.0) -> Player:
    """The newest policy under a path, ready for the game it was trained on; `bind` makes it ready for another."""
    found = checkpoint.latest(path, checkpoint.load_policy)
    policy, saved = record.network(found)
    policy.freeze(True)
    player = Player(policy, saved.run.trainer.masks, greedy, temperature, found.sha256)
    player.path = found.path
    player.gamma, player.reward_scale = portable.meaning(found.path, saved.run.trainer)
    return player


def of_record(tree: Mapping[str, Any], tensors: Sequence[tuple[str, tuple[int, ...]]], data: bytes) -> Player:
    """The player for a record from `Player.as_record`; ValueError if it is not one."""
    player = Player(portable.from_record(tree["config"], tree["spec"], tensors, data), bool(tree["masks"]))
    player.gamma, player.reward_scale = tree["gamma"], tree["reward_scale"]
    return player


def _what(spec: Spec) -> str:
    return "token observations" if spec.kind == "tokens" else f"vectors of {spec.obs_size} numbers"
