"""Lines: files of whole lines that outlive crashes and full disks; what metrics.jsonl and log.txt are written with.

A line goes to the system at once, so a killed process loses nothing; what the disk does not take waits in memory and
is tried again with the next line, and a line half written is taken back. Reading takes whole lines only.
"""

from __future__ import annotations

import errno
import json
import os
import re
from collections import deque
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from gridmill.config.files import kind_of, open_plain, read_plain

MOST_WAITING = 10_000
TAIL = 262_144
MOST_LOOKED = 64 << 20  # bytes of a file that are looked at, the last ones; an epoch has some 2 kB
MOST_LINES = 100_000  # of them
MOST_READ = 8 << 20  # bytes of lines that are read as JSON
MOST_RECORDS = 20_000  # lines that are
MOST_LINE = 1 << 20  # bytes of a line that can be one of ours
BLOCK = 256  # lines that are read with one call, which takes longer than what most lines need
EPOCH = re.compile(rb'\{"epoch": (\d{1,15}),')  # how a line of ours begins


class Lines:
    """One file, open for appending."""

    def __init__(self, path: Path, append: bool) -> None:
        self.path = path
        self.missed = 0  # writes that failed
        self.is_hidden = False  # whether the file is no longer at the path, so that nobody can read what is written
        self._append = append
        self._waiting: deque[bytes] = deque(maxlen=MOST_WAITING)
        self._file: int | None = None
        self.flush()

    def write(self, line: str) -> str | None:
        """Append a line after all that wait; the reason if that failed."""
        self._waiting.append(line.encode("utf-8", "backslashreplace") + b"\n")
        return self.flush()

    def flush(self) -> str | None:
        """Append all that waits; the reason if that failed."""
        try:
            if self._file is None:
                self._file = self._open()
            while self._waiting:
                _append(self._file, self._waiting[0])
                self._waiting.popleft()
        except OSError as reason:
            self.missed += 1
            return reason.strerror or str(reason)
        return None

    def reopen(self) -> bool:
        """Continue at the path if the file is no longer there: one that was removed or renamed is written anew, with
        all it had; one that was replaced by another is appended to. Whether there was a need; OSError if it cannot be
        done, because what lies there now is not the run's own.
        """
        if self._file is None:
            return False
        old, kind = self._file, kind_of(self.path)
        self.is_hidden = False
        if kind and os.path.samestat(os.lstat(self.path), os.fstat(old)):
            return False
        self.is_hidden = True
        new = open_plain(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND)
        try:
            _go_on(new, old)
        except OSError:
            if not kind:
                self.path.unlink(missing_ok=True)
            os.close(new)
            raise
        os.close(old)
        self._file, self.is_hidden = new, False
        return True

    @property
    def waiting(self) -> int:
        """Lines the disk has not taken yet."""
        return len(self._waiting)

    def close(self) -> None:
        """Try once more, then let go."""
        self.flush()
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def _open(self) -> int:
        file = open_plain(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND)
        try:
            os.ftruncate(file, _whole(file) if self._append else 0)
        except BaseException:
            os.close(file)
            raise
        self._append = True  # what lies there from now on is ours
        return file


