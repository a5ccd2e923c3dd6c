"""What a sweep is and how far it has come: sweep.json in its folder, JSON that every worker writes after each trial.

Whoever looks at a sweep reads this file and no other, so a folder from a stranger is only text and numbers: no storage
is opened that it names.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from gridmill.config.files import kind_of, read_plain, write_whole
from gridmill.runs.figures import finite

FILE, PAGE = "sweep.json", "sweep.html"
MOST = 64 << 20  # bytes of a file that is looked into
DONE, PRUNED, FAILED, RUNNING = "done", "pruned", "failed", "running"
STATES = (DONE, PRUNED, FAILED, RUNNING)
UNFINISHED = "unfinished"  # how a trial is shown that the file calls running, but nobody trains
WORDS = {DONE: "done", PRUNED: "pruned", FAILED: "failed", RUNNING: "under way", UNFINISHED: "unfinished"}


@dataclass(frozen=True)
class Sweep:
    """What is searched: the same for all workers, and for the command that continues it."""

    name: str
    recipe: str
    changes: tuple[str, ...]  # the settings of all trials, as they were typed
    space: tuple[str, ...]  # as it was typed
    seeds: tuple[int, ...]
    cost: bool  # whether the score per second is searched for

    def identity(self) -> dict[str, Any]:
        """What must not change between two workers of one sweep."""
        tree = asdict(self)
        del tree["name"]
        return {key: list(value) if isinstance(value, tuple) else value for key, value in tree.items()}

    def names_of(self, number: int) -> list[str]:
        """The names of a trial's runs, one a seed; they are folders in that of the sweep."""
        ends = [f"-seed-{seed}" for seed in self.seeds] if len(self.seeds) > 1 else [""]
        return [f"trial-{number:04}{end}" for end in ends]

    @property
    def searched(self) -> str:
        return "score per second" if self.cost else "score"


@dataclass(frozen=True)
class Trial:
    """One setting that was tried, or is being tried."""

    number: int
    state: str
    settings: Mapping[str, str]  # by path, as they are typed
    value: float | None = None  # what is searched for; of a pruned trial what it had when it was pruned
    scores: tuple[float, ...] = ()  # one a seed
    seconds: float = 0.0
    steps: int = 0  # agent-steps of a whole run
    curve: tuple[tuple[float, float], ...] = ()  # agent-steps and what is searched for, a mean over seeds
    trouble: str = ""  # why it failed
    host: str = ""

    @property
    def score(self) -> float | None:
        return math.fsum(self.scores) / len(self.scores) if self.scores else None

    def changes(self) -> list[str]:
        return [f"{path}={value}" for path, value in self.settings.items()]


@dataclass(frozen=True)
class State:
    """A sweep with what has been found."""

    sweep: Sweep
    wanted: int  # trials
    storage: str = ""  # without its password
    trials: Sequence[Trial] = ()
    importance: Mapping[str, float] = field(default_factory=dict)  # share of each setting

    @property
    def best(self) -> Trial | None:
        done = [trial for trial in self.trials if trial.state == DONE and trial.value is not None]
        return max(done, key=lambda trial: (trial.value, -trial.number), default=None)

    def left_by(self, host: str) -> State:
        """The same where no worker lives on this host: what it was training is not running."""
        trials = [replace(t, state=UNFINISHED) if (t.state, t.host) == (RUNNING, host) else t for t in self.trials]
        return replace(self, trials=trials)

    def count(self, state: str) -> int:
        return sum(trial.state == state for trial in self.trials)

    def words_of(self, trial: Trial) -> list[str]:
        """The words behind `gridmill` that train a trial's setting again."""
        return ["train", self.sweep.recipe, *self.sweep.changes, *trial.changes()]


def write(folder: Path, state: State) -> None:
    write_whole(folder / FILE, (json.dumps({"format": 1, **asdict(state)}, indent=1) + "\n").encode())


def is_sweep(folder: Path) -> bool:
    return kind_of(folder / FILE) == "a plain file"


def read(folder: Path) -> State:
    """The sweep in a folder, which may be anybody's; ValueError if it is none."""
    file = folder / FILE
    try:
        tree = json.loads(read_plain(file, MOST))
        return _state(tree)
    except (OSError, RecursionError, ValueError, KeyError, TypeError, AttributeError, OverflowError) as error:
        said = error.strerror if isinstance(error, OSError) else f"{type(error).__name__}: {error}"
        raise ValueError(f"`{file}` cannot be read as a sweep: {said}") from None


def _state(tree: Any) -> State:
    sweep = tree["sweep"]
    return State(
        Sweep(
            str(sweep["name"]),
            str(sweep["recipe"]),
            tuple(map(str, sweep["changes"])),
            tuple(map(str, sweep["space"])),
            tuple(map(int, sweep["seeds"])),
            bool(sweep["cost"]),
        ),
        int(tree["wanted"]),
        str(tree["storage"]),
        [_trial(one) for one in tree["trials"]],
        {str(path): _number(share) for path, share in tree["importance"].items()},
    )


def _trial(tree: Any) -> Trial:
    if tree["state"] not in STATES:
        raise ValueError(f"expected {', '.join(STATES)}, got `{tree['state']!s:.40}`")
    return Trial(
        int(tree["number"]),
        tree["state"],
        {str(path): str(value) for path, value in tree["settings"].items()},
        None if tree["value"] is None else _number(tree["value"]),
        tuple(_number(score) for score in tree["scores"]),
        _number(tree["seconds"]),
        int(tree["steps"]),
        tuple((_number(x), _number(y)) for x, y in tree["curve"]),
        str(tree["trouble"]),
        str(tree["host"]),
    )


def _number(value: Any) -> float:
    found = finite(value)
    if found is None or abs(found) > 1e100:
        raise ValueError(f"expected a number, got {value!r:.40}")
    return found
