"""Supplies: who provides each resource and who uses it, beside converters, in a few words each.

Called by `record`. It names rules and places; what a rule does in full is in `rulebook`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from gridmill.grid.analysis.converters import Plant
from gridmill.grid.analysis.productions import AGENT, TEAM, Deed, held, shown_as

if TYPE_CHECKING:
    from gridmill.grid.game import Game

Words = tuple[str, ...]


def sources(game: Game, deeds: Iterable[Deed], plant: Plant) -> dict[str, Words]:
    """For each resource where it comes from, converters left out: deeds that bring it, then what is there at first."""
    deeds = list(deeds)
    return {
        r: (*_by_place(d for d in deeds if _provides(d, r)), *_at_the_start(game, plant, r)) for r in game.resources
    }


def uses(game: Game, deeds: Iterable[Deed], plant: Plant) -> dict[str, Words]:
    """For each resource what it is spent on."""
    deeds = list(deeds)
    found = {}
    for r in game.resources:
        paid = [f"moves and uses ({game.move_cost[r]} each)"] if game.move_cost.get(r) else []
        if game.attack is not None and game.attack.cost.get(r):
            paid.append(f"attack ({game.attack.cost[r]})")
        found[r] = (*plant.consumers(r), *paid, *_by_place(d for d in deeds if _spends(d, r)))
    return found


def _provides(deed: Deed, resource: str) -> bool:
    """It brings new units of a resource, or brings it from elsewhere to an agent; of machines, those yet to appear."""
    if deed.how in ("converter", "attack") or (deed.how == "machine" and not _appears(deed)):
        return False
    gains = [gain for gain in deed.gains if gain.fact[0] == "held" and gain.fact[2] == resource]
    return any(gain.source is None or (gain.fact[1] == AGENT != gain.source[1]) for gain in gains)


def _appears(deed: Deed) -> bool:
    return any(fact[0] == "there" for fact in deed.needs)


def _spends(deed: Deed, resource: str) -> bool:
    """An agent or a team loses it, and not to an agent."""
    if deed.how in ("converter", "machine", "attack"):
        return False
    to_agent = any(gain.fact == held(AGENT, resource) for gain in deed.gains)
    return not to_agent and bool(deed.losses & {held(AGENT, resource), held(TEAM, resource)})


def _by_place(deeds: Iterable[Deed]) -> list[str]:
    """`c:hub (get heart, make heart)`; places with the same rules together."""
    rules: dict[tuple[str, str], list[str]] = {}
    for deed in deeds:
        named = rules.setdefault((deed.how, deed.where), [])
        if deed.name and deed.name not in named and deed.how != "event":
            named.append(deed.name)
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


def _at_the_start(game: Game, plant: Plant, resource: str) -> list[str]:
    held_by: dict[str, int] = {}
    if game.agent.inventory.get(resource):
        held_by["agents"] = game.agent.inventory[resource]
    for name, kind in game.objects.items():
        if plant.counts.get(name) and kind.inventory.get(resource):
            held_by[shown_as(game, name)] = kind.inventory[resource]
    held_by |= _stores(game, resource)
    return [f"at the start {', '.join(f'{who} {n}' for who, n in held_by.items())}"] if held_by else []


def _stores(game: Game, resource: str) -> Mapping[str, int]:
    teams = game.collectives.items()
    return {f"store of {name}": team.inventory[resource] for name, team in teams if team.inventory.get(resource)}
