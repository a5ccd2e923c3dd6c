"""Checks that an env is deterministic: same seed and actions, same results, at every step and across resets.

For anyone who writes or wraps an env: Gymnasium envs and vector envs, PettingZoo parallel envs and gridmill
batches. The checkers of the two libraries look at one step after a reset; this one finds later faults (an unseeded
draw at step 200, a reset that keeps its old random state, a buffer used twice). It runs in one process and never
looks inside the env; equality across processes and threads needs separate tests.
"""

from __future__ import annotations

import copy
import hashlib
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from gymnasium import spaces

from gridmill.env.env import Env

FIELDS = ("observation", "reward", "terminated", "truncated", "info")
KEPT = 16  # the first outcomes of each seed's run are held: no later one may reuse or change them


class CheckFailed(AssertionError):
    """The env failed a check; the message says which one, where, what was expected and what was returned."""


@dataclass(frozen=True)
class Report:
    """What was looked at when nothing was found."""

    seeds: int
    steps: int
    resets: int


def check_determinism(
    make_env: Callable[[], Any],
    seeds: Sequence[int] = (0, 1, 2),
    steps: int = 500,
    fresh: bool = True,
    seeds_differ: bool = True,
) -> Report:
    """Run pairs of envs made by `make_env` in lockstep and compare everything they return.

    One env is used for all seeds, and for the first seed again at the end; a second one is new for every seed.
    Both take the same random actions for `steps` steps; an episode that ends is followed by a reset
    without a seed. Checked at each step: equal observations, rewards, flags and infos, to the bit;
    observations of the space's shape and dtype and inside it; finite rewards; flags that are bools; no memory
    shared with earlier results, nor between the two envs. Checked at the end: earlier results have not changed,
    and no two seeds gave the same observations.

    fresh=False is for envs that are documented to return their own buffers (a gridmill batch always does);
    seeds_differ=False is for games without any randomness. Raises `CheckFailed`.
    """
    if len(set(seeds)) < 2 or steps < 1:
        raise ValueError(f"expected two different seeds and steps >= 1, got seeds {list(seeds)} and steps {steps}")
    used = _face_of(make_env())
    traces: dict[int, str] = {}
    taken = resets = 0
    try:
        for seed in (*seeds, seeds[0]):
            new = _face_of(make_env())
            try:
                run = _Run(used, new, seed, fresh and used.fresh)
                traces[seed] = run.go(steps)
            finally:
                new.close()
            taken, resets = taken + steps, resets + run.resets
    finally:
        used.close()
    if seeds_differ:
        for seed, trace in traces.items():
            twins = [other for other in traces if other > seed and traces[other] == trace]
            if twins:
                raise CheckFailed(
                    f"different seeds must give different observations, got the same {steps} steps for seeds "
                    f"{seed} and {twins[0]}; pass the seed of reset() on to every random draw"
                )
    return Report(seeds=len(set(seeds)), steps=taken, resets=resets)


class _Run:
    """Two envs, one seed, the same actions."""

    def __init__(self, used: _Face, new: _Face, seed: int, fresh: bool) -> None:
        self.used, self.new, self.seed, self.fresh = used, new, seed, fresh
        self.step = self.resets = 0
        self.held: list[tuple[int, Any, Any]] = []  # (step, what was returned, a copy made at once)
        self.memory = _Memory()
        self.trace = hashlib.sha256()

    def go(self, steps: int) -> str:
        generator = np.random.default_rng(20260101)  # one stream of actions for every seed
        self._compare_reset(self.seed)
        for self.step in range(1, steps + 1):
            actions = self.used.sample(generator)
            self._compare(self.used.step(actions), self.new.step(copy.deepcopy(actions)))
            over = self.used.over(), self.new.over()
            if over[0] != over[1]:
                raise self._failure(f"the same step must end both episodes or none, got {over[0]} and {over[1]}")
            if over[0]:
                self._compare_reset(None)
        for step, returned, as_it_was in self.held:
            found = difference(as_it_was, returned)
            if found:
                raise self._failure(
                    f"what step {step} returned was changed by a later step ({found}); return copies, not "
                    "the env's own buffers"
                )
        return self.trace.hexdigest()

    def _compare_reset(self, seed: int | None) -> None:
        self.resets += 1
        first, second = self.used.reset(seed), self.new.reset(seed)
        self._compare((first[0], None, None, None, first[1]), (second[0], None, None, None, second[1]))

    def _compare(self, ours: Outcome, theirs: Outcome) -> None:
        arrays = _arrays(ours)
        both = _Memory()
        both.hold(self.step, arrays)
        if both.shared_with(_arrays(theirs)) is not None:
            raise self._failure("two envs must not share memory, but a buffer of one was returned by the other")
        for field, one, other in zip(FIELDS, ours, theirs, strict=True):
            found = difference(one, other)
            if found:
                raise self._failure(f"{field} must be equal for the same seed and actions, got {found}")
        self.used.check_values(ours, self._failure)
        if self.fresh:
            step = self.memory.shared_with(arrays)
            if step is not None:
                raise self._failure(f"returned arrays must be new, but one shares memory with step {step}'s")
            if len(self.held) < KEPT:
                self.held.append((self.step, ours, copy.deepcopy(ours)))
                self.memory.hold(self.step, arrays)
        _feed(self.trace, ours[0])

    def _failure(self, text: str) -> CheckFailed:
        return CheckFailed(f"{text} - at seed {self.seed}, step {self.step}, after {self.resets} reset(s)")


