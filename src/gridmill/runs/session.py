"""A training run from beginning to end, with its folder: the loop around `Trainer.epoch`.

    runs/<name>/  run.json  metrics.jsonl  log.txt  report.html  checkpoints/  traces/  dump/

Exit codes: 0 done, 3 checkpoints cannot be written, 4 non-finite values, 5 stopped by the guard, 130 Ctrl-C, 143
SIGTERM.
"""

from __future__ import annotations

import functools
import json
import os
import re
import shlex
import signal
import subprocess
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from importlib.metadata import version
from pathlib import Path
from types import FrameType
from typing import Any

import torch

from gridmill import _native
from gridmill.config import did_you_mean
from gridmill.config.files import write_whole
from gridmill.curriculum import record as record_of
from gridmill.env import switches
from gridmill.policy import checkpoint, onednn
from gridmill.policy.spec import Spec
from gridmill.policy.transfer import refuse_unlike, transfer
from gridmill.run import PolicyConfig, Run
from gridmill.runs import overrides
from gridmill.runs.core_report import phase_lines, validation_lines
from gridmill.runs.evaluator import Evaluator
from gridmill.runs.heading import heading
from gridmill.runs.lines import read_records
from gridmill.runs.log import RunLog
from gridmill.runs.monitor import Monitor
from gridmill.runs.rollout_timing import timing_tree
from gridmill.runs.traces import Traces
from gridmill.sizing import mebibytes, memory, refuse_unfit
from gridmill.train.analysis import analyse
from gridmill.train.guard import Guard, dump, first_not_finite
from gridmill.train.trainer import BrokenNumbers, Trainer, refuse_deadly

NOT_SAVED, BROKEN, STOPPED = 3, 4, 5


@dataclass(frozen=True)
class Result:
    """How a run ended."""

    folder: Path
    agent_steps: int
    epochs: int
    score: float | None  # mean of the newest agent-episodes
    seconds: float
    exit_code: int
    validation: Any = None  # what shadow validation of observations found; None if it was off


def train(
    run: Run,
    runs_dir: Path | str = "runs",
    panel: bool | None = None,
    fresh: bool = False,
    recipe: Run | None = None,
) -> Result:
    """Train from the beginning. A folder of that name with checkpoints is refused, or with `fresh` put aside.

    `recipe` is the run as its recipe says it, for the heading, which lists what differs.
    """
    refuse_unfit(run)  # before anything is made
    refuse_deadly(run)
    start = _init_from(run)
    name = run.run or f"{_file_name(run.recipe)}-{datetime.now():%Y%m%d-%H%M%S}"
    folder = Path(runs_dir) / name
    occupied = folder.exists() and any(folder.iterdir())
    if occupied and not fresh:
        raise ValueError(f"`{folder}` exists; resume it: gridmill resume {folder} - or begin anew: --fresh")
    run = run.replace("run", name)
    trainer = Trainer(run, folder)  # refuses what does not fit into memory
    try:
        if occupied:
            _put_aside(folder)
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        trainer.close()
        raise
    return _session(trainer, folder, panel, start=start, recipe=recipe).go()


def resume(path: Path | str, changes: Sequence[str] = (), panel: bool | None = None) -> Result:
    """Go on from the newest whole checkpoint of a run; settings the saved state was made for cannot change."""
    place, skipped = checkpoint.find(Path(path)), list[str]()
    if place.resolve() == Path(path).resolve():  # one checkpoint was named
        found = checkpoint.load(place)
    else:
        found, skipped = checkpoint.newest(place.parent)
    saved = Run.load(Run.upgraded(found.record["run"]))
    run = overrides.apply(saved, list(changes))
    folder = found.path.parent.parent
    return _session(Trainer(run, folder), folder, panel, _still_true(found, saved, run), skipped).go()


def _still_true(found: checkpoint.Checkpoint, saved: Run, run: Run) -> checkpoint.Checkpoint:
    """A checkpoint without statistics of what a resumed run measures in another way: they begin anew."""
    tensors = dict(found.trainer)
    if run.trainer.reward != saved.trainer.reward:
        tensors = {name: tensor for name, tensor in tensors.items() if not name.startswith("reward.")}
    if run.score != saved.score:
        tensors["recent"] = torch.zeros(0, dtype=torch.float64)
    return replace(found, trainer=tensors)


