"""PPO by hand, and its native pass against the plain form."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch

from gridmill.config.schedule import Progress, Schedule
from gridmill.losses import Minibatch, terms
from gridmill.losses.ppo import METRICS, PPO, native, plain
from gridmill.losses.value import Value
from gridmill.policy.network import FORBIDDEN, Output

EMPTY = torch.zeros(0)
NOW, HALF = Progress(0, 100, 0, 2), Progress(50, 100, 1, 2)
PLAIN = PPO(entropy_weight=0.0)


def batch_of(old: list[float], advantages: list[float], actions: list[int], **more: Any) -> Minibatch:
    """One segment per number, of one step; `old` are the probabilities at which the actions were drawn."""
    count = len(old)
    fields: dict[str, Any] = {"values": [0.0] * count, "returns": [0.0] * count, "weights": [1.0] * count} | more
    return Minibatch(
        obs=EMPTY, episode_starts=EMPTY, masks=None, state=EMPTY,
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


def both(batch: Minibatch, out: Output, ppo: PPO, value: Value | None = None, share: float = 1.0) -> Any:
    """As the learner calls it: the loss, numbers by name, and the ratios."""
    (((_, term),)) = terms({"ppo": ppo} | ({} if value is None else {"value": value}))
    loss, metrics = term(batch, out, NOW, share, None)
    ratios = metrics.pop("ratios")
    return loss, {name: float(number) for name, number in metrics.items()}, ratios


def test_the_clipped_surrogate_by_hand() -> None:
    # Ratios 0.75/0.5 = 1.5, 0.25/0.5 = 0.5, again with the other sign, and 1.1 inside of the clip.
    batch = batch_of([0.5] * 5, [2.0, 2.0, -2.0, -2.0, 1.0], [0, 1, 0, 1, 0])
    out = out_of([[0.75, 0.25]] * 4 + [[0.55, 0.45]])
    loss, metrics, ratio = both(batch, out, PLAIN)
    assert ratio.tolist()[0] == pytest.approx([1.5, 0.5, 1.5, 0.5, 1.1])
    # min(2*1.5, 2*1.2) = 2.4; min(2*0.5, 2*0.8) = 1; min(-3, -2.4) = -3; min(-1, -1.6) = -1.6; 1.1
    assert float(loss.detach()) == pytest.approx(-(2.4 + 1.0 - 3.0 - 1.6 + 1.1) / 5, abs=1e-6)
    assert metrics["loss/policy"] == pytest.approx(float(loss.detach()))
    assert metrics["clip_fraction"] == pytest.approx(4 / 5)
    # k3: mean of r - 1 - log r
    kl = sum(r - 1 - math.log(r) for r in (1.5, 0.5, 1.5, 0.5, 1.1)) / 5
    assert metrics["kl"] == pytest.approx(kl, rel=1e-5)
    # Only what is not clipped away pulls: rows 2, 3 (worse than the clip allows to ignore) and 5.
    (pull,) = torch.autograd.grad(loss, out.logits)
    assert pull[0].any(-1).tolist() == [False, True, True, False, True]
    assert float(pull[0, 4, 0]) == pytest.approx(-1.1 * 0.45 / 5, rel=1e-5)


@pytest.mark.parametrize("value_clip", [0.0, 0.3])
@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("led", [False, True])
def test_the_native_loss_is_the_plain_one(value_clip: float, masked: bool, led: bool) -> None:
    """Ratios on both sides of the clip, advantages of both signs, weights of segments, actions that are forbidden, and
    steps that somebody else took, of which the policy holds some for impossible."""
    draw = torch.Generator().manual_seed(3)
    steps, segments, actions = 7, 5, 6
    logits, values = torch.randn(steps, segments, actions, generator=draw), torch.randn(steps, segments, generator=draw)
    if masked:
        logits[:, ::2, 4:] = FORBIDDEN
    rows = [torch.randn(steps, segments, generator=draw) for _ in range(4)]
    chosen = torch.randint(0, 4, (steps, segments), generator=draw, dtype=torch.int32)
    old = logits.log_softmax(-1).gather(-1, chosen.long()[..., None])[..., 0] + 0.3 * rows[0]
    batch = Minibatch(
        obs=EMPTY, episode_starts=EMPTY, masks=None, state=EMPTY, actions=chosen, log_probs=old, advantages=rows[1],
        returns=rows[2], values=rows[3], weights=torch.rand(segments, generator=draw) + 0.5,
    )  # fmt: skip
    if led:
        others = torch.rand(steps, segments, generator=draw) < 0.4
        batch.acted = (~others).float() * 1.7
        batch.log_probs[others] = FORBIDDEN
    settings = PPO(weight=0.7, clip=0.2, entropy_weight=0.03), Value(weight=1.3, clip=value_clip)
    found = []
    for form in (native, plain):
        leaves = [logits.clone().requires_grad_(), values.clone().requires_grad_()]
        loss, metrics = form(*settings, batch, Output(*leaves, EMPTY, EMPTY), NOW, 0.25)
        numbers = [metrics[name] for name in (*METRICS, "ratios")]
        found.append([loss.detach(), *numbers, *torch.autograd.grad(3 * loss, leaves)])
    assert 0 < float(found[1][1 + METRICS.index("clip_fraction")]) < 1
    for fast, slow in zip(*found, strict=True):
        assert float(slow.abs().max()) > 1e-3
        torch.testing.assert_close(fast, slow, rtol=1e-5, atol=1e-7)
    if led:  # such a step has no part in the actor's gradient, and its own in the critic's
        *_, ratios, d_logits, d_values = found[0]
        assert not d_logits[others].any()
        assert bool(d_logits[~others].any(-1).all())
        assert bool((ratios[others] == 1).all())
        assert bool(d_values[others].any())


def test_steps_of_others_are_left_out_by_hand() -> None:
    """Of three steps one is the teacher's: the means are those of the other two."""
    batch = batch_of([0.5] * 3, [1.0, 2.0, 50.0], [0, 1, 0])
    out = out_of([[0.55, 0.45], [0.5, 0.5], [0.9, 0.1]])
    own = batch_of([0.5] * 2, [1.0, 2.0], [0, 1])
    alone = out_of([[0.55, 0.45], [0.5, 0.5]])
    batch.acted = torch.tensor([[1.5, 1.5, 0.0]])
    for form in (native, plain):
        (loss, metrics), (expected, numbers) = (
            form(PPO(entropy_weight=0.1), None, x, y, NOW, 1.0) for x, y in ((batch, out), (own, alone))
        )
        assert float(loss.detach()) == pytest.approx(float(expected.detach()), rel=1e-5)
        for name in ("loss/policy", "loss/entropy", "kl", "clip_fraction"):
            assert float(metrics[name]) == pytest.approx(float(numbers[name]), rel=1e-5), name