Outcome = tuple[Any, Any, Any, Any, Any]


class _Face:
    """A Gymnasium env: one observation, one action, a reset by hand after each end."""

    fresh = True

    def __init__(self, env: Any) -> None:
        self.env = env
        self.ended = False

    def reset(self, seed: int | None) -> tuple[Any, Any]:
        self.ended = False
        obs, info = self.env.reset(seed=seed)
        return obs, info

    def step(self, actions: Any) -> Outcome:
        obs, reward, terminated, truncated, info = self.env.step(actions)
        self.ended = bool(np.any(terminated) or np.any(truncated))
        return obs, reward, terminated, truncated, info

    def sample(self, generator: np.random.Generator) -> Any:
        return _sample(self.env.action_space, generator)

    def over(self) -> bool:
        return self.ended

    def check_values(self, outcome: Outcome, failure: Callable[[str], CheckFailed]) -> None:
        obs, reward, terminated, truncated, _ = outcome
        _check_in_space(self.env.observation_space, obs, failure)
        if reward is not None:
            _check_signals(reward, (terminated, truncated), failure)

    def close(self) -> None:
        self.env.close()


class _VectorFace(_Face):
    """A Gymnasium vector env: rows begin again by themselves."""

    def over(self) -> bool:
        return False


class _ParallelFace(_Face):
    """A PettingZoo parallel env: dicts by agent; over when no agent is left."""

    def over(self) -> bool:
        return not self.env.agents

    def sample(self, generator: np.random.Generator) -> Any:
        return {agent: _sample(self.env.action_space(agent), generator) for agent in self.env.agents}

    def check_values(self, outcome: Outcome, failure: Callable[[str], CheckFailed]) -> None:
        obs, rewards, terminated, truncated, _ = outcome
        for agent, seen in obs.items():
            _check_in_space(self.env.observation_space(agent), seen, failure, f"observation of {agent}")
            if rewards is not None:
                _check_signals(rewards[agent], (terminated[agent], truncated[agent]), failure)


class _BatchFace(_Face):
    """A gridmill batch: the arrays are the result, and the same ones every time."""

    fresh = False

    def __init__(self, env: Env) -> None:
        super().__init__(env)
        low, high = (0, 255) if env.obs.dtype == np.uint8 else (-1, 1)
        self.space = spaces.Box(low, high, env.obs.shape, env.obs.dtype.type)

    def reset(self, seed: int | None) -> tuple[Any, Any]:
        self.env.reset(seed=seed)
        return self.env.obs, {}

    def step(self, actions: Any) -> Outcome:
        env = self.env
        env.step(actions)
        ended = env.terminals | env.truncations
        return env.obs, env.rewards, env.terminals, env.truncations, {"final_obs": env.final_obs[ended]}

    def over(self) -> bool:
        return False

    def sample(self, generator: np.random.Generator) -> Any:
        return generator.integers(self.env.num_actions, size=self.env.num_rows, dtype=np.int32)

    def check_values(self, outcome: Outcome, failure: Callable[[str], CheckFailed]) -> None:
        _check_in_space(self.space, outcome[0], failure)
        if outcome[1] is not None:
            _check_signals(outcome[1], (outcome[2], outcome[3]), failure)


def _face_of(env: Any) -> _Face:
    if isinstance(env, Env):
        return _BatchFace(env)
    if hasattr(env, "possible_agents"):
        return _ParallelFace(env)
    return _VectorFace(env) if hasattr(env, "single_action_space") else _Face(env)


def _sample(space: Any, generator: np.random.Generator) -> Any:
    space.seed(int(generator.integers(1 << 31)))
    return space.sample()


