"""The VecEnv of Stable-Baselines3 says what the batch says, and its algorithms learn on it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from gymnasium import spaces

import gridmill
from gridmill.adapters import vec_env

sb3 = pytest.importorskip("stable_baselines3", reason="stable-baselines3 is not installed")
from stable_baselines3.common.monitor import Monitor  # noqa: E402
from stable_baselines3.common.vec_env import VecFrameStack, VecMonitor, VecNormalize  # noqa: E402

SMALL: dict[str, Any] = {"num_agents": 3, "map_size": 9, "max_steps": 10}


def small(**more: Any) -> Any:
    return vec_env("toy", num_worlds=2, **SMALL | more)


def batch(**more: Any) -> Any:
    return gridmill.make("toy", num_worlds=2, **SMALL, **more)


def ship(worlds: int, ticks: float) -> Any:
    return vec_env(gridmill.games.prospector().replace("time_max", ticks), num_worlds=worlds)


def test_it_gives_the_batch() -> None:
    env, reference = small(seed=3, masks=True), batch(seed=3, masks=True)
    assert (env.num_envs, env.observation_space.shape, env.action_space) == (6, (200, 3), spaces.Discrete(9))
    assert np.array_equal(env.reset(), reference.reset())
    rng, episodes = np.random.default_rng(0), 0
    for tick in range(1, 26):
        actions = rng.integers(9, size=6)
        obs, rewards, dones, infos = env.step(actions)
        reference.step(actions)
        assert np.array_equal(obs, reference.obs)
        assert np.array_equal(rewards, reference.rewards)
        assert dones.tolist() == [tick % 10 == 0] * 6
        assert np.array_equal(env.action_masks(), reference.masks != 0)
        if tick % 10:
            assert infos == [{}] * 6
            continue
        records = reference.take_episodes()
        for row, info in enumerate(infos):
            assert np.array_equal(info["terminal_observation"], reference.final_obs[row])
            assert info["TimeLimit.truncated"] is True
            assert info["episode"]["r"] == records["reward"][row]
            assert info["episode"]["l"] == 10
            assert info["stats"]["cell.visited"] == records["cell.visited"][row]
            episodes += 1
    assert episodes == 12
    env.close()


def test_a_game_that_ends_by_itself_is_no_truncation() -> None:
    game = gridmill.games.toy(**SMALL).replace("time_limit", "termination").replace("max_steps", 1)
    env = vec_env(game, num_worlds=1)
    env.reset()
    *_, infos = env.step(np.zeros(3, int))
    assert [info["TimeLimit.truncated"] for info in infos] == [False] * 3


def test_only_ended_rows_are_told_of() -> None:
    env = small(desync_episodes=True)
    env.reset()
    seen = set()
    for _ in range(10):
        *_, dones, infos = env.step(np.zeros(6, int))
        assert [bool(info) for info in infos] == dones.tolist()
        seen.add(tuple(dones.tolist()))
    assert (True, True, True, False, False, False) in seen


def test_an_observation_stays_until_the_step_after_the_next() -> None:
    env = small()
    first = env.reset()
    kept = first.copy()
    second, rewards, *_ = env.step(np.ones(6, int))
    assert np.array_equal(first, kept)
    assert not np.shares_memory(first, second)
    assert not np.shares_memory(second, env.batch.obs)
    assert not np.shares_memory(rewards, env.batch.rewards)
    third, *_ = env.step(np.ones(6, int))
    assert np.shares_memory(third, first)


def test_seeds() -> None:
    env = small()
    env.seed(7)
    first = env.reset().copy()
    second = env.reset().copy()  # the next episode
    assert not np.array_equal(first, second)
    env.seed(7)
    assert np.array_equal(env.reset(), first)
    assert np.array_equal(first, batch(seed=7).reset())


def test_dense_observations() -> None:
    env, reference = small(obs="dense"), batch()
    reference.reset(seed=0)
    assert env.observation_space.shape == (len(reference.dense_channels), 11, 11)
    obs = env.reset()
    assert np.array_equal(obs, reference.dense())
    assert env.observation_space.contains(obs[0])
    for _ in range(10):
        obs, _, _, infos = env.step(np.ones(6, int))
        reference.step(np.ones(6, int))
        assert np.array_equal(obs, reference.dense())
    assert np.array_equal(infos[4]["terminal_observation"], reference.dense(reference.final_obs)[4])


def test_numbers_beyond_32_bits_are_no_valid_actions() -> None:
    """2**32 + 2 must not become action 2: what is out of range does what it does in a step of the batch."""
    env, reference = small(seed=3), batch(seed=3)
    env.reset(), reference.reset()
    wide = np.array([2**32 + 2, -(2**32) + 1, 2**63 - 1, -(2**63), 9, 2], np.int64)
    for actions in (wide, np.array([2**32 + 2, 2**64 - 1, 2**63 + 1, 2**32 - 1, 9, 2], np.uint64)):
        env.step(actions)
        reference.step(np.array([-1, -1, -1, -1, 9, 2]))
        env.batch.actions[:] = reference.actions
        assert np.array_equal(env.batch.state_hash(), reference.state_hash())


def test_what_is_refused() -> None:
    with pytest.raises(ValueError, match=r"^obs must be 'tokens' or 'dense', got 'pixels'$"):
        small(obs="pixels")
    env = small()
    env.reset()
    for actions in (np.zeros(5, int), np.zeros(6)):
        said = rf"^actions must be integers \[6\], got {actions.dtype} \[{len(actions)}\]$"
        with pytest.raises(ValueError, match=said):
            env.step(actions)
    with pytest.raises(ValueError, match="this env has no masks: create it"):
        env.action_masks()
    assert not env.has_attr("action_masks")
    with pytest.raises(AttributeError, match="rows of a batch have no attribute `level`"):
        env.get_attr("level")
    with pytest.raises(AttributeError, match="`level` cannot be set"):
        env.set_attr("level", 3)
    with pytest.raises(AttributeError, match="rows of a batch have no method `fly`; they have action_masks"):
        env.env_method("fly")
    with pytest.raises(ValueError, match="render_mode must be 'rgb_array' for pictures, got None"):
        env.get_images()
    with pytest.raises(TypeError, match="unknown argument `num_agent`; did you mean `num_agents`"):
        vec_env("toy", num_agent=3)


def test_what_single_envs_would_be_asked() -> None:
    env = small(masks=True, render_mode="rgb_array")
    env.reset()
    assert env.get_attr("render_mode", [0, 2]) == ["rgb_array"] * 2
    assert env.env_is_wrapped(Monitor) == [True] * 6
    assert env.has_attr("action_masks")
    assert np.array_equal(np.stack(env.env_method("action_masks")), env.action_masks())
    assert [mask.tolist() for mask in env.env_method("action_masks", indices=4)] == [env.action_masks()[4].tolist()]
    assert [picture.shape for picture in env.get_images()] == [(72, 72, 3)] * 2


@pytest.mark.parametrize("wrapped", [VecMonitor, lambda env: VecFrameStack(env, 2), VecNormalize])
@pytest.mark.filterwarnings("ignore:The environment is already wrapped with a `Monitor`")  # it has its figures itself
def test_wrappers_of_theirs(wrapped: Any) -> None:
    env = wrapped(ship(4, 20))
    env.reset()
    ended = 0
    for _ in range(30):
        *_, dones, infos = env.step(np.zeros(4, int))
        ended += sum("terminal_observation" in info and "episode" in info for info in infos)
        assert all(bool(info) == done for info, done in zip(infos, dones, strict=True))
    assert ended > 0


def test_ppo_learns_on_it() -> None:
    """Two updates; the records of episodes find their way into its log."""
    model = sb3.PPO("MlpPolicy", ship(8, 20), n_steps=16, batch_size=64, n_epochs=1, seed=0, device="cpu")
    before = model.policy.action_net.weight.detach().clone()
    model.learn(256)
    assert not bool((model.policy.action_net.weight == before).all())
    assert len(model.ep_info_buffer) > 0
    assert set(model.ep_info_buffer[0]) == {"r", "l", "t"}


def test_maskable_ppo_takes_the_masks() -> None:
    contrib = pytest.importorskip("sb3_contrib", reason="sb3-contrib is not installed")
    env = small(masks=True)
    chosen: list[bool] = []
    step = env.step_async

    def spy(actions: Any) -> None:
        chosen.extend(env.action_masks()[np.arange(6), actions].tolist())
        step(actions)

    env.step_async = spy
    contrib.MaskablePPO("MlpPolicy", env, n_steps=16, batch_size=32, n_epochs=1, seed=0, device="cpu").learn(96)
    assert len(chosen) == 96
    assert all(chosen)
