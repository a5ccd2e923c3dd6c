"""Contrast over time (InfoNCE, van den Oord et al. 2018): from what the policy knows now, its head must tell the state
`offset` steps later from all others of the same segment. It needs no reward, so it teaches the network what changes,
and how, before any is found.

Segments are compared with themselves only, so neither the size of a minibatch nor that of a microbatch matters.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from gridmill.config import ConfigError
from gridmill.config.schedule import Count, NotNegativeNumber, PositiveNumber, Progress
from gridmill.losses import Loss, LossResult, Minibatch

if TYPE_CHECKING:
    from torch import nn

    from gridmill.policy.config import PolicyConfig
    from gridmill.policy.network import Output
    from gridmill.policy.spec import Spec
    from gridmill.run import Run


class Contrastive(Loss):
    """The cross entropy of finding what comes later among all steps of a segment."""

    weight: NotNegativeNumber = 0.01
    offset: Count = 4
    """How many ticks later the state to be recognized lies."""
    size: Count = 32
    """Dimensions of the space in which states are compared."""
    temperature: PositiveNumber = 0.1
    """Divides the similarities; smaller = sharper."""

    reads_hidden: ClassVar[bool] = True

    def check(self, run: Run) -> None:
        if self.offset >= run.trainer.bptt_horizon:
            horizon = run.trainer.bptt_horizon
            raise ConfigError(f"expected less than trainer.bptt_horizon = {horizon}, got {self.offset}", "$.offset")

    def heads(self, spec: Spec, config: PolicyConfig) -> nn.Module:
        from torch import nn

        return nn.ModuleDict({name: nn.Linear(config.hidden, self.size) for name in ("now", "later")})

    def __call__(self, batch: Minibatch, out: Output, now: Progress, heads: nn.Module | None = None) -> LossResult:
        """A step whose episode ends before the later one has nothing to find, and counts 0."""
        import torch
        from torch.nn.functional import normalize

        assert isinstance(heads, torch.nn.ModuleDict)
        hidden, ahead = out.hidden.float(), self.offset
        anchors = normalize(heads["now"](hidden[:-ahead]), dim=-1)
        candidates = normalize(heads["later"](hidden[ahead:]), dim=-1)
        alike = torch.einsum("tnd,snd->nts", anchors, candidates) / now.at(self.temperature)
        log_prob = alike.log_softmax(-1).diagonal(dim1=1, dim2=2)  # [N, T - offset]: of the right one
        episode = batch.episode_starts.long().cumsum(0)
        counts = (episode[ahead:] == episode[:-ahead]).t().float()
        found = (alike.argmax(-1) == torch.arange(alike.shape[1], device=alike.device)).float()
        loss = -(log_prob * counts * batch.weights[:, None]).mean()
        share = (found * counts).sum() / counts.sum().clamp(min=1.0)
        return loss, {"loss/contrastive": loss.detach(), "contrastive/found": share}
