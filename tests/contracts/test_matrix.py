"""The table at the end of docs/reliability.md is made of the records, and reports of pytest are counted right."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from types import ModuleType

ROOT = Path(__file__).resolve().parents[2]

REPORT = """<testsuites><testsuite timestamp="2026-01-02T03:04:05">
<testcase classname="tests.a.test_b" name="one[1]">
<properties><property name="figure" value="7 of 7"/></properties></testcase>
<testcase classname="tests.a.test_b" name="two"><failure message="no">no</failure></testcase>
<testcase classname="tests.a.test_b" name="three"><skipped message="no"/></testcase>
<testcase classname="tests.a.test_c" name="one"/>
</testsuite></testsuites>"""
PROMISES = {
    "tests/a/test_b.py::one": ["R1"],
    "tests/a/test_b.py::two": ["R1", "R2"],
    "tests/a/test_b.py::three": ["R2"],
}


def script() -> ModuleType:
    if str(ROOT / "scripts") not in sys.path:
        sys.path.append(str(ROOT / "scripts"))
    return importlib.import_module("matrix")


def test_the_page_is_that_of_the_records() -> None:
    matrix = script()
    assert matrix.PAGE.read_text() == matrix.page(matrix.load()), "run: python scripts/matrix.py"


def test_every_promise_has_a_row() -> None:
    matrix = script()
    before, _, table = matrix.PAGE.read_text().partition(matrix.BEGIN)
    rows = [line.split("|")[1].strip() for line in table.splitlines() if line.startswith("| ")]
    assert rows == ["promise", *matrix.promised(before)]


def test_a_report_is_counted_by_promise(tmp_path: Path) -> None:
    report = tmp_path / "report.xml"
    report.write_text(REPORT)
    found = script().read(report, "abc1234", PROMISES)
    same = {"date": "2026-01-02", "commit": "abc1234"}
    assert found == {
        "R1": same | {"passed": 1, "failed": 1, "skipped": 0, "figures": ["7 of 7"]},
        "R2": same | {"passed": 0, "failed": 1, "skipped": 1, "figures": []},
    }


def test_what_never_ran_is_said() -> None:
    """And of what ran, the oldest date."""
    matrix = script()
    old, new = (matrix.long_tier.TestResult(date, "abc1234", 1.0, passed=2) for date in ("2026-01-01", "2026-02-02"))
    assert matrix.long_text([]) == "none"
    assert matrix.long_text([("t.py::a", old), ("t.py::b", new)]) == "4 passed (2026-01-01, abc1234)"
    assert matrix.long_text([("t.py::a", new), ("t.py::b", None)]) == "2 passed (2026-02-02, abc1234); no record: `b`"
    assert matrix.long_text([("t.py::b", None)]) == "no record: `b`"
    assert matrix.quick_text(None) == "none"
    one = {"date": "2026-01-02", "commit": "abc1234", "passed": 3, "failed": 0, "skipped": 1}
    assert matrix.quick_text(one) == "3 passed, 1 skipped (2026-01-02, abc1234)"
