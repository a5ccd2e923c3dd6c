"""The session of a run: the loop around `Trainer.epoch` with log, checkpoints, evaluation, signals and its end."""

from __future__ import annotations

import contextlib
import json
import signal
import time
from collections.abc import Generator, Sequence
from pathlib import Path
from typing import Any

import torch

from gridmill.config import did_you_mean, user_code
from gridmill.config.files import write_whole
from gridmill.config.install import command
from gridmill.config.memory import mebibytes
from gridmill.curriculum import record as record_of
from gridmill.env import switches
from gridmill.policy import checkpoint, onednn, record, usable
from gridmill.policy.build import headline
from gridmill.policy.saver import Saver
from gridmill.run import Run
from gridmill.runs import beginning, ending, group, place
from gridmill.runs.core_report import phase_lines, validation_lines
from gridmill.runs.epoch import Epoch, Left, Result
from gridmill.runs.evaluator import Evaluator
from gridmill.runs.group import BROKEN, ENDED, STOPPED
from gridmill.runs.heading import Origin, heading
from gridmill.runs.lines import read_records
from gridmill.runs.log import RunLog
from gridmill.runs.monitor import Monitor
from gridmill.runs.rollout_timing import timing_tree
from gridmill.runs.stop import Stop
from gridmill.runs.traces import Traces
from gridmill.sizing import memory, share_of
from gridmill.train.analysis import analyse
from gridmill.train.guard import Guard, dump, first_not_finite
from gridmill.train.trainer import BrokenNumbers, Trainer

NOT_SAVED = 3  # an exit code; those that all ranks know are in group.py
Loop = Generator[Epoch, None, Result]


def is_judged(folder: Path, epoch: int) -> bool:
    """Whether the checkpoint of an epoch has been evaluated."""
    found = read_records(folder / "metrics.jsonl", having="evaluation")
    return any("evaluation" in record and record.get("epoch") == epoch for record in found)


class Gone(checkpoint.NotSaved):
    """The folder of a run is not there any more, or another is in its place."""


