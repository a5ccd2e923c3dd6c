"""Pictures of one world for people: plain text, RGB arrays, PNG files.

Everything is drawn from `Env.inspect(world)`, so a picture shows names and cells, never tokens. The same state gives
the same characters and the same bytes. Nothing here steps a world, opens a window or needs an imaging library.
"""

from __future__ import annotations

import os
import struct
import zlib
from collections import Counter
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gridmill.grid.directions import DIRECTIONS

if TYPE_CHECKING:
    from gridmill.grid.env import GridEnv

Colour = tuple[int, int, int]
Picture = NDArray[np.uint8]  # [height, width, 3]

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
MAX_PICTURE_BYTES = 1 << 28
_FINE = 4  # samples per pixel edge when a disc is drawn, so that its rim is smooth


def ascii(env: GridEnv, world: int = 0) -> str:
    """The world as text: a title, one character per cell, and a legend with counts.

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
    return "\n".join([title, *("".join(row) for row in cells), "  ".join([*legend, ". empty"])])


def rgb(env: GridEnv, world: int = 0, scale: int = 8) -> Picture:
    """The world as an RGB array, `scale` pixels per cell edge."""
    if not 1 <= scale <= 256:
        raise ValueError(f"scale must be 1 to 256 pixels per cell, got {scale}")
    view = env.inspect(world)
    height, width = view["height"] * scale, view["width"] * scale
    if height * width * 3 > MAX_PICTURE_BYTES:
        raise ValueError(
            f"a picture of {height} x {width} x 3 = {height * width * 3} bytes is over the limit of "
            f"{MAX_PICTURE_BYTES}; use a scale below {scale}"
        )
    picture = np.tile(_floor_tile(scale), (view["height"], view["width"], 1))
    groups = sorted({thing["group"] for thing in view["objects"] if thing["agent"] is not None})
    for thing in view["objects"]:
        top, left = thing["row"] * scale, thing["column"] * scale
        if thing["agent"] is None:
            tile = _object_tile(thing["type"], scale)
        else:
            kind = groups.index(thing["group"]) if len(groups) > 1 else int(thing["agent"])
            tile = _agent_tile(AGENT_COLOURS[kind % len(AGENT_COLOURS)], thing["facing"], scale)
        picture[top : top + scale, left : left + scale] = tile
    return picture


def write_png(path: str | os.PathLike[str], array: Picture) -> None:
    """Write an RGB array as a PNG file (ISO/IEC 15948: eight bits per channel, no interlacing)."""
    if not isinstance(array, np.ndarray) or array.dtype != np.uint8:
        raise TypeError(f"array must be uint8 [h, w, 3], got {getattr(array, 'dtype', type(array).__name__)}")
    if array.ndim != 3 or array.shape[2] != 3 or array.size == 0:
        raise ValueError(f"array must be uint8 [h, w, 3], got shape {list(array.shape)}")
    height, width, _ = array.shape
    lines = np.zeros((height, 1 + width * 3), np.uint8)  # the leading 0 of each line: no filter
    lines[:, 1:] = array.reshape(height, width * 3)
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    chunks = [(b"IHDR", header), (b"IDAT", zlib.compress(lines.tobytes(), 6)), (b"IEND", b"")]
    data = b"\x89PNG\r\n\x1a\n"
    for name, body in chunks:
        data += struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body))
    Path(path).write_bytes(data)


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
    return tile


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
