"""The constants of Prospector: frozen, validated, the same on both sides of the seam.

native/prospector/config.hpp describes the same fields; tests/contracts/test_prospector_schema.py holds them equal.
Sizes of the interface (260 observations, 69 actions, six commodities) and tank sizes are no settings.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field, model_validator

from gridmill._native import ProspectorScript
from gridmill.config import Config, ConfigError
from gridmill.env.kind import GameConfig, MakePlayer, Score
from gridmill.env.scripts import ScriptPlayer

if TYPE_CHECKING:
    from gridmill.env import Env


Share = Annotated[float, Field(ge=0.0, le=1.0)]
Rate = Annotated[float, Field(ge=0.0, le=1000.0)]
Factor = Annotated[float, Field(ge=0.0, le=100.0)]
Weight = Annotated[float, Field(ge=-100.0, le=100.0)]
Reward = Annotated[float, Field(ge=-1e6, le=1e6)]
Scale = Annotated[float, Field(ge=0.001, le=1e6)]
Price = Annotated[float, Field(ge=0.01, le=10000.0)]
Cap = Annotated[int, Field(ge=1, le=1000)]
Ticks = Annotated[int, Field(ge=0, le=10000)]


class Commodity(Config):
    """What one commodity costs: on average, at least, at most."""

    base: Price
    low: Price
    high: Price

    @model_validator(mode="after")
    def _ordered(self) -> Commodity:
        if self.low > self.high:
            raise ConfigError(f"expected low <= high, got {self.low} > {self.high}", "$.low")
        return self


class Commodities(Config):
    """The six commodities, in the order of observations and actions."""

    iron: Commodity = Commodity(base=45.0, low=12.0, high=180.0)
    nickel: Commodity = Commodity(base=55.0, low=15.0, high=200.0)
    water_ice: Commodity = Commodity(base=85.0, low=20.0, high=240.0)
    pge: Commodity = Commodity(base=145.0, low=50.0, high=320.0)
    rare_isotopes: Commodity = Commodity(base=210.0, low=80.0, high=420.0)
    volatiles: Commodity = Commodity(base=120.0, low=30.0, high=300.0)

    def each(self) -> tuple[Commodity, ...]:
        return (self.iron, self.nickel, self.water_ice, self.pge, self.rare_isotopes, self.volatiles)


class ProspectorConfig(GameConfig):
    """A game of Prospector; the defaults are the public one."""

    kind: Literal["prospector"] = "prospector"
    name: Literal["prospector"] = "prospector"
    num_agents: Literal[1] = 1
    score: Score = Score(stat="net_profit", title="net profit")
    beside: tuple[str, ...] = ("survival", "profit_per_tick", "overheat_ticks", "pirate_encounters", "length")

    time_max: Annotated[float, Field(ge=1.0, le=1e9)] = 20000.0
    commodities: Commodities = Commodities()

    # what observations are divided by, and what the ship can hold
    credits_cap: Annotated[float, Field(ge=1.0, le=1e15)] = 1e7
    repair_kits_cap: Cap = 12
    stabilizers_cap: Cap = 12
    decoys_cap: Cap = 12
    travel_time_max: Annotated[int, Field(ge=1, le=255)] = 8
    travel_fuel_cost_max: Annotated[float, Field(ge=1.0, le=10000.0)] = 160.0
    price_scale: Scale = 100.0
    inventory_scale: Scale = 500.0

    # dynamics
    heat_dissipation_per_tick: Rate = 2.5
    overheat_damage: Rate = 1.25
    hazard_damage_per_tick: Rate = 0.7
    hazard_heat_per_tick: Rate = 0.5
    hazard_alert_per_tick: Rate = 0.8
    hold_alert_decay: Rate = 3.0
    escape_buff_ticks: Ticks = 4
    stabilize_buff_ticks: Ticks = 6
    depletion_per_unit: Rate = 0.01
    pirate_bias: Weight = -4.0
    pirate_intensity_weight: Weight = 3.0
    pirate_alert_weight: Weight = 2.2
    pirate_cargo_weight: Weight = 0.8
    pirate_escape_weight: Weight = 2.8

    # market
    slippage_linear: Factor = 0.25
    slippage_root: Factor = 0.2
    inventory_pressure: Factor = 0.04
    sales_pressure: Factor = 0.05
    market_noise: Factor = 0.03
    sales_decay_ticks: Scale = 14.0
    inventory_decay: Share = 0.998

    # reward
    credit_scale: Scale = 1000.0
    alpha_extract: Reward = 0.02
    beta_fuel: Reward = 0.10
    gamma_time: Reward = 0.001
    delta_wear: Reward = 0.05
    epsilon_heat: Reward = 0.20
    zeta_damage: Reward = 1.00
    kappa_pirate: Reward = 1.00
    scan_cost: Reward = 0.005
    invalid_pen: Reward = 0.01
    heat_safe_frac: Share = 0.70
    stranded_pen: Reward = 50.0
    destroyed_pen: Reward = 100.0
    terminal_bonus: Reward = 0.002
    spend_again: Reward = 0.0  # 1: a credit spent counts twice, as in the statistic net_profit

    obs_kind = "vector"
    has_picture = True
    gymnasium_entry = "gridmill.prospector.single:ProspectorEnv"
    not_compiled = (*GameConfig.not_compiled, "name", "num_agents")

    @classmethod
    def implementations(cls) -> tuple[str, ...]:
        return ("native", "reference")

    @classmethod
    def env_class(cls, implementation: str = "native") -> type[Env]:
        if implementation == "reference":
            from gridmill.prospector.reference.env import ReferenceEnv

            return ReferenceEnv
        from gridmill.prospector.env import ProspectorBatchEnv

        return ProspectorBatchEnv

    def seed_alone(self, seed: int, world: int) -> int:
        """Its stream of random numbers begins with the sum of both."""
        return (seed + world) % 2**64

    def scripts(self) -> Mapping[str, MakePlayer]:
        return {
            name: partial(ScriptPlayer, ProspectorScript, name) for name in ProspectorScript.names(self.core_tree())
        }

    def baselines(self) -> tuple[str, ...]:
        return ("random", "script:shuttle")
