"""The report of a run: one page, report.html, that needs nothing else: no fonts, no network, one script of its own.

Made from the run's own files, whatever of them is there, so it can be written at any time and again later. Names come
from people: everything is escaped, and the page's policy allows no script but its own.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from urllib.parse import quote

from gridmill.config.files import write_named, write_whole
from gridmill.runs.figures import count, duration, finite, number, percent, phase_name, phases
from gridmill.runs.report import evaluations, metrics, tasks
from gridmill.runs.report.chart import SMALL, WIDE, Line, Shape, chart
from gridmill.runs.report.document import document
from gridmill.runs.report.folder import Folder, read
from gridmill.runs.report.metrics import Metric
from gridmill.runs.report.settings import setting_tables

SHOWN = 24  # charts of the game that are seen at once; the others are behind a click
REFRESH = 60  # seconds after which the page of a running run loads itself again


def write(path: Path, running: bool | None = None, out: Path | None = None) -> Path:
    """Make path/report.html from the folder's files; `running` if that is known, else a look at its log tells."""
    folder = read(path)
    alive = folder.running if running is None else running
    target, put = (path / "report.html", write_whole) if out is None else (out, write_named)
    put(target, _page(folder, alive).encode("utf-8", "backslashreplace"))
    return target


def _page(folder: Folder, running: bool) -> str:
    score, made_of = metrics.score(folder), metrics.ingredients(folder)
    state = ' <span class="live">running</span>' if running else ""
    body = [
        f"<header><h1>{escape(folder.name)}{state}</h1><p>{escape(folder.subtitle())}</p></header>",
        _tiles(folder),
        _section("Results", _figures(folder, [score], WIDE) + _figures(folder, made_of), _key(folder)),
        evaluations.section(folder),
        _replays(folder),
        _section("Learning", _figures(folder, metrics.learning(folder))),
        _section("Other players", _figures(folder, metrics.of_players(folder))),
        tasks.section(folder.path, _section("Tasks over time", _figures(folder, metrics.of_curriculum(folder)))),
        _of_game(folder, [score, *made_of]),
        _section("Machine", _figures(folder, metrics.MACHINE)),
        _shares(folder),
        f"<section><h2>What runs</h2><pre>{escape(folder.told)}</pre></section>" if folder.told else "",
        setting_tables(folder.settings),
    ]
    return document(folder.name, "\n".join(part for part in body if part), REFRESH if running else 0)


def _tiles(folder: Folder) -> str:
    if not folder.epochs:
        return "<p>No epoch has ended yet.</p>"
    last = folder.epochs[-1]
    steps, total = finite(last.get("agent_steps")) or 0.0, finite(last.get("total_timesteps"))
    tiles = {
        "score": _score_tile(folder),
        "agent steps": (count(steps), f"{percent(steps / total)} of {count(total)}" if total else ""),
        "speed": (f"{count(last.get('sps_mean', last.get('sps')))}/s", "mean of the run"),
        "time": (duration(last.get("seconds")), f"{last.get('epoch', '-')} epochs"),
    }
    if skipped := finite(last.get("skipped_updates")):
        tiles["skipped updates"] = (number(skipped), "not finite")
    cells = "".join(
        f"<div><dt>{escape(name)}</dt><dd>{escape(big)}</dd><dd>{escape(small)}</dd></div>"
        for name, (big, small) in tiles.items()
    )
    return f'<dl class="tiles">{cells}</dl>'


def _score_tile(folder: Folder) -> tuple[str, str]:
    """The newest evaluation, or the score of the log: the mean of the newest episodes; beside it what others get."""
    levels = [f"{level.name} {number(level.y)}" for level in evaluations.levels(folder, "score")]
    dots = evaluations.points(folder, "score")
    scores = folder.column("score_recent")[1] or folder.column("score")[1]  # runs of long ago have no recent one
    if dots:
        said = ", ".join([f"evaluated at {count(dots[-1].x)} steps", *levels])
        return f"{number(dots[-1].y)} ± {number(dots[-1].error)}", said
    if scores:
        return number(scores[-1]), ", ".join(["newest episodes, as in the log", f"best {number(max(scores))}", *levels])
    return "-", "no episode ended"


