"""Scripted players of Prospector as policies: they see what a network would see, and nothing else.

The rules are native (native/prospector/bots.cpp); a `Bot` plays any number of rows and remembers a little of each.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gridmill import _native
from gridmill.env.kind import MakePlayer

BOTS: tuple[str, ...] = tuple(_native.prospector_bots())


class Bot:
    """A bot for `rows` rows. Call `reset` with the rows whose episode ended before it acts on the next one."""

    def __init__(self, name: str, rows: int) -> None:
        self.name = name
        self.actions: NDArray[np.int32] = np.zeros(rows, np.int32)
        self._bot = _native.ProspectorBot(name, rows)

    def act(self, obs: NDArray[np.float32], out: NDArray[np.int32] | None = None) -> NDArray[np.int32]:
        """Actions for `obs`, float32 [rows, 260]; written into `out` (such as env.actions), or an array of its own."""
        actions = self.actions if out is None else out
        self._bot.act(obs, actions)
        return actions

    def reset(self, ended: NDArray[np.bool_] | None = None) -> None:
        """Forget the rows that are true, or all."""
        rows: Any = np.ones(len(self.actions), np.bool_) if ended is None else ended
        self._bot.reset(rows)


def players() -> dict[str, MakePlayer]:
    """Every bot by name, as a player of any env."""
    return {name: partial(BotPlayer, name) for name in BOTS}


class BotPlayer:
    """A bot as a player; what it remembers of its rows is the state."""

    masks = False

    def __init__(self, name: str, env: Any = None, seed: int = 0) -> None:
        self.name = name

    def act(self, obs: NDArray[np.float32], state: Bot | None, masks: Any = None) -> tuple[NDArray[np.int32], Bot]:
        bot = state or Bot(self.name, len(obs))
        return bot.act(obs), bot

    def reset(self, state: Bot, ended: NDArray[np.bool_]) -> Bot:
        state.reset(ended)
        return state
