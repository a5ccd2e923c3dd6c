"""Which tests cost most, by CPU seconds: those of the process and of what it waited for, whatever else the machine did.

python scripts/slow_tests.py [build/tests.xml] [--most 40]
"""

from __future__ import annotations

import argparse
import xml.etree.ElementTree as ElementTree
from collections import Counter
from pathlib import Path


def costs(report: Path) -> tuple[Counter[str], Counter[str]]:
    """CPU seconds by file, and by test function with all its cases."""
    files: Counter[str] = Counter()
    functions: Counter[str] = Counter()
    for case in ElementTree.parse(report).getroot().iter("testcase"):
        place = str(case.get("classname")).removeprefix("tests.")
        for one in case.iter("property"):
            if one.get("name") == "cpu":
                spent = float(str(one.get("value")))
                files[place] += spent  # type: ignore[assignment]
                functions[f"{place}::{str(case.get('name')).partition('[')[0]}"] += spent  # type: ignore[assignment]
    return files, functions


def main() -> None:
    parser = argparse.ArgumentParser(description="list the tests that cost most CPU time")
    parser.add_argument("report", nargs="?", type=Path, default=Path("build/tests.xml"))
    parser.add_argument("--most", type=int, default=40)
    asked = parser.parse_args()
    files, functions = costs(asked.report)
    total = sum(files.values())
    print(f"{total:.0f} CPU seconds in {len(files)} files")
    for title, counted in (("file", files), ("test", functions)):
        print(f"\n  CPU s  share  {title}")
        for name, spent in counted.most_common(asked.most):
            print(f"{spent:7.1f} {100 * spent / total:5.1f}%  {name}")


if __name__ == "__main__":
    main()
