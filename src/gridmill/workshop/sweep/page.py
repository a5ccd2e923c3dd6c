"""sweep.html: the page of a sweep, one self-contained document in the style of the report of a run."""

from __future__ import annotations

import math
import shlex
from collections.abc import Sequence
from html import escape
from pathlib import Path
from urllib.parse import quote

from gridmill.config.files import kind_of, write_whole
from gridmill.runs.figures import duration, number, percent
from gridmill.runs.report.chart import WIDE, Line, chart
from gridmill.runs.report.document import document
from gridmill.workshop.sweep import pictures
from gridmill.workshop.sweep.record import DONE, PAGE, PRUNED, RUNNING, WORDS, State, Trial
from gridmill.workshop.sweep.space import parse

REFRESH = 60  # seconds after which the page of a sweep that goes on loads itself again


def write(folder: Path, state: State, live: bool = True) -> None:
    """`live`: a worker is there that will begin the trials that are missing."""
    write_whole(folder / PAGE, _page(folder, state, live).encode("utf-8", "backslashreplace"))


def _page(folder: Path, state: State, live_here: bool) -> str:
    sweep, best = state.sweep, state.best
    goes_on = (live_here and len(state.trials) < state.wanted) or state.count(RUNNING) > 0
    live = ' <span class="live">running</span>' if goes_on else ""
    said = [f"recipe {sweep.recipe}", *sweep.changes]
    said += [f"every trial with seeds {', '.join(map(str, sweep.seeds))}"] if len(sweep.seeds) > 1 else []
    axes = [pictures.Axis.of(found) for text in sweep.space if (found := parse(text)) is not None]
    shown, number_of_best = [t for t in state.trials if t.value is not None], None if best is None else best.number
    body = [
        f"<header><h1>{escape(sweep.name)}{live}</h1><p>{escape(', '.join(said))}</p></header>",
        _tiles(state),
        _best(state),
    ]
    if shown:
        history = pictures.history(state.trials, sweep.searched, number_of_best)
        lines = pictures.parallel(axes, state.trials, sweep.searched, number_of_best)
        slices = [pictures.over(axis, state.trials, sweep.searched, number_of_best) for axis in axes]
        body += [
            _section("Trial by trial", _full(sweep.searched, _key(state), history)),
            _importance(state),
            _section("All settings at once", _full("every line is a trial", "stronger colour = better", lines)),
            _section("Setting by setting", "".join(map(_figure, (axis.name for axis in axes), slices))),
            _curves(state),
        ]
    body.append(_table(folder, state, [axis.name for axis in axes]))
    return document(sweep.name, "\n".join(part for part in body if part), REFRESH if goes_on else 0)


def _tiles(state: State) -> str:
    best, tiles = state.best, {}
    if best is None:
        tiles[state.sweep.searched] = ("-", "no trial has ended")
    else:
        tiles[f"best {state.sweep.searched}"] = (number(best.value), f"trial {best.number}{_spread(best)}")
    counts = [f"{state.count(kind)} {word}" for kind, word in WORDS.items() if state.count(kind)]
    tiles["trials"] = (f"{len(state.trials)} of {state.wanted}", ", ".join(counts))
    tiles["training"] = (duration(math.fsum(trial.seconds for trial in state.trials)), "total of all runs")
    if len(hosts := {trial.host for trial in state.trials if trial.host}) > 1:
        tiles["hosts"] = (str(len(hosts)), ", ".join(sorted(hosts)))
    cells = "".join(
        f"<div><dt>{escape(name)}</dt><dd>{escape(big)}</dd><dd>{escape(small)}</dd></div>"
        for name, (big, small) in tiles.items()
    )
    return f'<dl class="tiles">{cells}</dl>'


def _spread(trial: Trial) -> str:
    """Between which scores the mean of several seeds lies."""
    if len(trial.scores) < 2:
        return ""
    return f", scores {number(min(trial.scores))} to {number(max(trial.scores))}"


def _best(state: State) -> str:
    if state.best is None:
        return ""
    words = shlex.join(["gridmill", *state.words_of(state.best)])
    return f'<section><h2>Train the best again</h2><pre class="words">{escape(words)}</pre></section>'


