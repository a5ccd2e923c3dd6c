"""Differences: every field in which two games differ, one line each, for `gridmill diff`.

Trees are compared, not games: a part that only one side has is one difference however much is in it, and lists are
aligned by equal items, so that a reward put in front of the others is one line. Says what differs, not what it means;
for that there is `explain`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Any, Literal

from gridmill.config import Config
from gridmill.config.text import ascii_only, hang
from gridmill.grid import RewardTerm
from gridmill.grid.analysis.rule_text import describe


@dataclass(frozen=True)
class Difference:
    """A field that differs; `only` says which side has it, "" where both do."""

    path: str
    a: Any
    b: Any
    only: Literal["", "a", "b"] = ""


def differences(a: Config | dict[str, Any], b: Config | dict[str, Any]) -> tuple[Difference, ...]:
    """Every field that differs, in order of declaration; parts that only one side has are whole."""
    return tuple(_compare(_tree(a), _tree(b), ""))


def _tree(side: Config | dict[str, Any]) -> dict[str, Any]:
    if not isinstance(side, Config | dict):
        raise TypeError(f"expected a Game to compare, got {type(side).__name__}")
    return side.tree() if isinstance(side, Config) else side


def _compare(a: Any, b: Any, path: str) -> Iterator[Difference]:
    if isinstance(a, dict) and isinstance(b, dict):
        yield from _compare_dicts(a, b, path)
    elif isinstance(a, list) and isinstance(b, list):
        yield from _compare_lists(a, b, path)
    elif a != b or type(a) is not type(b):
        yield Difference(path, a, b)


def _compare_dicts(a: dict[str, Any], b: dict[str, Any], path: str) -> Iterator[Difference]:
    if a.get("kind") != b.get("kind"):  # another kind of thing: its fields have nothing to do with each other
        yield Difference(path, a, b)
        return
    for key in [*a, *(key for key in b if key not in a)]:
        here = f"{path}.{key}" if path else key
        if key not in b:
            yield Difference(here, a[key], None, "a")
        elif key not in a:
            yield Difference(here, None, b[key], "b")
        else:
            yield from _compare(a[key], b[key], here)
    mine, theirs = [key for key in a if key in b], [key for key in b if key in a]
    if mine != theirs:
        yield Difference(f"{path} (order)", mine, theirs)


def _compare_lists(a: list[Any], b: list[Any], path: str) -> Iterator[Difference]:
    if a == b:
        return
    if not any(isinstance(item, dict | list) for item in (*a, *b)) and not (a and b):
        yield Difference(path, a, b)  # a list of words against none
        return
    left, right = [json.dumps(item) for item in a], [json.dumps(item) for item in b]
    for tag, i, i_end, j, j_end in SequenceMatcher(None, left, right, autojunk=False).get_opcodes():
        if tag == "equal":
            continue
        both = min(i_end - i, j_end - j)
        for k in range(both):
            yield from _compare(a[i + k], b[j + k], f"{path}[{i + k}]")
        for k in range(i + both, i_end):
            yield Difference(f"{path}[{k}]", a[k], None, "a")
        for k in range(j + both, j_end):
            yield Difference(f"{path}[{k}]", None, b[k], "b")


def text(found: Sequence[Difference], a: str, b: str) -> str:
    """Differences between the games named a and b as aligned lines of at most 80 characters."""
    a, b = ascii_only(a), ascii_only(b)
    if not found:
        return "\n".join(hang("", f"{a} and {b} do not differ"))
    if a == b:  # two games of one name
        a, b = f"{a} (first)", f"{b} (second)"
    width = min(42, 2 + max(len(one.path) for one in found))
    lines = []
    for one in found:
        start = ascii_only(f"{one.path}: ")
        if len(start) > width:  # a long path has a line of its own
            lines += hang("", start)
            start = ""
        lines += hang(start.ljust(width), _words(one, a, b), width)
    return "\n".join(lines)


def _words(one: Difference, a: str, b: str) -> str:
    if not one.only:
        return f"{_show(one.a)} -> {_show(one.b)}"
    name, value = (a, one.a) if one.only == "a" else (b, one.b)
    # An object type would take a page, and its name says enough.
    said = "" if isinstance(value, dict) and "converter" in value else f": {_show(value)}"
    return f"only in {name}{said}"


def _show(value: Any) -> str:
    if isinstance(value, dict) and {"weight", "value", "mode"} <= value.keys():
        return describe(RewardTerm.load(value))
    return value if isinstance(value, str) and value else json.dumps(value).replace('"', "")
