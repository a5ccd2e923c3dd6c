"""Prospector in plain Python: slow, obvious, and what native/prospector/ must equal to the bit.

Scalars are Python floats; arrays are float32 and round at every store. A line that computes in float32 has np.float32
on both sides. `ReferenceWorld` is the state and its rules; generation is in belt.py, what agents see in views.py.
env.py makes a batch of it for the trainer, `prospector/single.py` an env for Gymnasium.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from gridmill.prospector.config import ProspectorConfig
from gridmill.prospector.reference.belt import Belt, cargo_sum, clamp, generate
from gridmill.prospector.reference.draws import Pcg32, in_order

HOLD, CASH_OUT = 6, 68
SCANS = (8, 9, 10)
STATION = 0

# yield multiplier, heat, wear, alert, yield noise, fracture bias
MINING = ((0.80, 2.0, 0.8, 1.2, 0.05, -0.7), (1.15, 4.0, 1.6, 2.2, 0.10, 0.0), (1.55, 7.0, 2.8, 4.0, 0.16, 0.8))
# blend, confidence gain, noise multiplier
WIDE, FOCUSED, DEEP = (0.22, 0.10, 1.35), (0.42, 0.20, 1.00), (0.80, 0.45, 0.55)
FUEL_OFFERS = ((60.0, 120.0), (120.0, 260.0), (210.0, 480.0))  # cost, fuel
KIT_COST, STABILIZER_COST, DECOY_COST, OVERHAUL_COST = 150.0, 175.0, 110.0, 280.0


class ReferenceWorld(Belt):
    """One ship in one belt. `reset` before `step`; `step` returns the reward and leaves the flags in the state."""

    def __init__(self, config: ProspectorConfig, seed: int) -> None:
        super().__init__(config)
        self.rng = Pcg32(seed)
        self.reset()

    def reset(self, seed: int | None = None) -> None:
        """A new belt: from a seed, or, without one, the next one of the stream."""
        if seed is not None:
            self.rng.seed(seed)
        self.fuel, self.hull, self.heat, self.tool, self.alert = 1000.0, 100.0, 0.0, 100.0, 0.0
        self.time_remaining, self.tick_limit = self.config.time_max, math.inf  # a batch may shorten a first episode
        self.credits = self.total_spend = self.value_lost = 0.0
        self.util_sum = self.util_count = 0.0
        self.cargo = np.zeros(6, np.float32)
        self.repair_kits, self.stabilizers, self.decoys = 3, 2, 1
        self.node, self.selected = STATION, -1
        self.escape_buff = 0
        self.stabilize_buff = [0] * 16
        self.ticks = self.overheat_ticks = self.pirate_encounters = self.scan_count = self.mining_ticks = 0
        self.action, self.dt, self.invalid = -1, 0, False
        self.terminated = self.truncated = self.lost = False
        self.parts: dict[str, float] = {}  # of the last step
        generate(self, self.rng)

    # ---- one step

    def step(self, action: int) -> float:
        before = (self.credits, self.fuel, self.hull, self.tool, self.value_lost, self.cargo_value())
        self.dt, self.invalid, self.terminated = 1, False, False
        if not 0 <= action <= CASH_OUT:
            action, self.invalid = HOLD, True
        self.action = action
        if not self.apply(action):
            self.invalid = True
        if self.invalid:
            self.dt = 1
            self.hold()
        self.advance()
        self.ticks += self.dt
        destroyed = self.hull <= 0.0
        stranded = self.fuel <= 0.0 and not self.at_station
        self.lost = destroyed or stranded
        self.terminated = self.terminated or self.lost
        is_late = self.time_remaining <= 0.0 or self.ticks >= self.tick_limit
        self.truncated = is_late and not self.terminated
        self.parts = self.step_parts(before, destroyed, stranded)
        return self.reward(before, destroyed, stranded)

    def step_parts(self, before: tuple[float, ...], destroyed: bool, stranded: bool) -> dict[str, float]:
        """What `reward` weighs, without its weights and signs."""
        c, (credits, fuel, hull, tool, lost, value) = self.config, before
        hot = max(0.0, self.heat - c.heat_safe_frac * 100.0) / 100.0
        over = self.terminated or self.truncated
        return {
            "step.credits": (self.credits - credits) / c.credit_scale,
            "step.extracted": max(0.0, self.cargo_value() - value) / c.credit_scale,
            "step.fuel": max(0.0, fuel - self.fuel) / 100.0,
            "step.ticks": float(self.dt),
            "step.wear": max(0.0, tool - self.tool) / 10.0,
            "step.heat": hot * hot,
            "step.damage": max(0.0, hull - self.hull) / 10.0,
            "step.scan": float(self.action in SCANS),
            "step.invalid": float(self.invalid),
            "step.stolen": max(0.0, self.value_lost - lost) / c.credit_scale,
            "step.spent": max(0.0, credits - self.credits) / c.credit_scale,
            "step.stranded": float(stranded),
            "step.destroyed": float(destroyed),
            "step.brought_home": self.credits / c.credit_scale if over and not self.lost else 0.0,
        }

    def reward(self, before: tuple[float, ...], destroyed: bool, stranded: bool) -> float:
        c, (credits, fuel, hull, tool, lost, value) = self.config, before
        hot = max(0.0, self.heat - c.heat_safe_frac * 100.0) / 100.0
        terminal = 0.0
        if stranded:
            terminal = terminal - c.stranded_pen
        if destroyed:
            terminal = terminal - c.destroyed_pen
        if not self.lost and (self.terminated or self.truncated):
            terminal = c.terminal_bonus * (self.credits / c.credit_scale)
        return (
            (self.credits - credits) / c.credit_scale
            + c.alpha_extract * (max(0.0, self.cargo_value() - value) / c.credit_scale)
            + -c.beta_fuel * max(0.0, fuel - self.fuel) / 100.0
            + -c.gamma_time * self.dt
            + -c.delta_wear * max(0.0, tool - self.tool) / 10.0
            + -c.epsilon_heat * (hot * hot)
            + -c.zeta_damage * max(0.0, hull - self.hull) / 10.0
            + (-c.scan_cost if self.action in SCANS else 0.0)
            + (-c.invalid_pen if self.invalid else 0.0)
            + -c.kappa_pirate * (max(0.0, self.value_lost - lost) / c.credit_scale)
            + -c.spend_again * (max(0.0, credits - self.credits) / c.credit_scale)
            + terminal
        )

    # ---- actions: each returns whether it was valid

    def apply(self, action: int) -> bool:
        if action <= 5:
            return self.travel(action)
        if action == HOLD:
            return self.hold()
        if action == 7:
            self.fuel, self.alert = self.fuel - 18.0, self.alert + 10.0
            self.escape_buff = max(self.escape_buff, self.config.escape_buff_ticks)
            return True
        if action == 8:
            return self.wide_scan()
        if action in (9, 10):
            return self.close_scan(action)
        if action == 11:
            return self.listen()
        if action <= 27:
            return self.select(action - 12)
        if action <= 30:
            return self.mine(MINING[action - 28])
        if action == 31:
            return self.stabilize()
        if action == 32:
            return self.refine()
        if action == 33:
            self.dt = 2
            self.fuel, self.heat, self.alert = self.fuel - 2.0, max(0.0, self.heat - 20.0), self.alert + 1.0
            return True
        if action in (34, 35):
            return self.repair(action)
        if action <= 41:
            self.cargo[action - 36] = 0.0
            self.alert = max(0.0, self.alert - 8.0)
            return True
        if action == CASH_OUT:
            self.terminated = True
            return True
        return self.at_station and self.trade(action)

    def trade(self, action: int) -> bool:
        """What only the station offers."""
        if action == 42:
            self.alert = max(0.0, self.alert - 20.0)
            return True
        if action <= 60:
            return self.sell((action - 43) // 3, (0.25, 0.50, 1.00)[(action - 43) % 3])
        if action <= 63:
            cost, fuel = FUEL_OFFERS[action - 61]
            if not self.pay(cost):
                return False
            self.fuel = min(1000.0, self.fuel + fuel)
            return True
        c = self.config
        if action == 64:
            if self.repair_kits >= c.repair_kits_cap or not self.pay(KIT_COST):
                return False
            self.repair_kits += 1
        elif action == 65:
            if self.stabilizers >= c.stabilizers_cap or not self.pay(STABILIZER_COST):
                return False
            self.stabilizers += 1
        elif action == 66:
            if self.decoys >= c.decoys_cap or not self.pay(DECOY_COST):
                return False
            self.decoys += 1
        else:
            if not self.pay(OVERHAUL_COST):
                return False
            self.dt = 3
            self.hull = self.tool = 100.0
        return True

    def pay(self, cost: float) -> bool:
        if self.credits < cost:
            return False
        self.credits = self.credits - cost
        self.total_spend = self.total_spend + cost
        return True

    def hold(self) -> bool:
        self.alert = max(0.0, self.alert - self.config.hold_alert_decay)
        self.heat = max(0.0, self.heat - self.config.heat_dissipation_per_tick * 1.0)
        return True

    def travel(self, slot: int) -> bool:
        there = int(self.neighbors[self.node, slot])
        if there < 0:
            return False
        c = self.config
        self.dt = int(self.travel_time[self.node, slot])
        mass = 1.0 + 0.5 * (cargo_sum(self.cargo) / 200.0)
        threat = float(self.threat_true[self.node, slot])
        self.fuel = self.fuel - float(self.fuel_cost[self.node, slot]) * mass
        self.node, self.selected = there, -1
        damage = self.dt * threat * c.hazard_damage_per_tick
        self.hull = self.hull - damage * self.rng.uniform(0.85, 1.15)
        self.heat = self.heat + self.dt * threat * c.hazard_heat_per_tick
        self.alert = self.alert + self.dt * threat * c.hazard_alert_per_tick
        self.pirate_check(threat)
        return True

    def wide_scan(self) -> bool:
        self.dt = 3
        self.fuel, self.alert = self.fuel - 5.0, self.alert + 4.0
        for slot in range(16):
            if self.ast_valid[self.node, slot]:
                self.update_estimate(slot, WIDE)
        self.scan_count += 1
        return True

    def close_scan(self, action: int) -> bool:
        """Fuel and noise are spent even when there is nothing to scan."""
        self.dt, fuel, alert, mode = (2, 4.0, 3.0, FOCUSED) if action == 9 else (4, 8.0, 6.0, DEEP)
        self.fuel, self.alert = self.fuel - fuel, self.alert + alert
        if not self.selected_valid:
            return False
        self.update_estimate(self.selected, mode)
        self.scan_count += 1
        return True

    def update_estimate(self, slot: int, mode: tuple[float, float, float]) -> None:
        at = (self.node, slot)
        blend, gain, noise = mode
        confidence = float(self.scan_conf[at])
        sigma = float(self.noise_profile[at]) * (1.0 - confidence + 0.1) * noise
        truth = normalise([float(x) + self.rng.normal(0.0, sigma) for x in self.true_comp[at]])
        mixed = [(1.0 - blend) * float(e) + blend * t for e, t in zip(self.comp_est[at], truth, strict=True)]
        self.comp_est[at] = normalise(mixed)
        seen = clamp(float(self.stability_true[at]) + self.rng.normal(0.0, sigma), 0.0, 1.0)
        self.stability_est[at] = clamp((1.0 - blend) * float(self.stability_est[at]) + blend * seen, 0.0, 1.0)
        self.scan_conf[at] = clamp(confidence + gain, 0.0, 1.0)

    def listen(self) -> bool:
        self.dt = 2
        for slot in range(6):
            at = (self.node, slot)
            if self.neighbors[at] >= 0:
                noisy = clamp(float(self.threat_true[at]) + self.rng.normal(0.0, 0.08), 0.0, 1.0)
                self.threat_est[at] = 0.25 * float(self.threat_est[at]) + 0.75 * noisy
        return True

    def select(self, slot: int) -> bool:
        if not self.ast_valid[self.node, slot] or float(self.depletion[self.node, slot]) >= 1.0:
            return False
        self.selected = slot
        return True

    def mine(self, mode: tuple[float, float, float, float, float, float]) -> bool:
        if not self.selected_valid:
            return False
        multiplier, heat_gain, wear, alert_gain, noise_sigma, bias = mode
        at, c = (self.node, self.selected), self.config
        base = float(self.richness[at]) * max(0.0, 1.0 - float(self.depletion[at]))
        tool_frac, heat_frac = clamp(self.tool / 100.0, 0.0, 1.0), clamp(self.heat / 100.0, 0.0, 2.0)
        tool_effect = 0.4 + 0.6 * tool_frac
        heat_effect = 1.0 if heat_frac <= 0.7 else max(0.1, 1.0 - (heat_frac - 0.7) / 0.3)
        noise = math.exp(self.rng.normal(0.0, noise_sigma))
        mined = base * tool_effect * heat_effect * multiplier * noise
        extracted = [mined * float(part) for part in self.true_comp[at]]
        room = max(0.0, 200.0 - cargo_sum(self.cargo))
        total = in_order(extracted)
        if total > room and total > 0.0:
            extracted = [part * (room / total) for part in extracted]
            total = room
        for k in range(6):
            self.cargo[k] = self.cargo[k] + np.float32(extracted[k])
        self.heat, self.tool, self.alert = self.heat + heat_gain, self.tool - wear, self.alert + alert_gain
        self.depletion[at] = clamp(float(self.depletion[at]) + c.depletion_per_unit * total, 0.0, 1.0)
        self.mining_ticks += 1
        calm = 1.1 if self.stabilize_buff[self.selected] > 0 else 0.0
        logit = (
            -3.1
            + bias
            + 2.5 * (1.0 - float(self.stability_true[at]))
            + 2.2 * max(0.0, heat_frac - 0.7)
            + 1.5 * (1.0 - tool_frac)
            - calm
        )
        if self.rng.rand() < sigmoid(logit):
            self.hull = self.hull - 12.0 * self.rng.uniform(0.5, 1.0)
            self.depletion[at] = 1.0
            self.node_hazard[self.node] = clamp(float(self.node_hazard[self.node]) + 0.1, 0.0, 1.0)
        return True

    def stabilize(self) -> bool:
        if not self.selected_valid or self.stabilizers <= 0:
            return False
        self.dt = 2
        self.stabilizers -= 1
        self.stabilize_buff[self.selected] = self.config.stabilize_buff_ticks
        return True

    def refine(self) -> bool:
        self.dt = 2
        self.fuel, self.heat, self.alert = self.fuel - 4.0, self.heat + 6.0, self.alert + 3.0
        low = float(self.cargo[0] + self.cargo[1])
        if low > 0.0:
            used = 0.15 * low
            kept = np.float32(1.0 - min(1.0, used / low))
            self.cargo[0] = self.cargo[0] * kept
            self.cargo[1] = self.cargo[1] * kept
            self.cargo[4] = self.cargo[4] + np.float32(0.65 * used)
        return True

    def repair(self, action: int) -> bool:
        if self.repair_kits <= 0:
            return False
        self.dt = 2
        self.repair_kits -= 1
        if action == 34:
            self.tool = min(100.0, self.tool + 25.0)
        else:
            self.hull = min(100.0, self.hull + 20.0)
        return True

    def sell(self, k: int, share: float) -> bool:
        c = self.config
        quantity = float(self.cargo[k]) * share
        if quantity > 0.0:
            x = quantity / max(1.0, float(self.inventory[k]) + quantity)
            slip = clamp(c.slippage_linear * x + c.slippage_root * math.sqrt(x), 0.0, 0.70)
            self.credits = self.credits + quantity * (float(self.price[k]) * (1.0 - slip))
            self.cargo[k] = max(0.0, float(self.cargo[k]) - quantity)
            self.inventory[k] = self.inventory[k] + np.float32(quantity)
            self.recent_sales[k] = self.recent_sales[k] + np.float32(quantity)
        return True

    # ---- what happens to everybody

    def advance(self) -> None:
        c, dt = self.config, self.dt
        self.time_remaining = self.time_remaining - dt
        self.heat = max(0.0, self.heat - c.heat_dissipation_per_tick * dt)
        self.escape_buff = max(0, self.escape_buff - dt)
        self.stabilize_buff = [max(0, ticks - dt) for ticks in self.stabilize_buff]
        if self.heat > 100.0:
            self.hull = self.hull - c.overheat_damage * (self.heat - 100.0)
            self.heat = 100.0
            self.overheat_ticks += dt
        if not self.at_station:
            self.node_hazards()
            self.pirate_check(float(self.node_pirate[self.node]))
        self.market_update()
        self.clamp_state()
        self.util_sum = self.util_sum + clamp(cargo_sum(self.cargo) / 200.0, 0.0, 1.0) * dt
        self.util_count = self.util_count + dt

    def node_hazards(self) -> None:
        c, dt, hazard = self.config, self.dt, float(self.node_hazard[self.node])
        if hazard <= 0.0:
            return
        self.hull = self.hull - dt * hazard * c.hazard_damage_per_tick * self.rng.uniform(0.8, 1.2)
        self.heat = self.heat + dt * hazard * c.hazard_heat_per_tick
        self.alert = self.alert + dt * hazard * c.hazard_alert_per_tick

    def pirate_check(self, intensity: float) -> None:
        if self.at_station:
            return
        c, value = self.config, self.cargo_value()
        logit = (
            c.pirate_bias
            + c.pirate_intensity_weight * intensity
            + c.pirate_alert_weight * clamp(self.alert / 100.0, 0.0, 1.0)
            + c.pirate_cargo_weight * math.log1p(value / c.credit_scale)
            - c.pirate_escape_weight * (1.0 if self.escape_buff > 0 else 0.0)
        )
        chance = 1.0 - (1.0 - sigmoid(logit)) ** float(max(1, self.dt))
        if self.rng.rand() >= chance:
            return
        self.pirate_encounters += 1
        loss = self.rng.uniform(0.08, 0.20)
        if self.decoys > 0 and self.rng.rand() < 0.6:
            self.decoys -= 1
            loss = loss * 0.3
        self.cargo = self.cargo * np.float32(1.0 - loss)
        self.value_lost = self.value_lost + max(0.0, value - self.cargo_value())
        self.hull = self.hull - self.rng.uniform(1.0, 4.0)
        self.alert = self.alert + 8.0

    def market_update(self) -> None:
        c, dt, t = self.config, self.dt, self.ticks + self.dt
        self.prev_price = self.price.copy()
        for k, goods in enumerate(c.commodities.each()):
            turn = 2.0 * math.pi * (t / float(self.price_period[k])) + float(self.price_phase[k])
            cycle = float(self.price_amp[k]) * math.sin(turn)
            noise = self.rng.normal(0.0, c.market_noise * goods.base * math.sqrt(max(dt, 1)))
            stock = c.inventory_pressure * float(self.inventory[k])
            sales = c.sales_pressure * float(self.recent_sales[k])
            self.price[k] = clamp(goods.base + cycle - stock - sales + noise, goods.low, goods.high)
        self.recent_sales = self.recent_sales * np.float32(math.exp(-dt / c.sales_decay_ticks))
        self.inventory = np.maximum(self.inventory * np.float32(c.inventory_decay), np.float32(0.0))

    def clamp_state(self) -> None:
        self.fuel, self.hull = clamp(self.fuel, 0.0, 1000.0), clamp(self.hull, 0.0, 100.0)
        self.heat, self.tool = clamp(self.heat, 0.0, 100.0), clamp(self.tool, 0.0, 100.0)
        self.alert = clamp(self.alert, 0.0, 100.0)
        self.time_remaining = clamp(self.time_remaining, 0.0, self.config.time_max)
        self.cargo = np.clip(self.cargo, np.float32(0.0), np.float32(200.0))
        total = cargo_sum(self.cargo)
        if total > 200.0:
            self.cargo = self.cargo * np.float32(200.0 / total)


def normalise(values: list[float]) -> list[float]:
    floored = [max(value, 1e-8) for value in values]
    total = in_order(floored)
    return [value / total for value in floored]


def sigmoid(x: float) -> float:
    try:
        return 1.0 / (1.0 + math.exp(-x))
    except OverflowError:  # C's exp answers infinity
        return 0.0
