"""Productions: everything in a game that can bring about or use up something, read off its rules, machines and clock.

A production says what must be there (`needs`), what it brings (`gains`) and what it uses up. Conditions about places,
chance or what is not there are left out, so a production is never harder than the rule it stands for: what follows from
productions is a bound.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from gridmill.grid.analysis.converters import counts_on
from gridmill.grid.effects import Effect
from gridmill.grid.facts import AGENT, MOST, Draft, Fact, Gain, RuleContext, held, loot
from gridmill.grid.parts import AgentType, ObjectType
from gridmill.grid.rules import Area, Rule

How = Literal["bump", "assembler", "machine", "vibe", "attack", "converter", "tick", "area", "event", "tag"]
ACTS = ("bump", "assembler", "machine", "vibe", "attack")  # what takes an agent's action; the rest happens by itself
TEAM = "team"  # all stores of collectives are one place: a bound need not tell them apart

if TYPE_CHECKING:
    from gridmill.grid.game import Game
NEVER = 10**9


@dataclass(frozen=True)
class Production:
    """One thing that can happen: where, by what rule, and what it takes and brings."""

    where: str  # a type's name, `agent`, or an event's
    name: str
    how: How
    needs: Mapping[Fact, int] = field(default_factory=dict)
    gains: tuple[Gain, ...] = ()
    losses: frozenset[Fact] = frozenset()
    first: int = 1  # not before this tick, by the clock; machines start before the first
    delay: int = 0  # ticks from its needs to its gains


def shown_as(game: Game, name: str) -> str:
    """A type's name as agents see it: variants go by the name of what they count as."""
    kind = game.objects.get(name)
    return kind.counts_as if kind is not None and kind.counts_as else name


def start_facts(game: Game) -> dict[Fact, int]:
    """What is there before the first tick: of agents all that they hold together, of objects what one of them holds."""
    found: Counter[Fact] = Counter()
    for r, n in game.agent.inventory.items():
        found[held(AGENT, r)] = n * game.num_agents
    for team in game.collectives.values():
        for r, n in team.inventory.items():
            found[held(TEAM, r)] = max(found[held(TEAM, r)], n)
    counts = counts_on(game.map)
    for name, kind in game.objects.items():
        if counts[name] > 0:
            found[("there", name, "")] = 1
        stock = Counter(dict(kind.inventory))
        if kind.converter is not None:
            stock.update({r: n * kind.converter.initial_resource_count for r, n in kind.converter.outputs.items()})
        for r, n in stock.items():
            fact = held(shown_as(game, name), r)
            found[fact] = max(found[fact], n)
    if game.vibes:
        found[("vibe", "", game.agent.vibe or game.vibes[0])] = game.num_agents
    return {fact: n for fact, n in found.items() if n > 0}


def productions_of(game: Game) -> list[Production]:
    """All productions of a game, in order of declaration."""
    found: list[Production] = []
    bumps = game.moves > 0
    if len(game.vibes) > 1:
        found += [
            Production(f"change_vibe_{v}", "", "vibe", gains=(Gain(("vibe", "", v), to_actor=True),))
            for v in game.vibes
        ]
    found += _of_kind(game, AGENT, game.agent, bumps and game.num_agents > 1)
    if game.attack is not None and game.num_agents > 1:
        cost = {held(AGENT, r): n for r, n in game.attack.cost.items() if n > 0}
        found.append(Production("attack", "", "attack", cost, loot(game.resources), frozenset(cost)))
    counts = counts_on(game.map)
    spawned = {name for what, name, _ in promises(game) if what == "there"}
    for name, kind in game.objects.items():
        if counts[name] > 0 or name in spawned:
            there = {} if counts[name] > 0 else {("there", name, ""): 1}
            for production in [*_of_kind(game, name, kind, bumps), *_machine(game, name, kind, bumps)]:
                found.append(_also(production, there))
    found += _events(game)
    everyone = [AGENT, *(name for name in game.objects if counts[name] > 0 or name in spawned)]
    for rules in (*game.on_tag_added.values(), *game.on_tag_removed.values()):
        for name in everyone:
            found += _ruled(game, rules, "tag", name, _context(game, name, name))
    for rule in game.on_tick:
        found += _ruled(game, (rule,), "tick", "game", _context(game, None, None))
    return found


