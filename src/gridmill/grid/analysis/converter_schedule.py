"""Converter schedule: when a product can first be ready, and first be in an agent's hands, by running the machines'
clocks.

`Clock` is one machine, tick for tick as the core runs it (phase 3 hand-overs, phase 4 outputs and restarts). Two
workforces stand before the clocks: one scripted agent with one machine of each kind, and as many agents as it takes
with all machines. Both stand where they need to be: walking is not counted.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from gridmill.grid.analysis.converters import Converters, Plan
from gridmill.grid.facts import MOST
from gridmill.grid.parts import ObjectType

HAND_OVER = 2  # ticks from an output lying ready to the next machine having it: take in one, put in the next
# A plan of more conversions, or more looks at pairs of its machines, is not played through: far beyond any game to
# learn.
MOST_RUNS, MOST_LOOKS = 5_000, 250_000


@dataclass(frozen=True)
class ConverterSchedule:
    """The tick the product lies in a machine, the tick an agent takes it, and the bumps (tick, machine) on the way."""

    ready: int
    paid: int
    bumps: tuple[tuple[int, str], ...] = ()


class Clock:
    """One machine: what it holds, whether it runs, when it is done."""

    def __init__(self, kind: ObjectType) -> None:
        assert kind.converter is not None
        self.converter = c = kind.converter
        self.held = Counter({r: n for r, n in kind.inventory.items() if n > 0})
        for r, n in c.outputs.items():
            self.held[r] = min(MOST, self.held[r] + c.initial_resource_count * n)
        self.done_at: int | None = None
        self.conversions = 0

    def waiting(self, resource: str) -> int:
        return self.held[resource] if resource in self.converter.outputs else 0

    def start(self, tick: int) -> None:
        """Start a conversion if it can."""
        c = self.converter
        if self.done_at is not None or 0 <= c.max_conversions <= self.conversions:
            return
        if any(self.held[r] < n for r, n in c.inputs.items()) or sum(map(self.waiting, c.outputs)) >= c.max_output:
            return
        for r, n in c.inputs.items():
            self.held[r] -= n
        self.conversions += 1
        self.done_at = tick + c.cooldown

    def advance(self, tick: int) -> None:
        """Leave the outputs if this is their tick, and start again."""
        if self.done_at == tick:
            for r, n in self.converter.outputs.items():
                self.held[r] = min(MOST, self.held[r] + n)
            self.done_at = None
            self.start(tick)

    def accepts(self, resource: str) -> int:
        """How many more units of an input it stores."""
        store = min(MOST, self.converter.inputs.get(resource, 0) * self.converter.max_input)
        return max(0, store - self.held[resource])


def one_of_each(
    converters: Converters, product: str, amount: int = 1, horizon: int = 10_000
) -> ConverterSchedule | None:
    """A scripted agent among one machine of each kind, one bump a tick, that hands over at once.

    It knows the plan: it fetches what is still wanted and brings each machine what its conversions still lack, the
    machine with the longest way to the product first; where that runs dry or the reverse order is quicker, the reverse.
    None: not possible, or not by `horizon`.
    """
    key = ("one", product, amount, horizon)
    if key not in converters.schedules:
        converters.schedules[key] = _one_of_each(converters, product, amount, horizon)
    found: ConverterSchedule | None = converters.schedules[key]
    return found


def _one_of_each(converters: Converters, product: str, amount: int, horizon: int) -> ConverterSchedule | None:
    plan = converters.plan(product, amount)
    if plan is None or _is_long(plan):
        return None
    order = _by_tail(converters, plan)
    tries = [_Script(converters, plan, names).play(horizon) for names in (order, order[::-1])]
    return min((found for found in tries if found), key=lambda found: found.paid, default=None)


def _is_long(plan: Plan) -> bool:
    runs = sum(plan.runs.values())
    return runs > MOST_RUNS or runs * len(plan.runs) ** 2 > MOST_LOOKS


class _Script:
    """The scripted agent at work on a plan."""

    def __init__(self, converters: Converters, plan: Plan, order: list[str]) -> None:
        self.converters, self.plan, self.order = converters, plan, order
        self.clocks = {name: Clock(converters.machines[name]) for name in order}
        self.held = Counter(dict(converters.start))
        self.taken = 0
        self.lacks = {name: _lacks(converters, plan, name, copies=1) for name in plan.runs}
        self.wanted = Counter[str]()  # what all machines lack together
        for lacks in self.lacks.values():
            self.wanted.update({r: n for r, n in lacks.items() if n > 0})

    def play(self, horizon: int) -> ConverterSchedule | None:
        bumps: list[tuple[int, str]] = []
        ready = None
        for clock in self.clocks.values():
            clock.start(0)
        tick = 0
        while tick <= horizon:
            if ready is None and self.taken + self._waiting(self.plan.product) >= self.plan.amount:
                ready = tick
            tick += 1
            name = self._choose()
            if name is not None:
                bumps.append((tick, name))
                self._bump(name, tick)
                if self.taken >= self.plan.amount:
                    return ConverterSchedule(tick - 1 if ready is None else ready, tick, tuple(bumps))
            else:
                ends = [clock.done_at for clock in self.clocks.values() if clock.done_at is not None]
                if not ends:
                    return None
                tick = max(tick, min(ends))
            for clock in self.clocks.values():
                clock.advance(tick)
        return None

    def _waiting(self, resource: str) -> int:
        return sum(clock.waiting(resource) for clock in self.clocks.values())

    def _choose(self) -> str | None:
        """The machine to bump now: the product, else something to bring, else something to fetch."""
        if any(self.held[r] < n for r, n in self.converters.move_cost.items()):
            return None
        for name, clock in self.clocks.items():
            if clock.waiting(self.plan.product) and self.converters.room(self.held, self.plan.product):
                return name
        for name in self.order:
            clock, lacks = self.clocks[name], self.lacks.get(name, {})
            if any(n > 0 and self.held[r] > 0 and clock.accepts(r) > 0 for r, n in lacks.items()):
                return name
        for name in self.order:
            clock = self.clocks[name]
            for resource in clock.converter.outputs:
                wanted = self.wanted[resource] > self.held[resource]
                if wanted and clock.waiting(resource) and self.converters.room(self.held, resource):
                    return name
        return None

    def _bump(self, name: str, tick: int) -> None:
        """First take all outputs that fit, then give of each input all that is held and fits; then pay for the move."""
        clock = self.clocks[name]
        for r in clock.converter.outputs:
            taken = min(clock.held[r], self.converters.room(self.held, r))
            clock.held[r] -= taken
            self.held[r] += taken
            self.taken += taken if r == self.plan.product else 0
        for r in clock.converter.inputs:
            given = min(self.held[r], clock.accepts(r))
            clock.held[r] += given
            self.held[r] -= given
            if name in self.lacks:
                self.wanted[r] -= min(given, max(0, self.lacks[name][r]))
                self.lacks[name][r] -= given
        clock.start(tick)
        for r, n in self.converters.move_cost.items():
            self.held[r] -= min(n, self.held[r])


def all_buildings(
    converters: Converters, product: str, amount: int = 1, horizon: int = 10_000
) -> ConverterSchedule | None:
    """All machines of the map and an agent for every hand-over, each bringing exactly what is wanted.

    No more machines of a kind are looked at than the plan has conversions and units to fetch.
    """
    longest = max(horizon, 10_000)
    key = ("all", product, amount, longest)
    if key not in converters.schedules:
        converters.schedules[key] = _all_buildings(converters, product, amount, longest)
    found: ConverterSchedule | None = converters.schedules[key]
    return found if found is not None and found.ready <= horizon else None


def _all_buildings(converters: Converters, product: str, amount: int, horizon: int) -> ConverterSchedule | None:
    plan = converters.plan(product, amount, all_buildings=True)
    if plan is None or _is_long(plan) or sum(plan.uses.values()) > MOST_RUNS:
        return None
    order = _by_tail(converters, plan)
    clocks: dict[str, list[Clock]] = {}
    for name in order:
        useful = plan.runs.get(name, 0) + sum(plan.uses.get(r, 0) for r in converters.converter(name).outputs)
        clocks[name] = [Clock(converters.machines[name]) for _ in range(min(converters.counts[name], useful))]
    lacks = {name: _lacks(converters, plan, name, converters.counts[name]) for name in order}
    everyone = [clock for group in clocks.values() for clock in group]
    pool = Counter({r: n * converters.num_agents for r, n in converters.start.items()})
    for clock in everyone:
        clock.start(0)
    tick = taken = 0
    while tick <= horizon:
        if taken + sum(clock.waiting(product) for clock in everyone) >= amount:
            return ConverterSchedule(tick, tick + 1)
        tick += 1
        fetched = _fetch(everyone, pool, lacks, product, tick)
        given = sum(_bring(clocks[name], pool, lacks[name], tick) for name in order)
        taken += fetched[product]
        pool.update(fetched)
        if not fetched and not given:
            ends = [clock.done_at for clock in everyone if clock.done_at is not None]
            if not ends:
                return None
            tick = max(tick, min(ends))
        for clock in everyone:
            clock.advance(tick)
    return None


def _fetch(
    everyone: list[Clock], pool: Counter[str], lacks: dict[str, dict[str, int]], product: str, tick: int
) -> Counter[str]:
    """Take everything out of machines that is the product or that some machine still lacks."""
    fetched = Counter[str]()
    wanted = Counter[str]()
    for inputs in lacks.values():
        wanted.update({r: n for r, n in inputs.items() if n > 0})
    for clock in everyone:
        for r in clock.converter.outputs:
            if clock.held[r] > 0 and (r == product or wanted[r] > pool[r] + fetched[r]):
                fetched[r] += clock.held[r]
                clock.held[r] = 0
                clock.start(tick)
    return fetched


def _bring(group: list[Clock], pool: Counter[str], lacks: dict[str, int], tick: int) -> int:
    """Give machines of one kind what their next conversion lacks, those that are free first; returns the units."""
    moved = 0
    for clock in sorted(group, key=lambda c: c.done_at or 0):
        for r, n in clock.converter.inputs.items():
            given = max(0, min(pool[r], n - clock.held[r], lacks[r]))
            pool[r] -= given
            lacks[r] -= given
            clock.held[r] += given
            moved += given
        clock.start(tick)
    return moved


def _lacks(converters: Converters, plan: Plan, name: str, copies: int) -> dict[str, int]:
    """Units of each input that machines of one kind must still be brought for a plan."""
    runs = plan.runs.get(name, 0)
    return {r: runs * n - copies * converters.stored(name, r) for r, n in converters.converter(name).inputs.items()}


def _by_tail(converters: Converters, plan: Plan) -> list[str]:
    """The machines a plan touches, the longest way from their start to the product first."""
    tails: dict[str, int] = {}
    for name in plan.runs:  # the last stage comes first, so a machine's consumers are there before it
        converter = converters.converter(name)
        after = [tails[m] for m in tails if converter.outputs.keys() & converters.converter(m).inputs.keys()]
        tails[name] = converter.cooldown + (HAND_OVER + max(after) if after else 0)
    for name in converters.machines:  # machines that only hold something from the start
        if name not in tails and any(converters.waiting(name, r) for r in plan.uses):
            tails[name] = 0
    return sorted(tails, key=lambda name: -tails[name])
