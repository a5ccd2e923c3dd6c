"""Pythons that we start take no module from the current folder: a `numpy.py` that lies there would be run."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

SOURCE = Path(__file__).resolve().parents[2] / "src" / "gridmill"
APART = ("'-P'", "'-I'")  # no current folder; nothing of the user's at all


def commands(source: str) -> Iterator[tuple[int, bool]]:
    """Lists of words that start a Python: their lines, and whether its options keep it apart.

    What follows the interpreter is one of the options, or the path of a script, whose folder it takes then.
    """
    pythons = {"sys.executable", *(["base"] if "_base_executable" in source else [])}
    for node in ast.walk(ast.parse(source)):
        words = [ast.unparse(word) for word in node.elts] if isinstance(node, ast.List) else []
        if found := pythons.intersection(words):
            after = words[words.index(found.pop()) + 1 :]
            yield node.lineno, bool(after) and (after[0] in APART or after[0].startswith("str("))


def test_children_take_no_module_from_the_current_folder() -> None:
    found = [(file.relative_to(SOURCE), *one) for file in SOURCE.rglob("*.py") for one in commands(file.read_text())]
    assert len(found) >= 8
    assert [f"{file}:{line}" for file, line, apart in found if not apart] == []


@pytest.mark.parametrize(
    ("words", "apart"),
    [
        ("[sys.executable, '-P', '-c', CODE]", True),
        ("[sys.executable, str(SCRIPT)]", True),
        ("[sys.executable, '-c', CODE]", False),
        ("[sys.executable]", False),
        ("base = sys._base_executable; ['env', base, '-m', 'worker']", False),
    ],
)
def test_what_is_not_apart_is_found(words: str, apart: bool) -> None:
    assert [one for _, one in commands(words)] == [apart]
