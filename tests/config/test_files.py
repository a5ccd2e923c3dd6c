"""Files are there whole or not at all."""

from __future__ import annotations

import os
import socket
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from gridmill.config import files
from gridmill.config.files import refuse_unwritable, sweep_unfinished, write_named, write_whole


def test_a_file_is_made_with_its_folder_and_replaced(tmp_path: Path) -> None:
    path = tmp_path / "a" / "b" / "record.json"
    for data in (b"first", b"second, longer", b""):
        write_whole(path, data)
        assert path.read_bytes() == data
        assert os.listdir(path.parent) == ["record.json"]


@pytest.mark.parametrize("call", ["write", "rename"])
def test_what_was_there_stays_when_it_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str) -> None:
    path = tmp_path / "record.json"
    write_whole(path, b"old")

    def full(unfinished: Path, flags: int) -> int:
        unfinished.touch()  # the file is there, its bytes are not
        return os.open("/dev/full", os.O_WRONLY)

    def fail(*arguments: object) -> None:
        raise OSError(28, "No space left on device")

    if call == "write":
        monkeypatch.setattr(files, "open_plain", full)
    else:
        monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(OSError) as caught:
        write_whole(path, b"new")
    assert str(caught.value) == f"[Errno 28] No space left on device: '{path}'"  # which file it is
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["record.json"]


def test_a_link_is_replaced_in_a_folder_and_followed_where_a_person_names_it(tmp_path: Path) -> None:
    target, link = tmp_path / "target", tmp_path / "link"
    target.write_bytes(b"old")
    link.symlink_to(target)
    write_named(link, b"new")
    assert (link.is_symlink(), target.read_bytes()) == (True, b"new")
    write_whole(link, b"newer")
    assert (link.is_symlink(), link.read_bytes(), target.read_bytes()) == (False, b"newer", b"new")
    link.unlink()
    link.symlink_to(tmp_path / "not there yet")
    write_named(link, b"first")
    assert (tmp_path / "not there yet").read_bytes() == b"first"


@pytest.mark.parametrize("kind", ["pipe", "socket", "device", "folder"])
@pytest.mark.parametrize("write", [write_whole, write_named])
def test_what_is_no_file_is_not_replaced_even_for_root(
    tmp_path: Path, write: Callable[[Path, bytes], None], kind: str
) -> None:
    """`--out /dev/full` had made that a plain file, for every program of the machine."""
    path, link = tmp_path / "there", tmp_path / "link"
    listens = socket.socket(socket.AF_UNIX)
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "socket":
        listens.bind(str(path))
    elif kind == "folder":
        path.mkdir()
    else:
        try:
            os.mknod(path, stat.S_IFCHR | 0o666, os.makedev(1, 3))
        except PermissionError:
            pytest.skip("only root makes devices")
    link.symlink_to(path)
    before = os.lstat(path)
    with pytest.raises(OSError, match=f"expected a plain file, got a {kind}"):
        write(path, b"data")
    if write is write_named:
        with pytest.raises(OSError, match=f"expected a plain file, got a {kind}"):
            write(link, b"data")
    listens.close()
    assert os.path.samestat(before, os.lstat(path))
    assert sorted(os.listdir(tmp_path)) == ["link", "there"]


@pytest.mark.parametrize("name", ["x" * 255, "x" * 246, "\u00fc" * 127, "x" + "\U0001f33e" * 63])
def test_every_name_that_a_file_may_have_can_be_written(tmp_path: Path, name: str) -> None:
    """The unfinished file beside it had a longer one, which was refused after all work was done."""
    refuse_unwritable(tmp_path / name)
    write_whole(tmp_path / name, b"data")
    assert os.listdir(tmp_path) == [name]
    gone = subprocess.run([sys.executable, "-c", "import os; print(os.getpid())"], capture_output=True, text=True)
    left = files._unfinished(tmp_path / name).name.replace(str(os.getpid()), gone.stdout.strip())
    (tmp_path / left).write_text("half")
    sweep_unfinished(tmp_path)
    assert os.listdir(tmp_path) == [name]


def test_what_cannot_be_written_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=f"expected a file to write, got a folder: `{tmp_path}`"):
        refuse_unwritable(tmp_path)
    with pytest.raises(ValueError, match="expected a file to write, got a device: `/dev/null`"):
        refuse_unwritable(Path("/dev/null"))
    with pytest.raises(ValueError, match=r"cannot write `/proc/x\.json`: "):  # where even root makes no file
        refuse_unwritable(Path("/proc/x.json"))
    (tmp_path / "file").write_text("")
    with pytest.raises(ValueError, match="cannot write"):
        refuse_unwritable(tmp_path / "file" / "x.json")
    refuse_unwritable(tmp_path / "new" / "x.json")
    assert not list((tmp_path / "new").iterdir())
    with pytest.raises(ValueError, match=r"cannot write `.*`: File name too long"):
        refuse_unwritable(tmp_path / ("x" * 256))


def test_what_a_killed_process_was_writing_is_swept_and_nothing_else(tmp_path: Path) -> None:
    gone = subprocess.run([sys.executable, "-c", "import os; print(os.getpid())"], capture_output=True, text=True)
    names = [f"run.json.{int(gone.stdout)}.tmp", f"run.json.{os.getpid()}.tmp", "mine.tmp", "run.json", "a.7x.tmp"]
    for name in names:
        (tmp_path / name).write_text("half")
    (tmp_path / "b.1.tmp").mkdir()
    sweep_unfinished(tmp_path)
    assert sorted(os.listdir(tmp_path)) == sorted([*names[1:], "b.1.tmp"])
    sweep_unfinished(tmp_path / "missing")
