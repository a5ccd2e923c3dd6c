"""Files of strangers and files of ours: plain ones are opened and nothing else, and what is written is there whole.

A folder may come from anybody, so what lies in it may be a link to somebody's file, a pipe that never ends or a device.
Nothing here follows a link in the last part of a path, waits for a pipe or reads more than was allowed.
"""

from __future__ import annotations

import errno
import os
import re
import stat
from contextlib import suppress
from pathlib import Path

MOST_NAME = 255  # bytes of a file's name
KINDS = {
    stat.S_IFLNK: "a link",
    stat.S_IFDIR: "a folder",
    stat.S_IFIFO: "a pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}


def kind_of(path: Path) -> str:
    """What lies at a path, a link not followed: "a plain file", "a folder", "a pipe", ...; empty if nothing does."""
    try:
        mode = os.lstat(path).st_mode
    except (FileNotFoundError, NotADirectoryError):
        return ""
    return KINDS.get(stat.S_IFMT(mode), "a plain file")


def open_plain(path: Path, flags: int = os.O_RDONLY) -> int:
    """A descriptor of a plain file; OSError if anything else lies there. A new one is made if the flags say so."""
    _refuse_other(path, kind_of(path))
    handle = os.open(path, flags | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_NOCTTY, 0o666)
    if not stat.S_ISREG(mode := os.fstat(handle).st_mode):  # it was changed meanwhile
        os.close(handle)
        _refuse_other(path, KINDS.get(stat.S_IFMT(mode), "something else"))
    return handle


def _refuse_other(path: Path, kind: str) -> None:
    if kind not in ("", "a plain file"):
        raise OSError(errno.EINVAL, f"expected a plain file, got {kind}", str(path))


def refuse_shared(path: Path, whose: str) -> None:
    """ValueError unless a plain file that has one name, or nothing, lies at a path: what is written on there would
    change somebody's file that a link, or a second name, leads to.
    """
    try:
        state = os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        return
    kind = KINDS.get(stat.S_IFMT(state.st_mode))
    if kind is not None:
        raise ValueError(f"expected a plain file of the {whose} itself, got {kind}: `{path}`")
    if state.st_nlink > 1:
        raise ValueError(
            f"expected a file that belongs only to the {whose}, got one with {state.st_nlink} names: `{path}`"
        )


def read_plain(path: Path, most: int, tail: bool = False) -> bytes:
    """The bytes of a plain file; OSError if there are more than `most`, or with `tail` the last of them."""
    handle = open_plain(path)
    with os.fdopen(handle, "rb") as file:
        size = os.fstat(handle).st_size
        if size > most and not tail:
            raise OSError(errno.EFBIG, f"expected at most {most} bytes, got {size}", str(path))
        file.seek(max(0, size - most))
        return file.read(most)


def write_whole(path: Path, data: bytes) -> None:
    """Written beside its place and renamed: whoever reads sees the old file or the new one. OSError: the old one stays.

    Folders that are missing are made. Processes that write one file at a time each have a name of their own beside it.
    A link is replaced like a file; a pipe or a device, which root could replace too, is refused.
    """
    if (kind := kind_of(path)) != "a link":
        _refuse_other(path, kind)
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = _unfinished(path)
    try:
        unfinished.unlink(missing_ok=True)  # of a process that was killed, or a trap
        with os.fdopen(open_plain(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL), "wb") as file:
            file.write(data)
        os.replace(unfinished, path)
    except OSError as error:  # a full disk does not say which file, and nobody asked for the unfinished one
        raise OSError(error.errno, error.strerror, str(path)) from None
    finally:
        unfinished.unlink(missing_ok=True)  # a full disk needs the room


def _unfinished(path: Path) -> Path:
    """The file beside it that becomes it: its name, or as much of it as leaves room for the rest."""
    end = f".{os.getpid()}.tmp"
    return path.with_name(os.fsencode(path.name)[: MOST_NAME - len(end)].decode(errors="ignore") + end)


def write_named(path: Path, data: bytes) -> None:
    """The same at a path that a person names: there a link is followed."""
    with suppress(FileNotFoundError):
        _refuse_other(path, KINDS.get(stat.S_IFMT(os.stat(path).st_mode), "a plain file"))
    write_whole(Path(os.path.realpath(path)), data)


def refuse_unwritable(path: Path) -> None:
    """ValueError for a file that could not be written, before there is anything to write into it.

    A file is made beside it and removed: permissions alone say too little, root has them in /proc too.
    """
    try:
        if path.exists() and not path.is_file():
            raise ValueError(f"expected a file to write, got {kind_of(path)}: `{path}`")
        path.parent.mkdir(parents=True, exist_ok=True)
        unfinished = _unfinished(path)
        os.close(open_plain(unfinished, os.O_WRONLY | os.O_CREAT))
        unfinished.unlink()
    except OSError as error:
        raise ValueError(f"cannot write `{path}`: {error.strerror or error}") from None


def sweep_unfinished(folder: Path) -> None:
    """Remove what `write_whole` left in a folder when its process was killed; what a living one writes stays."""
    for path in folder.glob("*.tmp"):
        found = re.fullmatch(r".+\.(\d{1,9})\.tmp", path.name)
        if found is not None and kind_of(path) == "a plain file" and not _lives(int(found[1])):
            with suppress(OSError):
                path.unlink()


def _lives(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:  # somebody else's
        return True
    return True
