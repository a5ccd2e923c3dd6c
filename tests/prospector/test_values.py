"""Recorded facts of the public game: random numbers, first worlds, eight steps."""

from __future__ import annotations

import hashlib

import numpy as np
import pytest

from gridmill.prospector import ProspectorEnv
from gridmill.prospector.bots import Bot
from gridmill.prospector.config import ProspectorConfig
from gridmill.prospector.reference.draws import Pcg32
from gridmill.prospector.reference.world import ReferenceWorld

OUTPUTS = {
    0: (0x9AE4F7499BA72696, [1203932051, 3113183783, 2101201694, 4034269462]),
    1: (0xF336EB76E83CA5C3, [2607537577, 204602440, 3466066159, 2183922644]),
    42: (0x185706B82C2E03F8, [2707161783, 2068313097, 3122475824, 2211639955]),
    2**64 - 1: (0x4293031C4F11A769, [290611831, 3872925298, 2937559226, 3497332769]),
}
# nodes, random state, hash of the observation, prices, neighbours and travel times of node 0
WORLDS = {
    0: (
        9, 0x16B374A727F783D1, "7c3b9317fbc4d2c5",
        [45.839828, 52.216133, 65.537262, 151.650833, 168.415726, 116.464592], [1, 2, 6, 4], [8, 5, 1, 3],
    ),
    1: (
        10, 0x2B492C83755816E1, "c002fe3b5aa38f26",
        [48.997299, 41.913925, 67.023834, 170.255341, 181.356308, 109.079369], [1, 2, 3, 6, 7], [2, 2, 1, 4, 3],
    ),
    42: (
        16, 0x0F4F3CE59822EED8, "7b86063a20f1aaa9",
        [37.328823, 57.463715, 76.439674, 143.890976, 196.488312, 108.463753], [1, 2, 7, 13, 6], [4, 3, 1, 7, 1],
    ),
}  # fmt: skip
ACTIONS = (0, 8, 12, 29, 29, 33, 6, 200)
STEPS = {
    0: (
        [-0.35691949488111024, -0.0513168697949614, -0.012247742041952336, -0.019944210672279538,
         -0.02116414943500502, -0.27251045959755077, -0.0145013822332311, -0.02251895822291631],
        0x61B54D5C157EE0EC, "7f8869a288c42a3c",
    ),
    1: (
        [-0.37197903098944984, -0.517181714078068, -0.037423841744884556, -0.3804306251584284,
         -0.053407341223987034, -0.09065466221755884, -0.04133978346467251, -0.05580818681678679],
        0xECD6D5B683868806, "8cb7aa296390b209",
    ),
    42: (
        [-0.19540438840519567, -0.06417529676232664, -0.021609199061924246, -0.6984309107191676,
         -0.03951921729511986, -0.05374406634650159, -0.02765159938036794, -0.04106592157947665],
        0xDC4CBDFD89388A26, "be6d22562a3df6a1",
    ),
}  # fmt: skip


def short_hash(obs: np.ndarray) -> str:
    return hashlib.sha256(obs.tobytes()).hexdigest()[:16]


@pytest.mark.parametrize("seed", OUTPUTS)
def test_random_numbers(seed: int) -> None:
    rng = Pcg32(seed)
    assert (rng.state, [rng.next() for _ in range(4)]) == OUTPUTS[seed]


@pytest.mark.parametrize("impl", ["native", "reference"])
@pytest.mark.parametrize("seed", WORLDS)
def test_first_world(seed: int, impl: str) -> None:
    _, state, expected, prices, _, times = WORLDS[seed]
    env = ProspectorEnv(seed=99, impl=impl)
    obs, info = env.reset(seed=seed)
    assert env.rng_state == state
    assert short_hash(obs) == expected
    assert (info["action"], info["dt"], info["node_context"]) == (-1, 0, "station")
    assert [round(8 * float(obs[24 + 7 * slot + 4])) for slot in range(len(times))] == times
    base = [45, 55, 85, 145, 210, 120]
    below = [k for k in range(6) if prices[k] < base[k]]  # above its base a price is shown as 1
    assert [float(obs[244 + k]) * base[k] for k in below] == pytest.approx([prices[k] for k in below], abs=2e-5)


@pytest.mark.parametrize("seed", WORLDS)
def test_first_world_from_inside(seed: int) -> None:
    nodes, state, _, prices, neighbours, times = WORLDS[seed]
    world = ReferenceWorld(ProspectorConfig(), seed)
    assert (world.node_count, world.rng.state) == (nodes, state)
    assert [round(float(price), 6) for price in world.price] == prices
    assert [int(n) for n in world.neighbors[0] if n >= 0] == neighbours
    assert [int(t) for t in world.travel_time[0][: len(times)]] == times
    if seed == 0:
        assert float(world.fuel_cost[0, 0]) == 46.92232894897461
        assert float(world.threat_true[0, 0]) == 0.26939645409584045


@pytest.mark.parametrize("impl", ["native", "reference"])
@pytest.mark.parametrize("seed", STEPS)
def test_eight_steps(seed: int, impl: str) -> None:
    rewards, state, expected = STEPS[seed]
    env = ProspectorEnv(seed=seed, impl=impl)
    outcomes = [env.step(action) for action in ACTIONS]
    assert [outcome[1] for outcome in outcomes] == rewards
    assert env.rng_state == state
    assert short_hash(outcomes[-1][0]) == expected
    assert [outcome[4]["invalid_action"] for outcome in outcomes] == [False] * 4 + [seed == 42] + [False] * 2 + [True]
    assert outcomes[-1][4]["action"] == 6


@pytest.mark.parametrize("impl", ["native", "reference"])
def test_no_seed_means_seed_0_and_reset_goes_on(impl: str) -> None:
    env, zero, other = ProspectorEnv(impl=impl), ProspectorEnv(seed=0, impl=impl), ProspectorEnv(seed=0, impl=impl)
    first, _ = env.reset()
    assert first.tobytes() == zero.reset()[0].tobytes()
    assert short_hash(first) != WORLDS[0][2]  # the constructor has made the first world already
    assert short_hash(other.reset(seed=0)[0]) == WORLDS[0][2]
    assert short_hash(other.reset(seed=2**64)[0]) == WORLDS[0][2]  # seeds are taken modulo 2**64


def test_what_is_spent_can_count_twice() -> None:
    """With `spend_again` at 1 and no other weight the reward adds up to the statistic net_profit."""
    weights = dict.fromkeys(
        ("alpha_extract", "beta_fuel", "gamma_time", "delta_wear", "epsilon_heat", "zeta_damage", "kappa_pirate",
         "scan_cost", "invalid_pen", "stranded_pen", "destroyed_pen", "terminal_bonus"), 0.0
    )  # fmt: skip
    for impl in ("reference", "native"):
        env = ProspectorEnv(ProspectorConfig(**weights, spend_again=1.0), seed=3, impl=impl)
        bot, paid, spent = Bot("shuttle", 1), 0.0, False
        obs, _ = env.reset(seed=3)
        for _ in range(400):
            obs, reward, ended, cut, info = env.step(int(bot.act(obs[None])[0]))
            paid += reward
            spent = spent or info["net_profit"] < info["credits"]
            assert 1000 * paid == pytest.approx(info["net_profit"], abs=1e-6)
            if ended or cut:
                break
        assert spent
