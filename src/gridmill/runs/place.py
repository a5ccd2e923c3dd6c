"""The folder of a run: one writer at a time, whatever the folder is called, and nobody's files in it but the run's.

The lock is the system's, on the folder itself: it goes with the folder when that is renamed, needs no file that could
be unwritable, and ends with its process, however that ends.
"""

from __future__ import annotations

import fcntl
import itertools
import os
import re
import time
from contextlib import suppress
from datetime import datetime
from pathlib import Path

from gridmill.config.files import kind_of, open_plain, refuse_shared, sweep_unfinished
from gridmill.config.install import command
from gridmill.runs import ending

ADDED_TO = ("log.txt", "metrics.jsonl")  # files that are written on, not anew
FILES = (*ADDED_TO, "run.json", "report.html", "baselines.json", "curriculum.json")
FOLDERS = ("checkpoints", "replays", "traces", "dump", "tensorboard", "wandb")
LOCK = "lock"  # the file that is locked where folders cannot be, such as on NFS
PATIENCE = 1.0  # seconds: whoever looks whether a run is alive holds its lock for a moment


class Lock:
    """This process is the only writer of a run's folder, or one of those that share a sweep's, until `close`.
    RuntimeError if another is the only one.
    """

    def __init__(self, folder: Path, made: bool = False, shared: bool = False) -> None:
        self.made = made  # whether the folder is new
        how = fcntl.LOCK_SH if shared else fcntl.LOCK_EX
        until = time.monotonic() + PATIENCE
        while True:
            missing = None
            try:
                self._handles = _locked(folder, how, make=True)
                if self.is_of(folder):
                    return
                self.close()  # whoever had it has put the folder aside: what lies there now is another
            except FileNotFoundError as reason:  # it is about to
                missing = reason
            except BlockingIOError:
                pass
            if time.monotonic() > until:
                raise missing or RuntimeError(f"`{folder}` is being trained by another process")
            time.sleep(0.05)

    def is_of(self, folder: Path) -> bool:
        """Whether what lies at a path is still what was locked: not removed, renamed or replaced by another. A disk
        that does not answer changes nothing.
        """
        try:
            there = os.stat(folder)
        except (FileNotFoundError, NotADirectoryError):
            return False
        except OSError:
            return True
        return not self._handles or os.path.samestat(there, os.fstat(self._handles[0]))

    def close(self) -> None:
        while self._handles:
            os.close(self._handles.pop())


def is_being_written(folder: Path, shared: bool = False) -> bool:
    """True while a process lives that has the lock of a folder, be it alone or, if asked for, a shared one."""
    try:
        handles = _locked(folder, fcntl.LOCK_EX if shared else fcntl.LOCK_SH, make=False)
    except BlockingIOError:
        return True
    except OSError:
        return False
    for handle in handles:
        os.close(handle)
    return False


def _locked(folder: Path, how: int, make: bool) -> list[int]:
    """What holds the lock; BlockingIOError if another process does."""
    handles = [os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)]
    try:
        try:
            fcntl.flock(handles[0], how | fcntl.LOCK_NB)
        except BlockingIOError:
            raise
        except OSError:
            if make or kind_of(folder / LOCK):
                handles.append(open_plain(folder / LOCK, os.O_RDWR | (os.O_CREAT if make else 0)))
                _lock_file(handles[1], how)
    except BaseException:
        for handle in handles:
            os.close(handle)
        raise
    return handles


def _lock_file(handle: int, how: int) -> None:
    try:
        fcntl.flock(handle, how | fcntl.LOCK_NB)
    except BlockingIOError:
        raise
    except OSError:  # no locks at all: nobody can be kept out
        pass


def begin(runs_dir: Path, name: str, recipe: str, fresh: bool) -> tuple[Path, Lock]:
    """The folder of a new run, locked: of that name, or of recipe and time. One with a run in it is refused, or kept
    for `put_aside` if that is wanted.
    """
    if runs_dir.exists() and not runs_dir.is_dir():
        raise ValueError(f"expected a folder for runs, got {kind_of(runs_dir)}: `{runs_dir}`; --runs-dir names another")
    if name:
        folder = runs_dir / name
        made = not kind_of(folder)
        if not made and not folder.is_dir():
            raise ValueError(f"expected a folder or nothing at `{folder}`, got {kind_of(folder)}; use another run=")
        folder.mkdir(parents=True, exist_ok=True)
    else:
        folder, made = _made(runs_dir, name_of(recipe)), True
    lock = Lock(folder, made)
    if not fresh:
        try:
            refuse_occupied(folder)
        except ValueError:
            lock.close()
            raise
    return folder, lock


def is_occupied(folder: Path) -> bool:
    return folder.is_dir() and any(path.name != LOCK for path in folder.iterdir())


def has_checkpoint(folder: Path) -> bool:
    """Whether a run has one that was written to its end, as far as names tell."""
    return any(re.fullmatch(r"epoch-\d{8,15}(\.old)?", path.name) for path in (folder / "checkpoints").glob("epoch-*"))


def refuse_occupied(folder: Path) -> None:
    """ValueError if a run is there already."""
    if is_occupied(folder):
        said = f"`{folder}` exists; resume it: {command('resume', ending.word(folder))} - or start over: --fresh"
        if not has_checkpoint(folder):  # stopped before its first
            said = f"`{folder}` exists, without a checkpoint to resume from; start over: --fresh"
        raise ValueError(said)


def give_up(folder: Path, lock: Lock) -> None:
    """The run does not begin: its folder is as if nobody had asked."""
    if lock.made:
        with suppress(OSError):
            (folder / LOCK).unlink(missing_ok=True)
            folder.rmdir()
    lock.close()


def put_aside(folder: Path, lock: Lock) -> Lock:
    """Make room for a new run; nothing is deleted, the old folder keeps everything under another name."""
    for number in itertools.count(1):
        aside = folder.with_name(f"{folder.name}.before-{number}")
        if not kind_of(aside):
            break
    folder.rename(aside)
    folder.mkdir()  # FileExistsError: somebody was faster
    lock.close()
    return Lock(folder)


def _made(runs_dir: Path, name: str) -> Path:
    """A new folder of that name, or with a number behind it: several runs may begin in one second."""
    runs_dir.mkdir(parents=True, exist_ok=True)
    for number in itertools.count(1):
        folder = runs_dir / (name if number == 1 else f"{name}-{number}")
        with suppress(FileExistsError):
            folder.mkdir()
            return folder
    raise AssertionError


def name_of(recipe: str) -> str:
    """What a run without a name is called: by its recipe and the time."""
    stem = Path(recipe.split(":")[0]).stem.split(".")[-1]
    word = re.sub(r"[^A-Za-z0-9._-]", "-", recipe.split(":")[-1] if ":" in recipe else stem) or "run"
    return f"{word}-{datetime.now():%Y%m%d-%H%M%S}"


def refuse_foreign(folder: Path) -> None:
    """ValueError if something in a run's folder is not the run's own: a link to elsewhere, a pipe, a device."""
    for names, wanted in ((FILES, "a plain file"), (FOLDERS, "a folder")):
        for name in names:
            if (kind := kind_of(folder / name)) not in ("", wanted):
                raise ValueError(f"expected {wanted} of the run itself, got {kind}: `{folder / name}`")
    for name in ADDED_TO:
        refuse_shared(folder / name, "run")


def sweep(folder: Path) -> None:
    """Remove what a killed run, or its evaluation, was writing; checkpoints are swept when the next one is saved."""
    for part in (folder, folder / "replays"):
        sweep_unfinished(part)
