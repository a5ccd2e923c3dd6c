"""Players of the user's own: an object with `act`, a model with `predict` (Stable-Baselines3), or a function.

They play in evaluations, and beside a policy that learns; what each is given and returns is in docs/own-parts.md. What
they return is checked here, since nobody else would say whose fault it was.
"""

from __future__ import annotations

from collections.abc import Callable
from inspect import signature
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gridmill.config import user_code
from gridmill.env.env import Env
from gridmill.env.kind import PlayerLike


def from_file(text: str, env: Env, seed: int, greedy: bool = False) -> PlayerLike:
    """What the function of a file or package returns for (env, seed), as a player."""
    make = user_code.function(text, "player")
    with user_code.one_line(text):
        return as_player(make(env, seed), env, text, greedy)


def as_player(found: Any, env: Env, name: str, greedy: bool = False) -> PlayerLike:
    """An object of the user's own as a player; `greedy` is for models that can take their likeliest action."""
    if callable(getattr(found, "act", None)):
        return _Acts(found, name)
    if callable(getattr(found, "predict", None)) and hasattr(found, "observation_space"):
        return _Predicts(found, env, name, greedy)
    if callable(found):
        return _Function(found, name)
    raise TypeError(
        f"{name}: expected an object with act(obs, state, masks), a model with predict, or a function of obs, got "
        f"{type(found).__name__}"
    )


class _Own:
    """What all have: actions are looked at, a state of one array has its ended rows set to 0."""

    masks = True

    def __init__(self, found: Any, name: str) -> None:
        self.found, self.name = found, name

    def _checked(self, actions: Any, rows: int) -> NDArray[np.int64]:
        array = np.asarray(actions)
        if array.shape != (rows,) or array.dtype.kind not in "iu":
            raise ValueError(f"{self.name}: expected integer actions [{rows}], got {array.dtype} {list(array.shape)}")
        return array.astype(np.int64)

    def reset(self, state: Any, ended: NDArray[np.bool_]) -> Any:
        if state is None:
            return None
        if not isinstance(state, np.ndarray) or len(state) != len(ended):
            raise TypeError(
                f"{self.name}: expected None or an array [{len(ended)}, ...] as the state, or its own method "
                f"reset(state, ended), got {type(state).__name__}"
            )
        kept = state.copy()
        kept[ended] = 0
        return kept


class _Acts(_Own):
    """An object with act(obs, state, masks) -> (actions, state), and maybe `masks` and reset(state, ended)."""

    def __init__(self, found: Any, name: str) -> None:
        super().__init__(found, name)
        self.masks = bool(getattr(found, "masks", True))

    def act(self, obs: Any, state: Any, masks: Any = None) -> tuple[NDArray[np.int64], Any]:
        given = self.found.act(obs, state, masks if self.masks else None)
        if not isinstance(given, tuple) or len(given) != 2:
            raise TypeError(f"{self.name}: expected act to return (actions, state), got {type(given).__name__}")
        return self._checked(given[0], len(obs)), given[1]

    def reset(self, state: Any, ended: NDArray[np.bool_]) -> Any:
        own = getattr(self.found, "reset", None)
        return super().reset(state, ended) if own is None else own(state, ended)


class _Function(_Own):
    """A function of observations alone; nothing is remembered."""

    masks = False

    def act(self, obs: Any, state: Any, masks: Any = None) -> tuple[NDArray[np.int64], Any]:
        return self._checked(self.found(obs), len(obs)), None


class _Predicts(_Own):
    """A model of Stable-Baselines3 or sb3-contrib: predict(obs, state, episode_start, deterministic).

    What a recurrent model remembers is a tuple of its own form, which evaluations keep and runs cannot save.
    """

    def __init__(self, found: Any, env: Env, name: str, greedy: bool) -> None:
        super().__init__(found, name)
        self.greedy = greedy
        self.read = _reader(tuple(found.observation_space.shape), env, name)
        self.masks = "action_masks" in signature(found.predict).parameters

    def act(self, obs: Any, state: Any, masks: Any = None) -> tuple[NDArray[np.int64], Any]:
        memory, starts = (None, np.ones(len(obs), np.bool_)) if state is None else state
        more = {"action_masks": masks != 0} if self.masks and masks is not None else {}
        actions, memory = self.found.predict(
            self.read(obs), state=memory, episode_start=starts, deterministic=self.greedy, **more
        )
        after = None if memory is None else (memory, np.zeros(len(obs), np.bool_))  # most models remember nothing
        return self._checked(actions, len(obs)), after

    def reset(self, state: Any, ended: NDArray[np.bool_]) -> Any:
        """The model forgets by itself where an episode begins."""
        return None if state is None else (state[0], ended)


def _reader(shape: tuple[int, ...], env: Any, name: str) -> Callable[[Any], Any]:
    """Rows as a model wants them: as the env has them, or dense."""
    if shape == env.obs.shape[1:]:
        return lambda obs: obs
    dense = getattr(env, "dense_shape", None)
    if dense is not None and shape == tuple(dense):
        return lambda obs: env.dense(obs)
    known = f"{list(env.obs.shape[1:])}" + (f" or dense {list(dense)}" if dense is not None else "")
    raise ValueError(f"{name}: the model reads observations {list(shape)}, this game shows {known}")
