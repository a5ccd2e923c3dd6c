"""Wording: reward terms, rules, recipes and events as short English, for people who read a game.

Who is meant by actor and target depends on where a rule stands, so a caller hands in the names. Conditions, effects and
values say their part themselves.
"""

from __future__ import annotations

from collections.abc import Mapping

from gridmill.grid.conditions import Holds
from gridmill.grid.effects import Effect, Take
from gridmill.grid.parts import Recipe, RewardTerm
from gridmill.grid.rules import Event, Rule
from gridmill.grid.text import Names, amounts_text

NO_CAP = 1e9  # the default cap of a reward term: as good as none


def describe(term: RewardTerm) -> str:
    """A reward term in words: `0.1 x ore, up to 1`."""
    cap = "" if term.cap >= NO_CAP else f", up to {term.cap:g}"
    mode = "" if term.mode == "change" else f" {term.mode}"
    return f"{term.weight:g} x {term.value.text()}{mode}{cap}"


# ---- rules


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
    productions = [_effect_text(effect, who, paid=any(effect is price for price in paid)) for effect in rule.then]
    when = ", ".join(condition.text(who) for condition in conditions)
    done = ", ".join(productions) or "nothing"
    return f"{done}, if {when}" if when else done


def _covers(held: Mapping[str, int], price: Mapping[str, int]) -> bool:
    return all(held.get(r, 0) >= n for r, n in price.items())


def _effect_text(effect: Effect, who: Names, *, paid: bool) -> str:
    """An effect in words; `paid`: what it takes must be there."""
    if paid and isinstance(effect, Take):
        return f"{who[effect.who]} pays {amounts_text(effect.amounts)}"
    return effect.text(who)


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
