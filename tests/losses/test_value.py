"""The critic's loss by hand."""

from __future__ import annotations

import pytest
import torch

from gridmill.config.schedule import Progress
from gridmill.losses import Minibatch
from gridmill.losses.value import Value
from gridmill.policy.network import Output


@pytest.mark.parametrize(
    ("clip", "errors"),
    [
        (0.0, (1.0, 0.25, 0.01)),
        # Kept within 0.2 of 1.0: 1.2, 0.8, 1.1; the larger error of each: max(1, 0.64), max(0.25, 0.64), 0.01.
        (0.2, (1.0, 0.64, 0.01)),
    ],
)
def test_the_critic_by_hand(clip: float, errors: tuple[float, ...]) -> None:
    batch = Minibatch(
        values=torch.tensor([[1.0, 1.0, 1.0]]),
        returns=torch.tensor([[2.0, 0.0, 1.0]]),
        weights=torch.tensor([1.0, 1.0, 0.5]),
    )
    nothing = torch.zeros(0)
    out = Output(nothing, torch.tensor([[3.0, 0.5, 1.1]], requires_grad=True), nothing, nothing)
    loss, metrics = Value(clip=clip)(batch, out, Progress(0, 1, 0, 1))
    assert float(loss.detach()) == pytest.approx(0.5 * (errors[0] + errors[1] + 0.5 * errors[2]) / 3)
    assert float(metrics["loss/value"]) == float(loss.detach())
    (pull,) = torch.autograd.grad(loss, out.values)
    assert pull[0].tolist() == pytest.approx([1 / 3, 0.0 if clip else 0.5 / 3, 0.5 * 0.1 / 3], abs=1e-6)
