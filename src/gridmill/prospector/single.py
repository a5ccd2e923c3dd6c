"""ProspectorEnv: one ship as a Gymnasium env, native or in plain Python, equal to the bit.

An episode ends when the ship is lost, cashes out, or runs out of time; then `reset` begins the next one. The batch
env is `gridmill.make("prospector")`; this one is for one world at a time and returns everything as fresh values.
"""

from __future__ import annotations

import operator
from typing import Any, Literal, SupportsIndex

import gymnasium
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from gridmill import _native
from gridmill.env.picture import RENDER_FPS, RENDER_MODES
from gridmill.prospector import render
from gridmill.prospector.actions import NUM_ACTIONS, OBS_SIZE
from gridmill.prospector.config import ProspectorConfig
from gridmill.prospector.reference.views import info as reference_info
from gridmill.prospector.reference.views import mask as reference_mask
from gridmill.prospector.reference.views import observe as reference_obs
from gridmill.prospector.reference.world import ReferenceWorld

Obs = NDArray[np.float32]
IMPLEMENTATIONS = ("native", "reference", "auto")


class _Native:
    """The native world under the reference's words."""

    def __init__(self, config: ProspectorConfig, seed: int) -> None:
        self._world = _native.LoneProspector(config.core_tree())
        self._world.reset(seed)
        self.reset, self.step = self._world.reset, self._world.step
        self.info, self.inspect = self._world.info, self._world.inspect

    def obs(self) -> Obs:
        return np.asarray(self._world.obs())

    def mask(self) -> NDArray[np.int8]:
        return np.asarray(self._world.mask()).view(np.int8)

    def rng_state(self) -> int:
        return int(self._world.rng_state)


class _Reference:
    """The reference under the same words."""

    def __init__(self, config: ProspectorConfig, seed: int) -> None:
        self._world = ReferenceWorld(config, seed)
        self.reset = self._world.reset

    def step(self, action: int) -> tuple[float, bool, bool]:
        reward = self._world.step(action)
        return reward, self._world.terminated, self._world.truncated

    def obs(self) -> Obs:
        return reference_obs(self._world)

    def mask(self) -> NDArray[np.int8]:
        return reference_mask(self._world)

    def info(self) -> dict[str, Any]:
        return reference_info(self._world)

    def inspect(self) -> dict[str, Any]:
        raise NotImplementedError("only native worlds are drawn")

    def rng_state(self) -> int:
        return self._world.rng.state


class ProspectorEnv(gymnasium.Env[Obs, np.int64]):
    """One ship. impl: "native", "reference", or "auto" (native; it is part of every build of this package).

    A seed starts a stream of worlds: the constructor makes the first, `reset()` the next of the same stream,
    `reset(seed=s)` the first of another. Seeds are taken modulo 2**64; none in the constructor means 0. Any int is an
    action: what is not in 0..68 counts as an invalid hold. With masks=True info has "action_mask", int8 [69].
    """

    metadata: dict[str, Any] = {"render_modes": list(RENDER_MODES), "render_fps": RENDER_FPS}  # noqa: RUF012

    def __init__(
        self,
        config: ProspectorConfig | None = None,
        seed: int | None = None,
        impl: Literal["native", "reference", "auto"] = "auto",
        masks: bool = False,
        render_mode: str | None = None,
    ) -> None:
        if impl not in IMPLEMENTATIONS:
            raise ValueError(f"impl: expected one of {', '.join(IMPLEMENTATIONS)}, got {impl!r}")
        if config is not None and not isinstance(config, ProspectorConfig):
            raise TypeError(f"config: expected a ProspectorConfig, got {type(config).__name__}")
        if render_mode is not None and render_mode not in RENDER_MODES:
            raise ValueError(f"render_mode must be None or one of {list(RENDER_MODES)}, got {render_mode!r}")
        if render_mode is not None and impl == "reference":
            raise ValueError(
                f"render_mode must be None with impl='reference', which has no picture, got {render_mode!r}"
            )
        self.render_mode = render_mode
        self.config = ProspectorConfig() if config is None else config
        self.impl = "reference" if impl == "reference" else "native"
        self.masks = masks
        self.observation_space = spaces.Box(-1.0, 1.0, (OBS_SIZE,), np.float32)
        self.action_space = spaces.Discrete(NUM_ACTIONS)
        start = _seed(seed)
        world = _Reference if self.impl == "reference" else _Native
        self._world: _Native | _Reference = world(self.config, 0 if start is None else start)
        self._over = self._closed = False
        self._clock = {"tick": 0, "episode": 0, "seed": 0 if start is None else start}

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Obs, dict[str, Any]]:
        self._refuse_closed()
        start = _seed(seed)
        super().reset(seed=start)
        self._world.reset(start)
        self._over = False
        episode = self._clock["episode"] + 1 if start is None else 0
        self._clock = {"tick": 0, "episode": episode, "seed": self._clock["seed"] if start is None else start}
        return self._world.obs(), self._info()

    def step(self, action: SupportsIndex) -> tuple[Obs, float, bool, bool, dict[str, Any]]:
        self._refuse_closed()
        if self._over:
            raise RuntimeError("the episode is over: call reset() before step()")
        wanted = operator.index(action)
        reward, terminated, truncated = self._world.step(wanted if 0 <= wanted < NUM_ACTIONS else -1)
        self._over = terminated or truncated
        self._clock["tick"] += 1
        return self._world.obs(), reward, terminated, truncated, self._info()

    @property
    def rng_state(self) -> int:
        """The state of the random stream."""
        return self._world.rng_state()

    def action_masks(self) -> NDArray[np.int8]:
        """1 where an action would be valid now, int8 [69]."""
        return self._world.mask()

    def render(self) -> Any:
        """The belt as text or as an RGB array, by `render_mode`; after the end, as the last step left it."""
        self._refuse_closed()
        if self.render_mode is None:
            return None
        view = self._clock | self._world.inspect()
        draw = render.ascii_of if self.render_mode == "ansi" else render.rgb_of
        return draw(view, self.config)

    def close(self) -> None:
        self._closed = True

    def _info(self) -> dict[str, Any]:
        info: dict[str, Any] = self._world.info()
        if self.masks:
            info["action_mask"] = self._world.mask()
        return info

    def _refuse_closed(self) -> None:
        if self._closed:
            raise RuntimeError("this env is closed")


def _seed(seed: Any) -> int | None:
    if seed is None:
        return None
    if isinstance(seed, bool) or not isinstance(seed, int | np.integer):
        raise TypeError(f"seed: expected an int or None, got {seed!r}")
    return int(seed) % (1 << 64)
