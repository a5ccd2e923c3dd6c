"""Two batches of one game that must stay equal to the bit: one runs on, the other is often restored from itself.

What a world only remembers to be fast (which areas reach which rows, where an agent's amounts stand, where walls are)
is no part of its saved state. So whoever was just restored has forgotten all of it and must find it anew.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from types import TracebackType

import numpy as np
from random_games import quiet_make, random_actions

from gridmill import Env, Game

SHOWN = ("obs", "final_obs", "rewards", "terminals", "truncations", "masks")


class Twins:
    """`kept` runs on, under shadow validation; `restored` forgets before some of the ticks, or before every one."""

    def __init__(self, game: Game, seed: int, num_worlds: int = 2, forgets: float = 1.0) -> None:
        self.kept = quiet_make(game, num_worlds=num_worlds, seed=seed, masks=True, validation=True)
        self.restored = quiet_make(game, num_worlds=num_worlds, seed=seed, masks=True, validation=True)
        self.actions: Callable[[], np.ndarray] = random_actions(self.kept, seed)
        self.dice, self.forgets, self.tick = random.Random(seed), forgets, 0
        self.kept.reset()
        self.restored.reset()

    def __enter__(self) -> Twins:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        self.kept.close()
        self.restored.close()

    def step(self) -> None:
        """One tick of both, after which everything that can be seen of them and their states are equal."""
        if self.dice.random() < self.forgets:
            self.restored.restore(self.restored.save())
        chosen = self.actions()
        self.kept.step(chosen)
        self.restored.step(chosen)
        self.tick += 1
        for name in SHOWN:
            np.testing.assert_array_equal(getattr(self.kept, name), getattr(self.restored, name), f"{name} {self.tick}")
        np.testing.assert_array_equal(self.kept.state_hash(), self.restored.state_hash(), f"state {self.tick}")
        check_shadow(self.kept)
        check_shadow(self.restored)


def check_shadow(env: Env) -> None:
    """Rows so far were those of the reference."""
    report = env.observation_validation
    assert report is not None
    assert report.comparisons > 0
    assert report.mismatches == 0, report.first_mismatch
