"""Stations made of rules: chests that obey the vibe of whoever bumps into them, hubs that store for a collective.

Everything here is an ordinary `ObjectType`; a game that wants another station writes its rules the same way. What is
stored or fetched is limited by what is there and by the room for it, and a bump that moves nothing fails.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from gridmill.grid.conditions import HasVibe, SameCollective
from gridmill.grid.effects import Transfer
from gridmill.grid.parts import Limit, ObjectType
from gridmill.grid.rules import Area, Rule


def chest(
    deposits: Mapping[str, Mapping[str, int]],
    withdrawals: Mapping[str, Mapping[str, int]],
    inventory: Mapping[str, int] | None = None,
    limits: Sequence[Limit] = (),
) -> ObjectType:
    """A chest by vibe: `{vibe: {resource: at most so many in one bump}}` for what is put in and what is taken out."""
    rules = [
        Rule(
            name=f"deposit with {vibe}",
            when=(HasVibe(vibe=vibe),),
            then=(Transfer(source="actor", to="target", amounts=amounts),),
        )
        for vibe, amounts in deposits.items()
    ]
    rules += [
        Rule(
            name=f"withdraw with {vibe}",
            when=(HasVibe(vibe=vibe),),
            then=(Transfer(source="target", to="actor", amounts=amounts),),
        )
        for vibe, amounts in withdrawals.items()
    ]
    return ObjectType(inventory=inventory or {}, limits=tuple(limits), on_use=tuple(rules))


def hub(
    collective: str,
    deposits: Mapping[str, int],
    withdrawals: Mapping[str, int] | None = None,
    on_use: Sequence[Rule] = (),
    areas: Sequence[Area] = (),
    inventory: Mapping[str, int] | None = None,
) -> ObjectType:
    """A place where agents of a collective add to its store, draw from it when they have nothing to add, and do what
    further rules `on_use` say."""
    rules = [team_deposit(deposits)]
    if withdrawals:
        drawn = Transfer(source="actor_collective", to="actor", amounts=withdrawals)
        rules.append(Rule(name="withdraw", when=(SameCollective(),), then=(drawn,)))
    return ObjectType(
        collective=collective,
        inventory=inventory or {},
        on_use=(*rules, *on_use),
        areas=tuple(areas),
    )


def team_deposit(amounts: Mapping[str, int]) -> Rule:
    """At an object of its own collective an agent hands over to the common store."""
    handed = Transfer(source="actor", to="actor_collective", amounts=amounts)
    return Rule(name="deposit", when=(SameCollective(),), then=(handed,))
