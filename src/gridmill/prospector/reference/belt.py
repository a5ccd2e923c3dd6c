"""A belt of asteroids: the arrays of a world and how they are drawn, in exactly this order. See world.py."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from gridmill.prospector.config import ProspectorConfig
from gridmill.prospector.reference.draws import Pcg32

NODES, SLOTS, ASTEROIDS = 32, 6, 16
Array = NDArray[np.float32]


class Belt:
    """What generation fills in and the rules read: nodes, edges, asteroids, the market, and where the ship is."""

    node: int
    selected: int
    cargo: Array
    price: Array
    prev_price: Array
    recent_sales: Array
    inventory: Array
    node_count: int

    def __init__(self, config: ProspectorConfig) -> None:
        self.config = config
        self.neighbors = np.full((NODES, SLOTS), -1, np.int64)
        self.travel_time = np.ones((NODES, SLOTS), np.int64)
        self.fuel_cost = np.zeros((NODES, SLOTS), np.float32)
        self.threat_true = np.zeros((NODES, SLOTS), np.float32)
        self.threat_est = np.full((NODES, SLOTS), 0.5, np.float32)
        self.clear()

    def clear(self) -> None:
        self.node_type = np.ones(NODES, np.int64)
        self.node_hazard = np.zeros(NODES, np.float32)
        self.node_pirate = np.zeros(NODES, np.float32)
        self.neighbors[:], self.travel_time[:], self.fuel_cost[:] = -1, 1, 0.0
        self.threat_true[:], self.threat_est[:] = 0.0, 0.5
        per_asteroid = (NODES, ASTEROIDS)
        self.ast_valid = np.zeros(per_asteroid, bool)
        self.true_comp, self.comp_est = (np.zeros((*per_asteroid, 6), np.float32) for _ in range(2))
        self.richness, self.stability_true, self.noise_profile = (np.zeros(per_asteroid, np.float32) for _ in range(3))
        self.stability_est, self.scan_conf, self.depletion = (np.zeros(per_asteroid, np.float32) for _ in range(3))
        self.inventory, self.recent_sales, self.price, self.prev_price = (np.zeros(6, np.float32) for _ in range(4))
        self.price_phase, self.price_period, self.price_amp = (np.zeros(6, np.float32) for _ in range(3))

    @property
    def at_station(self) -> bool:
        return bool(self.node_type[self.node] == 0)

    @property
    def selected_valid(self) -> bool:
        at = (self.node, self.selected)
        return self.selected >= 0 and bool(self.ast_valid[at]) and float(self.depletion[at]) < 1.0

    def cargo_value(self) -> float:
        total = 0.0
        for amount, price in zip(self.cargo, self.price, strict=True):
            total = total + float(amount) * float(price)
        return total


def generate(belt: Belt, rng: Pcg32) -> None:
    belt.clear()
    belt.node_count = rng.below(8, 33)
    belt.node_type[0] = 0
    for n in range(1, belt.node_count):
        is_hazard = rng.rand() < 0.25
        belt.node_hazard[n] = rng.uniform(0.05, 0.35)
        belt.node_pirate[n] = rng.uniform(0.05, 0.30)
        if is_hazard:
            belt.node_type[n] = 2
            belt.node_hazard[n] = clamp(float(belt.node_hazard[n]) + 0.25, 0.0, 1.0)
            belt.node_pirate[n] = clamp(float(belt.node_pirate[n]) + 0.12, 0.0, 1.0)
    for n in range(1, belt.node_count):
        add_edge(belt, rng, n, rng.below(0, n))
    for _ in range(belt.node_count):
        u, v = rng.below(0, belt.node_count), rng.below(0, belt.node_count)
        if u != v:
            add_edge(belt, rng, u, v)
    for n in range(1, belt.node_count):
        for slot in range(rng.below(5, 17)):
            add_asteroid(belt, rng, n, slot)
    open_market(belt, rng)


def add_edge(belt: Belt, rng: Pcg32, u: int, v: int) -> None:
    """Draws nothing when the two are neighbours already or one of them has no free slot."""
    if v in belt.neighbors[u] or -1 not in belt.neighbors[u] or -1 not in belt.neighbors[v]:
        return
    time = rng.below(1, belt.config.travel_time_max + 1)
    fuel = rng.uniform(20.0, belt.config.travel_fuel_cost_max * 0.7)
    half = np.float32(0.5)
    hazard = half * (belt.node_hazard[u] + belt.node_hazard[v])
    pirate = half * (belt.node_pirate[u] + belt.node_pirate[v])
    threat = (hazard + pirate) + np.float32(rng.normal(0.0, 0.05))
    for here, there in ((u, v), (v, u)):
        slot = int(np.argmax(belt.neighbors[here] == -1))
        belt.neighbors[here, slot] = there
        belt.travel_time[here, slot] = time
        belt.fuel_cost[here, slot] = fuel
        belt.threat_true[here, slot] = clamp(float(threat), 0.0, 1.0)


def add_asteroid(belt: Belt, rng: Pcg32, n: int, slot: int) -> None:
    at = (n, slot)
    belt.ast_valid[at] = True
    belt.true_comp[at] = rng.dirichlet6()
    belt.richness[at] = clamp(rng.lognormal(-0.2, 0.65), 0.2, 4.0)
    belt.stability_true[at] = rng.beta32()
    belt.noise_profile[at] = rng.uniform(0.04, 0.22)
    belt.comp_est[at] = rng.dirichlet6()
    belt.stability_est[at], belt.scan_conf[at], belt.depletion[at] = 0.5, 0.10, 0.0


def open_market(belt: Belt, rng: Pcg32) -> None:
    for k, goods in enumerate(belt.config.commodities.each()):
        belt.inventory[k] = rng.uniform(20.0, 120.0)
        belt.price_phase[k] = rng.uniform(0.0, 2.0 * math.pi)
        belt.price_period[k] = rng.uniform(180.0, 380.0)
        belt.price_amp[k] = goods.base * rng.uniform(0.10, 0.30)
        cycle = float(belt.price_amp[k]) * math.sin(float(belt.price_phase[k]))
        belt.price[k] = clamp(goods.base + cycle, goods.low, goods.high)
    belt.prev_price = belt.price.copy()


def cargo_sum(cargo: Array) -> float:
    """Left to right in float32, widened afterwards."""
    total = cargo[0]
    for amount in cargo[1:]:
        total = total + amount
    return float(total)


def clamp(x: float, low: float, high: float) -> float:
    return min(high, max(low, x))
