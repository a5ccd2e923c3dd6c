"""Cloning from replays: what is learned from is what was played, by whom it should be."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from small_runs import small_run
from tapes import moves
from tiny import EPOCH, berries, difference, epochs_of, tiny

from gridmill import evaluate, games, recipes, replay
from gridmill.config import ConfigError
from gridmill.games.make import make
from gridmill.losses import Recorded
from gridmill.losses.clone import Clone
from gridmill.policy.spec import Spec
from gridmill.run import Run, Value
from gridmill.runs import resume, train
from gridmill.train.recorded import RecordedSteps
from gridmill.train.trainer import Trainer


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three episodes of berries, one of them with a fork in which a person plays agent 1."""
    found = tmp_path_factory.mktemp("replays")
    for seed in range(3):
        tape = replay.record(berries(), seed, moves(20, 2, seed), {"*": "script:x"})
        if seed == 1:
            tape = replay.fork(tape, 0, 12, moves(6, 2, 9), {"1": "human"})
        replay.write(found / f"{seed}.replay", tape)
    return found


def steps(folder: Path, who: tuple[str, ...] = (), segments: int = 1000) -> RecordedSteps:
    with make(berries(), num_worlds=1) as env:
        spec = Spec.of(env)
    return RecordedSteps(Recorded(str(folder / "*.replay"), who), spec, True, 8, segments, 0, "$")


