"""A batch as a `VecEnv` of Stable-Baselines3. Reached through `gridmill.adapters.vec_env`, needs stable-baselines3.

Every row (world x agent) is one env of the VecEnv. A step is one step of the native batch, and Python looks only at the
rows whose episode ended.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray
from stable_baselines3.common.vec_env.base_vec_env import VecEnv

from gridmill.adapters.single_world import build_game, check_render_mode
from gridmill.adapters.views import ObsForm, View, rows_of, stats_of
from gridmill.env import Env, GameConfig
from gridmill.games.make import make

Obs = NDArray[Any]
Info = dict[str, Any]
OWN = ("action_masks", "render_mode")  # what `get_attr` knows beside the attributes of this class


class GridmillVecEnv(VecEnv):
    """See `gridmill.adapters.vec_env`.

    Observations are in two alternating buffers: the result of a step does not change until the step after the next,
    which is as long as Stable-Baselines3 and its wrappers use it. Rewards and dones are copies. An info is empty except
    where an episode ended: there it has `terminal_observation`, `TimeLimit.truncated`, `episode` (`r`, `l`, `t`) and
    `stats`, every statistic of the agent by name. `batch` is the underlying `gridmill.Env`.
    """

    def __init__(
        self,
        game: GameConfig | str,
        num_worlds: int,
        obs: ObsForm,
        masks: bool,
        threads: int,
        seed: int,
        desync_episodes: bool,
        render_mode: str | None,
        sizes: Mapping[str, Any],
    ) -> None:
        built = build_game(game, sizes)
        check_render_mode(render_mode, built)
        self.batch: Env = make(
            built, num_worlds=num_worlds, seed=seed, threads=threads, masks=masks, desync_episodes=desync_episodes
        )
        self._view = View(self.batch, obs)
        self.render_mode = render_mode
        self._buffers = [self._view.empty(), self._view.empty()]
        self._began, self._turn = time.monotonic(), 0
        super().__init__(self.batch.num_rows, self._view.space, spaces.Discrete(self.batch.num_actions))

    def reset(self) -> Obs:
        """Start from the seed given to `seed`, or with the next episode of every world."""
        self._begin()
        self.batch.reset(None if self._seeds[0] is None else self._seeds[0] % 2**63)
        self._reset_seeds()
        self._reset_options()
        return self._seen()

    def step_async(self, actions: NDArray[Any]) -> None:
        # What 32 bits cannot hold must not become a valid action: -1 and `num_actions` are none either.
        self.batch.actions[:] = _checked(actions, self.num_envs).clip(-1, self.batch.num_actions)
        self._begin()
        self.batch.send(0)

    def step_wait(self) -> tuple[Obs, NDArray[np.float32], NDArray[np.bool_], list[Info]]:
        batch = self.batch
        batch.recv(0)
        done = batch.terminals | batch.truncations
        infos: list[Info] = [{} for _ in range(self.num_envs)]
        if done.any():
            self._tell_of_ended(infos, np.flatnonzero(done))
        return self._seen(), batch.rewards.copy(), done, infos

    def _begin(self) -> None:
        self._view.begin(self._buffers[1 - self._turn])

    def _seen(self) -> Obs:
        self._turn = 1 - self._turn
        return self._view.end(self._buffers[self._turn])

    def _tell_of_ended(self, infos: list[Info], ended: NDArray[np.intp]) -> None:
        last = self._view.of(self.batch.final_obs[ended])
        for place, row in enumerate(ended.tolist()):
            truncated = bool(self.batch.truncations[row] and not self.batch.terminals[row])
            infos[row] = {"terminal_observation": last[place], "TimeLimit.truncated": truncated}
        seconds, episodes = round(time.monotonic() - self._began, 6), self.batch.take_episodes()
        for place, row in enumerate(rows_of(episodes, self.batch.num_agents).tolist()):
            stats = stats_of(episodes, place)
            infos[row]["episode"] = {"r": stats["reward"], "l": int(stats["length"]), "t": seconds}
            infos[row]["stats"] = stats

    def action_masks(self) -> NDArray[np.bool_]:
        """[rows, actions]: True where an action would succeed, in sb3-contrib's format."""
        if self.batch.masks is None:
            raise ValueError("this env has no masks: create it with masks=True")
        allowed: NDArray[np.bool_] = self.batch.masks != 0
        return allowed

    # ---- what VecEnv asks of single envs

    def get_attr(self, attr_name: str, indices: Any = None) -> list[Any]:
        if attr_name == "action_masks" and self.batch.masks is None:
            raise AttributeError("no `action_masks`: create it with masks=True")
        if attr_name not in OWN and attr_name not in vars(self):
            raise AttributeError(f"rows of a batch have no attribute `{attr_name}`")
        return [getattr(self, attr_name)] * len(list(self._get_indices(indices)))

    def set_attr(self, attr_name: str, value: Any, indices: Any = None) -> None:
        raise AttributeError(f"rows of a batch have no attributes; `{attr_name}` cannot be set")

    def env_method(self, method_name: str, *args: Any, indices: Any = None, **kwargs: Any) -> list[Any]:
        if method_name != "action_masks":
            raise AttributeError(f"rows of a batch have no method `{method_name}`; they have action_masks")
        masks = self.action_masks()
        return [masks[row] for row in self._get_indices(indices)]

    def env_is_wrapped(self, wrapper_class: Any, indices: Any = None) -> list[bool]:
        """True for Monitor: episodes have their statistics without one."""
        from stable_baselines3.common.monitor import Monitor

        return [wrapper_class is Monitor] * len(list(self._get_indices(indices)))

    def get_images(self) -> Sequence[Any]:
        """One frame per world."""
        if self.render_mode != "rgb_array":
            raise ValueError(f"render_mode must be 'rgb_array' for pictures, got {self.render_mode!r}")
        return [self.batch.render(world, "rgb_array") for world in range(self.batch.num_worlds)]

    def close(self) -> None:
        self.batch.close()


def _checked(actions: Any, rows: int) -> NDArray[np.int64]:
    found = np.asarray(actions)
    if found.shape != (rows,) or found.dtype.kind not in "iu":
        raise ValueError(f"actions must be integers [{rows}], got {found.dtype} {list(found.shape)}")
    return found.astype(np.int64, copy=False)
