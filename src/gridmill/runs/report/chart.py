"""Charts: a curve as a piece of inline SVG, drawn with the page's own colours. Pure functions, called by the report.

A long curve is drawn as the mean of neighbours with the range they span behind it, so that noise stays visible and a
page of a million epochs stays small.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from html import escape
from typing import NamedTuple

from gridmill.runs.figures import count, number

WIDTH, HEIGHT = 360, 190
LEFT, RIGHT, TOP, BOTTOM = 48, 12, 10, 24
MOST_POINTS = 180
Place = Callable[[float], float]  # of a value on the picture


class Point(NamedTuple):
    """A measured value with its standard error."""

    x: float
    y: float
    error: float


def curve(
    xs: Sequence[float], ys: Sequence[float], label: str, points: Sequence[Point] = (), from_zero: bool = False
) -> str:
    """One series over agent steps; `points` are evaluations, drawn as dots with two standard errors."""
    parts = _parts(xs, ys)
    lows = [low for _, _, low, _ in parts] + [p.y - 2 * p.error for p in points]
    highs = [high for _, _, _, high in parts] + [p.y + 2 * p.error for p in points]
    if from_zero:
        lows.append(0.0)
    rows = ticks(min(lows), max(highs), 4)
    low, high = min(rows[0], *lows), max(rows[-1], *highs)
    right = max([*xs, *(p.x for p in points)]) or 1.0

    def at_x(x: float) -> float:
        return LEFT + (WIDTH - LEFT - RIGHT) * x / right

    def at_y(y: float) -> float:
        return TOP + (HEIGHT - TOP - BOTTOM) * (high - y) / (high - low)

    drawn = [*_rows(rows, at_y), *_steps(right, at_x)]
    if len(xs) > len(parts):
        edge = [f"{at_x(x):.1f},{at_y(top):.1f}" for x, _, _, top in parts]
        edge += [f"{at_x(x):.1f},{at_y(bottom):.1f}" for x, _, bottom, _ in reversed(parts)]
        drawn.append(f'<polygon class="range" points="{" ".join(edge)}"/>')
    if len(parts) > 1:
        line = " ".join(f"{at_x(x):.1f},{at_y(y):.1f}" for x, y, _, _ in parts)
        drawn.append(f'<polyline class="line" points="{line}"/>')
    elif parts:
        drawn.append(f'<circle class="end" cx="{at_x(parts[0][0]):.1f}" cy="{at_y(parts[0][1]):.1f}" r="3"/>')
    for p in points:
        x, y = at_x(p.x), at_y(p.y)
        top, bottom = at_y(p.y + 2 * p.error), at_y(p.y - 2 * p.error)
        said = f"{count(p.x)} steps: {number(p.y)} ± {number(p.error)}"
        drawn.append(f'<path class="error" d="M{x:.1f} {top:.1f}V{bottom:.1f}"/>')
        drawn.append(f'<circle class="dot" cx="{x:.1f}" cy="{y:.1f}" r="3.5"><title>{escape(said)}</title></circle>')
    named = f'role="img" aria-label="{escape(label, quote=True)}"'
    return f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" {named}>{"".join(drawn)}</svg>'


def ticks(low: float, high: float, wanted: int) -> list[float]:
    """Round numbers around a range, about so many steps apart."""
    if high - low <= 1e-9 * max(abs(low), abs(high), 1e-9):
        room = abs(high) / 2 or 0.5
        low, high = low - room, high + room
    raw = (high - low) / wanted
    size = 10.0 ** math.floor(math.log10(raw))
    step = next(size * factor for factor in (1, 2, 2.5, 5, 10) if size * factor >= raw * 0.999)
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    return [k * step for k in range(first, last + 1)]


def _parts(xs: Sequence[float], ys: Sequence[float]) -> list[tuple[float, float, float, float]]:
    """At most MOST_POINTS times (last x, mean, least, most) of neighbours."""
    parts = min(MOST_POINTS, len(xs))
    found = []
    for k in range(parts):
        a, b = len(xs) * k // parts, len(xs) * (k + 1) // parts
        some = ys[a:b]
        found.append((xs[b - 1], math.fsum(some) / len(some), min(some), max(some)))
    return found


def _rows(rows: Sequence[float], at_y: Place) -> list[str]:
    """Lines across and what they stand for."""
    found = []
    for row in rows:
        y = at_y(row)
        found.append(f'<path class="rule" d="M{LEFT} {y:.1f}H{WIDTH - RIGHT}"/>')
        found.append(f'<text class="tick right" x="{LEFT - 6}" y="{y + 3.5:.1f}">{_tick(row, rows)}</text>')
    return found


def _steps(right: float, at_x: Place) -> list[str]:
    """Agent steps along the bottom."""
    found = []
    for x in ticks(0.0, right, 4):
        if at_x(x) < WIDTH - RIGHT - 8:
            found.append(f'<text class="tick middle" x="{at_x(x):.1f}" y="{HEIGHT - 7}">{count(x)}</text>')
    return found


def _tick(row: float, rows: Sequence[float]) -> str:
    """Written with the digits that tell it from its neighbour."""
    step = rows[1] - rows[0]
    most = max(abs(rows[0]), abs(rows[-1]))
    if most >= 10_000:
        return count(round(row, 6))
    if most < 0.001:
        return "0" if abs(row) < step / 2 else f"{row:.1e}"
    digits = max(0, -math.floor(math.log10(step) + 1e-9))
    if not math.isclose(step, round(step, digits), rel_tol=1e-6):
        digits += 1
    return f"{row + 0.0 if abs(row) > step / 2 else 0.0:.{digits}f}"
