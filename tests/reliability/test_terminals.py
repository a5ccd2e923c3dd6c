"""Output is readable plain lines on any terminal and on none.

Eight cases: no terminal, 80 columns, names that a terminal would obey, a full disk, NO_COLOR, a pipe whose reader
leaves, UTF-8 off, errors in a pipe. Each starts the real command in a process of its own, on a real pseudo-terminal
where the case is about one. The three that look at many commands give them to one forked process, one after the other;
long: each has an interpreter of its own.
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
from pathlib import Path
from typing import Any

import pytest
import warm
from typer.testing import CliRunner

from gridmill import cli

pytestmark = pytest.mark.U3

COMMAND = [sys.executable, "-m", "gridmill"]
SUPPORT = Path(__file__).resolve().parents[1] / "support"
TINY = "tiny.py:tiny"  # in the folder: its path would make lines long that are not ours
QUICK_BENCH = ["bench", "step", "--rounds", "2", "--iterations", "2", "--warmup", "0"]
ALL = [
    ["--help"],
    ["games"],
    ["show", "toy"],
    ["doctor"],
    QUICK_BENCH,
    ["profile", "step", "--steps", "2", "--warmup", "0"],
    ["settings"],
    ["recipes"],
    ["explain", "arena"],
    ["diff", "arena", "arena_basic"],
    ["runs"],
    ["report", "one"],
    ["eval", "one", "--episodes", "1"],
    ["policy", "info", "one"],
    ["watch", "one", "--to", "2"],
    ["sweep", "tries"],
    ["train", "ci", "--dry-run"],
    ["train", TINY, "run=two", "--fresh"],
]

# On a terminal a run is a panel, which is drawn over itself, and an evaluation has a progress bar.
ON_TERMINAL = [words for words in ALL if words[0] not in ("train", "eval", "watch", "report")]

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
    # Hints name the command as it can be typed: with `gridmill` on the path that is short.
    found = {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    return {**{k: v for k, v in os.environ.items() if k not in dropped}, **found, **changes}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a run and a sweep."""
    place = tmp_path_factory.mktemp("terminal")
    (place / "tiny.py").write_text((SUPPORT / "tiny.py").read_text())
    sweep = ["sweep", TINY, "run=tries", "trainer.gamma=range(0.9,0.99)", "--trials", "1"]
    for words in (["train", TINY, "run=one"], sweep):
        done = warm.warm(["gridmill", *words], place)
        assert done.returncode == 0, done.stderr
    return place


def piped(program: Sequence[str], env: Mapping[str, str], folder: Path, alone: bool = True) -> warm.Done:
    if not alone:
        return warm.warm(program, folder, env)
    return subprocess.run(program, capture_output=True, env=dict(env), cwd=folder, encoding="utf-8", timeout=600)


