"""Supplies: who provides each resource and who uses it, beside converters, in a few words each.

It names rules and places; what a rule does in full is in `explain_rulebook`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING

from gridmill.grid.analysis.converters import Converters
from gridmill.grid.analysis.productions import TEAM, Production, shown_as
from gridmill.grid.facts import AGENT

if TYPE_CHECKING:
    from gridmill.grid.game import Game

Words = tuple[str, ...]


def sources(game: Game, productions: Iterable[Production], converters: Converters) -> dict[str, Words]:
    """For each resource where it comes from beside converters: productions that bring it, what is there at first."""
    of = _by_resource(productions, _provided)
    return {r: (*_by_place(of.get(r, ())), *_at_the_start(game, converters, r)) for r in game.resources}


def uses(game: Game, productions: Iterable[Production], converters: Converters) -> dict[str, Words]:
    """For each resource what it is spent on."""
    of = _by_resource(productions, _spent)
    found = {}
    for r in game.resources:
        paid = [f"moves and uses ({game.move_cost[r]} each)"] if game.move_cost.get(r) else []
        if game.attack is not None and game.attack.cost.get(r):
            paid.append(f"attack ({game.attack.cost[r]})")
        found[r] = (*converters.consumers(r), *paid, *_by_place(of.get(r, ())))
    return found


def _by_resource(
    productions: Iterable[Production], which: Callable[[Production], set[str]]
) -> dict[str, list[Production]]:
    """The productions of each resource, in their order."""
    found: dict[str, list[Production]] = {}
    for production in productions:
        for resource in which(production):
            found.setdefault(resource, []).append(production)
    return found


def _provided(production: Production) -> set[str]:
    """Resources it brings new units of, or brings from elsewhere to an agent; of machines, those yet to appear."""
    if production.how in ("converter", "attack") or (production.how == "machine" and not _appears(production)):
        return set()
    gains = [gain for gain in production.gains if gain.fact[0] == "held"]
    return {gain.fact[2] for gain in gains if gain.source is None or (gain.fact[1] == AGENT != gain.source[1])}


def _appears(production: Production) -> bool:
    return any(fact[0] == "there" for fact in production.needs)


def _spent(production: Production) -> set[str]:
    """Resources that an agent or a team loses, and not to an agent."""
    if production.how in ("converter", "machine", "attack"):
        return set()
    lost = {fact[2] for fact in production.losses if fact[0] == "held" and fact[1] in (AGENT, TEAM)}
    return lost - {gain.fact[2] for gain in production.gains if gain.fact[:2] == ("held", AGENT)}


def _by_place(productions: Iterable[Production]) -> list[str]:
    """`c:hub (get heart, make heart)`; places with the same rules together."""
    rules: dict[tuple[str, str], list[str]] = {}
    for production in productions:
        named = rules.setdefault((production.how, production.where), [])
        if production.name and production.name not in named and production.how != "event":
            named.append(production.name)
    places: dict[tuple[str, Words], list[str]] = {}
    for (how, where), named in rules.items():
        places.setdefault((how, tuple(named)), []).append("agents" if where == AGENT else where)
    return [_place_text(how, ", ".join(where), ", ".join(named)) for (how, named), where in places.items()]


def _place_text(how: str, where: str, named: str) -> str:
    rules = f" ({named})" if named else ""
    says = {
        "tick": f"{where} each tick{rules}",
        "area": f"area of {where}{rules}",
        "event": f"event {where}",
        "tag": f"{where} by its tag{rules}",
        "machine": f"{where}, once it appears",
    }
    return says.get(how, where + rules)


def _at_the_start(game: Game, converters: Converters, resource: str) -> list[str]:
    held_by: dict[str, int] = {}
    if game.agent.inventory.get(resource):
        held_by["agents"] = game.agent.inventory[resource]
    for name, kind in game.objects.items():
        if converters.counts.get(name) and kind.inventory.get(resource):
            held_by[shown_as(game, name)] = kind.inventory[resource]
    held_by |= _stores(game, resource)
    return [f"at the start {', '.join(f'{who} {n}' for who, n in held_by.items())}"] if held_by else []


def _stores(game: Game, resource: str) -> Mapping[str, int]:
    teams = game.collectives.items()
    return {f"store of {name}": team.inventory[resource] for name, team in teams if team.inventory.get(resource)}