class Session:
    """One run in one process, from its first epoch here to its last line."""

    def __init__(
        self,
        trainer: Trainer,
        folder: Path,
        panel: bool | None,
        lock: place.Lock,
        found: checkpoint.Checkpoint | None = None,
        skipped: Sequence[str] = (),
        start: checkpoint.Checkpoint | None = None,
        recipe: Run | Origin | None = None,
    ) -> None:
        run = trainer.run
        self.run, self.folder, self.trainer = run, folder, trainer
        # As it was loaded: a file that somebody edits meanwhile is not what this session runs.
        self.code = {text: user_code.sha256(text) for text in user_code.named_in(run.tree())}
        notes = [f"skipped: {line}" for line in skipped]
        if start is not None:
            notes.append(f"starts with {start.path}: {beginning.transfer(self.trainer, start)}")
        self.before = 0.0  # seconds of the run before this session
        if found is not None:
            usable.refuse_mismatch(found.record, run, self.trainer.spec)
            usable.refuse_unusable(found, self.trainer.policy.state_dict())
            clock = record.clock(found)
            try:
                self.trainer.restore(found.policy, found.trainer, dict(clock.last))
            except ValueError as error:  # whole, and yet no state that this run could be in
                raise checkpoint.CheckpointError(str(error), found.path) from None
            self.before = clock.seconds
            notes += [f"warning: {line}" for line in usable.changed_code(found, run.tree())]
        group.hand_over(trainer, None if found is None else found.trainer)
        self.began = time.monotonic()
        self.first_steps = self.trainer.agent_steps
        told = headline(trainer.policy, trainer.native)
        lines = heading(run, trainer.env, recipe or beginning.shipped_recipe(run), told)
        epoch = None if found is None else found.epoch
        self.log = RunLog(folder, run, lines, panel, append=found is not None, from_epoch=epoch, lock=lock)
        write_whole(folder / "run.json", json.dumps(self.record(), indent=1).encode())
        if run.trainer.compile != "off":
            notes.append("trainer.compile: the first epochs compile the policy; about 4 minutes for ci on two cores")
        for line in (*notes, *group.lines(trainer)):
            self.log.note(line)
        self.saver = Saver(folder / "checkpoints", run.checkpoint.keep, note=self.log.note)
        self.evaluator = self._evaluator(found) if run.evaluation.enabled else None
        self.guard = Guard(run.guard)
        self.traces = Traces(run.profiler, folder / "traces", trainer.sizes, trainer.env, self.log.note)
        self.saved: Path | None = None if found is None else found.path
        self.saved_at = (self.trainer.epochs, time.monotonic())
        self.saving = 0.0  # seconds since the newest line of metrics
        self.monitor = Monitor(run.monitor.seconds)
        self.signal = 0  # that ends the run
        self.sent = 0  # the newest that came; with other ranks, not yet agreed on
        self.together = trainer.ranks.count > 1  # until the others have left
        self.agreed = False  # that the run ends because the program wants it
        self.asked, self.left = "", False  # why the program wants the run to end, and whether it waits for nothing
        self.metrics: dict[str, Any] = {}  # of the newest epoch
        self.followed = beginning.followed(run.tree())  # metrics, until they were looked for
        self.rollouts = 0.0  # seconds of this session
        self.judged: dict[str, Any] | None = None  # the newest evaluation of this session
        self.validation: Any = None

    def _evaluator(self, found: checkpoint.Checkpoint | None) -> Evaluator:
        """With its clocks where the run is; what was evaluated before a resume is not evaluated again."""
        known = found is not None and is_judged(self.folder, found.epoch)
        return Evaluator(
            self.run, self.folder, self.trainer.epochs, self.before, found.path if found and known else None
        )

    def go(self) -> Loop:
        """The run, epoch by epoch; whoever takes them may end it by an error, and is told how it ended otherwise."""
        code, reason = 0, "finished"
        with Stop(self.stop_for, patient=self.together):
            try:
                while not self.trainer.done and not self.signal and not code and not self.ends:
                    code, reason = self.epoch()
                    if not self.left:  # with other ranks, one more epoch until they know
                        yield from self.shown()
                if self.asked and not code and not self.trainer.done:
                    reason = self.asked
                if self.signal:
                    code, reason = 128 + self.signal, self._stopped_by()
                if code not in (BROKEN, STOPPED) and not self.save_last():
                    code, reason = NOT_SAVED, "the last checkpoint could not be written"
                if not code and self.evaluate_last():
                    code, reason = 128 + self.signal, f"finished; the last evaluation was {self._stopped_by()}"
            except BrokenNumbers as error:
                self.log.note(f"stopped: {error}; {self.dumped()}")
                code, reason = BROKEN, "non-finite values"
            except Gone as error:
                code, reason = NOT_SAVED, str(error)
            except checkpoint.NotSaved as error:
                self.log.note(str(error))
                code, reason = NOT_SAVED, "checkpoints cannot be written"
            except torch.OutOfMemoryError as error:
                share, reason = share_of(self.run, self.trainer.ranks.count), "out of memory"
                plan = memory(share, self.trainer.env)
                need = mebibytes(plan.on_gpu or plan.total)
                raise RuntimeError(
                    f"out of memory ({str(error).splitlines()[0]}); about {need} were expected: lower "
                    f"trainer.max_microbatch (now {self.trainer.sizes.microbatch_size}) or trainer.num_worlds "
                    f"(now {self.trainer.sizes.num_worlds})"
                ) from error
            except BaseException as error:
                reason = f"{type(error).__name__}: {error}"
                if (told := user_code.own_fault(error)) is not None:
                    raise ValueError(told) from error
                raise
            finally:
                self.close(code, reason)
        seconds = self.before + time.monotonic() - self.began
        score = float(self.trainer.recent.mean()) if len(self.trainer.recent) else None
        steps, epochs = self.trainer.agent_steps, self.trainer.epochs
        return Result(self.folder, steps, epochs, score, seconds, code, self.validation)

    def shown(self) -> Generator[Epoch, None, None]:
        """The newest epoch, to whoever goes through the run; if that fails or leaves, what was learned is saved."""
        try:
            yield Epoch(self, dict(self.metrics))
        except Left as left:
            self.left, self.asked = True, f"stopped by the program: {left}"
        except (BrokenNumbers, checkpoint.NotSaved):
            raise
        except BaseException:
            if not self.together:  # the others are in their next epoch
                with contextlib.suppress(BrokenNumbers, checkpoint.NotSaved):
                    self.save(last=True)
            raise

    def stop_for(self, number: int) -> None:
        """A signal came: the run ends after the running update; with other ranks, after the epoch."""
        self.sent = number
        if not self.together:
            self.signal = number

    @property
    def ends(self) -> bool:
        """Whether the run ends here because the program wants it; with other ranks, once they know."""
        return self.agreed if self.together else bool(self.asked)

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
        self.metrics = metrics
        self.refuse_gone()
        for window in self.trainer.full_windows:  # before the epoch: what looks for the newest reads the last lines
            self.log.window(self.trainer.epochs, window.record())
        self.log.epoch(metrics)  # before the checkpoint: whatever one holds, the metrics up to it are there
        signal, due = self.trainer.ranks.agree(self.sent or (ENDED if self.asked else 0), self.due())
        if due:
            self.save()
        self.evaluate(metrics["seconds"])
        timed = self.run.profiler.rollout_timing
        if timed and self.trainer.epochs % timed == 0:
            self.log.note("\n".join(timing_tree(metrics)))
        self.look_for_followed_metrics()
        if self.together:
            self.agreed = signal == ENDED
            self.signal = 0 if self.agreed else signal
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
                self.log.note(f"warning: a schedule follows the metric `{name}`, which no epoch reports{hint}")
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

    def save_last(self) -> bool:
        """The last checkpoint; then all ranks are done."""
        self.refuse_gone()
        t = self.trainer
        there = self.saved is not None and self.saved_at[0] == t.epochs
        _, wanted = t.ranks.agree(0, not there and not t.learner.in_a_row)
        saved = not wanted or self.save(last=True)
        self.together = False
        return saved

    def save(self, last: bool = False) -> bool:
        """Write a checkpoint, unless there is one of this epoch or updates were skipped; False if the disk fails."""
        self.refuse_gone()
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
        if path is not None:
            self.log.saved(path.name)
        self.tell_curriculum()
        self.saving += time.monotonic() - began
        return path is not None

    def refuse_gone(self) -> None:
        """Gone if nothing can be saved any more: a folder made anew would have checkpoints without the run's files."""
        if self.log.is_gone:
            raise Gone(f"`{self.folder}` was removed or replaced during training; nothing more can be saved")

    def tell_curriculum(self) -> None:
        """What is in the pool of tasks now, for the report."""
        if self.trainer.curriculum is not None:
            self.log.curriculum({"epoch": self.trainer.epochs} | record_of(self.trainer.curriculum))

    def dumped(self) -> str:
        """Keep what is needed to see why a run broke, if the disk takes it; where it lies."""
        if self.log.is_gone:
            return "no dump: the run's folder is gone"
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
            "versions": beginning.versions(),
            "commit": beginning.commit(),
            "code": self.code,
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
            self.judged = result
            self.log.evaluation(result["epoch"], steps, result)

    def evaluate_last(self) -> bool:
        """Wait for the evaluation of the last checkpoint; whether a signal cut that short."""
        limit = self.run.evaluation.final_seconds
        if self.evaluator is None or self.saved is None or self.evaluator.has_evaluated(self.saved):
            return False
        if not limit or self.left:
            return False
        self.log.note(f"evaluating {self.saved.name}, for at most {limit:g} s (Ctrl-C skips it)")
        for result in self.evaluator.finish(self.trainer.epochs, self.saved, limit, lambda: self.signal != 0):
            self.evaluated(result)
        return self.signal != 0

    def close(self, code: int, reason: str) -> None:
        self.traces.close()
        self.monitor.close()
        if self.evaluator is not None:
            self.evaluator.close()
        self.tell_curriculum()
        self.tell_of_the_core()
        done = self.trainer.done
        self.trainer.close()
        self.log.close(reason, lambda reported: self.last_lines(reported, done))

    def last_lines(self, reported: bool, done: bool) -> list[str]:
        """Where to look next, if there is something to look at."""
        if self.saved is None or self.log.is_gone:
            return []
        policy = user_code.named_in({"policy": self.run.policy.tree()})
        lines = ending.lines(self.folder, reported, self.judged, policy)
        if done:
            return lines
        words = [ending.word(self.folder), *ending.options(user_code.named_in(self.run.tree()))]
        return [*lines, f"resume with: {command('resume', *words)}"]

    def tell_of_the_core(self) -> None:
        """What its phases took, if they were timed, and what shadow validation found, if it was on."""
        env = self.trainer.env
        try:
            timed, self.validation = env.step_timing_total, env.observation_validation
        except RuntimeError as error:  # a lane is still in flight: something broke in the middle of a rollout
            self.log.note(f"no counts from the core: {error}")
            return
        if timed is not None and timed["steps"]:
            ticks = timed.pop("steps") // env.lanes
            del timed["wall"]  # of lanes: it has in it what the policy did meanwhile
            lines = phase_lines(timed, ticks, self.rollouts)
            self.log.note("\n".join(["core phases during rollouts:", *lines]))
        if self.validation is not None:
            self.log.note("\n".join(validation_lines(self.validation, env.num_worlds)))