def _also(production: Production, needs: Mapping[Fact, int]) -> Production:
    return Production(
        production.where,
        production.name,
        production.how,
        {**production.needs, **needs},
        production.gains,
        production.losses,
        production.first,
        production.delay,
    )


# ---- rules


def _context(game: Game, actor: str | None, target: str | None) -> RuleContext:
    def team(who: str | None) -> str | None:
        return TEAM if who is not None and game.collectives else None

    return {"actor": actor, "target": target, "actor_collective": team(actor), "target_collective": team(target)}


def _of_kind(game: Game, name: str, kind: ObjectType | AgentType, bumps: bool) -> Iterator[Production]:
    place = shown_as(game, name)
    if bumps:
        bumped = _ruled(game, kind.on_use, "bump", place, _context(game, AGENT, place))
        given = {gain.fact for production in bumped for gain in production.gains}
        for production in bumped:
            # With "all" one bump runs several rules, and a later one may use what an earlier one brought.
            inside = given if kind.use == "all" else set()
            needs = {fact: n for fact, n in production.needs.items() if fact not in inside}
            gains = tuple(_without_source(gain) if gain.source in inside else gain for gain in production.gains)
            yield Production(
                production.where, production.name, "bump", needs, gains, production.losses, production.first
            )
    yield from _ruled(game, kind.on_tick, "tick", place, _context(game, place, place))
    for area in kind.areas:
        yield from _area(game, place, area)


def _without_source(gain: Gain) -> Gain:
    return Gain(gain.fact, gain.amount, None, gain.to_actor)


def _ruled(
    game: Game, rules: Sequence[Rule], how: How, where: str, context: RuleContext, first: int = 1
) -> list[Production]:
    return [
        production for rule in rules if (production := _production(game, rule, how, where, context, first)) is not None
    ]


def _production(game: Game, rule: Rule, how: How, where: str, context: RuleContext, first: int) -> Production | None:
    """A rule as a production; None where somebody it speaks of is never there."""
    draft = Draft(context, game.resources, first=first)
    if not all(condition.ask(draft) for condition in rule.when):
        return None
    if not all(effect.happen(draft) for effect in rule.then):
        return None
    gains = draft.gains
    if how == "bump":
        gains = [_to_actor(gain) if gain.fact[1] == AGENT != where else gain for gain in gains]
    return Production(where, rule.name, how, dict(draft.needs), tuple(gains), frozenset(draft.losses), draft.first)


def _to_actor(gain: Gain) -> Gain:
    return Gain(gain.fact, gain.amount, gain.source, True)


# ---- areas, events, machines


def _area(game: Game, name: str, area: Area) -> Iterator[Production]:
    if area.affects == "self" and name != AGENT:
        return
    context = _context(game, name, AGENT)
    draft = Draft(context, game.resources)
    if not all(condition.ask(draft) for condition in area.when):
        return
    steps = [(r, n) for changes in (area.changes, area.enter, area.exit) for r, n in changes.items()]
    rises = tuple(Gain(held(AGENT, r), n) for r, n in steps if n > 0)
    yield Production(name, "", "area", dict(draft.needs), rises, frozenset(held(AGENT, r) for r, n in steps if n < 0))
    for production in _ruled(game, (*area.rules, *area.on_enter, *area.on_exit), "area", name, context):
        yield _also(production, draft.needs)


