"""Productions: everything in a game that can bring about or use up something, read off its rules, machines and clock.

A production says what must be there (`needs`), what it brings (`gains`) and what it uses up. Conditions about places,
chance or what is not there are left out, so a production is never harder than the rule it stands for: what follows from
productions is a bound.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from gridmill.grid.analysis.converters import MOST, counts_on
from gridmill.grid.parts import AgentType, ObjectType
from gridmill.grid.rules import (
    Add,
    AddStat,
    Align,
    Area,
    ChangeVibe,
    Clear,
    ClearTag,
    Condition,
    Effect,
    Freeze,
    Give,
    HasVibe,
    Holds,
    Periodic,
    Remove,
    Rule,
    SetTag,
    Spawn,
    Strike,
    Take,
    Transfer,
    Unalign,
)
from gridmill.grid.values import Constant

Fact = tuple[str, str, str]  # ("held", place, resource), ("vibe", "", name), ("aligned", type, ""), ...
How = Literal["bump", "assembler", "machine", "vibe", "attack", "converter", "tick", "area", "event", "tag"]
ACTS = ("bump", "assembler", "machine", "vibe", "attack")  # what takes an agent's action; the rest happens by itself
AGENT, TEAM = (
    "agent",
    "team",
)  # all agents are one place, and all stores of collectives: a bound need not tell them apart

if TYPE_CHECKING:
    from gridmill.grid.game import Game
NEVER = 10**9


@dataclass(frozen=True)
class Gain:
    """Something comes to be, or comes from where it was before (`source`)."""

    fact: Fact
    amount: int = 1
    source: Fact | None = None
    to_actor: bool = False  # who acts has it now, and can act with it in the next tick only


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


def held(place: str, resource: str) -> Fact:
    return ("held", place, resource)


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
        found.append(Production("attack", "", "attack", cost, _loot(game), frozenset(cost)))
    counts, spawned = counts_on(game.map), _spawned(game)
    for name, kind in game.objects.items():
        if counts[name] > 0 or name in spawned:
            there = {} if counts[name] > 0 else {("there", name, ""): 1}
            for production in [*_of_kind(game, name, kind, bumps), *_machine(game, name, kind, bumps)]:
                found.append(_also(production, there))
    found += _events(game)
    everyone = [AGENT, *(name for name in game.objects if counts[name] > 0 or name in spawned)]
    for rules in (*game.on_tag_added.values(), *game.on_tag_removed.values()):
        for name in everyone:
            found += _ruled(game, rules, "tag", name, _scene(game, name, name))
    for rule in game.on_tick:
        found += _ruled(game, (rule,), "tick", "game", _scene(game, None, None))
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

Scene = Mapping[str, str | None]  # who stands for actor, target and their collectives: a place, or nobody


def _scene(game: Game, actor: str | None, target: str | None) -> Scene:
    def team(who: str | None) -> str | None:
        return TEAM if who is not None and game.collectives else None

    return {"actor": actor, "target": target, "actor_collective": team(actor), "target_collective": team(target)}


def _of_kind(game: Game, name: str, kind: ObjectType | AgentType, bumps: bool) -> Iterator[Production]:
    place = shown_as(game, name)
    if bumps:
        bumped = _ruled(game, kind.on_use, "bump", place, _scene(game, AGENT, place))
        given = {gain.fact for production in bumped for gain in production.gains}
        for production in bumped:
            # With "all" one bump runs several rules, and a later one may use what an earlier one brought.
            inside = given if kind.use == "all" else set()
            needs = {fact: n for fact, n in production.needs.items() if fact not in inside}
            gains = tuple(_without_source(gain) if gain.source in inside else gain for gain in production.gains)
            yield Production(
                production.where, production.name, "bump", needs, gains, production.losses, production.first
            )
    yield from _ruled(game, kind.on_tick, "tick", place, _scene(game, place, place))
    for area in kind.areas:
        yield from _area(game, place, area)


def _without_source(gain: Gain) -> Gain:
    return Gain(gain.fact, gain.amount, None, gain.to_actor)


def _ruled(game: Game, rules: Sequence[Rule], how: How, where: str, scene: Scene, first: int = 1) -> list[Production]:
    return [production for rule in rules if (production := _deed(game, rule, how, where, scene, first)) is not None]


def _deed(game: Game, rule: Rule, how: How, where: str, scene: Scene, first: int) -> Production | None:
    """A rule as a production; None where somebody it speaks of is never there."""
    needs: Counter[Fact] = Counter()
    for condition in rule.when:
        if not _condition(condition, scene, needs):
            return None
        if isinstance(condition, Periodic):
            first = max(first, condition.start)
    gains: list[Gain] = []
    losses: set[Fact] = set()
    for effect in rule.then:
        if not _effect(game, effect, scene, needs, gains, losses):
            return None
    if how == "bump":
        gains = [_to_actor(gain) if gain.fact[1] == AGENT != where else gain for gain in gains]
    return Production(where, rule.name, how, dict(needs), tuple(gains), frozenset(losses), first)


def _to_actor(gain: Gain) -> Gain:
    return Gain(gain.fact, gain.amount, gain.source, True)


def _condition(condition: Condition, scene: Scene, needs: Counter[Fact]) -> bool:
    """Adds what a condition asks for; False if it asks somebody who is never there."""
    if isinstance(condition, Holds):
        place = scene[condition.who]
        for r, n in condition.amounts.items():
            if n > 0 and place is not None:
                needs[held(place, r)] = max(needs[held(place, r)], n)
        return place is not None
    if isinstance(condition, HasVibe) and scene[condition.who] == AGENT:
        needs[("vibe", "", condition.vibe)] = 1
    return True


def _effect(
    game: Game, effect: Effect, scene: Scene, needs: Counter[Fact], gains: list[Gain], losses: set[Fact]
) -> bool:
    """Adds what an effect asks for and does; False if it is about somebody who is never there."""
    if isinstance(effect, Transfer):
        return _transfer(effect, scene, needs, gains, losses)
    if isinstance(effect, Strike):
        gains += _loot(game)
        return scene["actor"] == AGENT == scene["target"]
    if isinstance(effect, AddStat):
        gains.append(Gain(("stat", "agent" if effect.of in ("actor", "target") else effect.of, effect.name)))
        who = {"collective": "actor_collective"}.get(effect.of, effect.of)
        return effect.of == "game" or scene[who] is not None
    place = scene[getattr(effect, "near" if isinstance(effect, Spawn) else "who", "target")]
    if place is None:
        return False
    if isinstance(effect, Give):
        gains += [Gain(held(place, r), n) for r, n in effect.amounts.items() if n > 0]
    elif isinstance(effect, Take):
        losses |= {held(place, r) for r, n in effect.amounts.items() if n > 0}
    elif isinstance(effect, Clear):
        losses |= {held(place, r) for r in effect.resources or game.resources}
    elif isinstance(effect, Add):
        fixed = effect.value.value if isinstance(effect.value, Constant) else None
        if fixed is None or fixed > 0:
            gains.append(Gain(held(place, effect.resource), MOST if fixed is None else max(1, round(fixed))))
        if fixed is None or fixed < 0:
            losses.add(held(place, effect.resource))
    else:
        gains += _changes_of_state(effect, scene, place)
    return True


def _changes_of_state(effect: Effect, scene: Scene, place: str) -> Iterator[Gain]:
    """What effects other than those on amounts bring about."""
    by_agent = scene["actor"] == AGENT
    if isinstance(effect, Align):
        yield Gain(("aligned", place, ""))
        if by_agent:
            yield Gain(("aligned_by_agent", place, ""))
    elif isinstance(effect, ChangeVibe) and place == AGENT:
        yield Gain(("vibe", "", effect.vibe))
    elif isinstance(effect, Unalign):
        yield Gain(("unaligned", place, ""))
        if by_agent:
            yield Gain(("scrambled_by_agent", place, ""))
    elif isinstance(effect, SetTag | ClearTag):
        yield Gain(("tag", effect.tag, ""))
    elif isinstance(effect, Spawn):
        yield Gain(("there", effect.object, ""))
    elif isinstance(effect, Remove):
        yield Gain(("gone", place, ""))
    elif isinstance(effect, Freeze) and place == AGENT:
        yield Gain(("frozen", AGENT, ""))


def _transfer(effect: Transfer, scene: Scene, needs: Counter[Fact], gains: list[Gain], losses: set[Fact]) -> bool:
    """Each resource comes if the source holds it; where only one can move, the whole rule waits for it."""
    source, to = scene[effect.source], scene[effect.to]
    if source is None or to is None:
        return False
    given = {gain.fact for gain in gains}
    moves = {r: n for r, n in effect.amounts.items() if n > 0}
    for r, n in moves.items():
        before = held(source, r)
        gains.append(Gain(held(to, r), n, None if before in given else before))
        losses.add(before)
        if len(moves) == 1 and before not in given:
            needs[before] = max(needs[before], 1)
    if effect.remove_empty:
        gains.append(Gain(("gone", source, "")))
    return bool(moves)


def _loot(game: Game) -> tuple[Gain, ...]:
    """What a hit can bring: everything somebody else holds, and a target that cannot act."""
    loot = [Gain(held(AGENT, r), MOST, held(AGENT, r)) for r in game.resources]
    return (*loot, Gain(("frozen", AGENT, "")), Gain(("hit", AGENT, "")))


# ---- areas, events, machines


def _area(game: Game, name: str, area: Area) -> Iterator[Production]:
    if area.affects == "self" and name != AGENT:
        return
    scene = _scene(game, name, AGENT)
    needs: Counter[Fact] = Counter()
    if not all(_condition(condition, scene, needs) for condition in area.when):
        return
    steps = [(r, n) for changes in (area.changes, area.enter, area.exit) for r, n in changes.items()]
    rises = tuple(Gain(held(AGENT, r), n) for r, n in steps if n > 0)
    yield Production(name, "", "area", dict(needs), rises, frozenset(held(AGENT, r) for r, n in steps if n < 0))
    for production in _ruled(game, (*area.rules, *area.on_enter, *area.on_exit), "area", name, scene):
        yield _also(production, needs)


def first_tick(game: Game, name: str, asked: frozenset[str] = frozenset()) -> int:
    """The first tick at which an event can run, itself or in place of another."""
    event = game.events[name]
    ticks = [max(1, tick) for tick in event.at]
    if event.every > 0 and event.start <= event.until:
        ticks.append(max(1, event.start))
    for other, one in game.events.items():
        if one.fallback == name and other not in asked:
            ticks.append(first_tick(game, other, asked | {name}))
    return min(ticks, default=NEVER)


def bearers(game: Game, tag: str) -> list[str]:
    """Types whose objects bear a tag, or may come to."""
    kinds = {AGENT: game.agent.tags} | {n: k.tags for n, k in game.objects.items()}
    marked = any(isinstance(e, SetTag) and e.tag == tag for e in all_effects(game))
    return [n for n, tags in kinds.items() if marked or tag == f"type:{shown_as(game, n)}" or tag in tags]


def _events(game: Game) -> Iterator[Production]:
    for name, event in game.events.items():
        first = first_tick(game, name)
        if first == NEVER:
            continue
        rule = Rule(name=name, when=event.when, then=event.then)
        targets: list[str | None] = [*bearers(game, event.targets)] if event.targets else [None]
        for target in targets:
            place = None if target is None else shown_as(game, target)
            yield from _ruled(game, (rule,), "event", name, _scene(game, None, place), first)


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


def _spawned(game: Game) -> set[str]:
    return {effect.object for effect in all_effects(game) if isinstance(effect, Spawn)}
