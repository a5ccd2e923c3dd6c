"""The report: a run as one page, report.html, that needs nothing else: no scripts, no fonts, no network.

Made from the run's own files (metrics.jsonl, run.json, log.txt), whatever of them is there, so it can be written at
any time and again later. Names come from people: everything is escaped, and the page's own policy forbids scripts.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

from gridmill.config import flatten
from gridmill.config.files import write_whole
from gridmill.curriculum import short_settings
from gridmill.runs.figures import count, duration, finite, number, percent, phase_name, phases
from gridmill.runs.lines import read_records
from gridmill.runs.log_lines import TITLES, evaluation_results
from gridmill.runs.report import tasks
from gridmill.runs.report.chart import Point, curve
from gridmill.runs.report.style import STYLE

# metric -> what it is called and means
MAIN = {
    "score": ("score", "mean over the episodes that ended in an epoch"),
    "reward": ("reward", "mean of an agent step"),
    "signal": ("signal", "what is learned from in its place, mean of an agent step"),
    "sps": ("speed", "agent steps per second"),
}
LEARNING = {
    "loss/policy": ("policy loss", ""),
    "loss/value": ("value loss", ""),
    "loss/entropy": ("entropy", "how undecided the policy is"),
    "kl": ("KL", "how far one update moves the policy"),
    "clip_fraction": ("clipped", "share of steps the clip held back"),
    "explained_variance": ("explained variance", "1 = the critic foresees all"),
    "learning_rate": ("learning rate", ""),
}
MACHINE = {
    "memory/rss": ("memory", "bytes of the process"),
    "cpu/util": ("CPU", "share of all cores"),
    "gpu/util": ("GPU", "share"),
}
OTHERS = {
    "epoch",
    "agent_steps",
    "total_timesteps",
    "seconds",
    "eta",
    "episodes",
    "sps_mean",
    "memory/free",
    "gpu/memory",
}
FROM_ZERO = {"sps", "memory/rss", "cpu/util", "gpu/util"}  # where a small wobble should look small
MOST_STATISTICS = 24
CURRICULUM = "curriculum/"  # how its metrics begin
NEWEST = 10  # evaluations shown at once
Records = Sequence[Mapping[str, Any]]


def write(folder: Path) -> Path:
    """Make folder/report.html from the folder's files."""
    records = read_records(folder / "metrics.jsonl")
    page = _page(folder, records)
    path = folder / "report.html"
    write_whole(path, page.encode("utf-8", "backslashreplace"))
    return path


def _page(folder: Path, records: Records) -> str:
    epochs = [
        record for record in records if "evaluation" not in record and finite(record.get("agent_steps")) is not None
    ]
    evaluations = [record for record in records if "evaluation" in record]
    settings = _settings(folder)
    game = settings.get("game")
    game_name = str(game.get("name", "")) if isinstance(game, Mapping) else ""
    body = [
        f"<header><h1>{escape(folder.name)}</h1><p>{escape(_subtitle(settings, game_name))}</p></header>",
        _tiles(epochs),
        _curves("Results", MAIN, epochs, _points(evaluations)),
        _curves("Learning", LEARNING, epochs),
        _shares(epochs),
        _evaluations(evaluations),
        tasks.section(folder, _curves("Tasks over time", _of_curriculum(epochs), epochs)),
        _curves("The game", _statistics(epochs), epochs),
        _curves("Machine", MACHINE, epochs),
        _told(folder),
        _setting_tables(settings),
    ]
    policy = "default-src 'none'; style-src 'unsafe-inline'"
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<meta name="color-scheme" content="light dark">'
        f"<title>{escape(folder.name)}</title><style>{STYLE}</style></head>\n<body><main>\n"
        + "\n".join(part for part in body if part)
        + "\n</main></body></html>\n"
    )


def _subtitle(settings: Mapping[str, Any], game: str) -> str:
    said = [f"recipe {settings['recipe']}"] if settings.get("recipe") else []
    said += [f"game {game}"] if game else []
    said += [f"seed {settings['seed']}"] if "seed" in settings else []
    return ", ".join(said)


# ---- figures


