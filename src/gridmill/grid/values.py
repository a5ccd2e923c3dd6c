"""Game values: numbers read from the state of a world, used by rewards and observations alike.

The native side is `native/grid/rules/values.hpp`; a test holds the two equal.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from gridmill.config import Config


class Inventory(Config):
    """How much of a resource somebody holds: the agent (in a rule the actor), a rule's target, or a collective.

    A collective without a name is the agent's own; who is not there holds nothing.
    """

    kind: Literal["inventory"] = "inventory"
    resource: str
    of: Literal["actor", "target", "collective"] = "actor"
    collective: str = ""


class Stat(Config):
    """A statistic of this episode so far, by name: the agent's, a collective's (its own if not named), the game's."""

    kind: Literal["stat"] = "stat"
    name: str
    of: Literal["agent", "collective", "game"] = "agent"
    collective: str = ""


class Count(Config):
    """How many objects on the map bear a tag (and belong to a collective); or how much of a resource they hold."""

    kind: Literal["count"] = "count"
    tag: str
    collective: str = ""
    resource: str = ""


class Index(Config):
    """1 for every agent whose index leaves the remainder `place` when divided by `every`, 0 for the others."""

    kind: Literal["index"] = "index"
    every: Annotated[int, Field(ge=1, le=4096)]
    place: Annotated[int, Field(ge=0, le=4095)] = 0


class Constant(Config):
    """A fixed number."""

    kind: Literal["constant"] = "constant"
    value: float = 0.0


class Sum(Config):
    """All values added up, in order."""

    kind: Literal["sum"] = "sum"
    values: tuple[GameValue, ...]


class Ratio(Config):
    """The first value divided by the second; 0 where the second is 0."""

    kind: Literal["ratio"] = "ratio"
    values: tuple[GameValue, ...]


class Min(Config):
    """The smallest of the values."""

    kind: Literal["min"] = "min"
    values: tuple[GameValue, ...]


class Max(Config):
    """The largest of the values."""

    kind: Literal["max"] = "max"
    values: tuple[GameValue, ...]


class Log(Config):
    """log(1 + x) of one value; negative values count as 0."""

    kind: Literal["log"] = "log"
    values: tuple[GameValue, ...]


GameValue = Annotated[
    Inventory | Stat | Count | Index | Constant | Sum | Ratio | Min | Max | Log, Field(discriminator="kind")
]

for _model in (Sum, Ratio, Min, Max, Log):
    _model.model_rebuild()
