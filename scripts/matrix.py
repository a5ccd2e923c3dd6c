"""Writes the table at the end of docs/reliability.md: when each promise was tested last, at which commit, what came.

python scripts/matrix.py                            from the records there are
python scripts/matrix.py --report build/tests.xml   after `make test`: its results go into the record first

The records: bench/results/matrix.json (tests of every change, and which long tests there are), long_tier.json (see
scripts/long_tier.py) and soak.jsonl (scripts/soak.py).
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import re
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any

import long_tier
import soak

ROOT = Path(__file__).resolve().parents[1]
RECORD = ROOT / "bench" / "results" / "matrix.json"
PAGE = ROOT / "docs" / "reliability.md"
BEGIN = "<!-- the table below is written by scripts/matrix.py -->\n"
SHOWN = 3  # figures of a tier
LONGEST = 300  # characters of a figure
PROMISE = re.compile(r"[A-Z]\d+")


def read(report: Path, at: str, promises: dict[str, list[str]]) -> dict[str, dict[str, Any]]:
    """The results of every promise in a report of pytest; `promises` are those of each test function."""
    root = ElementTree.parse(report).getroot()
    date = next((str(suite.get("timestamp"))[:10] for suite in root.iter("testsuite") if suite.get("timestamp")), "")
    found: dict[str, dict[str, Any]] = {}
    for case in root.iter("testcase"):
        failed = case.find("failure") is not None or case.find("error") is not None
        ended = "failed" if failed else "skipped" if case.find("skipped") is not None else "passed"
        file = str(case.get("classname")).replace(".", "/")
        for promise in promises.get(f"{file}.py::{str(case.get('name')).partition('[')[0]}", []):
            new = {"date": date, "commit": at, "passed": 0, "failed": 0, "skipped": 0, "figures": []}
            one = found.setdefault(promise, new)
            one[ended] += 1
            figures = [str(told.get("value")) for told in case.iter("property") if told.get("name") == "figure"]
            one["figures"] = [*one["figures"], *figures][:SHOWN]
    return found


def tests() -> tuple[dict[str, list[str]], dict[str, list[str]]]:
    """The promises of every test function, and the long tests of every promise, as pytest finds them."""
    import pytest

    promises: dict[str, set[str]] = {}
    long: dict[str, set[str]] = {}

    class Finder:
        def pytest_collection_finish(self, session: pytest.Session) -> None:
            for item in session.items:
                names = {mark.name for mark in item.iter_markers()}
                rows, function = {name for name in names if PROMISE.fullmatch(name)}, item.nodeid.partition("[")[0]
                promises.setdefault(function, set()).update(rows)
                for row in rows if "long" in names else ():
                    long.setdefault(row, set()).add(function)

    with contextlib.redirect_stdout(io.StringIO()) as said:
        asked = ["-m", "", "--collect-only", "-q", "-p", "no:cacheprovider", "--rootdir", str(ROOT)]
        if pytest.main([*asked, str(ROOT / "tests")], plugins=[Finder()]) != 0:
            sys.exit(f"matrix: expected pytest to list the tests, got {said.getvalue()[-500:]}")
    return {one: sorted(rows) for one, rows in promises.items()}, {one: sorted(found) for one, found in long.items()}


def table(record: dict[str, Any], before: str) -> str:
    """The section, from the records; `before` is the rest of the page."""
    ran = long_tier.load()
    lines = [
        "## When each promise was last tested",
        "",
        "Written by `python scripts/matrix.py` from the test reports. Every change: the tests of `make test`. Long:",
        "those of `make test-full`, with the oldest of their dates; [a page](lab/long-tier.md) lists each of them.",
        "[Another page](lab/attacks.md) lists the attacks that were tried, how often, and their results.",
        "",
        "| promise | every change | long | figures |",
        "|---|---|---|---|",
    ]
    for promise in promised(before):
        quick = record["every_change"].get(promise)
        results = [(name, ran.get(name)) for name in record["long"].get(promise, [])]
        figures = list(quick["figures"]) if quick else []
        figures += [text for _, one in results if one is not None for text in one.figures][:SHOWN]
        figures += others(promise)
        shown = "; ".join(clipped(text) for text in dict.fromkeys(figures or stated(before, promise)))
        lines.append(f"| {promise} | {quick_text(quick)} | {long_text(results)} | {shown} |")
    return "\n".join(lines) + "\n"


def quick_text(one: dict[str, Any] | None) -> str:
    if one is None:
        return "none"
    counts = [f"{one[name]} {name}" for name in ("passed", "failed", "skipped") if one[name]]
    return f"{', '.join(counts)} ({one['date']}, {one['commit']})"


def long_text(results: list[tuple[str, long_tier.TestResult | None]]) -> str:
    if not results:
        return "none"
    known = [one for _, one in results if one is not None]
    never = [f"`{name.rpartition('::')[2]}`" for name, one in results if one is None]
    sums = {name: sum(getattr(one, name) for one in known) for name in ("passed", "failed", "skipped")}
    parts = [", ".join(f"{count} {name}" for name, count in sums.items() if count)] if known else []
    if known:
        oldest = min(known, key=lambda one: one.date)
        parts[0] += f" ({oldest.date}, {oldest.commit})"
    return "; ".join([*parts, *([f"no record: {', '.join(never)}"] if never else [])])


def others(promise: str) -> list[str]:
    """Figures of what is no test of pytest."""
    if promise == "S4" and soak.RECORD.exists():
        pieces = soak.load(soak.RECORD)
        return [f"in pieces, the last at {pieces[-1].commit}: {soak.summed(pieces)[0]}"]
    return []


def stated(page: str, promise: str) -> list[str]:
    """The figure in the text of a promise: what tests that count nothing demand, or what was measured earlier."""
    for paragraph in page.split("\n\n"):
        heading = re.match(r"\*\*([A-Z0-9, ]+)\.\*\* ", paragraph)
        if heading and promise in heading[1].split(", ") and "*Figure:*" in paragraph:
            return [paragraph.partition("*Figure:*")[2]]
    return []


def clipped(text: str) -> str:
    text = " ".join(text.replace("|", "/").replace("`", "'").split())
    return text if len(text) <= LONGEST else text[: LONGEST - 3] + "..."


def promised(page: str) -> list[str]:
    """The promises of the page, in its order."""
    headings = re.findall(r"^\*\*([A-Z0-9, ]+)\.\*\* ", page, re.MULTILINE)
    return [row for heading in headings for row in heading.split(", ")]


def page(record: dict[str, Any]) -> str:
    """The page with its table made anew."""
    before = PAGE.read_text().partition(BEGIN)[0]
    return f"{before}{BEGIN}{table(record, before)}"


def write() -> None:
    """The page again, from the records as they are now."""
    PAGE.write_text(page(load()))


def load() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(RECORD.read_text())
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description="write the table of docs/reliability.md")
    parser.add_argument("--report", type=Path, help="a report of `make test` to take results from")
    parser.add_argument("--commit", help="the commit it is of (default: the one checked out)")
    asked = parser.parse_args()
    record = load() if RECORD.exists() else {"every_change": {}, "long": {}}
    promises, record["long"] = tests()
    if asked.report is not None:
        record["every_change"] |= read(asked.report, asked.commit or long_tier.commit(), promises)
    RECORD.write_text(json.dumps(record, indent=1, sort_keys=True, ensure_ascii=False) + "\n")
    write()


if __name__ == "__main__":
    main()
