"""`replay check`: equal files are equal, and the first tick that differs is named, whatever it is that differs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tapes import moves, small
from tiny import berries
from typer.testing import CliRunner

from gridmill import cli, games, replay
from gridmill.games.make import make
from gridmill.prospector.actions import ACTION_NAMES
from gridmill.replay import tools
from gridmill.replay.blocks import pack
from gridmill.replay.playback import Playback, state_hash
from gridmill.replay.tape import Branch, Keyframe, Replay

RUNNER = CliRunner()


def with_branch(tape: Replay, number: int, **changes: Any) -> Replay:
    branch: Branch = replace(tape.branches[number], **changes)
    return replace(tape, branches=(*tape.branches[:number], branch, *tape.branches[number + 1 :]))


def flipped(tape: Replay, tick: int, number: int = 0, agent: int = 0) -> Replay:
    """With another action at a tick, and all that the file says of it as it was."""
    actions = tape.branches[number].actions.copy()
    actions[tick, agent] = (actions[tick, agent] + 1) % len(tape.action_names)
    return with_branch(tape, number, actions=actions)


def first(tape: Replay) -> tuple[Any, ...]:
    finding = replay.check(replay.decode(replay.encode(tape)))[0]
    return finding.tick, finding.since, finding.difference


@pytest.fixture(scope="module")
def tape() -> Replay:
    return small(ticks=320)


def test_equal(tape: Replay) -> None:
    found = replay.check(tape)
    assert [finding.equal for finding in found] == [True, True, True]
    assert [(f.ticks, f.hashes, f.checks, f.keyframes) for f in found] == [
        (320, 5, 320, 6), (280, 4, 280, 6), (230, 4, 230, 5),
    ]  # fmt: skip
    replay.expect_equal(tape)


@pytest.mark.parametrize("tick", [0, 100, 200, 300, 319])
def test_a_flipped_action_is_named(tape: Replay, tick: int) -> None:
    """Every hundredth and the last, also where the world does not care."""
    assert first(flipped(tape, tick)) == (tick, tick, "its actions are not those that were recorded")


@pytest.mark.parametrize("game", ["arena_basic_easy_shaped", "prospector", "corridor"])
def test_a_flipped_action_of_every_kind_of_game(game: str) -> None:
    built = games.build(game)
    with_end = {"corridor": 50}.get(game, 210)
    played = built.replace("max_steps", 210) if game.startswith("arena") else built
    wait = ACTION_NAMES.index("hold") if game == "prospector" else 0
    actions = np.full((with_end, built.num_agents), wait)
    whole = replay.record(played, 3, actions, {"*": "human"})
    for tick in sorted({0, *range(0, with_end, 100), with_end - 1}):
        assert first(flipped(whole, tick))[:2] == (tick, tick)


def test_without_checks_the_hundred_is_named(tape: Replay) -> None:
    """From the last hash that is equal to the first that is not; the end has a hash of its own."""
    bare = with_branch(tape, 0, checks=None, keyframes=())
    said = "this build plays it differently, or its actions were changed"
    assert first(flipped(bare, 100)) == (199, 100, said)
    assert first(flipped(bare, 250)) == (299, 200, said)
    assert first(flipped(bare, 319)) == (319, 300, said)
    assert replay.check(bare)[0].equal


def test_another_build_is_told_from_changed_actions(tape: Replay) -> None:
    """The checks of actions fit, those of the states do not: here, because the seed is another."""
    finding = replay.check(replace(tape, seed=8))[0]
    assert (finding.tick, finding.difference) == (0, "this build plays it differently, or its actions were changed")
    checks = tape.branches[0].checks
    assert checks is not None
    other = checks.copy()
    other[123] ^= 1
    assert first(with_branch(tape, 0, checks=other)) == (123, 123, "this build plays it differently")


def test_an_end_that_is_none(tape: Replay) -> None:
    assert first(with_branch(tape, 0, ended=False))[2] == "the episode ends there"
    shorter = replay.check(replace(tape, branches=(tools.cut(tape, 200).branches[0],)))
    assert shorter[0].equal
    said = with_branch(tools.cut(tape, 200), 0, ended=True)
    assert first(said)[2] == "the episode does not end there"


def test_a_keyframe_that_lies_is_found_and_not_played(tape: Replay) -> None:
    frames = tape.branches[0].keyframes
    lie = (frames[0], Keyframe(100, frames[3].state), *frames[2:])
    lying = with_branch(tape, 0, keyframes=lie)
    assert first(lying) == (100, 100, "its keyframe is not the state that its actions lead to")
    for broken in (lying, with_branch(tape, 0, keyframes=(frames[0], Keyframe(100, pack(b"nothing")), *frames[2:]))):
        with replay.Playback(broken) as playback, replay.Playback(tape) as honest:
            playback.seek(130)
            honest.seek(130)
            assert np.array_equal(playback.env.state_hash(), honest.env.state_hash())


@pytest.mark.parametrize("name", ["toy", "prospector", "corridor"])
def test_what_is_no_action_plays_again(name: str) -> None:
    """A script may say -1: the file has the number after the last action, and comes to the same hashes."""
    game = games.build(name)
    rng = np.random.default_rng(0)
    with make(game, num_worlds=1, seed=5) as env:
        env.reset()
        recorder, hashes = replay.Recorder(env), list[str]()
        for _ in range(12):
            env.step(rng.choice([-1, 0, 1, env.num_actions, 2**31 - 1], env.num_rows).astype(np.int32))
            recorder.after(env)
            hashes.append(state_hash(env))
        actions, count = recorder.actions(0, 12), env.num_actions
    assert set(np.unique(actions)) == {0, 1, count}
    tape = replay.decode(replay.encode(replay.record(game, 5, actions, {"*": "script:x"})))
    assert all(finding.equal for finding in replay.check(tape))
    with Playback(tape) as playback:
        for came in hashes:
            playback.step()
            assert state_hash(playback.env) == came
    with pytest.raises(replay.ReplayError, match="do not fit"):
        replay.record(game, 5, np.full((1, tape.agents), count + 1), {})


@pytest.mark.X5
def test_thousands_of_keyframes_that_lie_are_not_all_tried(tape: Replay, monkeypatch: pytest.MonkeyPatch) -> None:
    """After a few of no use the ticks are played, which is what keyframes should save."""
    lies = tuple(Keyframe(1 + number // 100, pack(b"nothing")) for number in range(10_000))
    tried = list[int]()
    restore = Playback._restore

    def counted(playback: Playback, frame: Keyframe) -> bool:
        tried.append(frame.tick)
        return restore(playback, frame)

    monkeypatch.setattr(Playback, "_restore", counted)
    with Playback(with_branch(tape, 0, keyframes=lies)) as playback, Playback(tape) as honest:
        for tick in (130, 20, 110):
            playback.seek(tick)
            assert len(tried) == 4
        monkeypatch.undo()
        honest.seek(110)
        assert state_hash(playback.env) == state_hash(honest.env)


def test_seeking_is_playing(tape: Replay) -> None:
    """Any tick in any order, by keyframes, equals the world that was played from the beginning."""
    hashes = [int(env.state_hash()[0]) for env in tape.play(2)]
    assert len(hashes) == 310
    with replay.Playback(tape, 2) as playback:
        for tick in (299, 3, 250, 251, 120, 79, 80, 0, 309):
            playback.seek(tick)
            assert int(playback.env.state_hash()[0]) == hashes[tick]
        with pytest.raises(replay.ReplayError, match=r"a tick in \[0, 310\]"):
            playback.seek(311)


def test_forks_of_a_branch_that_differs_are_not_reached(tape: Replay) -> None:
    found = replay.check(flipped(tape, 50))
    assert [finding.equal for finding in found] == [False, True, True]  # they leave at 40
    found = replay.check(flipped(tape, 20))
    assert [finding.tick for finding in found] == [20, 40, 80]
    assert "not reached" in found[2].difference
    found = replay.check(flipped(tape, 100, number=1))
    assert [(f.branch, f.tick) for f in found if not f.equal] == [(1, 140)]


def test_commands(tape: Replay, tmp_path: Path) -> None:
    good, bad = tmp_path / "good", tmp_path / "bad"
    replay.write(good, tape)
    replay.write(bad, flipped(tape, 200))
    done = RUNNER.invoke(cli.app, ["replay", "check", str(good)])
    assert (done.exit_code, "equal, 3 branches, 830 ticks, 13 hashes" in done.output) == (0, True), done.output
    done = RUNNER.invoke(cli.app, ["replay", "check", str(good), str(bad)])
    assert done.exit_code == 2
    assert "branch 0 differs at tick 200: its actions are not those that were recorded" in done.output
    done = RUNNER.invoke(cli.app, ["replay", "check", "--json", str(bad), str(tmp_path / "none")])
    assert done.exit_code == 2
    assert '"tick": 200' in done.output
    assert "cannot read" in done.output
    done = RUNNER.invoke(cli.app, ["replay", "info", str(good)])
    assert (done.exit_code, "branch 2  from branch 1 at tick 80, 230 ticks" in done.output) == (0, True), done.output
    assert max(map(len, done.output.splitlines())) <= 80
    done = RUNNER.invoke(cli.app, ["replay", "info", "--json", str(good)])
    assert '"fork_tick": 80' in done.output


def test_cut_and_merge(tape: Replay, tmp_path: Path) -> None:
    """What is cut plays and is checked; merged files share what they have in common."""
    whole, one, two = tmp_path / "whole", tmp_path / "one", tmp_path / "two"
    replay.write(whole, tape)
    for branch, target in ((0, one), (2, two)):
        words = ["replay", "cut", str(whole), "--to", "150", "--branch", str(branch), "-o", str(target)]
        done = RUNNER.invoke(cli.app, words)
        assert done.exit_code == 0, done.output
    cut = replay.read(two)
    assert (len(cut.branches), cut.branches[0].ticks, cut.who()) == (1, 150, ["script:x", "human"])
    done = RUNNER.invoke(cli.app, ["replay", "merge", str(one), str(two), str(one), "-o", str(tmp_path / "both")])
    assert done.exit_code == 0, done.output
    both = replay.read(tmp_path / "both")
    assert len(both.branches) == 2
    assert both.branches[1].parent == 0
    parting = int(np.flatnonzero((both.actions[:150] != cut.actions).any(1))[0])
    assert both.branches[1].fork_tick == parting >= 40
    assert np.array_equal(both.actions_along(1), cut.actions)
    assert all(finding.equal for finding in replay.check(both))
    other = tmp_path / "other"
    replay.write(other, replay.record(berries(), 8, moves(5, 2), {}))
    for words, said in (
        (["merge", str(one), str(other), "-o", str(whole)], "of the same game and seed"),
        (["cut", str(one), "--to", "151", "-o", str(whole)], "a cut at a tick in [1, 150]"),
        (["cut", str(one), "--to", "5", "--branch", "4", "-o", str(whole)], "expected a branch in [0, 1)"),
    ):
        done = RUNNER.invoke(cli.app, ["replay", *words])
        assert (done.exit_code, said in done.output) == (2, True), done.output
