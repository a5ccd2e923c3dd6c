"""Losses, the guard, early stopping and the rewards as the learner sees them, by hand and against slow forms."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch
from small_runs import hash_of, small_run
from torch import Tensor

from gridmill.policy.network import FORBIDDEN, Output
from gridmill.run import PPO, Losses, OptimizerConfig, Schedule, Value
from gridmill.train.learner import RewardScale
from gridmill.train.losses import METRICS, Minibatch, Weights, plain_ppo, ppo, value, weights_at
from gridmill.train.schedule import Progress
from gridmill.train.trainer import Trainer

EMPTY = torch.zeros(0)
PLAIN = Weights(policy=1.0, clip=0.2, entropy=0.0, value=0.0, value_clip=0.0)


def batch_of(old: list[float], advantages: list[float], actions: list[int], **more: Any) -> Minibatch:
    """One segment per number, of one step; `old` are the probabilities at which the actions were drawn."""
    count = len(old)
    fields: dict[str, Any] = {"values": [0.0] * count, "returns": [0.0] * count, "weights": [1.0] * count} | more
    return Minibatch(
        obs=EMPTY, starts=EMPTY, masks=None, state=EMPTY,
        actions=torch.tensor([actions], dtype=torch.int32),
        log_probs=torch.tensor([old]).log(),
        values=torch.tensor([fields["values"]]),
        advantages=torch.tensor([advantages]),
        returns=torch.tensor([fields["returns"]]),
        weights=torch.tensor(fields["weights"]),
    )  # fmt: skip


def out_of(chances: list[list[float]], values: list[float] | None = None) -> Output:
    logits = torch.tensor([chances]).log().clamp(min=FORBIDDEN).requires_grad_()
    return Output(logits, torch.tensor([values or [0.0] * len(chances)]), EMPTY, EMPTY)


def told(metrics: Tensor) -> dict[str, float]:
    return dict(zip(METRICS, metrics.tolist(), strict=True))


def test_the_clipped_surrogate_by_hand() -> None:
    # Ratios 0.75/0.5 = 1.5, 0.25/0.5 = 0.5, again with the other sign, and 1.1 inside of the clip.
    batch = batch_of([0.5] * 5, [2.0, 2.0, -2.0, -2.0, 1.0], [0, 1, 0, 1, 0])
    out = out_of([[0.75, 0.25]] * 4 + [[0.55, 0.45]])
    loss, metrics, ratio = ppo(batch, out, PLAIN)
    assert ratio.tolist()[0] == pytest.approx([1.5, 0.5, 1.5, 0.5, 1.1])
    # min(2*1.5, 2*1.2) = 2.4; min(2*0.5, 2*0.8) = 1; min(-3, -2.4) = -3; min(-1, -1.6) = -1.6; 1.1
    assert float(loss.detach()) == pytest.approx(-(2.4 + 1.0 - 3.0 - 1.6 + 1.1) / 5, abs=1e-6)
    assert told(metrics)["loss/policy"] == pytest.approx(float(loss.detach()))
    assert told(metrics)["clip_fraction"] == pytest.approx(4 / 5)
    # k3: mean of r - 1 - log r
    kl = sum(r - 1 - math.log(r) for r in (1.5, 0.5, 1.5, 0.5, 1.1)) / 5
    assert told(metrics)["kl"] == pytest.approx(kl, rel=1e-5)
    # Only what is not clipped away pulls: rows 2, 3 (worse than the clip allows to ignore) and 5.
    (pull,) = torch.autograd.grad(loss, out.logits)
    assert pull[0].any(-1).tolist() == [False, True, True, False, True]
    assert float(pull[0, 4, 0]) == pytest.approx(-1.1 * 0.45 / 5, rel=1e-5)


@pytest.mark.parametrize("value_clip", [0.0, 0.3])
@pytest.mark.parametrize("masked", [False, True])
def test_the_native_loss_is_the_plain_one(value_clip: float, masked: bool) -> None:
    """Ratios on both sides of the clip, advantages of both signs, weights of segments, actions that are forbidden."""
    draw = torch.Generator().manual_seed(3)
    steps, segments, actions = 7, 5, 6
    logits, values = torch.randn(steps, segments, actions, generator=draw), torch.randn(steps, segments, generator=draw)
    if masked:
        logits[:, ::2, 4:] = FORBIDDEN
    rows = [torch.randn(steps, segments, generator=draw) for _ in range(4)]
    chosen = torch.randint(0, 4, (steps, segments), generator=draw, dtype=torch.int32)
    old = logits.log_softmax(-1).gather(-1, chosen.long()[..., None])[..., 0] + 0.3 * rows[0]
    batch = Minibatch(
        obs=EMPTY, starts=EMPTY, masks=None, state=EMPTY, actions=chosen, log_probs=old, advantages=rows[1],
        returns=rows[2], values=rows[3], weights=torch.rand(segments, generator=draw) + 0.5,
    )  # fmt: skip
    weights = Weights(policy=0.7, clip=0.2, entropy=0.03, value=1.3, value_clip=value_clip)
    found = []
    for form in (ppo, plain_ppo):
        leaves = [logits.clone().requires_grad_(), values.clone().requires_grad_()]
        loss, metrics, ratio = form(batch, Output(*leaves, EMPTY, EMPTY), weights)
        found.append([loss.detach(), metrics, ratio, *torch.autograd.grad(3 * loss, leaves)])
    assert 0 < float(found[1][1][METRICS.index("clip_fraction")]) < 1
    for native, plain in zip(*found, strict=True):
        assert float(plain.abs().max()) > 1e-3
        torch.testing.assert_close(native, plain, rtol=1e-5, atol=1e-7)


def test_entropy_by_hand() -> None:
    batch, out = batch_of([0.5], [0.0], [0]), out_of([[0.5, 0.25, 0.25, 0.0]])
    loss, metrics, _ = ppo(batch, out, PLAIN._replace(entropy=0.1))
    assert told(metrics)["loss/entropy"] == pytest.approx(1.5 * math.log(2))
    assert float(loss.detach()) == pytest.approx(-0.15 * math.log(2))
    (pull,) = torch.autograd.grad(loss, out.logits)
    assert bool(torch.isfinite(pull).all())  # the forbidden action has no part in it
    assert float(pull[0, 0, 3]) == 0
    # d(-0.1 H)/d logit_a = 0.1 p_a (log p_a + H)
    expected = [0.1 * p * (math.log(p) + 1.5 * math.log(2)) for p in (0.5, 0.25, 0.25)]
    assert pull[0, 0, :3].tolist() == pytest.approx(expected, abs=1e-6)


def test_the_critic_by_hand() -> None:
    batch = batch_of([1.0] * 3, [0.0] * 3, [0] * 3, values=[1.0, 1.0, 1.0], returns=[2.0, 0.0, 1.0])
    values = torch.tensor([[3.0, 0.5, 1.1]])
    assert float(value(batch, values, 0.0)) == pytest.approx(0.5 * (1 + 0.25 + 0.01) / 3)
    # Kept within 0.2 of 1.0: 1.2, 0.8, 1.1; the larger error of each: max(1, 0.64), max(0.25, 0.64), 0.01.
    assert float(value(batch, values, 0.2)) == pytest.approx(0.5 * (1 + 0.64 + 0.01) / 3)


def test_importance_weighs_segments() -> None:
    batch = batch_of([0.5, 0.5], [1.0, 3.0], [0, 0], returns=[1.0, 2.0], weights=[1.0, 0.25])
    loss, metrics, _ = ppo(batch, out_of([[0.5, 0.5]] * 2), PLAIN._replace(value=0.5))
    assert told(metrics)["loss/policy"] == pytest.approx(-(1 + 0.75) / 2)
    assert told(metrics)["loss/value"] == pytest.approx(0.5 * (1 + 1) / 2)
    assert float(loss.detach()) == pytest.approx(-0.875 + 0.25)


def test_weights_of_the_losses_follow_schedules() -> None:
    ppo_settings = PPO(weight=Schedule(start=1, end=0), clip=0.1, entropy_weight=Schedule(start=0.02, end=0.01))
    losses = Losses(ppo=ppo_settings, value=Value(weight=2.0, clip=0.3))
    halfway = weights_at(losses, Progress(50, 100, 1, 2))
    assert halfway == pytest.approx(Weights(policy=0.5, clip=0.1, entropy=0.015, value=2.0, value_clip=0.3))


# ---- what a minibatch is given


def test_advantages_are_normalised_over_the_whole_minibatch() -> None:
    """Over a minibatch and not its pieces; a minibatch of one step has no spread, and still a number."""
    trainer = Trainer(small_run(max_microbatch=16))
    seen: list[Minibatch] = []
    take = trainer.experience.minibatch

    def spy(*arguments: Any) -> Minibatch:
        seen.append(take(*arguments))
        return seen[-1]

    trainer.experience.minibatch = spy  # type: ignore[method-assign, assignment]
    trainer.epoch()
    trainer.close()
    assert len(seen) == 12
    for pieces in (seen[:6], seen[6:]):
        whole = torch.cat([piece.advantages.flatten() for piece in pieces])
        assert float(whole.mean()) == pytest.approx(0, abs=1e-5)
        assert float(whole.std()) == pytest.approx(1, abs=0.02)
        assert abs(float(pieces[0].advantages.mean())) > 1e-3


def test_a_minibatch_of_one_step_is_learned_from() -> None:
    trainer = Trainer(small_run(bptt_horizon=1, num_worlds=1, async_factor=1, batch_size=3, minibatch_size=1))
    metrics = trainer.epoch()
    trainer.close()
    assert metrics["skipped_updates"] == 0
    assert math.isfinite(metrics["loss/value"])


# ---- stopping early


def test_target_kl_leaves_the_rest_of_the_epoch() -> None:
    fast = OptimizerConfig(learning_rate=0.05)
    steps = {}
    for limit in (0.0, 1e-3, 1e9):
        trainer = Trainer(small_run(optimizer=fast, target_kl=limit, update_epochs=3, minibatch_size=24))
        trainer.epoch()
        trainer.close()
        steps[limit] = trainer.trained_steps
    assert steps[0.0] == steps[1e9] == 3 * 192
    assert 24 < steps[1e-3] < 192  # not even one round


def test_numbers_that_are_none_skip_the_update_and_stop_after_three() -> None:
    trainer = Trainer(small_run(update_epochs=3))
    before = hash_of(trainer.weights())
    trainer.rollout.collect()
    trainer.experience.values.fill_(math.nan)
    learned = trainer.learner.learn(trainer.experience, trainer.progress())
    trainer.close()
    assert (learned.updates, learned.skipped, learned.in_a_row) == (0, 3, 3)
    assert learned.bad is not None
    assert hash_of(trainer.weights()) == before


# ---- rewards as the learner sees them


class Slow:
    """Every return ever seen in a list; nothing clever."""

    def __init__(self, rows: int, gamma: float) -> None:
        self.running, self.gamma, self.seen = [0.0] * rows, gamma, [0.0] * 0

    def scaled(self, rewards: Any, ended: Any) -> Any:
        for t in range(len(rewards)):
            for row in range(rewards.shape[1]):
                self.running[row] = self.running[row] * self.gamma + float(rewards[t, row])
                self.seen.append(self.running[row])
                if ended[t, row]:
                    self.running[row] = 0.0
        return rewards / max(1e-4, float(np.std(self.seen)))

    def centered(self, rewards: Any) -> Any:
        self.seen += [float(reward) for reward in rewards.flatten()]
        return rewards - float(np.mean(self.seen))


class Batch:
    """The fields of an experience that rewards are made of."""

    def __init__(self, seed: int) -> None:
        draw = torch.Generator().manual_seed(seed)
        self.rewards = 3 + 2 * torch.randn(6, 4, generator=draw)
        self.terminals = torch.rand(6, 4, generator=draw) < 0.2
        self.truncations = torch.rand(6, 4, generator=draw) < 0.1


@pytest.mark.parametrize("kind", ["scaled", "centered"])
def test_rewards_against_a_slow_reference(kind: str) -> None:
    scale = RewardScale(small_run(reward=kind, gamma=0.9), 4)
    slow = Slow(4, 0.9)
    for epoch in range(4):
        x: Any = Batch(epoch)
        ended = (x.terminals | x.truncations).numpy()
        expected = slow.scaled(x.rewards.numpy(), ended) if kind == "scaled" else slow.centered(x.rewards.numpy())
        if epoch == 2:  # through a checkpoint
            kept = scale.tensors()
            scale = RewardScale(small_run(reward=kind, gamma=0.9), 4)
            scale.restore(kept)
        np.testing.assert_allclose(scale(x), expected, rtol=1e-5, atol=1e-5)


def test_raw_rewards_stay() -> None:
    x: Any = Batch(0)
    assert torch.equal(RewardScale(small_run(), 4)(x), x.rewards)


def test_rewards_of_nothing_are_not_divided_by_nothing() -> None:
    x: Any = Batch(0)
    x.rewards = torch.zeros(6, 4)
    assert not RewardScale(small_run(reward="scaled"), 4)(x).any()
