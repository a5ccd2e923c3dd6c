"""Facts: what can become true in a game, in the words that rules say what they need, bring and use up with.

The models of `rules` fill in a `Draft`; `gridmill.grid.analysis` reads productions off it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

Fact = tuple[str, str, str]  # ("held", place, resource), ("vibe", "", name), ("aligned", type, ""), ...
RuleContext = Mapping[str, str | None]  # who stands for actor, target and their collectives: a place, or nobody
AGENT = "agent"  # all agents are one place: a bound need not tell them apart
MOST = 65535  # units an inventory can hold


def held(place: str, resource: str) -> Fact:
    return ("held", place, resource)


@dataclass(frozen=True)
class Gain:
    """Something comes to be, or comes from where it was before (`source`)."""

    fact: Fact
    amount: int = 1
    source: Fact | None = None
    to_actor: bool = False  # who acts has it now, and can act with it in the next tick only


@dataclass
class Draft:
    """What a rule needs, brings and uses up, as far as its conditions and effects have said."""

    context: RuleContext
    resources: Sequence[str]  # all of the game
    needs: Counter[Fact] = field(default_factory=Counter)
    gains: list[Gain] = field(default_factory=list)
    losses: set[Fact] = field(default_factory=set)
    first: int = 1  # not before this tick

    def need(self, fact: Fact, amount: int = 1) -> None:
        self.needs[fact] = max(self.needs[fact], amount)

    def gain(self, fact: Fact, amount: int = 1, source: Fact | None = None) -> None:
        self.gains.append(Gain(fact, amount, source))


def loot(resources: Sequence[str]) -> tuple[Gain, ...]:
    """What a hit can bring: everything somebody else holds, and a target that cannot act."""
    taken = [Gain(held(AGENT, r), MOST, held(AGENT, r)) for r in resources]
    return (*taken, Gain(("frozen", AGENT, "")), Gain(("hit", AGENT, "")))
