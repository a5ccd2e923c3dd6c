"""Converters: the machines of a game as one works, how many stand on the map, and the plan that makes a product.

It reads a Game and knows nothing of time beyond cooldowns, of places, or of who walks between the machines.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from gridmill.grid.facts import MOST
from gridmill.grid.layers import most_of
from gridmill.grid.maps import Ascii, Canvas, Instances, Map, Scatter
from gridmill.grid.parts import Converter, Limit, ObjectType

if TYPE_CHECKING:
    from gridmill.grid.game import Game


@dataclass(frozen=True)
class Plan:
    """How `amount` of a product comes about: conversions per machine (the last stage first) and units per resource."""

    product: str
    amount: int
    runs: Mapping[str, int]
    uses: Mapping[str, int]
    sequence: int  # ticks when every conversion waits for the one before and nobody needs time to hand over


@dataclass(frozen=True)
class Converters:
    """What can make something: machines that stand on the map, and what agents hold and may hold at the start."""

    machines: Mapping[str, ObjectType]
    counts: Mapping[str, int]
    start: Mapping[str, int]
    limits: tuple[Limit, ...]
    move_cost: Mapping[str, int]
    num_agents: int
    costs: Mapping[str, int]  # ticks to make one unit in sequence; only what can be made or is there from the start
    schedules: dict[tuple[str, str, int, int], Any] = field(
        default_factory=dict, compare=False, repr=False
    )  # known ones
    plans: dict[tuple[str, int, bool], Plan | None] = field(default_factory=dict, compare=False, repr=False)

    @classmethod
    def of(cls, game: Game) -> Converters:
        counts = counts_on(game.map)
        machines = {n: k for n, k in game.objects.items() if k.converter is not None and counts[n] > 0}
        start = {r: n for r, n in game.agent.inventory.items() if n > 0}
        move_cost = {r: n for r, n in game.move_cost.items() if n > 0}
        costs = _costs(machines, start)
        return cls(machines, counts, start, game.agent.limits, move_cost, game.num_agents, costs)

    def converter(self, name: str) -> Converter:
        converter = self.machines[name].converter
        assert converter is not None
        return converter

    def makers(self, resource: str) -> list[str]:
        """Machines on the map that make a resource, or did before the start."""
        return self._makers.get(resource, [])

    @cached_property
    def _makers(self) -> dict[str, list[str]]:
        found: dict[str, list[str]] = {}
        for name in self.machines:
            for resource in self.converter(name).outputs:
                found.setdefault(resource, []).append(name)
        return found

    @cached_property
    def _dearest_first(self) -> tuple[str, ...]:
        """A resource costs more than what it is made of."""
        return tuple(sorted(self.costs, key=lambda r: (-self.costs[r], r)))

    @cached_property
    def _waiting_in_one(self) -> dict[str, int]:
        """Units of each resource that lie in one machine of each kind at the start."""
        return {r: sum(self.waiting(name, r) for name in makers) for r, makers in self._makers.items()}

    @cached_property
    def _waiting_in_all(self) -> dict[str, int]:
        return {r: self.supply(r) for r in self._makers}

    def consumers(self, resource: str) -> list[str]:
        return [name for name in self.machines if resource in self.converter(name).inputs]

    def waiting(self, name: str, resource: str) -> int:
        """Units of an output that lie in one such machine at the start."""
        kind, converter = self.machines[name], self.converter(name)
        made = converter.outputs.get(resource, 0)
        return min(MOST, kind.inventory.get(resource, 0) + converter.initial_resource_count * made) if made else 0

    def supply(self, resource: str) -> int:
        """Units of a resource that lie in machines all over the map at the start."""
        return sum(self.counts[name] * self.waiting(name, resource) for name in self.makers(resource))

    def stored(self, name: str, resource: str) -> int:
        """Units of an input that lie in one such machine at the start."""
        if resource in self.converter(name).outputs:
            return 0
        return self.machines[name].inventory.get(resource, 0)

    def room(self, held: Mapping[str, int], resource: str) -> int:
        """How many more units of a resource an agent that holds this can take."""
        for limit in self.limits:
            if resource in limit.resources:
                bonus = sum(each * held.get(r, 0) for r, each in limit.bonus.items())
                together = sum(held.get(r, 0) for r in limit.resources)
                return max(0, min(limit.max, max(limit.base, bonus)) - together)
        return max(0, MOST - held.get(resource, 0))

    def most(self, resource: str) -> int:
        """The most of a resource an agent could ever hold."""
        for limit in self.limits:
            if resource in limit.resources:
                return limit.max if limit.bonus else min(limit.max, limit.base)
        return MOST

    def plan(self, product: str, amount: int = 1, *, all_buildings: bool = False) -> Plan | None:
        """The conversions that let an agent gain `amount` of a product; None if that cannot be.

        One machine of each kind, or all of the map. Where several kinds make a resource, the one that is quickest in
        sequence does. What lies in machines, and what agents hold, is used first.
        """
        key = (product, amount, all_buildings)
        if key not in self.plans:
            self.plans[key] = self._plan(product, amount, all_buildings)
        return self.plans[key]

    def _plan(self, product: str, amount: int, all_buildings: bool) -> Plan | None:
        copies = {name: self.counts[name] if all_buildings else 1 for name in self.machines}
        agents = self.num_agents if all_buildings else 1
        waiting = self._waiting_in_all if all_buildings else self._waiting_in_one
        uses, runs = Counter({product: amount}), Counter[str]()
        for resource in self._dearest_first:  # so each is met when all that need it have been
            need = uses[resource] - waiting.get(resource, 0)
            if resource != product:
                need -= agents * self.start.get(resource, 0)
            if need <= 0:
                continue
            maker = self.best_maker(resource)
            if maker is None:
                return None
            converter = self.converter(maker)
            before, now = runs[maker], max(runs[maker], -(-need // converter.outputs[resource]))
            if 0 <= converter.max_conversions * copies[maker] < now:
                return None
            runs[maker] = now
            for r, n in converter.inputs.items():
                stored = copies[maker] * self.stored(maker, r)
                uses[r] += max(0, now * n - stored) - max(0, before * n - stored)
        if any(n > 0 and r not in self.costs for r, n in uses.items()):
            return None
        sequence = sum(n * self.converter(name).cooldown for name, n in runs.items())
        return Plan(product, amount, dict(runs), {r: n for r, n in uses.items() if n > 0}, sequence)

    def best_maker(self, resource: str) -> str | None:
        """The machine that makes a resource soonest, everything in sequence; None if it is only there at the start."""
        return self._best_makers.get(resource)

    @cached_property
    def _best_makers(self) -> dict[str, str]:
        costs = {name: _run_cost(kind, self.costs) for name, kind in self.machines.items()}
        found: dict[str, str] = {}
        for resource, names in self._makers.items():
            for name in names:
                cost = costs[name]
                if cost is not None and cost <= self.costs[resource]:
                    found.setdefault(resource, name)
        return found


def counts_on(map: Map) -> Counter[str]:
    """How many objects of each type a map places, at most; walls of borders and layers are not counted."""
    if isinstance(map, Ascii):
        names = {"#": "wall", **map.legend}
        return Counter(names[c] for c in map.text if c in names)
    if isinstance(map, Scatter):
        return Counter(dict(map.objects))
    if isinstance(map, Canvas):
        return most_of(map.layers)
    assert isinstance(map, Instances)
    places, found = map.rows * map.columns, Counter[str]()
    for index, part in enumerate(map.maps[:places]):
        times = len(range(index, places, len(map.maps)))  # the maps are taken in turn
        found.update({name: times * n for name, n in counts_on(part).items()})
    return found


def _run_cost(kind: ObjectType, costs: Mapping[str, int]) -> int | None:
    """Ticks of one conversion with everything before it; None where an input cannot be had."""
    converter = kind.converter
    assert converter is not None
    if converter.max_conversions == 0:
        return None
    lacking = {r: n - kind.inventory.get(r, 0) for r, n in converter.inputs.items()}
    lacking = {r: n for r, n in lacking.items() if n > 0}
    if not lacking.keys() <= costs.keys():
        return None
    return converter.cooldown + sum(n * costs[r] for r, n in lacking.items())


def _costs(machines: Mapping[str, ObjectType], start: Mapping[str, int]) -> dict[str, int]:
    """The cheapest way to each resource, by relaxation until nothing changes.

    What machines cannot make from nothing but is there at the start costs 0, and with it what it is needed for. So
    every made resource costs more than its inputs, also where machines feed each other in a circle.
    """
    given = set(start)
    for kind in machines.values():
        assert kind.converter is not None
        for resource in kind.converter.outputs:
            if kind.converter.initial_resource_count > 0 or kind.inventory.get(resource, 0) > 0:
                given.add(resource)
    costs: dict[str, int] = {}
    _relax(costs, machines)
    costs |= {resource: 0 for resource in sorted(given) if resource not in costs}
    _relax(costs, machines)
    return costs


def _relax(costs: dict[str, int], machines: Mapping[str, ObjectType]) -> None:
    changed = True
    while changed:
        changed = False
        for kind in machines.values():
            cost = _run_cost(kind, costs)
            if cost is None or kind.converter is None:
                continue
            for resource in kind.converter.outputs:
                if resource not in costs or cost < costs[resource]:
                    costs[resource], changed = cost, True
