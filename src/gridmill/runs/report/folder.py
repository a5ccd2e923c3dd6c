"""A run's folder as its report sees it: whatever of its files is there and can be read, and nothing that fails."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gridmill.runs.figures import finite
from gridmill.runs.lines import is_being_written, read_records
from gridmill.runs.log_lines import TITLES

BASELINES = "baselines.json"
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
        """Agent steps and values of a metric, where it has one that can be drawn."""
        pairs = [(finite(record.get("agent_steps")), finite(record.get(key))) for record in self.epochs]
        known = [(x, y) for x, y in pairs if x is not None and y is not None and abs(y) < 1e100]
        return [x for x, _ in known], [y for _, y in known]


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
        replays=sorted(found.name for found in (path / "replays").glob("*") if found.is_file()),
        running=is_being_written(path / "log.txt"),
    )


def _json(path: Path) -> Mapping[str, Any]:
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
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
        told = path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
    before, found, _ = told.rpartition("\n" + TITLES)
    if not found:
        return ""
    return (before.rpartition("\nresumed")[2] if "\nresumed" in before else before).strip()
