"""What if: forks of a moment part only by chance and by the action, and the figures are those of the rollouts."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tapes import moves, small
from tiny import berries, tiny
from typer.testing import CliRunner

from gridmill import cli, evaluate, games, replay
from gridmill.env import Env
from gridmill.evaluate import ReplayOptions
from gridmill.games.make import make
from gridmill.replay import ReplayError
from gridmill.runs import train
from gridmill.whatif import QUANTILES, lines, what_if
from gridmill.whatif.players import ScriptPlayer

RUNNER = CliRunner()


def test_reseeded_worlds_part_and_equal_seeds_do_not() -> None:
    """Forks of one world draw by their seed from then on; what was stays. In every kind of game that draws."""
    for name in ("arena_basic_easy_shaped", "prospector"):
        with make(name, num_worlds=4, seed=1) as env:
            env.reset()
            for _ in range(3):
                env.step(np.full(env.num_rows, 6, np.int32))
            env.restore(env.save([0]), range(4))
            env.reseed([1, 2, 3], [5, 5, 6])
            before = env.obs.reshape(4, -1).copy()
            assert (before == before[0]).all()
            rng = np.random.default_rng(0)
            for _ in range(20):
                env.step(np.tile(rng.integers(0, 7, env.num_agents, dtype=np.int32), 4))
            rows = env.obs.reshape(4, -1)
            assert np.array_equal(rows[1], rows[2])
            assert not np.array_equal(rows[0], rows[1])
            assert not np.array_equal(rows[1], rows[3])
            with pytest.raises(ValueError, match="2 worlds but 1 seeds"):
                env.reseed([0, 1], [1])
            with pytest.raises(ValueError, match="world 4 is not in"):
                env.reseed([4], [1])


def test_what_is_no_action_is_not_the_last_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """A script that wants nothing its game has takes no action by any chance, and one that was taken has no regret."""
    game = games.build("arena_basic_easy_shaped").replace("max_steps", 20)
    with make(game, num_worlds=1) as env:
        count = env.num_actions
    tape = replay.record(game, 0, np.full((4, game.num_agents), count), {"*": "script:arena"})
    monkeypatch.setattr(Env, "teacher_actions", np.full(game.num_agents, -1, np.int32), raising=False)
    chances = ScriptPlayer("arena").watch(tape, 0, 2, 0).chances
    assert chances is not None
    assert not chances.any()
    monkeypatch.undo()
    found = what_if(tape, tick=2, agent=0, policy="random", rollouts=2, horizon=2)
    assert (found.recorded, found.regret) == (None, None)
    assert len(lines(found)) > 4


def test_names_of_strangers_are_escaped() -> None:
    tape = replay.record(games.corridor(length=4, max_steps=4), 0, [[2], [2], [0], [2]], {"*": "human"})
    found = what_if(tape, tick=2, agent=0, policy="random", rollouts=2)
    evil = "\x1b[2J\ud800" + "x" * 300
    outcomes = tuple(replace(outcome, name=evil) for outcome in found.outcomes)
    shown = lines(replace(found, game=evil, policy=evil, outcomes=outcomes))
    assert all(line.isprintable() and len(line) < 600 for line in shown)
    assert any("\\x1b[2J\\ud800" in line for line in shown)


def test_a_game_whose_returns_are_known() -> None:
    """One cell before the end of the corridor: right is worth 1 at once, left and waiting later or never."""
    game = games.corridor(length=4, max_steps=4)
    tape = replay.record(game, 0, [[2], [2], [0], [2]], {"*": "human"})
    found = what_if(tape, tick=2, agent=0, policy="random", rollouts=200)
    stay, left, right = found.outcomes
    assert (right.mean, right.se, right.name) == (1.0, 0.0, "right")
    assert left.mean == 0.0
    assert stay.mean == pytest.approx(1 / 3, abs=0.12)
    assert stay.se == pytest.approx(np.sqrt(2 / 9 / 200), rel=0.2)
    assert (found.best, found.recorded, found.ticks) == (2, 0, 2)
    assert found.regret == pytest.approx(1 - stay.mean)
    assert len(stay.quantiles) == len(QUANTILES)
    assert found == what_if(tape, 2, 0, "random", 200, threads=1)
    assert found != what_if(tape, 2, 0, "random", 200, seed=1)


def test_a_script_goes_on_as_it_would_have() -> None:
    """Where nothing is drawn, the action that the script takes anyway leads where the recorded episode went."""
    game = games.build("arena_basic_easy_shaped").replace("max_steps", 120)
    tape = replay.record(game, 3, np.zeros((120, 24), int), {"*": "human"})
    found = what_if(tape, 60, 5, "script:arena", rollouts=4, horizon=30)
    chosen = [one for one in found.outcomes if one.chance]
    assert [one.chance for one in chosen] == [1.0]
    assert found.policy == "script:arena"
    failing = [one for one in found.outcomes if not one.possible]
    assert failing
    assert len({(one.mean, one.se) for one in failing} | {(found.outcomes[0].mean, found.outcomes[0].se)}) == 1


def test_what_cannot_be_asked() -> None:
    tape = small(ticks=60, forks=1)
    for changes, said in (
        ({"agent": 2}, r"agent: expected one in \[0, 2\)"),
        ({"tick": 60}, r"tick: expected one in \[0, 59\]"),
        ({"rollouts": 1}, "rollouts: expected at least 2"),
        ({"rollouts": 10**12}, "rollouts: expected at most 100000, got 1000000000000"),
        ({"seed": -1}, r"seed: expected an int in \[0, 2\*\*64\), got -1"),
        ({"policy": "script:none"}, "no script `none`"),
        ({"policy": ""}, "no script `x`"),
        ({"branch": 3}, "expected a branch in"),
        ({"policy": "/none"}, "which is neither on this machine nor in the file"),
    ):
        asked: dict[str, Any] = {"tick": 5, "agent": 0, "policy": "random"} | changes
        with pytest.raises(ValueError, match=said):
            what_if(tape, **asked)


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return train(tiny(1, trainer__reward="raw"), tmp_path_factory.mktemp("runs"), panel=False).folder


def test_another_policy_of_the_same_name_is_not_taken_for_it(trained: Path, tmp_path: Path) -> None:
    """The run was trained on, or lies on another machine: its critic was compared as if it had played."""
    path = tmp_path / "a.replay"
    evaluate.evaluate(berries(), str(trained), 2, 0, replay=ReplayOptions(path))
    tape = replay.read(path)
    assert tape.played_by is not None
    assert what_if(tape, 10, 1, rollouts=2) == what_if(tape, 10, 1, str(trained), rollouts=2)
    other = replace(tape, played_by=replace(tape.played_by, hash="0" * 64))
    with pytest.raises(ValueError, match=r"^whatif: the file was played by `.*` with weights 000000000000, those here"):
        what_if(other, 10, 1, rollouts=2)
    what_if(other, 10, 1, str(trained), rollouts=2)


def test_a_policy_in_the_file_plays_on(trained: Path, tmp_path: Path) -> None:
    """With its weights, values and probabilities; the same as from its folder, and the critic is compared."""
    path = tmp_path / "a.replay"
    evaluate.evaluate(berries(), str(trained), 2, 0, replay=ReplayOptions(path, weights=True, values=True))
    tape = replay.read(path)
    branch = tape.branches[0]
    assert branch.values is not None
    assert branch.probabilities is not None
    shares = np.frombuffer(branch.probabilities.unpack(), "u1").reshape(20, 2, -1).sum(-1)
    assert (np.abs(shares.astype(int) - 255) <= 3).all()
    assert tape.played_by is not None
    assert (tape.played_by.gamma, tape.played_by.reward_scale) == (0.99, 1.0)
    inside = what_if(tape, 10, 1, rollouts=4)
    outside = what_if(tape, 10, 1, str(trained), rollouts=4)
    assert inside.outcomes == outside.outcomes
    value = np.frombuffer(branch.values.unpack(), "<f4").reshape(20, 2)[10, 1]
    assert inside.value == pytest.approx(value, abs=1e-5)
    assert inside.critic_error == pytest.approx(inside.value - (inside.expected or 0))
    assert sum(one.chance or 0 for one in inside.outcomes) == pytest.approx(1)
    done = RUNNER.invoke(cli.app, ["whatif", str(path), "--tick", "10", "--agent", "1", "--rollouts", "2", "--json"])
    assert done.exit_code == 0, done.output
    assert len(json.loads(done.output)["outcomes"]) == len(tape.action_names)
    shown = lines(inside)
    assert max(map(len, shown)) <= 80
    assert shown[-1].startswith("critic ")


def test_a_policy_of_a_stranger(trained: Path, tmp_path: Path) -> None:
    """It may not name code, claim other sizes or hold numbers that are none."""
    path = tmp_path / "a.replay"
    evaluate.evaluate(berries(), str(trained), 1, 0, replay=ReplayOptions(path, weights=True))
    tape = replay.read(path)
    record = tape.played_by
    assert record is not None
    assert record.config is not None
    assert record.spec is not None
    assert record.weights is not None
    data = bytearray(record.weights.unpack())
    data[:4] = np.float32(np.nan).tobytes()
    for changes, said in (
        ({"config": {**record.config, "encoder": "evil.py:Thing"}}, "may not name custom code"),
        ({"config": {**record.config, "core": "os:system"}}, "may not name custom code"),
        ({"config": {**record.config, "hidden": 4096}}, "weights for its settings"),
        ({"spec": {**record.spec, "window": [10**6, 10**6]}}, "it has more words than any game"),
        (
            {"spec": {**record.spec, "normalizers": [1e30] * len(record.spec["normalizers"])}},
            "it has more words than any game",
        ),
        ({"spec": {"kind": "tokens"}}, "cannot be made"),
        ({"tensors": record.tensors[::-1][1:]}, "its tensors are not those that its settings require"),
        ({"weights": replay.pack(bytes(data))}, "finite weights"),
    ):
        bad = replace(tape, played_by=replace(record, **changes))
        with pytest.raises(ReplayError, match=said):
            what_if(bad, 5, 0, rollouts=2)


def test_at_the_first_tick_and_after_the_last() -> None:
    tape = replay.record(berries(), 0, moves(12, 2), {"*": "random"}, replay.PolicyRecord("random"))
    assert what_if(tape, 0, 0, rollouts=2).ticks == 20
    late = what_if(tape, 12, 0, rollouts=2, horizon=3)
    assert (late.recorded, late.regret, late.ticks) == (None, None, 3)
