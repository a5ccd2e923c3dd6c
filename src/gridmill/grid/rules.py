"""Rules: what happens when something is used, every tick, inside an area, at an event, or when a tag changes.

A rule applies when all its conditions hold and all its effects can deliver; then its effects run in order. Who is
`actor` and who is `target` depends on where the rule stands:

on_use   actor: the agent that bumps, target: what it bumps into
on_tick  actor and target: the agent or object itself (nobody in the game's own rules)
areas    actor: the object the area surrounds, target: the agent inside
events   actor: nobody, target: the object chosen
on_tag   actor and target: the object whose tag changed

The native side is `native/grid/rules/conditions.hpp` and `effects.hpp`; a test holds the two equal.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from gridmill.config import Config, Frozen, FrozenDict
from gridmill.grid.values import GameValue

Amounts = Frozen[str, Annotated[int, Field(ge=0, le=65535)]]
Changes = Frozen[str, Annotated[int, Field(ge=-65535, le=65535)]]
Someone = Literal["actor", "target"]
Holder = Literal["actor", "target", "actor_collective", "target_collective"]
Metric = Literal["chebyshev", "euclid"]
Radius = Annotated[int, Field(ge=0, le=4096)]


# ---- conditions


class Holds(Config):
    """Somebody holds at least these amounts."""

    kind: Literal["holds"] = "holds"
    who: Holder = "actor"
    amounts: Amounts


class HasVibe(Config):
    """Somebody's vibe is this one."""

    kind: Literal["has_vibe"] = "has_vibe"
    who: Someone = "actor"
    vibe: str


class HasTag(Config):
    """Somebody bears a tag."""

    kind: Literal["has_tag"] = "has_tag"
    who: Someone = "target"
    tag: str


class SameCollective(Config):
    """Actor and target belong to one collective."""

    kind: Literal["same_collective"] = "same_collective"


class OtherCollective(Config):
    """Actor and target belong to two different collectives."""

    kind: Literal["other_collective"] = "other_collective"


class Aligned(Config):
    """Somebody belongs to this collective, or to any if none is named."""

    kind: Literal["aligned"] = "aligned"
    who: Someone = "target"
    to: str = ""


class Within(Config):
    """Actor and target are at most this far apart."""

    kind: Literal["within"] = "within"
    distance: Radius
    metric: Metric = "chebyshev"


class Near(Config):
    """Some object with a tag, itself included, is within a radius and fulfils conditions in which it is the target."""

    kind: Literal["near"] = "near"
    who: Someone = "target"
    tag: str
    radius: Radius
    metric: Metric = "chebyshev"
    when: tuple[Condition, ...] = ()


class Periodic(Config):
    """The tick is `start`, `start + every`, `start + 2 every`, ..."""

    kind: Literal["periodic"] = "periodic"
    every: Annotated[int, Field(ge=1, le=1_000_000_000)]
    start: Annotated[int, Field(ge=0, le=1_000_000_000)] = 0


class Chance(Config):
    """True with this probability, drawn anew for every tick and pair of actor and target."""

    kind: Literal["chance"] = "chance"
    probability: Annotated[float, Field(ge=0, le=1)]


class AtLeast(Config):
    """A game value is at least a number."""

    kind: Literal["at_least"] = "at_least"
    value: GameValue
    number: float


class Empty(Config):
    """Somebody holds nothing of these resources, or nothing at all if none is named."""

    kind: Literal["empty"] = "empty"
    who: Holder = "target"
    resources: tuple[str, ...] = ()


class Not(Config):
    """Not all of these conditions hold."""

    kind: Literal["not"] = "not"
    conditions: tuple[Condition, ...]


class AnyOf(Config):
    """At least one of these conditions holds."""

    kind: Literal["any"] = "any"
    conditions: tuple[Condition, ...]


Condition = Annotated[
    Holds
    | HasVibe
    | HasTag
    | SameCollective
    | OtherCollective
    | Aligned
    | Within
    | Near
    | Periodic
    | Chance
    | AtLeast
    | Empty
    | Not
    | AnyOf,
    Field(discriminator="kind"),
]


# ---- effects


class Give(Config):
    """Somebody gets these amounts, as far as they fit; of each at least one unit must."""

    kind: Literal["give"] = "give"
    who: Holder = "actor"
    amounts: Amounts


class Take(Config):
    """Somebody loses these amounts, or what there is of them; a price is a `holds` beside it."""

    kind: Literal["take"] = "take"
    who: Holder = "actor"
    amounts: Amounts


class Transfer(Config):
    """Up to these amounts change hands, as far as they are there and fit; at least one unit must."""

    kind: Literal["transfer"] = "transfer"
    source: Holder = "target"
    to: Holder = "actor"
    amounts: Amounts
    remove_empty: bool = False


class Clear(Config):
    """Somebody loses all of these resources, or everything if none is named."""

    kind: Literal["clear"] = "clear"
    who: Holder = "actor"
    resources: tuple[str, ...] = ()


class Add(Config):
    """Somebody gets (or, if it is negative, loses) as much of a resource as a game value says, rounded."""

    kind: Literal["add"] = "add"
    who: Holder = "actor"
    resource: str
    value: GameValue


