"""The batch env of Prospector: equal to single envs, any threads, masks, episode records, step_info, state."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from random_games import quiet_make

import gridmill
from gridmill import _native
from gridmill.prospector import ProspectorConfig, ProspectorEnv

STATS = ("credits", "net_profit", "profit_per_tick", "survival", "overheat_ticks", "pirate_encounters",
         "value_lost_to_pirates", "fuel_used", "hull_damage", "tool_wear", "scan_count", "mining_ticks",
         "cargo_utilization_avg", "time_remaining", "action", "dt", "invalid_action", "terminated",
         "truncated")  # fmt: skip


@pytest.mark.parametrize("options", [{}, {"threads": 2}, {"threads": 4, "lanes": 2}], ids=["one", "two", "four"])
def test_batch_equals_single_envs(options: dict[str, Any]) -> None:
    worlds, steps, config = 6, 400, ProspectorConfig(time_max=120.0)
    singles = [ProspectorEnv(config, seed=70 + world) for world in range(worlds)]
    rng = np.random.default_rng(4)
    with quiet_make(config, num_worlds=worlds, seed=70, masks=True, **options) as env:
        env.reset()
        ended = 0
        for step in range(steps):
            actions = rng.integers(-3, 72, worlds, dtype=np.int32)
            env.step(actions)
            info = env.step_info
            for world, single in enumerate(singles):
                obs, reward, terminated, truncated, said = single.step(int(actions[world]))
                assert env.rewards[world] == np.float32(reward), (world, step)
                assert (env.terminals[world], env.truncations[world]) == (terminated, truncated)
                facts = (said["dt"], said["invalid_action"], said["action"])
                assert (info.dt[world], info.invalid[world], info.action[world]) == facts
                if terminated or truncated:
                    assert env.final_obs[world].tobytes() == obs.tobytes()
                    ended += 1
                    obs, _ = single.reset()
                assert env.obs[world].tobytes() == obs.tobytes()
                assert (env.masks[world] == single.action_masks()).all()
            states = [single.rng_state for single in singles]
            assert env.rng_states.tolist() == states
        assert ended > 30


def test_every_info_value_is_in_the_record_of_an_episode() -> None:
    """One world, so that each record can be held against the single env's last info."""
    config = ProspectorConfig(time_max=200.0)
    single, rng, ended = ProspectorEnv(config, seed=5), np.random.default_rng(0), 0
    with gridmill.make(config, num_worlds=1, seed=5) as env:
        env.reset()
        total, steps = 0.0, 0
        while ended < 20:
            action = int(rng.integers(0, 69))
            env.step(np.array([action]))
            _, reward, terminated, truncated, info = single.step(action)
            total, steps = total + reward, steps + 1
            if not (terminated or truncated):
                continue
            record = {name: column[0] for name, column in env.take_episodes().items()}
            assert (record["reward"], record["length"]) == (total, steps)
            assert all(record[name] == info[name] for name in STATS)
            assert record["node_context"] == (info["node_context"] == "field")
            single.reset()
            total, steps, ended = 0.0, 0, ended + 1


def test_a_reset_without_a_seed_goes_on_and_one_with_a_seed_begins_again() -> None:
    single = ProspectorEnv(seed=8)
    with gridmill.make("prospector", num_worlds=2, seed=7) as env:
        env.reset()
        first = env.obs.copy()
        env.reset()
        assert env.obs[1].tobytes() == single.reset()[0].tobytes()
        env.reset(seed=7)
        assert env.obs.tobytes() == first.tobytes()
        assert env.step_info.action.tolist() == [-1, -1]


def test_masks_say_what_would_be_valid() -> None:
    """Every action from the same state, by forking it: the mask is 1 exactly where the step is not invalid."""
    rng, looked_at = np.random.default_rng(3), 0
    with gridmill.make("prospector", num_worlds=69, seed=11, masks=True) as env:
        env.reset()
        for _ in range(60):
            saved = env.save([0])
            env.restore(saved, range(69))
            allowed = env.masks[0].copy()
            assert allowed[6] == 1
            env.step(np.arange(69))
            assert (env.step_info.invalid == (allowed == 0)).all()
            env.restore(saved, range(69))
            for _ in range(3):
                choice = int(rng.choice(np.flatnonzero(env.masks[0][:68])))
                env.step(np.full(69, choice))
            looked_at += int(allowed.sum())
    assert looked_at > 1_000


def test_a_saved_world_goes_on_as_it_would_have() -> None:
    rng = np.random.default_rng(2)
    plan = rng.integers(0, 69, (300, 4), dtype=np.int32)
    with gridmill.make("prospector", num_worlds=4, seed=1) as env, gridmill.make("prospector", num_worlds=4) as other:
        env.reset()
        for step in plan[:100]:
            env.step(step)
        other.restore(env.save())
        for step in plan[100:]:
            env.step(step)
            other.step(step)
            assert env.obs.tobytes() == other.obs.tobytes()
        assert (env.state_hash() == other.state_hash()).all()
        assert (env.rng_states == other.rng_states).all()


def test_desync_shortens_first_episodes_only() -> None:
    config = ProspectorConfig(time_max=100.0, hazard_damage_per_tick=0.0, pirate_bias=-100.0, overheat_damage=0.0)
    with gridmill.make(config, num_worlds=4, desync_episodes=True) as env:
        env.reset()
        for _ in range(220):
            env.step(np.full(4, 6))
        record = env.take_episodes()
    first = record["episode"] == 0
    assert sorted(record["ticks"][first].tolist()) == [26, 51, 75, 100]
    assert set(record["ticks"][~first].tolist()) == {100}
    assert record["truncated"].all()


@pytest.mark.parametrize(
    "options",
    [{}, {"masks": True}, {"threads": 2, "lanes": 2}, {"profiling": True}],
    ids=["plain", "masks", "threads and lanes", "profiling"],
)
def test_a_thousand_steps_allocate_nothing(options: dict[str, Any]) -> None:
    """Resets included: only the log of episodes may grow, and it is warmed up first."""
    with quiet_make("prospector", num_worlds=8, **options) as env:
        env.reset()
        actions = np.random.default_rng(0).integers(-1, 70, (1_000, 8), dtype=np.int32)
        for step in range(4_000):
            env.actions[:] = actions[step % 1_000]
            env.step()
        log_of_equal_size = len(env.take_episodes()["world"])
        before = _native.allocations()
        ended = 0
        for step in range(1_000):
            env.actions[:] = actions[step]
            env.step()
            ended += int((env.terminals | env.truncations).sum())
        assert 0 < ended < log_of_equal_size
        assert _native.allocations() == before


def test_reading_step_info_allocates_nothing() -> None:
    with gridmill.make("prospector", num_worlds=8) as env:
        env.reset()
        arrays = [id(array) for array in env.step_info]
        before = _native.allocations()
        for _ in range(100):
            env.step_info  # noqa: B018
        assert _native.allocations() == before
        assert [id(array) for array in env.step_info] == arrays


def test_games_of_one_batch_may_have_other_constants() -> None:
    short = ProspectorConfig(time_max=10.0)
    with gridmill.make([ProspectorConfig(), short], num_worlds=4, seed=0) as env:
        env.reset()
        for _ in range(10):
            env.step(np.full(4, 6))
        assert env.truncations.tolist() == [False, True, False, True]
        third = env.add_game(ProspectorConfig(time_max=3.0))
        env.assign(0, third)
        env.reset()
        assert env.game_of_world.tolist() == [third, 1, 0, 1]
