"""The layers of a `Canvas`: each is drawn on its area, over what is already there.

Floor plans (`Rooms`, `Maze`, `Caves`, `Bsp`) set every cell; patterns (`Clumps`, `Dunes`, `Blocks`, `Rim`) add
walls; `Radial` carves; `Compound`, `Buildings` and `Objects` place objects on the floor; `Connect` digs tunnels;
`Part`, `Zones`, `OneOf` and `Mirror` contain other layers. docs/maps.md has a picture of each.
"""

from __future__ import annotations

from collections import Counter
from math import ceil
from typing import Annotated, Literal

from pydantic import Field

from gridmill.config import Config, Frozen, FrozenDict

Chance = Annotated[float, Field(ge=0, le=1)]
Weight = Annotated[float, Field(ge=0)]
Cells = Annotated[int, Field(ge=1, le=64)]
CellsOrNone = Annotated[int, Field(ge=0, le=64)]
Side = Annotated[int, Field(ge=1, le=250)]
SideOrNone = Annotated[int, Field(ge=0, le=250)]
Count = Annotated[int, Field(ge=0, le=65535)]
Offset = Annotated[int, Field(ge=-4096, le=4096)]


class Fill(Config):
    """Every cell becomes wall or floor."""

    kind: Literal["fill"] = "fill"
    what: Literal["wall", "floor"] = "wall"


class Rooms(Config):
    """A grid of rooms; doors connect all of them, and some additional walls have one too."""

    kind: Literal["rooms"] = "rooms"
    rows: Cells = 3
    columns: Cells = 3
    wall: Cells = 1
    door: Cells = 1
    extra_doors: Chance = 0.5


class Maze(Config):
    """Corridors that connect everything: `dfs` winds, `kruskal` is even, `prim` has many short dead ends."""

    kind: Literal["maze"] = "maze"
    method: Literal["dfs", "kruskal", "prim"] = "dfs"
    corridor: Cells = 1
    wall: Cells = 1
    loops: Chance = 0.0


class Caves(Config):
    """Random walls, smoothed: in every round a cell becomes wall or floor, as most of its neighbourhood is."""

    kind: Literal["caves"] = "caves"
    fill: Chance = 0.45
    rounds: Annotated[int, Field(ge=0, le=32)] = 4


class Bsp(Config):
    """The area is split in two repeatedly; every part has a room, and corridors connect the parts."""

    kind: Literal["bsp"] = "bsp"
    rooms: Cells = 8
    smallest: Cells = 3
    corridor: Cells = 1


class Radial(Config):
    """Arms of floor from the centre to the edge, evenly spaced around it."""

    kind: Literal["radial"] = "radial"
    arms: Cells = 8
    width: Cells = 1
    hub: CellsOrNone = 1
    wall: CellsOrNone = 0


class Clumps(Config):
    """Round clumps of wall around jittered anchors."""

    kind: Literal["clumps"] = "clumps"
    every: Cells = 7
    jitter: CellsOrNone = 2
    chance: Chance = 0.8
    smallest: CellsOrNone = 0
    largest: CellsOrNone = 2
    fill: Chance = 0.7


class Dunes(Config):
    """Ridges from west to east with bends and gaps."""

    kind: Literal["dunes"] = "dunes"
    every: Annotated[int, Field(ge=2, le=64)] = 5
    drift: Chance = 0.35
    gap: Chance = 0.3


class Blocks(Config):
    """Solid blocks with roads between."""

    kind: Literal["blocks"] = "blocks"
    side: Cells = 4
    road: Cells = 2
    chance: Chance = 0.8


class Rim(Config):
    """Teeth of wall that point inwards from the edges."""

    kind: Literal["rim"] = "rim"
    every: Cells = 3
    share: Chance = 0.6
    shallowest: Cells = 2
    deepest: Cells = 8
    narrowest: CellsOrNone = 2
    widest: CellsOrNone = 6


class Standing(Config):
    """One object at an offset from the centre; the type `agent` marks a cell where an agent may start."""

    type: str
    row: Offset = 0
    column: Offset = 0


