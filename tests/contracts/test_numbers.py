"""docs/numbers.md is what the files in bench/results/ say, and its tables say what the outputs beside them do."""

from __future__ import annotations

import csv
import re
import sys
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "scripts"))
import numbers_page

TABLES = numbers_page.tables()


def outputs(table: dict[str, Any], suffix: str) -> list[Path]:
    return [numbers_page.RESULTS / name for name in table["outputs"] if name.endswith(suffix)]


def test_the_page_is_current():
    assert numbers_page.PAGE.read_text() == numbers_page.page(), "run `python scripts/numbers_page.py`"


def test_every_table_has_a_section_and_what_must_stand_beside_its_figures():
    for table in TABLES:
        assert table["section"] in numbers_page.SECTIONS
        assert table["machine"]
        assert table["commands"]
        assert re.fullmatch(r"[0-9a-f]{7}", table["commit"])
        assert all((numbers_page.RESULTS / name).exists() for name in table["outputs"])
        assert all(len(row) == len(table["columns"]) for row in table["rows"])


@pytest.mark.parametrize("table", [t for t in TABLES if outputs(t, ".txt")], ids=lambda t: t["title"])
def test_figures_are_those_of_the_outputs(table):
    printed = "\n".join(path.read_text() for path in outputs(table, ".txt"))
    known = set(re.findall(r"\d+\.\d+", printed))
    shown = {figure for row in table["rows"] for cell in row[1:] for figure in re.findall(r"\d+\.\d+", cell)}
    assert shown
    assert shown <= known, shown - known


def test_levels_of_the_arena_are_those_of_the_curves():
    """The mean of the last four lines of a curve, 2 M steps, weighted by their episodes."""
    (table,) = (t for t in TABLES if outputs(t, ".csv"))
    for row, path in zip(table["rows"], outputs(table, ".csv"), strict=True):
        with path.open() as file:
            last = list(csv.DictReader(file))[-4:]
        episodes = sum(int(line["episodes"]) for line in last)
        mean = sum(int(line["episodes"]) * float(line["heart.get"]) for line in last) / episodes
        assert row[-1].startswith(f"{mean:.1f} ")
