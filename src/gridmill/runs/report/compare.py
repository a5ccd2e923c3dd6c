"""Several runs on one page: runs that differ only in their seed are one group, drawn as mean and interval.

The interval is the 95 % one of Student's t over seeds: where it lies, the mean of many more seeds would. With two seeds
it is wide, and that is the truth about two seeds. Runs of one seed are one value, their mean: a copy of a run is no
further sample.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

from gridmill.config import flatten
from gridmill.config.files import write_named, write_whole
from gridmill.runs.figures import count, finite, number
from gridmill.runs.report import evaluations, metrics
from gridmill.runs.report.chart import COLOURS, SMALL, WIDE, Level, Line, Shape, chart
from gridmill.runs.report.document import document
from gridmill.runs.report.folder import Folder, read
from gridmill.runs.report.metrics import Metric
from gridmill.runs.report.settings import value_text

BINS = 40  # places along a curve where means over seeds are taken
# Settings in which the runs of a group may differ: they change what is kept of a run, not what it learns.
OWN = ("run", "seed", "checkpoint", "evaluation", "analysis", "monitor", "profiler", "track")
MOST_DIFFERENCES = 40
MOST_CHARTS = 30
T975 = (
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131,
    2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042,
)  # fmt: skip


@dataclass(frozen=True)
class Group:
    """Runs of the same settings but for the seed."""

    name: str
    runs: Sequence[Folder]
    colour: int


def write(paths: Sequence[Path], out: Path | None = None) -> Path:
    """Compare the runs in these folders on one page, which lies beside the first of them if no place is named."""
    if len({path.resolve() for path in paths}) != len(paths):
        raise ValueError("expected different runs to compare, got one twice")
    folders = [read(path) for path in paths]
    empty = [str(folder.path) for folder in folders if not folder.epochs]
    if empty:
        raise ValueError(f"expected runs in which an epoch has ended, got {', '.join(empty)}")
    target, put = (paths[0].parent / "compare.html", write_whole) if out is None else (out, write_named)
    put(target, _page(groups(folders)).encode("utf-8", "backslashreplace"))
    return target


def groups(folders: Sequence[Folder]) -> list[Group]:
    """Runs by their settings, in the order given; a group of one run has its name."""
    found: dict[tuple[tuple[str, str], ...], list[Folder]] = {}
    for folder in folders:
        key = tuple(sorted((name, str(value)) for name, value in _flat(folder.settings).items()))
        # A run without settings is like no other.
        found.setdefault(key or (("folder", str(folder.path)),), []).append(folder)
    return [Group(_group_name(runs), runs, place % COLOURS) for place, runs in enumerate(found.values())]


def mean_line(group: Group, key: str) -> Line | None:
    """The mean over a group's runs with its interval, as far as the shortest run goes."""
    runs = [run for run in group.runs if run.column(key)[0]]
    columns = [run.column(key) for run in runs]
    if not columns:
        return None
    if len(columns) == 1:
        return Line(group.name, *columns[0], colour=group.colour)
    first, last = max(xs[0] for xs, _ in columns), min(xs[-1] for xs, _ in columns)
    places = [first + (last - first) * k / BINS for k in range(BINS + 1)] if last > first else [last]
    width = (last - first) / BINS
    found = [_interval(_by_seed(runs, [_around(xs, ys, x, width) for xs, ys in columns])) for x in places]
    if _seeds(runs) == 1:
        return Line(group.name, places, [mean for mean, _ in found], colour=group.colour)
    least = 0.0 if all(y >= 0 for _, ys in columns for y in ys) else -math.inf  # of what cannot be negative
    low, high = [max(least, mean - half) for mean, half in found], [mean + half for mean, half in found]
    return Line(group.name, places, [mean for mean, _ in found], low, high, group.colour)


def _around(xs: Sequence[float], ys: Sequence[float], x: float, width: float) -> float:
    """A curve's value at a place: the mean of what lies within half a bin, or a line between its neighbours."""
    a, b = bisect_right(xs, x - width / 2), bisect_right(xs, x + width / 2)
    if some := ys[a:b]:
        return math.fsum(some) / len(some)
    if not 0 < b < len(xs):
        return ys[0] if b == 0 else ys[-1]
    share = (x - xs[b - 1]) / (xs[b] - xs[b - 1])
    return ys[b - 1] + share * (ys[b] - ys[b - 1])


