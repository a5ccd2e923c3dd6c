"""Figures: how numbers are written for people: counts, times, sizes, trends, and where the time of an epoch went.

Pure functions, called by the log, the panel, the report and `gridmill runs`, so that they all say the same.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

# Phases measured inside another phase; what is left of the outer one keeps its name.
INSIDE = dict.fromkeys(("env", "act", "copy", "teacher", "players", "store"), "rollout") | {"optimizer": "learn"}
PARTS_OF_PARTS = ("teacher_forward", "teacher_store", "core", "teacher_calls", "player_calls")
ORDER = (
    "env",
    "act",
    "copy",
    "teacher",
    "players",
    "store",
    "rollout",
    "advantage",
    "learn",
    "optimizer",
    "log",
    "checkpoint",
)
BLOCKS = "▁▂▃▄▅▆▇█"
UNITS = (("", 1.0), (" k", 1e3), (" M", 1e6), (" G", 1e9), (" T", 1e12))
NOTHING = "-"


def finite(value: Any) -> float | None:
    """A metric as a number that can be drawn; None for text, NaN and what is missing."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        return float(value) if math.isfinite(value) else None
    except OverflowError:  # a file may have a number of any length
        return None


def number(value: Any) -> str:
    """About three digits: `14.1`, `0.312`, `-0.0123`, `1.2e-05`, `103 k`."""
    found = finite(value)
    if found is None:
        return NOTHING
    size = abs(found)
    if size >= 10_000:
        return count(found)
    for least, digits in ((100.0, 0), (10.0, 1), (1.0, 2), (0.1, 3), (0.001, 4)):
        if size >= least:
            return f"{found:.{digits}f}"
    return "0" if size == 0 else f"{found:.1e}"


def count(value: Any) -> str:
    """A number of things with three digits: `786 k`, `31.2 M`."""
    found = finite(value)
    if found is None:
        return NOTHING
    fits = next(((unit, step) for unit, step in UNITS if abs(found) < 999.5 * step), None)
    if fits is None:
        return f"{found:.0e}"
    unit, scaled = fits[0], found / fits[1]
    digits = 0 if not unit or abs(scaled) >= 99.95 else 1 if abs(scaled) >= 9.995 else 2
    text = f"{scaled:.{digits}f}"
    return (text.rstrip("0").rstrip(".") if "." in text else text) + unit


def memory(value: Any) -> str:
    """Bytes: `1.24 GB`."""
    found = finite(value)
    if found is None:
        return NOTHING
    if found < 1000:
        return f"{found:.0f} B"
    return count(found).replace(" k", " kB").replace(" M", " MB").replace(" G", " GB").replace(" T", " TB")


def percent(share: Any) -> str:
    """A share of 1 as `62 %`."""
    found = finite(share)
    return NOTHING if found is None else f"{100 * found:.0f} %" if abs(found) >= 0.0995 else f"{100 * found:.1f} %"


def duration(seconds: Any) -> str:
    """`0:05`, `3:12`, `2:05:11`, `3 d 04:00`."""
    found = finite(seconds)
    if found is None or found < 0:
        return NOTHING
    minutes, rest = divmod(round(found), 60)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    if days:
        return f"{days} d {hours:02}:{minutes:02}" if days < 10 else f"{days} d"
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def sparkline(values: Sequence[float], width: int) -> str:
    """The course of a number in one line of blocks; several values that share a block are averaged."""
    if not values:
        return ""
    means = buckets(values, width)
    low, high = min(means), max(means)
    if high == low:
        return BLOCKS[0] * len(means)
    return "".join(BLOCKS[round((len(BLOCKS) - 1) * (mean - low) / (high - low))] for mean in means)


def buckets(values: Sequence[float], most: int) -> list[float]:
    """At most so many means of neighbours, in order."""
    parts = min(most, len(values))
    edges = [len(values) * k // parts for k in range(parts + 1)]
    return [math.fsum(values[a:b]) / (b - a) for a, b in pairwise(edges)]


class Trend:
    """The course of a number over a run in bounded memory: when it is full, neighbours become their mean."""

    MOST = 512

    def __init__(self) -> None:
        self.values: list[float] = []
        self.best: float | None = None
        self._each = 1  # how many numbers a value stands for
        self._open: list[float] = []

    def add(self, value: Any) -> None:
        found = finite(value)
        if found is None:
            return
        self.best = found if self.best is None else max(self.best, found)
        self._open.append(found)
        if len(self._open) < self._each:
            return
        self.values.append(math.fsum(self._open) / len(self._open))
        self._open.clear()
        if len(self.values) >= self.MOST:
            self.values = buckets(self.values, self.MOST // 2)
            self._each *= 2


def phases(metrics: Mapping[str, Any]) -> dict[str, float]:
    """Seconds of each phase, none counted twice: of `rollout` and `learn` what their parts leave."""
    found = {}
    for key, value in metrics.items():
        seconds = finite(value)
        name = key.removeprefix("time/")
        if name != key and name not in PARTS_OF_PARTS and seconds is not None and seconds >= 0:
            found[name] = seconds
    for part, whole in INSIDE.items():
        if part in found and whole in found:
            found[whole] = max(0.0, found[whole] - found[part])
    known = [name for name in ORDER if name in found]
    return {name: found[name] for name in [*known, *(n for n in found if n not in known)]}


def phase_name(name: str, present: Mapping[str, float]) -> str:
    """`rollout` beside its parts is only what they leave."""
    return "rollout rest" if name == "rollout" and ("env" in present or "act" in present) else name
