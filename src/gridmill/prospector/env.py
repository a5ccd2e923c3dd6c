"""ProspectorBatchEnv: the Env of Prospector, one ship in each world."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from gridmill import _native
from gridmill.env import Env, GameConfig
from gridmill.env.arguments import whole
from gridmill.prospector.actions import ACTION_NAMES


class StepInfo(NamedTuple):
    """What the last step of each row was: its length in ticks, whether it was invalid, the action that counted."""

    dt: npt.NDArray[np.int32]
    invalid: npt.NDArray[np.bool_]
    action: npt.NDArray[np.int32]


class ProspectorBatchEnv(Env):
    """Worlds of Prospector: one ship each, observations float32 [rows, 260]."""

    _batch: _native.ProspectorBatch

    def __init__(self, games: Sequence[GameConfig], **options: Any) -> None:
        super().__init__(_native.ProspectorBatch, games, options)
        self.action_names = list(ACTION_NAMES)
        self._step_info = StepInfo(
            np.zeros(self.num_rows, np.int32), np.zeros(self.num_rows, np.bool_), np.zeros(self.num_rows, np.int32)
        )

    @property
    def step_info(self) -> StepInfo:
        """dt, invalid and action of every row's last step; the arrays are made once and filled when asked for."""
        self._batch.step_info(*self._step_info)
        return self._step_info

    def step_facts(self) -> dict[str, npt.NDArray[Any]]:
        """Steps take several ticks of the game's own clock."""
        info = self.step_info
        return {"ticks": info.dt.copy(), "invalid_actions": info.invalid.copy()}

    def inspect(self, world: int = 0) -> dict[str, Any]:
        """One world by name: the ship, its cargo, prices, every sector and every link, seen by the ship or not."""
        return self._batch.inspect(whole("world", world))

    def render(self, world: int = 0, mode: str = "ansi") -> Any:
        from gridmill.prospector import render

        return render.ascii(self, world) if mode == "ansi" else render.rgb(self, world)

    def picture(self, world: int = 0, scale: int = 8, legend: bool = True) -> Any:
        from gridmill.prospector import render

        return render.rgb(self, world, scale, legend)

    @property
    def rng_states(self) -> npt.NDArray[np.uint64]:
        """The state of each world's random stream."""
        return self._batch.rng_states()
