"""Who plays in an evaluation: a policy by its name, from a folder, or of the user's own; and several in one world.

Torch comes along only with a checkpoint.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from gridmill.config import user_code
from gridmill.config.install import pip_install
from gridmill.config.text import clipped
from gridmill.env import Env, PlayerLike
from gridmill.env.own_players import as_player, from_file
from gridmill.policy import which


class Trained(PlayerLike, Protocol):
    """A player from a file: it may have learned in another game, so it is shown where it plays."""

    def bind(self, env: Env, seed: int) -> None:
        """Prepare for the words of this environment, and draw actions from this seed."""

    def think(self, obs: Any, state: Any, masks: Any = None) -> Any:
        """What it makes of some rows: log_probs(), values and the state after it."""

    def as_record(self) -> tuple[dict[str, Any], bytes]:
        """All that it takes to have it again, and its weights."""


def is_trained(policy: str) -> bool:
    """Whether a policy comes from a file; every other has a name with a meaning of its own."""
    return policy != "random" and policy.partition(":")[0] not in ("bot", "script")


def beside_scripts(name: str) -> bool:
    """Whether a player by this name is no script of the game: a folder, a file of the user's own, or `random`."""
    return name == "random" or user_code.is_own(name) or which.exists(name)


@dataclass(frozen=True)
class Choice:
    """Who was asked to play: what tables call it, and how it is made for an env."""

    name: str
    make: Callable[[Env, int], PlayerLike]
    trained: Trained | None = None  # one that knows values
    masks: bool = False  # whether it wants to be told which actions would succeed


def chosen(policy: Any, greedy: bool = False, temperature: float = 1.0) -> Choice:
    """A policy by its name, from a folder or a file of the user's own; or an object, as `evaluate` says."""
    if not isinstance(policy, str):
        if isinstance(getattr(policy, "masks", None), bool) and hasattr(policy, "bind"):
            if greedy or temperature != 1:
                raise ValueError("policy: this policy is already loaded; pass greedy and temperature to policy.load")
            return _of_trained(policy, str(getattr(policy, "path", None) or type(policy).__name__))
        name = getattr(policy, "__name__", type(policy).__name__)
        wants = bool(getattr(policy, "masks", True))
        return Choice(name, lambda env, seed: as_player(policy, env, name, greedy), masks=wants)
    if not is_trained(policy):
        return Choice(policy, lambda env, seed: named(policy, env, seed))
    if user_code.is_own(policy) and not os.path.isdir(policy):
        return Choice(policy, lambda env, seed: from_file(policy, env, seed, greedy), masks=True)
    return _of_trained(load_trained(policy, greedy, temperature), policy)


def _of_trained(trained: Trained, name: str) -> Choice:
    def ready(env: Env, seed: int) -> PlayerLike:
        trained.bind(env, seed)
        return trained

    return Choice(name, ready, trained, trained.masks)


def load_trained(policy: str, greedy: bool = False, temperature: float = 1.0) -> Trained:
    """A policy from a folder."""
    if not which.exists(policy):
        known = "random, script:NAME, FILE.py:function or the folder of a checkpoint or run"
        raise ValueError(f"policy: expected {known}, got `{clipped(policy, 400)}`")
    try:
        from gridmill.policy import load

        return load(policy, greedy, temperature)
    except ModuleNotFoundError as missing:
        raise ValueError(
            f"policy: `{policy}` needs {missing.name}, which is not installed: {pip_install('gridmill[train]')}"
        ) from None


def named(policy: str, env: Env, seed: int) -> PlayerLike:
    """A player that needs no file."""
    kind, _, name = policy.partition(":")
    if kind == "random":
        return _Random(env.num_actions, seed)
    env.games[0].expect_script(name, "policy")
    return env.games[0].scripts()[name](env, seed)


# ---- several in one world


class Cast:
    """Who acts for which agents of every world: the policy in its own rows, other players in theirs.

    Scripts of the core are not among them: it acts for those by itself.
    """

    def __init__(self, choice: Choice, others: Mapping[str, Choice], order: Sequence[str], env: Env, seed: int) -> None:
        agents = np.tile(np.array(order), env.num_worlds)
        self.rows = {name: np.flatnonzero(agents == name) for name in ("", *others)}
        self.players = {"": choice.make(env, seed)}
        for number, (name, other) in enumerate(others.items(), start=1):
            self.players[name] = other.make(env, seed + number * 1_000_003)  # draws of its own
        self.states: dict[str, Any] = dict.fromkeys(self.rows)
        self.actions = np.zeros(env.num_rows, np.int64)
        self.env = env

    def act(self) -> NDArray[np.int64]:
        """Actions of all rows; where a script of the core acts they do not count."""
        env = self.env
        for name, rows in self.rows.items():
            masks = None if env.masks is None else env.masks[rows]
            found, self.states[name] = self.players[name].act(env.obs[rows], self.states[name], masks)
            self.actions[rows] = found
        return self.actions

    def reset(self, ended: NDArray[np.bool_]) -> None:
        for name, rows in self.rows.items():
            self.states[name] = self.players[name].reset(self.states[name], ended[rows])


class _Random:
    """Any action, also ones that cannot succeed."""

    masks = False

    def __init__(self, num_actions: int, seed: int) -> None:
        self.num_actions = num_actions
        self.rng = np.random.default_rng(seed)

    def act(self, obs: NDArray[Any], state: None, masks: Any = None) -> tuple[NDArray[np.int32], None]:
        return self.rng.integers(0, self.num_actions, len(obs), dtype=np.int32), None

    def reset(self, state: None, ended: NDArray[np.bool_]) -> None:
        return None
