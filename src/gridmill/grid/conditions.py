"""Conditions: what a rule asks. Each says about itself what analysis needs: its text, and what must be there.

The native side is `native/grid/rules/conditions.hpp`; a test holds the two equal.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from gridmill.config import Config, Frozen
from gridmill.grid.facts import AGENT, Draft, held
from gridmill.grid.text import Names, amounts_text, names, plain_text, tag_text
from gridmill.grid.values import GameValue

__all__ = [
    "Aligned",
    "AnyOf",
    "AtLeast",
    "Chance",
    "Condition",
    "Empty",
    "HasTag",
    "HasVibe",
    "Holds",
    "Near",
    "Not",
    "OtherCollective",
    "Periodic",
    "SameCollective",
    "Within",
]

Amounts = Frozen[str, Annotated[int, Field(ge=0, le=65535)]]
Someone = Literal["actor", "target"]
Holder = Literal["actor", "target", "actor_collective", "target_collective"]
Metric = Literal["chebyshev", "euclid"]
Radius = Annotated[int, Field(ge=0, le=4096)]


class ConditionBase(Config):
    """What analysis asks a condition; what it is not told it does not count on."""

    kind: str

    def text(self, who: Names) -> str:
        """In words, for people who read a game."""
        return plain_text(self.tree())

    def text_of_not(self, who: Names) -> str:
        """In words, if it must not hold."""
        return f"not ({self.text(who)})"

    def ask(self, draft: Draft) -> bool:
        """Adds what it needs; False if it asks somebody who is never there."""
        return True


def _all(conditions: tuple[Condition, ...], who: Names) -> str:
    return ", ".join(condition.text(who) for condition in conditions)


class Holds(ConditionBase):
    """An agent, object or collective holds at least these amounts."""

    kind: Literal["holds"] = "holds"
    who: Holder = "actor"
    amounts: Amounts

    def text(self, who: Names) -> str:
        return f"{who[self.who]} has {amounts_text(self.amounts)}"

    def text_of_not(self, who: Names) -> str:
        one = list(self.amounts.values()) == [1]
        return f"{who[self.who]} has no {next(iter(self.amounts))}" if one else super().text_of_not(who)

    def ask(self, draft: Draft) -> bool:
        place = draft.context[self.who]
        for r, n in self.amounts.items():
            if n > 0 and place is not None:
                draft.need(held(place, r), n)
        return place is not None


class HasVibe(ConditionBase):
    """The actor's or target's vibe is this one."""

    kind: Literal["has_vibe"] = "has_vibe"
    who: Someone = "actor"
    vibe: str

    def text(self, who: Names) -> str:
        return f"{who[self.who]} shows {self.vibe}"

    def ask(self, draft: Draft) -> bool:
        if draft.context[self.who] == AGENT:
            draft.need(("vibe", "", self.vibe))
        return True


class HasTag(ConditionBase):
    """The actor or target has a tag."""

    kind: Literal["has_tag"] = "has_tag"
    who: Someone = "target"
    tag: str

    def text(self, who: Names) -> str:
        return f"{who[self.who]} has the tag {self.tag}"


class SameCollective(ConditionBase):
    """Actor and target belong to the same collective."""

    kind: Literal["same_collective"] = "same_collective"

    def text(self, who: Names) -> str:
        return "same team"


class OtherCollective(ConditionBase):
    """Actor and target belong to two different collectives."""

    kind: Literal["other_collective"] = "other_collective"

    def text(self, who: Names) -> str:
        return "other team"


class Aligned(ConditionBase):
    """The actor or target belongs to this collective, or to any if none is named."""

    kind: Literal["aligned"] = "aligned"
    who: Someone = "target"
    to: str = ""

    def text(self, who: Names) -> str:
        return f"{who[self.who]} belongs to {self.to or 'a team'}"

    def text_of_not(self, who: Names) -> str:
        return f"{who[self.who]} {f'does not belong to {self.to}' if self.to else 'belongs to no team'}"


class Within(ConditionBase):
    """Actor and target are at most this far apart."""

    kind: Literal["within"] = "within"
    distance: Radius
    metric: Metric = "chebyshev"

    def text(self, who: Names) -> str:
        return f"within {self.distance}"


class Near(ConditionBase):
    """An object with a tag, possibly itself, is within a radius and fulfils conditions in which it is the target."""

    kind: Literal["near"] = "near"
    who: Someone = "target"
    tag: str
    radius: Radius
    metric: Metric = "chebyshev"
    when: tuple[Condition, ...] = ()

    def text(self, who: Names) -> str:
        inner = f" ({_all(self.when, names(who['actor'], 'it'))})" if self.when else ""
        return f"{who[self.who]} within {self.radius} of {tag_text(self.tag)}{inner}"


class Periodic(ConditionBase):
    """The tick is `start`, `start + every`, `start + 2 every`, ..."""

    kind: Literal["periodic"] = "periodic"
    every: Annotated[int, Field(ge=1, le=1_000_000_000)]
    start: Annotated[int, Field(ge=0, le=1_000_000_000)] = 0

    def text(self, who: Names) -> str:
        return f"every {self.every} ticks from {self.start}"

    def ask(self, draft: Draft) -> bool:
        draft.first = max(draft.first, self.start)
        return True


class Chance(ConditionBase):
    """True with this probability, drawn independently for every tick and pair of actor and target."""

    kind: Literal["chance"] = "chance"
    probability: Annotated[float, Field(ge=0, le=1)]

    def text(self, who: Names) -> str:
        return f"with probability {self.probability:g}"


class AtLeast(ConditionBase):
    """A game value is at least a number."""

    kind: Literal["at_least"] = "at_least"
    value: GameValue
    number: float

    def text(self, who: Names) -> str:
        return f"{self.value.text()} >= {self.number:g}"


class Empty(ConditionBase):
    """An agent, object or collective holds none of these resources, or nothing at all if none is named."""

    kind: Literal["empty"] = "empty"
    who: Holder = "target"
    resources: tuple[str, ...] = ()

    def text(self, who: Names) -> str:
        return f"{who[self.who]} has {'no ' + ' or '.join(self.resources) if self.resources else 'nothing'}"


class Not(ConditionBase):
    """Not all of these conditions hold."""

    kind: Literal["not"] = "not"
    conditions: tuple[Condition, ...]

    def text(self, who: Names) -> str:
        if len(self.conditions) == 1:
            return self.conditions[0].text_of_not(who)
        return f"not ({_all(self.conditions, who)})"


class AnyOf(ConditionBase):
    """At least one of these conditions holds."""

    kind: Literal["any"] = "any"
    conditions: tuple[Condition, ...]

    def text(self, who: Names) -> str:
        return f"any of ({_all(self.conditions, who)})"


Condition = Annotated[
    Holds
    | HasVibe
    | HasTag
    | SameCollective
    | OtherCollective
    | Aligned
    | Within
    | Near
    | Periodic
    | Chance
    | AtLeast
    | Empty
    | Not
    | AnyOf,
    Field(discriminator="kind"),
]

for _model in (Near, Not, AnyOf):
    _model.model_rebuild()
