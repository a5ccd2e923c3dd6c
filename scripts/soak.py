"""Long runs in pieces: each goes on with a run and adds its figures to a record; their sum is the soak.

python scripts/soak.py --minutes 60     another hour of the run in runs/soak: training, evaluation, replays
python scripts/soak.py --recipe prospector --folder runs/soak-prospector    another run, perhaps beside it
python scripts/soak.py --sum            what all pieces say together

A piece's line in the record says how long it ran, how fast it was at its start and end, how much memory it took and
what went wrong. Speed is steps per second of the process's own CPU time. The same times the CPU time of a fixed piece
of work after every epoch is recorded too, but not judged: that work, five milliseconds of it, takes a third more or
less CPU time depending on what else the machine does, where an epoch takes a tenth. Every run is judged by itself; the
hours of all are added up. A record is of one soak: move it away to begin another.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any

from long_tier import commit

ROOT = Path(__file__).resolve().parents[1]
RECORD = ROOT / "bench" / "results" / "soak.jsonl"
HOURS = 8.0
SLOWER, GROWN = 0.05, 0.05  # the shares of speed and of memory that may be lost


@dataclass(frozen=True)
class Piece:
    """What one piece of a soak came to; `early` is its second fifth, `late` its last."""

    date: str
    commit: str
    run: str  # which run it is a piece of: its recipe and the time at which it began
    seconds: float
    cpu_seconds: float  # of these, what training itself had of a core
    first_epoch: int
    last_epoch: int
    speed_early: float  # steps in the CPU time of the fixed work
    speed_late: float
    sps_early: float  # steps per CPU second: what is judged
    sps_late: float
    memory_early: float  # MiB
    memory_late: float
    evaluations: int
    replays: int  # files; the newest was played whole
    errors: list[str]


@dataclass(frozen=True)
class Look:
    """What is seen of the process at the end of an epoch."""

    seconds: float
    steps: int
    used: float
    fixed: float
    memory: float


def piece(folder: Path, recipe: str, minutes: float, every: float) -> Piece:
    """Train for so long, from where the run is."""
    from gridmill import recipes
    from gridmill.runs import resume, train

    at = commit()  # now: files may change while this trains
    looks = watched(60 * minutes)
    log = folder / "log.txt"
    written = log.stat().st_size if log.exists() else 0
    settings: list[tuple[str, Any]] = [
        ("run", folder.name),
        ("trainer.total_timesteps", 10**12),
        ("trainer.device", "cpu"),
        ("checkpoint.seconds", every),
        ("evaluation.enabled", True),
        ("evaluation.episodes", 2),
        ("evaluation.replays_every_epochs", 1),
        ("analysis.gradient_epochs", 10),
        ("analysis.weight_epochs", 10),
        ("monitor.seconds", 1.0),
    ]
    if (folder / "checkpoints").is_dir():
        result = resume(folder, [f"checkpoint.seconds={every}"], panel=False)
    else:
        result = train(recipes.build(recipe).replace_all(settings), folder.parent, panel=False)
    said = log.read_bytes()[written:].decode()
    errors = [] if result.exit_code == 128 + signal.SIGINT else [f"exit code {result.exit_code}"]
    return described(folder, begun(folder, recipe), at, looks, result.epochs, errors + complaints(said))


def watched(seconds: float) -> list[Look]:
    """Looks at this process, one after every epoch of a run that ends, as by Ctrl-C, when the time is over."""
    import psutil
    import torch

    from gridmill.runs import loop

    looks: list[Look] = []
    plain, began, process = loop.Session.epoch, time.monotonic(), psutil.Process()
    left, right = torch.ones(1024, 128), torch.ones(128, 128)

    def fixed_work() -> float:
        before = time.thread_time()
        for _ in range(10):
            (left @ right).relu_().sum()
            sum(range(2000))
        return time.thread_time() - before

    def epoch(self: Any) -> Any:
        before = time.process_time()
        found = plain(self)
        used = time.process_time() - before
        memory = process.memory_info().rss / 2**20
        looks.append(Look(time.monotonic() - began, self.trainer.sizes.batch_size, used, fixed_work(), memory))
        if looks[-1].seconds > seconds:
            self.signal = signal.SIGINT
        return found

    loop.Session.epoch = epoch  # type: ignore[method-assign]
    return looks


def complaints(said: str) -> list[str]:
    """What went wrong, of what was logged; the heading may warn of the game."""
    from gridmill.runs.log_lines import TITLES

    lines = said.partition(TITLES)[2].splitlines()
    return [line.strip()[:200] for line in lines if "warning" in line or ": evaluation: " in line]


def described(folder: Path, run: str, at: str, looks: Sequence[Look], epochs: int, errors: list[str]) -> Piece:
    from gridmill.replay import read

    early, late = part(looks, 0.2, 0.4), part(looks, 0.8, 1.0)
    replays = sorted((folder / "replays").glob("*.replay"))
    if replays:
        tape = read(replays[-1])
        if sum(1 for _ in tape.play()) != len(tape.actions):
            errors.append(f"{replays[-1].name} does not play to its end")
    records = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    first = epochs - len(looks)
    return Piece(
        date=datetime.now(UTC).strftime("%Y-%m-%d"),
        commit=at,
        run=run,
        seconds=round(looks[-1].seconds, 1),
        cpu_seconds=round(sum(look.used for look in looks), 1),
        first_epoch=first + 1,
        last_epoch=epochs,
        speed_early=round(median(look.steps * look.fixed / look.used for look in early), 2),
        speed_late=round(median(look.steps * look.fixed / look.used for look in late), 2),
        sps_early=round(median(look.steps / look.used for look in early)),
        sps_late=round(median(look.steps / look.used for look in late)),
        memory_early=round(median(look.memory for look in early), 1),
        memory_late=round(median(look.memory for look in late), 1),
        evaluations=sum("evaluation" in record and record["epoch"] > first for record in records),
        replays=len(replays),
        errors=errors,
    )


def begun(folder: Path, recipe: str) -> str:
    """A run's recipe and when it began; written once, so that a piece is compared with those of its own run."""
    mark = folder / "soak.txt"
    if not mark.exists():
        mark.write_text(f"{recipe} {datetime.now(UTC):%Y-%m-%d %H:%M:%S}\n")
    return mark.read_text().strip()


