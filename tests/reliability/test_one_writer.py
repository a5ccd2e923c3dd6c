"""A run has one writer: a second one is refused by name before anything is moved or changed, however it comes.

The first is a process of its own that trains and is stopped in the middle; it has the lock as long as it lives.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import hashlib
import os
import shutil
import signal
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tiny import difference, tiny
from warm import FORKS

from gridmill.policy import checkpoint
from gridmill.runs import listing, place, resume, train
from gridmill.runs.epoch import Epoch
from gridmill.runs.session import begin_or_resume

pytestmark = pytest.mark.R12

ENDLESS = 1_000_000


def trains(folder: str) -> None:
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    train(tiny(ENDLESS, run=Path(folder).name, checkpoint__epochs=1), Path(folder).parent, panel=False)


@contextlib.contextmanager
def alive(folder: Path) -> Iterator[Any]:
    """A process that trains in a folder, stopped after some epochs."""
    child = FORKS.Process(target=trains, args=(str(folder),))
    child.start()
    try:
        while not (folder / "checkpoints" / "epoch-00000002").exists():
            assert child.is_alive()
            time.sleep(0.01)
        assert child.pid is not None
        os.kill(child.pid, signal.SIGSTOP)
        yield child
    finally:
        child.kill()
        child.join()


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("runs") / "x"
    with alive(folder):
        yield folder


def digest(folder: Path) -> dict[str, str]:
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def by_a_link(live: Path) -> Path:
    other = live.parent / "other"
    if not other.is_symlink():
        other.symlink_to(live)
    return other


SECOND: dict[str, Callable[[Path], Any]] = {
    "train": lambda live: train(tiny(2, run="x"), live.parent, panel=False),
    "train --fresh": lambda live: train(tiny(2, run="x"), live.parent, panel=False, fresh=True),
    "train by a link": lambda live: train(tiny(2, run=by_a_link(live).name), live.parent, panel=False),
    "train --fresh by a link": lambda live: train(
        tiny(2, run=by_a_link(live).name), live.parent, panel=False, fresh=True
    ),
    "resume": lambda live: resume(live, panel=False),
    "resume by a link": lambda live: resume(by_a_link(live), panel=False),
    "resume by another path": lambda live: resume(live / ".." / "x", panel=False),
    "resume from a checkpoint": lambda live: resume(live / "checkpoints" / "epoch-00000001", panel=False),
    "resume from checkpoints/": lambda live: resume(live / "checkpoints", panel=False),
    "resume with changes": lambda live: resume(live, ["trainer.total_timesteps=1024"], panel=False),
}


@pytest.mark.parametrize("second", SECOND)
def test_a_second_writer_is_refused(live: Path, second: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(place, "PATIENCE", 0.0)
    before = digest(live.parent)
    with pytest.raises(RuntimeError, match=r"^`.*` is being trained by another process$"):
        SECOND[second](live)
    assert digest(live.parent) == before
    assert sorted(path.name for path in live.parent.iterdir() if not path.is_symlink()) == ["x"]


def test_a_living_run_is_seen(live: Path) -> None:
    assert {row.name: row.state for row in listing.rows(live.parent)}["x"] == "running"


def test_a_run_that_is_still_without_a_checkpoint_is_not_resumed(tmp_path: Path) -> None:
    """It said that there is none."""
    (tmp_path / "x").mkdir()
    lock = place.Lock(tmp_path / "x")
    with pytest.raises(RuntimeError, match=r"^`.*x` is being trained by another process$"):
        resume(tmp_path / "x", panel=False)
    lock.close()
    with pytest.raises(checkpoint.CheckpointError, match=r"^expected a checkpoint such as epoch-00000012, got none"):
        resume(tmp_path / "x", panel=False)


def test_a_resume_waits_a_moment_for_the_one_before(tmp_path: Path) -> None:
    """Which a job that is started again may still find at its end."""
    folder = train(tiny(1, run="x"), tmp_path, panel=False).folder
    lock = place.Lock(folder)
    threading.Timer(0.3, lock.close).start()
    assert resume(folder, ["trainer.total_timesteps=256"], panel=False).epochs == 2


def test_a_first_checkpoint_that_is_half_written_is_none(tmp_path: Path) -> None:
    """A job that was killed amid it could never start again."""
    (tmp_path / "x" / "checkpoints" / "epoch-00000001.tmp").mkdir(parents=True)
    (tmp_path / "x" / "log.txt").write_text("begun\n")
    assert begin_or_resume(tiny(1, run="x"), [], tmp_path).epochs == 1


@pytest.mark.parametrize("other", [Path.touch, os.mkfifo, lambda path: path.symlink_to("nowhere")])
def test_what_is_no_folder_is_no_place_for_a_run(other: Callable[[Path], None], tmp_path: Path) -> None:
    other(tmp_path / "x")
    with pytest.raises(ValueError, match=r"^expected a folder or nothing at `.*x`, got a .*; use another run="):
        train(tiny(1, run="x"), tmp_path, panel=False)
    if not (tmp_path / "x").is_symlink():
        with pytest.raises(ValueError, match=r"^expected a folder for runs, got a .*; --runs-dir names another"):
            train(tiny(1, run="y"), tmp_path / "x", panel=False)


def test_an_unwritable_log_is_no_open_door(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two runs were mixed where the log could not be locked, because it could not be opened."""
    monkeypatch.setattr(place, "PATIENCE", 0.0)
    folder = train(tiny(2, run="x", checkpoint__epochs=1), tmp_path, panel=False).folder
    (folder / "log.txt").unlink()
    (folder / "log.txt").mkdir()  # nobody can write to it, not even root
    lock = place.Lock(folder)
    with pytest.raises(RuntimeError, match="is being trained"):
        train(tiny(2, run="x"), tmp_path, panel=False, fresh=True)
    lock.close()


