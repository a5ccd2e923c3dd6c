"""Replays: an episode plays again to the same hashes, a changed file is refused in one line, and commands use them."""

from __future__ import annotations

import json
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from gridmill import cli, evaluate, games
from gridmill.games.make import make
from gridmill.replay import EVERY, Recorder, ReplayError, read

RUNNER = CliRunner()


def recorded(path: Path, game: str = "arena_basic_easy_shaped", policy: str = "script:arena") -> Path:
    short = games.build(game)
    length = {"time_max": 250.0} if game == "prospector" else {"max_steps": 250}
    for name, value in length.items():
        short = short.replace(name, value)
    evaluate.evaluate(short, policy, episodes=3, seed=7, replay=path)
    return path


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return recorded(tmp_path_factory.mktemp("replays") / "deep" / "one.replay")


def test_it_is_the_first_episode_of_the_evaluation(tmp_path: Path) -> None:
    """The hearts taken when it plays again are those the evaluation counted."""
    short = games.build("arena_basic_easy_shaped").replace("max_steps", 250)
    counted = evaluate.evaluate(short, "script:arena", episodes=1, seed=7, replay=tmp_path / "one.replay")
    tape = read(tmp_path / "one.replay")
    assert (tape.seed, tape.policy, tape.actions.shape) == (7, "script:arena", (250, 24))
    assert len(tape.hashes) == -(-250 // EVERY)
    with make(tape.game, num_worlds=1, seed=7) as env:
        env.reset()
        for actions in tape.actions:
            env.step(actions.astype(np.int32))
        hearts = float(env.take_episodes()["heart.get"].mean())
    assert hearts == pytest.approx(counted.score.mean)
    assert hearts > 0
    assert sum(1 for _ in tape.play()) == 250


def test_players_are_in_the_replay(tmp_path: Path) -> None:
    short = games.build("arena_basic_easy_shaped").replace("max_steps", 150)
    evaluate.evaluate(short, "random", 1, 7, replay=tmp_path / "x.replay", players={"arena": 0.5})
    assert sum(1 for _ in read(tmp_path / "x.replay").play()) == 150


@pytest.mark.parametrize(
    ("game", "policy"), [("prospector", "bot:shuttle"), ("toy", "random"), ("navigation", "random")]
)
def test_every_kind_of_game_plays_again(tmp_path: Path, game: str, policy: str) -> None:
    tape = read(recorded(tmp_path / "x.replay", game, policy))
    assert 0 < sum(1 for _ in tape.play()) == len(tape.actions) <= 250


def test_another_build_says_so(file: Path, tmp_path: Path) -> None:
    """A state that differs, here by one action, is found at the next hash; before it everything plays."""
    tape = read(file)
    changed = tape.actions.copy()
    changed[40] = (changed[40] + 1) % 9
    copy = tmp_path / "other.replay"
    recorder = Recorder(tape.game, tape.policy, tape.seed, list(changed), list(tape.hashes))
    recorder.write(copy)
    moments = read(copy).play()
    for _ in range(100):
        next(moments)
    with pytest.raises(ReplayError, match="plays the game differently from tick 100"):
        next(moments)


def parts(file: Path) -> tuple[dict[str, Any], bytes]:
    head, _, body = file.read_bytes().partition(b"\n")
    return json.loads(head), body


BROKEN: dict[str, dict[str, Any]] = {
    "expected format 1, got 2": {"format": 2},
    "expected the actions of 250 ticks of 23 agents": {"agents": 23},
    "expected the actions of 249 ticks": {"ticks": 249},
    "are not in": {"ticks": 10**12},
    "expected a number": {"ticks": -1},
    "got 'many'": {"agents": "many"},
    "expected a hash every 0": {"every": 0},
    "expected a hash every 10 ticks": {"every": 10},
    "expected a value, got nothing - at `..name`": {"game": {"no_such": 1}},
}


@pytest.mark.parametrize("said", BROKEN)
def test_a_changed_head_is_refused_in_one_line(file: Path, tmp_path: Path, said: str) -> None:
    head, body = parts(file)
    bad = tmp_path / "bad.replay"
    bad.write_bytes(json.dumps(head | BROKEN[said]).encode() + b"\n" + body)
    with pytest.raises(ReplayError, match=said) as refused:
        read(bad)
    assert "\n" not in str(refused.value)
    assert "bad.replay" in str(refused.value)


@pytest.mark.F3
def test_more_than_was_said_is_not_unpacked(file: Path, tmp_path: Path) -> None:
    head, _ = parts(file)
    bad = tmp_path / "bad.replay"
    bad.write_bytes(json.dumps(head).encode() + b"\n" + zlib.compress(bytes(50_000_000)))
    with pytest.raises(ReplayError, match="expected the actions of 250 ticks"):
        read(bad)


@pytest.mark.F3
def test_mutations_never_crash(file: Path, tmp_path: Path) -> None:
    """Bytes changed, cut and doubled: it reads, or one error says why not; what reads plays, or says why not."""
    whole, rng, bad = file.read_bytes(), np.random.default_rng(0), tmp_path / "bad.replay"
    refused: list[str] = []
    for _ in range(400):
        data = bytearray(whole)
        for _ in range(int(rng.integers(1, 4))):
            at = int(rng.integers(len(data)))
            match int(rng.integers(3)):
                case 0:
                    data[at] = int(rng.integers(256))
                case 1:
                    del data[at : at + int(rng.integers(1, 40))]
                case _:
                    data[at:at] = data[at : at + int(rng.integers(1, 40))]
        bad.write_bytes(bytes(data))
        try:
            read(bad)
        except ReplayError as error:
            refused.append(str(error))
    assert len(refused) > 200
    assert not any("\n" in line for line in refused)


def test_commands(file: Path, tmp_path: Path) -> None:
    shown = RUNNER.invoke(cli.app, ["show", str(file), "--steps", "120"])
    assert shown.exit_code == 0, shown.output
    assert "tick 120" in shown.output
    late = RUNNER.invoke(cli.app, ["show", str(file), "--steps", "250"])
    assert (late.exit_code, "must be below 250" in late.output) == (2, True)
    other = RUNNER.invoke(cli.app, ["show", str(file), "--seed", "3"])
    assert (other.exit_code, "a replay has its own world" in other.output) == (2, True)
    missing = RUNNER.invoke(cli.app, ["show", str(tmp_path / "none.replay")])
    assert (missing.exit_code, "cannot read" in missing.output) == (2, True)
    target = tmp_path / "new.replay"
    words = ["eval", "toy", "--episodes", "1", "--replay", str(target)]
    assert RUNNER.invoke(cli.app, words).exit_code == 0
    assert target.is_file()
    twice = RUNNER.invoke(cli.app, ["eval", "toy", "arena", "--episodes", "1", "--replay", str(target)])
    assert (twice.exit_code, "one game and one policy" in twice.output) == (2, True)
    flat = recorded(tmp_path / "ship.replay", "prospector", "bot:shuttle")
    no_map = RUNNER.invoke(cli.app, ["show", str(flat)])
    assert (no_map.exit_code, "which has none" in no_map.output) == (2, True)