def part(looks: Sequence[Look], begin: float, end: float) -> list[Look]:
    last = looks[-1].seconds
    return [look for look in looks if begin * last <= look.seconds <= end * last] or list(looks)


def load(record: Path) -> list[Piece]:
    lines = record.read_text().splitlines() if record.exists() else []
    return [Piece(**json.loads(line)) for line in lines]


def runs(pieces: Sequence[Piece]) -> dict[str, list[Piece]]:
    """The pieces of each run, in their order."""
    found: dict[str, list[Piece]] = {}
    for one in pieces:
        found.setdefault(one.run, []).append(one)
    return found


def speed(pieces: Sequence[Piece]) -> float:
    """How fast a run is at its end, as a share of how fast it was at its start."""
    return pieces[-1].sps_late / pieces[0].sps_early


def growth(pieces: Sequence[Piece]) -> float:
    """By which share the memory of a run grew: in the worst of its pieces, or from the first to the last."""
    in_a_piece = max(one.memory_late / one.memory_early for one in pieces)
    return max(in_a_piece, pieces[-1].memory_late / pieces[0].memory_late) - 1


def summed(pieces: Sequence[Piece]) -> tuple[str, list[str]]:
    """What the pieces come to, and what is wrong with them."""
    several = runs(pieces)
    faults = [f"{run}: {fault}" for run, own in several.items() for fault in faults_of(own)]
    speeds = [speed(own) for own in several.values()]
    beside = [own[-1].speed_late / own[0].speed_early for own in several.values()]
    grown = [growth(own) for own in several.values()]
    hours, cpu_hours = (sum(getattr(one, name) for one in pieces) / 3600 for name in ("seconds", "cpu_seconds"))
    text = (
        f"{hours:.2f} hours, {cpu_hours:.2f} of a core, in {counted(len(pieces), 'piece')} of "
        f"{counted(len(several), 'run')} ({', '.join(sorted({run.split()[0] for run in several}))}), "
        f"{sum(own[-1].last_epoch for own in several.values())} epochs, "
        f"{sum(one.evaluations for one in pieces)} evaluations, "
        f"{sum(own[-1].replays for own in several.values())} replays; speed at the end "
        f"{spread(speeds)} of the start by CPU time ({spread(beside)} by a fixed piece of work), "
        f"memory {max(grown):+.1%} at most, {sum(len(one.errors) for one in pieces)} errors"
    )
    return text, faults


def spread(values: Sequence[float]) -> str:
    return " to ".join(dict.fromkeys(f"{one:.3f}" for one in (min(values), max(values))))


def counted(number: int, what: str) -> str:
    return f"{number} {what}{'s' if number > 1 else ''}"


def faults_of(pieces: Sequence[Piece]) -> list[str]:
    """What is wrong with the pieces of one run."""
    faults = [f"error: {error}" for one in pieces for error in one.errors]
    if speed(pieces) < 1 - SLOWER:
        faults.append(f"expected at least {1 - SLOWER} of the speed at the start, got {speed(pieces):.3f}")
    if growth(pieces) > GROWN:
        faults.append(f"expected at most {GROWN:.0%} more memory, got {growth(pieces):.1%}")
    if any(one.first_epoch != before.last_epoch + 1 for before, one in pairwise(pieces)):
        faults.append("expected each piece to begin where the one before it ended")
    return faults


def main() -> int:
    parser = argparse.ArgumentParser(description="train, evaluate and record replays for a long time, in pieces")
    parser.add_argument("--minutes", type=float, default=60.0, help="how long this piece is")
    parser.add_argument("--recipe", default="ci", help="what a new run trains")
    parser.add_argument("--folder", type=Path, default=ROOT / "runs" / "soak", help="the run; gone on with if there")
    parser.add_argument("--record", type=Path, default=RECORD)
    parser.add_argument("--every", type=float, default=45.0, help="seconds between checkpoints, each evaluated")
    parser.add_argument("--sum", action="store_true", help="only say what the pieces come to")
    asked = parser.parse_args()
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    if not asked.sum:
        done = piece(asked.folder, asked.recipe, asked.minutes, asked.every)
        with asked.record.open("a") as file:
            file.write(json.dumps(asdict(done)) + "\n")
        if asked.record == RECORD:
            import matrix  # late: it reads this record

            matrix.write()
    pieces = load(asked.record)
    if not pieces:
        sys.exit(f"soak: expected pieces in {asked.record}, got none; run one with --minutes 60")
    text, faults = summed(pieces)
    left = HOURS - sum(one.seconds for one in pieces) / 3600
    print(f"soak: {text}" + (f"; {left:.1f} hours are left to {HOURS:g}" if left > 0 else ""))
    for fault in faults:
        print(f"soak: {fault}")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
