"""Ready-made maps: the asteroid of `machina_1`, the smaller `machina_arena`, and the biomes they are made of.

Both have a compound in the middle with a hub, a junction, gear stations, four extractors and pads where agents start,
and more junctions and extractors strewn over the wilderness. How many those are differs from map to map.
"""

from __future__ import annotations

from collections.abc import Mapping

from gridmill.config import FrozenDict
from gridmill.grid.layers import (
    Blocks,
    Buildings,
    Clumps,
    Compound,
    Connect,
    Dunes,
    Fill,
    Layer,
    Maze,
    OneOf,
    Part,
    Radial,
    Rim,
    Standing,
    Zones,
)
from gridmill.grid.maps import Canvas

EXTRACTORS = ("carbon_extractor", "oxygen_extractor", "germanium_extractor", "silicon_extractor")
STATIONS = ("c:aligner", "c:scrambler", "c:miner", "c:scout")
JUNCTION, HUB = "junction", "c:hub"
SIDE = 21  # of the compound


def plains() -> Clumps:
    """Open land with a few clumps of rock."""
    return Clumps(every=7, jitter=2, chance=0.8, smallest=0, largest=2, fill=0.7)


def forest() -> Clumps:
    """Trees and thickets, close together."""
    return Clumps(every=3, jitter=1, chance=0.7, smallest=0, largest=1, fill=0.8)


def desert() -> Dunes:
    """Long broken ridges."""
    return Dunes(every=5, drift=0.35, gap=0.3)


def city() -> Blocks:
    """Blocks and roads."""
    return Blocks(side=4, road=2, chance=0.7)


def machina_1(
    height: int = 88,
    width: int = 88,
    border: int = 5,
    coverage: float = 0.05,
    weights: Mapping[str, float] = FrozenDict({JUNCTION: 0.6, **dict.fromkeys(EXTRACTORS, 0.2)}),
    compound: Compound | None = None,
) -> Canvas:
    """Plains, four biomes and two dungeons in a jagged rim, buildings everywhere and the compound in the middle.

    `height` and `width` are those inside the border; `coverage` is the share of cells that are drawn for a building.
    """
    side = min(height, width)
    biomes = Zones(count=4, smallest=11, largest=max(11, int(0.27 * side)), layers=_biomes())
    dungeons = Zones(count=2, smallest=10, largest=max(10, side // 5), layers=(_maze(), Radial(arms=8, width=1)))
    layers: tuple[Layer, ...] = (plains(), biomes, dungeons)
    return _asteroid(height, width, border, coverage, weights, compound, layers)


def machina_arena(
    height: int = 50,
    width: int = 50,
    border: int = 5,
    coverage: float = 0.1,
    weights: Mapping[str, float] = FrozenDict({JUNCTION: 0.7, **dict.fromkeys(EXTRACTORS, 0.3)}),
    compound: Compound | None = None,
) -> Canvas:
    """The same kind of land on a smaller map: more and smaller zones, not all of them used, and more buildings."""
    side, area = min(height, width), height * width
    biomes = Zones(
        count=min(48, max(4, area // 1600)), smallest=11, largest=max(11, int(0.27 * side)), share=0.6,
        layers=_biomes(),
    )  # fmt: skip
    dungeons = Zones(
        count=min(48, max(5, area // 1200)), smallest=10, largest=max(10, side // 5), share=0.5,
        layers=(_maze(), Radial(arms=8, width=1)),
    )  # fmt: skip
    return _asteroid(height, width, border, coverage, weights, compound, (plains(), biomes, dungeons))


def hub_compound(num_pads: int = 20) -> Compound:
    """The hub with its junction, gear stations, extractors in the corners, and pads where agents start."""
    things = [Standing(type=HUB), Standing(type=JUNCTION, row=-3)]
    things += [Standing(type=name, row=4, column=c) for name, c in zip(STATIONS, (-3, -1, 1, 3), strict=True)]
    corners = ((-8, -8), (-8, 8), (8, -8), (8, 8))
    things += [Standing(type=name, row=r, column=c) for name, (r, c) in zip(EXTRACTORS, corners, strict=True)]
    taken = {(thing.row, thing.column) for thing in things}
    compass = ((-1, 0), (1, 0), (0, -1), (0, 1), (-1, -1), (-1, 1), (1, -1), (1, 1))
    spots = [(2 * r, 2 * c) for r, c in compass[:4]]
    spots += [(ring * r, ring * c) for ring in (3, 4, 5) for r, c in compass]
    free = [spot for spot in spots if spot not in taken]
    if not 1 <= num_pads <= len(free):
        raise ValueError(f"num_pads: expected 1 to {len(free)}, got {num_pads}")
    things += [Standing(type="agent", row=r, column=c) for r, c in free[:num_pads]]
    return Compound(side=SIDE, wall=1, gate=5, clear=3, things=tuple(things))


def _biomes() -> tuple[Layer, ...]:
    """Each on cleared ground: a desert has no rocks of the plains around it."""
    return tuple(Part(layers=(Fill(what="floor"), biome)) for biome in (forest(), desert(), city(), plains()))


def _maze() -> OneOf:
    mazes = tuple(Maze(method=method, corridor=3, wall=1) for method in ("dfs", "kruskal"))
    return OneOf(layers=mazes, weights=(0.6, 0.4))


def _asteroid(
    height: int, width: int, border: int, coverage: float, weights: Mapping[str, float], compound: Compound | None,
    land: tuple[Layer, ...],
) -> Canvas:  # fmt: skip
    rim = (Rim(every=3, share=0.6, shallowest=2, deepest=8, narrowest=2, widest=6),) if min(height, width) >= 80 else ()
    buildings = Buildings(draws=int(coverage * (height - 2) * (width - 2)), weights=weights, margin=1, apart=1, clear=1)
    return Canvas(
        height=height + 2 * border, width=width + 2 * border, border=border,
        layers=(*land, *rim, buildings, compound or hub_compound(), Connect(wall_cost=10)),
    )  # fmt: skip
