"""The native game equals the reference to the bit: observations, rewards, random states, flags, every value of info.

On every change a few seeds; in the long tier 10 seeds x 4 action suites x 2 time limits x 2 000 steps.
"""

from __future__ import annotations

import numpy as np
import pytest
from traces import SUITES, compare, same_values

from gridmill.prospector import Commodities, Commodity, ProspectorConfig, ProspectorEnv

LIMITS = (20_000.0, 300.0)


@pytest.mark.parametrize("time_max", LIMITS)
@pytest.mark.parametrize("suite", SUITES)
@pytest.mark.parametrize("seed", [0, 1])
def test_parity(seed: int, suite: str, time_max: float) -> None:
    seen = compare(suite, seed, time_max, steps=400)
    assert seen["invalid"] > 5
    if suite != "adversarial":  # it never leaves the station
        assert seen["field"] > 50
        assert seen["episodes"] > 0


@pytest.mark.long
@pytest.mark.parametrize("time_max", LIMITS)
@pytest.mark.parametrize("suite", SUITES)
@pytest.mark.parametrize("seed", range(10))
def test_parity_in_full(seed: int, suite: str, time_max: float) -> None:
    seen = compare(suite, seed, time_max, steps=2_000)
    assert seen["invalid"] > 20
    if suite != "adversarial":
        assert seen["field"] > 100
        assert seen["episodes"] > 3


def test_the_short_limit_is_reached() -> None:
    assert compare("scenario", 3, 60.0, steps=400)["truncated"] > 0


def strange() -> ProspectorConfig:
    """Every kind of setting away from its default, some of them at the edge."""
    return ProspectorConfig(
        time_max=77.5,
        commodities=Commodities(iron=Commodity(base=0.01, low=0.01, high=10_000.0)),
        repair_kits_cap=1,
        travel_time_max=255,
        travel_fuel_cost_max=1.0,
        heat_dissipation_per_tick=0.0,
        overheat_damage=0.001,
        hazard_damage_per_tick=0.01,
        hazard_heat_per_tick=9.0,
        escape_buff_ticks=0,
        pirate_bias=100.0,
        pirate_intensity_weight=-100.0,
        pirate_cargo_weight=100.0,
        market_noise=100.0,
        inventory_decay=0.0,
        credit_scale=0.001,
        invalid_pen=-3.0,
        terminal_bonus=-1e6,
        spend_again=0.7,
    )


@pytest.mark.parametrize("seed", range(6))
def test_parity_with_strange_settings(seed: int) -> None:
    slow, fast = (ProspectorEnv(strange(), seed=seed, impl=impl) for impl in ("reference", "native"))
    rng = np.random.default_rng(seed)
    for _ in range(300):
        action = int(rng.integers(0, 69))
        one, other = slow.step(action), fast.step(action)
        assert one[0].tobytes() == other[0].tobytes()
        assert one[1:4] == other[1:4]
        assert same_values(one[4], other[4])
        assert np.isfinite(one[0]).all()
        if one[2] or one[3]:
            slow.reset(), fast.reset()
        assert slow.rng_state == fast.rng_state
