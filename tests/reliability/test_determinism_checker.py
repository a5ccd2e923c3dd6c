"""The determinism checker itself. It must catch every broken env here, and pass the sound ones."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

import gridmill
from gridmill.adapters import GridmillVectorEnv, parallel_env
from gridmill.env.checks import CheckFailed, Report, check_determinism, difference
from gridmill.grid import Ascii

pytestmark = pytest.mark.D6

SMALL = {"num_agents": 3, "map_size": 9, "max_steps": 60}


class Sound(gymnasium.Env[Any, Any]):
    """A seeded random walk of eight bytes, 70 steps an episode. Each broken env below changes one thing."""

    observation_space = spaces.Box(0, 200, (8,), np.uint8)
    action_space = spaces.Discrete(3)

    def __init__(self) -> None:
        self.chaos = np.random.default_rng()  # what a careless author draws from: no seed
        self.total = 0

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.place = self.np_random.integers(0, 200, 8, dtype=np.uint8)
        self.tick = 0
        return self.see(), {"tick": 0}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        self.tick, self.total = self.tick + 1, self.total + 1
        self.place = (self.place.astype(np.int64) + self.np_random.integers(0, 9, 8) + action).astype(np.uint8) % 200
        return self.see(), self.reward(), False, self.out_of_time(), {"tick": self.tick}

    def see(self) -> Any:
        return self.place.copy()

    def reward(self) -> float:
        return float(self.place[0]) / 8

    def out_of_time(self) -> bool:
        return self.tick >= 70


class RandomFromStep2(Sound):
    def see(self) -> Any:
        return self.chaos.integers(0, 200, 8, dtype=np.uint8) if self.tick >= 2 else self.place.copy()


class RandomFromStep200(Sound):
    def see(self) -> Any:
        seen = self.place.copy()
        if self.total >= 200:
            seen[3] = self.chaos.integers(0, 200)
        return seen


class ResetKeepsOldSeed(Sound):
    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        return super().reset(seed=None if self.total else seed)


class EpisodesUnseeded(Sound):
    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        return super().reset(seed=int(self.chaos.integers(1 << 31)) if seed is None else seed)


class ReusesOneBuffer(Sound):
    def see(self) -> Any:
        if not hasattr(self, "buffer"):
            self.buffer = np.zeros(8, np.uint8)
        self.buffer[:] = self.place
        return self.buffer


class ReusesRingOfBuffers(Sound):
    def see(self) -> Any:
        if not hasattr(self, "ring"):
            self.ring = np.zeros((16, 8), np.uint8)
        self.ring[self.total % 16] = self.place
        return self.ring[self.total % 16]


class SharesBufferBetweenEnvs(Sound):
    shared = np.zeros(8, np.uint8)

    def see(self) -> Any:
        self.shared[:] = self.place
        return self.shared


class ChangesInfoLater(Sound):
    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        obs, reward, terminated, truncated, _ = super().step(action)
        if not hasattr(self, "info"):
            self.info: dict[str, Any] = {}
        self.info["tick"] = self.tick
        return obs, reward, terminated, truncated, self.info


class LeavesTheSpace(Sound):
    def see(self) -> Any:
        seen = self.place.copy()
        if self.total > 100:
            seen[0] = 201
        return seen


class WrongDtype(Sound):
    observation_space = spaces.Box(0, 200, (8,), np.int64)  # uint8 can be cast to it, so contains() says yes


class WrongShape(Sound):
    def see(self) -> Any:
        return self.place[:7].copy()


class RewardDrifts(Sound):
    def reward(self) -> float:
        return super().reward() + (1e-12 * self.chaos.random() if self.total == 150 else 0.0)


class RewardNaN(Sound):
    def reward(self) -> float:
        return float("nan") if self.total == 90 else super().reward()


class RandomTruncation(Sound):
    def out_of_time(self) -> bool:
        return self.tick >= 50 and bool(self.chaos.random() < 0.3)


class IntegerFlag(Sound):
    def out_of_time(self) -> Any:
        return int(super().out_of_time())


class RandomInfo(Sound):
    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        *rest, info = super().step(action)
        return (*rest, {**info, "luck": self.chaos.random()})  # type: ignore[return-value]


class SeedIgnored(Sound):
    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        return super().reset(seed=None if seed is None else 7)


BROKEN: list[tuple[type[Sound], str]] = [
    (RandomFromStep2, "observation must be equal for the same seed and actions, got .* at seed 0, step 2,"),
    (
        RandomFromStep200,
        "observation must be equal for the same seed and actions, got .* at seed 0, step 2[0-9]{2},",
    ),
    (ResetKeepsOldSeed, "observation must be equal .* at seed 1, step 0,"),
    (EpisodesUnseeded, "observation must be equal .* at seed 0, step 70, after 2 reset"),
    (
        ReusesOneBuffer,
        "returned arrays must be new, but one shares memory with step 0's - at seed 0, step 1,",
    ),
    (
        ReusesRingOfBuffers,
        "returned arrays must be new, but one shares memory with step 0's - at seed 0, step 16,",
    ),
    (SharesBufferBetweenEnvs, "two envs must not share memory"),
    (ChangesInfoLater, "what step 1 returned was changed by a later step"),
    (LeavesTheSpace, "observation must lie in Box.* at seed 0, step 101,"),
    (WrongDtype, r"observation must be int64 \(8,\), got uint8 \(8,\)"),
    (WrongShape, r"observation must be uint8 \(8,\), got uint8 \(7,\)"),
    (RewardDrifts, "reward must be equal .* at seed 0, step 150,"),
    (RewardNaN, "reward must be finite, got nan - at seed 0, step 90,"),
    (RandomTruncation, "truncated must be equal for the same seed and actions"),
    (IntegerFlag, "truncated must be bool, got 0"),
    (RandomInfo, r"info must be equal .* at \['luck'\]"),
    (
        SeedIgnored,
        "different seeds must give different observations, got the same 300 steps for seeds 0 and 1",
    ),
]


def test_passes_a_sound_env() -> None:
    report = check_determinism(Sound, seeds=(0, 1, 2), steps=300)
    assert report == Report(seeds=3, steps=1200, resets=4 * (1 + 300 // 70))


@pytest.mark.parametrize(("broken", "message"), BROKEN, ids=[kind.__name__ for kind, _ in BROKEN])
def test_catches_broken_env(broken: type[Sound], message: str) -> None:
    with pytest.raises(CheckFailed, match=message):
        check_determinism(broken, seeds=(0, 1, 2), steps=300)


def broken_zoo(fault: str) -> Callable[[], Any]:
    """A real parallel env whose 200th step and later ones are tampered with."""

    def make() -> Any:
        env = parallel_env("toy", **SMALL)
        whole_step, chaos, count = env.step, np.random.default_rng(), [0]

        def step(actions: Any) -> Any:
            obs, rewards, terminated, truncated, infos = whole_step(actions)
            count[0] += 1
            if count[0] >= 200:
                if fault == "observation":
                    obs["agent_1"][0, 2] = chaos.integers(256)
                elif fault == "reward":
                    rewards["agent_2"] += chaos.random()
                else:
                    infos["agent_0"]["luck"] = chaos.random()
            return obs, rewards, terminated, truncated, infos

        env.step = step
        return env

    return make


@pytest.mark.parametrize("fault", ["observation", "reward", "info"])
def test_catches_broken_parallel_env(fault: str) -> None:
    with pytest.raises(CheckFailed, match=f"{fault} must be equal .* at seed 0, step 20[0-9],"):
        check_determinism(broken_zoo(fault), seeds=(0, 1), steps=220)


@pytest.mark.parametrize("game", gridmill.games.names("grid"))
def test_passes_shipped_games(game: str) -> None:
    """Every face of every game, over several episodes, with few agents: most of the time goes by the agent."""
    short = gridmill.games.build(game).replace_all([("max_steps", 40), ("num_agents", 4)])
    rows = 2 * short.num_agents
    drawn = not isinstance(short.map, Ascii)  # on one picture the seed decides only who comes first
    for make in (
        lambda: parallel_env(short, masks=True),
        lambda: gymnasium.make(f"gridmill/{game}-v0", game=short, others="random"),
        lambda: GridmillVectorEnv(short, num_envs=rows),
        lambda: gridmill.make(short, num_worlds=2),
    ):
        report = check_determinism(make, seeds=(0, 1), steps=90, seeds_differ=drawn)
        assert report.steps == 270


def test_catches_a_vector_env_that_lends_its_buffers() -> None:
    lending = lambda: GridmillVectorEnv("toy", num_envs=6, copy=False, **SMALL)  # noqa: E731
    with pytest.raises(CheckFailed, match="returned arrays must be new"):
        check_determinism(lending, steps=70)
    assert check_determinism(lending, steps=70, fresh=False).steps == 280


def test_checker_refuses_an_empty_check() -> None:
    with pytest.raises(ValueError, match=r"expected two different seeds and steps >= 1, got seeds \[0\] and steps 5"):
        check_determinism(Sound, seeds=(0,), steps=5)


def test_difference_is_exact() -> None:
    assert difference({"a": np.array([1.0, np.nan])}, {"a": np.array([1.0, np.nan])}) == ""
    assert difference((1, [True]), (1, [False])) == "True and False at [1][0]"
    assert difference(np.float32(0.1), 0.1) == "float32 and float"
    assert difference(np.array([1.0]), np.array([np.nextafter(1.0, 2.0)])).startswith(
        "1.0 and 1.0000000000000002 at [0]"
    )
