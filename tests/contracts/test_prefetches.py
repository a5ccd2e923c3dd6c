"""Memory that is asked for ahead is really asked for: the instructions are in the object file.

gcc 12 takes a function that only asks for memory for one that does nothing and leaves out its calls; nothing else shows
that, for the bytes stay the same and only the speed goes.
"""

from __future__ import annotations

import functools
import platform
import re
import shutil
import subprocess
from pathlib import Path

import pytest

ARCHIVE = Path(__file__).parents[2] / "build" / "Release" / "libgridmill_native.a"
# What native/grid/ahead.hpp asks for, each a place of its own in the code; of a range the lines are asked for in a loop
# and the last one once more.
AROUND = {
    "visits, in a large world": 1,
    "rows of what areas reach": 1,
    "columns of what areas reach": 1,
    "the strip of what is occupied": 2,
    "the strip of plain terrain": 2,
    "the agent's slot": 2,
    "lines of the window": 1,
}
ASKED = {
    "act_in_shuffled_order": {
        "lines that every tick touches": 1,
        "visits, before the last agent of a small world": 1,
        **AROUND,
    },
    "apply_areas": AROUND,
}


@functools.cache
def bodies(archive: Path) -> dict[str, str]:
    """The instructions of every function by its name, parts the compiler split off under names of their own."""
    done = subprocess.run(
        ["objdump", "--disassemble", "--reloc", "--no-show-raw-insn", str(archive)],
        capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return dict(re.findall(r"^[0-9a-f]+ <([\w.]+)>:\n((?:.+\n)+)", done.stdout, re.MULTILINE))


def prefetches(code: dict[str, str], function: str) -> int:
    """Instructions in all bodies of a function, and in what it calls to ask for what lies around an agent."""
    own = "".join(body for name, body in code.items() if function in name)
    assert own, f"{function} is not there"
    called = "".join(body for name, body in code.items() if "ask_around" in name and name in own)
    return len(re.findall(r"\tprefetch\w+ ", own + called))


def missing() -> str:
    if platform.machine() not in ("x86_64", "AMD64"):
        return f"instructions of x86-64 are looked for, this is {platform.machine()}"
    if shutil.which("objdump") is None:
        return "needs objdump (package binutils)"
    if not ARCHIVE.exists():
        return f"needs {ARCHIVE}, which `make build` leaves"
    return ""


@pytest.mark.parametrize("function", ASKED)
def test_every_kind_of_memory_is_asked_for_ahead(function: str) -> None:
    if why := missing():
        pytest.skip(why)
    assert prefetches(bodies(ARCHIVE), function) >= sum(ASKED[function].values())
