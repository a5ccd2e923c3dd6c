"""Plain text of 80 columns of ASCII: what terminals, logs and reports for people are made of."""

from __future__ import annotations

import textwrap

WIDTH = 80


def ascii_only(text: str) -> str:
    """Other characters as escapes, so that a line is as wide as it looks."""
    return text.encode("ascii", "backslashreplace").decode()


def printable(text: object, most: int = 200) -> str:
    """Words of a stranger for a terminal: nothing in them moves a cursor, turns a line round or cannot be encoded."""
    shown = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in str(text)[:most])
    return shown[:most]


def hang(start: str, text: str, indent: int | None = None) -> list[str]:
    """`start` and `text` wrapped to 80 columns; the next lines begin under the text (at most 16 columns in), or
    `indent` columns in."""
    under = " " * (min(len(start), 16) if indent is None else indent)
    return textwrap.wrap(ascii_only(start + text), WIDTH, subsequent_indent=under, break_on_hyphens=False)