class Compound(Config):
    """A walled square in the middle of the area with a gate on each side; objects at offsets from its centre."""

    kind: Literal["compound"] = "compound"
    side: Side = 21
    wall: CellsOrNone = 1
    gate: SideOrNone = 5
    clear: CellsOrNone = 3
    things: tuple[Standing, ...] = ()


class Buildings(Config):
    """Objects on random cells, unless an earlier object is too near; each clears the cells around it."""

    kind: Literal["buildings"] = "buildings"
    draws: Count = 0
    weights: Frozen[str, Weight] = FrozenDict()
    margin: CellsOrNone = 1
    apart: CellsOrNone = 1
    clear: CellsOrNone = 1


class Objects(Config):
    """Exactly this many of each type on the largest floor, where they block no path; `agent` marks starting cells."""

    kind: Literal["objects"] = "objects"
    counts: Frozen[str, Count] = FrozenDict()


class Connect(Config):
    """Tunnels from every separate floor to the largest, along the cheapest path; they never go through objects."""

    kind: Literal["connect"] = "connect"
    wall_cost: Annotated[int, Field(ge=1, le=1000)] = 10


class Part(Config):
    """Layers in a rectangle; a height or width of 0 extends to the edge."""

    kind: Literal["area"] = "area"
    top: SideOrNone = 0
    left: SideOrNone = 0
    height: SideOrNone = 0
    width: SideOrNone = 0
    border: SideOrNone = 0
    layers: tuple[Layer, ...] = ()


class Zones(Config):
    """The area is split into parts; a share of them gets one layer each, in a box in the middle of the part."""

    kind: Literal["zones"] = "zones"
    count: Cells = 4
    smallest: Side = 10
    largest: Side = 20
    share: Chance = 1.0
    layers: tuple[Layer, ...] = ()


class OneOf(Config):
    """One of the layers, chosen at random for every map."""

    kind: Literal["one_of"] = "one_of"
    layers: tuple[Layer, ...] = ()
    weights: tuple[Weight, ...] = ()


class Mirror(Config):
    """Layers in the western half, the northern half or a quarter, then mirrored onto the rest."""

    kind: Literal["mirror"] = "mirror"
    axis: Literal["horizontal", "vertical", "both"] = "horizontal"
    layers: tuple[Layer, ...] = ()


Layer = Annotated[
    Fill | Rooms | Maze | Caves | Bsp | Radial | Clumps | Dunes | Blocks | Rim | Compound | Buildings | Objects
    | Connect | Part | Zones | OneOf | Mirror,
    Field(discriminator="kind"),
]  # fmt: skip
for _model in (Part, Zones, OneOf, Mirror):
    _model.model_rebuild()


def most_of(layers: tuple[Layer, ...]) -> Counter[str]:
    """The most objects of each type that layers can put on a canvas, walls left out."""
    found: Counter[str] = Counter()
    for layer in layers:
        if isinstance(layer, Compound):
            found.update(thing.type for thing in layer.things if thing.type != "agent")
        elif isinstance(layer, Objects):
            found.update({name: n for name, n in layer.counts.items() if name != "agent"})
        elif isinstance(layer, Buildings):
            total = sum(layer.weights.values())
            found.update({name: ceil(layer.draws * weight / total) for name, weight in layer.weights.items() if weight})
        elif isinstance(layer, Part):
            found.update(most_of(layer.layers))
        elif isinstance(layer, Mirror):
            times = 4 if layer.axis == "both" else 2
            found.update({name: times * n for name, n in most_of(layer.layers).items()})
        elif isinstance(layer, Zones) and layer.layers:
            times = ceil(layer.count / len(layer.layers))
            found.update({name: times * n for name, n in most_of(layer.layers).items()})
        elif isinstance(layer, OneOf):
            found += _either(layer.layers)
    del found["wall"]
    return found


def _either(layers: tuple[Layer, ...]) -> Counter[str]:
    found: Counter[str] = Counter()
    for layer in layers:
        found |= most_of((layer,))
    return found
