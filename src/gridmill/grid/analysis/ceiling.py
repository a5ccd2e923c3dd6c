"""Ceiling: the most of a product that all machines of a map can make in an episode, and what holds it back.

An upper bound by stages, walking and hands not counted. It plays nothing through: a stage is a window of ticks divided
by a cooldown.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from gridmill.grid.analysis.converter_schedule import HAND_OVER, all_buildings
from gridmill.grid.analysis.converters import Converters


@dataclass(frozen=True)
class Stage:
    """One resource on the way to a product: who makes how much of it while it is of use, and what that allows."""

    resource: str
    machine: str
    machines: int
    runs: int  # conversions each machine can end inside the window
    cooldown: int
    first: int  # the earliest tick the machine can start
    last: int  # the latest tick its output is of use
    units: int
    allows: int  # units of the product, in the whole world


@dataclass(frozen=True)
class Ceiling:
    """The most units of a product per agent and episode, and the stages, tightest first."""

    product: str
    units: int
    per_agent: float
    stages: tuple[Stage, ...]


def ceiling(converters: Converters, product: str, max_steps: int) -> Ceiling:
    """How much of a product the agents of a world can take from its machines in one episode, at most.

    A unit counts if it is taken at tick max_steps or before, so it must lie ready at max_steps - 1. What it is made of
    must be ready before that by the cooldown and the two ticks of a hand-over, and so on up the chain: the `last`
    tick of each stage. A machine cannot start before its inputs can first be there: the `first` tick, which is the
    tick they lie ready with all buildings, and two more. In between, each machine ends
    (last - first) // cooldown conversions. What a stage yields, divided by how much of it a unit of the product
    takes, is what it allows; the least of these is the ceiling.

    The easy arena, 1000 ticks, per quarter of six agents: the last heart lies ready at 999, so its battery at
    999 - 10 - 2 = 987 and its ore at 987 - 25 - 2 = 960. A mine ends 960 // 50 = 19 ores, ten mines 190: 31.7 for
    each agent. Ore first lies ready at 50, so a generator starts at 52 and ends (987 - 52) // 25 = 37 batteries, five
    generators 185: 30.8 for each agent, the tightest. An altar from 79 to 999 could end 92 hearts.

    Where several kinds of machine make a resource, the stages before it are not looked at; the bound stays a bound.
    """
    last, share = {product: max_steps - 1}, {product: Fraction(1)}
    spared = {product: Fraction(0)}  # units not needed because something later in the chain is there from the start
    stages: list[Stage] = []
    opened: set[str] = set()
    for resource in sorted(converters.costs, key=lambda r: (-converters.costs[r], r)):
        if resource not in share:
            continue
        stage = _stage(converters, resource, product, last[resource], share[resource], spared[resource])
        if stage is None:
            continue
        stages.append(stage)
        machine = converters.best_maker(resource)
        if machine is None or len(converters.makers(resource)) > 1 or machine in opened:
            continue
        opened.add(machine)
        converter = converters.converter(machine)
        there = converters.counts[machine] * converters.waiting(machine, resource) + _carried(
            converters, resource, product
        )
        for r, n in converter.inputs.items():
            per_unit = Fraction(n, converter.outputs[resource])
            share[r] = share.get(r, Fraction(0)) + share[resource] * per_unit
            saved = (spared[resource] + there) * per_unit + converters.counts[machine] * converters.stored(machine, r)
            spared[r] = spared.get(r, Fraction(0)) + saved
            last[r] = max(last.get(r, 0), last[resource] - converter.cooldown - HAND_OVER)
    stages.sort(key=lambda stage: stage.allows)
    units = stages[0].allows if stages else 0
    return Ceiling(product, units, units / converters.num_agents, tuple(stages))


def _stage(
    converters: Converters, resource: str, product: str, last: int, share: Fraction, spared: Fraction
) -> Stage | None:
    makers = converters.makers(resource)
    units = _carried(converters, resource, product)
    main: tuple[int, str, int, int] | None = None
    for name in makers:
        converter, count = converters.converter(name), converters.counts[name]
        first = _first_start(converters, name, last)
        runs = 0 if first is None else max(0, (last - first) // converter.cooldown)
        if converter.max_conversions >= 0:
            runs = min(runs, converter.max_conversions)
        made = count * (runs * converter.outputs[resource] + converters.waiting(name, resource))
        units += made
        if main is None or made > main[0]:
            main = (made, name, runs, last if first is None else first)
    if main is None:
        return None
    _, name, runs, first = main
    allows = max(0, int((units + spared) / share))
    cooldown = converters.converter(name).cooldown
    return Stage(resource, name, converters.counts[name], runs, cooldown, first, last, units, allows)


def _carried(converters: Converters, resource: str, product: str) -> int:
    """What agents hold at the start and can use on the way; the product itself must be taken to count."""
    return 0 if resource == product else converters.num_agents * converters.start.get(resource, 0)


def _first_start(converters: Converters, machine: str, last: int) -> int | None:
    """The earliest tick a machine can start: its inputs ready, taken and put; None if not before `last`."""
    tick = 0
    for resource, amount in converters.converter(machine).inputs.items():
        lacking = amount - converters.stored(machine, resource)
        if lacking <= 0:
            continue
        lacking -= converters.start.get(resource, 0) * converters.num_agents
        if lacking <= 0:
            tick = max(tick, 1)
            continue
        found = all_buildings(converters, resource, lacking, last)
        if found is None:
            return None
        tick = max(tick, found.ready + HAND_OVER)
    return tick
