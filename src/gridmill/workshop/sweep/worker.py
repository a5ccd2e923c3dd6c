"""A worker of a sweep: takes a trial, trains its runs, tells what came out, until no trial is left.

Every run is an ordinary one in the sweep's folder. A trial that another worker left in the middle goes on from its
newest checkpoint if its folder is here, else from the beginning.
"""

from __future__ import annotations

import contextlib
import errno
import functools
import io
import json
import math
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from gridmill.config import user_code
from gridmill.config.files import kind_of
from gridmill.config.text import hang
from gridmill.policy import checkpoint
from gridmill.run import Run
from gridmill.runs import overrides, session
from gridmill.runs.epoch import Result
from gridmill.runs.figures import finite, number
from gridmill.runs.group import BROKEN, STOPPED
from gridmill.runs.lines import read_records
from gridmill.runs.loop import NOT_SAVED
from gridmill.runs.report.folder import read as read_run
from gridmill.workshop.sweep.record import DONE, FAILED, PRUNED, State
from gridmill.workshop.sweep.study import LOOKS, STEPS, Study, step_of

PAUSE = 0.5  # seconds between two looks whether others have left something to do
WHY = {BROKEN: "values that are not finite", STOPPED: "stopped by the guard"}


def code_of(signals: Sequence[int]) -> int:
    """The exit code of what the newest signal ended; 0 if none came."""
    return 128 + signals[-1] if signals else 0


class Worker:
    """One process of a sweep; `base` is the run that trials change."""

    def __init__(
        self,
        study: Study,
        base: Run,
        folder: Path,
        wanted: int,
        prune: bool,
        orphaned: Callable[[], bool],
        signals: Sequence[int],
        tell: Any,
    ) -> None:
        self.study, self.base, self.folder, self.wanted, self.prune = study, base, folder, wanted, prune
        self.orphaned = orphaned  # whether the command that started this worker has gone
        self.signals = signals  # those that came, also before this worker was made
        self.print = tell
        self.looked: set[int] = set()  # steps of the trial at which its score was reported

    def go(self) -> int:
        """0 when all trials have ended, or the code of the signal that ended the work."""
        while not self._must_leave():
            trial = self.study.next(self.wanted)
            if trial is not None:
                code = self._try(trial)
                if code:
                    return code
            elif self.study.unfinished():  # others train; if one of them dies, its trial is for us
                time.sleep(PAUSE)
            else:
                return 0
        return code_of(self.signals)

    def _must_leave(self) -> bool:
        return bool(self.signals) or self.orphaned()

    def _try(self, trial: Any) -> int:
        """Train a trial's runs and tell; an exit code if the worker must end."""
        scores: list[float] = []
        seconds: list[float] = []
        tell = functools.partial(self.study.tell, trial, scores=scores, seconds=seconds)
        self.looked = self.study.looked(trial.number)
        try:
            for place, seed in enumerate(self.study.sweep.seeds):
                run = self._run(trial, place, seed)
                trial.set_user_attr(STEPS, run.trainer.total_timesteps)
                result, pruned = self._train(run, functools.partial(self._look, trial, run, place))
                if result.exit_code >= 128 or self._must_leave():
                    self.study.leave(trial)
                    return max(result.exit_code, code_of(self.signals) or 1)
                if result.exit_code == NOT_SAVED:
                    raise OSError(f"checkpoints cannot be written under `{self.folder}`; the trial stays unfinished")
                seconds.append(result.seconds)
                if pruned:
                    tell(PRUNED)
                    break
                if result.exit_code:
                    tell(FAILED, trouble=WHY[result.exit_code])
                    break
                if result.score is None:
                    tell(FAILED, trouble="no episode ended; increase trainer.total_timesteps")
                    break
                scores.append(result.score)
            else:
                values = [self._value(score, took) for score, took in zip(scores, seconds, strict=True)]
                tell(DONE, math.fsum(values) / len(values))
        except self.study.optuna.exceptions.OptunaError:  # of the storage, not of the trial
            raise
        except OSError:  # of the disk, not of the trial: whoever continues goes on with it
            self.study.leave(trial)
            raise
        except (ValueError, ArithmeticError, MemoryError, RuntimeError) as error:
            tell(FAILED, trouble=" ".join(f"{type(error).__name__}: {error}".split()))
        self._say(trial.number, self.study.save(self.folder, self.wanted))
        return 0

    def _run(self, trial: Any, place: int, seed: int) -> Run:
        name = self.study.sweep.names_of(trial.number)[place]
        return overrides.apply(self.base, self.study.changes(trial)).replace_all([("run", name), ("seed", seed)])

    def _train(self, run: Run, look: Callable[[Mapping[str, Any]], str]) -> tuple[Result, bool]:
        """From the newest checkpoint if the folder has this very run, else from the beginning; without a word. Also
        whether a look ended it.
        """
        folder, ended = self.folder / run.run, False
        if (kind := kind_of(folder)) not in ("", "a folder"):  # the sweep may be a stranger's
            raise OSError(errno.ENOTDIR, f"expected a folder of the sweep itself, got {kind}", str(folder))
        with contextlib.redirect_stdout(io.StringIO()):
            if _is_begun(folder, run):
                user_code.take(user_code.named_in(run.tree()))  # the command named it, not only the file
                for metrics in read_records(folder / "metrics.jsonl"):  # a kill may have come before a look
                    if "sps" in metrics:
                        look(metrics)
                loop = session.resume_epochs(folder, panel=False)
            else:
                loop = session.epochs(run, self.folder, panel=False, fresh=True)
            with loop:
                for epoch in loop:
                    if why := look(epoch.metrics):
                        epoch.stop(why)
                        ended = True
        assert loop.result is not None
        return loop.result, ended

    def _look(self, trial: Any, run: Run, place: int, metrics: Mapping[str, Any]) -> str:
        """Report the score where a look is due; why the run shall end, if it shall."""
        if self._must_leave():
            return "the sweep was stopped"
        score = finite(metrics.get("score_recent"))
        share = (finite(metrics.get("agent_steps")) or 0.0) / run.trainer.total_timesteps
        step = step_of(place, share)
        if score is None or step == place * LOOKS or step in self.looked:
            return ""
        self.looked.add(step)
        trial.report(self._value(score, finite(metrics.get("seconds")) or 0.0), step)
        return "pruned: its score is below the median" if self.prune and share < 1 and trial.should_prune() else ""

    def _value(self, score: float, seconds: float) -> float:
        """What is searched for. A score that is not above 0 stays as it is: divided, the slower run would win."""
        return score / max(seconds, 1e-9) if self.study.sweep.cost and score > 0 else score

    def _say(self, number_: int, state: State) -> None:
        trial = next(each for each in state.trials if each.number == number_)
        found = {DONE: number(trial.value), PRUNED: f"pruned at {number(trial.value)}"}
        words = found.get(trial.state, f"failed: {trial.trouble}")
        best = f"; best {number(state.best.value)} (trial {state.best.number})" if state.best else ""
        self.print("\n".join(hang(f"trial {number_}: ", f"{words}, {' '.join(trial.changes())}{best}")))


def _is_begun(folder: Path, run: Run) -> bool:
    """Whether a folder has a checkpoint of this run; threads may differ, they change nothing that is learned."""
    try:
        checkpoint.find(folder)
    except (ValueError, OSError):
        return False
    theirs, ours = dict(read_run(folder).settings), json.loads(json.dumps(run.tree()))
    for tree in (theirs, ours):
        tree["trainer"] = {**(tree.get("trainer") or {}), "threads": 0}
    return bool(theirs == ours)
