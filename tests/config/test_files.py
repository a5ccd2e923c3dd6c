"""Files are there whole or not at all."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from gridmill.config import files
from gridmill.config.files import sweep_unfinished, write_whole


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
    with pytest.raises(OSError, match="No space left on device"):
        write_whole(path, b"new")
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["record.json"]


def test_what_a_killed_process_was_writing_is_swept_and_nothing_else(tmp_path: Path) -> None:
    gone = subprocess.run([sys.executable, "-c", "import os; print(os.getpid())"], capture_output=True, text=True)
    names = [f"run.json.{int(gone.stdout)}.tmp", f"run.json.{os.getpid()}.tmp", "mine.tmp", "run.json", "a.7x.tmp"]
    for name in names:
        (tmp_path / name).write_text("half")
    (tmp_path / "b.1.tmp").mkdir()
    sweep_unfinished(tmp_path)
    assert sorted(os.listdir(tmp_path)) == sorted([*names[1:], "b.1.tmp"])
    sweep_unfinished(tmp_path / "missing")
