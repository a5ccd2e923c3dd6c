"""Output is readable plain lines on any terminal and on none.

Six cases: no terminal, 80 columns, NO_COLOR, a pipe whose reader leaves, UTF-8 off, errors in a pipe. Each
starts the real command in a process of its own, on a real pseudo-terminal where the case is about one.
"""

from __future__ import annotations

import fcntl
import os
import pty
import struct
import subprocess
import sys
import termios
from collections.abc import Mapping, Sequence

import pytest

pytestmark = pytest.mark.U3

COMMAND = [sys.executable, "-m", "gridmill"]
QUICK_BENCH = ["bench", "step", "--rounds", "2", "--iterations", "2", "--warmup", "0"]
ALL = [
    ["--help"],
    ["games"],
    ["show", "toy"],
    ["doctor"],
    QUICK_BENCH,
    ["profile", "step", "--steps", "2", "--warmup", "0"],
]


def environment(**changes: str) -> dict[str, str]:
    dropped = (
        "NO_COLOR",
        "FORCE_COLOR",
        "COLUMNS",
        "PYTHONUTF8",
        "PYTHONIOENCODING",
        "LC_ALL",
        "LANG",
        "PAGER",
    )
    return {**{k: v for k, v in os.environ.items() if k not in dropped}, **changes}


def piped(arguments: Sequence[str], env: Mapping[str, str]) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run([*COMMAND, *arguments], capture_output=True, env=dict(env), timeout=120)


def on_terminal(arguments: Sequence[str], env: Mapping[str, str], columns: int) -> str:
    """Everything the command shows on a pseudo-terminal of that width."""
    leader, follower = pty.openpty()
    fcntl.ioctl(follower, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    child = subprocess.Popen([*COMMAND, *arguments], stdin=follower, stdout=follower, stderr=follower, env=dict(env))
    os.close(follower)
    shown = b""
    while True:
        try:
            chunk = os.read(leader, 65536)
        except OSError:  # the terminal's other end has closed
            break
        if not chunk:
            break
        shown += chunk
    os.close(leader)
    assert child.wait(timeout=120) in (0, 1), shown  # 1: two steps are too few for steady rounds
    return shown.decode().replace("\r\n", "\n")


def lines_fit(text: str, columns: int = 80) -> None:
    assert text.strip()
    assert "\x1b" not in text
    # A progress line is overwritten in place; what counts is each state of it.
    for line in text.replace("\r", "\n").splitlines():
        assert len(line) <= columns, line
        assert line.isprintable(), repr(line)


def test_no_terminal() -> None:
    for arguments in ALL:
        done = piped(arguments, environment(LC_ALL="C.UTF-8"))
        assert done.returncode in (0, 1), done.stderr
        assert done.stderr == b"", arguments
        lines_fit(done.stdout.decode())


def test_80_columns() -> None:
    for arguments in (["bench", "step", "--help"], ["games"], ["doctor"], QUICK_BENCH):
        lines_fit(on_terminal(arguments, environment(TERM="xterm-256color", LC_ALL="C.UTF-8"), 80))


def test_no_color() -> None:
    env = environment(TERM="xterm-256color", NO_COLOR="1", LC_ALL="C.UTF-8")
    for arguments in (["--help"], ["show", "toy"]):
        lines_fit(on_terminal(arguments, env, 120))


def test_a_reader_that_leaves() -> None:
    child = subprocess.Popen(
        [*COMMAND, "show", "toy"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment(LC_ALL="C.UTF-8"),
    )
    assert child.stdout is not None
    assert child.stderr is not None
    child.stdout.close()  # as `| head -0` does, before the first line is written
    complaints = child.stderr.read()
    child.stderr.close()
    assert child.wait(timeout=120) == 0
    assert complaints == b""


def test_utf8_off() -> None:
    env = environment(LC_ALL="C", PYTHONUTF8="0", PYTHONCOERCECLOCALE="0", PYTHONIOENCODING="ascii:strict")
    for arguments in ALL:
        done = piped(arguments, env)
        assert done.returncode in (0, 1), done.stderr
        lines_fit(done.stdout.decode("ascii"))


def test_errors_in_a_pipe() -> None:
    env = environment(LC_ALL="C", PYTHONUTF8="0", PYTHONCOERCECLOCALE="0", PYTHONIOENCODING="ascii:strict")
    done = piped(["show", "töy"], env)
    assert done.returncode == 2
    assert done.stdout == b""
    (line,) = done.stderr.decode("ascii").strip().splitlines()
    assert line.startswith("gridmill: ")
    assert "toy" in line
