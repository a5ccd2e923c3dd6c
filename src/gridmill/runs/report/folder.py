"""A run's folder as its report sees it: whatever of its files is there and can be read, and nothing that fails."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from gridmill.config.files import kind_of, read_plain
from gridmill.runs.figures import finite
from gridmill.runs.lines import is_read_whole, read_records
from gridmill.runs.log_lines import TITLES
from gridmill.runs.place import is_being_written

BASELINES = "baselines.json"
MOST_JSON, MOST_TOLD = 1 << 26, 1 << 26  # bytes of a file that is looked into
MOST_REPLAYS = 10_000
EVALUATION = "evaluation"  # the key of a line that is one
MOST_METRICS = 500  # that are drawn; a game has about a hundred
MOST_EVALUATIONS = 1_000  # the newest
Records = Sequence[Mapping[str, Any]]
Column = tuple[list[float], list[float]]


@dataclass(frozen=True)
class Folder:
    """What is known of a run; empty where its files do not say."""

    path: Path
    name: str
    settings: Mapping[str, Any]  # the run's tree
    epochs: Records
    evaluations: Records
    baselines: Mapping[str, Any]  # what `gridmill.evaluate.others` made
    told: str  # the newest heading of log.txt
    replays: Sequence[str]  # names in replays/, newest last
    running: bool
    cut: bool = False  # whether lines of metrics.jsonl were left out

    @property
    def game(self) -> Mapping[str, Any]:
        found = self.settings.get("game")
        return found if isinstance(found, Mapping) else {}

    @property
    def score_stat(self) -> str:
        """The statistic that the score is made of."""
        score = self.game.get("score")
        own = score.get("stat", "") if isinstance(score, Mapping) else ""
        return str(self.settings.get("score") or own or "")

    def subtitle(self) -> str:
        said = [f"recipe {self.settings['recipe']}"] if self.settings.get("recipe") else []
        said += [f"game {self.game['name']}"] if self.game.get("name") else []
        said += [f"seed {self.settings['seed']}"] if "seed" in self.settings else []
        return ", ".join(said)

    def column(self, key: str) -> Column:
        """Agent steps and values of a metric, where it has one that can be drawn."""
        return self._columns.get(key, ([], []))

    @property
    def metrics(self) -> Sequence[str]:
        """Every metric that is ever a number, in the order of their appearance."""
        return list(self._columns)

    @cached_property
    def _columns(self) -> Mapping[str, Column]:
        """All of them from one look at the epochs; of more than MOST_METRICS the first."""
        found: dict[str, Column] = {}
        for record in self.epochs:
            steps = finite(record.get("agent_steps"))
            if steps is None:
                continue
            for key, value in record.items():
                number = finite(value)
                if number is None or (key not in found and len(found) == MOST_METRICS):
                    continue
                xs, ys = found.setdefault(key, ([], []))
                if abs(number) < 1e100:
                    xs.append(steps)
                    ys.append(number)
        return found


def read(path: Path) -> Folder:
    """The run in a folder."""
    metrics = path / "metrics.jsonl"
    records, evaluations = read_records(metrics), read_records(metrics, having=EVALUATION)
    epochs = [r for r in records if not r.keys() & {EVALUATION, "window"} and finite(r.get("agent_steps")) is not None]
    return Folder(
        path=path,
        name=path.resolve().name,
        settings=_settings(path / "run.json"),
        epochs=epochs,
        evaluations=[record for record in evaluations if EVALUATION in record][-MOST_EVALUATIONS:],
        baselines=_json(path / BASELINES),
        told=_told(path / "log.txt"),
        replays=_replays(path / "replays"),
        running=is_being_written(path),
        cut=not is_read_whole(metrics),
    )


def _replays(folder: Path) -> list[str]:
    names = os.listdir(folder) if kind_of(folder) == "a folder" else []
    return sorted(name for name in names[:MOST_REPLAYS] if kind_of(folder / name) == "a plain file")


def _json(path: Path) -> Mapping[str, Any]:
    try:
        record = json.loads(read_plain(path, MOST_JSON))
    except (OSError, ValueError, RecursionError):
        return {}
    return record if isinstance(record, dict) else {}


def _settings(path: Path) -> Mapping[str, Any]:
    """The run's record in run.json, on its own or under the key `run`."""
    record = _json(path)
    inner = record.get("run")
    return inner if isinstance(inner, dict) else record


def _told(path: Path) -> str:
    """The heading of log.txt: the newest one, if the run was resumed."""
    try:
        told = read_plain(path, MOST_TOLD).decode("utf-8", "replace")
    except OSError:
        return ""
    before, found, _ = told.rpartition("\n" + TITLES)
    if not found:
        return ""
    return (before.rpartition("\nresumed")[2] if "\nresumed" in before else before).strip()
