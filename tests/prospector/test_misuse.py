"""Illegal actions, wrong seeds, wrong configs, calls in the wrong order: the game's rules or one clear line."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import gridmill
from gridmill.adapters import GridmillEnv, GridmillVectorEnv, parallel_env
from gridmill.config import ConfigError
from gridmill.prospector import ProspectorConfig, ProspectorEnv

IMPLEMENTATIONS = ("native", "reference")


@pytest.mark.parametrize("impl", IMPLEMENTATIONS)
@pytest.mark.parametrize("action", [-1, 69, 255, -(2**70), 2**70, np.int64(2**40)])
def test_any_int_is_an_action_and_illegal_ones_hold_twice(impl: str, action: int) -> None:
    env = ProspectorEnv(seed=4, impl=impl)
    env.step(7)  # alert 10
    for _ in range(2):
        env.step(32)  # refine: heat and alert
    before = env.step(32)[0]
    obs, _, _, _, info = env.step(action)
    assert (info["action"], info["invalid_action"], info["dt"]) == (6, True, 1)
    assert 100 * (before[5] - obs[5]) == pytest.approx(6, abs=1e-4)
    assert 100 * (before[2] - obs[2]) == pytest.approx(min(100 * before[2], 7.5), abs=1e-4)


@pytest.mark.parametrize("impl", IMPLEMENTATIONS)
@pytest.mark.parametrize("action", [1.5, "6", None])
def test_what_is_no_int_is_no_action(impl: str, action: Any) -> None:
    with pytest.raises(TypeError):
        ProspectorEnv(impl=impl).step(action)


@pytest.mark.parametrize("impl", IMPLEMENTATIONS)
def test_stepping_after_the_end_is_refused_until_reset(impl: str) -> None:
    env = ProspectorEnv(impl=impl)
    _, reward, terminated, truncated, _ = env.step(68)
    assert (terminated, truncated) == (True, False)
    assert reward == -0.001
    with pytest.raises(RuntimeError, match=r"^the episode is over: call reset\(\) before step\(\)$"):
        env.step(6)
    env.reset()
    env.step(6)
    env.close()
    with pytest.raises(RuntimeError, match=r"^this env is closed$"):
        env.step(6)


@pytest.mark.parametrize("impl", IMPLEMENTATIONS)
@pytest.mark.parametrize("seed", ["1", 1.0, True])
def test_wrong_seeds(impl: str, seed: Any) -> None:
    expected = rf"^seed: expected an int or None, got {seed!r}$"
    with pytest.raises(TypeError, match=expected):
        ProspectorEnv(impl=impl).reset(seed=seed)
    with pytest.raises(TypeError, match=expected):
        ProspectorEnv(seed=seed, impl=impl)


@pytest.mark.parametrize("impl", IMPLEMENTATIONS)
def test_seeds_are_taken_modulo_two_to_the_64(impl: str) -> None:
    one, other = ProspectorEnv(seed=-1, impl=impl), ProspectorEnv(seed=2**64 - 1, impl=impl)
    assert one.rng_state == other.rng_state
    assert one.reset(seed=-3)[0].tobytes() == other.reset(seed=2**64 - 3)[0].tobytes()


def test_wrong_arguments_of_the_env() -> None:
    with pytest.raises(ValueError, match=r"^impl: expected one of native, reference, auto, got 'fast'$"):
        ProspectorEnv(impl="fast")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"^config: expected a ProspectorConfig, got dict$"):
        ProspectorEnv({"time_max": 3})  # type: ignore[arg-type]
    assert ProspectorEnv(impl="auto").impl == "native"


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"time_max": 0}, "expected greater than or equal to 1, got 0 - at `$.time_max`"),
        ({"time_max": math.nan}, "got nan - at `$.time_max`"),
        ({"time_max": "long"}, "expected a valid number, got 'long' - at `$.time_max`"),
        ({"pirate_bais": 1.0}, "unknown setting `pirate_bais`; did you mean `pirate_bias`? - at `$`"),
        ({"escape_buff_ticks": 1.5}, "expected a valid integer"),
        ({"travel_time_max": 256}, "expected less than or equal to 255, got 256 - at `$.travel_time_max`"),
        ({"inventory_decay": 1.1}, "expected less than or equal to 1, got 1.1 - at `$.inventory_decay`"),
    ],
)
def test_wrong_settings_are_one_line_with_their_path(settings: dict[str, Any], expected: str) -> None:
    with pytest.raises(ConfigError) as refused:
        ProspectorConfig(**settings)
    assert expected in str(refused.value)
    assert "\n" not in str(refused.value)


def test_the_batch_refuses_what_it_cannot_do() -> None:
    with pytest.raises(ValueError, match=r"^game: games of one batch must be of one kind, got grid and prospector$"):
        gridmill.make(["toy", "prospector"])
    with pytest.raises(ValueError, match=r"^validation: prospector has only one observation path$"):
        gridmill.make("prospector", validation=True)
    with gridmill.make("prospector", num_worlds=2) as env:
        with pytest.raises(RuntimeError, match=r"call reset\(\) before the first step"):
            env.step()
        with pytest.raises(TypeError, match=r"^game: expected a ProspectorConfig, got Game$"):
            env.add_game(gridmill.games.toy())  # type: ignore[arg-type]
        env.reset()
        with pytest.raises(TypeError, match="actions must be int32 or int64"):
            env.step(np.zeros(2))
        with pytest.raises(ValueError, match=r"actions must have shape \[2\], got \[3\]"):
            env.step(np.zeros(3, np.int32))
        env.step(np.array([2**40, -5]))
        assert env.step_info.invalid.all()


def test_adapters_for_maps_say_so() -> None:
    with pytest.raises(TypeError, match=r"^this adapter is for games with a map, got `prospector`; use GridmillEnv$"):
        parallel_env("prospector")
    ship = GridmillEnv("prospector")
    obs, _ = ship.reset(seed=1)
    assert ship.observation_space.contains(obs)
    ship.close()
    with pytest.raises(ValueError, match=r"^render_mode must be None for `corridor`, which has no picture"):
        GridmillVectorEnv("corridor", 2, render_mode="ansi")


def test_observations_stay_within_their_bounds_and_fresh() -> None:
    env, rng = ProspectorEnv(seed=2), np.random.default_rng(0)
    held, _ = env.reset()
    as_it_was = held.copy()
    for _ in range(2_000):
        obs, reward, terminated, truncated, _ = env.step(int(rng.integers(-2, 71)))
        assert np.isfinite(obs).all()
        assert obs.min() >= -1.0
        assert obs.max() <= 1.0
        assert math.isfinite(reward)
        if terminated or truncated:
            env.reset()
    assert (held == as_it_was).all()
