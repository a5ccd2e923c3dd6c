"""docs/reliability.md, the markers in pyproject.toml and the tests speak of the same promises."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_every_promise_has_a_marker_and_every_marker_a_test() -> None:
    page = (ROOT / "docs" / "reliability.md").read_text()
    headings = re.findall(r"^\*\*([A-Z0-9, ]+)\.\*\* ", page, re.MULTILINE)
    promised = [row for heading in headings for row in heading.split(", ")]
    assert len(set(promised)) == len(promised) > 30
    options = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["pytest"]["ini_options"]
    registered = {name for name in (line.partition(":")[0] for line in options["markers"]) if name != "long"}
    assert registered == set(promised)
    tests = "".join(path.read_text() for path in (ROOT / "tests").rglob("test_*.py"))
    assert set(re.findall(r"\bpytest\.mark\.([A-Z]\d+)\b", tests)) == registered
