"""What the core can tell of a run: where the time of its steps went, and what shadow validation of observations found.

Lines of at most 80 columns for log.txt and the workshop.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gridmill.config.text import count, hang, table

NOT_PHASES = ("total", "wall", "steps")


def phase_lines(phases: Mapping[str, int], steps: int, wall_seconds: float) -> list[str]:
    """A table: mean microseconds per step, share of the native step, share of the wall clock.

    Without `wall` among the phases they are a part of something longer, which is only named as a whole.
    """
    native, wall = max(phases["total"], 1), max(wall_seconds * 1e9, 1.0)
    rows, folded, small = [], 0, 0
    for name, ns in phases.items():
        if name in NOT_PHASES:
            continue
        if ns < 0.01 * native:
            folded, small = folded + ns, small + 1
        else:
            rows.append((name, ns))
    if small:
        rows.append((f"{count(small, 'phase')} under 1 %", folded))
    rows.append(("native step", phases["total"]))
    core = phases.get("wall")
    outside = [("around the phases", core - phases["total"])] if core is not None and core > phases["total"] else []
    outside += [] if core is None else [("Python and binding", int(wall) - core)]
    outside.append(("wall clock", int(wall)))

    def line(name: str, ns: int, of_native: bool) -> tuple[str, ...]:
        share = f"{100 * ns / native:.1f} %" if of_native else ""
        return name, f"{ns / steps / 1e3:.3f}", share, f"{100 * ns / wall:.1f} %"

    body = [line(name, ns, True) for name, ns in rows] + [line(name, ns, False) for name, ns in outside]
    lines = table(("phase", "us per step", "of native", "of wall"), body)
    if phases["total"] > (wall if core is None else core):
        lines.append("(phases are summed over threads, so they exceed the wall clock)")
    return lines


def validation_lines(found: Any, num_worlds: int) -> list[str]:
    """The final count of an env's `observation_validation`; of the first mismatch both rows, token by token."""
    each = found.comparisons // num_worlds
    differ = f"{found.mismatches:,} mismatch{'' if found.mismatches == 1 else 'es'}"
    said = f"{count(found.comparisons, 'comparison')} ({each:,} per world), {differ}"
    lines = hang("observation validation: ", f"{said}, reference takes {found.ratio:.1f}x the time")
    first = found.first_mismatch
    if first is None:
        return lines
    where = ", ".join(f"{name} {first[name]}" for name in ("world", "episode", "tick", "agent"))
    lines += hang("  first mismatch: ", where)
    alike = {token for token in first["fast"] if token in first["reference"]}
    for side in ("fast", "reference"):
        lines.append(f"  {side} (* not in the other):")
        lines += hang("    ", ", ".join(_token(token, token not in alike) for token in first[side]) or "no token", 4)
    return lines


def _token(token: Any, alone: bool) -> str:
    """`(-1,2) type=wall`, a star before what only one side saw."""
    place = "" if token.row is None else f"({token.row},{token.column}) "
    return f"{'*' if alone else ''}{place}{token.feature}={token.text or token.value}"
