"""The n-th file operation of a save fails, for every n; and the power goes away after the n-th, for every n.

A shim stands before the functions of `os` that change the disk. It counts calls, makes one of them fail, and for power
loss remembers what was not yet synced, to take it back.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from checkpoints import assert_whole, names, save_epoch, state_of
from random_games import attempt
from tiny import tiny

from gridmill.policy import checkpoint, saver
from gridmill.policy.checkpoint import NotSaved
from gridmill.policy.saver import Saver
from gridmill.runs import train

pytestmark = pytest.mark.R2

OPERATIONS = ("mkdir", "open", "write", "fsync", "close", "rename", "unlink", "rmdir", "listdir", "scandir")
FAULTS = ("ENOSPC", "EIO", "EACCES", "short write", "lost write")
OLD, NEW = 7, 8
Call = Callable[..., Any]


@pytest.fixture(autouse=True)
def _no_waiting_for_the_real_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    """What fsync promises is modelled by the shim; the disk under the test need not be asked a thousand times."""
    monkeypatch.setattr(os, "fsync", lambda handle: None)


class PowerLoss(BaseException):
    """Nothing of the process goes on after it, no cleaning up either."""


class Disk:
    """Counts operations; the chosen one goes wrong in the chosen way."""

    def __init__(self, chosen: int, fault: str, lasting: bool = False) -> None:
        self.chosen, self.fault, self.lasting = chosen, fault, lasting
        self.count, self.happened = 0, ""  # the operation that went wrong
        self.unsynced: dict[tuple[int, int], bool] = {}  # (device, inode) of files whose bytes may be lost
        self.entries: list[tuple[Path, Path]] = []  # (directory, name) of files that may be lost
        self.renames: list[tuple[Path, Path]] = []  # that may be undone

    def call(self, name: str, real: Call, *args: Any, **options: Any) -> Any:
        self.count += 1
        if self.count == self.chosen or (self.lasting and self.happened):
            self.happened = name
            if self.fault == "power":
                raise PowerLoss
            if self.fault in ("short write", "lost write"):
                if name != "write":
                    return real(*args, **options)
                written = real(args[0], args[1][: len(args[1]) // 2])
                return written if self.fault == "short write" else len(args[1])
            if name == "close":
                real(*args, **options)  # a close that fails has closed
            raise OSError(getattr(errno, self.fault), os.strerror(getattr(errno, self.fault)))
        result = real(*args, **options)
        self.remember(name, args, result)
        return result

    def remember(self, name: str, args: tuple[Any, ...], result: Any) -> None:
        if name == "open" and args[1] & os.O_CREAT:
            self.entries.append((Path(args[0]).parent, Path(args[0])))
        elif name == "write":
            self.unsynced[identity(args[0])] = True
        elif name == "fsync":
            self.unsynced.pop(identity(args[0]), None)
            synced = Path(os.readlink(f"/proc/self/fd/{args[0]}"))
            self.entries = [entry for entry in self.entries if entry[0] != synced]
            self.renames = [pair for pair in self.renames if pair[1].parent != synced]
        elif name == "rename":
            source, target = Path(args[0]), Path(args[1])
            self.renames.append((source, target))
            self.entries = [
                (target, target / file.name) if folder == source else (folder, file) for folder, file in self.entries
            ]

    def lose_what_is_not_synced(self, folder: Path, undo_renames: bool) -> None:
        for _, file in self.entries:
            file.unlink(missing_ok=True)
        for file in folder.rglob("*"):
            if identity(file) in self.unsynced:
                os.truncate(file, file.stat().st_size // 2)
        for source, target in reversed(self.renames) if undo_renames else ():
            if target.exists() and not source.exists():
                target.rename(source)


def identity(file: Any) -> tuple[int, int]:
    status = os.stat(file)
    return status.st_dev, status.st_ino


@contextmanager
def standing_before_os(disk: Disk) -> Iterator[Disk]:
    with pytest.MonkeyPatch.context() as patch:
        for name in OPERATIONS:
            real = getattr(os, name)
            patch.setattr(os, name, lambda *a, _name=name, _real=real, **o: disk.call(_name, _real, *a, **o))
        yield disk


def prepared(folder: Path) -> Path:
    """Three checkpoints where two are kept, and a stale temporary directory: the next save has much to do."""
    for epoch in range(OLD - 2, OLD + 1):
        save_epoch(folder, epoch, keep=10)
    (folder / "epoch-00000005.tmp").mkdir()
    (folder / "epoch-00000005.tmp" / "run.json").write_bytes(b"half")
    return folder


def operations_of_a_save(folder: Path, epoch: int) -> int:
    prepared(folder)
    with standing_before_os(Disk(0, "none")) as disk:
        save_epoch(folder, epoch, keep=2)
    return disk.count


def assert_no_halves(folder: Path) -> None:
    """Whatever bears a checkpoint's name is one."""
    for name in names(folder):
        if not name.endswith(".tmp"):
            assert_whole(checkpoint.load(folder / name))


