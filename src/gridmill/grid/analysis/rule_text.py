"""Wording: game values, reward terms, rules, recipes and events as short English, for people who read a game.

Who is meant by actor and target depends on where a rule stands, so a caller hands in the names.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from gridmill.grid.parts import Recipe, RewardTerm
from gridmill.grid.rules import Aligned, Condition, Effect, Event, Holds, Rule, Take
from gridmill.grid.values import Constant, Count, GameValue, Index, Inventory, Ratio, Stat

NO_CAP = 1e9  # the default cap of a reward term: as good as none
Names = Mapping[str, str]  # actor, target and their collectives in words


def names(actor: str, target: str) -> Names:
    """How the two sides of a rule are called."""
    its = "its team" if target == "it" else f"{target}'s team"
    return {"actor": actor, "target": target, "actor_collective": "team", "target_collective": its}


# ---- values


def describe(term: RewardTerm) -> str:
    """A reward term in words: `0.1 x ore, up to 1`."""
    cap = "" if term.cap >= NO_CAP else f", up to {term.cap:g}"
    mode = "" if term.mode == "change" else f" {term.mode}"
    return f"{term.weight:g} x {value_text(term.value)}{mode}{cap}"


def value_text(value: GameValue) -> str:
    """A game value in words."""
    if isinstance(value, Inventory):
        whose = {"actor": "", "target": "target's ", "collective": f"{value.collective or 'team'}'s "}
        return whose[value.of] + value.resource
    if isinstance(value, Stat):
        whose = {"agent": "", "collective": f"{value.collective or 'team'}'s ", "game": "game's "}
        return whose[value.of] + value.name
    if isinstance(value, Constant):
        return f"{value.value:g}"
    if isinstance(value, Index):
        return f"(agent index mod {value.every} = {value.place})"
    if isinstance(value, Count):
        counted = tag_text(value.tag) + (f" of {value.collective}" if value.collective else "")
        return f"{value.resource} in {counted}" if value.resource else f"count({counted})"
    parts = [value_text(part) for part in value.values]
    return " / ".join(parts) if isinstance(value, Ratio) else f"{value.kind}({', '.join(parts)})"


def tag_text(tag: str) -> str:
    """`chest` for the tag of a type, `tag red` for others."""
    return tag.removeprefix("type:") if tag.startswith("type:") else f"tag {tag}"


# ---- rules


def amounts_text(amounts: Mapping[str, int], sign: str = "") -> str:
    """`1 ore, 2 heart`, or `10 each of a, b, c`."""
    if not amounts:
        return "nothing"
    if len(amounts) > 2 and len(set(amounts.values())) == 1:
        return f"{next(iter(amounts.values())):{sign}d} each of {', '.join(amounts)}"
    return ", ".join(f"{n:{sign}d} {r}" for r, n in amounts.items())


def rule_text(rule: Rule, who: Names) -> str:
    """What a rule does, and under which conditions; what must be there and is taken is paid."""
    conditions, prices = list(rule.when), [effect for effect in rule.then if isinstance(effect, Take)]
    paid = []
    for price in prices:
        for place, one in enumerate(conditions):
            if isinstance(one, Holds) and one.who == price.who and _covers(one.amounts, price.amounts):
                paid.append(price)
                rest = {r: n for r, n in one.amounts.items() if n != price.amounts.get(r)}
                conditions[place : place + 1] = [Holds(who=one.who, amounts=rest)] if rest else []
                break
    productions = [effect_text(effect, who, paid=any(effect is price for price in paid)) for effect in rule.then]
    when = ", ".join(condition_text(condition, who) for condition in conditions)
    done = ", ".join(productions) or "nothing"
    return f"{done}, if {when}" if when else done


def _covers(held: Mapping[str, int], price: Mapping[str, int]) -> bool:
    return all(held.get(r, 0) >= n for r, n in price.items())


def condition_text(condition: Condition, who: Names) -> str:
    """A condition in words."""
    return _CONDITIONS[condition.kind](condition, who)


def _all(conditions: tuple[Condition, ...], who: Names, joint: str) -> str:
    return joint.join(condition_text(condition, who) for condition in conditions)


def _near(c: Any, who: Names) -> str:
    inner = f" ({_all(c.when, names(who['actor'], 'it'), ', ')})" if c.when else ""
    return f"{who[c.who]} within {c.radius} of {tag_text(c.tag)}{inner}"


def _aligned(c: Any, who: Names) -> str:
    return f"{who[c.who]} is of {c.to}" if c.to else f"{who[c.who]} is of a team"


def _not(c: Any, who: Names) -> str:
    one = c.conditions[0] if len(c.conditions) == 1 else None
    if isinstance(one, Aligned):
        return f"{who[one.who]} is not of {one.to}" if one.to else f"{who[one.who]} is of no team"
    if isinstance(one, Holds) and list(one.amounts.values()) == [1]:
        return f"{who[one.who]} has no {next(iter(one.amounts))}"
    return f"not ({_all(c.conditions, who, ', ')})"


# Every kind of condition, as the models in `rules` name them; `c` is the condition.
_CONDITIONS: Mapping[str, Callable[[Any, Names], str]] = {
    "holds": lambda c, who: f"{who[c.who]} has {amounts_text(c.amounts)}",
    "has_vibe": lambda c, who: f"{who[c.who]} shows {c.vibe}",
    "has_tag": lambda c, who: f"{who[c.who]} bears {c.tag}",
    "same_collective": lambda c, who: "same team",
    "other_collective": lambda c, who: "other team",
    "aligned": _aligned,
    "within": lambda c, who: f"within {c.distance}",
    "near": _near,
    "periodic": lambda c, who: f"every {c.every} ticks from {c.start}",
    "chance": lambda c, who: f"by chance {c.probability:g}",
    "at_least": lambda c, who: f"{value_text(c.value)} >= {c.number:g}",
    "empty": lambda c, who: f"{who[c.who]} has no {' or '.join(c.resources) or 'thing'}",
    "not": _not,
    "any": lambda c, who: f"any of ({_all(c.conditions, who, ', ')})",
}


def effect_text(effect: Effect, who: Names, *, paid: bool = False) -> str:
    """An effect in words; `paid`: what it takes must be there."""
    if paid and isinstance(effect, Take):
        return f"{who[effect.who]} pays {amounts_text(effect.amounts)}"
    return _EFFECTS[effect.kind](effect, who)


def _transfer(e: Any, who: Names) -> str:
    gone = ", empty it leaves the map" if e.remove_empty else ""
    return f"up to {amounts_text(e.amounts)} from {who[e.source]} to {who[e.to]}{gone}"


# Every kind of effect, as the models in `rules` name them; `e` is the effect.
_EFFECTS: Mapping[str, Callable[[Any, Names], str]] = {
    "give": lambda e, who: f"{who[e.who]} gets {amounts_text(e.amounts)}",
    "take": lambda e, who: f"{who[e.who]} loses {amounts_text(e.amounts)}",
    "transfer": _transfer,
    "clear": lambda e, who: f"{who[e.who]} loses all {', '.join(e.resources)}".rstrip(),
    "add": lambda e, who: f"{who[e.who]} gets as much {e.resource} as {value_text(e.value)}",
    "set_tag": lambda e, who: f"{who[e.who]} bears {e.tag}",
    "clear_tag": lambda e, who: f"{who[e.who]} bears {e.tag} no longer",
    "align": lambda e, who: f"{who[e.who]} joins {e.to or 'the team'}",
    "unalign": lambda e, who: f"{who[e.who]} leaves its team",
    "change_vibe": lambda e, who: f"{who[e.who]} shows {e.vibe}",
    "freeze": lambda e, who: f"{who[e.who]} is frozen for {e.ticks} ticks",
    "move": lambda e, who: f"{who[e.who]} moves {e.direction}",
    "push": lambda e, who: f"{who['target']} is pushed up to {e.distance} cells",
    "swap_places": lambda e, who: f"{who['actor']} and {who['target']} change places",
    "relocate": lambda e, who: f"{who[e.who]} is put {'where it started' if e.to == 'start' else 'anywhere'}",
    "spawn": lambda e, who: f"{e.object} appears",
    "remove": lambda e, who: f"{who[e.who]} leaves the map",
    "strike": lambda e, who: f"{who['target']} is hit",
    "add_stat": lambda e, who: f"{e.name} {e.amount:+g}",
}


# ---- recipes and the clock


def recipe_text(recipe: Recipe) -> str:
    """`20 energy -> 18 silicon, 2 agents around`."""
    inputs = f"{amounts_text(recipe.inputs)} -> " if recipe.inputs else ""
    around = f", {recipe.min_agents} agents around" if recipe.min_agents > 1 else ""
    vibes = ", ".join(f"{recipe.vibes.count(v)} {v}" for v in dict.fromkeys(recipe.vibes))
    return f"{inputs}{amounts_text(recipe.outputs)}{around}" + (f", showing {vibes}" if vibes else "")


def clock_text(event: Event) -> str:
    """When an event runs: `at 10`, `every 200 from 0`."""
    parts = [f"at {', '.join(map(str, event.at))}"] if event.at else []
    if event.every:
        until = f" to {event.until}" if event.until < NO_CAP else ""
        parts.append(f"every {event.every} from {event.start}{until}")
    return " and ".join(parts) or "only as a fallback"
