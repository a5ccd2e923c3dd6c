"""Evaluations in a report: dots on curves of the same unit, lines for what others get, and tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from gridmill.runs.figures import count, finite, number
from gridmill.runs.log_lines import evaluation_results
from gridmill.runs.report.chart import Level, Point
from gridmill.runs.report.folder import Folder

NEWEST = 10  # evaluations shown at once


def points(folder: Folder, part: str) -> list[Point]:
    """The evaluations of a run: `part` is score, reward (both per episode) or a statistic."""
    found = []
    for record in folder.evaluations:
        steps = finite(record.get("agent_steps"))
        for result in evaluation_results(record)[:1]:  # the first is the game the run trains
            value = _mean(result, part)
            if steps is not None and value is not None:
                found.append(Point(steps, *value))
    return found


def levels(folder: Folder, part: str) -> list[Level]:
    """What random play and scripts get, and the most that can be had, where that is known."""
    found = []
    for name, result in _policies(folder).items():
        value = _mean(result, part)
        if value is not None:
            found.append(Level(name.replace(":", " "), value[0]))
    ceilings = folder.baselines.get("ceilings")
    most = finite(ceilings.get(part)) if isinstance(ceilings, Mapping) else None
    return [*found, Level("ceiling", most)] if most is not None else found


def section(folder: Folder) -> str:
    """A table of the evaluations, and of those to hold them against."""
    rows = []
    for record in folder.evaluations:
        for result in evaluation_results(record):
            cells = [
                str(record.get("epoch", "-")),
                count(record.get("agent_steps")),
                str(result.get("game", "the policy")),
            ]
            rows.append([*cells, *_figures(result), str(result.get("episodes", "-"))])
    others = [
        ["-", "-", name, *_figures(result), str(folder.baselines.get("episodes", "-"))]
        for name, result in _policies(folder).items()
    ]
    if not rows and not others:
        return ""
    newest, older = rows[-NEWEST:], rows[:-NEWEST]
    more = f"<details><summary>{len(older)} earlier</summary>{_table(older)}</details>" if older else ""
    return f"<section><h2>Evaluations</h2>{_table([*newest, *others])}{more}</section>"


def _policies(folder: Folder) -> dict[str, Mapping[str, Any]]:
    found = folder.baselines.get("policies")
    return {str(k): v for k, v in found.items() if isinstance(v, Mapping)} if isinstance(found, Mapping) else {}


def _figures(result: Mapping[str, Any]) -> list[str]:
    values = [_mean(result, "score"), _mean(result, "reward")]
    return [f"{number(value[0])} ± {number(value[1])}" if value else "-" for value in values]


def _mean(result: Mapping[str, Any], key: str) -> tuple[float, float] | None:
    stats = result.get("stats")
    part = result.get(key) if key in ("score", "reward") else stats.get(key) if isinstance(stats, Mapping) else None
    mean = finite(part.get("mean")) if isinstance(part, Mapping) else None
    return None if mean is None or not isinstance(part, Mapping) else (mean, finite(part.get("se")) or 0.0)


def _table(rows: Sequence[Sequence[str]]) -> str:
    titles = "".join(f"<th>{title}</th>" for title in ("epoch", "steps", "what", "score", "return", "episodes"))
    body = "".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows)
    return f'<table class="plain"><tr>{titles}</tr>{body}</table>'
