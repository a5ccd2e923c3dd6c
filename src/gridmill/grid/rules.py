"""Rules: what happens when something is used, every tick, inside an area, at an event, or when a tag changes.

A rule applies when all its conditions hold and all its effects can deliver; then its effects run in order. Who is
`actor` and who is `target` depends on where the rule stands:

on_use   actor: the agent that bumps, target: what it bumps into
on_tick  actor and target: the agent or object itself (nobody in the game's own rules)
areas    actor: the object the area surrounds, target: the agent inside
events   actor: nobody, target: the object chosen
on_tag   actor and target: the object whose tag changed

What rules ask and do is in `conditions` and `effects`.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from gridmill.config import Config, Frozen, FrozenDict
from gridmill.grid.conditions import Condition, Metric, Radius
from gridmill.grid.effects import Effect

Changes = Frozen[str, Annotated[int, Field(ge=-65535, le=65535)]]


class Rule(Config):
    """If all of `when` hold and all of `then` can be carried out, `then` happens; otherwise nothing happens."""

    name: str = ""
    when: tuple[Condition, ...] = ()
    then: tuple[Effect, ...] = ()


class Area(Config):
    """What an object does to the agents around it, wherever it goes.

    `friend` are the other agents of its collective, `enemy` those of another one, `all` every agent except itself,
    `self` only itself. The changes of all areas that reach an agent are added up and applied once. A `territory` acts
    only on cells that its collective holds.
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
    """Something that happens at set times: at the ticks of `at`, and every `every` ticks from `start` to `until`.

    Targets are the objects with a tag that fulfil `when`: all of them, or `max_targets` drawn at random; without a tag
    it happens once, without a target. If it affected no target, the event named by `fallback` runs instead.
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
