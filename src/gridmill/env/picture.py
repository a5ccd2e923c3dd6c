"""Pictures without an imaging library: an RGB array to draw on, and PNG files. Games draw themselves with this.

The same calls give the same bytes on every machine.
"""

from __future__ import annotations

import os
import struct
import zlib
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from gridmill.config.files import write_named
from gridmill.env import font

Colour = tuple[int, int, int]
Picture = NDArray[np.uint8]  # [height, width, 3]
MAX_PICTURE_BYTES = 1 << 28
RENDER_MODES = ("ansi", "rgb_array")  # of Gymnasium and PettingZoo
RENDER_FPS = 10


def refuse_huge(height: int, width: int, scale: int) -> None:
    """Before memory is taken."""
    if height * width * 3 > MAX_PICTURE_BYTES:
        raise ValueError(
            f"a picture of {height} x {width} x 3 = {height * width * 3} bytes is over the limit of "
            f"{MAX_PICTURE_BYTES}; use a scale below {scale}"
        )


def mixed(a: Colour, b: Colour, share: float) -> Colour:
    """Between two colours; a share of 1 is the second."""
    red, green, blue = (round(x + (y - x) * share) for x, y in zip(a, b, strict=True))
    return red, green, blue


class Canvas:
    """An RGB array with a few ways to draw on it; what lies outside is cut off."""

    def __init__(self, height: int, width: int, ground: Colour) -> None:
        self.pixels: Picture = np.full((height, width, 3), ground, np.uint8)

    @property
    def height(self) -> int:
        return int(self.pixels.shape[0])

    @property
    def width(self) -> int:
        return int(self.pixels.shape[1])

    def box(self, top: int, left: int, height: int, width: int, colour: Colour) -> None:
        self.pixels[max(0, top) : max(0, top + height), max(0, left) : max(0, left + width)] = colour

    def paste(self, top: int, left: int, picture: Picture) -> None:
        """Another picture, its upper left corner inside this one."""
        room = self.pixels[top : top + picture.shape[0], left : left + picture.shape[1]]
        room[:] = picture[: room.shape[0], : room.shape[1]]

    def text(self, top: int, left: int, text: str, colour: Colour, size: int = 1) -> int:
        """A line of text, seven times `size` pixels high; where it ends."""
        for letter in text:
            rows, columns = np.nonzero(font.points(letter))
            for row, column in zip(rows.tolist(), columns.tolist(), strict=True):
                self.box(top + row * size, left + column * size, size, size, colour)
            left += font.ADVANCE * size
        return left

    def disc(self, row: float, column: float, radius: float, colour: Colour) -> None:
        self._blend((row, column), (row, column), radius, colour)

    def line(self, start: tuple[float, float], end: tuple[float, float], colour: Colour, width: float = 1.0) -> None:
        """From (row, column) to another."""
        self._blend(start, end, width / 2, colour)

    def _blend(self, start: tuple[float, float], end: tuple[float, float], radius: float, colour: Colour) -> None:
        """All points nearer to a line than the radius, with smooth edges."""
        low = [max(0, int(min(a, b) - radius - 1)) for a, b in zip(start, end, strict=True)]
        high = [int(max(a, b) + radius + 2) for a, b in zip(start, end, strict=True)]
        room = self.pixels[low[0] : high[0], low[1] : high[1]]
        if room.size == 0:
            return
        rows, columns = np.mgrid[low[0] : low[0] + room.shape[0], low[1] : low[1] + room.shape[1]] + 0.5
        along = (end[0] - start[0], end[1] - start[1])
        length = along[0] ** 2 + along[1] ** 2
        share = ((rows - start[0]) * along[0] + (columns - start[1]) * along[1]) / length if length else rows * 0
        share = np.clip(share, 0.0, 1.0)
        far = np.hypot(rows - start[0] - share * along[0], columns - start[1] - share * along[1])
        cover = np.clip(radius + 0.5 - far, 0.0, 1.0)[:, :, None]
        room[:] = np.rint(room * (1 - cover) + np.array(colour) * cover).astype(np.uint8)


def text_width(text: str, size: int = 1) -> int:
    """Pixels that a line of text takes."""
    return font.ADVANCE * size * len(text)


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
    write_named(Path(path), data)
