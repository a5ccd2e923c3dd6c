"""One world behind a one-episode-at-a-time interface: what the Gymnasium and PettingZoo envs share.

The batch begins a new episode by itself in the step that ends one; the field's single-world APIs want to see
the ended episode until `reset`. This file translates between the two. Arrays it hands out are copies: they stay as
they are when the world moves on.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gridmill.adapters.views import View
from gridmill.env import Env, GameConfig
from gridmill.env.picture import RENDER_MODES
from gridmill.games.make import make, sized


def build_game(game: GameConfig | str, sizes: Mapping[str, Any]) -> GameConfig:
    """A game by name with its sizes, or a `Game` as it is (which has its sizes already)."""
    return sized(game, sizes) if isinstance(game, str) or sizes else game


def render_modes(game: GameConfig) -> list[str]:
    return list(RENDER_MODES) if game.has_picture else []


def check_render_mode(render_mode: str | None, game: GameConfig) -> None:
    if render_mode is not None and render_mode not in RENDER_MODES:
        raise ValueError(f"render_mode must be None or one of {list(RENDER_MODES)}, got {render_mode!r}")
    if render_mode is not None and not game.has_picture:
        raise ValueError(f"render_mode must be None for `{game.name}`, which has no picture, got {render_mode!r}")


class OneWorld:
    """An env of one world, one episode at a time; `start` before `step`, and again after an episode's end.

    `look_back` keeps the state before each step (a few microseconds), so that `shown` works after an end; it
    is on wherever there is a render mode.
    """

    def __init__(
        self,
        game: GameConfig | str,
        sizes: Mapping[str, Any],
        masks: bool,
        render_mode: str | None,
        obs: str,
        look_back: bool = False,
    ) -> None:
        built = build_game(game, sizes)
        check_render_mode(render_mode, built)
        self.env: Env = make(built, num_worlds=1, masks=masks)
        self.view = View(self.env, obs)
        self.render_mode = render_mode
        self.look_back = look_back or render_mode is not None
        self.running = False
        self.ended = False
        self._before_end: bytes | None = None

    def start(self, seed: int) -> None:
        self.env.reset(seed=seed)
        self.running, self.ended, self._before_end = True, False, None

    def step(self, actions: NDArray[np.int64]) -> None:
        """One tick. When it ends the episode, `obs` is the ended episode's last and `ended` stays set."""
        if not self.running:
            state = "is over" if self.ended else "has not begun"
            raise RuntimeError(f"the episode {state}: call reset() before step()")
        before = self.env.save() if self.look_back else None
        self.env.step(actions)
        self.ended = bool((self.env.terminals | self.env.truncations).any())
        if self.ended:
            self.running, self._before_end = False, before

    def obs(self, agents: int | slice = slice(None)) -> NDArray[Any]:
        """What all agents see (or one), [agents, ...]; after the end, the last thing they saw."""
        rows = self.env.final_obs if self.ended else self.env.obs
        if isinstance(agents, int):
            one: NDArray[Any] = self.view.of(rows[agents : agents + 1])[0]
            return one
        return self.view.of(rows[agents])

    def masks(self) -> NDArray[np.int8] | None:
        """[agents, actions], in the int8 that Gymnasium's `sample(mask)` asks for; none after the end."""
        if self.env.masks is None or self.ended:
            return None
        return self.env.masks.astype(np.int8)

    def episode_stats(self) -> list[dict[str, float]]:
        """Per agent, the numbers of the episode that just ended: length, reward and every stat by name."""
        return self.env.take_episodes().per_agent(self.env.num_agents)

    def shown(self) -> Env:
        """The env as people should see it. After the end the batch already holds the next episode, so the
        state just before the last action is put back (what agents saw at the end was returned by then)."""
        if self.ended and self._before_end is not None:
            self.env.restore(self._before_end)
            self._before_end = None
        return self.env

    def render(self) -> Any:
        if self.render_mode is None:
            return None
        return self.shown().render(0, self.render_mode)

    def close(self) -> None:
        self.env.close()
