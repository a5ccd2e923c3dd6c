"""Charts: curves over agent steps as a piece of inline SVG, drawn with the page's own colours. Pure functions.

A long curve is drawn as the mean of neighbours with the range they span behind it, so that noise stays visible and a
page of a million epochs stays small. Every chart says in `data-frame` where its axes lie; the page's script reads the
values under the pointer from that.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import NamedTuple

from gridmill.runs.figures import count, number

MOST_POINTS = 180
COLOURS = 8  # classes c0 to c7 of the style sheet
CROWDED = 2.5  # a level so many times above all values is named at the edge instead of flattening them
ROW = 12.0  # pixels that a label needs


class Shape(NamedTuple):
    """The size of a picture, and its margins."""

    width: int = 360
    height: int = 206
    left: int = 50
    right: int = 12
    top: int = 24
    bottom: int = 36


SMALL, WIDE = Shape(), Shape(width=1120, height=330, right=14)


class Point(NamedTuple):
    """A measured value with its standard error."""

    x: float
    y: float
    error: float


class Level(NamedTuple):
    """A value to hold a curve against, such as what random play gets: a line across."""

    name: str
    y: float


@dataclass(frozen=True)
class Line:
    """A series over agent steps; `low` and `high` are its interval, `colour` a number, `faint` for one of several."""

    name: str
    xs: Sequence[float]
    ys: Sequence[float]
    low: Sequence[float] = ()
    high: Sequence[float] = ()
    colour: int = 0
    faint: bool = False


class _Part(NamedTuple):
    x: float
    y: float
    low: float
    high: float


@dataclass(frozen=True)
class _Frame:
    """Where values lie on the picture."""

    shape: Shape
    most: float
    low: float
    high: float

    def x(self, steps: float) -> float:
        s = self.shape
        return s.left + (s.width - s.left - s.right) * steps / self.most

    def y(self, value: float) -> float:
        s = self.shape
        inside = min(self.high, max(self.low, value))
        return s.top + (s.height - s.top - s.bottom) * (self.high - inside) / (self.high - self.low)

    def text(self) -> str:
        s = self.shape
        edges = (s.left, s.width - s.right, s.top, s.height - s.bottom)
        return " ".join(f"{number:.10g}" for number in (*edges, self.most, self.low, self.high))


def chart(
    lines: Sequence[Line],
    label: str,
    y_title: str = "",
    points: Sequence[Point] = (),
    levels: Sequence[Level] = (),
    from_zero: bool = False,
    shape: Shape = SMALL,
) -> str:
    """Series over agent steps; `points` are evaluations, drawn as dots with two standard errors.

    A wide chart has a small one behind it, for screens on which its words would be too small to read.
    """
    small = chart(lines, label, y_title, points, levels, from_zero) if shape is WIDE else ""
    drawn_lines = [(line, _parts(line)) for line in lines if line.xs]
    frame, rows = _frame([part for _, parts in drawn_lines for part in parts], points, levels, from_zero, shape)
    dashes, names = _levels(levels, frame)
    drawn = [*_rows(rows, frame), *_steps(frame), *_titles(frame, y_title), *dashes]
    for line, parts in drawn_lines:
        drawn += _band(line, parts, frame)
    for line, parts in sorted(drawn_lines, key=lambda pair: not pair[0].faint):
        drawn.append(_line(line, parts, frame))
    drawn += [_dot(point, frame) for point in points] + names
    facts = f'viewBox="0 0 {shape.width} {shape.height}" role="img" aria-label="{escape(label, quote=True)}"'
    return f'<svg {facts} data-frame="{frame.text()}">{"".join(drawn)}</svg>{small}'


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


def _parts(line: Line) -> list[_Part]:
    """At most MOST_POINTS times (last x, mean, least, most) of neighbours."""
    count_ = min(MOST_POINTS, len(line.xs))
    found = []
    for k in range(count_):
        a, b = len(line.xs) * k // count_, len(line.xs) * (k + 1) // count_
        some = line.ys[a:b]
        low, high = (line.low or line.ys)[a:b], (line.high or line.ys)[a:b]
        found.append(_Part(line.xs[b - 1], math.fsum(some) / len(some), min(low), max(high)))
    return found


def _frame(
    parts: Sequence[_Part], points: Sequence[Point], levels: Sequence[Level], from_zero: bool, shape: Shape
) -> tuple[_Frame, list[float]]:
    """Axes that hold all values, and the levels that do not flatten them; with the round numbers beside the y axis."""
    ys = [part.y for part in parts] + [point.y for point in points]
    spread = (max(ys) - min(ys)) or abs(ys[0]) or 1.0
    # An interval of few seeds can be far wider than all curves: it is cut at the edge rather than flattening them.
    lows = [max(part.low, part.y - 2 * spread) for part in parts] + [p.y - 2 * p.error for p in points]
    highs = [min(part.high, part.y + 2 * spread) for part in parts] + [p.y + 2 * p.error for p in points]
    reach = max(*map(abs, ys), 1e-12) * CROWDED
    near = [level.y for level in levels if abs(level.y) <= reach]
    lows, highs = lows + near, highs + near
    if from_zero:
        lows.append(0.0)
    rows = ticks(min(lows), max(highs), 4)
    most = max([*(part.x for part in parts), *(p.x for p in points)]) or 1.0
    return _Frame(shape, most, min(rows[0], *lows), max(rows[-1], *highs)), rows


# ---- what is drawn


def _line(line: Line, parts: Sequence[_Part], frame: _Frame) -> str:
    kind = f"line c{line.colour % COLOURS}{' faint' if line.faint else ''}"
    named = "" if line.faint else f' data-name="{escape(line.name, quote=True)}"'
    places = [f"{frame.x(part.x):.2f},{frame.y(part.y):.2f}" for part in parts]
    alone = ""
    if len(parts) == 1:
        x, y = places[0].split(",")
        alone = f'<circle class="end c{line.colour % COLOURS}" cx="{x}" cy="{y}" r="3"/>'
    return f'{alone}<polyline class="{kind}"{named} points="{" ".join(places)}"/>'


def _band(line: Line, parts: Sequence[_Part], frame: _Frame) -> list[str]:
    if not line.low and len(line.xs) == len(parts):
        return []
    edge = [f"{frame.x(part.x):.1f},{frame.y(part.high):.1f}" for part in parts]
    edge += [f"{frame.x(part.x):.1f},{frame.y(part.low):.1f}" for part in reversed(parts)]
    return [f'<polygon class="range c{line.colour % COLOURS}" points="{" ".join(edge)}"/>']


def _dot(p: Point, frame: _Frame) -> str:
    x, y = frame.x(p.x), frame.y(p.y)
    top, bottom = frame.y(p.y + 2 * p.error), frame.y(p.y - 2 * p.error)
    said = f"{number(p.y)} ± {number(p.error)}"
    return (
        f'<path class="error" d="M{x:.1f} {top:.1f}V{bottom:.1f}"/>'
        f'<circle class="dot" cx="{x:.1f}" cy="{y:.1f}" r="3.5"><title>{escape(said)}</title></circle>'
    )


def _levels(levels: Sequence[Level], frame: _Frame) -> tuple[list[str], list[str]]:
    """Dashed lines, and their names to lie above all; one above the picture is named at its upper edge."""
    s, found, names, taken = frame.shape, list[str](), list[str](), list[float]()
    for level in sorted(levels, key=lambda level: -level.y):
        inside = frame.low <= level.y <= frame.high
        y = frame.y(level.y)
        if inside:
            found.append(f'<path class="level" d="M{s.left} {y:.1f}H{s.width - s.right}"/>')
        at = max(y - 4, s.top + 8)
        while any(abs(at - other) < ROW for other in taken):
            at += ROW
        taken.append(at)
        arrow = "" if inside else " ↑" if level.y > frame.high else " ↓"
        text = f"{level.name} {number(level.y)}{arrow}"
        names.append(f'<text class="tick right named" x="{s.width - s.right - 4}" y="{at:.1f}">{escape(text)}</text>')
    return found, names


def _titles(frame: _Frame, y_title: str) -> list[str]:
    s = frame.shape
    found = [f'<text class="title right" x="{s.width - s.right}" y="{s.height - 5}">agent steps</text>']
    if y_title:
        found.append(f'<text class="title" x="4" y="12">{escape(y_title)}</text>')
    return found


def _rows(rows: Sequence[float], frame: _Frame) -> list[str]:
    """Lines across and what they stand for."""
    s, found = frame.shape, list[str]()
    for row in rows:
        y = frame.y(row)
        found.append(f'<path class="rule" d="M{s.left} {y:.1f}H{s.width - s.right}"/>')
        found.append(f'<text class="tick right" x="{s.left - 6}" y="{y + 3.5:.1f}">{_tick(row, rows)}</text>')
    return found


def _steps(frame: _Frame) -> list[str]:
    """Agent steps along the bottom."""
    s, found = frame.shape, list[str]()
    for x in ticks(0.0, frame.most, 4 if s.width < 500 else 8):
        if frame.x(x) < s.width - s.right - 8:
            place = f'x="{frame.x(x):.1f}" y="{s.height - s.bottom + 14}"'
            found.append(f'<text class="tick middle" {place}>{count(x)}</text>')
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
