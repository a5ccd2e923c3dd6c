"""Adapters: the interfaces that other libraries know. Gymnasium (single and vector), PettingZoo, PufferLib.

`import gridmill` never comes here. Importing this package registers `gridmill/<game>-v0` for every shipped
game, so `gymnasium.register_envs(gridmill.adapters)` and `gymnasium.make("gridmill.adapters:gridmill/toy-v0")` do.
PettingZoo and PufferLib are looked for when their adapter is asked for, not before. An adapter only translates: it
adds no rule and no reward to the game, and no randomness but that of "random" other agents.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from gridmill.adapters.gymnasium import GridmillEnv, GridmillVectorEnv, Others, observation_space, register
from gridmill.env import GameConfig

if TYPE_CHECKING:
    from gridmill.adapters.pettingzoo import GridmillParallelEnv
    from gridmill.adapters.pufferlib import GridmillPufferEnv

__all__ = [
    "GridmillEnv",
    "GridmillVectorEnv",
    "Others",
    "observation_space",
    "parallel_env",
    "puffer_env",
    "register",
]


def parallel_env(
    game: GameConfig | str, seed: int = 0, masks: bool = False, render_mode: str | None = None, **sizes: Any
) -> GridmillParallelEnv:
    """One world as a PettingZoo `ParallelEnv`, its agents named agent_0, agent_1, ...; see `pettingzoo`."""
    zoo = _adapter("gridmill.adapters.pettingzoo", "pettingzoo", "pip install 'gridmill[zoo]'")
    made: GridmillParallelEnv = zoo.GridmillParallelEnv(game, seed, masks, render_mode, sizes)
    return made


def puffer_env(
    game: GameConfig | str,
    num_worlds: int = 1,
    threads: int = 1,
    seed: int | None = 0,
    buf: Any = None,
    **sizes: Any,
) -> GridmillPufferEnv:
    """A batch as a native PufferLib env, for `pufferlib.vector.make(puffer_env, ...)`; see `pufferlib`."""
    puffer = _adapter("gridmill.adapters.pufferlib", "pufferlib", "pip install pufferlib-core (it pins its own torch)")
    made: GridmillPufferEnv = puffer.GridmillPufferEnv(game, num_worlds, threads, seed, buf, sizes)
    return made


def _adapter(module: str, library: str, command: str) -> Any:
    """The module of an adapter whose library is optional; if missing, the error has the command to get it."""
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] != library:
            raise
        raise ImportError(
            f"this adapter needs {library}, which is not installed; install it with: {command}"
        ) from error


register()
