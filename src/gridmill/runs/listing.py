"""Runs: what stands in a folder of runs, newest first, from their files alone.

A run is `running` while its log is held by a living process, `finished` when it has taken all its steps, `stopped`
when its log says how it ended, and `died` when it does not.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from gridmill.config.text import ascii_only
from gridmill.runs.figures import count, duration, finite, number, percent
from gridmill.runs.lines import is_being_written, read_records
from gridmill.runs.log_lines import ENDED


@dataclass(frozen=True)
class RunRow:
    """One run; None where its files do not say."""

    name: str
    state: str  # running | finished | stopped | died | empty
    agent_steps: int
    total_timesteps: int | None
    score: float | None
    checkpoint: str | None  # name of the newest whole one
    age: float  # seconds since its last sign of life


def rows(runs_dir: Path) -> list[RunRow]:
    """All runs of a folder, the one that wrote last first."""
    if not runs_dir.is_dir():
        raise FileNotFoundError(f"expected a folder of runs, got `{runs_dir}`; --runs-dir names another")
    found = [_row(folder) for folder in runs_dir.iterdir() if (folder / "log.txt").is_file()]
    return sorted(found, key=lambda row: (row.age, row.name))


def text(found: Sequence[RunRow]) -> str:
    """A table of at most 80 columns."""
    wide = min(26, max(len(row.name) for row in found)) if found else 4
    lines = [f"{'run':<{wide}} {'state':<8} {'steps':>7} {'done':>6} {'score':>8} {'checkpoint':>10}   age"]
    for row in found:
        name = row.name if len(row.name) <= wide else row.name[: wide - 2] + ".."
        done = percent(row.agent_steps / row.total_timesteps) if row.total_timesteps else "-"
        saved = (row.checkpoint or "-").removeprefix("epoch-").lstrip("0") or "0"
        figures = f"{count(row.agent_steps):>7} {done:>6} {number(row.score):>8} {saved:>10}"
        lines.append(f"{name:<{wide}} {row.state:<8} {figures}   {duration(row.age)}")
    return ascii_only("\n".join(lines))


def _row(folder: Path) -> RunRow:
    log, metrics = folder / "log.txt", folder / "metrics.jsonl"
    records = read_records(metrics, tail=True)
    steps = int(_newest(records, "agent_steps") or 0)
    total = _newest(records, "total_timesteps")
    touched = max(path.stat().st_mtime for path in (log, metrics) if path.exists())
    return RunRow(
        name=folder.name,
        state=_state(log, steps, total),
        agent_steps=steps,
        total_timesteps=None if total is None else int(total),
        score=_newest(records, "score"),
        checkpoint=_checkpoint(folder / "checkpoints"),
        age=max(0.0, time.time() - touched),
    )


def _newest(records: Sequence[dict[str, object]], key: str) -> float | None:
    values = (finite(record.get(key)) for record in reversed(records) if "evaluation" not in record)
    return next((value for value in values if value is not None), None)


def _state(log: Path, steps: int, total: float | None) -> str:
    if is_being_written(log):
        return "running"
    if total is not None and steps >= total:
        return "finished"
    with log.open("rb") as file:
        file.seek(max(0, log.stat().st_size - 4096))
        last = file.read().decode("utf-8", "replace").rstrip().rpartition("\n")[2]
    if last.startswith(ENDED):
        return "stopped"
    return "died" if steps else "empty"


def _checkpoint(folder: Path) -> str | None:
    whole = (path.name for path in folder.glob("epoch-*") if (path / "manifest.json").is_file())
    return max(whole, default=None)
