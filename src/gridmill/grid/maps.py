"""Where things are: maps as plain data, drawn by the core at every reset.

`Ascii` is a fixed picture; `Scatter` draws anew for every episode and guarantees that all agents and all objects
with a state of their own can be reached from one another; `Canvas` draws layers (`gridmill.grid.layers`) one over the
other and guarantees the same for every object that is not a wall; `Instances` sets maps side by side.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from gridmill.config import Config, Frozen, FrozenDict
from gridmill.grid.layers import Layer


class Ascii(Config):
    """Rows of characters: `#` wall, `.` or space floor, `@` agent, digits for agents of that group, others by legend.

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
    """Maps side by side, taken in turn from the list, of one size; agents are distributed evenly, place by place."""

    kind: Literal["instances"] = "instances"
    maps: tuple[Map, ...]
    rows: Annotated[int, Field(ge=1, le=64)] = 1
    columns: Annotated[int, Field(ge=1, le=64)] = 1
    gap: Annotated[int, Field(ge=0, le=4096)] = 0
    border: Annotated[int, Field(ge=0, le=4096)] = 0


class Canvas(Config):
    """Floor inside a border of walls on which layers are drawn in order.

    Agents start on cells that a layer marked for them, or anywhere on the largest floor if none did.
    """

    kind: Literal["canvas"] = "canvas"
    height: Annotated[int, Field(ge=1, le=250)] = 40
    width: Annotated[int, Field(ge=1, le=250)] = 40
    border: Annotated[int, Field(ge=0, le=250)] = 1
    layers: tuple[Layer, ...] = ()
    groups: Annotated[int, Field(ge=1, le=255)] = 1


Map = Annotated[Ascii | Scatter | Instances | Canvas, Field(discriminator="kind")]
Instances.model_rebuild()
