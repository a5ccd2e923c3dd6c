"""The command: read and check everything, open the storage, start the other workers, be one, and say what came out."""

from __future__ import annotations

import contextlib
import functools
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from gridmill import recipes, sizing
from gridmill.config import ConfigError, user_code
from gridmill.config.install import command
from gridmill.config.text import ascii_only, hang, printable, table
from gridmill.run import Run
from gridmill.runs import overrides, place, presets
from gridmill.runs.figures import duration, number
from gridmill.runs.stop import Stop
from gridmill.runs.trackers import refuse_missing
from gridmill.workshop.sweep import record, storage
from gridmill.workshop.sweep.record import DONE, RUNNING, State, Sweep
from gridmill.workshop.sweep.space import Dimension, parse
from gridmill.workshop.sweep.space import read as read_space

SHOWN = 10  # trials in the table on the terminal
MOST_LINE = 4_000  # characters of a line that is to be copied
MOST_OF_A_CORE = 8  # workers; each is a process of hundreds of MB
PAUSE = 0.05  # seconds between two looks at the other workers


@dataclass(frozen=True)
class Settings:
    """What was typed."""

    recipe: str
    texts: tuple[str, ...]  # spaces and plain settings
    trials: int = 30
    storage: str = ""
    workers: int = 1
    seeds: int = 1
    prune: bool = False
    cost: bool = False
    runs_dir: Path = Path("runs")

    def check(self) -> None:
        for name, value in (("--trials", self.trials), ("--workers", self.workers), ("--seeds", self.seeds)):
            if value < 1:
                raise ValueError(f"{name} must be at least 1, got {value}")
        if self.workers > (most := MOST_OF_A_CORE * sizing.cores()):
            raise ValueError(f"--workers must be at most {most}, {MOST_OF_A_CORE} for each core, got {self.workers}")
        storage.check(self.storage)

    def written(self) -> str:
        return json.dumps(asdict(self), default=str)

    @classmethod
    def read(cls, text: str) -> Settings:
        tree = json.loads(text)
        return cls(**tree | {"texts": tuple(tree["texts"]), "runs_dir": Path(tree["runs_dir"])})


@dataclass(frozen=True)
class Plan:
    """A sweep whose words have been understood."""

    sweep: Sweep
    space: tuple[Dimension, ...]
    base: Run  # what trials change
    folder: Path


