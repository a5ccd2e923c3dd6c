"""The pictures of a sweep's page: what was found trial by trial, over each setting, and over all of them at once.

Inline SVG in the colours of the report; pure functions. The better a trial, the stronger its colour; the best has one
of its own, and what was pruned or failed is grey.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from gridmill.runs.figures import finite, number
from gridmill.runs.report.chart import SMALL, Shape, ticks
from gridmill.workshop.sweep.record import DONE, FAILED, RUNNING, UNFINISHED, Trial
from gridmill.workshop.sweep.space import Dimension

WIDE = Shape(width=1120, height=300, left=54, right=16, top=24, bottom=36)
PARALLEL = Shape(width=1120, height=400, left=70, right=70, top=46, bottom=24)
LEAST, MOST = 0.15, 0.9  # how strong the colour of the worst and of the best trials is
EDGE = 0.04  # of an axis, so that nothing lies on the frame
MOST_NAME = 26  # characters of a setting's name over an axis


@dataclass(frozen=True)
class Axis:
    """Where the values of a setting lie between 0 and 1, and what is written beside it."""

    name: str
    low: float = 0.0
    high: float = 1.0
    is_log: bool = False
    choices: tuple[str, ...] = ()
    step: float | None = None

    @classmethod
    def of(cls, dimension: Dimension) -> Axis:
        d = dimension
        return cls(d.path, d.low, d.high, d.is_log, d.choices, d.step or (1.0 if d.whole else None))

    def at(self, value: object) -> float | None:
        """The place of a value as it is typed, or of a number; None if it is none of this axis."""
        if self.choices:
            known = list(self.choices)
            return (known.index(str(value)) + 0.5) / len(known) if value in known else None
        try:
            found = finite(float(str(value)))
        except ValueError:
            return None
        if found is None or (self.is_log and found <= 0):
            return None
        low, high = self._ends()
        share = ((math.log10(found) if self.is_log else found) - low) / (high - low)
        return EDGE + (1 - 2 * EDGE) * min(1.0, max(0.0, share))

    def marks(self, wanted: int = 4) -> list[tuple[float, str]]:
        """Places and what stands there: the ends, and round numbers between them or all values if they are few."""
        if self.choices:
            return [((k + 0.5) / len(self.choices), _short(text)) for k, text in enumerate(self.choices)]
        if self.step is not None and not self.is_log and (self.high - self.low) / self.step < 2 * wanted:
            count = int((self.high - self.low) / self.step + 1e-9)
            values = [self.low + self.step * k for k in range(count + 1)]
        elif self.is_log:
            low, high = self._ends()
            values = [self.low, *(10.0**k for k in range(math.ceil(low), math.floor(high) + 1)), self.high]
        else:
            values = [self.low, *filter(self._is_value, ticks(self.low, self.high, wanted)), self.high]
        inside = [v for v in dict.fromkeys(values) if self.low <= v <= self.high]
        ends = [at for v in (self.low, self.high) if (at := self.at(v)) is not None]
        found = [(place, f"{value:.4g}") for value in inside if (place := self.at(value)) is not None]
        # A round number too near to an end would be written over it.
        return [(at, text) for at, text in found if at in ends or min(abs(at - end) for end in ends) > 0.1]

    def _is_value(self, number_: float) -> bool:
        """Whether a setting of steps can have it: there is no trial 2.5."""
        return self.step is None or math.isclose(number_ % self.step, 0, abs_tol=1e-9 * self.step)

    def _ends(self) -> tuple[float, float]:
        return (math.log10(self.low), math.log10(self.high)) if self.is_log else (self.low, self.high)


def of_values(trials: Sequence[Trial], name: str) -> Axis:
    """The axis of what is searched for."""
    values = [trial.value for trial in trials if trial.value is not None] or [0.0, 1.0]
    rows = ticks(min(values), max(values), 4)
    return Axis(name, min(*values, rows[0]), max(*values, rows[-1]), step=rows[1] - rows[0])


def strengths(trials: Sequence[Trial]) -> dict[int, float]:
    """How strong the colour of each trial that was done is, by its rank."""
    ranked = sorted((t for t in trials if t.state == DONE and t.value is not None), key=lambda t: t.value or 0.0)
    most = max(1, len(ranked) - 1)
    return {trial.number: LEAST + (MOST - LEAST) * (place / most) ** 2 for place, trial in enumerate(ranked)}


def told(trial: Trial) -> str:
    """A trial in the words of a tooltip."""
    return f"trial {trial.number}, {trial.state}, {number(trial.value)}: {' '.join(trial.changes())}"


def history(trials: Sequence[Trial], searched: str, best: int | None) -> str:
    """What every trial found, in their order, and the best so far."""
    up, found = of_values(trials, searched), [trial for trial in trials if trial.value is not None]
    last = max([trial.number for trial in trials] or [0])
    frame = _Frame(WIDE, Axis("trial", 0.0, max(1.0, float(last)), step=1.0), up)
    high, points = -math.inf, list[str]()
    for trial in (trial for trial in found if trial.state == DONE):
        assert trial.value is not None
        x = frame.x(trial.number)
        if points:
            points.append(f"{x:.1f},{frame.y(high):.1f}")
        high = max(high, trial.value)
        points.append(f"{x:.1f},{frame.y(high):.1f}")
    if points:
        points.append(f"{frame.x(last):.1f},{frame.y(high):.1f}")
    steps = f'<polyline class="line c1" points="{" ".join(points)}"/>' if len(points) > 1 else ""
    return _svg(WIDE, f"{searched} of every trial", [*frame.rules("trial"), steps, *_dots(found, frame, best)])


def over(axis: Axis, trials: Sequence[Trial], searched: str, best: int | None) -> str:
    """What was found over the values of one setting."""
    frame = _Frame(SMALL, axis, of_values(trials, searched), axis.name)
    found = [t for t in trials if t.value is not None and axis.at(t.settings.get(axis.name)) is not None]
    return _svg(SMALL, f"{searched} over {axis.name}", [*frame.rules(), *_dots(found, frame, best)])


def parallel(axes: Sequence[Axis], trials: Sequence[Trial], searched: str, best: int | None) -> str:
    """A line a trial through all settings to what was found."""
    s, last, strong = PARALLEL, of_values(trials, searched), strengths(trials)
    columns = [*axes, last]
    xs = [s.left + (s.width - s.left - s.right) * k / max(1, len(columns) - 1) for k in range(len(columns))]
    drawn = list[str]()
    for trial in sorted(trials, key=lambda t: (t.number == best, strong.get(t.number, 0.0))):
        if trial.value is None or trial.state in (FAILED, RUNNING, UNFINISHED):
            continue
        places = [axis.at(trial.settings.get(axis.name)) for axis in axes] + [last.at(trial.value)]
        points = [f"{x:.1f},{_down(s, at):.1f}" for x, at in zip(xs, places, strict=True) if at is not None]
        kind = "best" if trial.number == best else "" if trial.number in strong else "pruned"
        shade = "" if trial.number == best else f' style="opacity:{strong.get(trial.number, LEAST):.2f}"'
        drawn.append(
            f'<polyline class="trial {kind}"{shade} points="{" ".join(points)}">'
            f"<title>{escape(told(trial))}</title></polyline>"
        )
    for x, axis in zip(xs, columns, strict=True):
        drawn += _column(s, x, axis, "" if axis is last else " right")
    return _svg(s, f"all settings of every trial, and its {searched}", drawn)


# ---- what is drawn


@dataclass(frozen=True)
class _Frame:
    """Two axes on a picture."""

    shape: Shape
    across: Axis
    up: Axis
    setting: str = ""  # what lies across; the trial's number if empty

    def x(self, value: object) -> float:
        s = self.shape
        return s.left + (s.width - s.left - s.right) * (self.across.at(value) or 0.0)

    def y(self, value: float) -> float:
        return _down(self.shape, self.up.at(value) or 0.0)

    def rules(self, title: str = "") -> list[str]:
        s, found = self.shape, list[str]()
        for at, text in self.up.marks():
            y = _down(s, at)
            found.append(f'<path class="rule" d="M{s.left} {y:.1f}H{s.width - s.right}"/>')
            found.append(f'<text class="tick right" x="{s.left - 6}" y="{y + 3.5:.1f}">{escape(text)}</text>')
        for at, text in self.across.marks(4 if s.width < 500 else 8):
            x = s.left + (s.width - s.left - s.right) * at
            found.append(f'<text class="tick middle" x="{x:.1f}" y="{s.height - s.bottom + 14}">{escape(text)}</text>')
        if title:
            found.append(f'<text class="title right" x="{s.width - s.right}" y="{s.height - 5}">{title}</text>')
        return found


def _dots(trials: Sequence[Trial], frame: _Frame, best: int | None) -> list[str]:
    strong, found = strengths(trials), list[str]()
    for trial in sorted(trials, key=lambda t: (t.number == best, strong.get(t.number, 0.0))):
        assert trial.value is not None
        x = frame.x(trial.settings.get(frame.setting) if frame.setting else trial.number)
        kind = "best" if trial.number == best else "" if trial.number in strong else "pruned"
        shade = f' style="opacity:{max(0.45, strong[trial.number]):.2f}"' if kind == "" else ""
        size = 5 if kind == "best" else 4
        found.append(
            f'<circle class="mark {kind}"{shade} cx="{x:.1f}" cy="{frame.y(trial.value):.1f}" r="{size}">'
            f"<title>{escape(told(trial))}</title></circle>"
        )
    return found


def _column(s: Shape, x: float, axis: Axis, side: str) -> list[str]:
    """An axis of the parallel coordinates: its name above, its values on one side."""
    name = escape(_short(axis.name.rpartition(".")[2], MOST_NAME))
    found = [
        f'<path class="column" d="M{x:.1f} {s.top}V{s.height - s.bottom}"/>',
        f'<text class="name middle" x="{x:.1f}" y="{s.top - 14}">{name}<title>{escape(axis.name)}</title></text>',
    ]
    away = -1 if side else 1
    for at, text in axis.marks():
        y = _down(s, at)
        found.append(f'<path class="column" d="M{x:.1f} {y:.1f}h{4 * away}"/>')
        up = -5.0 if axis.choices else 3.5  # all lines go through a choice; its name stands above them
        found.append(f'<text class="tick{side} named" x="{x + 8 * away:.1f}" y="{y + up:.1f}">{escape(text)}</text>')
    return found


def _down(s: Shape, share: float) -> float:
    return s.height - s.bottom - (s.height - s.top - s.bottom) * share


def _short(text: str, most: int = 12) -> str:
    return text if len(text) <= most else f"{text[: most - 2]}.."


def _svg(s: Shape, label: str, parts: Sequence[str]) -> str:
    facts = f'viewBox="0 0 {s.width} {s.height}" role="img" aria-label="{escape(label, quote=True)}"'
    return f"<svg {facts}>{''.join(parts)}</svg>"
