"""Game: everything a grid world is, as one frozen value. The core compiles it once and then only moves numbers.

The native side is `native/grid/config.hpp`; a test holds names, types and defaults equal.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from gridmill.config import Config, Frozen, FrozenDict
from gridmill.grid.maps import Map
from gridmill.grid.values import GameValue

Amounts = Frozen[str, Annotated[int, Field(ge=0, le=65535)]]


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


class ObjectType(Config):
    """A kind of object. One that holds nothing, has no vibe and is no machine is terrain: no memory per piece."""

    tags: tuple[str, ...] = ()
    inventory: Amounts = FrozenDict()
    vibe: str = ""
    converter: Converter | None = None
    pushable: bool = False
    swappable: bool = False


class AgentType(Config):
    """What every agent of the game is at the start of an episode, and how much it can hold."""

    tags: tuple[str, ...] = ()
    inventory: Amounts = FrozenDict()
    vibe: str = ""
    limits: tuple[Limit, ...] = ()


class Attack(Config):
    """The laser: what a hit or a blocked hit costs, what stops it, how long a hit freezes, how it is aimed."""

    cost: Amounts = FrozenDict()
    armor: str = ""
    freeze_duration: Annotated[int, Field(ge=1, le=65535)] = 10
    aim: Literal["nearest", "cells", "both"] = "nearest"


class ObservedValue(Config):
    """A game value every agent sees as a global token; two digits show values up to 65535."""

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
    """`weight` x a game value up to `cap`: paid on its change, on what was gained, or every tick."""

    weight: float = 1.0
    value: GameValue
    cap: Annotated[float, Field(ge=0)] = 1e9
    mode: Literal["change", "gained", "per_tick"] = "change"


class Game(Config):
    """A grid game. Functions in `gridmill.games` make the ones that ship."""

    name: str
    num_agents: Annotated[int, Field(ge=1, le=4096)] = 1
    max_steps: Annotated[int, Field(ge=1, le=1_000_000_000)] = 1000
    time_limit: Literal["truncation", "termination"] = "truncation"
    moves: Literal[0, 4, 8] = 8
    resources: tuple[str, ...] = ()
    vibes: tuple[str, ...] = ()
    attack: Attack | None = None
    swap: bool = False
    move_cost: Amounts = FrozenDict()
    agent: AgentType = AgentType()
    objects: Frozen[str, ObjectType] = FrozenDict({"wall": ObjectType()})
    map: Map
    observation: Observation = Observation()
    rewards: tuple[RewardTerm, ...] = ()
    reward_sharing: Annotated[float, Field(ge=0, le=1)] = 0.0