def read_records(path: Path, tail: bool = False, having: str = "") -> list[dict[str, Any]]:
    """The JSON objects of a file, one a line, with `tail` only the last ones; torn and foreign lines are left out.

    Of a large file every n-th line is read, the newest among them. `having` is a key: only of lines that have it.
    """
    most = TAIL if tail else MOST_LOOKED
    try:
        data = read_plain(path, most, tail=True)
    except OSError:
        return []
    lines = data.rsplit(b"\n", MOST_LINES + 1)
    first_is_cut = len(data) >= most or len(lines) > MOST_LINES + 1
    whole = lines[first_is_cut:-1]  # what follows the last line end is torn
    key = having.encode()
    ours = [line for line in whole if len(line) < MOST_LINE and key in line]
    step = max(1, -(-len(ours) // MOST_RECORDS), -(-sum(map(len, ours)) // MOST_READ))
    chosen = ours[::-step][::-1]
    return [record for at in range(0, len(chosen), BLOCK) for record in _objects(chosen[at : at + BLOCK])]


def is_read_whole(path: Path) -> bool:
    """Whether `read_records` reads every line."""
    try:
        data = read_plain(path, MOST_READ)
    except OSError:
        return not kind_of(path)
    return data.count(b"\n") <= MOST_RECORDS


def _objects(lines: Sequence[bytes]) -> list[dict[str, Any]]:
    """The objects in some lines: read at once, or one by one if there is something else among them."""
    try:
        found = json.loads(b"[" + b",".join(lines) + b"]")
        if len(found) == len(lines):
            return [record for record in found if isinstance(record, dict)]
    except (ValueError, RecursionError):
        pass
    if len(lines) == 1:
        return []
    return [record for line in lines for record in _objects([line])]


def cut_after(path: Path, epoch: int) -> list[str]:
    """Take away what a resumed run will do again: all lines from the first of a later epoch on.

    Lines of earlier epochs behind it (an evaluation that came late) are given back, to be appended again. Needs no
    room on the disk. Looks at as much of the file as is ever looked at.
    """
    late: list[str] = []
    try:
        with os.fdopen(open_plain(path, os.O_RDWR), "r+b") as file:
            start = size = file.seek(_first_read(file.fileno()))
            while line := file.readline(MOST_LINE):
                if len(line) == MOST_LINE:  # no line of ours, and no end of it in sight
                    break
                is_later = _epoch(line) > epoch
                if start == size and not is_later:
                    start += len(line)
                elif not is_later and line.endswith(b"\n"):
                    late.append(line.decode("utf-8", "replace").rstrip("\n"))
                size += len(line)
            file.truncate(start)
    except FileNotFoundError:
        return []
    return late


def _first_read(file: int) -> int:
    """Where the last MOST_LINES whole lines of a file begin, or those in its last MOST_LOOKED bytes."""
    size = end = first = os.fstat(file).st_size
    lines = 0
    while end > max(0, size - MOST_LOOKED):
        begin = max(0, end - TAIL)
        block = os.pread(file, end - begin, begin)
        found = block.count(b"\n")
        if lines + found > MOST_LINES:
            return end - len(block.split(b"\n", lines + found - MOST_LINES)[-1])
        if found:
            first = begin + block.index(b"\n") + 1
        lines, end = lines + found, begin
    return first if end and lines else 0  # a file of no lines is no file of ours: from its start


def _epoch(line: bytes) -> float:
    """The epoch a line speaks of; a torn line counts as later than all."""
    if line.endswith(b"}\n"):
        if b'"epoch"' not in line:  # of none: nothing to read
            return float("-inf")
        if found := EPOCH.match(line):
            return int(found[1])
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        return float("inf")
    epoch = record.get("epoch") if isinstance(record, dict) else None
    return epoch if isinstance(epoch, int | float) else float("-inf")


def _append(file: int, line: bytes) -> None:
    end = os.fstat(file).st_size
    done = 0
    try:
        while done < len(line):
            done += os.write(file, line[done:])
    except OSError:
        if done:  # half a line is worse than none
            os.ftruncate(file, end)
        raise


def _go_on(new: int, old: int) -> None:
    """Make a file ready for the next line: an empty one is given what the old one has, another is kept as it is."""
    state = os.fstat(new)
    if state.st_nlink != 1:
        raise OSError(
            errno.EMLINK, f"expected a file that belongs only to the run, got one with {state.st_nlink} names"
        )
    if state.st_size:
        if os.pread(new, 1, state.st_size - 1) != b"\n":
            os.write(new, b"\n")
        return
    at = 0
    try:
        while block := os.pread(old, TAIL, at):
            at += os.write(new, block)
    except OSError:
        os.ftruncate(new, 0)  # half of it would pass for all of it
        raise


def _whole(file: int) -> int:
    """Bytes up to the end of the last whole line; all of them, if there is none as far as lines are looked for."""
    size = end = os.fstat(file).st_size
    while end > max(0, size - MOST_LINE):
        start = max(0, end - TAIL)
        found = os.pread(file, end - start, start).rfind(b"\n")
        if found >= 0:
            return start + found + 1
        end = start
    return size if end else 0
