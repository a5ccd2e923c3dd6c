"""Earliest: when agents of a game can first gain something, each resource by the best argument there is.

Where only converters bring a resource their clocks are run (`converter_schedule`); where rules, areas, events or
assemblers do, there is a bound (`bounds`).
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import TYPE_CHECKING, Literal

from gridmill.grid.analysis.bounds import Bounds, Moment, ruled_resources
from gridmill.grid.analysis.converter_schedule import all_buildings, one_of_each
from gridmill.grid.analysis.converters import Converters
from gridmill.grid.analysis.productions import all_effects, bearers, promises, shown_as
from gridmill.grid.facts import AGENT, Fact, held
from gridmill.grid.values import Count

if TYPE_CHECKING:
    from gridmill.grid.game import Game

Way = Literal["one", "sequence", "every"]  # one agent and one of each building; no hand-overs; everything and everybody
EPISODES = 10  # what takes longer than this many episodes counts as never


class Earliest:
    """The converters and the bounds of a game, asked in one of three ways."""

    def __init__(self, game: Game) -> None:
        self.game, self.converters, self.bounds = game, Converters.of(game), Bounds(game)
        self._bearers: dict[str, list[str]] = {}
        self._counted: dict[tuple[str, str], int] = {}
        self._rises: dict[tuple[Way, str, str, str], int | None] = {}
        self.ruled = ruled_resources(game, self.bounds.productions)  # those with a bound only

    @cached_property
    def promised(self) -> set[Fact]:
        return promises(self.game)

    # ---- counts, which many terms of a reward may ask for

    def counted_at_start(self, value: Count) -> int:
        if (known := self._counted.get((value.tag, value.resource))) is None:
            known = 0
            for name in self._bearers_of(value.tag):
                kind = self.game.agent if name == AGENT else self.game.objects[name]
                number = self.game.num_agents if name == AGENT else self.converters.counts.get(name, 0)
                known += number * (kind.inventory.get(value.resource, 0) if value.resource else 1)
            self._counted[value.tag, value.resource] = known
        return known

    def count_rises(self, way: Way, value: Count) -> int | None:
        """The first tick at which a count can rise."""
        key = (way, value.tag, value.resource, value.collective)
        if key not in self._rises:
            self._rises[key] = soonest([self.tick(way, self.bounds.comes(fact)) for fact in self._count_facts(value)])
        return self._rises[key]

    def _count_facts(self, value: Count) -> Iterator[Fact]:
        """What can make a count rise: amounts, tags, new objects, new members."""
        yield ("tag", value.tag, "")
        for name in self._bearers_of(value.tag):
            place = shown_as(self.game, name)
            if value.resource:
                yield held(place, value.resource)
            yield ("there", name, "")
            if value.collective:
                yield ("aligned", place, "")

    def _bearers_of(self, tag: str) -> list[str]:
        """Types whose objects bear a tag, or may come to."""
        if tag not in self._bearers:
            self._bearers[tag] = bearers(self.game, tag, self.promised)
        return self._bearers[tag]

    @cached_property
    def lost_by_rule(self) -> set[Fact]:
        """What more than machines, moves and attacks can take."""
        rules = (one for one in self.bounds.productions if one.how not in ("machine", "converter", "attack"))
        return {fact for production in rules for fact in production.losses}

    @cached_property
    def moved_by_rule(self) -> bool:
        return any(effect.moves_agents for effect in all_effects(self.game))

    def tick(self, way: Way, moment: Moment | None) -> int | None:
        """The earliest tick of a moment: one agent does all acts, or all agents share them."""
        if moment is None:
            return None
        tick = max(1, moment.together(self.game.num_agents) if way == "every" else moment.in_series)
        return tick if tick <= EPISODES * self.game.max_steps else None

    def gains(self, way: Way, resource: str, amount: int) -> int | None:
        """The tick by which an agent has gained so much of a resource; None: never, or not in ten episodes."""
        if resource in self.ruled:
            return self.tick(way, self.bounds.gained(AGENT, resource, amount))
        if way == "sequence":
            plan = self.converters.plan(resource, amount)
            return None if plan is None else plan.sequence
        play = one_of_each if way == "one" else all_buildings
        found = play(self.converters, resource, amount, EPISODES * self.game.max_steps)
        return None if found is None else found.paid


def soonest(ticks: list[int | None]) -> int | None:
    """The first of some ticks, of which None are never."""
    return min((tick for tick in ticks if tick is not None), default=None)
