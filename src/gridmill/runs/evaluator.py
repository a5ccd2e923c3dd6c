"""Evaluation while training goes on: `python -m gridmill.evaluate` in a process of its own, from the newest checkpoint.

The trainer asks between epochs whether one is due and whether one has finished; nothing here waits but `finish`, at the
end of a run, and nothing here raises: an evaluation that fails is a line of text among the results. The process runs at
low priority, on one thread and without the GPU, so that it takes a share of one core and nothing else. It leaves when
the trainer does, however that ends.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from gridmill.config import user_code
from gridmill.replay import SUFFIX
from gridmill.run import Run
from gridmill.runs.report.folder import BASELINES

FAR_SEEDS = 1 << 32  # added to the run's seed: worlds that training does not play
FIGURES = ("episodes", "score", "reward", "stats")  # of a result, what log and report show
LIMIT = 3600.0  # seconds after which an evaluation is given up
# `python -m gridmill.evaluate` that also watches its standard input: the trainer holds the other end and never writes,
# so the end of it is the end of the trainer, even one that was killed.
WATCHED = """
import os, runpy, threading
os.nice(10)
threading.Thread(target=lambda: (os.read(0, 1), os._exit(1)), daemon=True).start()
runpy.run_module("gridmill.evaluate", run_name="__main__", alter_sys=True)
"""
ALONE = {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": ""}


@dataclass
class _Trial:
    """An evaluation under way."""

    epoch: int
    process: subprocess.Popen[bytes]
    files: ExitStack
    out: IO[bytes]
    err: IO[bytes]
    began: float


class Evaluator:
    """At most one evaluation at a time for the run in `folder`, whose run.json says which game is played.

    A resumed run has come to an epoch and a second, and its checkpoint may have been `evaluated` before.
    """

    def __init__(
        self, run: Run, folder: Path, epoch: int = 0, seconds: float = 0.0, evaluated: Path | None = None
    ) -> None:
        self.run = run
        self.folder = folder
        self._trial: _Trial | None = None
        self._results: list[dict[str, Any]] = []
        self._last_epoch, self._last_seconds = epoch, seconds
        self._last_replay = max((n for n in _replays(folder) if n <= epoch), default=0)
        self._evaluated = evaluated

    def start_when_due(self, epoch: int, seconds: float, checkpoint: Path | None) -> bool:
        """Start evaluating the newest checkpoint if the run's clocks say so; says whether it did.

        Due is every `evaluation.epochs` epochs and every `evaluation.seconds` seconds of the run; with neither, every
        new checkpoint. While another one runs, or without a new checkpoint, it stays due.
        """
        if self._trial is not None or checkpoint is None or checkpoint == self._evaluated:
            return False
        if not self._due(epoch, seconds):
            return False
        self._last_epoch, self._last_seconds = epoch, seconds
        self._begin(epoch, checkpoint)
        return self._trial is not None

    @property
    def under_way(self) -> Path | None:
        """The checkpoint that is being evaluated: nobody may remove it."""
        return None if self._trial is None else self._evaluated

    def has_evaluated(self, checkpoint: Path) -> bool:
        """Whether the newest evaluation was of this one, and is over."""
        return checkpoint == self._evaluated and self._trial is None

    def finish(self, epoch: int, checkpoint: Path, limit: float, leave: Callable[[], bool]) -> Iterator[dict[str, Any]]:
        """At the end of a run: wait for what runs, then for an evaluation of the last checkpoint; results as they come.

        Not longer than `limit` seconds, which is one more result, and not after `leave` says so.
        """
        until = time.monotonic() + limit
        while not leave():
            yield from self.poll()
            if self._trial is None:
                if self.has_evaluated(checkpoint):
                    return
                self._begin(epoch, checkpoint)
            elif time.monotonic() > until:
                yield {"epoch": self._trial.epoch, "error": f"evaluation: not finished {limit:g} s after the run's end"}
                return
            time.sleep(0.05)

    def poll(self) -> list[dict[str, Any]]:
        """What has finished since the last call: {"epoch", *FIGURES}, or {"epoch", "error"} with one line."""
        trial = self._trial
        if trial is not None:
            if trial.process.poll() is not None:
                self._results.append({"epoch": trial.epoch, **_read(trial)})
                self._end()
            elif time.monotonic() - trial.began > LIMIT:
                self._results.append({"epoch": trial.epoch, "error": f"evaluation: not finished after {LIMIT:.0f} s"})
                self._end()
        finished, self._results = self._results, []
        return finished

    def close(self) -> None:
        """Stop what runs, and leave no process behind."""
        self._end()

    def __enter__(self) -> Evaluator:
        return self

    def __exit__(self, *ended: object) -> None:
        self.close()

    def _due(self, epoch: int, seconds: float) -> bool:
        asked = self.run.evaluation
        if not asked.enabled:
            return False
        by_epochs = asked.epochs > 0 and epoch - self._last_epoch >= asked.epochs
        by_seconds = asked.seconds > 0 and seconds - self._last_seconds >= asked.seconds
        return by_epochs or by_seconds or (asked.epochs == 0 and asked.seconds == 0)

    def _begin(self, epoch: int, checkpoint: Path) -> None:
        self._evaluated = checkpoint
        try:
            self._trial = self._start(_epoch_of(checkpoint, epoch), checkpoint)
        except OSError as reason:
            self._results.append({"epoch": _epoch_of(checkpoint, epoch), "error": f"evaluation: {reason}"})

    def _start(self, epoch: int, checkpoint: Path) -> _Trial:
        words = [str(self.folder), "--policy", str(checkpoint)]
        words += ["--episodes", str(self.run.evaluation.episodes), "--seed", str(self.run.seed + FAR_SEEDS)]
        words += ["--baselines", str(self.folder / BASELINES)]  # played once, by the first evaluation
        for text in user_code.named_in({"policy": self.run.policy.tree()}):
            words += ["--code", text]
        often = self.run.evaluation.replays_every_epochs
        if often > 0 and epoch - self._last_replay >= often:
            self._last_replay = epoch
            words += ["--replay", str(self.folder / "replays" / f"epoch-{epoch:08d}{SUFFIX}")]
            words += ["--replay-weights"] if self.run.evaluation.replay_weights else []
        # Files, not pipes: nobody reads before the end, and a full pipe would stop the writer for good.
        with ExitStack() as files:
            out, err = (files.enter_context(tempfile.TemporaryFile()) for _ in range(2))
            process = subprocess.Popen(
                [sys.executable, "-P", "-c", WATCHED, *words],  # a file of the current folder is no module of ours
                stdin=subprocess.PIPE,
                stdout=out,
                stderr=err,
                env=os.environ | ALONE,
                start_new_session=True,  # Ctrl-C is for the trainer, which then closes this
            )
            assert process.stdin is not None
            files.enter_context(process.stdin)
            return _Trial(epoch, process, files.pop_all(), out, err, time.monotonic())

    def _end(self) -> None:
        trial, self._trial = self._trial, None
        if trial is None:
            return
        if trial.process.poll() is None:
            os.killpg(trial.process.pid, signal.SIGKILL)  # not yet waited for, so the group is still its own
        trial.process.wait()
        trial.files.close()


def _epoch_of(checkpoint: Path, now: int) -> int:
    """The epoch a checkpoint was written after, which may lie before the one that asks."""
    found = re.fullmatch(r"epoch-(\d+)", checkpoint.name)
    return now if found is None else int(found[1])


def _replays(folder: Path) -> list[int]:
    """The epochs that there are replays of."""
    names = (re.fullmatch(rf"epoch-(\d+){re.escape(SUFFIX)}", path.name) for path in folder.glob("replays/*"))
    return [int(name[1]) for name in names if name is not None]


def _read(trial: _Trial) -> dict[str, Any]:
    """The figures an evaluation printed, or what it said instead, as one line."""
    trial.out.seek(0)
    trial.err.seek(0)
    code = trial.process.returncode
    said = trial.err.read().decode(errors="replace").strip().splitlines()
    if code != 0:
        return {"error": f"evaluation: {said[-1] if said else 'no output'} (exit code {code})"}
    try:
        result = json.loads(trial.out.read())["results"][0]
        return {name: result[name] for name in FIGURES}
    except (ValueError, KeyError, IndexError, TypeError) as reason:
        return {"error": f"evaluation: its answer cannot be read: {type(reason).__name__}: {reason}"}
