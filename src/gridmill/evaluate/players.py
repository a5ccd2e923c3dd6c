"""Who plays in an evaluation: a policy by its name, or from a folder. Torch comes along only with a checkpoint."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from gridmill.env import Env, Player


class Trained(Player, Protocol):
    """A player from a file: it may have learned in another game, so it is shown where it plays."""

    def bind(self, env: Env, seed: int) -> None:
        """Get ready for the words of this environment, drawing actions from this seed on."""

    def think(self, obs: Any, state: Any, masks: Any = None) -> Any:
        """What it makes of some rows: log_probs(), values and the state after it."""

    def as_record(self) -> tuple[dict[str, Any], bytes]:
        """All that it takes to have it again, and its weights."""


def is_trained(policy: str) -> bool:
    """Whether a policy comes from a file; every other has a name with a meaning of its own."""
    return policy != "random" and policy.partition(":")[0] not in ("bot", "script")


def load_trained(policy: str) -> Trained | None:
    """A policy from a folder; None of one that has a name."""
    if not is_trained(policy):
        return None
    if not Path(policy).exists():
        raise ValueError(f"policy: expected random, script:NAME or the folder of a checkpoint or run, got `{policy}`")
    try:
        from gridmill.policy import load

        return load(policy)
    except ModuleNotFoundError as missing:
        raise ValueError(
            f"policy: `{policy}` needs {missing.name}, which is not installed: pip install 'gridmill[train]'"
        ) from None


def named(policy: str, env: Env, seed: int) -> Player:
    """A player that needs no file."""
    kind, _, name = policy.partition(":")
    if kind == "random":
        return _Random(env.num_actions, seed)
    env.games[0].expect_script(name, "policy")
    return env.games[0].scripts()[name](env, seed)


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
