"""What is seen of a reference world: the 260 numbers of an observation, the 20 values of info, the action mask."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gridmill.prospector.actions import NUM_ACTIONS, OBS_SIZE
from gridmill.prospector.reference.belt import ASTEROIDS, SLOTS, Array, cargo_sum, clamp
from gridmill.prospector.reference.world import (
    DECOY_COST,
    FUEL_OFFERS,
    KIT_COST,
    OVERHAUL_COST,
    STABILIZER_COST,
    ReferenceWorld,
    normalise,
)

SHOWN_STOCK = (0, 2, 3, 4)  # nickel and volatiles stay hidden


def observe(w: ReferenceWorld) -> Array:
    c, obs = w.config, np.zeros(OBS_SIZE, np.float32)
    ship = (
        w.fuel / 1000.0,
        w.hull / 100.0,
        w.heat / 100.0,
        w.tool / 100.0,
        cargo_sum(w.cargo) / 200.0,
        w.alert / 100.0,
        w.time_remaining / c.time_max,
        math.log1p(max(0.0, w.credits)) / math.log1p(c.credits_cap),
    )
    obs[0:8] = [clamp(x, 0.0, 1.0) for x in ship]
    obs[8:14] = np.clip(w.cargo / np.float32(200.0), np.float32(0.0), np.float32(1.0))
    stores = (
        w.repair_kits / c.repair_kits_cap,
        w.stabilizers / c.stabilizers_cap,
        w.decoys / c.decoys_cap,
    )
    obs[14:17] = [clamp(x, 0.0, 1.0) for x in stores]
    obs[17], obs[18] = w.at_station, w.selected_valid
    obs[19 + w.node_type[w.node]] = 1.0
    obs[22] = clamp(w.node / 31.0, 0.0, 1.0)
    obs[23] = clamp(hops_to_station(w) / 31.0, 0.0, 1.0)
    for slot in range(SLOTS):
        there, at = int(w.neighbors[w.node, slot]), 24 + 7 * slot
        if there >= 0:
            obs[at] = 1.0
            obs[at + 1 + w.node_type[there]] = 1.0
            obs[at + 4] = clamp(int(w.travel_time[w.node, slot]) / c.travel_time_max, 0.0, 1.0)
            obs[at + 5] = clamp(float(w.fuel_cost[w.node, slot]) / c.travel_fuel_cost_max, 0.0, 1.0)
            obs[at + 6] = clamp(float(w.threat_est[w.node, slot]), 0.0, 1.0)
    for slot in range(ASTEROIDS):
        here, at = (w.node, slot), 68 + 11 * slot
        if w.ast_valid[here]:
            obs[at] = 1.0
            obs[at + 1 : at + 7] = normalise([float(x) for x in w.comp_est[here]])
            for offset, array in ((7, w.stability_est), (8, w.depletion), (9, w.scan_conf)):
                obs[at + offset] = clamp(float(array[here]), 0.0, 1.0)
            obs[at + 10] = slot == w.selected
    for k, goods in enumerate(c.commodities.each()):
        obs[244 + k] = clamp(float(w.price[k]) / goods.base, 0.0, 1.0)
        obs[250 + k] = clamp((float(w.price[k]) - float(w.prev_price[k])) / c.price_scale, -1.0, 1.0)
    obs[256:260] = [clamp(float(w.inventory[k]) / c.inventory_scale, 0.0, 1.0) for k in SHOWN_STOCK]
    return obs


def hops_to_station(w: ReferenceWorld) -> int:
    """By breadth-first search; 31 if there is no way."""
    frontier, seen, hops = {w.node}, {w.node}, 0
    while frontier:
        if 0 in frontier:
            return hops
        frontier = {int(n) for here in frontier for n in w.neighbors[here] if n >= 0} - seen
        seen |= frontier
        hops += 1
    return 31


def info(w: ReferenceWorld) -> dict[str, Any]:
    net_profit = w.credits - w.total_spend
    return {
        "action": w.action,
        "dt": w.dt,
        "invalid_action": w.invalid,
        "credits": w.credits,
        "net_profit": net_profit,
        "profit_per_tick": net_profit / max(1, w.ticks),
        "survival": 0.0 if w.lost else 1.0,
        "overheat_ticks": float(w.overheat_ticks),
        "pirate_encounters": float(w.pirate_encounters),
        "value_lost_to_pirates": w.value_lost,
        "fuel_used": max(0.0, 1000.0 - w.fuel),
        "hull_damage": max(0.0, 100.0 - w.hull),
        "tool_wear": max(0.0, 100.0 - w.tool),
        "scan_count": float(w.scan_count),
        "mining_ticks": float(w.mining_ticks),
        "cargo_utilization_avg": clamp(w.util_sum / w.util_count, 0.0, 1.0) if w.util_count > 0.0 else 0.0,
        "terminated": w.terminated,
        "truncated": w.truncated,
        "node_context": "station" if w.at_station else "field",
        "time_remaining": w.time_remaining,
    }


def mask(w: ReferenceWorld) -> NDArray[np.int8]:
    """1 where an action would be valid now."""
    allowed = np.zeros(NUM_ACTIONS, np.int8)
    allowed[0:6] = w.neighbors[w.node] >= 0
    allowed[[6, 7, 8, 11, 32, 33, 36, 37, 38, 39, 40, 41, 68]] = 1
    allowed[12:28] = w.ast_valid[w.node] & (w.depletion[w.node] < 1.0)
    allowed[[9, 10, 28, 29, 30]] = w.selected_valid
    allowed[31] = w.selected_valid and w.stabilizers > 0
    allowed[34:36] = w.repair_kits > 0
    if w.at_station:
        c = w.config
        allowed[42:61] = 1
        allowed[61:64] = [w.credits >= cost for cost, _ in FUEL_OFFERS]
        allowed[64] = w.credits >= KIT_COST and w.repair_kits < c.repair_kits_cap
        allowed[65] = w.credits >= STABILIZER_COST and w.stabilizers < c.stabilizers_cap
        allowed[66] = w.credits >= DECOY_COST and w.decoys < c.decoys_cap
        allowed[67] = w.credits >= OVERHAUL_COST
    return allowed
