"""The panel: what it shows at 80 columns, and where plain lines take its place (U3)."""

from __future__ import annotations

import fcntl
import io
import os
import pty
import re
import struct
import subprocess
import sys
import termios
from typing import Any

import pytest
from rich.console import Console

from gridmill.runs.console import Panel, fits_terminal

METRICS: dict[str, Any] = {
    "epoch": 7,
    "agent_steps": 31_200_000,
    "total_timesteps": 50_000_000,
    "seconds": 309.0,
    "eta": 192.0,
    "sps": 104_000.0,
    "sps_mean": 101_000.0,
    "loss/policy": -0.0123,
    "loss/value": 0.31,
    "loss/entropy": 1.92,
    "kl": 0.0041,
    "clip_fraction": 0.041,
    "explained_variance": 0.81,
    "learning_rate": 0.0012,
    "time/rollout": 5.0,
    "time/env": 1.0,
    "time/act": 3.0,
    "time/learn": 5.0,
    "memory/rss": 1.24e9,
    "cpu/util": 0.96,
    "gpu/util": 0.4,
    "last_checkpoint": "epoch-00000006",
}


def shown(epochs: list[dict[str, Any]], note: str = "", width: int = 80, title: str = "a run") -> str:
    """The last picture as text."""
    console = Console(width=width, force_terminal=True, file=io.StringIO())
    panel = Panel(title, "toy 0123456789ab", console)
    for metrics in epochs:
        panel.epoch(metrics)
    if note:
        panel.note(note)
    picture = panel.picture()
    panel.close()
    page = Console(width=width, record=True, file=io.StringIO())
    page.print(picture)
    return page.export_text()


def test_it_shows_everything_in_80_columns() -> None:
    epochs = [{**METRICS, "score": float(k), "reward": k / 10} for k in range(40)]
    text = shown(epochs, note="checkpoint epoch-00000006 written " + "x" * 100)
    lines = text.splitlines()
    assert {len(line) for line in lines} == {80}
    for found in (
        r"steps +█+.*62 %  31\.2 M of 50 M  eta 3:12",
        r"speed +104 k/s now   101 k/s mean   epoch 7   5:09 so far",
        r"score +39\.0 +▁.*█  best 39\.0",
        r"reward +3\.90 +▁.*█  best 3\.90",
        r"losses +policy -0\.0123   value 0\.310   entropy 1\.92",
        r"update +kl 0\.0041   explained 0\.810   rate 0\.0012   clipped 4\.1 %",
        r"time +env +█.* 10 %",
        r"act +███.* 30 %",
        r"rollout rest +█.* 10 %",
        r"learn +█████.* 50 %",
        r"machine +cpu 96 %   gpu 40 %   memory 1\.24 GB",
        r"saved +epoch-00000006   0:0\d ago",
        r"note +checkpoint epoch-00000006 written x+…",
    ):
        assert any(re.search(found, line) for line in lines), f"{found} is not in\n{text}"


def test_it_starts_with_nothing_known() -> None:
    text = shown([{}])
    assert "no episode has ended yet" in text
    assert "no checkpoint yet" in text


@pytest.mark.parametrize("width", [72, 80, 100, 200])
def test_no_row_is_broken_at_any_width(width: int) -> None:
    text = shown([{**METRICS, "score": 1.0, "skipped_updates": 3}], width=width)
    assert len(text.splitlines()) == 16
    assert {len(line) for line in text.splitlines()} == {min(width, 100)}


def test_a_metric_that_comes_now_and_then_stays() -> None:
    assert "cpu 96 %" in shown([METRICS, {"epoch": 8}])


def test_names_are_not_read_as_markup() -> None:
    assert "[red]a[/nothing]" in shown([METRICS], title="[red]a[/nothing]")
    assert "[/x]" in shown([METRICS], note="odd [/x] name")


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def __init__(self, encoding: str = "utf-8", tty: bool = True) -> None:
        super().__init__()
        self._encoding, self._tty = encoding, tty

    @property
    def encoding(self) -> str:  # type: ignore[override]
        return self._encoding

    def isatty(self) -> bool:
        return self._tty


@pytest.mark.parametrize(
    ("environment", "terminal", "fits"),
    [
        ({}, Terminal(), True),
        ({}, Terminal(tty=False), False),
        ({}, Terminal(encoding="ascii"), False),
        ({"NO_COLOR": "1"}, Terminal(), True),
        ({"TERM": "dumb"}, Terminal(), False),
        ({"COLUMNS": "60"}, Terminal(), False),
    ],
)
@pytest.mark.U3
def test_where_it_is_drawn(
    environment: dict[str, str], terminal: Terminal, fits: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("NO_COLOR", "FORCE_COLOR", "TTY_COMPATIBLE"):
        monkeypatch.delenv(name, raising=False)
    for name, value in {"TERM": "xterm-256color", "COLUMNS": "80", **environment}.items():
        monkeypatch.setenv(name, value)
    assert fits_terminal(terminal) is fits


@pytest.mark.U3
@pytest.mark.parametrize("plain", [False, True])
def test_on_a_real_terminal(plain: bool, tmp_path: Any) -> None:
    code = f"""
from pathlib import Path
from gridmill import games
from gridmill.run import Run
from gridmill.runs.log import RunLog
with RunLog(Path({str(tmp_path)!r}), Run(recipe="toy", game=games.toy()), ["recipe: toy"]) as log:
    log.epoch({{"epoch": 1, "agent_steps": 5, "score": 1.0}})
    log.note("a note")
"""
    env = {k: v for k, v in os.environ.items() if k not in ("NO_COLOR", "FORCE_COLOR", "COLUMNS", "LC_ALL")}
    env |= {"TERM": "xterm-256color", "LC_ALL": "C.UTF-8"} | ({"NO_COLOR": "1"} if plain else {})
    leader, follower = pty.openpty()
    fcntl.ioctl(follower, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 80, 0, 0))
    child = subprocess.Popen([sys.executable, "-c", code], stdin=follower, stdout=follower, stderr=follower, env=env)
    os.close(follower)
    said = b""
    while True:
        try:
            chunk = os.read(leader, 65536)
        except OSError:
            break
        if not chunk:
            break
        said += chunk
    os.close(leader)
    assert child.wait(timeout=60) == 0, said
    text = said.decode()
    assert "╭" in text
    colours = re.findall(r"\x1b\[(?:[0-9]+;)*(?:3[0-7]|9[0-7])(?:;[0-9]+)*m", text)
    assert bool(colours) is not plain  # NO_COLOR keeps the panel, and takes its colours
    for words in ("recipe: toy", "a note", "ended: finished"):
        assert words in text


def test_no_name_in_it_is_obeyed_by_a_terminal() -> None:
    theirs = "\x1b[31mx\x1b]0;pwn\x07\x9b"
    out = io.StringIO()
    panel = Panel(theirs, theirs, Console(width=80, force_terminal=True, file=out, color_system=None))
    panel.epoch(METRICS | {"last_checkpoint": theirs})
    panel.note(theirs)
    panel.close()
    shown = re.sub(r"\x1b\[(\?25[hl]|\d*[AK]|2K)", "", out.getvalue())  # what the panel itself writes
    assert not {letter for letter in shown if not letter.isprintable()} - {"\n", "\r"}, repr(shown)
    assert shown.count(r"\x1b[31mx\x1b]0;pwn\x07\x9b") >= 4
