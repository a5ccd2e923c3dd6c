"""Playing without a browser: what a page begins with, and a game in a terminal that becomes a replay."""

from __future__ import annotations

import io
import os
import pty
import select
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import TextIO

import numpy as np
import pytest
from typer.testing import CliRunner, Result

from gridmill import cli, games, replay
from gridmill.cli import view
from gridmill.viewer import start, terminal
from gridmill.viewer.terminal import Table


def call(*arguments: str, keys: str = "") -> Result:
    return CliRunner().invoke(cli.app, list(arguments), input=keys)


def test_a_new_game_says_all_that_a_page_needs() -> None:
    game = games.arena_basic(num_agents=6)
    found = start.new_game(game, 2**63, 2, "")
    head = found["game"]
    assert (head["seed"], head["agents"], head["kind"]) == (str(2**63), 6, "grid")
    assert head["core"] == game.core_tree()
    assert head["action_names"][0] == "noop"
    assert found["play"] == {"agent": 2, "others": "script:arena"}


@pytest.mark.parametrize(
    ("wanted", "found"), [("", "script:arena"), ("arena", "script:arena"), ("random", "random"), ("noop", "noop")]
)
def test_who_plays_the_others(wanted: str, found: str) -> None:
    assert start.others_of(games.arena(), wanted) == found


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--agent", "24"), "--agent must be 0 to 23"),
        (("--seed", "-1"), "--seed must be 0"),
        (("--others", "script:areno"), "did you mean"),
        (("--save", "x.replay"), "--save needs --terminal"),
        (("--terminal", "--export", "x.html"), "cannot be combined"),
    ],
)
def test_wrong_options_are_refused_in_a_line(options: tuple[str, ...], said: str) -> None:
    result = call("play", "arena", *options)
    assert result.exit_code == 2
    assert said in result.stderr
    assert result.stderr.count("\n") == 1


def test_others_who_want_what_the_game_has_not(monkeypatch: pytest.MonkeyPatch) -> None:
    """A script may say -1; the game is a replay all the same."""
    game = games.arena_basic(num_agents=6)
    table = Table(game, 1, 0, "script:arena")
    monkeypatch.setattr(Table, "_others", lambda self, env: lambda: np.full(env.num_rows, -1, np.int32))
    tape = table.play(iter("..."), io.StringIO())
    assert tape is not None
    assert (tape.actions[:, 1:] == len(tape.action_names)).all()
    assert all(finding.equal for finding in replay.check(replay.decode(replay.encode(tape))))


def test_a_game_in_a_terminal_is_a_replay(tmp_path: Path) -> None:
    place = tmp_path / "mine.replay"
    result = call(
        "play",
        "arena",
        "--terminal",
        "--seed",
        "5",
        "--agent",
        "3",
        "--save",
        str(place),
        keys="wwd.x?:move_southwest\nq",
    )
    assert result.exit_code == 0, result.output
    assert f"played 6 ticks, reward 0.000; wrote {place}" in result.stdout
    tape = replay.read(place)
    names = tape.action_names
    assert [names[a] for a in tape.actions[:, 3]] == [
        "move_north", "move_north", "move_east", "noop", "attack_nearest", "move_southwest",
    ]  # fmt: skip
    assert tape.who(0)[3] == "human"
    assert tape.who(0)[4] == "script:arena"
    assert all(finding.equal for finding in replay.check(tape))
    assert "which exists" in call("play", "arena", "--terminal", "--save", str(place), keys="q").stderr


def test_the_others_do_what_their_script_does(tmp_path: Path) -> None:
    table = Table(games.arena(), 1, 0, "script:arena")
    tape = table.play(iter("." * 20), io.StringIO())
    assert tape is not None
    assert len(set(tape.actions[:, 1:].ravel().tolist())) > 3
    assert set(tape.actions[:, 0].tolist()) == {0}


@pytest.mark.parametrize(
    ("name", "keys"), [("prospector", ":wide_scan\n.q"), ("corridor", "dd.q"), ("cogsguard", "vaq")]
)
def test_every_kind_can_be_played_as_text(name: str, keys: str, tmp_path: Path) -> None:
    place = tmp_path / "x.replay"
    result = call("play", name, "--terminal", "--others", "noop", "--save", str(place), keys=keys)
    assert result.exit_code == 0, result.output
    assert all(finding.equal for finding in replay.check(replay.read(place)))


