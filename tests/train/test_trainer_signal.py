"""`trainer.signal`: the learner learns from it, everything else goes on seeing the game's rewards."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tiny import berries, difference, epochs_of, tiny, without_times

import gridmill
from gridmill.config import ConfigError
from gridmill.run import Run, Schedule, SignalTerm
from gridmill.runs import dry_run, overrides, resume, train
from gridmill.train.trainer import BrokenNumbers, Trainer

GOT = (SignalTerm(value="berry.get", weight=0.1),)  # what the game of `tiny` pays, by another name
WALKED = (SignalTerm(value="cell.visited", weight=1.0), SignalTerm(value="berry.get", weight=-0.5))


def weights(run: Run, epochs: int = 3) -> tuple[dict[str, torch.Tensor], list[dict[str, Any]]]:
    trainer = Trainer(run)
    metrics = [trainer.epoch() for _ in range(epochs)]
    found = trainer.weights()
    trainer.close()
    return found, metrics


def equal(one: dict[str, torch.Tensor], other: dict[str, torch.Tensor]) -> bool:
    return all(torch.equal(tensor, other[name]) for name, tensor in one.items())


@pytest.mark.parametrize("reward", ["raw", "scaled", "centered"])
def test_a_signal_equal_to_the_reward_learns_the_same(reward: str) -> None:
    """Nobody loses berries here, so what is got is what is held: the same weights to the bit."""
    paid, metrics = weights(tiny(trainer__reward=reward))
    unpaid = tiny(trainer__reward=reward, trainer__signal=GOT)
    learned, others = weights(unpaid)
    assert equal(paid, learned)
    assert [m["signal"] for m in others] == [m["reward"] for m in metrics]
    assert all("signal" not in m for m in metrics)


def test_it_replaces_the_reward_and_leaves_it_as_a_metric() -> None:
    plain, before = weights(tiny())
    other, after = weights(tiny(trainer__signal=WALKED))
    assert not equal(plain, other)
    assert before[0]["reward"] == after[0]["reward"]  # the first rollout is the same: nothing was learned yet
    assert after[0]["signal"] != after[0]["reward"]


def test_a_weight_follows_its_schedule() -> None:
    """Twice the weight from the second epoch on: what is learned from is twice what the game pays."""
    epoch = tiny().trainer.batch_size
    rising = Schedule(start=0.1, end=0.2, begin=epoch - 1, until=epoch)
    _, metrics = weights(tiny(trainer__signal=(SignalTerm(value="berry.get", weight=rising),)))
    assert metrics[0]["signal"] == metrics[0]["reward"] > 0
    for later in metrics[1:]:
        assert later["signal"] == pytest.approx(2 * later["reward"])
        assert later["reward"] > 0


def test_threads_and_lanes_make_no_difference() -> None:
    first, _ = weights(tiny(trainer__signal=WALKED))
    second, _ = weights(tiny(trainer__signal=WALKED, trainer__threads=2))
    assert equal(first, second)


def test_it_resumes_to_the_bit(tmp_path: Path) -> None:
    """Windows with a sum of the signal too."""
    changes: dict[str, Any] = {"trainer__signal": WALKED, "trainer__window_env_steps": 37}
    whole = train(tiny(6, run="whole", **changes), tmp_path, panel=False).folder
    train(tiny(3, run="half", **changes), tmp_path, panel=False)
    half = resume(tmp_path / "half", ["trainer.total_timesteps=768"], panel=False).folder
    assert difference(whole, half) == 0
    ours, theirs = ([without_times(r) for r in epochs_of(folder)] for folder in (whole, half))
    assert [r for r in ours if "window" in r] == [r for r in theirs if "window" in r]
    windows = [r["window"] for r in ours if "window" in r]
    assert len(windows) > 3
    assert all(w["signal"] != w["reward"] for w in windows)
    total = sum(w["signal"] for w in windows)
    steps = sum(w["env_steps"] for w in windows) * 2
    means = [r["signal"] for r in ours if "signal" in r]
    assert total / steps == pytest.approx(float(np.mean(means)), rel=0.1)


def test_a_signal_that_is_given_later(tmp_path: Path) -> None:
    """Worlds are saved without it, so a run may be resumed with another one, or with its first."""
    train(tiny(2, run="one", trainer__window_env_steps=37), tmp_path, panel=False)
    more = ["trainer.total_timesteps=512", 'trainer.signal=[{"value": "cell.visited", "weight": 2}]']
    result = resume(tmp_path / "one", more, panel=False)
    assert (result.exit_code, result.epochs) == (0, 4)
    assert epochs_of(result.folder)[-1].get("signal", 0) > 0


@pytest.mark.N1
def test_a_signal_that_is_no_number_stops_the_run() -> None:
    trainer = Trainer(tiny(trainer__signal=WALKED))
    trainer.rollout.collect()
    trainer.experience.signal[5, 3] = float("nan")
    with pytest.raises(BrokenNumbers, match=r"^signal of row 3 \(world 1\) is nan at step 5 of the run"):
        trainer._episodes()
    trainer.close()


def test_it_is_a_setting_like_others() -> None:
    run = overrides.apply(
        tiny(), ['trainer.signal=[{"value": "berry.get", "weight": 1}]', "trainer.signal.0.weight=0.1"]
    )
    assert run.trainer.signal == GOT
    assert Run.load(run.tree()) == run
    assert " trainer.signal.0.value = berry.get" in dry_run.page(run, run, "none")
    wrong = overrides.apply(run, ["trainer.signal.0.value=berry.got"])
    with pytest.raises(ValueError, match=r"unknown statistic `berry.got`; did you mean `berry.get`\? - at"):
        Trainer(wrong)
    with pytest.raises(ConfigError, match=r"trainer\.signal\[0\]"):
        overrides.apply(run, ['trainer.signal=[{"stat": "berry.get", "weight": 1}]'])


def test_evaluation_plays_the_game_as_it_is() -> None:
    run = tiny(trainer__signal=WALKED)
    assert run.played_game == tiny().game
    with gridmill.make(run.played_game, num_worlds=1) as env:
        assert env.signal is None


def test_weights_follow_their_schedule() -> None:
    """A weight that goes from 0 to 2: what is learned from in each epoch is that epoch's weight times what happened."""
    plain = tiny(4, trainer__signal=[{"value": "berry.get", "weight": 1.0}], trainer__reward="raw")
    moving = plain.replace("trainer.signal.0.weight", {"start": 0.0, "end": 2.0, "over": "epochs"})
    fixed, changing = Trainer(plain), Trainer(moving)
    first = changing.epoch()
    assert first["signal"] == 0.0
    assert fixed.epoch()["signal"] > 0.0
    for epoch in range(1, 4):
        seen = changing.progress().at(moving.trainer.signal[0].weight)
        assert seen == pytest.approx(epoch / 2)
        changing.epoch()
        got = changing.experience.signal / seen  # berries: a bush may give several
        assert torch.equal(got, got.round())
        assert got.any()
    fixed.close()
    changing.close()


def test_wrong_weights_are_refused() -> None:
    with gridmill.make(berries(), num_worlds=2, signal=[SignalTerm(value="berry.get", weight=1.0)]) as env:
        with pytest.raises(ValueError, match=r"^signal: expected 1 weights, got 2$"):
            env.weigh_signal([1.0, 2.0])
        with pytest.raises(ValueError, match=r"^signal: expected weights within \+-1e12, got nan$"):
            env.weigh_signal([math.nan])