def _by_seed(runs: Sequence[Folder], values: Sequence[float]) -> list[float]:
    """One value per seed: the mean over its runs."""
    found: dict[str, list[float]] = {}
    for run, value in zip(runs, values, strict=True):
        found.setdefault(_seed(run), []).append(value)
    return [math.fsum(some) / len(some) for some in found.values()]


def _seed(run: Folder) -> str:
    return str(run.settings.get("seed", "-"))


def _seeds(runs: Sequence[Folder]) -> int:
    """How many different ones they have."""
    return len({_seed(run) for run in runs})


def _interval(values: Sequence[float]) -> tuple[float, float]:
    """Mean and half the 95 % interval; one value has none."""
    n = len(values)
    mean = math.fsum(values) / n
    if n < 2:
        return mean, 0.0
    deviation = math.sqrt(math.fsum((value - mean) ** 2 for value in values) / (n - 1))
    return mean, (T975[n - 2] if n - 2 < len(T975) else 1.96) * deviation / math.sqrt(n)


def _group_name(runs: Sequence[Folder]) -> str:
    if len(runs) == 1:
        return runs[0].name
    names = [run.name for run in runs]
    shared = names[0]
    for name in names[1:]:
        shared = shared[: next((k for k, (a, b) in enumerate(zip(shared, name, strict=False)) if a != b), len(name))]
    shared = shared.rstrip("-_. 0123456789").removesuffix("-seed") or str(runs[0].settings.get("recipe", "runs"))
    seeds = _seeds(runs)
    if seeds == len(runs):
        return f"{shared} ({seeds} seeds)"
    return f"{shared} ({len(runs)} runs, {seeds} seed{'s' if seeds > 1 else ''})"


# ---- the page


def _page(found: Sequence[Group]) -> str:
    runs = [run for group in found for run in group.runs]
    score = metrics.score(runs[0])
    made_of = metrics.ingredients(runs[0])
    wanted = [*made_of, *metrics.LEARNING, metrics.SPEED]
    rest = metrics.of_game(runs[0], [score, *made_of])
    title = " / ".join(group.name for group in found)
    key = "".join(f'<li class="key c{group.colour}">{escape(group.name)}</li>' for group in found)
    several = any(len(group.runs) > 1 for group in found)
    note = "<p>Bands: 95 % interval of the mean over seeds; thin lines: single runs.</p>" if several else ""
    drawn = _charts(found, [score], WIDE) + _charts(found, wanted)
    others = _charts(found, rest[:MOST_CHARTS])
    body = [
        f"<header><h1>{escape(title)}</h1><p>{escape(runs[0].subtitle().rpartition(', seed')[0])}</p></header>",
        f'<ul class="keys">{key}</ul>{note}',
        f"<section><h2>Scores</h2>{_scores(found)}</section>",
        f'<section><h2>Curves</h2><div class="charts">{drawn}</div></section>',
        _differences(found),
        f'<section><h2>The game</h2><div class="charts">{others}</div></section>' if others else "",
    ]
    return document(title, "\n".join(part for part in body if part))


def _charts(found: Sequence[Group], wanted: Sequence[Metric], shape: Shape = SMALL) -> str:
    drawn = []
    for metric in wanted:
        lines: list[Line] = []
        for group in found:
            line = mean_line(group, metric.key)
            if line is None:
                continue
            if len(group.runs) > 1:
                lines += [
                    Line(run.name, *run.column(metric.key), colour=group.colour, faint=True) for run in group.runs
                ]
            lines.append(line)
        if not any(any(line.ys) for line in lines):
            continue
        levels = _levels(found, metric.evaluation) if metric.evaluation else []
        picture = chart(
            [line for line in lines if line.xs],
            f"{metric.name} over agent steps",
            metric.unit,
            levels=levels,
            from_zero=metric.from_zero,
            shape=shape,
        )
        note = f"<small>{escape(metric.meaning)}</small>" if metric.meaning else ""
        wide = ' class="wide"' if shape is WIDE else ""
        drawn.append(f"<figure{wide}><figcaption><b>{escape(metric.name)}</b>{note}</figcaption>{picture}</figure>")
    return "".join(drawn)


