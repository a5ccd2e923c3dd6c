"""PPO: the clipped surrogate and the entropy bonus (Schulman et al. 2017), as a formula a line, and in one native pass.

On a CPU in float32 the native pass runs, with the gradients of all rows and the critic's loss if there is one: a
second pass over the rows would cost as much as the first.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar

from gridmill.config.schedule import Number, Progress
from gridmill.losses import Loss, LossResult, Minibatch
from gridmill.losses.value import Value

if TYPE_CHECKING:
    from torch import Tensor

    from gridmill.policy.network import Output

METRICS = ("loss/policy", "loss/value", "loss/entropy", "kl", "clip_fraction")  # as the native pass gives them


class PPO(Loss):
    """The clipped surrogate and the entropy bonus, each with its own weight."""

    clip: Number = 0.2
    """How far the ratio of new to old probabilities may move from 1 before it is clipped."""
    entropy_weight: Number = 0.01
    """Weight of the entropy bonus, which keeps the policy exploring."""

    reads: ClassVar[tuple[str, ...]] = ("actions", "log_probs", "advantages", "values", "returns", "acted")

    def __call__(self, batch: Minibatch, out: Output, now: Progress, heads: Any = None) -> LossResult:
        """The surrogate and the bonus. Beside its numbers it gives `ratios` [T, N], which V-trace reads."""
        surrogate, entropy, metrics = self._parts(batch, out, now)
        return surrogate - now.at(self.entropy_weight) * entropy, metrics

    def weighted(self, batch: Minibatch, out: Output, now: Progress, share: float, heads: Any) -> LossResult:
        surrogate, entropy, metrics = self._parts(batch, out, now)
        return share * now.at(self.weight) * surrogate - share * now.at(self.entropy_weight) * entropy, metrics

    def _parts(self, batch: Minibatch, out: Output, now: Progress) -> tuple[Tensor, Tensor, dict[str, Tensor]]:
        clip, acted = now.at(self.clip), 1.0 if batch.acted is None else batch.acted
        log_all = out.logits.log_softmax(-1)
        log_ratio = log_all.gather(-1, batch.actions.long().unsqueeze(-1)).squeeze(-1) - batch.log_probs
        if batch.acted is not None:  # what somebody else did may be as good as impossible for the policy
            log_ratio = log_ratio.where(batch.acted != 0, 0.0)
        ratio = log_ratio.exp()
        entropy = (-(log_all.exp() * log_all).sum(-1) * acted).mean()
        gain = (batch.advantages * ratio).minimum(batch.advantages * ratio.clamp(1 - clip, 1 + clip))
        policy_loss = -(gain * batch.weights * acted).mean()
        metrics = {
            "loss/policy": policy_loss.detach(),
            "loss/entropy": entropy.detach(),
            "kl": ((ratio - 1 - log_ratio) * acted).detach().mean(),  # Schulman's low-variance estimate
            "clip_fraction": (((ratio - 1).abs() > clip) * acted).float().mean(),
            "ratios": ratio.detach(),  # new over old probabilities
        }
        return policy_loss, entropy, metrics

    def term(self, rest: dict[str, Loss]) -> Callable[..., LossResult]:
        value = rest.get("value")
        if not isinstance(value, Value):
            return functools.partial(_both, self, None)
        del rest["value"]
        return functools.partial(_both, self, value)


def _both(
    ppo: PPO, value: Value | None, batch: Minibatch, out: Output, now: Progress, share: float, heads: Any = None
) -> LossResult:
    """PPO and the critic's loss, weighted: natively where that fits."""
    from gridmill.policy.kernels import native_fits

    if native_fits(out.logits):
        return native(ppo, value, batch, out, now, share)
    return plain(ppo, value, batch, out, now, share)


def plain(ppo: PPO, value: Value | None, batch: Minibatch, out: Output, now: Progress, share: float) -> LossResult:
    """One after the other."""
    loss, metrics = ppo.weighted(batch, out, now, share, None)
    if value is not None:
        more, of_value = value.weighted(batch, out, now, share, None)
        loss, metrics = loss + more, metrics | of_value
    return loss, metrics


def native(ppo: PPO, value: Value | None, batch: Minibatch, out: Output, now: Progress, share: float) -> LossResult:
    """Both in one pass over the rows."""
    weights = [
        share * now.at(ppo.weight),
        now.at(ppo.clip),
        share * now.at(ppo.entropy_weight),
        0.0 if value is None else share * now.at(value.weight),
        0.0 if value is None else now.at(value.clip),
    ]
    loss, numbers, ratios = _fused().apply(out.logits, out.values, batch, weights)
    metrics = dict(zip(METRICS, numbers.unbind(), strict=True)) | {"ratios": ratios}
    if value is None:
        del metrics["loss/value"]
    return loss, metrics


@functools.cache
def _fused() -> Any:
    """The native pass as a function with gradients; made at its first use, since settings import no torch."""
    import torch
    from torch.autograd.function import once_differentiable

    from gridmill.policy.kernels import arrays, native

    class Fused(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, logits: Tensor, values: Tensor, x: Minibatch, weights: list[float]) -> tuple[Tensor, ...]:
            rows = values.numel()
            d_logits, d_values, ratios = torch.empty(logits.shape), torch.empty(values.shape), torch.empty(values.shape)
            means = torch.empty(len(METRICS), dtype=torch.float64)
            flat = [t.contiguous().view(-1) for t in (x.log_probs, x.advantages, x.returns, x.values, x.weights)]
            actions = x.actions.contiguous().view(-1)
            acted = None if x.acted is None else x.acted.contiguous().view(-1).numpy()
            native.ppo_loss(
                *arrays(logits.contiguous().view(rows, -1), values.contiguous().view(-1), actions),
                arrays(*flat),
                acted,
                weights,
                *arrays(d_logits.view(rows, -1), d_values.view(-1), ratios.view(-1), means),
            )
            ctx.save_for_backward(d_logits, d_values)
            policy_loss, value_loss, entropy = means[:3]
            loss = weights[0] * policy_loss - weights[2] * entropy + weights[3] * value_loss
            numbers = means.float()
            ctx.mark_non_differentiable(numbers, ratios)
            return loss.float(), numbers, ratios

        @staticmethod
        @once_differentiable
        def backward(ctx: Any, d_loss: Tensor, *_: Tensor) -> tuple[Tensor, Tensor, None, None]:
            d_logits, d_values = ctx.saved_tensors
            if d_loss != 1:
                d_logits, d_values = d_logits * d_loss, d_values * d_loss
            return d_logits, d_values, None, None

    return Fused
