"""Imitation: its value by hand, what it asks of the teacher and when, and the rows that the teacher leads."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from small_runs import hash_of
from taught import EPOCH, taught
from tiny import difference, epochs_of, tiny

from gridmill import recipes
from gridmill.config import ConfigError
from gridmill.config.schedule import Progress, Schedule
from gridmill.losses import Minibatch
from gridmill.losses.clone import Clone
from gridmill.policy.network import FORBIDDEN, Output
from gridmill.run import PPO, Run, Value
from gridmill.runs import resume, train
from gridmill.train.trainer import Trainer

NOTHING, NOW = torch.zeros(0), Progress(0, 1, 0, 1)


def out_of(chances: list[list[float]]) -> Output:
    logits = torch.tensor([chances]).log().clamp(min=FORBIDDEN).requires_grad_()
    return Output(logits, torch.zeros(1, len(chances)), NOTHING, NOTHING)


def test_its_value_by_hand() -> None:
    out = out_of([[0.5, 0.25, 0.25], [0.1, 0.1, 0.8]])
    batch = Minibatch(teacher_actions=torch.tensor([[1, 2]], dtype=torch.int32), weights=torch.tensor([1.0, 0.5]))
    loss, metrics = Clone()(batch, out, NOW)
    assert float(loss.detach()) == pytest.approx(-(np.log(0.25) + 0.5 * np.log(0.8)) / 2)
    assert {name: float(number) for name, number in metrics.items()} == {
        "loss/clone": pytest.approx(float(loss.detach())),
        "teacher/agreement": 0.5,
    }


def test_what_a_mask_forbids_is_not_imitated() -> None:
    """The second step wants an action that the policy may not take; it counts 0, pulls at nothing, is not compared."""
    out = out_of([[0.25, 0.5, 0.25], [0.5, 0.5, 0.0]])
    masks = torch.tensor([[[1, 1, 1], [1, 1, 0]]], dtype=torch.uint8)
    wanted = torch.tensor([[1, 2]], dtype=torch.int32)
    loss, metrics = Clone()(Minibatch(teacher_actions=wanted, masks=masks, weights=torch.ones(2)), out, NOW)
    assert float(loss.detach()) == pytest.approx(-np.log(0.5) / 2)
    assert float(metrics["teacher/forbidden"]) == 0.5
    assert float(metrics["teacher/agreement"]) == 1.0
    (pull,) = torch.autograd.grad(loss, out.logits)
    assert pull[0].any(-1).tolist() == [True, False]


# ---- when the teacher is asked


def calls(trainer: Trainer, epochs: int) -> list[int]:
    """Of the teacher, in each epoch."""
    found = []
    for _ in range(epochs):
        before = trainer.env.teacher_calls
        trainer.epoch()
        found.append(trainer.env.teacher_calls - before)
    trainer.close()
    return found


@pytest.mark.parametrize(
    "clone",
    [{"until": 2 * EPOCH}, {"weight": Schedule(start=1.0, end=0.0, until=2 * EPOCH, shape="stairs", stairs=2)}],
    ids=["until", "weight"],
)
def test_the_teacher_stops_when_nothing_needs_it(clone: dict[str, Any]) -> None:
    """Asked once at the beginning and after every step; then its counter stays flat."""
    assert calls(Trainer(taught(clone=clone)), 4) == [EPOCH + 24, EPOCH, 0, 0]


def test_a_pull_with_a_floor_keeps_it() -> None:
    weight = Schedule(start=1.0, end=0.1, until=2 * EPOCH)
    assert calls(Trainer(taught(clone={"weight": weight})), 4) == [EPOCH + 24, EPOCH, EPOCH, EPOCH]


def test_a_teacher_that_begins_later() -> None:
    assert calls(Trainer(taught(clone={"begin": EPOCH})), 3) == [0, EPOCH + 24, EPOCH]


def test_without_its_loss_the_teacher_changes_nothing() -> None:
    """A run with a teacher whom nobody needs is the run without one, to the bit."""
    found = []
    for name in ("", "arena"):
        run = taught({"losses": {"ppo": PPO(), "value": Value()}, "teacher": name})
        trainer = Trainer(run)
        trainer.epoch()
        trainer.epoch()
        found.append((hash_of(trainer.weights()), trainer.env.teacher_calls if name else 0))
        trainer.close()
    assert found[0] == found[1]


# ---- supervised steps


def test_supervised_steps_come_before_ppo() -> None:
    trainer = Trainer(taught({"supervised_steps": 2 * EPOCH}))
    found = [trainer.epoch() for _ in range(3)]
    trainer.close()
    assert [("loss/policy" in metrics, "loss/clone" in metrics) for metrics in found] == [
        (False, True),
        (False, True),
        (True, True),
    ]
    assert all("loss/value" in metrics for metrics in found)


def test_supervised_steps_are_as_if_there_were_no_ppo() -> None:
    found = []
    losses = {"value": Value(), "clone": Clone()}
    for changes in ({"supervised_steps": 9 * EPOCH}, {"losses": losses}):
        trainer = Trainer(taught(changes))
        trainer.epoch()
        trainer.epoch()
        trainer.close()
        found.append(hash_of(trainer.weights()))
    assert found[0] == found[1]


def test_it_learns_what_the_teacher_does() -> None:
    """In worlds of the real size; the script wanders at random where it sees nothing, so nobody can agree with all."""
    changes = [("teacher", "arena"), ("losses.clone", {}), ("supervised_steps", 10**6), ("trainer.threads", 1)]
    trainer = Trainer(recipes.build("ci").replace_all(changes))
    found = [trainer.epoch() for _ in range(8)]
    trainer.close()
    assert found[-1]["loss/clone"] < 0.9 * found[0]["loss/clone"]
    assert found[-1]["teacher/agreement"] > found[0]["teacher/agreement"] + 0.02


# ---- rows that the teacher leads


@pytest.mark.parametrize("masks", [True, False])
def test_led_rows_are_the_teachers_for_whole_segments(masks: bool) -> None:
    trainer = Trainer(taught(clone={"lead": 0.4}, masks=masks))
    sent: list[np.ndarray[Any, Any]] = []
    send = trainer.env.send

    def spy(lane: int) -> None:
        sent.append(trainer.env.actions[trainer.env.rows(lane)].copy())
        send(lane)

    trainer.env.send = spy  # type: ignore[method-assign]
    trainer._collect()
    x = trainer.experience
    taken = np.concatenate(sent).reshape(16, 24)  # [T, rows]: lanes come in turn
    assert np.array_equal(x.actions.numpy(), taken)
    led = x.led.bool().view(2, 8, 24)
    assert torch.equal(led.any(1), led.all(1))
    assert 0 < int(led[:, 0].sum()) < 48
    assert torch.equal(x.actions[x.led.bool()], x.teacher_actions[x.led.bool()])
    assert not torch.equal(x.actions[~x.led.bool()], x.teacher_actions[~x.led.bool()])
    # What is stored is the policy's own log-prob of what was done.
    segments = torch.arange(trainer.sizes.segments)
    batch = x.minibatch(segments, ("actions", "log_probs"), {}, torch.ones(len(segments)), trainer.device)
    with torch.no_grad():
        logits = trainer.policy(batch.obs, batch.state, batch.episode_starts, batch.masks).logits
    again = logits.log_softmax(-1).gather(-1, batch.actions.long()[..., None])[..., 0]
    torch.testing.assert_close(again, batch.log_probs, rtol=0, atol=1e-4)
    trainer.close()


def test_the_share_follows_its_schedule() -> None:
    lead = Schedule(start=1.0, end=0.0, until=2 * EPOCH)
    trainer = Trainer(taught(clone={"lead": lead}))
    found = []
    for _ in range(3):
        trainer.epoch()
        found.append(float(trainer.experience.led.float().mean()))
    trainer.close()
    assert found[0] == 1
    assert 0.2 < found[1] < 0.8
    assert found[2] == 0


def test_ppo_does_not_learn_from_led_rows() -> None:
    """All rows led: the actor stays, the critic does not. Some led: their rewards move nothing but the critic."""
    only = {"ppo": PPO(entropy_weight=0.01), "value": Value(), "clone": Clone(weight=1e-30, lead=1.0)}
    trainer = Trainer(taught({"losses": only}))
    before = {name: weight.clone() for name, weight in trainer.weights().items()}
    metrics = trainer.epoch()
    after = trainer.weights()
    trainer.close()
    assert metrics["loss/policy"] == metrics["kl"] == metrics["clip_fraction"] == 0
    assert float((after["actor.weight"] - before["actor.weight"]).abs().max()) < 1e-6
    assert not torch.equal(after["critic.weight"], before["critic.weight"])


def test_rewards_of_led_rows_do_not_reach_the_actor() -> None:
    found = []
    for changed in (False, True):
        losses = {"ppo": PPO(), "clone": Clone(weight=1e-30, lead=0.5)}
        trainer = Trainer(taught({"losses": losses}))
        trainer._collect()
        x = trainer.experience
        led = x.led.bool()
        if changed:
            x.rewards[led] += 100.0
            x.log_probs[led] = -1e9  # as good as impossible
        learned = trainer.learner.learn(x, trainer.progress())
        trainer.close()
        assert learned.skipped == 0
        found.append((hash_of(trainer.weights()), learned.metrics["loss/policy"], learned.metrics["kl"]))
    assert found[0] == found[1]


def test_a_microbatch_does_not_change_what_led_rows_count() -> None:
    """The mean is that over the policy's own steps of the whole minibatch, however it is cut."""
    found = []
    for most in (192, 16):
        trainer = Trainer(taught(clone={"lead": 0.5}, max_microbatch=most))
        metrics = trainer.epoch()
        trainer.close()
        found.append((trainer.weights(), metrics))
    for name, weight in found[0][0].items():
        torch.testing.assert_close(found[1][0][name], weight, rtol=0, atol=1e-5)
    for name in ("loss/policy", "loss/entropy", "kl"):
        assert found[0][1][name] == pytest.approx(found[1][1][name], rel=1e-3, abs=1e-6)


