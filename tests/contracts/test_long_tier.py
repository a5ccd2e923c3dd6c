"""The record of the long tests: it speaks of tests that exist, its page is made of it, and reports are read right."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

ROOT = Path(__file__).resolve().parents[2]

REPORT = """<testsuites><testsuite>
<testcase name="a[1]"><properties><property name="figure" value="7 of 7"/></properties></testcase>
<testcase name="a[2]"><failure message="no">no</failure></testcase>
<testcase name="b"><skipped message="no browser"/></testcase>
<testcase name="c"><error message="gone">gone</error></testcase>
</testsuite></testsuites>"""


def script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("long_tier", ROOT / "scripts" / "long_tier.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["long_tier"] = module
    spec.loader.exec_module(module)
    return module


def test_every_recorded_test_exists() -> None:
    for name in script().load():
        file, _, function = name.partition("::")
        assert f"def {function}(" in (ROOT / file).read_text(), f"{name} is in the record and not in the tests"


def test_the_page_is_that_of_the_record() -> None:
    long_tier = script()
    assert long_tier.PAGE.read_text() == long_tier.page(long_tier.load())


def test_a_report_is_counted(tmp_path: Path) -> None:
    report = tmp_path / "report.xml"
    report.write_text(REPORT)
    found = script().read(report, "2026-01-02", "abc1234", 3.0)
    assert (found.passed, found.failed, found.skipped) == (1, 2, 1)
    assert found.figures == ["7 of 7"]


def test_those_that_never_ran_come_first_and_then_the_oldest(monkeypatch, tmp_path: Path, capsys) -> None:
    long_tier = script()
    monkeypatch.setattr(long_tier, "collect", lambda: ["tests/a.py::new", "tests/a.py::old", "tests/a.py::never"])
    monkeypatch.setattr(long_tier, "RECORD", tmp_path / "record.json")
    monkeypatch.setattr(long_tier, "PAGE", tmp_path / "page.md")
    long_tier.save(
        {
            "tests/a.py::new": long_tier.TestResult("2026-02-02", "b", 1.0, passed=1),
            "tests/a.py::old": long_tier.TestResult("2026-01-01", "a", 1.0, passed=1),
        }
    )
    monkeypatch.setattr(sys, "argv", ["long_tier.py", "--list"])
    assert long_tier.main() == 0
    assert [line.split("::")[1] for line in capsys.readouterr().out.splitlines()] == ["never", "old", "new"]


def test_a_tree_with_new_records_is_still_the_commit(monkeypatch, tmp_path: Path) -> None:
    """Each of these runs writes its record: the next one was said to be of a changed tree."""
    long_tier = script()
    record, page, code = tmp_path / "results" / "long_tier.json", tmp_path / "long-tier.md", tmp_path / "code.py"
    for name, path in {"ROOT": tmp_path, "RECORD": record, "PAGE": page}.items():
        monkeypatch.setattr(long_tier, name, path)
    record.parent.mkdir()
    for path in (record, page, code):
        path.write_text("before\n")
    assert long_tier.commit() == "unknown"
    git = ["git", "-C", str(tmp_path), "-c", "user.name=t", "-c", "user.email=t@example.org"]
    for words in (["init", "-q"], ["add", "."], ["commit", "-q", "-m", "first"]):
        subprocess.run([*git, *words], check=True)
    at = long_tier.commit()
    assert re.fullmatch("[0-9a-f]{7,}", at)
    record.write_text("now\n")
    page.write_text("now\n")
    assert long_tier.commit() == at
    code.write_text("now\n")
    assert long_tier.commit() == f"{at}-dirty"