def first_ticks(game: Game) -> dict[str, int]:
    """For each event the first tick at which it can run, itself or in place of another."""
    found = {}
    for name, event in game.events.items():
        ticks = [max(1, tick) for tick in event.at]
        if event.every > 0 and event.start <= event.until:
            ticks.append(max(1, event.start))
        found[name] = min(ticks, default=NEVER)
    # The earliest first, each down its fallbacks as far as it is the earliest there: every event is met once or twice.
    for name in sorted(found, key=found.__getitem__):
        after = game.events[name].fallback
        while after in found and found[name] < found[after]:
            found[after] = found[name]
            after = game.events[after].fallback
    return found


def bearers(game: Game, tag: str, promised: Set[Fact]) -> list[str]:
    """Types whose objects bear a tag, or may come to by one of the effects that `promises` tells of."""
    kinds = {AGENT: game.agent.tags} | {n: k.tags for n, k in game.objects.items()}
    marked = ("bears", tag, "") in promised
    return [n for n, tags in kinds.items() if marked or tag == f"type:{shown_as(game, n)}" or tag in tags]


def _events(game: Game) -> Iterator[Production]:
    ticks, targets_of, promised = first_ticks(game), dict[str, list[str]](), promises(game)
    for name, event in game.events.items():
        first = ticks[name]
        if first == NEVER:
            continue
        rule = Rule(name=name, when=event.when, then=event.then)
        if event.targets and event.targets not in targets_of:
            targets_of[event.targets] = bearers(game, event.targets, promised)
        targets: list[str | None] = [*targets_of[event.targets]] if event.targets else [None]
        for target in targets:
            place = None if target is None else shown_as(game, target)
            yield from _ruled(game, (rule,), "event", name, _context(game, None, place), first)


def _machine(game: Game, name: str, kind: ObjectType, bumps: bool) -> Iterator[Production]:
    place = shown_as(game, name)
    if kind.converter is not None:
        c = kind.converter
        if c.max_conversions != 0:
            needs = {held(place, r): n for r, n in c.inputs.items() if n > 0}
            made = tuple(Gain(held(place, r), n) for r, n in c.outputs.items() if n > 0)
            yield Production(place, "", "converter", needs, made, frozenset(needs), first=0, delay=c.cooldown)
        if bumps:
            taken = [Gain(held(AGENT, r), MOST, held(place, r), True) for r in c.outputs]
            put = [Gain(held(place, r), n * c.max_input, held(AGENT, r)) for r, n in c.inputs.items() if n > 0]
            yield Production(place, "", "machine", {}, (*taken, *put), frozenset(held(AGENT, r) for r in c.inputs))
    if kind.assembler is not None and bumps and kind.assembler.max_uses != 0:
        for recipe in kind.assembler.recipes:
            if recipe.min_agents > game.num_agents or len(recipe.vibes) > game.num_agents:
                continue
            asked = Counter(("vibe", "", vibe) for vibe in recipe.vibes)
            inputs = {held(AGENT, r): n for r, n in recipe.inputs.items() if n > 0}
            if kind.assembler.partial:
                inputs = dict.fromkeys(inputs, 1)  # after a part of its rest it asks for a part
            made = tuple(Gain(held(AGENT, r), n, None, True) for r, n in recipe.outputs.items() if n > 0)
            yield Production(place, "", "assembler", {**asked, **inputs}, made, frozenset(inputs))


# ---- looking through a game


def all_effects(game: Game) -> Iterator[Effect]:
    """Every effect a game speaks of."""
    kinds: list[ObjectType | AgentType] = [game.agent, *game.objects.values()]
    for kind in kinds:
        for rule in (*kind.on_use, *kind.on_tick):
            yield from rule.then
        for area in kind.areas:
            for rule in (*area.rules, *area.on_enter, *area.on_exit):
                yield from rule.then
    for rules in (game.on_tick, *game.on_tag_added.values(), *game.on_tag_removed.values()):
        for rule in rules:
            yield from rule.then
    for event in game.events.values():
        yield from event.then


def promises(game: Game) -> set[Fact]:
    """What the effects of a game promise."""
    return {fact for effect in all_effects(game) for fact in effect.promises()}