def test_ctrl_c_ends_and_saves(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    @contextmanager
    def interrupted(stream: TextIO) -> Iterator[Iterator[str]]:
        def keys() -> Iterator[str]:
            yield from "wd"
            raise KeyboardInterrupt

        yield keys()

    monkeypatch.setattr(terminal, "keys_of", interrupted)
    place = tmp_path / "x.replay"
    result = call("play", "toy", "--terminal", "--save", str(place))
    assert result.exit_code == 0, result.output
    tape = replay.read(place)
    assert [tape.action_names[a] for a in tape.actions[:, 0]] == ["move_north", "move_east"]


@pytest.mark.parametrize("key", ["k", "?", "\x1b", "é"])
def test_a_key_without_meaning_says_so(key: str) -> None:
    out = io.StringIO()
    assert Table(games.toy(), 0, 0, "noop").play(iter(key), out) is None
    assert "reward 0.000 - this key does nothing\n" in out.getvalue()


def test_what_is_typed_as_a_name_cannot_steer_the_terminal() -> None:
    out = io.StringIO()
    keys = iter([":", "n", "\x1b", "east", "x", "\x7f", "o", "\n"])
    assert Table(games.toy(), 0, 0, "noop").play(keys, out) is None
    assert "`no` is not an action of this game" in out.getvalue()
    assert "\x1b" not in out.getvalue().replace(terminal.CLEAR, "")


def test_nothing_played_is_nothing_saved(tmp_path: Path) -> None:
    result = call("play", "toy", "--terminal", "--save", str(tmp_path / "x.replay"), keys="q")
    assert (result.exit_code, result.stdout.splitlines()[-1]) == (0, "nothing was played")
    assert not list(tmp_path.iterdir())


def test_arrow_keys_of_a_real_terminal(tmp_path: Path) -> None:
    place = tmp_path / "x.replay"
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "gridmill", "play", "toy", "--terminal", "--save", str(place)]
    with subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs, close_fds=True) as process:
        os.close(theirs)
        seen = b""
        for keys in (b"\x1b[A", b"\x1b[D", b"q"):
            seen += _read_until(ours, b"q end and save")
            os.write(ours, keys)
        seen += _read_until(ours, b"wrote")
        assert process.wait(timeout=60) == 0
    os.close(ours)
    tape = replay.read(place)
    assert [tape.action_names[a] for a in tape.actions[:, 0]] == ["move_north", "move_west"]


def _read_until(descriptor: int, wanted: bytes) -> bytes:
    seen, end = b"", time.monotonic() + 60
    while wanted not in seen:
        if not select.select([descriptor], [], [], max(0.0, end - time.monotonic()))[0]:
            break
        try:
            seen += os.read(descriptor, 65536)
        except OSError:
            break
    return seen


@pytest.mark.parametrize("command", [("play", "toy"), ("view", "toy"), ("view",)])
def test_a_server_without_a_file_shows_runs_only(
    command: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever starts it at home does not make all of that readable."""
    shown = []

    @contextmanager
    def serve(page: object, root: Path, **options: object) -> Iterator[SimpleNamespace]:
        shown.append(sorted(path.name for path in root.iterdir()))
        yield SimpleNamespace(url="http://here/", wait=lambda: None)

    monkeypatch.setattr("gridmill.viewer.serve.serve", serve)
    monkeypatch.setattr("gridmill.viewer.engine.read", lambda: b"")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "private.json").touch()
    assert call(*command, "--no-browser").exit_code == 0
    (tmp_path / "runs").mkdir()
    (tmp_path / "runs" / "a.replay").touch()
    assert call(*command, "--no-browser").exit_code == 0
    assert shown == [[], ["a.replay"]]


def test_what_is_no_replay_and_no_game_is_said(tmp_path: Path) -> None:
    (tmp_path / "bad.replay").write_bytes(b"nothing")
    (tmp_path / "empty").mkdir()
    cases = ((tmp_path / "bad.replay", "expected"), (tmp_path / "empty", "no replays in"), ("aren", "did you mean"))
    for what, said in cases:
        result = call("view", str(what), "--no-browser")
        assert result.exit_code == 2, what
        assert said in result.stderr


def test_a_game_of_your_own_is_viewed_as_it_is_played(tmp_path: Path) -> None:
    file = tmp_path / "my_game.py"
    file.write_text("from gridmill import games\n\n\ndef my_game():\n    return games.toy(num_agents=2)\n")
    begun, files, _ = view._opened([str(file)], 0, "")
    assert (begun["game"]["agents"], files) == (2, {})
    named = tmp_path / "odd.py"  # a replay may have any suffix
    replay.write(named, replay.record(games.toy(num_agents=2), 0, [[0, 0]] * 3, {"*": "human"}))
    assert list(view._opened([str(named)], 0, "")[1].values()) == [named]
