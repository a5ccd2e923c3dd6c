"""ReferenceEnv: Prospector's plain-Python worlds as an environment for the trainer (trainer.env_impl = reference).

Worlds are stepped one after the other, far slower than in the native batch and equal to it to the bit: a
run trained on either has the same weights. `ReferenceBatch` answers to the names of the native batch that Env calls.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import load as arrays_from_bytes
from safetensors.numpy import save as bytes_from_arrays

from gridmill.config import ConfigError, did_you_mean
from gridmill.env import Env, GameConfig
from gridmill.prospector.actions import ACTION_NAMES, NUM_ACTIONS, OBS_SIZE
from gridmill.prospector.reference.views import info, mask, observe
from gridmill.prospector.reference.world import ReferenceWorld

NOT_STATE = ("config", "rng", "parts")  # of a world's attributes; of the generator only its number is


class ReferenceEnv(Env):
    """Prospector with the arrays and methods of every Env, in plain Python, in one thread."""

    def __init__(self, games: Sequence[GameConfig], **options: Any) -> None:
        super().__init__(
            partial(ReferenceBatch, games[0]), games, options | {"threads": 1, "profiling": False, "validation": False}
        )
        self.action_names = list(ACTION_NAMES)


class ReferenceBatch:
    """Reference worlds behind the arrays of a batch."""

    phases: ClassVar[tuple[str, ...]] = ()
    num_agents, num_actions = 1, NUM_ACTIONS
    episodes_dropped = 0
    bytes_per_world = 8_192  # about: attributes of a Python object

    def __init__(self, config: Any, games: Sequence[Any], names: Sequence[str], **options: Any) -> None:
        rows = int(options["num_worlds"])
        self.seed, self.lanes, self.desync = options["seed"], options["lanes"], options["desync_episodes"]
        self.worlds = [ReferenceWorld(config, 0) for _ in range(rows)]
        self.closed, self.ready = False, False
        self.flying: set[int] = set()
        self.rows: dict[str, NDArray[Any] | None] = {
            "obs": np.zeros((rows, OBS_SIZE), np.float32),
            "final_obs": np.zeros((rows, OBS_SIZE), np.float32),
            "actions": np.zeros(rows, np.int32),
            "rewards": np.zeros(rows, np.float32),
            "terminals": np.zeros(rows, np.bool_),
            "truncations": np.zeros(rows, np.bool_),
            "signal": np.zeros(rows, np.float32) if options["signal"] else None,
            "masks": np.zeros((rows, NUM_ACTIONS), np.uint8) if options["masks"] else None,
        }
        self.signal = [(term["value"], term["weight"]) for term in options["signal"]]
        self._refuse_unknown_signal()
        self.before: list[dict[str, float]] = [{}] * rows  # the statistics before the step, for the signal
        self.returns = np.zeros(rows)
        self.lengths, self.episodes = np.zeros(rows, np.int64), np.zeros(rows, np.int64)
        self.desynced = np.zeros(rows, np.bool_)
        self.steps = [0] * self.lanes
        self.finished: list[tuple[tuple[int, int], list[int], list[float]]] = []  # step and world, head, figures

    def arrays(self) -> dict[str, NDArray[Any] | None]:
        return self.rows

    def stats(self) -> list[tuple[str, bool]]:
        """Names of an episode's figures, and whether they are whole numbers."""
        found = info(self.worlds[0])
        return [("reward", False), ("ticks", True)] + [(n, not isinstance(v, float)) for n, v in found.items()]

    def weigh_signal(self, weights: list[float]) -> None:
        if len(weights) != len(self.signal):
            raise ValueError(f"signal: expected {len(self.signal)} weights, got {len(weights)}")
        self.signal = [(name, weight) for (name, _), weight in zip(self.signal, weights, strict=True)]

    def _refuse_unknown_signal(self) -> None:
        known = [name for name, _ in self.stats()] + list(self.worlds[0].step_parts((0.0,) * 6, False, False))
        for i, (name, _) in enumerate(self.signal):
            if name not in known:
                said = f"unknown statistic `{name}`{did_you_mean(str(name), known)}"
                raise ConfigError(said, f"$.signal[{i}].value")

    # ---- stepping

    def reset(self, seed: int | None) -> None:
        fresh = seed is not None or not self.ready
        self.seed = self.seed if seed is None else seed
        for name in ("rewards", "terminals", "truncations"):
            self._row(name)[:] = 0
        if self.signal:
            self._row("signal")[:] = 0
        for i, world in enumerate(self.worlds):
            world.reset((self.seed + i) % 2**64 if fresh else None)
            self.episodes[i] = 0 if fresh else self.episodes[i] + 1
            self.desynced[i] = False
            if fresh and self.desync:
                self._shorten(i, world)
            self._begin(i, world)
        self.ready = True

    def send(self, lane: int) -> None:
        if lane in self.flying or not self.ready:
            raise RuntimeError(f"send({lane}): call {'recv' if self.ready else 'reset'}() first")
        self.flying.add(lane)

    def recv(self, lane: int) -> None:
        if lane not in self.flying:
            raise RuntimeError(f"recv({lane}): nothing was sent to this lane; call send({lane}) first")
        self.flying.remove(lane)
        size = len(self.worlds) // self.lanes
        for i in range(lane * size, (lane + 1) * size):
            self._step(i, self.worlds[i], self.steps[lane])
        self.steps[lane] += 1

    def step(self) -> None:
        for lane in range(self.lanes):
            self.send(lane)
            self.recv(lane)

    def write_actions(self, actions: NDArray[Any]) -> None:
        self._row("actions")[:] = np.where((actions >= 0) & (actions < NUM_ACTIONS), actions, -1)

    def close(self) -> None:
        self.closed = True

    def _row(self, name: str) -> NDArray[Any]:
        found = self.rows[name]
        assert found is not None
        return found

    def _step(self, i: int, world: ReferenceWorld, step: int) -> None:
        reward = world.step(int(self._row("actions")[i]))
        self.returns[i] += reward
        self.lengths[i] += 1
        self._row("rewards")[i] = reward
        if self.signal:
            self._pay_signal(i, world)
        self._row("terminals")[i], self._row("truncations")[i] = world.terminated, world.truncated
        if not (world.terminated or world.truncated):
            self._look(i, world)
            return
        self._row("final_obs")[i] = observe(world)
        head = [i, 0, 0, int(self.episodes[i]), int(self.lengths[i]), int(self.desynced[i])]
        self.finished.append(((step, i), head, list(self._figures(i, world).values())))
        self.episodes[i] += 1
        self.desynced[i] = False
        world.reset()
        self._begin(i, world)

    def _figures(self, i: int, world: ReferenceWorld) -> dict[str, float]:
        """The statistics of an episode, so far."""
        found = info(world) | {"node_context": 0.0 if world.at_station else 1.0}
        return {"reward": float(self.returns[i]), "ticks": float(world.ticks)} | {n: float(v) for n, v in found.items()}

    def _pay_signal(self, i: int, world: ReferenceWorld) -> None:
        now, total = self._figures(i, world), 0.0
        for name, weight in self.signal:
            total += weight * (world.parts[name] if name in world.parts else now[name] - self.before[i][name])
        self._row("signal")[i] = total
        self.before[i] = now

    def _begin(self, i: int, world: ReferenceWorld) -> None:
        self.returns[i] = self.lengths[i] = 0
        self.before[i] = self._figures(i, world)
        self._look(i, world)

    def _look(self, i: int, world: ReferenceWorld) -> None:
        self._row("obs")[i] = observe(world)
        if self.rows["masks"] is not None:
            self._row("masks")[i] = mask(world)

    def _shorten(self, i: int, world: ReferenceWorld) -> None:
        """World i of N begins with an episode of 1 + round((time_max - 1) (i + 1) / N) ticks, as in the core."""
        full, count = math.ceil(world.config.time_max), len(self.worlds)
        limit = 1 + (2 * (full - 1) * (i + 1) + count) // (2 * count)
        if limit < full:
            world.tick_limit, self.desynced[i] = float(limit), True

    def take_episodes(self) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        taken, self.finished = sorted(self.finished), []
        heads = np.array([head for _, head, _ in taken], np.int64).reshape(-1, 6)
        figures = np.array([found for _, _, found in taken], np.float64)
        return heads, figures.reshape(len(taken), len(self.stats()))

    # ---- state to bytes and back: tensors by name, nothing that could run

    def save(self, worlds: Sequence[int]) -> bytes:
        if list(worlds) != list(range(len(self.worlds))):
            raise ValueError("the reference saves all its worlds or none")
        return bytes_from_arrays(self._state())

    def restore(self, data: bytes, worlds: Sequence[int]) -> None:
        mine = self._state()
        try:
            saved = arrays_from_bytes(data)
        except SafetensorError:
            raise ValueError("expected worlds of the reference; resume with the trainer.env_impl of the run") from None
        shapes = [{name: (a.shape, a.dtype) for name, a in found.items()} for found in (mine, saved)]
        if list(worlds) != list(range(len(self.worlds))) or shapes[0] != shapes[1]:
            raise ValueError("these worlds of the reference do not fit: the number of worlds or the version differs")
        for name, array in self._own().items():
            array[:] = saved[f"batch.{name}"]
        for i, world in enumerate(self.worlds):
            world.rng.state = int(saved["world.rng"][i])
            for name, now in vars(world).items():
                if name not in NOT_STATE:
                    found = saved[f"world.{name}"][i]
                    setattr(world, name, found.copy() if isinstance(now, np.ndarray) else type(now)(found.tolist()))
            self.before[i] = self._figures(i, world)
        if self.signal:  # what follows from the worlds is not saved with them
            self._row("signal")[:] = 0
        self.ready = True

    def _own(self) -> dict[str, NDArray[Any]]:
        """The arrays of the batch that are state."""
        rows = {name: array for name, array in self.rows.items() if array is not None and name != "signal"}
        return rows | {
            "returns": self.returns,
            "lengths": self.lengths,
            "episodes": self.episodes,
            "short_first": self.desynced,  # as states saved earlier name it
        }

    def _state(self) -> dict[str, NDArray[Any]]:
        """Everything by name, the worlds' attributes as arrays over the worlds."""
        state = {f"batch.{name}": array for name, array in self._own().items()}
        state["world.rng"] = np.array([world.rng.state for world in self.worlds], np.uint64)
        for name in vars(self.worlds[0]):
            if name not in NOT_STATE:
                state[f"world.{name}"] = np.array([getattr(world, name) for world in self.worlds])
        return state