class SetTag(Config):
    """Somebody bears a tag from now on."""

    kind: Literal["set_tag"] = "set_tag"
    who: Someone = "target"
    tag: str


class ClearTag(Config):
    """Somebody no longer bears a tag."""

    kind: Literal["clear_tag"] = "clear_tag"
    who: Someone = "target"
    tag: str


class Align(Config):
    """Somebody joins a collective: the named one, or the actor's."""

    kind: Literal["align"] = "align"
    who: Someone = "target"
    to: str = ""


class Unalign(Config):
    """Somebody leaves its collective; done to another collective's object it is called scrambling."""

    kind: Literal["unalign"] = "unalign"
    who: Someone = "target"


class ChangeVibe(Config):
    """Somebody's vibe becomes this one."""

    kind: Literal["change_vibe"] = "change_vibe"
    who: Someone = "target"
    vibe: str


class Freeze(Config):
    """An agent cannot act for some ticks, this one being the first."""

    kind: Literal["freeze"] = "freeze"
    who: Someone = "target"
    ticks: Annotated[int, Field(ge=1, le=65535)] = 10


class Move(Config):
    """Somebody moves one cell in a direction, if it is empty."""

    kind: Literal["move"] = "move"
    who: Someone = "target"
    direction: Literal["north", "south", "west", "east"]


class Push(Config):
    """The target is moved away from the actor, up to some cells, as far as they are empty."""

    kind: Literal["push"] = "push"
    distance: Annotated[int, Field(ge=1, le=4096)] = 1


class SwapPlaces(Config):
    """Actor and target change places."""

    kind: Literal["swap_places"] = "swap_places"


class Relocate(Config):
    """Somebody is put on a random empty cell; an agent, if asked for, on the cell it started from."""

    kind: Literal["relocate"] = "relocate"
    who: Someone = "target"
    to: Literal["random", "start"] = "random"


class Spawn(Config):
    """A new object appears where somebody stood who was just removed, or else on an empty cell beside it."""

    kind: Literal["spawn"] = "spawn"
    object: str
    near: Someone = "target"


class Remove(Config):
    """An object leaves the map; agents stay."""

    kind: Literal["remove"] = "remove"
    who: Someone = "target"


class Strike(Config):
    """The target is hit as by the game's laser, without its cost: armor, freeze, loot."""

    kind: Literal["strike"] = "strike"


class AddStat(Config):
    """Adds to a statistic of its own name: an agent's, the actor's collective's, or the game's."""

    kind: Literal["add_stat"] = "add_stat"
    of: Literal["actor", "target", "collective", "game"] = "actor"
    name: str
    amount: float = 1.0


Effect = Annotated[
    Give
    | Take
    | Transfer
    | Clear
    | Add
    | SetTag
    | ClearTag
    | Align
    | Unalign
    | ChangeVibe
    | Freeze
    | Move
    | Push
    | SwapPlaces
    | Relocate
    | Spawn
    | Remove
    | Strike
    | AddStat,
    Field(discriminator="kind"),
]


# ---- where they stand


class Rule(Config):
    """When all of `when` hold and all of `then` can deliver, `then` happens; otherwise nothing is paid or done."""

    name: str = ""
    when: tuple[Condition, ...] = ()
    then: tuple[Effect, ...] = ()


class Area(Config):
    """What an object does to the agents around it, wherever it goes.

    `friend` are the other agents of its collective, `enemy` those of another one, `all` every agent but itself, `self`
    only itself. Changes of all areas that reach an agent are added up and applied once. A `territory` acts only where
    its collective holds the ground.
    """

    radius: Radius = 1
    metric: Metric = "chebyshev"
    affects: Literal["friend", "enemy", "all", "self"] = "all"
    when: tuple[Condition, ...] = ()
    changes: Changes = FrozenDict()
    enter: Changes = FrozenDict()
    exit: Changes = FrozenDict()
    rules: tuple[Rule, ...] = ()
    on_enter: tuple[Rule, ...] = ()
    on_exit: tuple[Rule, ...] = ()
    territory: bool = False


class Event(Config):
    """Something that happens by the clock: at the ticks of `at`, and every `every` ticks from `start` to `until`.

    Targets are the objects with a tag that fulfil `when`: all of them, or `max_targets` drawn by lot; without a tag it
    happens once, to nobody. If it happened to no target at all, the event named by `fallback` runs instead.
    """

    at: tuple[Annotated[int, Field(ge=0, le=1_000_000_000)], ...] = ()
    every: Annotated[int, Field(ge=0, le=1_000_000_000)] = 0
    start: Annotated[int, Field(ge=0, le=1_000_000_000)] = 0
    until: Annotated[int, Field(ge=0, le=1_000_000_000)] = 1_000_000_000
    targets: str = ""
    when: tuple[Condition, ...] = ()
    then: tuple[Effect, ...] = ()
    max_targets: Annotated[int, Field(ge=0, le=65535)] = 0
    fallback: str = ""
    priority: Annotated[int, Field(ge=-1_000_000, le=1_000_000)] = 0


for _model in (Near, Not, AnyOf, Rule, Area, Event):
    _model.model_rebuild()