def _session(trainer: Trainer, *rest: Any, **more: Any) -> _Session:
    """The session of a trainer, which ends if there can be none."""
    try:
        return _Session(trainer, *rest, **more)
    except BaseException:
        trainer.close()
        raise


class _Session:
    def __init__(
        self,
        trainer: Trainer,
        folder: Path,
        panel: bool | None,
        found: checkpoint.Checkpoint | None = None,
        skipped: Sequence[str] = (),
        start: checkpoint.Checkpoint | None = None,
        recipe: Run | None = None,
    ) -> None:
        run = trainer.run
        self.run, self.folder, self.trainer = run, folder, trainer
        notes = [f"skipped: {line}" for line in skipped]
        if start is not None:
            notes.append(f"begins with {start.path}: {_transfer(self.trainer, start)}")
        self.before = 0.0  # seconds of the run before this session
        if found is not None:
            checkpoint.refuse_mismatch(found.record, run, self.trainer.spec)
            checkpoint.refuse_unusable(found, self.trainer.policy.state_dict())
            try:
                self.trainer.restore(found.policy, found.trainer, found.record["last"])
            except checkpoint.CheckpointError:
                raise
            except ValueError as error:  # whole, and yet no state that these worlds could be in
                raise checkpoint.CheckpointError(str(error), found.path) from None
            self.before = float(found.record["seconds"])
        self.began = time.monotonic()
        self.first_steps = self.trainer.agent_steps
        lines = heading(run, self.trainer.env, recipe or _shipped_recipe(run))
        self.log = RunLog(  # first: it refuses a folder that somebody else writes
            folder, run, lines, panel, append=found is not None, from_epoch=None if found is None else found.epoch
        )
        write_whole(folder / "run.json", json.dumps(self.record(), indent=1).encode())
        if run.trainer.compile != "off":
            notes.append("trainer.compile: the first epochs compile the policy; about 4 minutes for ci on two cores")
        for line in notes:
            self.log.note(line)
        self.saver = checkpoint.Saver(folder / "checkpoints", run.checkpoint.keep, note=self.log.note)
        self.evaluator = self._evaluator(found) if run.evaluation.enabled else None
        self.guard = Guard(run.guard)
        self.traces = Traces(run.profiler, folder / "traces", trainer.sizes, trainer.env, self.log.note)
        self.saved: Path | None = None if found is None else found.path
        self.saved_at = (self.trainer.epochs, time.monotonic())
        self.saving = 0.0  # seconds since the newest line of metrics
        self.monitor = Monitor(run.monitor.seconds)
        self.signal = 0
        self.followed = _followed(run.tree())  # metrics, until they were looked for
        self.rollouts = 0.0  # seconds of this session
        self.validation: Any = None

    def _evaluator(self, found: checkpoint.Checkpoint | None) -> Evaluator:
        """With its clocks where the run is; what was evaluated before a resume is not evaluated again."""
        records = [] if found is None else read_records(self.folder / "metrics.jsonl")
        known = found is not None and any("evaluation" in r and r.get("epoch") == found.epoch for r in records)
        return Evaluator(
            self.run, self.folder, self.trainer.epochs, self.before, found.path if found and known else None
        )

    def go(self) -> Result:
        code, reason = 0, "finished"
        with _Signals(self):
            try:
                while not self.trainer.done and not self.signal and not code:
                    code, reason = self.epoch()
                if self.signal:
                    code, reason = 128 + self.signal, self._stopped_by()
                if code not in (BROKEN, STOPPED) and not self.save(last=True):
                    code, reason = NOT_SAVED, "the last checkpoint could not be written"
                if not code and self.evaluate_last():
                    code, reason = 128 + self.signal, f"finished; the last evaluation was {self._stopped_by()}"
            except BrokenNumbers as error:
                self.log.note(f"stopped: {error}; {self.dumped()}")
                code, reason = BROKEN, "non-finite values"
            except checkpoint.NotSaved as error:
                self.log.note(str(error))
                code, reason = NOT_SAVED, "checkpoints cannot be written"
            except torch.OutOfMemoryError as error:
                need, reason = mebibytes(memory(self.run, self.trainer.env).total), "out of memory"
                raise RuntimeError(
                    f"out of memory ({str(error).splitlines()[0]}); about {need} were expected: lower "
                    f"trainer.max_microbatch (now {self.trainer.sizes.microbatch_size}) or trainer.num_worlds "
                    f"(now {self.trainer.sizes.num_worlds})"
                ) from error
            except BaseException as error:
                reason = f"{type(error).__name__}: {error}"
                raise
            finally:
                self.close(code, reason)
        seconds = self.before + time.monotonic() - self.began
        score = float(self.trainer.recent.mean()) if len(self.trainer.recent) else None
        steps, epochs = self.trainer.agent_steps, self.trainer.epochs
        return Result(self.folder, steps, epochs, score, seconds, code, self.validation)

    def _stopped_by(self) -> str:
        return f"stopped by {signal.Signals(self.signal).name}"

    def epoch(self) -> tuple[int, str]:
        """One epoch and everything around it; an exit code if the run must end."""
        self.trainer.watch(self.traces if self.traces.due(self.trainer.epochs) else None)
        with self.traces.around(self.trainer.epochs):
            metrics = self.trainer.epoch()
        now = time.monotonic()
        steps = self.trainer.agent_steps - self.first_steps
        mean = steps / max(1e-9, now - self.began)
        left = self.trainer.total_steps - self.trainer.agent_steps
        metrics |= {"seconds": self.before + now - self.began, "sps_mean": mean, "eta": left / mean}
        metrics |= analyse(self.run.analysis, self.trainer)
        every = self.run.monitor.epochs
        if not every or self.trainer.epochs % every == 0:
            metrics |= self.monitor.take()
        self.rollouts += metrics["time/rollout"]
        metrics["time/checkpoint"], self.saving = self.saving, 0.0
        if self.saved is not None:
            metrics["last_checkpoint"] = self.saved.name
        for window in self.trainer.full_windows:  # before the epoch: what looks for the newest reads the last lines
            self.log.window(self.trainer.epochs, window.record())
        self.log.epoch(metrics)  # before the checkpoint: whatever one holds, the metrics up to it are there
        if self.due():
            self.save()
        self.evaluate(metrics["seconds"])
        timed = self.run.profiler.rollout_timing
        if timed and self.trainer.epochs % timed == 0:
            self.log.note("\n".join(timing_tree(metrics)))
        self.look_for_followed_metrics()
        warnings = self.guard.look(metrics)
        for warning in warnings:
            self.log.note(f"warning: {warning}")
        if self.trainer.learner.in_a_row >= 3:
            self.log.note(f"stopped: 3 updates in a row had non-finite values; {self.dumped()}")
            return BROKEN, "non-finite values"
        if warnings and self.run.guard.stop:
            return STOPPED, "stopped by the guard"
        return 0, "finished"

    def look_for_followed_metrics(self) -> None:
        """Once episodes have ended: a schedule over a metric that is not there would stay at its start, unsaid."""
        known = self.trainer.last
        if self.followed and "score" in known:
            for name in sorted(self.followed - known.keys()):
                hint = did_you_mean(name, list(known))
                self.log.note(f"warning: a schedule follows the metric `{name}`, which epochs do not have{hint}")
            self.followed = set()

    def due(self) -> bool:
        """Whether a checkpoint is: by epochs, by seconds, or because the last try failed."""
        c, (epoch, at) = self.run.checkpoint, self.saved_at
        if self.trainer.learner.in_a_row:
            return False  # never from a bad state
        by_epochs = c.epochs > 0 and self.trainer.epochs - epoch >= c.epochs
        by_seconds = c.seconds > 0 and time.monotonic() - at >= c.seconds
        by_windows = c.windows and bool(self.trainer.full_windows)
        return by_epochs or by_seconds or by_windows or self.saver.retry_due()

    def save(self, last: bool = False) -> bool:
        """Write a checkpoint, unless there is one of this epoch or updates were skipped; False if the disk fails."""
        t, began = self.trainer, time.monotonic()
        if t.learner.in_a_row or (self.saved is not None and self.saved_at[0] == t.epochs):
            return True
        weights, tensors = t.weights(), t.tensors()
        if poisoned := first_not_finite(weights | tensors):
            raise BrokenNumbers(f"`{poisoned}` is not finite after epoch {t.epochs}; expected finite numbers")
        score = float(t.recent.mean()) if len(t.recent) else None
        in_use = None if self.evaluator is None else self.evaluator.under_way
        path = self.saver.save(t.epochs, weights, tensors, self.record(), score, last, in_use)
        self.saved_at = (t.epochs if path is not None else self.saved_at[0], time.monotonic())
        self.saved = path or self.saved
        self.tell_curriculum()
        self.saving += time.monotonic() - began
        return path is not None

    def tell_curriculum(self) -> None:
        """What is in the pool of tasks now, for the report."""
        if self.trainer.curriculum is not None:
            self.log.curriculum({"epoch": self.trainer.epochs} | record_of(self.trainer.curriculum))

    def dumped(self) -> str:
        """Keep what is needed to see why a run broke, if the disk takes it; where it lies."""
        try:
            return f"dump: {dump(self.folder, self.trainer)}"
        except OSError as error:
            return f"no dump: {error}"

    def record(self) -> dict[str, Any]:
        """What run.json holds: all that a person or a program must know to use the weights."""
        return {
            "run": self.run.tree(),
            "spec": self.trainer.spec.tree(),
            "fingerprint": self.run.game.fingerprint(),
            "versions": {name: version(name) for name in ("gridmill", "torch", "numpy")},
            "commit": _commit(),
            "onednn": onednn.settle().state,
            "switches": switches.in_force(),
            "seconds": self.before + time.monotonic() - self.began if hasattr(self, "began") else self.before,
            "last": self.trainer.last,
        }

    def evaluate(self, seconds: float) -> None:
        if self.evaluator is None:
            return
        self.evaluator.start_when_due(self.trainer.epochs, seconds, self.saved)
        for result in self.evaluator.poll():
            self.evaluated(result)

    def evaluated(self, result: dict[str, Any]) -> None:
        if "error" in result:
            self.log.note(f"evaluation of epoch {result['epoch']}: {result['error']}")
        else:
            t = self.trainer  # counted back from now: before a resume a batch may have had another size
            steps = t.agent_steps - (t.epochs - result["epoch"]) * t.sizes.batch_size
            self.log.evaluation(result["epoch"], steps, result)

    def evaluate_last(self) -> bool:
        """Wait for the evaluation of the last checkpoint; whether a signal cut that short."""
        limit = self.run.evaluation.final_seconds
        if self.evaluator is None or self.saved is None or not limit or self.evaluator.has_evaluated(self.saved):
            return False
        self.log.note(f"evaluating {self.saved.name}, for at most {limit:g} s (Ctrl-C leaves)")
        for result in self.evaluator.finish(self.trainer.epochs, self.saved, limit, lambda: self.signal != 0):
            self.evaluated(result)
        return self.signal != 0

    def close(self, code: int, reason: str) -> None:
        self.traces.close()
        self.monitor.close()
        if self.evaluator is not None:
            self.evaluator.close()
        if self.saved is not None and not self.trainer.done:
            self.log.note(f"resume with: gridmill resume {shlex.quote(str(self.folder))}", whole=True)
        self.tell_curriculum()
        self.tell_of_the_core()
        self.trainer.close()
        self.log.close(reason)

    def tell_of_the_core(self) -> None:
        """What its phases took, if they were timed, and what shadow validation found, if it was on."""
        env = self.trainer.env
        try:
            timed, self.validation = env.step_timing_total, env.observation_validation
        except RuntimeError as error:  # a lane is still in flight: something broke in the middle of a rollout
            self.log.note(f"nothing of the core's own counts: {error}")
            return
        if timed is not None and timed["steps"]:
            ticks = timed.pop("steps") // env.lanes
            del timed["wall"]  # of lanes: it has in it what the policy did meanwhile
            lines = phase_lines(timed, ticks, self.rollouts)
            self.log.note("\n".join(["phases of the core, of the rollouts:", *lines]))
        if self.validation is not None:
            self.log.note("\n".join(validation_lines(self.validation, env.num_worlds)))


