"""The curriculum's part of the report: its sets, what is chosen now, what was evicted; from curriculum.json."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

from gridmill.config.files import read_plain
from gridmill.runs.figures import count, finite, number, percent
from gridmill.runs.report.folder import MOST_JSON

SHOWN = 20  # tasks that are seen at once; the others are behind a click
COUNTS = {
    "drawn": "ids drawn",
    "compiles": "games compiled",
    "refused": "tasks refused",
    "episodes": "whole episodes",
    "completed": "of them completed",
    "learned": "tasks learned",
    "given_up": "tasks given up",
}
COLUMNS = {
    "chance": "chosen next",
    "id": "id",
    "task": "task",
    "score": "score",
    "slow": "slow mean",
    "best": "best",
    "progress": "progress",
    "episodes": "episodes",
    "completed": "completed",
    "worlds": "worlds",
    "why": "why",
}


def section(folder: Path, curves: str) -> str:
    """Empty if the run has no curriculum; `curves` are its metrics over time."""
    record = _read(folder)
    if not record:
        return ""
    tasks = sorted(_rows(record, "tasks"), key=lambda task: -(finite(task.get("chance")) or 0.0))
    evicted = _rows(record, "evicted")[::-1]
    counts = ", ".join(f"{name} {count(record.get(key))}" for key, name in COUNTS.items())
    said = (
        f"{record.get('choose', '')}, after epoch {record.get('epoch', '-')}: {len(tasks)} tasks in the pool, {counts}"
    )
    refusal = f"<p>The newest refusal: {escape(str(record['refusal']))}</p>" if record.get("refusal") else ""
    return (
        f"<section><h2>Curriculum</h2><p>{escape(said)}</p>{refusal}{_sets(record)}"
        f"<h3>Current tasks</h3>{_folded(tasks)}"
        + (f"<h3>Evicted tasks, newest first</h3>{_folded(evicted)}" if evicted else "")
        + f"</section>{curves}"
    )


def _read(folder: Path) -> Mapping[str, Any]:
    try:
        record = json.loads(read_plain(folder / "curriculum.json", MOST_JSON))
    except (OSError, ValueError, RecursionError):
        return {}
    return record if isinstance(record, dict) else {}


def _rows(record: Mapping[str, Any], key: str) -> list[Mapping[str, Any]]:
    rows = record.get(key)
    return [row for row in rows if isinstance(row, Mapping)] if isinstance(rows, list) else []


def _sets(record: Mapping[str, Any]) -> str:
    sets = record.get("sets")
    lines = []
    for name, one in sets.items() if isinstance(sets, Mapping) else ():
        if not isinstance(one, Mapping):
            continue
        vary = one.get("vary")
        varied = "; ".join(f"{path}: {text}" for path, text in vary.items()) if isinstance(vary, Mapping) else ""
        every = "endless" if one.get("all") is None else count(one["all"])
        cells = [name, str(one.get("game", "-")), percent(finite(one.get("share")) or 0.0), number(one.get("target"))]
        lines.append([*cells, f"{count(one.get('tasks'))} of {every}", varied or "-"])
    return _table(["set", "game", "share of new tasks", "completed from", "in the pool", "what varies"], lines)


def _folded(tasks: Sequence[Mapping[str, Any]]) -> str:
    columns = {key: title for key, title in COLUMNS.items() if any(key in task for task in tasks)}
    lines = [[_cell(key, task.get(key)) for key in columns] for task in tasks]
    shown, rest = lines[:SHOWN], lines[SHOWN:]
    titles = list(columns.values())
    more = f"<details><summary>{len(rest)} more</summary>{_table(titles, rest)}</details>" if rest else ""
    return _table(titles, shown) + more


def _cell(key: str, value: Any) -> str:
    if key == "chance":
        return percent(finite(value) or 0.0)
    if key in ("id", "episodes", "completed", "worlds"):
        return str(value)
    return number(value) if finite(value) is not None else str(value)


def _table(titles: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    head = "".join(f"<th>{escape(title)}</th>" for title in titles)
    body = "".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in line) + "</tr>" for line in lines)
    return f'<table class="plain">{"<tr>" + head + "</tr>"}{body}</table>'
