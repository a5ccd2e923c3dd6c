"""Rulebook: what a game's rules do, object by object, in lines a person can read.

Words for single conditions and effects stand beside their models.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from gridmill.grid.analysis.productions import shown_as
from gridmill.grid.analysis.rule_text import clock_text, recipe_text, rule_text
from gridmill.grid.facts import AGENT
from gridmill.grid.parts import AgentType, Assembler, ObjectType
from gridmill.grid.rules import Area, Event, Rule
from gridmill.grid.text import Names, amounts_text, names, tag_text

if TYPE_CHECKING:
    from gridmill.grid.game import Game

Lines = tuple[str, ...]
BUMP, ITSELF, INSIDE, AGENTS = names("agent", "it"), names("it", "it"), names("it", "agent"), names("agent", "agent")


def bumps(game: Game) -> dict[str, Lines]:
    """What a bump into each type does; converters stand among the resources."""
    found: dict[str, Lines] = {}
    for name, kind in _kinds(game):
        lines = [*_named(kind.on_use, names("agent", "other agent") if name == AGENT else BUMP)]
        if isinstance(kind, ObjectType) and kind.assembler is not None:
            lines += _assembler(kind.assembler)
        if len(lines) > 1 and kind.use == "all" and kind.on_use:
            lines.insert(0, "every rule that applies:")
        if lines:
            found[name] = tuple(lines)
    return found


def by_itself(game: Game) -> Lines:
    """What happens in every tick, around objects, and when tags change."""
    lines: list[str] = []
    for name, kind in _kinds(game):
        whose = "agents" if name == AGENT else name
        lines += [f"{whose} each tick: {line}" for line in _named(kind.on_tick, AGENTS if name == AGENT else ITSELF)]
        lines += [f"area of {whose}, {line}" for area in kind.areas for line in _area(area)]
    lines += [f"each tick: {line}" for line in _named(game.on_tick, ITSELF)]
    for how, tags in (("added", game.on_tag_added), ("removed", game.on_tag_removed)):
        lines += [f"tag {tag} {how}: {line}" for tag, rules in tags.items() for line in _named(rules, ITSELF)]
    return tuple(dict.fromkeys(lines))


def events(game: Game) -> Lines:
    """What the clock does."""
    return tuple(f"{name} {clock_text(event)}: {_event(event)}" for name, event in game.events.items())


def collectives(game: Game) -> Lines:
    """Who belongs to each team, and what it owns, at the start."""
    found = []
    for team, one in game.collectives.items():
        members = ["agents"] if team in game.agent.collectives else []
        members += [name for name, kind in game.objects.items() if kind.collective == team]
        found.append(f"{team}: {', '.join(members) or 'nobody'} at the start; store: {amounts_text(one.inventory)}")
    return tuple(found)


def _kinds(game: Game) -> Iterator[tuple[str, ObjectType | AgentType]]:
    """Agents and types, variants of one type once where they do the same."""
    yield AGENT, game.agent
    said: dict[str, ObjectType] = {}
    for name, kind in game.objects.items():
        shown = shown_as(game, name)
        other = said.setdefault(shown, kind)
        same = (other.on_use, other.on_tick, other.areas, other.assembler)
        if other is kind or same != (kind.on_use, kind.on_tick, kind.areas, kind.assembler):
            yield (shown if other is kind else name), kind


def _named(rules: Iterable[Rule], who: Names) -> list[str]:
    return [f"{rule.name}: {rule_text(rule, who)}" if rule.name else rule_text(rule, who) for rule in rules]


def _assembler(assembler: Assembler) -> Iterator[str]:
    recipes = [recipe_text(recipe) for recipe in assembler.recipes]
    facts = [f"then rests {assembler.cooldown} ticks"] if assembler.cooldown else []
    facts += ["usable earlier in part"] if assembler.partial and assembler.cooldown else []
    facts += [f"{assembler.max_uses} uses"] if assembler.max_uses >= 0 else []
    yield from recipes if len(recipes) > 1 else [", ".join([*recipes, *facts])]
    if len(recipes) > 1 and facts:
        yield ", ".join(facts)


def _area(area: Area) -> Iterator[str]:
    who = {"friend": "its team", "enemy": "other teams", "all": "all agents", "self": "itself"}[area.affects]
    where = f"within {area.radius}, {who}" + (", on cells its team holds" if area.territory else "")
    if area.when:
        where += f", {rule_text(Rule(when=area.when), INSIDE).removeprefix('nothing, ')}"
    for how, changes in (("", area.changes), ("on entering ", area.enter), ("on leaving ", area.exit)):
        if changes:
            yield f"{where}: {how}{_changes(changes)}"
    for how, rules in (("", area.rules), ("on entering ", area.on_enter), ("on leaving ", area.on_exit)):
        for line in _named(rules, INSIDE):
            yield f"{where}: {how}{line}"


def _changes(changes: Mapping[str, int]) -> str:
    return amounts_text(changes, "+")


def _event(event: Event) -> str:
    number = f"{event.max_targets} " if event.max_targets else ""
    target = f"{number}{tag_text(event.targets)}: " if event.targets else ""
    done = rule_text(Rule(when=event.when, then=event.then), ITSELF)
    instead = f"; if no target, {event.fallback}" if event.fallback else ""
    return f"{target}{done}{instead}"
