"""Earliest: when agents of a game can first gain something, each resource by the best argument there is.

Where only converters bring a resource their clocks are run (`converter_schedule`); where rules, areas, events or
assemblers do, there is a bound (`bounds`).
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Literal

from gridmill.grid.analysis.bounds import Bounds, Moment, ruled_resources
from gridmill.grid.analysis.converter_schedule import all_buildings, one_of_each
from gridmill.grid.analysis.converters import Converters
from gridmill.grid.analysis.productions import all_effects, promises
from gridmill.grid.facts import AGENT, Fact

if TYPE_CHECKING:
    from gridmill.grid.game import Game

Way = Literal["one", "sequence", "every"]  # one agent and one of each building; no hand-overs; everything and everybody
EPISODES = 10  # what takes longer than this many episodes counts as never


class Earliest:
    """The converters and the bounds of a game, asked in one of three ways."""

    def __init__(self, game: Game) -> None:
        self.game, self.converters, self.bounds = game, Converters.of(game), Bounds(game)
        self.ruled = ruled_resources(game, self.bounds.productions)  # those with a bound only

    @cached_property
    def promised(self) -> set[Fact]:
        return promises(self.game)

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
