"""Optimizers: each moves as its authors say, and its state comes back from tensors to the bit."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from small_runs import WORDS, hash_of, needs_bf16
from torch import Tensor

from gridmill.config.schedule import Progress
from gridmill.policy.network import Policy
from gridmill.run import OptimizerConfig, PolicyConfig
from gridmill.train.optimizer import Optimizer, add_up, clip_norm

KINDS = ["adam", "adamw", pytest.param("muon", marks=needs_bf16), "schedule_free"]


def policy_of(**config: Any) -> Policy:
    usual: dict[str, Any] = {"hidden": 16, "core": "lstm"}
    return Policy(PolicyConfig(**(usual | config)), WORDS, seed=1)


def set_rate(optimizer: Optimizer, rate: float) -> None:
    optimizer.config = optimizer.config.replace("learning_rate", rate)
    assert optimizer.set(Progress(0, 1, 0, 1)) == rate


def push(policy: Policy, optimizer: Optimizer, step: int, rate: float = 1e-3) -> None:
    """One step along gradients that depend on the step alone."""
    draw = torch.Generator().manual_seed(step)
    for parameter in policy.parameters():
        parameter.grad = torch.randn(parameter.shape, generator=draw)
    optimizer.use("train")
    set_rate(optimizer, rate)
    optimizer.step()
    optimizer.use("eval")


@pytest.mark.parametrize("kind", KINDS)
def test_every_parameter_moves(kind: Any) -> None:
    policy = policy_of()
    optimizer = Optimizer(OptimizerConfig(kind=kind), dict(policy.named_parameters()))
    before = {name: p.detach().clone() for name, p in policy.named_parameters()}
    for step in range(2):
        push(policy, optimizer, step)
    for name, parameter in policy.named_parameters():
        assert not torch.equal(parameter, before[name]), name


@pytest.mark.parametrize("kind", KINDS)
def test_the_rate_is_what_it_was_set_to(kind: Any) -> None:
    moved = []
    for rate in (1e-3, 2e-3, 0.0):
        policy = policy_of()
        before = policy.actor.weight.detach().clone()
        push(policy, Optimizer(OptimizerConfig(kind=kind), dict(policy.named_parameters())), 0, rate)
        moved.append(float((policy.actor.weight.detach() - before).norm()))
    assert moved[2] == 0
    assert moved[1] == pytest.approx(2 * moved[0], rel=1e-3)


@pytest.mark.parametrize("kind", KINDS)
def test_state_comes_back_from_tensors(kind: Any) -> None:
    config = OptimizerConfig(kind=kind, weight_decay=0.01)
    policy = policy_of()
    optimizer = Optimizer(config, dict(policy.named_parameters()))
    for step in range(3):
        push(policy, optimizer, step, 1e-3 / (1 + step))
    kept: dict[str, Tensor] = optimizer.tensors()
    assert all(isinstance(tensor, Tensor) for tensor in kept.values())
    other = policy_of()
    other.load_state_dict({name: tensor.clone() for name, tensor in policy.state_dict().items()})
    again = Optimizer(config, dict(other.named_parameters()))
    again.restore(kept)
    assert again.tensors().keys() == kept.keys()
    for name, tensor in again.tensors().items():
        assert tensor.dtype == kept[name].dtype, name
        assert torch.equal(tensor, kept[name]), name
    for step in range(3, 6):
        push(policy, optimizer, step)
        push(other, again, step)
    assert hash_of(policy.state_dict()) == hash_of(other.state_dict())
    fresh = policy_of()
    fresh.load_state_dict({name: tensor.clone() for name, tensor in policy.state_dict().items()})
    new = Optimizer(config, dict(fresh.named_parameters()))
    push(fresh, new, 6)
    push(policy, optimizer, 6)
    assert hash_of(fresh.state_dict()) != hash_of(policy.state_dict())  # the state matters


@pytest.mark.parametrize("kind", KINDS)
def test_settings_are_not_part_of_the_state(kind: Any) -> None:
    """A resumed run has the settings that it is resumed with."""
    before = Optimizer(OptimizerConfig(kind=kind), dict(policy_of().named_parameters()))
    numbers = {"eps": 0.5, "weight_decay": 0.25, "beta1": 0.5, "beta2": 0.75}
    after = Optimizer(OptimizerConfig(kind=kind, **numbers), dict(policy_of().named_parameters()))  # type: ignore[arg-type]
    older = {f"optimizer.0.group.0.{name}": torch.tensor(9.0, dtype=torch.float64) for name in ("eps", "weight_decay")}
    after.restore(before.tensors() | older)
    for part in after.parts:
        group = part.param_groups[0]
        assert group["weight_decay"] == 0.25
        if not isinstance(part, torch.optim.Muon):  # it has a momentum and an eps of its own
            assert (group["eps"], group["betas"]) == (0.5, (0.5, 0.75))


@pytest.mark.parametrize("kind", KINDS)
def test_weights_are_kept_within_a_range(kind: Any) -> None:
    """Also those that schedule-free learns with, and what it keeps beside them."""
    policy = policy_of()
    optimizer = Optimizer(OptimizerConfig(kind=kind), dict(policy.named_parameters()))
    free = policy_of()
    unclipped = Optimizer(OptimizerConfig(kind=kind), dict(free.named_parameters()))
    for step in range(4):
        push(free, unclipped, step, 0.05)
        push(policy, optimizer, step, 0.05)
        optimizer.use("train")
        optimizer.clip(0.1)
        assert max(float(p.detach().abs().max()) for p in policy.parameters()) <= 0.1 + 1e-6
        optimizer.use("eval")
        assert max(float(p.detach().abs().max()) for p in policy.parameters()) <= 0.1 + 1e-6
    assert max(float(p.detach().abs().max()) for p in free.parameters()) > 0.3
    beside = [float(t.abs().max()) for name, t in optimizer.tensors().items() if name.endswith(".z")]
    assert max(beside, default=0.0) <= 0.1 + 1e-6


def test_a_step_uses_its_gradients_up() -> None:
    """A parameter that gets no new one, as of a loss that is over, stays where it is."""
    policy = policy_of()
    optimizer = Optimizer(OptimizerConfig(), dict(policy.named_parameters()))
    push(policy, optimizer, 0)
    before = policy.critic.weight.detach().clone()
    policy.actor.bias.grad = torch.ones_like(policy.actor.bias)
    optimizer.step()
    assert torch.equal(policy.critic.weight, before)


def test_what_was_taken_does_not_change_afterwards() -> None:
    policy = policy_of()
    optimizer = Optimizer(OptimizerConfig(), dict(policy.named_parameters()))
    push(policy, optimizer, 0)
    kept = optimizer.tensors()
    copies = {name: tensor.clone() for name, tensor in kept.items()}
    push(policy, optimizer, 1)
    assert all(torch.equal(kept[name], copies[name]) for name in kept)


def test_the_first_steps_of_adam_by_hand() -> None:
    policy = policy_of()
    optimizer = Optimizer(OptimizerConfig(beta1=0.5, beta2=0.5, eps=1e-8), dict(policy.named_parameters()))
    bias = policy.actor.bias
    for gradient, expected in ((2.0, -0.1), (-2.0, -0.1 + 0.1 / 3)):
        # Second step: m = 0.5*1 - 1 = -0.5 over 1 - 0.25, v = 4: -(2/3) / 2 times the rate.
        for parameter in policy.parameters():
            parameter.grad = torch.full_like(parameter, gradient)
        set_rate(optimizer, 0.1)
        optimizer.step()
        assert bias.detach().tolist() == pytest.approx([expected] * 4, rel=1e-5)


def test_weight_decay_of_adamw_is_apart_from_the_gradient() -> None:
    policy = policy_of()
    before = policy.critic.weight.detach().clone()
    for parameter in policy.parameters():
        parameter.grad = torch.zeros_like(parameter)
    optimizer = Optimizer(OptimizerConfig(kind="adamw", weight_decay=0.5), dict(policy.named_parameters()))
    set_rate(optimizer, 0.1)
    optimizer.step()
    torch.testing.assert_close(policy.critic.weight.detach(), before * (1 - 0.1 * 0.5))


@needs_bf16
def test_muon_takes_the_matrices_inside() -> None:
    policy = policy_of()
    muon, rest = Optimizer(OptimizerConfig(kind="muon"), dict(policy.named_parameters())).parts
    assert isinstance(muon, torch.optim.Muon)
    dense: Any = policy.dense[0]
    core: Any = policy.core
    inside = [dense.weight, core.into.weight, core.back]
    assert {id(p) for p in muon.param_groups[0]["params"]} == {id(p) for p in inside}
    everything = {id(p) for p in policy.parameters()}
    assert {id(p) for p in rest.param_groups[0]["params"]} == everything - {id(p) for p in inside}
    # Its steps have all singular values about equal: that is its point.
    before = dense.weight.detach().clone()
    push(policy, Optimizer(OptimizerConfig(kind="muon"), dict(policy.named_parameters())), 0)
    singular = torch.linalg.svdvals(dense.weight.detach() - before)
    assert float(singular.max() / singular.min()) < 2.5


def test_muon_without_matrices_inside() -> None:
    policy = policy_of(core="none", layers=0)
    push(policy, Optimizer(OptimizerConfig(kind="muon"), dict(policy.named_parameters())), 0)
    assert policy.actor.bias.detach().any()


def test_schedule_free_acts_with_the_mean_of_its_weights() -> None:
    policy = policy_of()
    optimizer = Optimizer(OptimizerConfig(kind="schedule_free"), dict(policy.named_parameters()))
    for step in range(4):
        push(policy, optimizer, step)
    acting = hash_of(policy.state_dict())
    optimizer.use("train")
    assert hash_of(policy.state_dict()) != acting


# ---- gradients


def test_gradients_are_clipped_by_their_common_norm() -> None:
    gradients = [torch.tensor([3.0, 0.0]), torch.tensor([[0.0], [4.0]])]
    assert float(clip_norm(gradients, 10.0)) == 5.0
    assert gradients[0].tolist() == [3.0, 0.0]
    assert float(clip_norm(gradients, 0.0)) == 5.0
    assert gradients[1].tolist() == [[0.0], [4.0]]
    assert float(clip_norm(gradients, 0.5)) == 5.0
    assert gradients[0].tolist() == pytest.approx([0.3, 0.0])
    assert gradients[1].flatten().tolist() == pytest.approx([0.0, 0.4])


def test_gradients_are_added_up() -> None:
    pieces = [[torch.full((2,), float(k)), torch.full((1, 1), 10.0 * k)] for k in (1, 2, 3)]
    found = add_up(pieces)
    assert [x.flatten().tolist() for x in found] == [[6.0, 6.0], [60.0]]