def test_the_lock_goes_with_the_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder that is renamed keeps its writer, and its old name is free."""
    monkeypatch.setattr(place, "PATIENCE", 0.0)
    folder = train(tiny(1, run="x"), tmp_path, panel=False).folder
    lock = place.Lock(folder)
    folder.rename(tmp_path / "y")
    with pytest.raises(RuntimeError, match="is being trained"):
        resume(tmp_path / "y", panel=False)
    assert train(tiny(1, run="x"), tmp_path, panel=False).exit_code == 0
    lock.close()
    assert resume(tmp_path / "y", panel=False).exit_code == 0


def test_a_folder_that_is_put_aside_while_its_lock_is_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between opening the folder and locking it: the lock was that of the old folder, under its new name."""
    folder, lock = place.begin(tmp_path, "x", "mine", False)
    (folder / "log.txt").write_text("the old run's\n")
    locks: list[place.Lock] = [lock]
    flock = fcntl.flock

    def slow(handle: int, how: int) -> None:
        monkeypatch.setattr(fcntl, "flock", flock)  # once
        locks[0] = place.put_aside(folder, lock)
        flock(handle, how)

    monkeypatch.setattr(fcntl, "flock", slow)
    monkeypatch.setattr(place, "PATIENCE", 0.2)
    with pytest.raises(RuntimeError, match="is being trained by another process"):
        place.begin(tmp_path, "x", "mine", True)
    assert locks[0].is_of(folder)
    locks[0].close()
    second = place.Lock(folder)
    assert second.is_of(folder)
    second.close()


def test_a_run_that_was_stopped_before_its_first_checkpoint_is_not_offered(tmp_path: Path) -> None:
    folder, lock = place.begin(tmp_path, "x", "mine", False)
    (folder / "log.txt").write_text("")
    lock.close()
    with pytest.raises(ValueError, match=r"exists, without a checkpoint to resume from; start over: --fresh$"):
        train(tiny(1, run="x"), tmp_path, panel=False)
    assert train(tiny(1, run="x"), tmp_path, panel=False, fresh=True).exit_code == 0


def removed(folder: Path) -> None:
    shutil.rmtree(folder)


def renamed(folder: Path) -> None:
    folder.rename(folder.with_name("elsewhere"))


def replaced(folder: Path) -> None:
    shutil.rmtree(folder)
    folder.mkdir()
    (folder / "mine").write_text("somebody else's")


