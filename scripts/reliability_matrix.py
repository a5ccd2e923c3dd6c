"""Writes docs/reliability.md from the tests that carry a row's id and from the results of the last `make test`.

A row is a test function whose name contains an id (`test_D1_...`); its docstring says what holds, the recorded
property `figure` what was measured. Called by `make docs`; reads build/tests.xml and build/tests-long.xml if there.
"""

from __future__ import annotations

import ast
import re
import xml.etree.ElementTree as ElementTree
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
ID = re.compile(r"test_([A-Z]\d+)_(\w+)")
INTRO = """# Reliability

Each row is a test with that id under `tests/reliability/`; this page is written by `make docs` from the tests and the
results of the last run. **P** runs in `make test`, **N** in `make test-full`. That also runs all of **P** with the
kernels for any CPU (`make test-portable`), and the native tests with the golden hashes of D4 on aarch64 under qemu
(`make test-aarch64`).

| row | what holds | tier | last result | figure |
|---|---|---|---|---|
"""


@dataclass
class Row:
    row: str
    name: str
    text: str
    tier: str
    outcomes: list[str] = field(default_factory=list)
    figures: list[str] = field(default_factory=list)

    def line(self) -> str:
        counts = {kind: self.outcomes.count(kind) for kind in ("passed", "failed", "skipped") if kind in self.outcomes}
        result = ", ".join(f"{count} {kind}" for kind, count in counts.items()) or "not run"
        figure = self.figures[-1].replace("|", "/") if self.figures else ""
        return f"| {self.row} | {self.text} | {self.tier} | {result} | {figure} |\n"


def rows() -> dict[str, Row]:
    found = {}
    for path in sorted((ROOT / "tests" / "reliability").glob("test_*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if not isinstance(node, ast.FunctionDef) or not (match := ID.match(node.name)):
                continue
            marks = [ast.unparse(mark) for mark in node.decorator_list]
            text = (ast.get_docstring(node) or match[2].replace("_", " ")).splitlines()[0].rstrip(".")
            tier = "N" if any("long" in mark for mark in marks) else "P"
            found[node.name] = Row(match[1], node.name, text, tier)
    return found


def add_results(found: dict[str, Row], report: Path) -> None:
    if not report.exists():
        return
    for case in ElementTree.parse(report).iter("testcase"):
        row = found.get(case.get("name", "").split("[")[0])
        if row is None:
            continue
        kinds = {child.tag for child in case}
        row.outcomes.append("failed" if kinds & {"failure", "error"} else "skipped" if "skipped" in kinds else "passed")
        row.figures += [p.get("value", "") for p in case.iter("property") if p.get("name") == "figure"]


def main() -> None:
    if not (ROOT / "build" / "tests.xml").exists():
        print("no test results (make test writes them); docs/reliability.md is left as it is")
        return
    found = rows()
    for report in ("tests.xml", "tests-long.xml"):
        add_results(found, ROOT / "build" / report)
    order = sorted(found.values(), key=lambda r: (r.row[0], int(r.row[1:]), r.tier, r.name))
    (ROOT / "docs" / "reliability.md").write_text(INTRO + "".join(row.line() for row in order))


if __name__ == "__main__":
    main()