def on_terminal(program: Sequence[str], env: Mapping[str, str], columns: int, folder: Path, alone: bool = True) -> str:
    """Everything a program shows on a pseudo-terminal of that width."""
    leader, follower = pty.openpty()
    fcntl.ioctl(follower, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    popen: Any = subprocess.Popen if alone else warm.Popen
    with os.fdopen(follower, "wb") as end:
        child = popen(program, stdin=end, stdout=end, stderr=end, env=dict(env), cwd=folder)
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
def test_no_terminal(alone: bool, folder: Path) -> None:
    for commands, program in programs(ALL, alone):
        done = piped(program, environment(LC_ALL="C.UTF-8"), folder, alone)
        assert done.returncode in (0, 1), done.stderr
        assert done.stderr == "", commands
        for said in said_in_turn(done.stdout, commands, alone):
            lines_fit(said)


@ALONE
def test_80_columns(alone: bool, folder: Path) -> None:
    env = environment(TERM="xterm-256color", LC_ALL="C.UTF-8")
    for commands, program in programs([["bench", "step", "--help"], *ON_TERMINAL], alone):
        for said in said_in_turn(on_terminal(program, env, 80, folder, alone), commands, alone):
            lines_fit(said)


# A game and a file of somebody who wants the terminal to obey: colours, a window's title, a bell, text turned round.
THEIRS = """
from gridmill.grid import Game, Give, Inventory, ObjectType, RewardTerm, Rule, Scatter

def game():
    orb = ObjectType(on_use=(Rule(name="\\x1b[5m", then=(Give(amounts={"r\\x1b[32m": 1}),)),))
    return Game(
        name="a\\x1b[31mRED\\x1b]0;pwn\\x07\\x7f\\x9b\\u202e",
        resources=("r\\x1b[32m",),
        objects={"wall": ObjectType(), "o\\x1b[2J": orb},
        map=Scatter(height=6, width=6, objects={"o\\x1b[2J": 2}),
        rewards=(RewardTerm(weight=1, value=Inventory(resource="r\\x1b[32m")),),
    )
"""
NAMED = "\x1b[31mx\x9b\x07"
OBEYED = [
    ["explain", "theirs.py:game"],
    ["diff", "theirs.py:game", "toy"],
    ["show", "theirs.py:game"],
    ["eval", "theirs.py:game", "--episodes", "1"],
]
REFUSED = [
    ["replay", "info", NAMED],
    ["show", NAMED],
    ["view", NAMED],
    ["resume", NAMED],
    ["report", NAMED],
    ["eval", NAMED],
    ["train", NAMED],
    ["bench", "step", "--game", NAMED],
    ["games", f"--{NAMED}"],
    [f"--{NAMED}"],
    ["train", f"--{NAMED}"],
]


def obeys(shown: str) -> set[str]:
    """What a terminal would do something about, or could not show."""
    return {letter for letter in shown if not letter.isprintable() and letter not in "\n\r"}


def test_no_name_of_a_game_is_obeyed(tmp_path: Path) -> None:
    (tmp_path / "theirs.py").write_text(THEIRS)
    env = environment(TERM="xterm-256color", LC_ALL="C.UTF-8")
    for commands, program in programs([*OBEYED, ["watch", "theirs.py:game", "--to", "2"]], alone=False):
        done = piped(program, env, tmp_path, alone=False)
        assert (done.returncode, obeys(done.stdout), obeys(done.stderr)) == (0, set(), set()), commands
        assert "RED" in done.stdout
    for commands, program in programs(OBEYED[:2], alone=False):
        shown = on_terminal(program, env, 80, tmp_path, alone=False)
        assert obeys(shown) == set(), commands
        assert r"a\x1b[31mRED\x1b]0;pwn\x07\u007f\x9b\u202e" in shown


@pytest.mark.parametrize("words", REFUSED, ids=lambda words: words[0])
def test_no_name_of_a_file_is_obeyed(words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(cli.app, words)
    assert done.exit_code in (2, 64), done.output
    assert obeys(done.output) == set()
    assert r"\x1b[31mx\x9b\x07" in done.stderr


def test_the_words_of_a_full_disk(tmp_path: Path) -> None:
    """Also where a command is answered before it begins."""
    for words in (["--help"], ["--version"], ["games", "--help"]):
        with open("/dev/full", "w") as full:
            done = subprocess.run([*COMMAND, *words], stdout=full, stderr=subprocess.PIPE, text=True, cwd=tmp_path)
        assert (done.returncode, done.stderr) == (2, "gridmill: [Errno 28] No space left on device\n"), words


def test_no_color(tmp_path: Path) -> None:
    env = environment(TERM="xterm-256color", NO_COLOR="1", LC_ALL="C.UTF-8")
    for arguments in (["--help"], ["show", "toy"]):
        lines_fit(on_terminal([*COMMAND, *arguments], env, 120, tmp_path))


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
def test_utf8_off(alone: bool, folder: Path) -> None:
    env = environment(LC_ALL="C", PYTHONUTF8="0", PYTHONCOERCECLOCALE="0", PYTHONIOENCODING="ascii:strict")
    for commands, program in programs(ALL, alone):
        done = piped(program, env, folder, alone)
        assert done.returncode in (0, 1), done.stderr
        assert done.stdout.isascii()
        for said in said_in_turn(done.stdout, commands, alone):
            lines_fit(said)


def test_errors_in_a_pipe(tmp_path: Path) -> None:
    env = environment(LC_ALL="C", PYTHONUTF8="0", PYTHONCOERCECLOCALE="0", PYTHONIOENCODING="ascii:strict")
    done = piped([*COMMAND, "show", "töy"], env, tmp_path)
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.isascii()
    (line,) = done.stderr.strip().splitlines()
    assert line.startswith("gridmill: ")
    assert "toy" in line
