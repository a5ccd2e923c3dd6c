"""Switches: environment variables that change what runs, and the names that users of MettaGrid know them by.

An older name is taken where it means the same; ours wins if both are set. Whoever writes results down writes
`in_force()` beside them, so that nobody has to remember what was set.
"""

from __future__ import annotations

import difflib
import os

PROFILING = "GRIDMILL_PROFILING"
VALIDATION = "GRIDMILL_OBS_VALIDATION"
FAST = "GRIDMILL_OBS_USE_OPTIMIZED"
ISA = "GRIDMILL_ISA"  # read by the core itself when it is loaded
_OURS, _THEIRS = "GRIDMILL_", "METTAGRID_"
_TAKEN = {name.replace(_OURS, _THEIRS): name for name in (PROFILING, VALIDATION, FAST)}
KNOWN = (PROFILING, VALIDATION, FAST, ISA)


def switch(name: str, given: bool | None, default: bool) -> bool:
    """An argument, or else an environment variable (0/1), ours or the older one, or else the default."""
    if given is not None:
        return given
    for variable in (name, name.replace(_OURS, _THEIRS)):
        text = os.environ.get(variable, "")
        if text in ("0", "1"):
            return text == "1"
        if text:
            raise ValueError(f"{variable}: expected 0 or 1, got {text!r}")
    return default


def in_force() -> dict[str, str]:
    """Every switch that is set and means something here, by our name."""
    found = {name: os.environ[name] for name in KNOWN if os.environ.get(name)}
    for theirs, ours in _TAKEN.items():
        if os.environ.get(theirs) and ours not in found:
            found[ours] = os.environ[theirs]
    return dict(sorted(found.items()))


def notes() -> list[str]:
    """What to know of variables that look like switches: older names that were taken, and names nobody reads."""
    said = []
    for name in sorted(os.environ):
        if name in _TAKEN and os.environ[name]:
            ours = _TAKEN[name]
            won = bool(os.environ.get(ours))
            said.append(f"{name} is {ours} here" + ("; ours is set too and wins" if won else ""))
        elif trouble := unknown(name):
            said.append(trouble)
    return said


def unknown(name: str) -> str:
    """What to know of a name that looks like a switch and that nobody reads; empty if it is none of these."""
    if not name.startswith((_OURS, _THEIRS)) or name in KNOWN or name in _TAKEN:
        return ""
    close = difflib.get_close_matches(name.replace(_THEIRS, _OURS), KNOWN, 1, 0.85)
    return f"{name} means nothing here" + (f"; did you mean {close[0]}?" if close else "")
