"""Where things are: maps as plain data, drawn by the core at every reset.

`Ascii` is a fixed picture; `Scatter` draws anew for every episode and guarantees that all agents and all objects
with a state of their own can be reached from one another.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from gridmill.config import Config, Frozen, FrozenDict


class Ascii(Config):
    """Rows of characters: `#` wall, `.` or space floor, `@` agent, digits agents of that group, others by legend.

    With more agent cells than agents, every episode draws which are used.
    """

    kind: Literal["ascii"] = "ascii"
    text: str
    legend: Frozen[str, str] = FrozenDict()


class Scatter(Config):
    """Objects and agents at random places inside a border of walls."""

    kind: Literal["scatter"] = "scatter"
    height: Annotated[int, Field(ge=1, le=4096)] = 40
    width: Annotated[int, Field(ge=1, le=4096)] = 40
    border: Annotated[int, Field(ge=0, le=4096)] = 1
    objects: Frozen[str, Annotated[int, Field(ge=0, le=65535)]] = FrozenDict()
    groups: Annotated[int, Field(ge=1, le=255)] = 1


class Instances(Config):
    """Maps side by side, taken in turn from the list, all of one size; agents are dealt evenly, place by place."""

    kind: Literal["instances"] = "instances"
    maps: tuple[Map, ...]
    rows: Annotated[int, Field(ge=1, le=64)] = 1
    columns: Annotated[int, Field(ge=1, le=64)] = 1
    gap: Annotated[int, Field(ge=0, le=4096)] = 0
    border: Annotated[int, Field(ge=0, le=4096)] = 0


Map = Annotated[Ascii | Scatter | Instances, Field(discriminator="kind")]
Instances.model_rebuild()