def _section(title: str, figures: str, key: str = "") -> str:
    return f'<section><h2>{escape(title)}</h2>{key}<div class="charts">{figures}</div></section>' if figures else ""


def _key(folder: Folder) -> str:
    """What dots and dashed lines are, said once."""
    said = ["lines: training, mean over the episodes that ended in an epoch"]
    said += ["not all epochs are read, metrics.jsonl is too large"] if folder.cut else []
    said += ["dots: evaluations with two standard errors"] if evaluations.points(folder, "score") else []
    said += ["dashed: other players in the same game, and the upper bound"] if folder.baselines else []
    return f'<p class="still">{"; ".join(said)}</p>'


def _figures(folder: Folder, wanted: Sequence[Metric], shape: Shape = SMALL) -> str:
    drawn, told = metrics.moving(folder, wanted)
    return "".join(_figure(folder, metric, shape) for metric in drawn) + _told(told)


def _told(words: Sequence[str]) -> str:
    return f'<p class="still">not drawn: {escape(", ".join(words))}</p>' if words else ""


def _figure(folder: Folder, metric: Metric, shape: Shape) -> str:
    xs, ys = folder.column(metric.key)
    dots = evaluations.points(folder, metric.evaluation) if metric.evaluation else []
    levels = evaluations.levels(folder, metric.evaluation) if metric.evaluation else []
    drawn = chart(
        [Line(metric.name, xs, ys)],
        f"{metric.name} over agent steps",
        metric.unit,
        dots,
        levels,
        metric.from_zero,
        shape,
    )
    note = f"<small>{escape(metric.meaning)}</small>" if metric.meaning else ""
    wide = ' class="wide"' if shape is WIDE else ""
    return (
        f"<figure{wide}><figcaption><b>{escape(metric.name)}</b> <span>{escape(number(ys[-1]))}</span>{note}"
        f"</figcaption>{drawn}</figure>"
    )


def _of_game(folder: Folder, shown: Sequence[Metric]) -> str:
    drawn, told = metrics.moving(folder, metrics.of_game(folder, shown), shown)
    if not drawn:
        return ""
    figures = [_figure(folder, metric, SMALL) for metric in drawn]
    rest = figures[SHOWN:]
    more = (
        f'<details><summary>{len(rest)} more</summary><div class="charts">{"".join(rest)}</div></details>'
        if rest
        else ""
    )
    return (
        f'<section><h2>The game</h2><div class="charts">{"".join(figures[:SHOWN])}</div>{more}{_told(told)}</section>'
    )


def _replays(folder: Folder) -> str:
    if not folder.replays:
        return ""
    links = "".join(
        f'<li><a href="{escape(quote(f"replays/{name}"), quote=True)}">{escape(name)}</a></li>'
        for name in reversed(folder.replays)
    )
    command = f"gridmill view {folder.path}"
    return f"<section><h2>Replays</h2><p>Open them with <code>{escape(command)}</code>.</p><ul>{links}</ul></section>"


def _shares(folder: Folder) -> str:
    """Where the time went, over the whole run."""
    sums = phases({name: math.fsum(folder.column(name)[1]) for name in folder.metrics if name.startswith("time/")})
    total = sum(sums.values())
    if not total:
        return ""
    rows = _share_rows(sums, total, folder.cut)
    return f'<section><h2>Where the time went</h2><table class="shares">{rows}</table></section>'


def _share_rows(sums: Mapping[str, float], total: float, cut: bool) -> str:
    """Without the times where they are not those of the whole run."""
    return "".join(
        f"<tr><th>{escape(phase_name(name, sums))}</th>"
        f"<td class='bar'><i style='width:{100 * seconds / total:.2f}%'></i></td>"
        f"<td>{percent(seconds / total)}</td><td>{duration(None if cut else seconds)}</td></tr>"
        for name, seconds in sorted(sums.items(), key=lambda item: -item[1])
    )
