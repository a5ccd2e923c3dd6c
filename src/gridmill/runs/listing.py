"""Runs: what stands in a folder of runs, from their files alone; filtered, sorted, as a table.

A run is `running` while its log is held by a living process, `stopped` when its log says that something ended it,
`finished` when it has taken all its steps, and `died` otherwise. One whose files cannot be read is listed as that.
"""

from __future__ import annotations

import json
import math
import os
import re
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gridmill.config.files import kind_of, read_plain
from gridmill.config.text import WIDTH, ascii_only, printable
from gridmill.runs.figures import count, duration, finite, number, percent
from gridmill.runs.lines import read_records
from gridmill.runs.log_lines import ENDED
from gridmill.runs.place import is_being_written

TITLES = ("run", "recipe", "seed", "state", "steps", "speed", "score", "age")
LEFT = ("run", "recipe", "state")  # columns of words
LEAST = 8  # characters of a name that are always shown
SIGNS = ("log.txt", "metrics.jsonl", "run.json")  # files of which a run has one at least
MOST_SETTINGS = 16 << 20  # bytes of a run.json that is looked into


@dataclass(frozen=True)
class RunRow:
    """One run; None where its files do not say."""

    name: str
    state: str  # running | finished | stopped | died | empty | unreadable
    age: float  # seconds since its last sign of life
    agent_steps: int = 0
    total_timesteps: int | None = None
    score: float | None = None
    sps: float | None = None  # agent steps per second, mean of the run
    checkpoint: str | None = None  # name of the newest whole one
    recipe: str | None = None
    seed: int | None = None
    trouble: str | None = None  # why it cannot be read


def rows(runs_dir: Path) -> list[RunRow]:
    """All runs of a folder, the one that wrote last first."""
    if not runs_dir.is_dir():
        raise FileNotFoundError(f"expected a folder of runs, got `{runs_dir}`; --runs-dir names another")
    found = [row for folder in runs_dir.iterdir() if (row := _read(folder)) is not None]
    return ordered(found, "age")


SORTS: dict[str, Callable[[RunRow], Any]] = {
    "age": lambda row: row.age,
    "name": lambda row: row.name,
    "recipe": lambda row: (row.recipe or "", row.seed or 0),
    "seed": lambda row: row.seed or 0,
    "state": lambda row: row.state,
    "score": lambda row: -(row.score if row.score is not None else -math.inf),
    "speed": lambda row: -(row.sps or 0.0),
    "steps": lambda row: -row.agent_steps,
}


def ordered(found: Sequence[RunRow], by: str) -> list[RunRow]:
    """By one of SORTS: numbers of success from the highest down, age from the newest."""
    if by not in SORTS:
        raise ValueError(f"--sort: expected one of {', '.join(SORTS)}, got `{by}`")
    return sorted(found, key=lambda row: (SORTS[by](row), row.name))


def matching(found: Sequence[RunRow], words: Sequence[str]) -> list[RunRow]:
    """Those that have every word in their name, recipe or state; `seed=3` is the seed."""
    return [row for row in found if all(_matches(row, word) for word in words)]


def _matches(row: RunRow, word: str) -> bool:
    if word.startswith("seed="):
        return str(row.seed) == word.removeprefix("seed=")
    return any(word.lower() in text.lower() for text in (row.name, row.recipe or "", row.state))


def text(found: Sequence[RunRow]) -> str:
    """A table of at most 80 columns; names give way."""
    lines = [TITLES, *(_cells(row) for row in found)]
    wide = [max(len(line[column]) for line in lines) for column in range(len(TITLES))]
    over = sum(wide) + len(wide) - 1 - WIDTH
    while over > 0 and max(wide[0], wide[1]) > LEAST:
        longer = 0 if wide[0] >= wide[1] else 1
        wide[longer] -= 1
        over -= 1
    shown = []
    for line in lines:
        cells = [
            cell if len(cell) <= width else cell[: width - 2] + ".." for cell, width in zip(line, wide, strict=True)
        ]
        parts = [
            cell.ljust(width) if title in LEFT else cell.rjust(width)
            for title, cell, width in zip(TITLES, cells, wide, strict=True)
        ]
        shown.append(" ".join(parts).rstrip())
    troubles = [f"{printable(row.name)}: {row.trouble}" for row in found if row.trouble]
    return ascii_only("\n".join([*shown, *troubles]))