def _tiles(epochs: Records) -> str:
    if not epochs:
        return "<p>No epoch has ended yet.</p>"
    last = epochs[-1]
    scores = [score for record in epochs if (score := finite(record.get("score"))) is not None]
    steps, total = finite(last.get("agent_steps")) or 0.0, finite(last.get("total_timesteps"))
    tiles = {
        "score": (number(scores[-1]), f"best {number(max(scores))}") if scores else ("-", "no episode ended"),
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


def _curves(
    title: str,
    wanted: Mapping[str, tuple[str, str]],
    epochs: Records,
    points: Mapping[str, Sequence[Point]] | None = None,
) -> str:
    figures = []
    for key, (name, meaning) in wanted.items():
        pairs = [(finite(r.get("agent_steps")), finite(r.get(key))) for r in epochs]
        known = [(x, y) for x, y in pairs if x is not None and y is not None]
        dots = (points or {}).get(key, ())
        if not known:
            continue
        xs, ys = [x for x, _ in known], [y for _, y in known]
        note = f"<small>{escape(meaning)}</small>" if meaning else ""
        seen = '<small class="key">dots: evaluations, ± 2 standard errors</small>' if dots else ""
        figures.append(
            f"<figure><figcaption><b>{escape(name)}</b> <span>{escape(number(ys[-1]))}</span>{note}{seen}</figcaption>"
            f"{curve(xs, ys, f'{name} over agent steps', dots, from_zero=key in FROM_ZERO)}</figure>"
        )
    return f'<section><h2>{escape(title)}</h2><div class="charts">{"".join(figures)}</div></section>' if figures else ""


def _statistics(epochs: Records) -> dict[str, tuple[str, str]]:
    """The game's own statistics: every number that is nothing else."""
    known = {*MAIN, *LEARNING, *MACHINE, *OTHERS, "skipped_updates"}
    names = dict.fromkeys(key for record in epochs for key, value in record.items() if finite(value) is not None)
    own = sorted(key for key in names if key not in known and not key.startswith(("time/", CURRICULUM)))
    return {key: (key, "") for key in own[:MOST_STATISTICS]}


def _of_curriculum(epochs: Records) -> dict[str, tuple[str, str]]:
    """The metrics of a curriculum."""
    names = dict.fromkeys(key for record in epochs for key in record if key.startswith(CURRICULUM))
    return {key: (key.removeprefix(CURRICULUM), "") for key in list(names)[:MOST_STATISTICS]}


def _shares(epochs: Records) -> str:
    """Where the time went, over the whole run."""
    sums: dict[str, float] = {}
    for record in epochs:
        for name, seconds in phases(record).items():
            sums[name] = sums.get(name, 0.0) + seconds
    total = sum(sums.values())
    if not total:
        return ""
    rows = "".join(
        f"<tr><th>{escape(phase_name(name, sums))}</th>"
        f"<td class='bar'><i style='width:{100 * seconds / total:.2f}%'></i></td>"
        f"<td>{percent(seconds / total)}</td><td>{duration(seconds)}</td></tr>"
        for name, seconds in sorted(sums.items(), key=lambda item: -item[1])
    )
    return f'<section><h2>Where the time went</h2><table class="shares">{rows}</table></section>'


# ---- evaluations


def _points(evaluations: Records) -> dict[str, list[Point]]:
    found: dict[str, list[Point]] = {"score": [], "reward": []}
    for record in evaluations:
        steps = finite(record.get("agent_steps"))
        for result in evaluation_results(record)[:1]:  # the first is the game the run trains
            for key, dots in found.items():
                value = _mean(result, key)
                if steps is not None and value is not None:
                    dots.append(Point(steps, *value))
    return found


def _mean(result: Mapping[str, Any], key: str) -> tuple[float, float] | None:
    part = result.get(key)
    mean = finite(part.get("mean")) if isinstance(part, Mapping) else None
    return None if mean is None or not isinstance(part, Mapping) else (mean, finite(part.get("se")) or 0.0)


def _evaluations(evaluations: Records) -> str:
    rows = []
    for record in evaluations:
        for result in evaluation_results(record):
            values = [_mean(result, "score"), _mean(result, "reward")]
            said = [f"{number(value[0])} ± {number(value[1])}" if value else "-" for value in values]
            cells = [str(record.get("epoch", "-")), count(record.get("agent_steps")), str(result.get("game", "-"))]
            cells += [*said, str(result.get("episodes", "-"))]
            rows.append("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in cells) + "</tr>")
    if not rows:
        return ""
    newest, older = rows[-NEWEST:], rows[:-NEWEST]
    more = f"<details><summary>{len(older)} before these</summary>{_table(older)}</details>" if older else ""
    return f"<section><h2>Evaluations</h2>{_table(newest)}{more}</section>"


def _table(rows: Sequence[str]) -> str:
    titles = "".join(f"<th>{title}</th>" for title in ("epoch", "steps", "game", "score", "reward", "episodes"))
    return f'<table class="plain"><tr>{titles}</tr>{"".join(rows)}</table>'


# ---- what ran


def _told(folder: Path) -> str:
    """The heading of log.txt: the newest one, if the run was resumed."""
    try:
        told = (folder / "log.txt").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
    before, found, _ = told.rpartition("\n" + TITLES)
    if not found:
        return ""
    heading = before.rpartition("\nresumed")[2] if "\nresumed" in before else before
    return f"<section><h2>What runs</h2><pre>{escape(heading.strip())}</pre></section>"


def _settings(folder: Path) -> Mapping[str, Any]:
    """The run's record in run.json, on its own or under the key `run`."""
    try:
        record = json.loads((folder / "run.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    inner = record.get("run") if isinstance(record, dict) else None
    found = inner if isinstance(inner, dict) else record
    return found if isinstance(found, dict) else {}


def _setting_tables(settings: Mapping[str, Any]) -> str:
    if not settings:
        return ""
    groups: dict[str, dict[str, Any]] = {"": {}}
    for name, value in settings.items():
        if isinstance(value, dict) and value:
            groups[name] = flatten(short_settings(value) if name == "curriculum" else value)
        else:
            groups[""][name] = value
    game = groups.pop("game", {})
    tables = "".join(_setting_table(name or "run", rows) for name, rows in groups.items() if rows)
    whole = f"<details><summary>the game, {len(game)} settings</summary>{_setting_table('game', game)}</details>"
    return f'<section><h2>Settings</h2><div class="settings">{tables}</div>{whole if game else ""}</section>'


def _setting_table(title: str, rows: Mapping[str, Any]) -> str:
    cells = "".join(f"<tr><th>{escape(name)}</th><td>{escape(_value(value))}</td></tr>" for name, value in rows.items())
    return f"<table><caption>{escape(title)}</caption>{cells}</table>"


def _value(value: Any) -> str:
    if isinstance(value, bool) or value is None:
        return json.dumps(value)
    return f"{value:,}".replace(",", " ") if isinstance(value, int) else str(value)