def planned(settings: Settings) -> Plan:
    """Everything that can be wrong is refused here, in one line, before a file is made."""
    settings.check()
    named = [text for text in settings.texts if overrides.split(text)[0] == "run" and parse(text) is None]
    rest = [text for text in settings.texts if text not in named]
    plain = presets.fill(recipes.build(settings.recipe))
    space, changes = read_space(rest, plain)
    if not space:
        said = "expected a setting to search, such as 'optimizer.learning_rate=log(1e-4,1e-2)', got none"
        raise ValueError(f"{said}; to train once: {command('train', settings.recipe)}")
    base = overrides.apply(plain, [*changes, *named])
    _refuse_unfit(base, space)
    refuse_missing(base)
    name = base.run or f"{_word(settings.recipe)}-sweep"
    if not any("trainer.threads" in text for text in rest):  # they change no result
        cores = max(1, sizing.cores() // settings.workers)
        base = base.replace("trainer.threads", cores) if settings.workers > 1 else base
    seeds = tuple(range(base.seed, base.seed + settings.seeds))
    typed = tuple(text for text in rest if text not in changes)
    sweep = Sweep(name, settings.recipe, changes, typed, seeds, settings.cost)
    folder = settings.runs_dir / name
    if place.is_occupied(folder) and not record.is_sweep(folder):
        raise ValueError(f"`{folder}` exists and is not a sweep; choose another name with run=NAME")
    return Plan(sweep, space, base, folder)


def _refuse_unfit(base: Run, space: Sequence[Dimension]) -> None:
    """ConfigError if sizes do not fit whatever is chosen; one trial that does not fit fails alone."""
    sides = [base, *(overrides.apply(base, [each.written(end)]) for each in space for end in each.ends())]
    first: ConfigError | None = None
    for run in sides:
        try:
            sizing.refuse_unfit(run)
            return
        except ConfigError as error:
            first = first or error
    assert first is not None
    raise first


def _word(recipe: str) -> str:
    """A recipe's name as a part of a folder's."""
    stem = Path(recipe.split(":")[0]).stem if user_code.is_own(recipe) else recipe
    return re.sub(r"[^A-Za-z0-9._-]", "-", stem).lstrip(".-_") or "recipe"


def run(settings: Settings) -> int:
    """Search. 0 all trials have ended, 1 none has a score, else the code of the signal that stopped it."""
    plan = planned(settings)
    with storage.faults_named(settings.storage, plan.folder):
        return _search(settings, plan)


def _search(settings: Settings, plan: Plan) -> int:
    opened = storage.open_storage(settings.storage, _made(plan.folder), plan.sweep.name)
    try:
        from gridmill.workshop.sweep.study import Study
        from gridmill.workshop.sweep.worker import code_of

        study = Study(plan.sweep, plan.space, opened, settings.storage, plan.base.seed)
        state = study.save(plan.folder, settings.trials)
        print("\n".join(_heading(plan, settings, state)), flush=True)
        signals: list[int] = []
        # From before there are other workers: a command that a signal ends at once leaves them to themselves.
        with Stop(signals.append), Others(settings, signals) as others:
            code = work(settings, plan, study, lambda: False, signals)
            others.end(bool(code))
            code = code or code_of(signals)
        state = study.save(plan.folder, settings.trials)
    finally:
        opened.close()
    print("\n".join(lines_of(_as_it_is(plan.folder, state), plan.folder)))
    if code:
        print(f"stopped; the same command continues the sweep: {command('sweep', *_words(settings))}")
    return code or (0 if state.best is not None else 1)


def work(settings: Settings, plan: Plan, study: Any, orphaned: Callable[[], bool], signals: Sequence[int]) -> int:
    """Be a worker of the sweep."""
    from gridmill.workshop.sweep.worker import Worker

    tell = functools.partial(print, flush=True)
    lock = place.Lock(plan.folder, shared=True)  # by which others see that somebody works
    try:
        return Worker(study, plan.base, plan.folder, settings.trials, settings.prune, orphaned, signals, tell).go()
    finally:
        lock.close()


def _made(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    return folder


class Others:
    """The workers beside this one: processes of the same command, in sessions of their own.

    Ctrl-C is for the command, which hands it on when its own trial is saved. One that dies is not started again; its
    trial goes to the others.
    """

    def __init__(self, settings: Settings, signals: Sequence[int]) -> None:
        self.signals = signals  # that came to the command
        words = [sys.executable, "-P", "-m", "gridmill.workshop.sweep.beside", str(os.getpid()), settings.written()]
        self.processes: list[subprocess.Popen[bytes]] = []
        try:
            for _ in range(settings.workers - 1):
                if signals:
                    break
                self.processes.append(subprocess.Popen(words, stdin=subprocess.DEVNULL, start_new_session=True))
        except BaseException:
            self.end(True)
            raise

    def __enter__(self) -> Others:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self.end(kind is not None)

    def end(self, stop: bool) -> None:
        """Wait for them; with `stop`, or once a signal comes, they are asked to end after the running update."""
        asked = False
        while running := [process for process in self.processes if process.poll() is None]:
            stop = stop or bool(self.signals)
            for process in running if stop and not asked else ():
                process.send_signal(signal.SIGTERM)
            asked = stop
            time.sleep(PAUSE)
        died = [process for process in self.processes if process.returncode < 0]
        if died and not stop:
            names = ", ".join(signal.Signals(-process.returncode).name for process in died)
            print(f"{len(died)} of {len(self.processes) + 1} workers died ({names}); the others completed their trials")
        self.processes = []


def _words(settings: Settings) -> list[str]:
    """The command's words again."""
    words = [settings.recipe, *settings.texts, "--trials", str(settings.trials)]
    usual = Settings("", ())
    for name in ("storage", "workers", "seeds", "runs_dir"):
        value = getattr(settings, name)
        if value != getattr(usual, name):
            shown = storage.without_password(value) if name == "storage" else str(value)
            words += [f"--{name.replace('_', '-')}", shown]
    return words + [f"--{name}" for name in ("prune", "cost") if getattr(settings, name)]


# ---- what is said


def _heading(plan: Plan, settings: Settings, state: State) -> list[str]:
    sweep = plan.sweep
    lines = hang("", f"sweep {sweep.name}: recipe {sweep.recipe}, {settings.trials} trials, folder {plan.folder}", 2)
    lines += [f"  {text}" for text in sweep.space]
    seeds = f", mean of seeds {', '.join(map(str, sweep.seeds))}" if len(sweep.seeds) > 1 else ""
    pruned = ", pruned below the median" if settings.prune else ""
    lines += hang("searched: ", f"{sweep.searched}{seeds}{pruned}")
    if state.trials:
        lines.append(f"continues: {_counts(_as_it_is(plan.folder, state))}")
    return [_plain(line) for line in lines]


def _plain(line: str) -> str:
    """A line for any terminal, whatever the names of a stranger's sweep contain."""
    return ascii_only(printable(line, MOST_LINE))


def _counts(state: State) -> str:
    found = [f"{state.count(kind)} {word}" for kind, word in record.WORDS.items() if state.count(kind)]
    return f"{len(state.trials)} of {state.wanted} trials{': ' if found else ''}{', '.join(found)}"


def lines_of(state: State, folder: Path) -> list[str]:
    """A sweep on a terminal: the best trials, what matters, and the command that trains the best."""
    rows = []
    ordered = sorted(state.trials, key=lambda t: (t.state != DONE, t.value is None, -(t.value or 0.0), t.number))
    for trial in ordered[:SHOWN]:
        words = " ".join(f"{path.rpartition('.')[2]}={value}" for path, value in trial.settings.items())
        rows.append((trial.number, trial.state, number(trial.value), duration(trial.seconds), f"{words[:42]:<42}"))
    lines = [
        _counts(state),
        "",
        *table(("trial", "state", state.sweep.searched, "time", f"{'settings':<42}"), rows, left=2),
    ]
    if len(ordered) > SHOWN:
        lines.append(f"{len(ordered) - SHOWN} more are on the page")
    troubles = dict.fromkeys(trial.trouble for trial in state.trials if trial.trouble)
    for trouble in list(troubles)[:3]:
        lines += hang("failed: ", trouble)
    if state.importance:
        ranked = sorted(state.importance.items(), key=lambda pair: -pair[1])
        lines += hang("matters: ", ", ".join(f"{path} {100 * share:.0f} %" for path, share in ranked))
    lines.append("")
    if state.best is not None:
        score = f" (score {number(state.best.score)})" if state.sweep.cost else ""
        lines.append(f"best: trial {state.best.number}, {state.sweep.searched} {number(state.best.value)}{score}")
        lines.append(f"  {command(*state.words_of(state.best))}")
    lines.append(f"page: {folder / record.PAGE}")
    return [_plain(line) for line in lines]


def _as_it_is(folder: Path, state: State) -> State:
    """The state that workers have written, as it is now: one that was killed left its trial running in the file.

    If nobody works here any more, the page says so too. Of other hosts nothing is known.
    """
    from gridmill.workshop.sweep import page

    here = socket.gethostname()
    if place.is_being_written(folder, shared=True) or here not in {trial.host for trial in state.trials}:
        return state
    state = state.left_by(here)
    with contextlib.suppress(OSError):  # somebody else's folder
        page.write(folder, state, live=False)
    return state


def show(folder: Path) -> int:
    """The state of a sweep, from its own file and from who works in its folder."""
    written = record.read(folder)
    state = _as_it_is(folder, written)
    sweep = state.sweep
    unfinished = [trial.number for trial in written.trials if trial.state == RUNNING]
    alive = {k for k in unfinished if any(place.is_being_written(folder / name) for name in sweep.names_of(k))}
    print(_plain(f"sweep {sweep.name}: recipe {sweep.recipe} {' '.join(sweep.changes)}".rstrip()))
    print("\n".join(_plain(f"  {text}") for text in sweep.space))
    print("\n".join(lines_of(state, folder)))
    if alive:
        print(f"now training on this machine: trial {', '.join(map(str, sorted(alive)))}")
    if len(alive) < len(unfinished) or len(state.trials) < state.wanted:
        print("not all trials have ended; the command that started the sweep continues it")
    return 0
