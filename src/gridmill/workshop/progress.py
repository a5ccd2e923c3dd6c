"""Progress of a long command on stderr, with the time that is left, and how it ends when it is interrupted.

On a terminal one line that is written over; elsewhere a line every half minute. Ctrl-C and SIGTERM end the work, not
the command: it writes what it has. Work in long pieces is ended amid one (`stoppable`), work in short pieces looks
between them (`between_pieces`).
"""

from __future__ import annotations

import os
import signal
import stat
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import TextIO

from gridmill.runs.stop import handling, heard

PAUSE = 30.0  # seconds between lines where nobody watches


def clock(seconds: float) -> str:
    """`1:02:03`, `2:03`."""
    hours, rest = divmod(round(seconds), 3600)
    minutes, seconds_left = divmod(rest, 60)
    return f"{hours}:{minutes:02}:{seconds_left:02}" if hours else f"{minutes}:{seconds_left:02}"


class Progress:
    """Call `step` after each of `total` pieces of work of about the same size; `close` wipes the line."""

    def __init__(self, total: int, what: str, stream: TextIO | None = None) -> None:
        self.total, self.what, self.done = total, what, 0
        self._stream = sys.stderr if stream is None else stream
        self._watched = self._stream.isatty()
        self._began = self._said = time.monotonic()

    def step(self, note: str = "") -> None:
        self.done += 1
        now = time.monotonic()
        if self.done >= self.total or (not self._watched and now - self._said < PAUSE):
            return
        self._said = now
        left = (now - self._began) / self.done * (self.total - self.done)
        text = f"{self.what}: {self.done} of {self.total}, {clock(left)} left{f', {note}' if note else ''}"[:79]
        self._write(f"\r{text:<79}" if self._watched else f"{text}\n")

    def close(self) -> None:
        if self._watched:
            self._write("\r" + " " * 79 + "\r")

    def _write(self, text: str) -> None:
        with suppress(OSError):  # the terminal was closed: what was measured is kept all the same
            self._stream.write(text)
            self._stream.flush()


@contextmanager
def stoppable() -> Iterator[list[str]]:
    """Work that Ctrl-C, SIGTERM or a closed terminal ends early: nothing is raised, the list then says why."""
    reasons: list[str] = []

    def stop(number: int, frame: FrameType | None) -> None:
        _say_no_more(number)
        raise KeyboardInterrupt(signal.Signals(number).name)

    with handling([one for one in heard() if one != signal.SIGINT], stop):
        try:
            yield reasons
        except KeyboardInterrupt as reason:
            reasons.append(f"stopped by {str(reason) or 'SIGINT'}")


@contextmanager
def between_pieces() -> Iterator[list[str]]:
    """Work that looks at the list between its pieces: a signal that ends it is put there, the second one is raised."""
    reasons: list[str] = []

    def stop(number: int, frame: FrameType | None) -> None:
        _say_no_more(number)
        if reasons:
            raise KeyboardInterrupt(signal.Signals(number).name)
        reasons.append(f"stopped by {signal.Signals(number).name}")

    with handling(heard(), stop):
        yield reasons


def _say_no_more(number: int) -> None:
    """Where the terminal was closed, prints go nowhere: they would fail, before what was measured is saved. Shells send
    the signal once more.
    """
    if number != signal.SIGHUP:
        return
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    with open(os.devnull, "w") as nowhere:
        for stream in filter(None, (sys.stdout, sys.stderr)):  # a process without a terminal may have none
            with suppress(OSError, ValueError):
                mode = os.fstat(stream.fileno()).st_mode
                if stat.S_ISCHR(mode) or stat.S_ISFIFO(mode):  # whoever reads a pipe was told, too
                    os.dup2(nowhere.fileno(), stream.fileno())
