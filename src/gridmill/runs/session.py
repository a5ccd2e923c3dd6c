"""How a run begins: new, from a checkpoint, or whichever it is; all that is refused before the first epoch.

    runs/<name>/  run.json  metrics.jsonl  log.txt  report.html  checkpoints/  traces/  dump/

The loop itself is in `loop.py`. Exit codes: 0 done, 3 checkpoints cannot be written, 4 non-finite values, 5 stopped by
the guard, 129 the terminal was closed, 130 Ctrl-C, 143 SIGTERM.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from gridmill.config import flatten, user_code
from gridmill.config.text import harmless
from gridmill.policy import checkpoint, initial, record, usable
from gridmill.run import Run
from gridmill.runs import beginning, ending, group, overrides, place
from gridmill.runs.epoch import Callback, Epochs, Result, go_through, refuse_others
from gridmill.runs.group import follow
from gridmill.runs.heading import Origin
from gridmill.runs.loop import Loop, Session, is_judged
from gridmill.runs.trackers import refuse_missing
from gridmill.sizing import for_ranks, refuse_unfit
from gridmill.train.ranks import launched
from gridmill.train.trainer import Trainer, refuse_deadly

WIDE = 1024  # networks as wide as this are told of before they are made
LENGTH = "trainer.total_timesteps"
SECONDS = 4  # that one of this width may take; the time grows with its third power


def train(
    run: Run,
    runs_dir: Path | str = "runs",
    panel: bool | None = None,
    fresh: bool = False,
    recipe: Run | Origin | None = None,
    callbacks: Sequence[Callback] = (),
) -> Result:
    """Train from the beginning. A folder of that name with checkpoints is refused, or with `fresh` renamed.

    `recipe` is the recipe's original run, alone or with its preset, for the heading of the log, which lists what
    differs. `callbacks` are called
    after every epoch with an `Epoch`; if one raises, the run is saved and ends. In a process that torchrun started
    beside others, rank 0 does all this, callbacks included, and the others do what it tells them.
    """
    refuse_others(callbacks)
    return go_through(epochs(run, runs_dir, panel, fresh, recipe), callbacks)


def resume(
    path: Path | str,
    changes: Sequence[str] = (),
    panel: bool | None = None,
    code: Sequence[str] = (),
    callbacks: Sequence[Callback] = (),
) -> Result:
    """Continue from the newest intact checkpoint of a run; settings that the saved state depends on cannot change.

    Custom code that the run names is loaded only if it is in `code`, or in the changes. `callbacks` as in `train`.
    """
    refuse_others(callbacks)
    return go_through(resume_epochs(path, changes, panel, code), callbacks)


def epochs(
    run: Run,
    runs_dir: Path | str = "runs",
    panel: bool | None = None,
    fresh: bool = False,
    recipe: Run | Origin | None = None,
) -> Epochs:
    """Like `train`, but as a loop of the caller: `for epoch in epochs(run)`."""
    return Epochs(_from_the_beginning(run, Path(runs_dir), panel, fresh, recipe))


def resume_epochs(
    path: Path | str, changes: Sequence[str] = (), panel: bool | None = None, code: Sequence[str] = ()
) -> Epochs:
    """Like `resume`, but as a loop of the caller; a finished run has no epochs left."""
    return Epochs(_from_a_checkpoint(Path(path), changes, panel, code))


def _from_the_beginning(run: Run, runs_dir: Path, panel: bool | None, fresh: bool, recipe: Run | Origin | None) -> Loop:
    rank, count = launched()
    if rank:
        return follow()
    user_code.take(user_code.named_in(run.tree()))  # whoever made the run named it
    run = for_ranks(run, count)
    refuse_unfit(run)  # before anything is made
    refuse_deadly(run)
    start = beginning.init_from(run)
    refuse_missing(run)
    folder, lock = place.begin(runs_dir, run.run, run.recipe, fresh)
    if run.policy.hidden >= WIDE:
        with contextlib.suppress(OSError):  # nobody may be there to read it
            seconds = max(1, round(SECONDS * (run.policy.hidden / WIDE) ** 3))
            said = f"policy.hidden = {run.policy.hidden}: drawing the initial weights may take {seconds} s"
            print(f"{said}, the first epoch longer", flush=True)
    run = run.replace("run", folder.name)
    with contextlib.ExitStack() as held:
        try:
            ranks = held.enter_context(group.led(run))
            trainer = Trainer(run, folder, ranks)  # refuses what does not fit into memory
        except BaseException:
            place.give_up(folder, lock)
            raise
        held.callback(lock.close)
        if place.is_occupied(folder):
            try:
                lock = place.put_aside(folder, lock)
            except BaseException:
                trainer.close()
                raise
            held.callback(lock.close)
        session = _session(trainer, folder, panel, lock, start=start, recipe=recipe)
        del start
        return (yield from session.go())


def _from_a_checkpoint(path: Path, changes: Sequence[str], panel: bool | None, code: Sequence[str]) -> Loop:
    if launched()[0]:
        return follow()
    user_code.take(code)
    try:
        whole = checkpoint.find(path)
    except checkpoint.CheckpointError:
        if place.is_being_written(path):
            raise RuntimeError(f"`{path}` is being trained by another process") from None
        raise
    folder = whole.parent.parent
    if whole.parent.name != "checkpoints":  # what lies around it is not a run's
        raise ValueError(f"expected a run or RUN/checkpoints/{whole.name}, got `{path}`")
    place.refuse_foreign(folder)
    lock = place.Lock(folder)
    try:
        place.sweep(folder)
        return (yield from _resumed(path, whole, changes, panel, lock))
    finally:
        lock.close()


def _resumed(path: Path, whole: Path, changes: Sequence[str], panel: bool | None, lock: place.Lock) -> Loop:
    skipped = list[str]()
    if whole.resolve() == path.resolve():  # one checkpoint was named
        found = checkpoint.load(whole)
    else:
        found, skipped = checkpoint.newest(path)
    tree, folder = Run.upgraded(record.run(found)), found.path.parent.parent
    with user_code.from_a_file(tree, folder):
        saved = Run.load(tree)
    run = overrides.apply(saved, list(changes))
    known = user_code.named_in(saved.tree())
    user_code.take(text for text in user_code.named_in(run.tree()) if text not in known)  # somebody typed it
    if (done := _finished(found, run)) is not None:
        _refuse_idle(found, done.agent_steps, saved, run)
        print(harmless(ending.finished(done.folder, found.record["last"], run.trainer.total_timesteps)), flush=True)
        group.dismiss()
        return done
    run = for_ranks(run, launched()[1])
    refuse_unfit(run)
    kept = beginning.still_true(found, saved, run)
    with group.led(run) as ranks:
        # Players that the file names are made here; all weights are in the checkpoint.
        with user_code.from_a_file(None, folder), initial.left_out():
            trainer = Trainer(run, folder, ranks)
        session = _session(trainer, folder, panel, lock, kept, skipped)
        del found, kept  # what they hold is the trainer's now, and worlds can be large
        return (yield from session.go())


def begin_or_resume(
    run: Run,
    changes: Sequence[str] = (),
    runs_dir: Path | str = "runs",
    recipe: Run | Origin | None = None,
    code: Sequence[str] = (),
) -> Result:
    """Resume the run of this name, with these changes, if it has a checkpoint; else begin it.

    A folder in which nothing was saved yet is renamed. For jobs that are started again whenever they are stopped.
    """
    if launched()[0]:
        return follow()
    if not run.run:
        raise ValueError("--or-resume: expected run=NAME, by which the run is found again, got none")
    folder = Path(runs_dir) / run.run
    if place.has_checkpoint(folder):
        return resume(folder, [change for change in changes if not change.startswith("run=")], code=code)
    return train(run, runs_dir, fresh=True, recipe=recipe)


def _finished(found: checkpoint.Checkpoint, run: Run) -> Result | None:
    """Of a run that has nothing left to do, what came out."""
    folder, last, seconds = found.path.parent.parent, found.record.get("last"), found.record.get("seconds")
    if not isinstance(last, dict):
        return None
    steps = last.get("agent_steps")
    if not isinstance(steps, int) or not isinstance(seconds, int | float) or steps < run.trainer.total_timesteps:
        return None
    if _unjudged(run, folder, found.epoch):
        return None
    return Result(folder, steps, found.epoch, last.get("score_recent"), float(seconds), 0)


def _refuse_idle(found: checkpoint.Checkpoint, steps: int, saved: Run, run: Run) -> None:
    """ValueError if settings of a finished run were changed: those that never can be as elsewhere, and the others, for
    there are no steps left in which they would do something.
    """
    before, after = flatten(saved.tree()), flatten(run.tree())
    changed = [path for path in {**before, **after} if before.get(path) != after.get(path) and path != LENGTH]
    if not changed:
        return
    usable.refuse_mismatch(found.record, run, None)
    refuse_unfit(run)
    longer = f"{LENGTH}={2 * steps}"
    raise ValueError(
        f"`{found.path.parent.parent}` is finished: expected no settings, or more steps, such as {longer}, "
        f"got {', '.join(changed[:3])}{', ...' if len(changed) > 3 else ''}"
    )


def _unjudged(run: Run, folder: Path, epoch: int) -> bool:
    """Whether a run's last checkpoint still has to be evaluated."""
    wanted = run.evaluation.enabled and run.evaluation.final_seconds > 0
    return wanted and not is_judged(folder, epoch)


def _session(trainer: Trainer, *rest: Any, **more: Any) -> Session:
    """The session of a trainer, which ends if there can be none."""
    try:
        return Session(trainer, *rest, **more)
    except BaseException:
        trainer.close()
        raise