def assert_usable(folder: Path, allowed: set[int]) -> int:
    """The newest loads without skipping any, and the next save works and leaves the folder tidy."""
    found, skipped = checkpoint.newest(folder)
    assert skipped == []
    assert found.epoch in allowed
    assert_whole(found)
    save_epoch(folder, NEW + 1, keep=2)
    assert names(folder)[-1] == "epoch-00000009"
    assert len(names(folder)) == 2
    return found.epoch


AGAIN = [
    pytest.param(OLD, fault, marks=[] if fault == "EIO" else pytest.mark.long, id=f"again-{fault}") for fault in FAULTS
]


@pytest.mark.parametrize(
    ("epoch", "fault"), [*(pytest.param(NEW, fault, id=f"new-{fault}") for fault in FAULTS), *AGAIN]
)
def test_every_operation_fails_once(
    tmp_path: Path, fault: str, epoch: int, record_property: Callable[[str, object], None]
) -> None:
    """The n-th file operation of a save fails: what was there loads, training goes on, the next save works."""
    points = operations_of_a_save(tmp_path / "count", epoch)
    missed = 0
    for n in range(1, points + 1):
        folder, notes = prepared(tmp_path / f"{n}"), list[str]()
        saver = Saver(folder, 2, notes.append)
        with standing_before_os(Disk(n, fault)) as disk:
            path = saver.save(epoch, *state_of(epoch))
        assert disk.happened
        assert (path is None) == (len(notes) == 1) == (saver.misses == 1)
        assert path is not None or disk.happened not in ("listdir", "unlink", "rmdir")  # not removing is no miss
        missed += path is None
        assert_no_halves(folder)
        if path is not None:
            assert_whole(checkpoint.load(path))
        assert not (folder / f"epoch-{epoch:08d}.tmp").exists() or fault not in ("short write", "lost write")
        assert_usable(folder, {epoch} if path else {OLD, epoch})
    record_property("figure", f"{points} points, {missed} saves missed and noted, 0 checkpoints lost")
    assert points >= 40
    assert missed == 0 if fault == "short write" else missed >= 4


@pytest.mark.parametrize("fault", ["ENOSPC", "EIO", "EACCES"])
def test_a_disk_that_stays_broken(tmp_path: Path, fault: str) -> None:
    """From the n-th operation on everything fails: after three misses it is NotSaved, and the old one loads."""
    points = operations_of_a_save(tmp_path / "count", NEW)
    for n in range(1, points + 1, 4):
        folder, notes, now = prepared(tmp_path / f"{n}"), list[str](), [0.0]
        saver = Saver(folder, 2, notes.append, lambda now=now: now[0])
        with standing_before_os(Disk(n, fault, lasting=True)):
            while (end := attempt(lambda s=saver: s.save(NEW, *state_of(NEW)), NotSaved)) is None or saver.misses == 0:
                now[0] += 1.0
        assert isinstance(end, NotSaved)
        assert len(notes) == 2
        assert_usable(folder, {OLD, NEW})


@pytest.mark.parametrize("undo_renames", [False, True], ids=["renamed", "undone"])
@pytest.mark.parametrize("epoch", [NEW, OLD], ids=["new", "again"])
def test_power_loss_after_every_operation(
    tmp_path: Path, epoch: int, undo_renames: bool, record_property: Callable[[str, object], None]
) -> None:
    """The power goes at the n-th operation, and what was not synced is lost: a whole checkpoint is there."""
    points = operations_of_a_save(tmp_path / "count", epoch)
    for n in range(1, points + 1):
        folder = prepared(tmp_path / f"{n}")
        disk = Disk(n, "power")
        with pytest.raises(PowerLoss), standing_before_os(disk):
            save_epoch(folder, epoch, keep=2)
        if not undo_renames:
            assert_no_halves(folder)
        disk.lose_what_is_not_synced(folder, undo_renames)
        assert_usable(folder, {OLD, epoch})
    record_property("figure", f"{points} points, 0 checkpoints lost")


def test_a_run_whose_disk_stays_full_ends_with_3(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It goes on after two misses and ends with the third; what was saved before is whole."""
    monkeypatch.setattr(saver, "BACK_OFF", (0.0, 0.0))
    plain = saver.save

    def full(folder: Path, epoch: int, *rest: Any) -> Path:
        if epoch > 2:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return plain(folder, epoch, *rest)

    monkeypatch.setattr(saver, "save", full)
    done = train(tiny(9, run="mine", checkpoint__epochs=1), tmp_path, panel=False)
    assert (done.exit_code, done.epochs) == (3, 5)
    log = (done.folder / "log.txt").read_text()
    assert log.count("could not be saved: No space left on device") == 3
    assert log.splitlines()[-1] == "ended: checkpoints cannot be written"
    assert checkpoint.newest(done.folder)[0].epoch == 2
