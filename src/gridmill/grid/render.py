"""Pictures of one world for people: plain text and RGB arrays, with a legend and what agents hold if wanted.

Everything is drawn from `Env.inspect(world)`, so a picture shows names and cells, never tokens. The same state gives
the same characters and the same bytes. Nothing here steps a world, opens a window or needs an imaging library.
"""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from gridmill.config.text import packed
from gridmill.env.picture import Canvas, Colour, Picture, refuse_huge, text_width, write_png
from gridmill.grid.directions import DIRECTIONS

if TYPE_CHECKING:
    from gridmill.grid.env import GridEnv

__all__ = ["ascii", "rgb", "rgb_with_legend", "write_png"]

FLOOR: Colour = (238, 233, 222)
GRID_LINE: Colour = (228, 222, 209)
AGENT_COLOURS: tuple[Colour, ...] = (
    (214, 84, 62), (52, 118, 186), (70, 146, 92), (222, 158, 44),
    (132, 92, 168), (38, 150, 158), (204, 98, 148), (118, 108, 84),
)  # fmt: skip
OBJECT_COLOURS: Mapping[str, Colour] = {
    "wall": (96, 104, 122), "block": (168, 132, 94), "mine": (150, 74, 62), "generator": (74, 138, 128),
    "altar": (190, 150, 214), "lasery": (206, 92, 92), "armory": (92, 118, 168), "chest": (196, 152, 72),
}  # fmt: skip
LETTERED = 16  # pixels of a cell from which on machines wear the first letter of their name
LEGEND_LETTERS = 24  # the least room beside a world
INK: Colour = (64, 62, 58)
SOFT: Colour = (128, 124, 114)
_FINE = 4  # samples per pixel edge when a disc is drawn, so that its rim is smooth


def ascii(env: GridEnv, world: int = 0) -> str:
    """The world as text: a title, one character per cell, and a legend with counts, in lines of at most 80 columns.

    `#` wall, `.` empty, `@` agent (the digit of its group where the world has several groups); every other
    type gets a letter of its name, the same one for the whole life of the env.
    """
    view = env.inspect(world)
    symbols = _symbols(env, view)
    several_groups = len({thing["group"] for thing in view["objects"] if thing["agent"] is not None}) > 1
    cells = [["."] * view["width"] for _ in range(view["height"])]
    counts: Counter[tuple[str, str]] = Counter()
    for thing in view["objects"]:
        symbol, name = symbols[thing["type"]], thing["type"]
        if thing["agent"] is not None:
            name = "agent"
            symbol = "@"
            if several_groups:
                symbol, name = str(int(thing["group"]) % 10), f"agent of group {thing['group']}"
        cells[thing["row"]][thing["column"]] = symbol
        counts[symbol, name] += 1
    title = f"world {world}, tick {view['tick']}, episode {view['episode']}, seed {view['seed']}"
    legend = [f"{symbol} {name} x{count}" for (symbol, name), count in sorted(counts.items())]
    return "\n".join([title, *("".join(row) for row in cells), *packed([*legend, ". empty"])])


def rgb(env: GridEnv, world: int = 0, scale: int = 8) -> Picture:
    """The world as an RGB array, `scale` pixels per cell edge."""
    if not 1 <= scale <= 256:
        raise ValueError(f"scale must be 1 to 256 pixels per cell, got {scale}")
    view = env.inspect(world)
    height, width = view["height"] * scale, view["width"] * scale
    refuse_huge(height, width, scale)
    picture = np.tile(_floor_tile(scale), (view["height"], view["width"], 1))
    groups = _groups(view)
    for thing in view["objects"]:
        top, left = thing["row"] * scale, thing["column"] * scale
        picture[top : top + scale, left : left + scale] = _tile(thing, groups, scale)
    return picture


