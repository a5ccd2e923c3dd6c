"""Bounds: how soon something can come about at the earliest, and the acts nobody can do without on the way to it.

Bounds by a simple argument over `productions`: nothing comes before what it needs, an act takes one agent one tick, and
what an agent got by an act it can use in the next tick. Nothing that is used up is missed, nobody walks, every
condition about places or chance holds. So what is said to be impossible is, and nothing comes earlier; it may well come
later.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING

from gridmill.grid.analysis.productions import ACTS, Production, productions_of, start_facts
from gridmill.grid.facts import AGENT, Fact, Gain, held

if TYPE_CHECKING:
    from gridmill.grid.game import Game


@dataclass(frozen=True)
class Moment:
    """The earliest tick something can be so, the earliest tick an act can build on it, and the acts before that."""

    seen: int
    usable: int
    acts: Mapping[str, int]

    @property
    def in_series(self) -> int:
        """The earliest tick if one agent does all acts, one after the other."""
        return max(self.seen, sum(self.acts.values()))

    def together(self, num_agents: int) -> int:
        """The earliest tick if all agents share the acts."""
        return max(self.seen, -(-sum(self.acts.values()) // num_agents))


THERE = Moment(0, 1, {})


class Bounds:
    """Looks up the first moments of one game; made once per game, since the way to everything is found at once."""

    def __init__(self, game: Game) -> None:
        self.start = start_facts(game)
        self.productions = productions_of(game)
        self._limits = {r: limit for limit in reversed(game.agent.limits) for r in limit.resources}
        kinds = {AGENT: game.agent} | {kind.counts_as or name: kind for name, kind in game.objects.items()}
        self._all_at_once = {name for name, kind in kinds.items() if kind.use == "all"}
        self._ways: dict[Fact, list[_Way]] = {}
        for production in self.productions:
            for gain in production.gains:
                self._ways.setdefault(gain.fact, []).append(_Way(production, gain))
        changed = True
        while changed:
            changed = False
            for way in (way for ways in self._ways.values() for way in ways):
                before, way.moment = way.moment, self._moment(way)
                changed |= before != way.moment

    def held(self, place: str, resource: str, amount: int = 1) -> Moment | None:
        """When a place first holds so much of a resource; at once if it does from the start."""
        return self.true(held(place, resource), amount)

    def gained(self, place: str, resource: str, amount: int = 1) -> Moment | None:
        """When a place first has got so much of a resource beyond what it had."""
        return self.comes(held(place, resource), amount)

    def true(self, fact: Fact, amount: int = 1) -> Moment | None:
        lacking = amount - self.start.get(fact, 0)
        return THERE if lacking <= 0 else self.comes(fact, lacking)

    def comes(self, fact: Fact, amount: int = 1) -> Moment | None:
        """When something first comes to be; None if it never can. Of several ways only what they share is counted."""
        found = [way.after(amount) for way in self._ways.get(fact, ()) if way.moment is not None]
        return reduce(_either, found) if found else None

    def _moment(self, way: _Way) -> Moment | None:
        """When a production can first happen, for one of its gains; None if not as far as is known."""
        production = way.production
        tick, acts = production.first, Counter[str]()
        asked = dict(production.needs)
        if way.gain.source is not None:
            asked[way.gain.source] = max(1, asked.get(way.gain.source, 0))
        for fact, amount in asked.items():
            found = self.true(fact, amount)
            if found is None:
                return None
            # Around an assembler one agent may bring in the same tick what another one's bump uses.
            alone = production.how in ACTS and not (production.how == "assembler" and fact[1] in ("", AGENT))
            tick = max(tick, found.usable if alone else found.seen)
            acts |= Counter(found.acts)
        room = self._room(way)
        if room is None:
            return None
        tick = max(tick, room.seen)
        return Moment(tick, tick, acts | Counter(room.acts))

    def _room(self, way: _Way) -> Moment | None:
        """When agents can first have room for what comes: some limits are 0 until something else is held."""
        kind, place, resource = way.gain.fact
        limit = self._limits.get(resource) if (kind, place) == ("held", AGENT) else None
        if limit is None or (limit.base > 0 and limit.max > 0):
            return THERE
        bonus = [held(AGENT, r) for r, n in limit.bonus.items() if n > 0] if limit.max > 0 else []
        together = way.production.how == "bump" and way.production.where in self._all_at_once
        if bonus and (together or any(gain.fact in bonus for gain in way.production.gains)):
            return THERE  # it may come with the same production
        found = [moment for fact in bonus if (moment := self.true(fact)) is not None]
        return reduce(_either, found) if found else None


class _Way:
    """One gain of one production."""

    def __init__(self, production: Production, gain: Gain) -> None:
        self.production, self.gain = production, gain
        self.moment: Moment | None = None  # when the production can happen

    def after(self, amount: int) -> Moment:
        """When the production has been done often enough for an amount."""
        assert self.moment is not None
        production, acts = self.production, Counter(self.moment.acts)
        if production.how in ACTS:
            acts[production.where] += -(-amount // self.gain.amount)
        seen = self.moment.seen + production.delay
        later = self.gain.to_actor or production.how in ("converter", "tick", "area")
        return Moment(seen, seen + 1 if later else seen, acts)


def _either(a: Moment, b: Moment) -> Moment:
    return Moment(min(a.seen, b.seen), min(a.usable, b.usable), Counter(a.acts) & Counter(b.acts))


def ruled_resources(game: Game, productions: Iterable[Production]) -> set[str]:
    """Resources that more than converters can bring: for them there are bounds, not schedules. Loot is not counted.

    A converter that can get an input in another way, or does other things when bumped into, counts as more.
    """
    if game.moves == 0:
        return set(game.resources)
    machines = {name: kind for name, kind in game.objects.items() if kind.converter is not None}
    places = {AGENT} | {kind.counts_as or name for name, kind in machines.items()}
    found = {
        gain.fact[2]
        for production in productions
        if production.how not in ("converter", "machine", "attack")
        for gain in production.gains
        if gain.fact[0] == "held" and gain.fact[1] in places
    }
    spawned = {gain.fact[1] for production in productions for gain in production.gains if gain.fact[0] == "there"}
    if found & {r for r, n in game.move_cost.items() if n > 0}:
        return set(game.resources)
    size = -1
    while size != len(found):
        size = len(found)
        for name, kind in machines.items():
            converter = kind.converter
            assert converter is not None
            if kind.on_use or name in spawned or found & converter.inputs.keys():
                found |= converter.outputs.keys()
    return found
