"""Files compiled for an instruction set keep what they compile to themselves.

An inline function that several files have is in the program once, and the linker chooses from which: from a file for
AVX-512 it would run on CPUs that have none.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

ARCHIVE = Path(__file__).parents[2] / "build" / "Release" / "libgridmill_native.a"


def members(archive: Path) -> dict[str, list[str]]:
    """Weak functions of each object file whose name says an instruction set."""
    done = subprocess.run(["nm", "--print-file-name", str(archive)], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    found: dict[str, list[str]] = {}
    for line in done.stdout.splitlines():
        if match := re.match(r".*:(\w+_avx\w+)\.cpp\.o:[0-9a-f ]*([A-Za-z]) (\S+)$", line):
            weak = [match[3]] if match[2] == "W" else []
            found.setdefault(match[1], []).extend(weak)
    return found


def test_kernels_share_no_function_with_other_files() -> None:
    if shutil.which("nm") is None:
        pytest.skip("needs nm (package binutils)")
    if not ARCHIVE.exists():
        pytest.skip(f"needs {ARCHIVE}, which `make build` leaves")
    found = members(ARCHIVE)
    assert found, f"no kernels in {ARCHIVE}"
    assert {name: weak for name, weak in found.items() if weak} == {}
