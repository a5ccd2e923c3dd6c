"""Rewards by hand: every mode, caps, sharing, rounding, and the token that tells of them a tick later."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from random_games import quiet_make
from reference.observation import reward_token

from gridmill import Env, Game
from gridmill.config import ConfigError
from gridmill.grid import (
    AgentType,
    Ascii,
    Constant,
    Inventory,
    Log,
    Max,
    Min,
    Observation,
    Ratio,
    RewardTerm,
    Stat,
    Sum,
)  # fmt: skip

NOOP, NORTH, EAST = 0, 1, 4
# A walled-in agent: noops over failed moves, a value that rises and falls. With the actions below it is
RISES_AND_FALLS = Ratio(values=[Stat(name="action.noop.success"), Stat(name="action.move_north.failed")])
ACTIONS = [NOOP, NORTH, NOOP, NOOP, NORTH, NOOP]
VALUES = [0.0, 1.0, 2.0, 3.0, 1.5, 2.0]


def env_with(*terms: RewardTerm, text: str = "@", num_agents: int = 1, **fields: Any) -> Env:
    fields = {"resources": ("ore",), "agent": AgentType(inventory={"ore": 7})} | fields
    game = Game(name="pay", num_agents=num_agents, map=Ascii(text=text), rewards=terms, **fields)
    env = quiet_make(game, num_worlds=1)
    env.reset()
    return env


def paid(env: Env, actions: list[int]) -> list[float]:
    rewards = []
    for action in actions:
        env.step(np.full(env.num_rows, action, np.int32))
        rewards.append(float(env.rewards[0]))
    return rewards


@pytest.mark.parametrize(
    ("term", "expected"),
    [
        ({"mode": "change"}, [0, 1, 1, 1, -1.5, 0.5]),
        ({"mode": "change", "weight": 2.0}, [0, 2, 2, 2, -3, 1]),
        ({"mode": "change", "cap": 2.5}, [0, 1, 1, 0.5, -1, 0.5]),
        ({"mode": "change", "cap": 0.0}, [0, 0, 0, 0, 0, 0]),
        ({"mode": "gained"}, [0, 1, 1, 1, 0, 0.5]),
        ({"mode": "gained", "weight": -2.0}, [0, -2, -2, -2, 0, -1]),
        ({"mode": "gained", "cap": 3.25}, [0, 1, 1, 1, 0, 0.25]),
        ({"mode": "gained", "cap": 1.5}, [0, 1, 0.5, 0, 0, 0]),
        ({"mode": "per_tick"}, VALUES),
        ({"mode": "per_tick", "weight": 0.5}, [v / 2 for v in VALUES]),
        ({"mode": "per_tick", "cap": 1.75}, [min(1.75, v) for v in VALUES]),
    ],
)
def test_every_mode_by_hand(term: dict[str, Any], expected: list[float]) -> None:
    env = env_with(RewardTerm(value=RISES_AND_FALLS, **term))
    assert paid(env, ACTIONS) == expected


def test_change_is_the_default_and_weighs_one() -> None:
    term = RewardTerm(value=Constant(value=1.0))
    assert (term.mode, term.weight, term.cap) == ("change", 1.0, 1e9)


@pytest.mark.parametrize("mode", ["change", "gained"])
@pytest.mark.parametrize("value", [Inventory(resource="ore"), Stat(name="cell.visited"), Stat(name="ore.amount")])
def test_start_amounts_pay_nothing(mode: Any, value: Any) -> None:
    env = env_with(RewardTerm(value=value, mode=mode, weight=10.0), max_steps=3)
    assert paid(env, [NOOP] * 9) == [0.0] * 9  # nor do they in later episodes


def test_a_new_episode_starts_from_scratch() -> None:
    """Running sums and values before do not leak into the next episode."""
    env = env_with(RewardTerm(value=Stat(name="action.noop.success"), mode="gained", cap=2.0), max_steps=3)
    assert paid(env, [NOOP] * 6) == [1, 1, 0, 1, 1, 0]
    env = env_with(RewardTerm(value=Stat(name="action.noop.success")), max_steps=2)
    assert paid(env, [NOOP] * 6) == [1] * 6


def test_inventory_per_tick() -> None:
    assert paid(env_with(RewardTerm(value=Inventory(resource="ore"), mode="per_tick")), [NOOP] * 2) == [7, 7]


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (Constant(value=-2.5), -2.5),
        (Sum(values=[Constant(value=1.0), Inventory(resource="ore"), Constant(value=-3.0)]), 5.0),
        (Ratio(values=[Inventory(resource="ore"), Constant(value=2.0)]), 3.5),
        (Ratio(values=[Inventory(resource="ore"), Constant(value=0.0)]), 0.0),
        (Min(values=[Inventory(resource="ore"), Constant(value=2.0), Constant(value=4.0)]), 2.0),
        (Max(values=[Inventory(resource="ore"), Constant(value=2.0), Constant(value=9.0)]), 9.0),
        (Log(values=[Inventory(resource="ore")]), float(np.float32(np.log(8.0)))),
        (Log(values=[Constant(value=-5.0)]), 0.0),
        (Stat(name="action.noop.success"), 1.0),
        (Stat(name="cell.visited"), 1.0),
        (Sum(values=[Sum(values=[Constant(value=1.0)] * 32)] * 32), 1024.0),
    ],
)
def test_game_values_by_hand(value: Any, expected: float) -> None:
    assert paid(env_with(RewardTerm(value=value, mode="per_tick")), [NOOP]) == [expected]


def test_values_nested_eight_deep_and_one_more() -> None:
    value: Any = Constant(value=3.0)
    for _ in range(7):
        value = Max(values=[Constant(value=-1.0), value])
    assert paid(env_with(RewardTerm(value=value, mode="per_tick")), [NOOP]) == [3.0]
    refused = r"^expected game values nested at most 8 levels deep, got more - at `\$.rewards\[0\].value"
    with pytest.raises(ValueError, match=refused):
        env_with(RewardTerm(value=Max(values=[value]), mode="per_tick"))


@pytest.mark.parametrize("levels", [150, 400, 5000])
def test_values_nested_deeper_than_can_be_written_are_refused_with_their_path(levels: int) -> None:
    value: Any = Constant(value=1.0)
    for _ in range(levels):
        value = Sum(values=[value])
    with pytest.raises(ConfigError) as caught:
        env_with(RewardTerm(value=value, mode="per_tick"))
    assert caught.value.what == "expected settings nested at most 8 levels deep, got more"
    assert caught.value.path == f"$.rewards[0].value{'.values[0]' * 8}.values"


def test_terms_are_added_in_double_and_rounded_once() -> None:
    big = [1e8, 1.0, -1e8]
    env = env_with(*(RewardTerm(value=Constant(value=1.0), weight=w, mode="per_tick") for w in big))
    assert paid(env, [NOOP]) == [1.0]  # in float32 the 1 would be lost
    tenths = [0.1, 0.2, 0.3]
    env = env_with(*(RewardTerm(value=Constant(value=1.0), weight=w, mode="per_tick") for w in tenths))
    assert paid(env, [NOOP]) == [float(np.float32(0.1 + 0.2 + 0.3))]


def test_episode_sums_are_double() -> None:
    env = env_with(RewardTerm(value=Constant(value=1.0), weight=0.1, mode="per_tick"), max_steps=1_000)
    total = sum(paid(env, [NOOP] * 1_000))
    assert env.take_episodes()["reward"].tolist() == [total]
    assert total == pytest.approx(100, abs=1e-5)


# ---- sharing


@pytest.mark.parametrize(
    ("share", "expected"),
    [(0.0, [1.0, 0.0, 0.0, 1.0]), (0.5, [0.75, 0.25, 0.25, 0.75]), (1.0, [0.5, 0.5, 0.5, 0.5])],
)
def test_sharing_inside_groups(share: float, expected: list[float]) -> None:
    """Agents 0 and 1 are group 1, 2 and 3 group 2; only 0 and 3 earn. r = (1 - f) r + f x mean of the group."""
    env = env_with(
        RewardTerm(value=Stat(name="action.noop.success")), text="1.1\n2.2", num_agents=4, reward_sharing=share
    )
    env.step(np.array([NOOP, NORTH, 99, NOOP], np.int32))
    assert env.rewards.tolist() == expected


def test_sharing_with_groups_of_different_size() -> None:
    env = env_with(
        RewardTerm(value=Stat(name="action.noop.success"), weight=3.0), text="1222", num_agents=4, reward_sharing=0.25
    )
    env.step(np.array([NOOP, NOOP, 99, 99], np.int32))
    assert env.rewards.tolist() == [3.0, 0.75 * 3 + 0.25 * 1, 0.25, 0.25]


# ---- the token


def last_reward(env: Env) -> int:
    return next(t.value for t in env.decode(0) if t.feature == "last_reward")


def test_last_reward_is_the_reward_of_the_tick_before() -> None:
    env = env_with(RewardTerm(value=RISES_AND_FALLS), observation=Observation(reward_scale=10.0))
    assert last_reward(env) == 128
    shown = []
    for action in ACTIONS:
        env.step(np.array([action], np.int32))
        shown.append(last_reward(env))
    assert shown == [128, 128, 138, 138, 138, 113]  # the tick before paid: -, 0, 1, 1, 1, -1.5


def test_last_reward_starts_at_128_in_every_episode() -> None:
    env = env_with(RewardTerm(value=Constant(value=1.0), mode="per_tick", weight=0.5), max_steps=3)
    shown = [last_reward(env)]
    for _ in range(6):
        env.step()
        shown.append(last_reward(env))
    assert shown == [128, 128, 178, 128, 128, 178, 128]
    assert env.final_obs[0, 2, 2] == 178


@pytest.mark.parametrize(
    ("reward", "scale", "expected"),
    [
        (0.0, 100.0, 128), (1.0, 100.0, 228), (2.0, 100.0, 255), (-1.0, 100.0, 28), (-9.0, 100.0, 1),
        (0.5, 1.0, 129), (-0.5, 1.0, 127), (1.5, 1.0, 130), (-1.5, 1.0, 126), (0.25, 1.0, 128), (2.5, 1.0, 131),
        (126.5, 1.0, 255), (-126.5, 1.0, 1), (1e12, 1e30, 255), (-1e12, 1e30, 1), (5.0, 0.0, 128), (1.0, -3.0, 125),
    ],
)  # fmt: skip
def test_last_reward_rounds_half_away_from_zero_and_is_clamped(reward: float, scale: float, expected: int) -> None:
    assert reward_token(reward, scale) == expected
    env = env_with(
        RewardTerm(value=Constant(value=1.0), weight=reward, mode="per_tick"),
        observation=Observation(reward_scale=scale),
    )
    env.step()
    assert env.rewards[0] == np.float32(reward)
    env.step()
    assert last_reward(env) == expected


def test_no_terms_no_reward() -> None:
    assert paid(env_with(max_steps=2), [NOOP, EAST, NOOP]) == [0.0, 0.0, 0.0]
