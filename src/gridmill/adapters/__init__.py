"""Adapters: the interfaces that other libraries know. Gymnasium (single and vector), Stable-Baselines3, PettingZoo,
PufferLib.

Importing this package registers `gridmill/<game>-v0` for every shipped game; `import gridmill` imports it as soon as
Gymnasium is imported. The other libraries are imported only when their adapter is used. An adapter only translates: it
adds no rules and no rewards to the game, and no randomness except that of "random" other agents.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from gridmill.adapters.gymnasium import GridmillEnv, GridmillVectorEnv, Others, register
from gridmill.adapters.views import ObsForm
from gridmill.config.install import pip_install
from gridmill.env import GameConfig

if TYPE_CHECKING:
    from gridmill.adapters.pettingzoo import GridmillParallelEnv
    from gridmill.adapters.pufferlib import GridmillPufferEnv
    from gridmill.adapters.stable_baselines3 import GridmillVecEnv

__all__ = [
    "GridmillEnv",
    "GridmillVectorEnv",
    "Others",
    "parallel_env",
    "puffer_env",
    "register",
    "vec_env",
]


def vec_env(
    game: GameConfig | str,
    num_worlds: int = 64,
    obs: ObsForm = "tokens",
    masks: bool = False,
    threads: int = 1,
    seed: int = 0,
    desync_episodes: bool = False,
    render_mode: str | None = None,
    **sizes: Any,
) -> GridmillVecEnv:
    """A batch as a `VecEnv` of Stable-Baselines3: every row (world x agent) is one env; see `stable_baselines3`.

    Sizes of a named game are keywords: vec_env("arena", num_worlds=8, num_agents=4).
    """
    baselines = _adapter("gridmill.adapters.stable_baselines3", "stable_baselines3", pip_install("stable-baselines3"))
    made: GridmillVecEnv = baselines.GridmillVecEnv(
        game, num_worlds, obs, masks, threads, seed, desync_episodes, render_mode, sizes
    )
    return made


def parallel_env(
    game: GameConfig | str,
    seed: int = 0,
    masks: bool = False,
    render_mode: str | None = None,
    obs: ObsForm = "tokens",
    **sizes: Any,
) -> GridmillParallelEnv:
    """One world as a PettingZoo `ParallelEnv`, its agents named agent_0, agent_1, ...; see `pettingzoo`."""
    zoo = _adapter("gridmill.adapters.pettingzoo", "pettingzoo", pip_install("gridmill[zoo]"))
    made: GridmillParallelEnv = zoo.GridmillParallelEnv(game, seed, masks, render_mode, obs, sizes)
    return made


def puffer_env(
    game: GameConfig | str,
    num_worlds: int = 1,
    threads: int = 1,
    seed: int | None = 0,
    buf: Any = None,
    obs: ObsForm = "tokens",
    **sizes: Any,
) -> GridmillPufferEnv:
    """A batch as a native PufferLib env, for `pufferlib.vector.make(puffer_env, ...)`; see `pufferlib`."""
    command = f"{pip_install('pufferlib-core')} (it pins its own torch)"
    puffer = _adapter("gridmill.adapters.pufferlib", "pufferlib", command)
    made: GridmillPufferEnv = puffer.GridmillPufferEnv(game, num_worlds, threads, seed, buf, obs, sizes)
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