@pytest.mark.parametrize("happens", [removed, renamed, replaced])
@pytest.mark.parametrize("at", [1, 3])  # in the middle, and when only the last checkpoint is left to write
def test_a_run_without_its_folder_ends_and_writes_nowhere(
    happens: Callable[[Path], None], at: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "x"

    def lose(epoch: Epoch) -> None:
        if epoch.number == at:
            happens(folder)

    # In the middle a checkpoint is due after every epoch.
    run = tiny(3, run="x", checkpoint__epochs=1 if at < 3 else 0)
    assert train(run, tmp_path, panel=False, callbacks=[lose]).exit_code == 3
    lines = capsys.readouterr().out.splitlines()
    said = f"`{folder}` was removed or replaced during training; nothing more can be saved"
    assert " ".join(map(str.strip, lines)).endswith(f"ended: {said}")
    assert sum("nothing more can be saved" in line or "could not be saved" in line for line in lines) == 1
    there = [str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if path.is_relative_to(folder)]
    assert sorted(there) == (["x", "x/mine"] if happens is replaced else [])


def test_a_checkpoint_that_a_program_asks_for_is_not_written_elsewhere(tmp_path: Path) -> None:
    def lose(epoch: Epoch) -> None:
        replaced(tmp_path / "x")
        epoch.save()

    assert train(tiny(3, run="x"), tmp_path, panel=False, callbacks=[lose]).exit_code == 3
    assert [path.name for path in (tmp_path / "x").iterdir()] == ["mine"]


def test_a_killed_run_is_free_at_once(tmp_path: Path) -> None:
    with alive(tmp_path / "x") as child:
        child.kill()
        child.join()
        steps = 128 * (2 + max(int(p.name[6:14]) for p in (tmp_path / "x" / "checkpoints").glob("epoch-*")))
        assert resume(tmp_path / "x", [f"trainer.total_timesteps={steps}"], panel=False).exit_code == 0
    whole = train(tiny(steps // 128, run="whole"), tmp_path, panel=False).folder
    assert difference(tmp_path / "x", whole) == 0


def test_runs_without_a_name_have_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of one recipe in one second: each has a folder of its own."""
    begun = [place.begin(tmp_path, "", "some.module:mine", False) for _ in range(3)]
    for _, lock in begun:
        lock.close()
    names = {folder.name for folder, _ in begun}
    assert len(names) == 3
    assert all(name.startswith("mine-") for name in names)


def test_a_run_that_is_refused_leaves_no_folder(tmp_path: Path) -> None:
    with pytest.raises(ValueError):
        train(tiny(1, score="nothing"), tmp_path / "runs", panel=False)
    assert list((tmp_path / "runs").iterdir()) == []
    (tmp_path / "runs" / "x").mkdir()
    with pytest.raises(ValueError):
        train(tiny(1, score="nothing", run="x"), tmp_path / "runs", panel=False)
    assert [path.name for path in (tmp_path / "runs").iterdir()] == ["x"]  # somebody made it
    assert not place.is_being_written(tmp_path / "runs" / "x")


def test_whoever_looks_keeps_nobody_out(tmp_path: Path) -> None:
    """`gridmill runs` asks for the lock for a moment."""
    handle = os.open(tmp_path, os.O_RDONLY)
    fcntl.flock(handle, fcntl.LOCK_SH)
    threading.Timer(0.2, lambda: os.close(handle)).start()
    place.Lock(tmp_path).close()


@pytest.mark.parametrize("files_too", [False, True])
def test_where_folders_cannot_be_locked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, files_too: bool) -> None:
    """As on NFS: a file in the folder is. Without any locks nobody can be kept out, and nobody is."""
    real = fcntl.flock

    def flock(handle: int, how: int) -> None:
        if files_too or os.path.isdir(f"/proc/self/fd/{handle}"):
            raise OSError(errno.EBADF, "Bad file descriptor")
        real(handle, how)

    monkeypatch.setattr(fcntl, "flock", flock)
    monkeypatch.setattr(place, "PATIENCE", 0.0)
    assert not place.is_being_written(tmp_path)
    lock = place.Lock(tmp_path)
    assert place.is_being_written(tmp_path) == (not files_too)
    assert not place.is_occupied(tmp_path)
    if files_too:
        place.Lock(tmp_path).close()
    else:
        with pytest.raises(RuntimeError, match="is being trained"):
            place.Lock(tmp_path)
    lock.close()
    assert not place.is_being_written(tmp_path)
    new, held = place.begin(tmp_path, "new", "ci", fresh=False)
    place.give_up(new, held)
    assert not new.exists()


def test_what_was_there_is_kept(tmp_path: Path) -> None:
    """--fresh puts it aside, once more each time; a name that only leads nowhere is taken too."""
    for number in range(3):
        train(tiny(1, run="x", seed=number), tmp_path, panel=False, fresh=True)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["x", "x.before-1", "x.before-2"]
    (tmp_path / "x.before-3").symlink_to("nowhere")
    train(tiny(1, run="x"), tmp_path, panel=False, fresh=True)
    assert (tmp_path / "x.before-4" / "checkpoints").is_dir()
    shutil.rmtree(tmp_path)