def _levels(found: Sequence[Group], part: str) -> list[Level]:
    """Of the first run that knows them; only if all play the same game."""
    runs = [run for group in found for run in group.runs]
    if any(run.game != runs[0].game for run in runs):
        return []
    return next((levels for run in runs if (levels := evaluations.levels(run, part))), [])


def _scores(found: Sequence[Group]) -> str:
    titles = ("runs", "seeds", "score, last tenth (± 95 %)", "evaluated (± 95 %)", "steps", "speed", "")
    rows = []
    for group in found:
        rows.append(_score_row(group.name, group.runs, group.colour))
        if len(group.runs) > 1:
            rows += [_score_row(run.name, [run], None) for run in group.runs]
    head = "".join(f"<th>{title}</th>" for title in titles)
    return f'<table class="plain scores"><tr>{head}</tr>{"".join(rows)}</table>'


def _score_row(name: str, runs: Sequence[Folder], colour: int | None) -> str:
    ends = [(run, value) for run in runs if (value := _end(run)) is not None]
    evaluated = [(run, points[-1].y) for run in runs if (points := evaluations.points(run, "score"))]
    seeds = ", ".join(map(_seed, runs))
    steps = [finite(run.epochs[-1].get("agent_steps")) or 0.0 for run in runs]
    speeds = [s for run in runs if (s := finite(run.epochs[-1].get("sps_mean", run.epochs[-1].get("sps")))) is not None]
    speed = f"{count(math.fsum(speeds) / len(speeds))}/s" if speeds else "-"
    cells = [seeds, _mean_text(ends, len(runs)), _mean_text(evaluated, len(runs)), count(min(steps)), speed]
    kind = f' class="key c{colour}"' if colour is not None else ' class="inner"'
    state = "running" if any(run.running for run in runs) else ""
    return (
        f"<tr><td{kind}>{escape(name)}</td>" + "".join(f"<td>{escape(cell)}</td>" for cell in [*cells, state]) + "</tr>"
    )


def _end(run: Folder) -> float | None:
    """The mean score of the last tenth of a run: single epochs are noisy."""
    xs, ys = run.column("score")
    if not xs:
        return None
    late = [y for x, y in zip(xs, ys, strict=True) if x >= 0.9 * xs[-1]]
    return math.fsum(late) / len(late)


def _mean_text(found: Sequence[tuple[Folder, float]], runs: int) -> str:
    """With its interval, if it is of several seeds; and how many runs it is of, if not of all."""
    if not found:
        return "-"
    values = _by_seed([run for run, _ in found], [value for _, value in found])
    mean, half = _interval(values)
    said = number(mean) if len(values) == 1 else f"{number(mean)} ± {number(half)}"
    return said if len(found) == runs else f"{said} ({len(found)} of {runs})"


def _differences(found: Sequence[Group]) -> str:
    """Settings in which the groups differ."""
    flats = [_flat(group.runs[0].settings) for group in found]
    names = dict.fromkeys(name for flat in flats for name in flat)
    unlike = [name for name in names if len({value_text(flat.get(name, "-")) for flat in flats}) > 1]
    if not unlike:
        return ""
    head = "<th></th>" + "".join(f"<th>{escape(group.name)}</th>" for group in found)
    rows = "".join(
        f"<tr><th>{escape(name)}</th>"
        + "".join(f"<td>{escape(value_text(flat.get(name, '-'))[:60])}</td>" for flat in flats)
        + "</tr>"
        for name in unlike[:MOST_DIFFERENCES]
    )
    more = f"<p>{len(unlike) - MOST_DIFFERENCES} more</p>" if len(unlike) > MOST_DIFFERENCES else ""
    return f'<section><h2>What differs</h2><table class="plain"><tr>{head}</tr>{rows}</table>{more}</section>'


def _flat(settings: Mapping[str, Any]) -> dict[str, Any]:
    return flatten({name: value for name, value in settings.items() if name not in OWN})
