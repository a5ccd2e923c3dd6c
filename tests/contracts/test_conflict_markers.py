"""No merge was left half done: no tracked text file holds the markers of a conflict."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
# Spelled so that this file does not hold them. A row of `=` alone may underline a heading, so it is not asked for.
MARKER = re.compile(rb"^(<{7}|>{7}|\|{7})( |$)", re.MULTILINE)


def marked(text: bytes) -> list[int]:
    """The lines of a text that are markers; a file with a zero byte is not text."""
    return [] if b"\0" in text else [text.count(b"\n", 0, found.start()) + 1 for found in MARKER.finditer(text)]


@pytest.mark.parametrize("side", ["<", ">", "|"])
def test_markers_are_seen(side: str) -> None:
    text = f"before\n{side * 7} HEAD\nafter\n{side * 8}\n {side * 7}\n".encode()
    assert marked(text) == [2]
    assert marked(b"\0" + text) == []


def test_no_tracked_file_holds_any() -> None:
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True, text=True)
    files = [ROOT / name for name in listed.stdout.split("\0") if name]
    assert len(files) > 100
    found = {str(path.relative_to(ROOT)): marked(path.read_bytes()) for path in files if path.is_file()}
    assert {name: lines for name, lines in found.items() if lines} == {}
