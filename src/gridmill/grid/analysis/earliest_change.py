"""Earliest change: what simple game values are before the first tick, when they can first rise, and how sure that is.

Simple values are what an agent or a team holds, statistics, counts and constants; `earliest_reward` puts them together.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Literal

from gridmill.grid.analysis.converters import Converters
from gridmill.grid.analysis.earliest import Earliest, Way, soonest
from gridmill.grid.analysis.productions import TEAM, shown_as
from gridmill.grid.facts import AGENT, Fact, held
from gridmill.grid.parts import Collective
from gridmill.grid.values import Constant, Count, GameValue, Index, Inventory, Stat

if TYPE_CHECKING:
    from gridmill.grid.game import Game

Gains = Callable[[str, int], int | None]  # (resource, amount) -> the tick by which an agent has gained that much
Certainty = Literal["exact", "at least", "not known"]
FIGHTS = ("attack.hit", "attack.received", "attack.blocked", "frozen.ticks")


class Leaves:
    """Looks at the simple values of one game in one way."""

    def __init__(self, earliest: Earliest, way: Way, gains: Gains, reward: int | None) -> None:
        self.earliest, self.way, self.gains, self.reward = earliest, way, gains, reward
        self.game = earliest.game
        self.start = {r: n for r, n in self.game.agent.inventory.items() if n > 0}
        self.resources = set(self.game.resources)
        promised = earliest.promised
        self.own_stats = {(of, name) for what, of, name in promised if what == "stat"}
        self.hits_by_rule = ("fight", "", "") in promised
        self.moved_by_rule = earliest.moved_by_rule

    # ---- before the first tick

    def at_start(self, value: GameValue) -> float:
        if isinstance(value, Constant):
            return value.value
        if isinstance(value, Index):
            return 1 if value.place < min(value.every, self.game.num_agents) else 0
        if isinstance(value, Inventory):
            return self._held_at_start(value.of, value.collective, value.resource)
        if isinstance(value, Count):
            return self.earliest.counted_at_start(value)
        if not isinstance(value, Stat):
            return 0  # a kind that this file knows nothing about: see `certainty`
        head, _, tail = value.name.rpartition(".")
        if value.of == "collective":
            if head in self.resources and tail in ("amount", "deposited"):
                return self._held_at_start("collective", value.collective, head)
            kind = value.name.removeprefix("aligned.").removesuffix(".gained")
            return self._members(kind, value.collective) if value.name.startswith("aligned.") else 0
        if value.of == "game":
            return 0
        return 1 if value.name == "cell.visited" else self.start.get(head, 0) if tail == "amount" else 0

    def _held_at_start(self, of: str, team: str, resource: str) -> int:
        if of == "collective":
            return max((one.inventory.get(resource, 0) for one in self._teams(team).values()), default=0)
        return self.start.get(resource, 0) if of == "actor" else 0

    def _teams(self, name: str) -> dict[str, Collective]:
        """The collective of this name, or those agents may belong to."""
        named = {name} if name else set(self.game.agent.collectives)
        return {team: one for team, one in self.game.collectives.items() if team in named}

    def _members(self, kind: str, team: str) -> int:
        """How many of a type belong to a collective (of this name, or an agent's own) at the start."""
        teams, game = self._teams(team), self.game
        if kind == AGENT:
            return game.num_agents if set(game.agent.collectives) & teams.keys() else 0
        of_team = [n for n, k in game.objects.items() if shown_as(game, n) == kind and k.collective in teams]
        return sum(self.earliest.converters.counts.get(n, 0) for n in of_team)

    # ---- the first change

    def changes(self, value: GameValue) -> int | None:
        """The first tick at which a value can rise; None if never."""
        if isinstance(value, Inventory):
            if value.of == "actor":
                return self.gains(value.resource, 1)
            return self._comes(held(TEAM, value.resource)) if value.of == "collective" else None
        if isinstance(value, Count):
            return self.earliest.count_rises(self.way, value)
        if isinstance(value, Stat):
            if value.of == "game":
                return self._comes(("stat", "game", value.name)) if ("game", value.name) in self.own_stats else 1
            return self._moves(value.name) if value.of == "agent" else self._team_moves(value.name, value.collective)
        return None if isinstance(value, Constant | Index) else 1

    def _comes(self, fact: Fact) -> int | None:
        return self.earliest.tick(self.way, self.earliest.bounds.comes(fact))

    def _true(self, fact: Fact) -> int | None:
        return self.earliest.tick(self.way, self.earliest.bounds.true(fact))

    def _team_moves(self, name: str, team: str) -> int | None:
        head, _, tail = name.rpartition(".")
        if head in self.resources and tail in ("amount", "deposited"):
            return self._comes(held(TEAM, head))
        if head in self.resources and tail == "withdrawn":
            return self._true(held(TEAM, head))
        if name.startswith("aligned."):
            kind = name.removeprefix("aligned.").removesuffix(".held").removesuffix(".gained").removesuffix(".lost")
            if tail == "held" and self._members(kind, team):
                return 1
            facts: list[Fact] = [("aligned", kind, "")]
            facts += [("there", n, "") for n in self.game.objects if shown_as(self.game, n) == kind]
            facts += [("unaligned", kind, ""), ("gone", kind, "")] if tail == "lost" else []
            return soonest([self._comes(fact) for fact in facts])
        return self._comes(("stat", "collective", name)) if ("collective", name) in self.own_stats else 1

    def _moves(self, name: str) -> int | None:
        """The first tick at which an agent's statistic can rise."""
        head, _, tail = name.rpartition(".")
        if head in self.resources and tail in ("get", "gained", "amount"):
            return self.gains(head, 1)
        if head in self.resources and tail in ("put", "lost"):
            return self._hands_over(head, spent=tail == "lost")
        if name == "reward":
            return self.reward
        if tail in ("aligned_by_agent", "scrambled_by_agent"):
            return self._comes((tail, head, ""))
        if {("actor", name), ("target", name)} & self.own_stats:
            return self._comes(("stat", "agent", name))
        if name.startswith("action.move_"):
            return 1 if self.game.moves else None
        if name == "cell.visited":
            return 1 if self.game.moves or self.moved_by_rule or self.game.swap else None
        if self.hits_by_rule and name in FIGHTS:
            return self._comes(("frozen" if name == "frozen.ticks" else "hit", AGENT, ""))
        if (name in FIGHTS and name != "attack.blocked") or (name.startswith("action.attack_") and tail == "success"):
            return first_attack(self.game, self.gains)
        return self._blocked() if name == "attack.blocked" else 1

    def _blocked(self) -> int | None:
        attack = self.game.attack
        if attack is None or not attack.armor:
            return None
        armor = 0 if attack.armor in self.start else self.gains(attack.armor, 1)
        hit = first_attack(self.game, self.gains)
        return None if armor is None or hit is None else max(armor, hit)

    def _hands_over(self, resource: str, *, spent: bool) -> int | None:
        """When an agent can first put a resource into a machine, or (spent) lose it in any way."""
        game = self.game
        if self._taken_by_rule(resource):
            return self._true(held(AGENT, resource))
        useful = bool(self.earliest.converters.consumers(resource))
        if spent:
            useful |= game.move_cost.get(resource, 0) > 0 or game.attack is not None
        if not useful:
            return None
        gained = 0 if resource in self.start else self.gains(resource, 1)
        return None if gained is None else gained + 1

    def _taken_by_rule(self, resource: str) -> bool:
        """Whether more than machines, moves and attacks can take a resource from an agent."""
        falling = any(limit.bonus and resource in limit.resources for limit in self.game.agent.limits)
        return falling or resource in self.earliest.ruled or held(AGENT, resource) in self.earliest.lost_by_rule

    # ---- how sure

    def certainty(self, value: GameValue) -> Certainty:
        """Whether the first tick of a value is exact, a bound, or nothing can be said."""
        if isinstance(value, Constant | Index):
            return "exact"
        if isinstance(value, Inventory):
            plain = value.of == "target" or (value.of == "actor" and value.resource not in self.earliest.ruled)
            return "exact" if plain else "at least"
        if isinstance(value, Count):
            return "at least"
        if not isinstance(value, Stat):
            return "not known"
        head, _, tail = value.name.rpartition(".")
        if value.of != "agent":
            if (
                value.of == "collective"
                and tail == "held"
                and self._members(head.removeprefix("aligned."), value.collective)
            ):
                return "exact"
            known = (value.of, value.name) in self.own_stats or (
                value.of == "collective" and (head in self.resources or value.name.startswith("aligned."))
            )
            return "at least" if known else "not known"
        if head in self.resources:
            ruled = self._taken_by_rule(head) if tail in ("put", "lost") else head in self.earliest.ruled
            return "at least" if ruled else "exact"
        if value.name == "reward":
            return "at least" if self.earliest.ruled else "exact"
        if value.name in FIGHTS or value.name.startswith("action.attack_"):
            costs = self.game.attack.cost.keys() if self.game.attack is not None else set()
            return "at least" if self.hits_by_rule or costs & self.earliest.ruled else "exact"
        if value.name == "cell.visited" or head.startswith("action."):
            return "exact"
        return "at least" if tail in ("aligned_by_agent", "scrambled_by_agent") else "not known"


def first_attack(game: Game, gains: Gains) -> int | None:
    """The first tick at which an attack can be paid for; None if never."""
    if game.attack is None or game.num_agents < 2:
        return None
    converters, tick = Converters.of(game), 1
    for resource, cost in game.attack.cost.items():
        lacking = cost - converters.start.get(resource, 0)
        if lacking <= 0:
            continue
        gained = gains(resource, lacking) if cost <= converters.most(resource) else None
        if gained is None:
            return None
        tick = max(tick, gained + 1)
    return tick