class _Signals:
    """Ctrl-C and SIGTERM: the first ends the run after the running update, a second of its kind at once.

    If Python does not get to its handler, because a call of the core does not come back, the core leaves in its place.
    """

    def __init__(self, session: _Session) -> None:
        self.session = session
        self.before: dict[int, Any] = {}
        self.listened = False
        self.seen: set[int] = set()

    def __enter__(self) -> None:
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM):
                self.before[number] = signal.signal(number, self.handle)
            self.listened = _native.leave_on_second_signal(True)

    def handle(self, number: int, frame: FrameType | None) -> None:
        if number in self.seen:
            os._exit(128 + number)
        self.seen.add(number)
        self.session.signal = number

    def __exit__(self, *_: object) -> None:
        for number, handler in self.before.items():
            signal.signal(number, handler)
        if self.before:
            _native.leave_on_second_signal(self.listened)


def _init_from(run: Run) -> checkpoint.Checkpoint | None:
    """The weights that a run shall begin with, if it names some; refused if the networks are not alike."""
    if not run.policy.init_from:
        return None
    load = checkpoint.load_policy if run.trainer.reward == "raw" else checkpoint.load
    found = checkpoint.latest(Path(run.policy.init_from), load)
    checkpoint.refuse_unusable(found, {})
    try:
        refuse_unlike(run.policy, *_network_of(found))
    except ValueError as error:
        raise ValueError(f"policy.init_from = {found.path}: {error}") from None
    return found


