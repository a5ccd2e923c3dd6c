"""The parts of a grid game: object types with their machines, agents, teams, the laser, what is seen and rewarded.

The native side is `native/grid/config.hpp`; a test holds names, types and defaults equal.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from gridmill.config import Config, FrozenDict
from gridmill.grid.conditions import Amounts
from gridmill.grid.rules import Area, Rule
from gridmill.grid.values import GameValue


class Limit(Config):
    """At most min(max, max(base, sum of bonus x held)) of these resources together."""

    resources: tuple[str, ...]
    base: Annotated[int, Field(ge=0, le=65535)] = 65535
    max: Annotated[int, Field(ge=0, le=65535)] = 65535
    bonus: Amounts = FrozenDict()


class Converter(Config):
    """A machine: consumes its inputs when it starts, which it does whenever it can, and leaves its outputs
    `cooldown` ticks later, to be fetched by a bump."""

    inputs: Amounts = FrozenDict()
    outputs: Amounts
    cooldown: Annotated[int, Field(ge=1, le=1_000_000)] = 1
    max_output: Annotated[int, Field(ge=1, le=65535)] = 5
    max_input: Annotated[int, Field(ge=1, le=65535)] = 5
    initial_resource_count: Annotated[int, Field(ge=0, le=65535)] = 0
    max_conversions: Annotated[int, Field(ge=-1, le=1_000_000_000)] = -1


class Recipe(Config):
    """What an assembler produces from which inputs; needs `min_agents` agents around it, among them these vibes."""

    vibes: tuple[str, ...] = ()
    min_agents: Annotated[int, Field(ge=1, le=8)] = 1
    inputs: Amounts = FrozenDict()
    outputs: Amounts


class Assembler(Config):
    """Works at once, for the agents on the eight cells around it: it takes inputs from all of them as evenly as
    possible and gives outputs to the one that bumped. It uses the first recipe that is possible, then rests for
    `cooldown` ticks.

    With `partial` it can be used while it rests: after half of the time, for half of the inputs (rounded up) and half
    of the outputs (rounded down), if that is at least one unit; then the rest starts again.
    """

    recipes: tuple[Recipe, ...]
    cooldown: Annotated[int, Field(ge=0, le=1_000_000)] = 0
    partial: bool = False
    max_uses: Annotated[int, Field(ge=-1, le=1_000_000_000)] = -1


class ObjectType(Config):
    """A kind of object. One without its own state (no inventory, vibe, machine, rules, areas, collective) is terrain
    and uses no memory per object.

    A bump into it runs `on_use`: the first rule that applies, or with `use="all"` every rule that applies. `counts_as`
    makes it a variant of another type: shown and counted under that name.
    """

    tags: tuple[str, ...] = ()
    inventory: Amounts = FrozenDict()
    vibe: str = ""
    limits: tuple[Limit, ...] = ()
    collective: str = ""
    counts_as: str = ""
    converter: Converter | None = None
    assembler: Assembler | None = None
    pushable: bool = False
    swappable: bool = False
    use: Literal["first", "all"] = "first"
    on_use: tuple[Rule, ...] = ()
    on_tick: tuple[Rule, ...] = ()
    areas: tuple[Area, ...] = ()


class AgentType(Config):
    """All agents: their state at the start of an episode, how much they can hold, and the rules for them.

    Agents of group g belong to the collective at index g of `collectives`, modulo their number. `on_use` has the rules
    for a bump into another agent.
    """

    tags: tuple[str, ...] = ()
    inventory: Amounts = FrozenDict()
    vibe: str = ""
    limits: tuple[Limit, ...] = ()
    collectives: tuple[str, ...] = ()
    use: Literal["first", "all"] = "first"
    on_use: tuple[Rule, ...] = ()
    on_tick: tuple[Rule, ...] = ()
    areas: tuple[Area, ...] = ()


class Collective(Config):
    """A team: its inventory at the start, and how much it can hold."""

    inventory: Amounts = FrozenDict()
    limits: tuple[Limit, ...] = ()


class Attack(Config):
    """The laser: what a hit or a blocked hit costs, what stops it, how long a hit freezes, how it is aimed."""

    cost: Amounts = FrozenDict()
    armor: str = ""
    freeze_duration: Annotated[int, Field(ge=1, le=65535)] = 10
    aim: Literal["nearest", "cells", "both"] = "nearest"


class ObservedValue(Config):
    """A game value that every agent sees as a global token; two digits show values up to 65535."""

    name: str
    value: GameValue
    digits: Annotated[int, Field(ge=1, le=2)] = 1


class Observation(Config):
    """What agents see: the window, how many tokens, and what happens when more would be needed.

    `warn` and `drop` keep the nearest tokens and count the rest; `warn` says so when the game is compiled and its worst
    case does not fit. `error` stops the world instead.
    """

    window: Literal["square", "disc"] = "square"
    height: Annotated[int, Field(ge=1, le=15)] = 11
    width: Annotated[int, Field(ge=1, le=15)] = 11
    num_tokens: Annotated[int, Field(ge=1, le=4096)] = 200
    local_position: bool = False
    reward_scale: float = 100.0
    overflow: Literal["warn", "drop", "error"] = "warn"
    values: tuple[ObservedValue, ...] = ()


class RewardTerm(Config):
    """`weight` x a game value up to `cap`: rewards its change, only its increase, or the value itself in every tick."""

    weight: float = 1.0
    value: GameValue
    cap: Annotated[float, Field(ge=0)] = 1e9
    mode: Literal["change", "gained", "per_tick"] = "change"
