"""A run's folder as its report sees it: whatever of its files is there and can be read, and nothing that fails."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gridmill.config.files import kind_of, read_plain
from gridmill.runs.figures import finite
from gridmill.runs.lines import MOST_READ, MOST_RECORDS, read_records
from gridmill.runs.log_lines import TITLES
from gridmill.runs.place import is_being_written

BASELINES = "baselines.json"
MOST_JSON, MOST_TOLD = 1 << 26, 1 << 26  # bytes of a file that is looked into
MOST_REPLAYS = 10_000
Records = Sequence[Mapping[str, Any]]


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
    cut: bool = False  # whether the oldest lines of metrics.jsonl were left out
    _columns: dict[str, tuple[list[float], list[float]]] = field(default_factory=dict, repr=False, compare=False)

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

    def column(self, key: str) -> tuple[list[float], list[float]]:
        """Agent steps and values of a metric, where it has one that can be drawn; looked for once."""
        if key in self._columns:
            return self._columns[key]
        pairs = [(finite(record.get("agent_steps")), finite(record.get(key))) for record in self.epochs]
        known = [(x, y) for x, y in pairs if x is not None and y is not None and abs(y) < 1e100]
        self._columns[key] = [x for x, _ in known], [y for _, y in known]
        return self._columns[key]


def read(path: Path) -> Folder:
    """The run in a folder."""
    records = read_records(path / "metrics.jsonl")
    epochs = [
        r for r in records if not r.keys() & {"evaluation", "window"} and finite(r.get("agent_steps")) is not None
    ]
    return Folder(
        path=path,
        name=path.resolve().name,
        settings=_settings(path / "run.json"),
        epochs=epochs,
        evaluations=[record for record in records if "evaluation" in record],
        baselines=_json(path / BASELINES),
        told=_told(path / "log.txt"),
        replays=_replays(path / "replays"),
        running=is_being_written(path),
        cut=len(records) >= MOST_RECORDS or _size(path / "metrics.jsonl") > MOST_READ,
    )


def _size(path: Path) -> int:
    return os.lstat(path).st_size if kind_of(path) else 0


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
