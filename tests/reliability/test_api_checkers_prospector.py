"""Prospector: the checkers of Gymnasium and Stable-Baselines3, native and reference: no error, no warning.

One ship is no multi-agent game, so PettingZoo's checkers have nothing to look at.
"""

from __future__ import annotations

import warnings

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

from gridmill.adapters import GridmillVectorEnv
from gridmill.env.checks import check_determinism
from gridmill.prospector import ProspectorConfig, ProspectorEnv

pytestmark = pytest.mark.D7

IMPLEMENTATIONS = ("native", "reference", "auto")


@pytest.mark.parametrize("impl", IMPLEMENTATIONS)
def test_gymnasium_checker_on_prospector(impl: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        env = gymnasium.make("gridmill/prospector-v0", impl=impl)
        check_env(env.unwrapped, skip_render_check=impl == "reference")  # which has no picture
        env.close()


@pytest.mark.parametrize("impl", IMPLEMENTATIONS)
def test_gymnasium_passive_checker_over_ends(impl: str) -> None:
    """`gymnasium.make` wraps the env in the passive checker: every step of several episodes goes through it."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        env = gymnasium.make("gridmill/prospector-v0", config=ProspectorConfig(time_max=30.0), impl=impl, masks=True)
        env.action_space.seed(0)
        ends = 0
        env.reset(seed=1)
        for _ in range(200):
            _, _, terminated, truncated, info = env.step(env.action_space.sample())
            assert info["action_mask"].shape == (69,)
            if terminated or truncated:
                ends += 1
                env.reset()
        assert ends > 4
        env.close()


@pytest.mark.parametrize("impl", IMPLEMENTATIONS)
def test_stable_baselines3_checker_on_prospector(impl: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what importing torch may warn about is not ours
        checker = pytest.importorskip(
            "stable_baselines3.common.env_checker",
            reason="stable-baselines3 is not installed (it needs torch): pip install 'gridmill[dev]'",
        )
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        checker.check_env(ProspectorEnv(impl=impl))


def test_native_and_reference_have_the_same_face() -> None:
    native, reference = ProspectorEnv(impl="native", masks=True), ProspectorEnv(impl="reference", masks=True)
    assert native.observation_space == reference.observation_space
    assert native.action_space == reference.action_space
    for one, other in ((native.reset(seed=1), reference.reset(seed=1)), (native.step(3), reference.step(3))):
        assert (one[0].dtype, one[0].shape) == (other[0].dtype, other[0].shape) == (np.float32, (260,))
        assert list(one[-1]) == list(other[-1])
        assert [type(value) for value in one[-1].values()] == [type(value) for value in other[-1].values()]
        assert [type(value) for value in one] == [type(value) for value in other]


def test_gymnasium_vector_env_of_prospector_is_accepted() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        envs = gymnasium.make_vec("gridmill/prospector-v0", num_envs=5, time_max=50.0, masks=True)
        assert isinstance(envs, GridmillVectorEnv)
        obs, _ = envs.reset(seed=0)
        assert envs.observation_space.contains(obs)
        envs.action_space.seed(0)
        ended = 0
        for _ in range(80):
            obs, rewards, terminated, truncated, infos = envs.step(envs.action_space.sample())
            assert envs.observation_space.contains(obs)
            assert rewards.shape == terminated.shape == truncated.shape == (5,)
            ended += int((terminated | truncated).sum())
            for row in np.flatnonzero(terminated | truncated):
                assert infos["final_obs"][row].shape == (260,)
        assert ended > 5
        envs.close()


@pytest.mark.parametrize("impl", ["native", "reference"])
def test_our_own_checker_on_prospector(impl: str) -> None:
    config = ProspectorConfig(time_max=40.0)
    report = check_determinism(lambda: ProspectorEnv(config, seed=3, impl=impl, masks=True), seeds=(0, 1), steps=150)
    assert report.resets > 6