def _key(state: State) -> str:
    said = ["dots: trials; stronger colour = better", "line: the best so far"]
    said += ["rings: pruned trials, with their value at that time"] if state.count(PRUNED) else []
    return "; ".join(said)


def _importance(state: State) -> str:
    if not state.importance:
        return ""
    ranked = sorted(state.importance.items(), key=lambda pair: -pair[1])
    most = max(share for _, share in ranked) or 1.0
    rows = "".join(
        f"<tr><th>{escape(path)}</th><td class='bar'><i style='width:{100 * share / most:.2f}%'></i></td>"
        f"<td>{percent(share)}</td></tr>"
        for path, share in ranked
    )
    note = (
        "how well each setting separates the best quarter of the trials from the others (PED-ANOVA); unreliable if few"
    )
    table = f'<table class="shares long">{rows}</table>'
    return f'<section><h2>What matters</h2><p class="still">{note}</p>{table}</section>'


def _curves(state: State) -> str:
    best = state.best
    lines = [
        Line(f"trial {t.number}", [x for x, _ in t.curve], [y for _, y in t.curve], colour=0, faint=True)
        for t in state.trials
        if t.curve and t is not best
    ]
    if best is not None and best.curve:
        xs, ys = [x for x, _ in best.curve], [y for _, y in best.curve]
        lines.append(Line(f"trial {best.number}", xs, ys, colour=1))
    if not lines:
        return ""
    drawn = chart(lines, f"{state.sweep.searched} over agent steps", state.sweep.searched, shape=WIDE)
    note = f"<small>thin: every trial; thick: the best, trial {best.number}</small>" if best is not None else ""
    return _section(
        "Curves", f'<figure class="wide"><figcaption><b>{state.sweep.searched}</b>{note}</figcaption>{drawn}</figure>'
    )


def _table(folder: Path, state: State, paths: Sequence[str]) -> str:
    if not state.trials:
        return "<p>No trial has begun yet.</p>"
    several = len(state.sweep.seeds) > 1
    titles = ["trial", "state", state.sweep.searched, *(["scores"] if several else []), "time", *paths, "runs"]
    head = "".join(f"<th>{escape(title.rpartition('.')[2] if '.' in title else title)}</th>" for title in titles)
    ordered = sorted(state.trials, key=lambda t: (t.state != DONE, t.value is None, -(t.value or 0.0), t.number))
    rows = []
    for trial in ordered:
        cells = [str(trial.number), trial.state, number(trial.value)]
        cells += [" ".join(map(number, trial.scores)) or "-"] if several else []
        cells += [duration(trial.seconds), *(trial.settings.get(path, "-") for path in paths)]
        kind = ' class="key c1"' if trial is state.best else ""
        first, *rest = [escape(cell) for cell in cells]
        links = " ".join(
            f'<a href="{escape(quote(f"{name}/report.html"), quote=True)}">{place + 1 if several else "report"}</a>'
            for place, name in enumerate(state.sweep.names_of(trial.number))
            if kind_of(folder / name / "report.html")  # it may lie on another host
        )
        rows.append(f"<tr><td{kind}>{first}</td>{''.join(f'<td>{cell}</td>' for cell in rest)}<td>{links}</td></tr>")
        if trial.trouble:
            rows.append(f'<tr><td class="inner" colspan="{len(titles)}">failed: {escape(trial.trouble)}</td></tr>')
    table = f'<table class="plain scores"><tr>{head}</tr>{"".join(rows)}</table>'
    return f"<section><h2>Trials</h2>{table}</section>"


def _section(title: str, figures: str) -> str:
    return f'<section><h2>{escape(title)}</h2><div class="charts">{figures}</div></section>'


def _full(title: str, note: str, picture: str) -> str:
    """A picture over the whole width, which a narrow screen scrolls."""
    caption = f"<figcaption><b>{escape(title)}</b><small>{escape(note)}</small></figcaption>"
    return f'<figure class="full">{caption}<div>{picture}</div></figure>'


def _figure(title: str, picture: str) -> str:
    return f"<figure><figcaption><b>{escape(title)}</b></figcaption>{picture}</figure>"
