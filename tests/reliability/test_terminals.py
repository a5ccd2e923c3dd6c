"""Output is readable plain lines on any terminal and on none.

Six cases: no terminal, 80 columns, NO_COLOR, a pipe whose reader leaves, UTF-8 off, errors in a pipe. Each
starts the real command in a process of its own, on a real pseudo-terminal where the case is about one. The three that
look at many commands give them to one process after the other, for most of each would be imports; long: a process each.
"""

from __future__ import annotations

import fcntl
import json
import os
import pty
import re
import struct
import subprocess
import sys
import termios
from collections.abc import Iterator, Mapping, Sequence

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


# One command after the other, and what each ended with in a line of its own.
IN_TURN = """
import json, sys
from gridmill.cli import main
for words in json.loads(sys.argv[1]):
    code = 0
    try:
        main(words)
    except SystemExit as ended:
        code = ended.code
    print(f"ENDED {code or 0}", flush=True)
"""
Commands = list[list[str]]
ALONE = pytest.mark.parametrize("alone", [False, pytest.param(True, marks=pytest.mark.long)])


def programs(commands: Commands, alone: bool) -> Iterator[tuple[Commands, list[str]]]:
    """The processes that run some commands: which of them, and what is started."""
    if alone:
        yield from (([words], [*COMMAND, *words]) for words in commands)
    else:
        yield commands, [sys.executable, "-c", IN_TURN, json.dumps(commands)]


def said_in_turn(shown: str, commands: Commands, alone: bool) -> list[str]:
    """What each of the commands of a process has said; each ended well."""
    if alone:
        return [shown]
    *said, rest = re.split(r"^ENDED [01]\n", shown, flags=re.MULTILINE)  # 1: two steps are too few for steady rounds
    assert (len(said), rest) == (len(commands), ""), shown
    return said


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


def piped(program: Sequence[str], env: Mapping[str, str]) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(program, capture_output=True, env=dict(env), timeout=600)


def on_terminal(program: Sequence[str], env: Mapping[str, str], columns: int) -> str:
    """Everything a program shows on a pseudo-terminal of that width."""
    leader, follower = pty.openpty()
    fcntl.ioctl(follower, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    child = subprocess.Popen(program, stdin=follower, stdout=follower, stderr=follower, env=dict(env))
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


@ALONE
def test_no_terminal(alone: bool) -> None:
    for commands, program in programs(ALL, alone):
        done = piped(program, environment(LC_ALL="C.UTF-8"))
        assert done.returncode in (0, 1), done.stderr
        assert done.stderr == b"", commands
        for said in said_in_turn(done.stdout.decode(), commands, alone):
            lines_fit(said)


@ALONE
def test_80_columns(alone: bool) -> None:
    env = environment(TERM="xterm-256color", LC_ALL="C.UTF-8")
    for commands, program in programs([["bench", "step", "--help"], ["games"], ["doctor"], QUICK_BENCH], alone):
        for said in said_in_turn(on_terminal(program, env, 80), commands, alone):
            lines_fit(said)


def test_no_color() -> None:
    env = environment(TERM="xterm-256color", NO_COLOR="1", LC_ALL="C.UTF-8")
    for arguments in (["--help"], ["show", "toy"]):
        lines_fit(on_terminal([*COMMAND, *arguments], env, 120))


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


@ALONE
def test_utf8_off(alone: bool) -> None:
    env = environment(LC_ALL="C", PYTHONUTF8="0", PYTHONCOERCECLOCALE="0", PYTHONIOENCODING="ascii:strict")
    for commands, program in programs(ALL, alone):
        done = piped(program, env)
        assert done.returncode in (0, 1), done.stderr
        for said in said_in_turn(done.stdout.decode("ascii"), commands, alone):
            lines_fit(said)


def test_errors_in_a_pipe() -> None:
    env = environment(LC_ALL="C", PYTHONUTF8="0", PYTHONCOERCECLOCALE="0", PYTHONIOENCODING="ascii:strict")
    done = piped([*COMMAND, "show", "töy"], env)
    assert done.returncode == 2
    assert done.stdout == b""
    (line,) = done.stderr.decode("ascii").strip().splitlines()
    assert line.startswith("gridmill: ")
    assert "toy" in line
