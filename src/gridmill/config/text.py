"""Plain text of 80 columns of ASCII: what terminals, logs and reports for people are made of."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence
from typing import Any

WIDTH = 80
LONGEST = 4_000  # characters of a text that is wrapped


def harmless(text: str) -> str:
    """Text of a stranger for a terminal: nothing in it moves a cursor, turns a line round or cannot be encoded.

    Line ends stay; whatever else is not printable becomes an escape. What gridmill itself writes to move a cursor or to
    colour is put around it afterwards.
    """
    if text.isascii() and text.isprintable():  # most lines
        return text
    shown = "".join(c if c in "\n\x7f" or c.isprintable() else c.encode("unicode_escape").decode() for c in text)
    return shown.replace("\x7f", "\\u007f")  # as JSON has it, which leaves it as it is


def ascii_only(text: str) -> str:
    """Other characters as escapes, so that a line is as wide as it looks."""
    return harmless(text).encode("ascii", "backslashreplace").decode()


def printable(text: object, most: int = 200) -> str:
    """A word of a stranger for a line of a terminal: harmless, without line ends, and not long."""
    return harmless(str(text)[:most]).replace("\n", "\\n")[:most]


def clipped(text: str, most: int = 80) -> str:
    """A name or a message of any length as one that can be read: of a long one the beginning and the end."""
    return text if len(text) <= most else f"{text[: 3 * most // 4]}...{text[3 - most // 4 :]}"


def hang(start: str, text: str, indent: int | None = None) -> list[str]:
    """`start` and `text` wrapped to 80 columns; the next lines begin under the text (at most 16 columns in), or
    `indent` columns in. Of a text that would fill more than a page the beginning and the end."""
    under = " " * (min(len(start), 16) if indent is None else indent)
    return textwrap.wrap(
        ascii_only(start + clipped(text, LONGEST)), WIDTH, subsequent_indent=under, break_on_hyphens=False
    )


def packed(entries: Iterable[str], width: int = WIDTH) -> list[str]:
    """Entries side by side, two spaces between them, as many to a line as fit; none is broken."""
    lines: list[str] = []
    for entry in entries:
        if lines and len(lines[-1]) + 2 + len(entry) <= width:
            lines[-1] += f"  {entry}"
        else:
            lines.append(entry)
    return lines


def short(value: float) -> str:
    """A figure in at most about seven characters: 7.61 M, 182.4 k, 38.2."""
    for size, unit in ((1e9, " G"), (1e6, " M"), (1e3, " k")):
        if abs(value) >= size:
            return f"{value / size:.2f}{unit}" if abs(value) < 100 * size else f"{value / size:.1f}{unit}"
    if value == int(value):
        return f"{int(value)}"
    return f"{value:.1f}" if abs(value) >= 10 else f"{value:.3f}"


def count(number: int, noun: str) -> str:
    """`1 world`, `4,096 worlds`."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def table(header: Sequence[str], rows: Iterable[Sequence[Any]], *, left: int = 1) -> list[str]:
    """Plain lines with aligned columns: the first `left` to the left, the others to the right."""
    lines = [[str(cell) for cell in row] for row in (header, *rows)]
    widths = [max(len(line[k]) for line in lines) for k in range(len(header))]
    return [
        "  ".join(
            cell.ljust(w) if k < left else cell.rjust(w) for k, (cell, w) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in lines
    ]
