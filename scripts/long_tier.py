"""The long tests in turns, and the record of when each ran last.

    python scripts/long_tier.py [--minutes 60] [--only WORD] [--skip WORD] [--list]

The long tier takes hours. This runs one test function after the other, those that never ran first, then those whose
record is oldest, and stops when the minutes are over. After each it writes bench/results/long_tier.json and the page
made of it, docs/lab/long-tier.md, so that a run which is stopped has still counted. `make test-full` runs all of them.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
import xml.etree.ElementTree as ElementTree
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
RECORD = ROOT / "bench" / "results" / "long_tier.json"
PAGE = ROOT / "docs" / "lab" / "long-tier.md"
JUNIT = ROOT / "build" / f"tests-long-{os.getpid()}.xml"  # two of these may run at once
TIMEOUT = 7_200  # seconds for one test, unless it says otherwise


@dataclass(frozen=True)
class TestResult:
    """How one test function ended last: all its cases together."""

    date: str
    commit: str
    seconds: float
    passed: int = 0
    failed: int = 0
    skipped: int = 0
    figures: list[str] = field(default_factory=list)


def collect() -> list[str]:
    """The long tests, `file::function`, each once."""
    asked = [sys.executable, "-m", "pytest", "-m", "long", "--collect-only", "-q", "-p", "no:cacheprovider"]
    done = subprocess.run(asked, cwd=ROOT, capture_output=True, text=True)
    names = [line.partition("[")[0] for line in done.stdout.splitlines() if line.startswith("tests/")]
    if not names:
        sys.exit(f"long_tier: expected a list of long tests, got none; {done.stdout[-500:]}{done.stderr[-500:]}")
    return list(dict.fromkeys(names))


def commit() -> str:
    """What is tested: `-dirty` if more was changed than the records, which each of these runs writes."""
    git = ["git", "-C", str(ROOT)]
    at = subprocess.run([*git, "rev-parse", "--short=7", "HEAD"], capture_output=True, text=True).stdout.strip()
    if not at:
        return "unknown"
    written = [RECORD.parent, PAGE, ROOT / "docs" / "reliability.md"]
    asked = [*git, "diff", "--quiet", "HEAD", "--", str(ROOT), *(f":(exclude){path}" for path in written)]
    return at + ("-dirty" if subprocess.run(asked).returncode else "")


def run(name: str, at: str) -> TestResult:
    """One test function; what its cases said is read from pytest's own report."""
    JUNIT.parent.mkdir(exist_ok=True)
    JUNIT.unlink(missing_ok=True)
    began = time.monotonic()
    asked = [
        sys.executable,
        "-m",
        "pytest",
        "-m",
        "long",
        "-q",
        "--timeout",
        str(TIMEOUT),
        "--junitxml",
        str(JUNIT),
        name,
    ]
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
    done = subprocess.run(asked, cwd=ROOT, env=environment)
    seconds = round(time.monotonic() - began, 1)
    date = datetime.now(UTC).strftime("%Y-%m-%d")
    if not JUNIT.exists():  # pytest itself was killed
        return TestResult(date, at, seconds, failed=1, figures=[f"pytest ended with {done.returncode}"])
    return read(JUNIT, date, at, seconds)


def read(report: Path, date: str, at: str, seconds: float) -> TestResult:
    cases = ElementTree.parse(report).getroot().findall(".//testcase")
    failed = sum(case.find("failure") is not None or case.find("error") is not None for case in cases)
    skipped = sum(case.find("skipped") is not None for case in cases)
    found = [one for case in cases for one in case.iter("property") if one.get("name") == "figure"]
    figures = [str(one.get("value")) for one in found]
    return TestResult(date, at, seconds, len(cases) - failed - skipped, failed, skipped, figures)


def load() -> dict[str, TestResult]:
    if not RECORD.exists():
        return {}
    return {name: TestResult(**values) for name, values in json.loads(RECORD.read_text()).items()}


def save(record: dict[str, TestResult]) -> None:
    written = {name: asdict(record[name]) for name in sorted(record)}
    RECORD.write_text(json.dumps(written, indent=1, ensure_ascii=False) + "\n")
    PAGE.write_text(page(record))


def page(record: dict[str, TestResult]) -> str:
    lines = [
        "# The long tests and when each last ran",
        "",
        "Written by `python scripts/long_tier.py`, which runs the tests in turns, the one with the oldest record",
        "first. Seconds are wall-clock time, on machines that also run other work.",
        "",
        "| test | passed | failed | skipped | seconds | date | commit | figures |",
        "|---|--:|--:|--:|--:|---|---|---|",
    ]
    for name in sorted(record):
        one = record[name]
        shown = "; ".join(one.figures[:3]) + (f" and {len(one.figures) - 3} more" if len(one.figures) > 3 else "")
        counts = f"{one.passed} | {one.failed} | {one.skipped} | {one.seconds:,.0f}"
        place = name.removeprefix("tests/").replace("|", "\\|")
        lines.append(f"| `{place}` | {counts} | {one.date} | {one.commit} | {shown.replace('|', '/')} |")
    return "\n".join(lines) + "\n"


def main() -> int:
    parser = argparse.ArgumentParser(description="run the long tests in turns and record when each ran")
    parser.add_argument("--minutes", type=float, help="begin no test after so many minutes (default: run all)")
    parser.add_argument("--only", help="tests whose name contains this word")
    parser.add_argument("--skip", help="no tests whose name contains one of these words, separated by commas")
    parser.add_argument("--list", action="store_true", help="show the order and run nothing")
    asked = parser.parse_args()
    record = load()
    names = [name for name in collect() if asked.only is None or asked.only in name]
    names = [name for name in names if not any(word in name for word in (asked.skip or "\0").split(","))]
    names.sort(key=lambda name: record[name].date if name in record else "")
    if asked.list:
        print("\n".join(f"{record[name].date if name in record else 'never':<10}  {name}" for name in names))
        return 0
    began, at, failed = time.monotonic(), commit(), 0
    for index, name in enumerate(names):
        minutes = (time.monotonic() - began) / 60
        if asked.minutes is not None and minutes >= asked.minutes:
            print(f"long_tier: {minutes:.0f} minutes are over; {len(names) - index} tests are left for the next time")
            break
        print(f"long_tier: {index + 1} of {len(names)}, {name}", flush=True)
        found = run(name, at)
        record = {**load(), name: found}  # read now: another of these may have written meanwhile
        save(record)
        failed += record[name].failed
    import matrix  # late: it reads this record

    matrix.write()
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