def _cells(row: RunRow) -> tuple[str, ...]:
    share = f" {percent(row.agent_steps / row.total_timesteps)}" if row.total_timesteps and row.agent_steps else ""
    return (
        printable(row.name),
        printable(row.recipe or "-"),
        "-" if row.seed is None else str(row.seed),
        row.state + ("" if row.state == "finished" else share.replace(" %", "%")),
        count(row.agent_steps),
        "-" if row.sps is None else f"{count(row.sps)}/s",
        number(row.score),
        duration(row.age),
    )


def _read(folder: Path) -> RunRow | None:
    """A run, or None if the folder is none; whatever is wrong with its files, the list goes on."""
    try:
        is_run = any(kind_of(folder / name) for name in SIGNS) and not kind_of(folder / "manifest.json")
        return _row(folder) if is_run else None  # a checkpoint has a run.json too
    except Exception as reason:  # whatever its files are, the others are listed
        said = printable(" ".join(str(reason).split())) or type(reason).__name__
        return RunRow(folder.name, "unreadable", 0.0, trouble=said)


def _row(folder: Path) -> RunRow:
    log, metrics = folder / "log.txt", folder / "metrics.jsonl"
    records = read_records(metrics, tail=True)
    steps = int(_newest(records, "agent_steps") or 0)
    total = _newest(records, "total_timesteps")
    recent = _newest(records, "score_recent")  # as in the log; a single epoch's is noisy
    there = [path for path in (log, metrics) if kind_of(path)] or [folder / "run.json"]
    touched = max(path.lstat().st_mtime for path in there)
    settings = _settings(folder / "run.json")
    recipe, seed = settings.get("recipe"), settings.get("seed")
    return RunRow(
        name=folder.name,
        state=_state(log, steps, total),
        age=max(0.0, time.time() - touched),
        agent_steps=steps,
        total_timesteps=None if total is None else int(total),
        score=_newest(records, "score" if recent is None else "score_recent"),
        sps=_newest(records, "sps_mean") or _newest(records, "sps"),
        checkpoint=_checkpoint(folder / "checkpoints"),
        recipe=recipe if isinstance(recipe, str) else None,
        seed=seed if isinstance(seed, int) and not isinstance(seed, bool) else None,
    )


def _settings(path: Path) -> dict[str, Any]:
    """The run in run.json; a file that says nothing is no reason to hide its run."""
    try:
        record = json.loads(read_plain(path, MOST_SETTINGS))
    except (OSError, ValueError, RecursionError):
        return {}
    inner = record.get("run", record) if isinstance(record, dict) else None
    return inner if isinstance(inner, dict) else {}


def _newest(records: Sequence[dict[str, object]], key: str) -> float | None:
    values = (finite(record.get(key)) for record in reversed(records) if "evaluation" not in record)
    return next((value for value in values if value is not None), None)


def _state(log: Path, steps: int, total: float | None) -> str:
    if is_being_written(log.parent):
        return "running"
    text = read_plain(log, 4096, tail=True).decode("utf-8", "replace") if kind_of(log) else ""
    last = text.rstrip().rpartition("\n")[2]
    if last.startswith(ENDED) and not last.startswith(f"{ENDED}finished"):
        return "stopped"  # perhaps after all steps, with a checkpoint that could not be written
    if total is not None and steps >= total:
        return "finished"
    return "stopped" if last.startswith(ENDED) else "died" if steps else "empty"


def _checkpoint(folder: Path) -> str | None:
    names = os.listdir(folder) if kind_of(folder) == "a folder" else []
    named = sorted((name for name in names if re.fullmatch(r"epoch-\d{8,15}", name)), reverse=True)
    return next((name for name in named if kind_of(folder / name / "manifest.json") == "a plain file"), None)
