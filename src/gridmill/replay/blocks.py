"""The bytes of a replay file: limits, blocks packed and unpacked, JSON read. What is where: docs/replays.md.

Files come from anywhere: every size is checked before memory is taken, and whatever is wrong is a ReplayError of one
line.
"""

from __future__ import annotations

import json
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from gridmill.config.files import read_plain
from gridmill.config.text import printable

MAGIC = b"gridmill-replay 2\n"
MOST_FILE = 64 << 20
MOST_HEAD = 2 << 20
MOST_DEPTH = 64
MOST_PARTS = 100_000  # objects and lists in a head: more is no honest file, and would take time
MOST_BLOCK = 64 << 20
MOST_BLOCKS = 256 << 20
RATIO = 200  # a byte of the file unpacks to at most so many


class ReplayError(ValueError):
    """A file that is no replay, or one of another game or build."""


@dataclass(frozen=True)
class Packed:
    """A block as it is in a file, and how many bytes it holds."""

    data: bytes | memoryview
    raw: int

    def unpack(self) -> bytes:
        """The bytes; exactly as many as were said."""
        inflater = zlib.decompressobj()
        try:
            found = inflater.decompress(self.data, self.raw + 1)
        except zlib.error as reason:
            raise ReplayError(f"replay: a block is damaged: {reason}") from None
        if len(found) != self.raw or not inflater.eof or inflater.unused_data:
            raise ReplayError(f"replay: a block does not have {self.raw} bytes")
        return found


def pack(raw: bytes) -> Packed:
    """A block of these bytes, which readers with the cap of RATIO will unpack.

    What compresses better than the cap begins with a part that is stored as it is.
    """
    if len(raw) > MOST_BLOCK:
        raise ReplayError(f"replay: expected at most {MOST_BLOCK} bytes in a block, got {len(raw)}; cut the episode")
    small = zlib.compress(raw, 6)
    if len(raw) <= RATIO * len(small):
        return Packed(small, len(raw))
    plain, packed = (zlib.compressobj(level, zlib.DEFLATED, -15) for level in (0, 6))
    stored = -(-len(raw) // RATIO)
    parts = [b"\x78\x9c", plain.compress(raw[:stored]), plain.flush(zlib.Z_SYNC_FLUSH)]
    parts += [packed.compress(raw[stored:]), packed.flush(), zlib.adler32(raw).to_bytes(4, "big")]
    return Packed(b"".join(parts), len(raw))


# ---- files


def read_bytes(path: Path) -> bytes:
    """A plain file of at most MOST_FILE bytes. Links are not followed; a pipe or a device would never end."""
    try:
        return read_plain(path, MOST_FILE)
    except OSError as reason:
        raise ReplayError(f"replay: cannot read `{path}`: {reason.strerror}") from None
    except ValueError as reason:  # a NUL in the name
        raise ReplayError(f"replay: cannot read {str(path)!r:.200}: {reason}") from None


# ---- JSON


def plain(text: bytes) -> Any:
    """JSON that is neither deep nor has more parts than an honest head."""
    if text.count(b"[") + text.count(b"{") > 2 * MOST_PARTS:  # words may have some too; the parts are counted below
        raise ReplayError(f"replay: expected at most {MOST_PARTS} parts in a head, got more")
    try:
        found = json.loads(text, parse_constant=_no_number)
    except (ValueError, RecursionError) as reason:
        raise ReplayError(f"replay: expected a head of JSON, got {line(reason)}") from None
    level, parts = [found], 0
    for _ in range(MOST_DEPTH):
        level = [part for whole in level for part in _parts_of(whole)]
        parts += len(level)
        if not level:
            return found
        if parts > MOST_PARTS:
            raise ReplayError(f"replay: expected at most {MOST_PARTS} parts in a head, got more")
    raise ReplayError(f"replay: expected a head of at most {MOST_DEPTH} levels, got more")


def _parts_of(whole: Any) -> list[Any]:
    if isinstance(whole, dict):
        whole = whole.values()
    elif not isinstance(whole, list):
        return []
    return [part for part in whole if isinstance(part, dict | list)]


def _no_number(name: str) -> NoReturn:
    raise ReplayError(f"replay: expected numbers in the head, got {name}")


def line(reason: BaseException) -> str:
    """An error as one short line."""
    return printable(" ".join(str(reason).split())) or type(reason).__name__


@dataclass(frozen=True)
class Part:
    """A part of the head and where it is, to ask it for what is expected there."""

    value: Any
    path: str = "$"

    def fail(self, expected: str) -> NoReturn:
        raise ReplayError(f"replay: expected {expected}, got {str(self.value)[:40]!r} - at `{printable(self.path)}`")

    def __getitem__(self, name: str) -> Part:
        """An entry that must be there."""
        found = self.get(name)
        if found is None:
            said, where = printable(name, 60), printable(self.path)
            raise ReplayError(f"replay: expected `{said}`, got nothing - at `{where}`")
        return found

    def get(self, name: str) -> Part | None:
        """An entry; None where it is absent or null."""
        value = self.object().get(name)
        return None if value is None else Part(value, f"{self.path}.{name}")

    def object(self) -> dict[str, Any]:
        if not isinstance(self.value, dict):
            self.fail("an object")
        return self.value

    def items(self, most: int) -> list[Part]:
        """The entries of a list."""
        if not isinstance(self.value, list) or len(self.value) > most:
            self.fail(f"a list of at most {most}")
        return [Part(value, f"{self.path}[{i}]") for i, value in enumerate(self.value)]

    def number(self, low: int, high: int) -> int:
        if not isinstance(self.value, int) or isinstance(self.value, bool) or not low <= self.value <= high:
            self.fail(f"a number in [{low}, {high}]")
        return self.value

    def text(self, most: int = 1 << 16) -> str:
        if not isinstance(self.value, str) or len(self.value) > most:
            self.fail(f"text of at most {most} characters")
        return self.value

    def flag(self) -> bool:
        if not isinstance(self.value, bool):
            self.fail("true or false")
        return self.value
