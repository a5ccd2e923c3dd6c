"""One world as a PettingZoo `ParallelEnv`. Reached through `gridmill.adapters.parallel_env`, needs pettingzoo.

All agents act in every step and end together: at the time limit each gets its last observation and
truncation True, and `agents` is empty until `reset`. The rules, rewards and random numbers are the batch's.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any, SupportsIndex

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray
from pettingzoo import ParallelEnv

from gridmill.adapters.single_world import OneWorld
from gridmill.adapters.views import ObsForm
from gridmill.env import GameConfig
from gridmill.env.arguments import seed_of, whole
from gridmill.env.picture import RENDER_FPS, RENDER_MODES
from gridmill.grid.directions import FACINGS

Obs = NDArray[np.uint8]
Infos = dict[str, dict[str, Any]]


class GridmillParallelEnv(ParallelEnv):  # type: ignore[misc]  # pettingzoo ships no types
    """See `gridmill.adapters.parallel_env`.

    Per agent `infos` hold `action_mask` (int8, with masks=True, while the episode runs) and, at the end,
    `stats`: length, reward and every stat by name. Observations are copies. reset(seed=s) is the episode of
    `gridmill.make(game, num_worlds=1, seed=s)`; reset() takes the seed given at construction the first time
    and draws from a generator of that seed afterwards. After the end, `render` and `state` show the world just before
    the last action, because the batch has already begun the next episode.
    """

    def __init__(
        self,
        game: GameConfig | str,
        seed: int,
        masks: bool,
        render_mode: str | None,
        obs: ObsForm,
        sizes: Mapping[str, Any],
    ) -> None:
        self._seeds = np.random.default_rng(seed_of(seed))
        self._world = OneWorld(game, sizes, masks, render_mode, obs, look_back=True)
        env: Any = self._world.env
        if not env.games[0].has_map:
            env.close()
            raise TypeError(f"this adapter is for games with a map, got `{env.games[0].name}`; use GridmillEnv")
        name = game if isinstance(game, str) else game.name
        self.metadata = {
            "name": f"gridmill_{name}_v0",
            "render_modes": list(RENDER_MODES),
            "render_fps": RENDER_FPS,
            "is_parallelizable": True,
        }
        self.render_mode = render_mode
        self.possible_agents = [f"agent_{index}" for index in range(env.num_agents)]
        self.agents: list[str] = []
        self.action_names = list(env.action_names)
        # A space per agent, made once: each carries its own random state for sample().
        self.observation_spaces = {agent: copy.deepcopy(self._world.view.space) for agent in self.possible_agents}
        self.action_spaces = {agent: spaces.Discrete(env.num_actions) for agent in self.possible_agents}
        self._first_seed: int | None = seed
        self._types = sorted(tag.removeprefix("type:") for tag in env.tags if tag.startswith("type:"))
        self._vibes = list(env.vibes)
        self._planes = {f"inv:{name}": 4 + place for place, name in enumerate(env.games[0].resources)}
        self.state_names = ["type", "agent", "facing", "vibe", *self._planes]
        env.reset(seed=seed)  # only for the size of the map; the first episode begins with reset()
        view = env.inspect(0)
        self.state_space = spaces.Box(0, 65535, (view["height"], view["width"], len(self.state_names)), np.uint16)

    def observation_space(self, agent: str) -> spaces.Box[np.uint8]:
        return self.observation_spaces[agent]

    def action_space(self, agent: str) -> spaces.Discrete:
        return self.action_spaces[agent]

    def reset(self, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[dict[str, Obs], Infos]:
        if seed is not None:
            self._seeds = np.random.default_rng(seed_of(seed))
        elif self._first_seed is not None:
            seed = self._first_seed
        else:
            seed = int(self._seeds.integers(1 << 63))
        self._first_seed = None
        self._world.start(seed)
        self.agents = list(self.possible_agents)
        return self._by_agent(self._world.obs()), self._infos()

    def step(
        self, actions: Mapping[str, SupportsIndex]
    ) -> tuple[dict[str, Obs], dict[str, float], dict[str, bool], dict[str, bool], Infos]:
        if self.agents and actions.keys() != set(self.agents):
            missing, unknown = (
                sorted(set(self.agents) - actions.keys()),
                sorted(actions.keys() - set(self.agents)),
            )
            raise ValueError(f"actions must have one entry per agent; missing {missing}, unknown {unknown}")
        row_actions = [whole(f"actions[{agent!r}]", actions[agent]) for agent in self.agents]
        self._world.step(np.array(row_actions, np.int64))
        env = self._world.env
        result = (
            self._by_agent(self._world.obs()),
            self._by_agent(env.rewards.tolist()),
            self._by_agent(env.terminals.tolist()),
            self._by_agent(env.truncations.tolist()),
            self._infos(),
        )
        if self._world.ended:
            self.agents = []
        return result

    def _by_agent(self, rows: Any) -> dict[str, Any]:
        return dict(zip(self.possible_agents, rows, strict=True))

    def _infos(self) -> Infos:
        infos: Infos = {agent: {} for agent in self.possible_agents}
        masks = self._world.masks()
        if masks is not None:
            for agent, mask in zip(self.possible_agents, masks, strict=True):
                infos[agent]["action_mask"] = mask
        if self._world.ended:
            for agent, stats in zip(self.possible_agents, self._world.episode_stats(), strict=True):
                infos[agent]["stats"] = stats
        return infos

    def state(self) -> NDArray[np.uint16]:
        """The whole world, [height, width, planes], planes named by `state_names`: type (1 + its place in the
        sorted type names, 0 empty), agent (1 + index), facing (1 north, 2 south, 3 west, 4 east), vibe, and
        the amount of every resource."""
        state = np.zeros(self.state_space.shape, np.uint16)
        facings = {name: 1 + place for place, name in enumerate(FACINGS)}
        vibes = {name: place for place, name in enumerate(self._vibes)}
        for thing in self._shown().inspect(0)["objects"]:
            cell = state[thing["row"], thing["column"]]
            cell[0] = 1 + self._types.index(thing["type"])
            if thing["agent"] is not None:
                cell[1] = 1 + thing["agent"]
                cell[2] = facings[thing["facing"]]
            cell[3] = vibes.get(thing["vibe"], 0)
            for resource, amount in thing["inventory"].items():
                cell[self._planes[f"inv:{resource}"]] = amount
        return state

    def _shown(self) -> Any:
        return self._world.shown()

    def render(self) -> Any:
        return self._world.render()

    def close(self) -> None:
        self._world.close()