def test_without_the_critic_the_native_loss_is_the_plain_one() -> None:
    batch = batch_of([0.5, 0.4], [1.0, -2.0], [0, 1], returns=[5.0, 6.0])
    found = []
    for form in (native, plain):
        out = out_of([[0.75, 0.25], [0.5, 0.5]])
        loss, metrics = form(PPO(entropy_weight=0.1), None, batch, out, NOW, 0.5)
        assert set(metrics) == {*METRICS, "ratios"} - {"loss/value"}
        found.append([loss.detach(), *torch.autograd.grad(loss, out.logits)])
    for fast, slow in zip(*found, strict=True):
        torch.testing.assert_close(fast, slow)


def test_entropy_by_hand() -> None:
    batch, out = batch_of([0.5], [0.0], [0]), out_of([[0.5, 0.25, 0.25, 0.0]])
    loss, metrics, _ = both(batch, out, PPO(entropy_weight=0.1))
    assert metrics["loss/entropy"] == pytest.approx(1.5 * math.log(2))
    assert float(loss.detach()) == pytest.approx(-0.15 * math.log(2))
    (pull,) = torch.autograd.grad(loss, out.logits)
    assert bool(torch.isfinite(pull).all())  # the forbidden action has no part in it
    assert float(pull[0, 0, 3]) == 0
    # d(-0.1 H)/d logit_a = 0.1 p_a (log p_a + H)
    expected = [0.1 * p * (math.log(p) + 1.5 * math.log(2)) for p in (0.5, 0.25, 0.25)]
    assert pull[0, 0, :3].tolist() == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("form", [native, plain])
def test_the_weight_leaves_the_entropy_bonus_alone(form: Any) -> None:
    batch = batch_of([0.5, 0.5], [1.0, -2.0], [0, 1])

    def pull(ppo: PPO) -> torch.Tensor:
        out = out_of([[0.75, 0.25], [0.6, 0.4]])
        loss, _ = form(ppo, None, batch, out, NOW, 0.5)
        return torch.autograd.grad(loss, out.logits)[0]

    surrogate, bonus = pull(PPO(entropy_weight=0.0)), pull(PPO(weight=0.0, entropy_weight=0.1))
    assert float(bonus.abs().max()) > 1e-3
    torch.testing.assert_close(pull(PPO(weight=3.0, entropy_weight=0.1)), 3 * surrogate + bonus)
    loss, metrics = PPO(weight=3.0, entropy_weight=0.1)(batch, out_of([[0.75, 0.25], [0.6, 0.4]]), NOW)
    assert float(loss.detach()) == pytest.approx(float(metrics["loss/policy"] - 0.1 * metrics["loss/entropy"]))


def test_importance_weighs_segments() -> None:
    batch = batch_of([0.5, 0.5], [1.0, 3.0], [0, 0], returns=[1.0, 2.0], weights=[1.0, 0.25])
    loss, metrics, _ = both(batch, out_of([[0.5, 0.5]] * 2), PLAIN, Value(weight=0.5))
    assert metrics["loss/policy"] == pytest.approx(-(1 + 0.75) / 2)
    assert metrics["loss/value"] == pytest.approx(0.5 * (1 + 1) / 2)
    assert float(loss.detach()) == pytest.approx(-0.875 + 0.25)


@pytest.mark.parametrize("form", [native, plain])
def test_numbers_follow_schedules(form: Any) -> None:
    moving = PPO(
        weight=Schedule(start=1, end=0),
        clip=Schedule(start=0.3, end=0.1),
        entropy_weight=Schedule(start=0.02, end=0.01),
    )
    still = PPO(weight=0.5, clip=0.2, entropy_weight=0.015)
    values = Value(weight=Schedule(start=4, end=0), clip=Schedule(start=0.4, end=0.2)), Value(weight=2, clip=0.3)
    batch = batch_of([0.5, 0.4], [1.0, -2.0], [0, 1], values=[0.1, 3.0], returns=[5.0, 6.0])
    losses = [
        float(form(ppo, value, batch, out_of([[0.75, 0.25], [0.5, 0.5]], [1.0, 2.0]), HALF, 1.0)[0].detach())
        for ppo, value in ((moving, values[0]), (still, values[1]), (still, Value(weight=2, clip=0.2)))
    ]
    assert losses[0] == pytest.approx(losses[1], rel=1e-6)
    assert losses[0] != pytest.approx(losses[2], rel=1e-3)