def _network_of(found: checkpoint.Checkpoint) -> tuple[PolicyConfig, Spec]:
    return PolicyConfig.load(PolicyConfig.upgraded(found.record["run"]["policy"])), Spec.load(found.record["spec"])


def _transfer(trainer: Trainer, start: checkpoint.Checkpoint) -> str:
    """Give the policy the weights it shall begin with, and rewards the scale that its critic knows; what was known."""
    checkpoint.refuse_unusable(start, trainer.policy.state_dict())
    try:
        told = transfer(trainer.policy, start.policy, *_network_of(start))
    except ValueError as error:
        raise ValueError(f"policy.init_from = {start.path}: {error}") from None
    theirs, ours = start.record["run"]["trainer"]["reward"], trainer.run.trainer.reward
    if theirs != ours:
        return f"{told}; its critic learned from {theirs} rewards, here they are {ours}"
    if ours != "raw":
        trainer.learner.scale.begin_with(start.trainer)
        told += f"; rewards are {ours} as they were there"
    return told


def _followed(tree: Any) -> set[str]:
    """The metrics that schedules in plain data of a run go over."""
    if isinstance(tree, dict) and {"start", "end", "over"} <= tree.keys():
        return {tree["over"].removeprefix("metric:")} if tree["over"].startswith("metric:") else set()
    parts = tree.values() if isinstance(tree, dict) else tree if isinstance(tree, list) else ()
    return {name for part in parts for name in _followed(part)}


def _shipped_recipe(run: Run) -> Run | None:
    """The recipe as it is written, if it is one of ours; code of somebody's own is not run only to print a heading."""
    from gridmill import recipes

    return recipes.build(run.recipe) if run.recipe in recipes.names() else None


def _file_name(recipe: str) -> str:
    stem = Path(recipe.split(":")[0]).stem.split(".")[-1]
    return re.sub(r"[^A-Za-z0-9._-]", "-", recipe.split(":")[-1] if ":" in recipe else stem) or "run"


def _put_aside(folder: Path) -> None:
    """Never deletes: the old folder keeps everything under another name."""
    number = 1
    while (aside := folder.with_name(f"{folder.name}.before-{number}")).exists():
        number += 1
    folder.rename(aside)


@functools.cache
def _commit() -> str:
    """The commit of the source the package runs from, if it has one."""
    here = Path(__file__).parent
    try:
        done = subprocess.run(["git", "rev-parse", "HEAD"], cwd=here, capture_output=True, text=True, timeout=10)
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""
