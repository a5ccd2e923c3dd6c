"""A player for terminals: the ticks of a replay as coloured text, with keys to pause, step and change speed.

On anything but a terminal it prints the frames one after another. A world larger than the terminal is cut around the
agent that is followed.
"""

from __future__ import annotations

import os
import re
import select
import shutil
import sys
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from typing import Any, TextIO

from gridmill.config.text import ascii_only, harmless, packed
from gridmill.env import Env

HOME, CLEAR_REST, HIDE, SHOW = "\x1b[H", "\x1b[J", "\x1b[?25l", "\x1b[?25h"
COLOURS = {"#": "90", "@": "1;33", ".": "2"}  # of a world's letters; all others get one of LETTERS
LETTERS = ("36", "35", "32", "34", "31", "33")
HELP = "q end, space pause, arrows 1/10 ticks, +- speed"
Play = Callable[[], Generator[Env, None, None]]  # from the beginning


@dataclass
class Watch:
    """Where the player is and what it does."""

    play: Play
    ticks: int
    rate: float
    agent: int = 0
    first: int = 0
    colour: bool = True
    paused: bool = False

    def __post_init__(self) -> None:
        self.tick = self.first
        self._shown = self.play()
        self._at = -1
        self._env: Env | None = None

    def env(self) -> Env:
        """The world at the tick; backwards means to play it again from the beginning."""
        if self._env is None or self._at > self.tick:
            self._shown.close()
            self._shown, self._at = self.play(), -1
        if self._at < self.tick:
            self._env = next(islice(self._shown, self.tick - self._at - 1, None))
            self._at = self.tick
        assert self._env is not None
        return self._env

    def run(self, keys: Iterator[str], out: TextIO, size: Callable[[], tuple[int, int]]) -> None:
        """Until the end or `q`; `keys` gives "" when the time of a frame is over."""
        for key in self._frames(keys, out, size):
            if not self._turn(key):
                break
        self._shown.close()
        self._env = None

    def _frames(self, keys: Iterator[str], out: TextIO, size: Callable[[], tuple[int, int]]) -> Iterator[str]:
        last = ""
        while True:
            columns, rows = size()
            text = self.text(columns, rows)
            if text != last:  # paused, there is nothing new to write
                out.write(HOME + text + CLEAR_REST)
                out.flush()
            last = text
            yield next(keys, "q")

    def text(self, columns: int, rows: int) -> str:
        """The world, cut to the room there is, and a line about the player."""
        lines = harmless(self.env().render(0, "ansi")).splitlines()  # colours come after
        state = "paused" if self.paused else f"{self.rate:g} ticks/s"
        lines = _cut(lines, columns, rows - 2, *self._place())
        shown = [_coloured(line) if self.colour and number > 0 else line for number, line in enumerate(lines)]
        foot = f"tick {self.tick} of {self.ticks - 1}, {state} - {HELP}"
        return "\n".join([*(f"{line}\x1b[K" for line in shown), f"{foot[: columns - 1]}\x1b[K"])

    def _place(self) -> tuple[int, tuple[int, int] | None]:
        """How many rows the map has, and where the agent is that is followed."""
        env: Any = self.env()
        if not env.games[0].has_map:
            return 0, None
        view = env.inspect(0)
        thing = next((thing for thing in view["objects"] if thing["agent"] == self.agent), None)
        return view["height"], None if thing is None else (thing["row"], thing["column"])

    def _turn(self, key: str) -> bool:
        """What a key does; False ends it."""
        step = {"right": 1, "left": -1, "up": 10, "down": -10}.get(key, 0)
        if key == "q":
            return False
        if key == " ":
            self.paused = not self.paused
        elif key in "+-" and key:
            self.rate = min(240.0, max(0.5, self.rate * (2.0 if key == "+" else 0.5)))
        elif step:
            self.paused = True
        elif key == "" and not self.paused:
            step = 1
            if self.tick == self.ticks - 1:
                self.paused = True
        self.tick = min(self.ticks - 1, max(0, self.tick + step))
        return True


def watch(player: Watch, last: int, every: int) -> None:
    """On the terminal of this process, or as plain text if it has none."""
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        for tick in range(player.first, last, every):
            player.tick = tick
            print(ascii_only(player.env().render(0, "ansi")), flush=True)
        return
    with _raw(sys.stdin):
        sys.stdout.write(f"\x1b[2J{HIDE}")
        try:
            player.run(_keys(sys.stdin.fileno(), lambda: 1 / player.rate), sys.stdout, shutil.get_terminal_size)
        finally:
            sys.stdout.write(f"{SHOW}\n")


@contextmanager
def _raw(stream: TextIO) -> Iterator[None]:
    """Keys as they are pressed; the terminal is put back afterwards."""
    import termios
    import tty

    before = termios.tcgetattr(stream)
    try:
        tty.setcbreak(stream)
        yield
    finally:
        termios.tcsetattr(stream, termios.TCSADRAIN, before)


def _keys(descriptor: int, pause: Callable[[], float]) -> Iterator[str]:
    """A key at a time, or "" when a frame's time is over."""
    arrows = {b"\x1b[A": "up", b"\x1b[B": "down", b"\x1b[C": "right", b"\x1b[D": "left"}
    due = time.monotonic() + pause()
    while True:
        ready, _, _ = select.select([descriptor], [], [], max(0.0, due - time.monotonic()))
        if not ready:
            due = time.monotonic() + pause()
            yield ""
            continue
        data = os.read(descriptor, 16)
        if not data:
            return
        if data in arrows:
            yield arrows[data]
        else:
            yield from (letter for letter in data.decode("ascii", "replace") if letter.isprintable())


def _cut(lines: list[str], columns: int, rows: int, height: int, place: tuple[int, int] | None) -> list[str]:
    """A title, the map around a place, and as much of the legend as fits into a quarter of the rows."""
    if place is None or (len(lines) <= rows and max(map(len, lines)) <= columns):
        return [line[:columns] for line in lines[:rows]]
    title, world = lines[0], lines[1 : 1 + height]
    legend = packed("  ".join(lines[1 + height :]).split("  "), columns)[: max(1, rows // 4)]
    tall, wide = max(1, rows - 1 - len(legend)), columns
    top = min(max(0, place[0] - tall // 2), max(0, len(world) - tall))
    left = min(max(0, place[1] - wide // 2), max(0, len(world[0]) - wide))
    shown = [line[left : left + wide] for line in world[top : top + tall]]
    return [title[:columns], *shown, *(line[:columns] for line in legend)]


def _coloured(line: str) -> str:
    """Runs of one letter in one colour; words (the legend, a belt's lines) stay as they are."""
    if " " in line:
        return line
    return re.sub(r"(.)\1*", lambda run: f"\x1b[{_colour(run[1])}m{run[0]}\x1b[0m", line)


def _colour(letter: str) -> str:
    return COLOURS.get(letter) or ("1;33" if letter.isdigit() else LETTERS[ord(letter) % len(LETTERS)])