def rgb_with_legend(env: GridEnv, world: int = 0, scale: int = 8) -> Picture:
    """The world, and beside it what each symbol is and what agents hold; of one size for the life of the env."""
    plain, view = rgb(env, world, scale), env.inspect(world)
    kinds, groups = _kinds(view), _groups(view)
    types = sorted({tag.removeprefix("type:") for tag in env.tags if tag.startswith("type:")} | set(kinds))
    size = max(1, scale // 10)  # of letters
    pitch = max(scale, 8 * size) + 3 * size
    letters = max(LEGEND_LETTERS, *(len(name) + 5 for name in types))
    height = max(plain.shape[0], pitch * (len(types) + len(groups) + 2))
    width = plain.shape[1] + text_width("x" * letters, size) + scale + 12 * size
    refuse_huge(height, width, scale)
    canvas = Canvas(height, width, FLOOR)
    canvas.paste(0, 0, plain)
    left, top = plain.shape[1] + 6 * size, 4 * size
    canvas.text(top, left, f"tick {view['tick']}", INK, size)
    rows = [(example, f"{name} x{count}") for name, (example, count) in kinds.items()]
    rows += [(thing, _held(thing)) for thing in view["objects"] if thing["agent"] is not None and _held(thing)]
    for thing, line in rows:
        top += pitch
        if top + pitch > height:
            canvas.text(height - 8 * size, left, "...", SOFT, size)
            break
        canvas.paste(top, left, _tile(thing, groups, scale))
        canvas.text(top + (scale - 7 * size) // 2, left + scale + 3 * size, line[:letters], INK, size)
    return canvas.pixels


def _groups(view: Mapping[str, Any]) -> list[int]:
    return sorted({thing["group"] for thing in view["objects"] if thing["agent"] is not None})


def _tile(thing: Mapping[str, Any], groups: list[int], scale: int) -> Picture:
    if thing["agent"] is None:
        return _object_tile(thing["type"], scale)
    kind = groups.index(thing["group"]) if len(groups) > 1 else int(thing["agent"])
    return _agent_tile(AGENT_COLOURS[kind % len(AGENT_COLOURS)], thing["facing"], scale)


def _kinds(view: Mapping[str, Any]) -> dict[str, tuple[Mapping[str, Any], int]]:
    """Each type on the map with an example and how many there are; agents by group, if there are several."""
    several = len(_groups(view)) > 1
    counts: Counter[str] = Counter()
    examples: dict[str, Mapping[str, Any]] = {}
    for thing in view["objects"]:
        name = thing["type"] if thing["agent"] is None or not several else f"agent {thing['group']}"
        counts[name] += 1
        examples.setdefault(name, thing)
    return {name: (examples[name], counts[name]) for name in sorted(examples)}


def _held(thing: Mapping[str, Any]) -> str:
    return " ".join(f"{amount} {name}" for name, amount in thing["inventory"].items() if amount)


def _symbols(env: GridEnv, view: Mapping[str, Any]) -> dict[str, str]:
    """One character per object type; from all types of the env, so that it does not change as objects go."""
    types = {tag.removeprefix("type:") for tag in env.tags if tag.startswith("type:")}
    types |= {thing["type"] for thing in view["objects"]}
    symbols = {"wall": "#"}
    free = list("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ%&$*+=!~^")
    for name in sorted(types - {"wall", "agent"}):
        wanted = [*name.lower(), *name.upper(), *free]
        symbol = next((c for c in wanted if c in free), "?")
        symbols[name] = symbol
        if symbol in free:
            free.remove(symbol)
    return {**symbols, "agent": "@"}


def _shade(colour: Colour, amount: int) -> Colour:
    """Lighter (amount > 0) or darker (amount < 0), by `amount` of 255."""
    red, green, blue = (min(255, max(0, part + amount)) for part in colour)
    return red, green, blue


@lru_cache(maxsize=16)
def _floor_tile(scale: int) -> Picture:
    tile = np.full((scale, scale, 3), FLOOR, np.uint8)
    if scale >= 4:
        tile[-1, :] = tile[:, -1] = GRID_LINE
    return tile


@lru_cache(maxsize=256)
def _object_tile(name: str, scale: int) -> Picture:
    """A box with slight relief, light from the north-west. Walls fill their cell, others keep a margin."""
    colour = OBJECT_COLOURS.get(name)
    if colour is None:  # a colour of its own for every name, the same in every process
        mixed = zlib.crc32(name.encode())
        colour = (90 + mixed % 130, 90 + (mixed >> 8) % 130, 90 + (mixed >> 16) % 130)
    tile = _floor_tile(scale).copy()
    margin = 0 if name == "wall" else scale // 8
    box = tile[margin : scale - margin, margin : scale - margin]
    box[:] = colour
    edge = scale // 8
    if edge:
        box[:edge, :] = box[:, :edge] = _shade(colour, 28)
        box[-edge:, :] = box[:, -edge:] = _shade(colour, -34)
    if scale >= LETTERED and name not in ("wall", "block"):
        _letter(tile, name[:1], scale)
    return tile


def _letter(tile: Picture, letter: str, scale: int) -> None:
    """The first letter of a name in the middle of its box, light on the colour."""
    size = (scale - 2 * (scale // 8)) // 10
    canvas = Canvas(scale, scale, FLOOR)
    canvas.pixels = tile
    canvas.text((scale - 7 * size) // 2, (scale - 5 * size) // 2, letter, (255, 252, 244), size)


@lru_cache(maxsize=256)
def _agent_tile(colour: Colour, facing: str | None, scale: int) -> Picture:
    """A disc with a darker rim and a light mark towards the faced cell."""
    size = scale * _FINE
    row, column = np.mgrid[0:size, 0:size]
    row, column = (row + 0.5) / size * 2 - 1, (column + 0.5) / size * 2 - 1  # cell coordinates in [-1, 1]
    fine = _floor_tile(scale).repeat(_FINE, axis=0).repeat(_FINE, axis=1)
    distance = row**2 + column**2
    fine[distance <= 0.88**2] = _shade(colour, -60)
    fine[distance <= 0.72**2] = colour
    if facing:
        towards_row, towards_column = DIRECTIONS[facing]
        mark = (row - 0.45 * towards_row) ** 2 + (column - 0.45 * towards_column) ** 2
        fine[mark <= 0.27**2] = (255, 252, 244)
    blocks = fine.reshape(scale, _FINE, scale, _FINE, 3).astype(np.uint32)
    mean: Picture = (blocks.sum(axis=(1, 3)) // (_FINE * _FINE)).astype(np.uint8)
    return mean
