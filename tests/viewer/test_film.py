"""Films and the terminal player: frames of one size, what was asked for and no more, keys that do what they say."""

from __future__ import annotations

import io
import os
import pty
import re
import subprocess
import sys
from itertools import islice
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import gridmill
from gridmill import cli, games
from gridmill.viewer import film
from gridmill.viewer.watch import Watch

SMALL = games.toy(num_agents=2, map_size=8, density=0.1)


@pytest.fixture(scope="module")
def tape(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A replay of 40 ticks."""
    file = tmp_path_factory.mktemp("film") / "toy.replay"
    folder = file.parent
    (folder / "small.py").write_text(
        "from gridmill import games\n\n\ndef small():\n    return games.toy(num_agents=2, map_size=8, max_steps=40)\n"
    )
    done = CliRunner().invoke(cli.app, ["eval", str(folder / "small.py"), "--episodes", "1", "--replay", str(file)])
    assert done.exit_code == 0, done.output
    return file


def test_a_gif_has_the_frames_asked_for(tape: Path, tmp_path: Path) -> None:
    image = pytest.importorskip("PIL.Image")
    out = tmp_path / "new" / "film.gif"
    words = ["show", str(tape), "--gif", str(out), "--from", "3", "--to", "13", "--every", "2", "--scale", "8"]
    done = CliRunner().invoke(cli.app, words)
    assert done.exit_code == 0, done.output
    assert done.stdout.startswith(f"wrote {out}: 5 frames, ")
    with image.open(out) as found:
        assert found.n_frames == 5
        assert found.info["loop"] == 0
        found.seek(4)
        shown = np.asarray(found.convert("RGB"))
    expected = next(iter(film.frames(gridmill.replay.read(tape).play(), 11, 12, 1, 8, True)))
    assert shown.shape == expected.shape
    assert np.abs(shown.astype(int) - expected).mean() < 3  # a palette, no other picture


def test_an_mp4_has_them_too(tape: Path, tmp_path: Path) -> None:
    av = pytest.importorskip("av")
    out = tmp_path / "film.mp4"
    done = CliRunner().invoke(cli.app, ["show", str(tape), "--mp4", str(out), "--to", "6", "--scale", "5", "--plain"])
    assert done.exit_code == 0, done.output
    with av.open(str(out)) as file:
        found = [frame.to_ndarray(format="rgb24") for frame in file.decode(video=0)]
    assert len(found) == 6
    assert found[0].shape == (40, 40, 3)


@pytest.mark.parametrize("ending", ["png", "gif", "mp4"])
def test_a_picture_is_there_whole_or_not_at_all(
    tape: Path, tmp_path: Path, ending: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was written in its place: on a full disk an older one was lost, and a pipe was waited for."""
    out, pipe = tmp_path / f"film.{ending}", tmp_path / f"pipe.{ending}"
    out.write_bytes(b"old")
    os.mkfifo(pipe)
    words = ["show", str(tape), f"--{ending}"]
    if ending != "png":
        words[2:2] = ["--to", "3", "--scale", "4"]

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", full)
        done = CliRunner().invoke(cli.app, [*words, str(out)])
    assert (done.exit_code, done.stdout) == (2, "")
    assert done.stderr == f"gridmill: [Errno 28] No space left on device: '{out}'\n"
    assert out.read_bytes() == b"old"
    done = CliRunner().invoke(cli.app, [*words, str(pipe)])
    assert (done.exit_code, done.stderr) == (2, f"gridmill: expected a file to write, got a pipe: `{pipe}`\n")
    assert sorted(os.listdir(tmp_path)) == [f"film.{ending}", f"pipe.{ending}"]
    assert CliRunner().invoke(cli.app, [*words, str(out)]).exit_code == 0


def test_films_are_refused_with_a_reason(tape: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gif = str(tmp_path / "x.gif")
    for words, said in (
        (["--gif", str(tmp_path / "x.mp4")], "expected a file whose name ends with .gif"),
        (["--gif", gif, "--from", "9", "--to", "9"], "--from must be below --to, --to at most 41, got 9 and 9"),
        (["--gif", gif, "--to", "42"], "--from must be below --to, --to at most 41, got 0 and 42"),
        (["--gif", gif, "--every", "0"], "--every must be at least 1"),
        (["--png", gif, "--steps", "41"], "--steps must be at most 40"),
    ):
        done = CliRunner().invoke(cli.app, ["show", str(tape), *words])
        assert done.exit_code == 2
        assert said in done.stderr
    monkeypatch.setitem(sys.modules, "PIL.Image", None)
    done = CliRunner().invoke(cli.app, ["show", str(tape), "--gif", gif])
    assert re.search(r"videos need pillow: \S+ -m pip install 'gridmill\[video\]'\n", done.stderr)
    assert not Path(gif).exists()


@pytest.mark.parametrize("name", ["toy", "arena", "cogsguard", "prospector"])
def test_all_pictures_of_a_game_have_one_size(name: str) -> None:
    game = games.build(name)
    with_legend = [frame.shape for frame in film.frames(film.random_moments(game, 1), 0, 40, 13, 6, True)]
    plain = [frame.shape for frame in film.frames(film.random_moments(game, 1), 0, 1, 1, 6, False)]
    assert len(set(with_legend)) == 1
    assert with_legend[0][1] > plain[0][1]


# ---- the terminal


def test_keys() -> None:
    watch = Watch(lambda: film.random_moments(SMALL, 1), 60, 8.0)
    first = watch.text(80, 40)
    keys = iter(["", "", " ", "", "right", "up", "left", "+", "-", "-", "down"])
    watch.run(keys, io.StringIO(), lambda: (80, 40))
    assert (watch.tick, watch.paused, watch.rate) == (2 + 1 + 10 - 1 - 10, True, 4.0)
    assert watch.text(80, 40).splitlines()[-1].startswith("tick 2 of 59, paused")
    again = Watch(lambda: film.random_moments(SMALL, 1), 60, 8.0)
    assert again.text(80, 40) == first
    for tick in (5, 3, 5):  # backwards is played again
        again.tick = tick
        direct = film.random_moments(SMALL, 1)
        assert again.env().render(0, "ansi") == next(islice(direct, tick, None)).render(0, "ansi")


def test_a_large_world_is_cut_around_the_agent() -> None:
    watch = Watch(lambda: film.random_moments(games.build("toy"), 1), 5, 8.0, agent=7, colour=False)
    lines = watch.text(30, 14).replace("\x1b[K", "").splitlines()
    assert len(lines) <= 14
    assert max(map(len, lines)) <= 30
    assert any("@" in line for line in lines[1:-2])


def test_the_legend_of_a_game_with_many_types_fits_beside_the_map() -> None:
    watch = Watch(lambda: film.random_moments(games.build("cogsguard"), 1), 5, 8.0, colour=False)
    for columns, rows in ((80, 24), (40, 24)):
        lines = watch.text(columns, rows).replace("\x1b[K", "").splitlines()
        assert len(lines) <= rows
        legend = [line for line in lines[1:-1] if " " in line]
        assert len(legend) > 1
        assert max(map(len, lines)) <= columns
        assert len(lines) - len(legend) > rows // 2  # most of it is the map


def test_without_a_terminal_frames_are_printed(tape: Path) -> None:
    done = CliRunner().invoke(cli.app, ["watch", str(tape), "--from", "2", "--to", "8", "--every", "3"])
    assert done.exit_code == 0, done.output
    assert [line for line in done.stdout.splitlines() if line.startswith("world")] == [
        f"world 0, tick {tick}, episode 0, seed 0" for tick in (2, 5)
    ]


def test_on_a_terminal(tape: Path) -> None:
    outer, inner = pty.openpty()
    words = [sys.executable, "-m", "gridmill", "watch", str(tape), "--fps", "200"]
    with subprocess.Popen(
        words, stdin=inner, stdout=inner, stderr=inner, env=os.environ | {"TERM": "xterm"}
    ) as process:
        os.close(inner)
        seen = b""
        while b"tick 40 of 40" not in seen:
            seen += os.read(outer, 65536)
        os.write(outer, b"q")
        try:
            while part := os.read(outer, 65536):
                seen += part
        except OSError:  # the other end is closed
            pass
        assert process.wait(60) == 0
    os.close(outer)
    assert seen.endswith(b"\x1b[?25h\r\n")  # the cursor is back
