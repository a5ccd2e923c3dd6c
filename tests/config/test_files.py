"""Files are there whole or not at all."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from gridmill.config.files import write_whole


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

    def fail(*arguments: object) -> None:
        if call == "write":
            Path(str(arguments[0])).open("wb").close()  # a full disk: the file is there, its bytes are not
        raise OSError(28, "no space")

    if call == "write":
        monkeypatch.setattr(Path, "write_bytes", fail)
    else:
        monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(OSError, match="no space"):
        write_whole(path, b"new")
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["record.json"]