@pytest.mark.parametrize("clone", [{"lead": 0.5}, {"lead": 0.5, "begin": 2.0 * EPOCH}, {"until": 2.0 * EPOCH}])
def test_a_resumed_run_is_equal_to_the_bit(clone: dict[str, Any], tmp_path: Path) -> None:
    changes = {"checkpoint.epochs": 1, "checkpoint.keep": 9, "trainer.total_timesteps": 4 * EPOCH}
    run = taught(changes | {"supervised_steps": EPOCH}, clone=clone)
    whole, again = (train(run.replace("run", name), tmp_path, panel=False).folder for name in ("whole", "again"))
    for path in sorted((again / "checkpoints").iterdir())[2:]:
        for part in path.iterdir():
            part.unlink()
        path.rmdir()
    assert resume(again, panel=False).exit_code == 0
    assert difference(whole, again) == 0
    assert [record.get("loss/clone") for record in epochs_of(whole)] == [
        record.get("loss/clone") for record in epochs_of(again)
    ]


def test_threads_and_lanes_draw_the_same_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gridmill.train.rollout.MOST_ROWS", 3)
    found = set()
    for threads in (1, 2):
        trainer = Trainer(taught(clone={"lead": 0.5}, threads=threads, max_microbatch=32))
        trainer.epoch()
        trainer.close()
        found.add(hash_of(trainer.weights()))
    assert len(found) == 1


# ---- what is wrong is said in one line


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        (
            {"losses.clone": {}},
            "expected a teacher or replays to imitate, got none; name a script of the game, teacher=NAME, or files, "
            "losses.clone.replays=FILES - at `$.losses.clone`",
        ),
        (
            {"supervised_steps": 5},
            "expected a loss that learns from a teacher, got none; add one: losses.clone.weight=1 - at "
            "`$.supervised_steps`",
        ),
    ],
)
def test_what_does_not_fit_together(changes: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError) as caught:
        tiny(2).replace_all(changes.items())
    assert str(caught.value) == said


def test_a_teacher_that_the_game_does_not_have() -> None:
    with pytest.raises(
        ConfigError, match=r"^no script `arenas` for arena_.*; did you mean `arena`\? .* at `\$.teacher`$"
    ):
        taught({"teacher": "arenas"})


def test_a_record_keeps_it() -> None:
    run = taught({"supervised_steps": 5_000}, clone={"lead": 0.25})
    assert Run.load(run.tree()) == run
    assert run.tree()["losses"]["clone"]["kind"] == "clone"
