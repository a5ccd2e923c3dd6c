"""Replays of evaluations: an episode plays again to the same end, which ones are saved, and commands use them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from gridmill import cli, evaluate, games, replay
from gridmill.evaluate import ReplayOptions
from gridmill.games.make import make
from gridmill.replay import EVERY, ReplayError, read

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
    assert len(tape.branches[0].hashes) == -(-250 // EVERY)
    with make(tape.game, num_worlds=1, seed=7) as env:
        env.reset()
        for actions in tape.actions:
            env.step(actions.astype(np.int32))
        hearts = float(env.take_episodes()["heart.get"].mean())
    assert hearts == pytest.approx(counted.score.mean)
    assert hearts == tape.branches[0].result["score"] > 0
    assert sum(1 for _ in tape.play()) == 250


def test_the_end_is_a_moment_too() -> None:
    """What the last tick left, as a world shows it whose episode is one tick longer."""
    actions = np.random.default_rng(3).integers(0, 5, (30, 4))
    ends, goes_on = (games.toy(num_agents=4, max_steps=ticks) for ticks in (30, 31))
    tape = replay.record(ends, 5, actions, {"*": "random"})
    assert tape.branches[0].ended
    with make(goes_on, num_worlds=1, seed=5) as env:
        env.reset()
        for row in actions:
            env.step(row.astype(np.int32))
        expected = env.inspect(0)
    shown = [env.inspect(0) for env in tape.moments()]
    assert len(shown) == 31
    assert shown[-1] == expected | {"max_steps": 30}
    assert shown[:-1] == [env.inspect(0) for env in tape.play()]
    with replay.Playback(tape) as playback:
        for tick in (30, 30, 12, 30):
            playback.seek(tick)
            assert playback.env.inspect(0) == shown[tick]


def test_players_are_in_the_replay(tmp_path: Path) -> None:
    short = games.build("arena_basic_easy_shaped").replace("max_steps", 150)
    evaluate.evaluate(short, "random", 1, 7, replay=tmp_path / "x.replay", players={"arena": 0.5})
    tape = read(tmp_path / "x.replay")
    assert sum(1 for _ in tape.play()) == 150
    assert tape.who().count("script:arena") == tape.who().count("random") == 12


@pytest.mark.parametrize(
    ("game", "policy"), [("prospector", "bot:shuttle"), ("toy", "random"), ("navigation", "random")]
)
def test_every_kind_of_game_plays_again(tmp_path: Path, game: str, policy: str) -> None:
    tape = read(recorded(tmp_path / "x.replay", game, policy))
    assert 0 < sum(1 for _ in tape.play()) == len(tape.actions) <= 250
    assert tape.who()[0] == policy.replace("bot:", "script:")
    assert all(finding.equal for finding in replay.check(tape))


@pytest.mark.parametrize("game", ["prospector", "navigation"])
def test_the_best_and_the_worst_are_saved(tmp_path: Path, game: str) -> None:
    """Some of all episodes, by their scores, over several batches; each plays again to the score it was chosen for."""
    short = games.build(game).replace("time_max" if game == "prospector" else "max_steps", 60)
    asked = ReplayOptions(tmp_path / "first.replay", tmp_path / "some", 4)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(evaluate, "WORLDS", 4)
        found = evaluate.evaluate(short, "random", 10, 3, replay=asked)
    assert read(tmp_path / "first.replay").seed == 3
    files = sorted((tmp_path / "some").iterdir())
    tapes = [read(path) for path in files]
    scores = {tape.branches[0].tags: tape.branches[0].result["score"] for tape in tapes}
    assert len(files) == 4
    assert max(scores.values()) == scores[("best",)]
    assert min(scores.values()) == scores[("worst",)]
    assert sum(path.name.endswith("-best.replay") for path in files) == 1
    assert scores[("worst",)] <= found.score.mean <= scores[("best",)]
    for tape in tapes:
        assert replay.check(tape)[0].equal
        again = replay.record(tape.game, tape.seed, tape.actions, {}).branches[0].result["score"]
        assert again == pytest.approx(tape.branches[0].result["score"])


def test_how_many_can_be_saved(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="expected a folder for 1 to 2 episodes, got 3"):
        evaluate.evaluate("toy", "random", 2, 0, replay=ReplayOptions(None, tmp_path, 3))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("gridmill.replay.recording.MOST_LOG", 10_000)
        with pytest.raises(ReplayError, match="record fewer episodes"):
            evaluate.evaluate("toy", "random", 4, 0, replay=ReplayOptions(None, tmp_path, 2))


def test_another_build_says_so(file: Path) -> None:
    """A state that differs, here by one action, is found at the next hash; before it everything plays."""
    tape = read(file)
    actions = tape.actions.copy()
    actions[40] = (actions[40] + 1) % 9
    changed = replace(tape, branches=(replace(tape.branches[0], actions=actions),))
    moments = replay.decode(replay.encode(changed)).play()
    for _ in range(100):
        next(moments)
    with pytest.raises(ReplayError, match="plays the game differently, at tick 100 at the latest"):
        next(moments)


def test_commands(file: Path, tmp_path: Path) -> None:
    other_suffix = tmp_path / "one.gmr"
    other_suffix.write_bytes(file.read_bytes())
    for path in (file, other_suffix):
        shown = RUNNER.invoke(cli.app, ["show", str(path), "--steps", "120"])
        assert shown.exit_code == 0, shown.output
        assert "tick 120" in shown.output
    last = RUNNER.invoke(cli.app, ["show", str(file), "--steps", "250"])
    assert (last.exit_code, "tick 250" in last.output) == (0, True)
    late = RUNNER.invoke(cli.app, ["show", str(file), "--steps", "251"])
    assert (late.exit_code, "must be at most 250" in late.output) == (2, True)
    other = RUNNER.invoke(cli.app, ["show", str(file), "--seed", "3"])
    assert (other.exit_code, "a replay has its own world" in other.output) == (2, True)
    missing = RUNNER.invoke(cli.app, ["show", str(tmp_path / "none.replay")])
    assert (missing.exit_code, "cannot read" in missing.output) == (2, True)
    target = tmp_path / "new.replay"
    words = ["eval", "toy", "--episodes", "2", "--replay", str(target), "--replays", "2", "--replay-dir", str(tmp_path)]
    done = RUNNER.invoke(cli.app, words)
    assert (done.exit_code, f"wrote {target}" in done.output, "wrote 2 replays" in done.output) == (0, True, True)
    assert len(list(tmp_path.glob("episode-*-*.replay"))) == 2
    twice = RUNNER.invoke(cli.app, ["eval", "toy", "arena", "--episodes", "1", "--replay", str(target)])
    assert (twice.exit_code, "one game and one policy" in twice.output) == (2, True)
    alone = RUNNER.invoke(cli.app, ["eval", "toy", "--episodes", "1", "--replay-values"])
    assert (alone.exit_code, "need --replay" in alone.output) == (2, True)
    ship = RUNNER.invoke(cli.app, ["show", str(recorded(tmp_path / "ship.replay", "prospector", "bot:shuttle"))])
    assert (ship.exit_code, "sector" in ship.output) == (0, True)
    flat = RUNNER.invoke(cli.app, ["show", str(recorded(tmp_path / "flat.replay", "corridor", "random"))])
    assert (flat.exit_code, "which has none" in flat.output) == (2, True)
