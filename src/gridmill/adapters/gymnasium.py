"""Gymnasium: one agent of a world as an env, a batch as a vector env, and the registration of `gridmill/<game>-v0`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Literal, SupportsIndex

import gymnasium
import numpy as np
from gymnasium import spaces
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space
from numpy.typing import NDArray

from gridmill import games
from gridmill.adapters.single_world import OneWorld, build_game, check_render_mode, render_modes
from gridmill.adapters.views import ObsForm, View, by_row
from gridmill.env import Env, GameConfig
from gridmill.env.arguments import whole
from gridmill.env.picture import RENDER_FPS, RENDER_MODES
from gridmill.games.make import make

Obs = NDArray[Any]
Others = Callable[[Obs, np.random.Generator], NDArray[np.integer[Any]]]
"""The other agents of a world: (obs [agents, tokens, 3], generator) -> an action per agent, integer [agents].
The learning agent's entry is not used. Draw from the generator, so that a seed means the same episode."""


class GridmillEnv(gymnasium.Env[Obs, np.int64]):
    """One agent of one world as a Gymnasium env.

    `agent` learns; `others` says how the other agents of its world act: "noop" (stand still), "random" (uniform
    over the actions) or a function (see `Others`). The episode ends for all agents at once. `info` contains only
    `action_mask` (int8, with masks=True, while the episode runs) and `stats` (at its end: length, reward and
    every stat of the agent by name). Observations are copies: tokens, or dense boxes with obs="dense" (see
    `views.View`). After the end, `render` shows the state just before the last action, because the batch has
    already begun the next episode.

    reset(seed=s) is the episode of `gridmill.make(game, num_worlds=1, seed=s)`; reset() draws the next seed
    from Gymnasium's own generator. Sizes of a named game are keywords: GridmillEnv("toy", num_agents=4).
    """

    metadata: dict[str, Any] = {"render_modes": list(RENDER_MODES), "render_fps": RENDER_FPS}  # noqa: RUF012

    def __init__(
        self,
        game: GameConfig | str,
        agent: int = 0,
        others: Literal["noop", "random"] | Others = "noop",
        masks: bool = False,
        render_mode: str | None = None,
        obs: ObsForm = "tokens",
        **sizes: Any,
    ) -> None:
        if not callable(others) and others not in ("noop", "random"):
            raise ValueError(f"others must be 'noop', 'random' or a function, got {others!r}")
        if isinstance(agent, bool) or not isinstance(agent, int | np.integer):
            raise TypeError(f"agent: expected an int, got {agent!r:.60}")
        self._world = OneWorld(game, sizes, masks, render_mode, obs)
        env = self._world.env
        if not 0 <= agent < env.num_agents:
            env.close()
            raise ValueError(f"agent must be 0 to {env.num_agents - 1} in this game, got {agent}")
        self.metadata = {**self.metadata, "render_modes": render_modes(env.games[0])}
        self.render_mode = render_mode
        self.observation_space = self._world.view.space
        self.action_space = spaces.Discrete(env.num_actions)
        self.action_names = list(env.action_names)
        self._agent = agent
        self._others = others

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Obs, dict[str, Any]]:
        super().reset(seed=seed)
        self._world.start(int(self.np_random.integers(1 << 63)) if seed is None else seed)
        return self._world.obs(self._agent), self._info()

    def step(self, action: SupportsIndex) -> tuple[Obs, float, bool, bool, dict[str, Any]]:
        actions = self._actions_of_all()
        actions[self._agent] = whole("action", action)
        self._world.step(actions)
        env = self._world.env
        return (
            self._world.obs(self._agent),
            float(env.rewards[self._agent]),
            bool(env.terminals[self._agent]),
            bool(env.truncations[self._agent]),
            self._info(),
        )

    def _actions_of_all(self) -> NDArray[np.int64]:
        """In the 64 bits that `Env.step` judges: in fewer, a wrong number may become a valid action."""
        env = self._world.env
        if callable(self._others):
            given = np.asarray(self._others(self._world.obs(), self.np_random))
            if given.shape != (env.num_agents,) or given.dtype.kind not in "iu":
                raise ValueError(
                    f"others must return integer [{env.num_agents}], got {given.dtype} {list(given.shape)}"
                )
            return given.astype(np.int64)
        if self._others == "random":
            return self.np_random.integers(env.num_actions, size=env.num_agents, dtype=np.int32).astype(np.int64)
        return np.zeros(env.num_agents, np.int64)

    def _info(self) -> dict[str, Any]:
        info: dict[str, Any] = {}
        masks = self._world.masks()
        if masks is not None:
            info["action_mask"] = masks[self._agent].copy()
        if self._world.ended:
            info["stats"] = self._world.episode_stats()[self._agent]
        return info

    def action_masks(self) -> NDArray[np.bool_]:
        """[actions]: True where an action would succeed now, in sb3-contrib's format; all True after the end."""
        if self._world.env.masks is None:
            raise ValueError("this env has no masks: create it with masks=True")
        masks = self._world.masks()
        return np.ones(self._world.env.num_actions, np.bool_) if masks is None else masks[self._agent] != 0

    def render(self) -> Any:
        return self._world.render()

    def close(self) -> None:
        self._world.close()


