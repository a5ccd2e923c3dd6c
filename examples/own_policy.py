"""A policy of your own without a network: it walks on until something is in the way, then turns.

gridmill eval toy --policy examples/own_policy.py:walker
"""

from typing import Any

import numpy as np

from gridmill.env import Env
from gridmill.evaluate import evaluate


class Walker:
    """Asked once per tick for all rows. The state is what it returned last; 0 in rows whose episode has ended."""

    def __init__(self, env: Env, seed: int) -> None:
        self.moves = np.array([i for i, name in enumerate(env.action_names) if name.startswith("move")])
        self.rng = np.random.default_rng(seed)

    def act(self, obs: Any, state: Any, masks: Any) -> tuple[Any, Any]:
        """obs [rows, ...] and masks [rows, actions]: 1 where an action would succeed."""
        heading = np.zeros(len(obs), np.int64) if state is None else state
        blocked = masks[np.arange(len(obs)), self.moves[heading]] == 0
        turned = self.rng.integers(len(self.moves), size=len(obs))
        heading = np.where(blocked, turned, heading)
        return self.moves[heading], heading


def walker(env: Env, seed: int) -> Walker:
    """What --policy names: a function of an environment and a seed."""
    return Walker(env, seed)


if __name__ == "__main__":
    for policy in ("random", f"{__file__}:walker"):
        result = evaluate("toy", policy, episodes=4)
        print(f"{policy.rpartition('/')[2]}: {result.stats['cell.visited'].mean:.1f} cells visited")
