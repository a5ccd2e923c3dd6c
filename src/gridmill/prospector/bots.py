"""Prospector's scripts for envs of one ship: they see what a network would see, and nothing else.

The rules are native (native/prospector/bots.cpp); a `Bot` plays any number of rows and remembers a little of each.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gridmill._native import ProspectorScript
from gridmill.prospector.config import ProspectorConfig

BOTS: tuple[str, ...] = tuple(ProspectorConfig().scripts())


class Bot:
    """A bot for `rows` rows. Call `reset` with the rows whose episode ended before it acts on the next one."""

    def __init__(self, name: str, rows: int) -> None:
        self.name = name
        self.actions: NDArray[np.int32] = np.zeros(rows, np.int32)
        self._script = ProspectorScript([ProspectorConfig().core_tree()], name, rows, 0)

    def act(self, obs: NDArray[np.float32], out: NDArray[np.int32] | None = None) -> NDArray[np.int32]:
        """Actions for `obs`, float32 [rows, 260]; written into `out` (such as env.actions), or an array of its own."""
        actions = self.actions if out is None else out
        self._script.act(obs, actions)
        return actions

    def reset(self, ended: NDArray[np.bool_] | None = None) -> None:
        """Forget the rows that are true, or all."""
        self._script.reset(np.ones(len(self.actions), np.bool_) if ended is None else ended)