class GridmillVectorEnv(VectorEnv[Obs, NDArray[np.int64], NDArray[Any]]):
    """A batch as a Gymnasium vector env: every row (world x agent) is one sub-env, and all agents learn.

    Auto-reset is SAME_STEP: where a row's episode ended, the observation is the first of the new episode, and
    `infos["final_obs"]` has the last of the ended one (None elsewhere); `infos["_final_obs"]` marks these rows;
    `infos["final_info"]` has `episode` (`r`, `l`) and `stats`, every statistic of the ended episodes, as arrays
    over the rows. With masks=True, `infos["action_mask"]` is int8 [rows, actions]. obs="dense": see `views.View`.

    copy=True (default) returns copies: what was returned does not change. copy=False returns the batch's
    own arrays, which the next step overwrites: nothing is copied, so read them before the next step. `batch` is
    the underlying `gridmill.Env`, for timing and state; its episode records are used up by `final_info`.
    """

    metadata: dict[str, Any] = {  # noqa: RUF012
        "render_modes": list(RENDER_MODES),
        "render_fps": RENDER_FPS,
        "autoreset_mode": AutoresetMode.SAME_STEP,
    }

    def __init__(
        self,
        game: GameConfig | str,
        num_envs: int,
        threads: int = 1,
        masks: bool = False,
        copy: bool = True,
        desync_episodes: bool = False,
        render_mode: str | None = None,
        obs: ObsForm = "tokens",
        **sizes: Any,
    ) -> None:
        built = build_game(game, sizes)
        check_render_mode(render_mode, built)
        num_worlds, left = divmod(num_envs, built.num_agents)
        if num_worlds < 1 or left:
            raise ValueError(
                f"num_envs must be a multiple of the {built.num_agents} agents of a world (every agent is a "
                f"sub-env), got {num_envs}"
            )
        self.batch: Env = make(
            built, num_worlds=num_worlds, threads=threads, masks=masks, desync_episodes=desync_episodes
        )
        self.num_envs = num_envs
        self.metadata = {**self.metadata, "render_modes": render_modes(built)}
        self.render_mode = render_mode
        self.copy = copy
        self._view = View(self.batch, obs)
        self._lent = self._view.empty() if self._view.dense and not copy else None
        self.single_observation_space = self._view.space
        self.single_action_space = spaces.Discrete(self.batch.num_actions)
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Obs, dict[str, Any]]:
        if options and "reset_mask" in options:
            raise ValueError("options['reset_mask'] needs autoreset mode DISABLED; here rows reset automatically")
        super().reset(seed=seed)
        self._view.begin(self._lent)
        self.batch.reset(seed=int(self.np_random.integers(1 << 63)) if seed is None else seed)
        return self._seen(), self._infos(np.zeros(self.num_envs, np.bool_))

    def step(
        self, actions: NDArray[np.integer[Any]]
    ) -> tuple[Obs, NDArray[Any], NDArray[Any], NDArray[Any], dict[str, Any]]:
        batch = self.batch
        self._view.begin(self._lent)
        batch.step(actions)
        ended = batch.terminals | batch.truncations
        return (
            self._seen(),
            self._given(batch.rewards),
            self._given(batch.terminals),
            self._given(batch.truncations),
            self._infos(ended),
        )

    def _seen(self) -> Obs:
        return self.batch.obs if not self.copy and self._lent is None else self._view.end(self._lent)

    def _given(self, array: NDArray[Any]) -> NDArray[Any]:
        return array.copy() if self.copy else array

    def _infos(self, ended: NDArray[np.bool_]) -> dict[str, Any]:
        infos: dict[str, Any] = {}
        if self.batch.masks is not None:
            infos["action_mask"] = self._given(self.batch.masks.view(np.int8))
            infos["_action_mask"] = np.ones(self.num_envs, np.bool_)
        if ended.any():
            last = np.full(self.num_envs, None, dtype=object)
            rows = np.flatnonzero(ended)
            for row, seen in zip(rows, self._view.of(self.batch.final_obs[rows]), strict=True):
                last[row] = seen
            infos["final_obs"], infos["_final_obs"] = last, ended
            infos["final_info"], infos["_final_info"] = self._final_info(ended), ended.copy()
        return infos

    def _final_info(self, ended: NDArray[np.bool_]) -> dict[str, Any]:
        """As Gymnasium's vector envs put infos together: a dict is a dict of arrays, and `_name` says where it is."""
        stats = by_row(self.batch.take_episodes(), self.batch)
        episode = {"r": stats["reward"], "_r": ended.copy(), "l": stats["length"].astype(np.int64), "_l": ended.copy()}
        return {"episode": episode, "_episode": ended.copy(), "stats": stats, "_stats": ended.copy()}

    def render(self) -> tuple[Any, ...] | None:
        """One frame per sub-env; the agents of a world share theirs."""
        if self.render_mode is None:
            return None
        frames = [self.batch.render(world, self.render_mode) for world in range(self.batch.num_worlds)]
        return tuple(frames[row // self.batch.num_agents] for row in range(self.num_envs))

    def close_extras(self, **kwargs: Any) -> None:
        self.batch.close()


def register(names: Sequence[str] | None = None) -> None:
    """Put `gridmill/<game>-v0` into Gymnasium's registry; names already there are left alone."""
    for name in games.names() if names is None else names:
        env_id = f"gridmill/{name}-v0"
        if env_id in gymnasium.registry:
            continue
        own = games.build(name).gymnasium_entry
        if own:
            gymnasium.register(env_id, entry_point=own, vector_entry_point=partial(GridmillVectorEnv, name))
        else:
            gymnasium.register(
                env_id,
                entry_point="gridmill.adapters:GridmillEnv",
                vector_entry_point="gridmill.adapters:GridmillVectorEnv",
                kwargs={"game": name},
            )
