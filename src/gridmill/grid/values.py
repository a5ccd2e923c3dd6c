"""Game values: numbers read from the state of a world, used by rewards and observations alike.

The native side is `native/grid/rules/values.hpp`; a test holds the two equal.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from gridmill.config import Config
from gridmill.grid.text import plain_text, tag_text

__all__ = [
    "Constant",
    "Count",
    "GameValue",
    "Index",
    "Inventory",
    "Log",
    "Max",
    "Min",
    "Ratio",
    "Stat",
    "Sum",
]


class ValueBase(Config):
    """What analysis asks a game value."""

    kind: str

    def text(self) -> str:
        """In words, for people who read a game."""
        parts: tuple[GameValue, ...] = getattr(self, "values", ())
        return f"{self.kind}({', '.join(part.text() for part in parts)})" if parts else plain_text(self.tree())


class Inventory(ValueBase):
    """How much of a resource somebody holds: the agent (in a rule the actor), a rule's target, or a collective.

    A collective without a name is the agent's own; an absent holder holds nothing.
    """

    kind: Literal["inventory"] = "inventory"
    resource: str
    of: Literal["actor", "target", "collective"] = "actor"
    collective: str = ""

    def text(self) -> str:
        whose = {"actor": "", "target": "target's ", "collective": f"{self.collective or 'team'}'s "}
        return whose[self.of] + self.resource


class Stat(ValueBase):
    """A statistic of this episode so far, by name: the agent's, a collective's (its own if not named), the game's."""

    kind: Literal["stat"] = "stat"
    name: str
    of: Literal["agent", "collective", "game"] = "agent"
    collective: str = ""

    def text(self) -> str:
        whose = {"agent": "", "collective": f"{self.collective or 'team'}'s ", "game": "game's "}
        return whose[self.of] + self.name


class Count(ValueBase):
    """How many objects on the map have a tag (and belong to a collective); or how much of a resource they hold."""

    kind: Literal["count"] = "count"
    tag: str
    collective: str = ""
    resource: str = ""

    def text(self) -> str:
        counted = tag_text(self.tag) + (f" of {self.collective}" if self.collective else "")
        return f"{self.resource} in {counted}" if self.resource else f"count({counted})"


class Index(ValueBase):
    """1 for every agent whose index leaves the remainder `place` when divided by `every`, 0 for the others."""

    kind: Literal["index"] = "index"
    every: Annotated[int, Field(ge=1, le=4096)]
    place: Annotated[int, Field(ge=0, le=4095)] = 0

    def text(self) -> str:
        return f"(agent index mod {self.every} = {self.place})"


class Constant(ValueBase):
    """A fixed number."""

    kind: Literal["constant"] = "constant"
    value: Annotated[float, Field(ge=-1e12, le=1e12)] = 0.0

    def text(self) -> str:
        return f"{self.value:g}"


class Sum(ValueBase):
    """All values added up, in order."""

    kind: Literal["sum"] = "sum"
    values: tuple[GameValue, ...]


class Ratio(ValueBase):
    """The first value divided by the second; 0 where the second is 0."""

    kind: Literal["ratio"] = "ratio"
    values: tuple[GameValue, ...]

    def text(self) -> str:
        return " / ".join(part.text() for part in self.values)


class Min(ValueBase):
    """The smallest of the values."""

    kind: Literal["min"] = "min"
    values: tuple[GameValue, ...]


class Max(ValueBase):
    """The largest of the values."""

    kind: Literal["max"] = "max"
    values: tuple[GameValue, ...]


class Log(ValueBase):
    """log(1 + x) of one value; negative values count as 0."""

    kind: Literal["log"] = "log"
    values: tuple[GameValue, ...]


GameValue = Annotated[
    Inventory | Stat | Count | Index | Constant | Sum | Ratio | Min | Max | Log, Field(discriminator="kind")
]

for _model in (Sum, Ratio, Min, Max, Log):
    _model.model_rebuild()
