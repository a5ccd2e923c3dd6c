"""Losses: pure functions of a minibatch and the one forward that all of them share -> (loss, metrics).

No loss runs the policy, touches the environment or knows the trainer. Metrics are tensors; nobody looks at them before
the epoch is over.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from gridmill.policy.kernels import arrays, native, native_fits
from gridmill.policy.network import Output
from gridmill.run import Losses
from gridmill.train.schedule import Progress, number_at


class Minibatch(NamedTuple):
    """Whole segments, [T, N] each; state is the one the segments were collected with."""

    obs: Tensor
    starts: Tensor
    masks: Tensor | None
    state: Tensor  # [N, state_size]
    actions: Tensor
    log_probs: Tensor
    values: Tensor
    advantages: Tensor  # normalised over the minibatch if the settings say so
    returns: Tensor
    weights: Tensor  # importance of each segment, [N]


class Weights(NamedTuple):
    """The numbers of the losses, as they are now."""

    policy: float
    clip: float
    entropy: float
    value: float
    value_clip: float

    def times(self, share: float) -> Weights:
        """The weights of a share of the loss."""
        return self._replace(policy=share * self.policy, value=share * self.value)


def weights_at(losses: Losses, now: Progress) -> Weights:
    return Weights(
        policy=number_at(losses.ppo.weight, now),
        clip=number_at(losses.ppo.clip, now),
        entropy=number_at(losses.ppo.entropy_weight, now),
        value=number_at(losses.value.weight, now),
        value_clip=losses.value.clip,
    )


METRICS = ("loss/policy", "loss/value", "loss/entropy", "kl", "clip_fraction")


def ppo(batch: Minibatch, out: Output, w: Weights) -> tuple[Tensor, Tensor, Tensor]:
    """The clipped surrogate with entropy bonus and critic; metrics in the order of METRICS, and the ratios [T, N]."""
    if native_fits(out.logits):
        return _Ppo.apply(out.logits, out.values, batch, w)  # type: ignore[no-any-return, no-untyped-call]
    return plain_ppo(batch, out, w)


class _Ppo(torch.autograd.Function):
    """Loss and gradients in one pass over the rows."""

    @staticmethod
    def forward(ctx: Any, logits: Tensor, values: Tensor, x: Minibatch, w: Weights) -> tuple[Tensor, Tensor, Tensor]:
        rows = values.numel()
        d_logits, d_values, ratios = torch.empty(logits.shape), torch.empty(values.shape), torch.empty(values.shape)
        means = torch.empty(len(METRICS), dtype=torch.float64)
        flat = [t.contiguous().view(-1) for t in (x.log_probs, x.advantages, x.returns, x.values, x.weights)]
        native.ppo_loss(
            *arrays(logits.contiguous().view(rows, -1), values.contiguous().view(-1), x.actions.contiguous().view(-1)),
            arrays(*flat),
            [w.policy, w.clip, w.entropy, w.value, w.value_clip],
            *arrays(d_logits.view(rows, -1), d_values.view(-1), ratios.view(-1), means),
        )
        ctx.save_for_backward(d_logits, d_values)
        policy_loss, value_loss, entropy = means[:3]
        loss = w.policy * (policy_loss - w.entropy * entropy) + w.value * value_loss
        metrics = means.float()
        ctx.mark_non_differentiable(metrics, ratios)
        return loss.float(), metrics, ratios

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, d_loss: Tensor, *_: Tensor) -> tuple[Tensor, Tensor, None, None]:
        d_logits, d_values = ctx.saved_tensors
        if d_loss != 1:
            d_logits, d_values = d_logits * d_loss, d_values * d_loss
        return d_logits, d_values, None, None


def plain_ppo(batch: Minibatch, out: Output, w: Weights) -> tuple[Tensor, Tensor, Tensor]:
    """The same, a formula a line."""
    log_all = out.logits.log_softmax(-1)
    log_ratio = log_all.gather(-1, batch.actions.long().unsqueeze(-1)).squeeze(-1) - batch.log_probs
    ratio = log_ratio.exp()
    entropy = -(log_all.exp() * log_all).sum(-1)
    gain = torch.minimum(batch.advantages * ratio, batch.advantages * ratio.clamp(1 - w.clip, 1 + w.clip))
    policy_loss = -(gain * batch.weights).mean()
    value_loss = value(batch, out.values, w.value_clip)
    loss = w.policy * (policy_loss - w.entropy * entropy.mean()) + w.value * value_loss
    with torch.no_grad():
        kl = (ratio - 1 - log_ratio).mean()  # Schulman's low-variance estimate
        clipped = ((ratio - 1).abs() > w.clip).float().mean()
        metrics = torch.stack((policy_loss, value_loss, entropy.mean(), kl, clipped))
    return loss, metrics.detach(), ratio.detach()


def value(batch: Minibatch, values: Tensor, clip: float) -> Tensor:
    """The critic's squared error; with a clip, the larger of it and of that of a value kept near the old one."""
    error = (values - batch.returns).square()
    if clip > 0:
        near = batch.values + (values - batch.values).clamp(-clip, clip)
        error = torch.maximum(error, (near - batch.returns).square())
    return 0.5 * (error * batch.weights).mean()