def _check_in_space(space: Any, obs: Any, failure: Callable[[str], CheckFailed], what: str = "observation") -> None:
    """Stricter than `space.contains`, which lets through every dtype that could be cast."""
    if isinstance(space, spaces.Dict | spaces.Tuple):
        parts = space.spaces.items() if isinstance(space, spaces.Dict) else enumerate(space.spaces)
        for key, part in parts:
            _check_in_space(part, obs[key], failure, f"{what}[{key!r}]")
    elif isinstance(space, spaces.Box | spaces.MultiBinary | spaces.MultiDiscrete):
        got = (getattr(obs, "dtype", type(obs).__name__), getattr(obs, "shape", None))
        if got != (space.dtype, space.shape):
            raise failure(f"{what} must be {space.dtype} {space.shape}, got {got[0]} {got[1]}")
    if not space.contains(obs):
        raise failure(f"{what} must lie in {space}, got {_short(obs)}")


def _check_signals(reward: Any, flags: Sequence[Any], failure: Callable[[str], CheckFailed]) -> None:
    if not np.all(np.isfinite(reward)):
        raise failure(f"reward must be finite, got {_short(reward)}")
    for name, flag in zip(("terminated", "truncated"), flags, strict=True):
        if np.asarray(flag).dtype != np.bool_:
            raise failure(f"{name} must be bool, got {_short(flag)}")


def difference(one: Any, other: Any, path: str = "") -> str:
    """Where two results differ, in words; empty when they are equal to the bit (a NaN equals itself)."""
    where = f" at {path}" if path else ""
    if type(one) is not type(other):
        return f"{type(one).__name__} and {type(other).__name__}{where}"
    if isinstance(one, Mapping):
        if one.keys() != other.keys():
            return f"keys {sorted(map(str, one))} and {sorted(map(str, other))}{where}"
        return next(filter(None, (difference(one[key], other[key], f"{path}[{key!r}]") for key in one)), "")
    if isinstance(one, list | tuple):
        if len(one) != len(other):
            return f"{len(one)} and {len(other)} entries{where}"
        pairs = enumerate(zip(one, other, strict=True))
        return next(filter(None, (difference(a, b, f"{path}[{place}]") for place, (a, b) in pairs)), "")
    if isinstance(one, np.ndarray):
        return _array_difference(one, other, path)
    equal = one == other or (isinstance(one, float) and math.isnan(one) and math.isnan(other))
    return "" if equal else f"{_short(one)} and {_short(other)}{where}"


def _array_difference(one: np.ndarray[Any, Any], other: np.ndarray[Any, Any], path: str) -> str:
    if one.dtype != other.dtype or one.shape != other.shape:
        return f"{one.dtype} {one.shape} and {other.dtype} {other.shape}{f' at {path}' if path else ''}"
    if one.dtype == object:
        return difference(one.tolist(), other.tolist(), path)
    unequal = one != other
    if one.dtype.kind in "fc":
        unequal &= ~(np.isnan(one) & np.isnan(other))
    if not unequal.any():
        return ""
    place = tuple(int(index) for index in np.argwhere(unequal)[0])
    return f"{one[place]} and {other[place]} at {path}{list(place)} ({int(unequal.sum())} of {one.size} differ)"


class _Memory:
    """Arrays held alive, so that their bytes can be recognised if they come back."""

    def __init__(self) -> None:
        self.held: list[tuple[int, np.ndarray[Any, Any]]] = []
        self.bounds = np.empty((0, 2), np.uint64)

    def hold(self, step: int, arrays: Sequence[np.ndarray[Any, Any]]) -> None:
        self.held += [(step, array) for array in arrays]
        new = np.array([np.lib.array_utils.byte_bounds(array) for array in arrays], np.uint64)
        self.bounds = np.concatenate([self.bounds, new.reshape(-1, 2)])

    def shared_with(self, arrays: Iterable[np.ndarray[Any, Any]]) -> int | None:
        """The step whose array shares memory with one of these. Address ranges first, then exactly."""
        for array in arrays:
            low, high = np.lib.array_utils.byte_bounds(array)
            for place in np.flatnonzero((self.bounds[:, 0] < high) & (self.bounds[:, 1] > low)):
                step, old = self.held[place]
                if np.shares_memory(old, array):
                    return step
        return None


def _leaves(value: Any) -> Iterator[Any]:
    if isinstance(value, np.ndarray) and value.dtype == object:
        value = value.tolist()
    if isinstance(value, Mapping | list | tuple):
        for part in value.values() if isinstance(value, Mapping) else value:
            yield from _leaves(part)
    else:
        yield value


def _arrays(value: Any) -> list[np.ndarray[Any, Any]]:
    return [leaf for leaf in _leaves(value) if isinstance(leaf, np.ndarray) and leaf.size]


def _feed(trace: Any, value: Any) -> None:
    for leaf in _leaves(value):
        trace.update(np.ascontiguousarray(leaf).tobytes() if isinstance(leaf, np.ndarray) else repr(leaf).encode())


def _short(value: Any) -> str:
    text = " ".join(repr(value).split())
    return text if len(text) <= 80 else f"{text[:77]}..."