def test_segments_are_what_was_played(folder: Path) -> None:
    """Every step of an episode once, in order, with its observation, mask and action; padding does not count."""
    recorded = steps(folder)
    recorded.episodes = recorded.episodes[:1]
    found = recorded.epoch(0)
    tape = replay.read(folder / "0.replay")
    assert found.obs.shape[:2] == (3 * 2, 8)
    seen = [(env.obs.copy(), np.asarray(env.masks).copy()) for env in tape.play()]
    for tick in range(20):
        for agent in range(2):
            segment, at = 2 * (tick // 8) + agent, tick % 8
            assert np.array_equal(found.obs[segment, at], seen[tick][0][agent])
            assert found.masks is not None
            assert np.array_equal(found.masks[segment, at], seen[tick][1][agent])
            assert int(found.actions[segment, at]) == tape.actions[tick, agent]
    assert found.counted.sum() == 40
    assert found.starts.sum() == 2
    assert found.before.tolist() == [0, 1, 0, 1, 2, 3]
    batch, before = found.minibatch(torch.tensor([3, 0]), torch.device("cpu"))
    assert batch.obs.shape[:2] == (8, 2)
    assert torch.equal(before.obs[:, 0], found.obs[1])
    assert torch.equal(before.obs[:, 1], found.obs[0])


def test_whose_steps(folder: Path) -> None:
    """Of a fork only its own ticks count; those before it only make the state."""
    human = steps(folder, ("human",)).epoch(0)
    assert human.counted.sum() == 6
    assert human.used.tolist() == [1, 2]
    assert steps(folder, ("script",)).epoch(0).counted.sum() == 3 * 40 + 6
    assert steps(folder, ("script:x", "human")).epoch(0).counted.sum() == 3 * 40 + 12
    with pytest.raises(ConfigError, match="expected steps of policy in 3 files, got none"):
        steps(folder, ("policy",))


def test_an_epoch_takes_no_more_than_a_rollout(folder: Path) -> None:
    few = steps(folder, segments=4)
    sizes = {len(few.epoch(number).used) for number in range(8)}
    assert max(sizes) <= 6
    assert torch.equal(few.epoch(3).obs, few.epoch(3).obs)
    orders = {tuple(few.epoch(number).obs.flatten().tolist()[:400]) for number in range(8)}
    assert len(orders) > 1
    assert sorted(few.epoch(0).order(7, np.random.default_rng(0)).tolist())[0] == 0


def test_of_a_long_episode_an_epoch_takes_a_window(tmp_path: Path) -> None:
    """However long a stranger's file is, and however deep its forks: memory is that of a rollout."""
    game = berries().replace("max_steps", 400)
    tape = replay.record(game, 0, moves(400, 2), {"*": "script:x"})
    tape = replay.fork(tape, 0, 393, moves(3, 2, 9), {"*": "human"})
    replay.write(tmp_path / "long.replay", tape)
    seen = [(env.obs.copy(), np.asarray(env.masks).copy()) for env in tape.play()]
    recorded, firsts = steps(tmp_path, ("script",), segments=4), set()
    for number in range(8):
        found = recorded.epoch(number)
        assert found.masks is not None
        before = int(len(found.before) == 5)  # the segment whose end the state comes from, if there is one
        assert len(found.before) == 4 + before
        assert found.used.tolist() == list(range(before, 4 + before))
        assert int(found.starts.sum()) == 1 - before
        assert found.before.tolist() == [0, *range(len(found.before) - 1)]
        actions = found.actions.flatten().tolist()
        first, agent = next(
            (tick, agent)
            for tick in range(0, 400, 8)
            for agent in range(2)
            if tape.actions[tick : tick + len(actions), agent].tolist() == actions
        )
        for at, tick in enumerate(range(first, first + len(actions))):
            assert np.array_equal(found.obs.flatten(0, 1)[at], seen[tick][0][agent])
            assert np.array_equal(found.masks.flatten(0, 1)[at], seen[tick][1][agent])
        firsts.add(first)
    assert len(firsts) > 4
    deep = steps(tmp_path, ("human",), segments=4).epoch(0)
    assert (len(deep.before), deep.used.tolist(), int(deep.counted.sum())) == (4, [2, 3], 6)


def test_a_file_in_which_nobody_does_anything_is_refused(tmp_path: Path) -> None:
    with make(berries(), num_worlds=1) as env:
        none = moves(16, 2) * 0 + env.num_actions
    replay.write(tmp_path / "a.replay", replay.record(berries(), 0, none, {"*": "script:x"}))
    said = r"^replay: expected actions to learn from, got none - in `.*a.replay`$"
    with pytest.raises(replay.ReplayError, match=said):
        steps(tmp_path).epoch(0)
    none[3, 1] = 0  # agent 1, whoever else is drawn
    replay.write(tmp_path / "a.replay", replay.record(berries(), 0, none, {"*": "script:x"}))
    assert all(steps(tmp_path, segments=1).epoch(number).counted.sum() == 1 for number in range(4))


def clone(folder: Path, epochs: int = 4, **changes: Any) -> Run:
    own = {"losses__clone": Clone(replays=str(folder / "*.replay")), "supervised_steps": 10**6}
    return tiny(epochs, **own | changes)


@pytest.mark.parametrize("encoder", ["bag", "cnn", "attend"])
def test_any_encoder_learns_from_them(tmp_path: Path, encoder: str) -> None:
    """Somebody who always does the same."""
    replay.write(tmp_path / "a.replay", replay.record(berries(), 0, moves(20, 2, 0, 1) + 2, {"*": "human"}))
    trainer = Trainer(clone(tmp_path, policy__encoder=encoder, optimizer__learning_rate=0.01, trainer__masks=False))
    found = [trainer.epoch() for _ in range(4)]
    trainer.close()
    assert found[-1]["loss/clone"] < 0.5 * found[0]["loss/clone"]
    assert found[-1]["teacher/agreement"] > 0.99
    assert "loss/policy" not in found[0]


def test_alone_it_needs_no_forward_of_the_rollout(folder: Path) -> None:
    trainer = Trainer(clone(folder, losses={"clone": Clone(replays=str(folder / "0.replay"))}))
    metrics = trainer.epoch()
    trainer.close()
    assert 0 < metrics["loss/clone"] < 5


def test_a_resumed_run_is_equal_to_the_bit(folder: Path, tmp_path: Path) -> None:
    changes = {"losses": {"value": Value(), "clone": Clone(replays=str(folder / "*.replay"))}, "checkpoint__epochs": 2}
    whole = train(clone(folder, 4, **changes), tmp_path / "a", panel=False).folder
    half = train(clone(folder, 2, **changes), tmp_path / "b", panel=False).folder
    resume(half, [f"trainer.total_timesteps={4 * EPOCH}"], panel=False)
    assert difference(whole, half) == 0.0
    assert evaluate.run_of(whole).game == berries()  # who only looks at a run needs neither its losses nor their files
    assert [r["loss/clone"] for r in epochs_of(whole)] == [r["loss/clone"] for r in epochs_of(half)]


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"lead": 0.5, "replays": "x"}, "expected 0 with replays, where no teacher can act, got a share"),
        ({"who": ("human",)}, "expected replays to choose from, got none"),
    ],
)
def test_what_does_not_fit_together(changes: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        tiny(2, losses__clone=changes)


def test_what_is_no_action_does_not_count(tmp_path: Path) -> None:
    actions = moves(16, 2)
    with make(berries(), num_worlds=1) as env:
        actions[3, 1] = env.num_actions
    replay.write(tmp_path / "a.replay", replay.record(berries(), 0, actions, {"*": "script:x"}))
    found = steps(tmp_path).epoch(0)
    assert found.counted.sum() == 31
    assert found.counted[1, 3] == 0
    assert int(found.actions.max()) < 5


def test_a_file_that_plays_otherwise_is_named(tmp_path: Path) -> None:
    """Hashes are compared when an epoch plays a file: who reads the error must know which of many it is."""
    tape = replay.record(berries(), 0, moves(16, 2), {"*": "script:x"})
    own = tape.branches[0]
    lying = dataclasses.replace(tape, branches=(dataclasses.replace(own, hashes=("0" * 16,)),))
    replay.write(tmp_path / "lies.replay", lying)
    with pytest.raises(
        replay.ReplayError, match=r"differently, at tick 0 at the latest - in `.*lies.replay`, branch 0"
    ):
        steps(tmp_path).epoch(0)
    path = tmp_path / "lies.replay"
    head, _, body = path.read_bytes().partition(b'"game":{')
    path.write_bytes(head + b'"game":{"no_such_key":1,' + body)
    with pytest.raises(ConfigError, match=r"cannot make its game.* in `.*lies.replay`"):
        steps(tmp_path)


def test_agents_of_many_branches_are_not_listed_one_by_one(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where all agents of a branch are meant, or none is, keys say so; a small file may have very many."""
    monkeypatch.delattr(replay.Replay, "who")
    found = steps(folder).episodes
    assert len(found) == 4
    assert all(episode.agents.tolist() == [0, 1] for episode in found)
    assert [(e.branch, e.agents.tolist()) for e in steps(folder, ("human",)).episodes] == [(1, [1])]


def test_files_that_cannot_be_learned_from(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"found none that match '/none/.*at `\$.losses.clone.replays`"):
        Trainer(tiny(2, losses__clone=Clone(replays="/none/*.replay")))
    (tmp_path / "bad.replay").write_text("bad")
    with pytest.raises(ConfigError, match="begins with"):
        Trainer(tiny(2, losses__clone=Clone(replays=str(tmp_path / "*.replay"))))
    run = small_run(games.arena_basic_easy_shaped(num_agents=6, max_steps=40))
    with pytest.raises(ConfigError, match="got berries with other actions"):
        Trainer(run.replace("losses.clone", {"replays": str(folder / "*.replay")}))


@pytest.mark.long
def test_ten_episodes_become_a_clone(tmp_path: Path) -> None:
    """The arena's script, ten episodes of it: the clone takes more than half of its hearts (21 of 25)."""
    game = games.build("arena_basic_easy_shaped")
    asked = evaluate.ReplayOptions(None, tmp_path / "replays", 10)
    script = evaluate.evaluate(game, "script:arena", 10, 1, replay=asked).score.mean
    run = recipes.build("arena_basic_easy_shaped").replace_all(
        [
            ("losses.clone", {"replays": str(tmp_path / "replays" / "*.replay")}),
            ("supervised_steps", 10**9),
            ("trainer.total_timesteps", 2_000_000),
        ]
    )
    folder = train(run, tmp_path, panel=False).folder
    clone = evaluate.evaluate(game, str(folder), 10, 2).score.mean
    assert clone > script / 2
