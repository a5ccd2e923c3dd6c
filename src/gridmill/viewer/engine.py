"""The engine that pages run: where its WebAssembly module is, and how a checkout makes it.

A wheel has the module inside: its build makes it (GRIDMILL_PAGES in CMakeLists.txt). A checkout builds it (`make
viewer`, or here at the first use) with the compiler of `pip install ziglang`, and again when native/ is newer: a page
with another engine than Python would find differences where there are none.
"""

from __future__ import annotations

import importlib.util
import os
import signal
import subprocess
import sys
from pathlib import Path

from gridmill.config.install import pip_install
from gridmill.runs.stop import handling

MODULE = Path(__file__).parent / "page" / "engine.wasm"
CHECKOUT = Path(__file__).parents[3]
BUILDER = CHECKOUT / "scripts" / "build_engine.py"


class EngineMissing(RuntimeError):
    """There is no module, and none can be made here: one line that says what would help."""


def path() -> Path:
    """The module, made first where it is missing or older than what it is made of."""
    if not _stale():
        return MODULE
    state = "older than native/" if MODULE.exists() else "not there"
    if not BUILDER.exists():
        raise EngineMissing(
            f"viewer: expected the engine for browser pages in `{MODULE}`, but this install was made without one "
            "(GRIDMILL_PAGES=OFF); install a wheel made with it, or a checkout, where `make viewer` builds it"
        )
    if importlib.util.find_spec("ziglang") is None:
        raise EngineMissing(
            f"viewer: expected the engine for browser pages in `{MODULE}`, but it is {state}; "
            f"`{pip_install('ziglang==0.17.0')}` and `make viewer` build it"
        )
    print("viewer: building the engine for web pages; this takes some minutes, once", file=sys.stderr)
    code, said = _build()
    if code != 0 or not MODULE.exists():
        reason = (said.strip().splitlines() or ["no reason was given"])[0]
        raise EngineMissing(
            f"viewer: the engine for web pages could not be built: {reason[:300]}; `make viewer` shows all of it"
        )
    return MODULE


def _build() -> tuple[int, str]:
    """What the builder ended with, and its errors. Its compilers, which would go on for minutes, end when we do."""
    words = [sys.executable, str(BUILDER)]
    ends = [one for one in (signal.SIGTERM, signal.SIGHUP) if signal.getsignal(one) == signal.SIG_DFL]
    with subprocess.Popen(
        words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    ) as it:
        try:
            with handling(ends, lambda number, _: sys.exit(128 + number)):
                said = it.communicate()[1]
        except BaseException:
            os.killpg(it.pid, signal.SIGKILL)  # not yet waited for, so the group is still its own
            raise
    return it.returncode, said


def read() -> bytes:
    """The module's bytes."""
    return path().read_bytes()


def _stale() -> bool:
    if not MODULE.exists():
        return True
    sources = CHECKOUT / "native"
    if not BUILDER.exists() or not sources.is_dir():  # installed: what it was made of is not here
        return False
    made = MODULE.stat().st_mtime
    return any(file.stat().st_mtime > made for file in sources.rglob("*.?pp") if file.parent.name != "bind")
