"""Whether updates were fine, without waiting for a device: it skips a bad one by itself, and is asked once an epoch.

On a CPU, and where an optimizer cannot skip, the host looks at every update before it is made.

In float16 gradients below some 6e-8 would be 0, so the loss is scaled up before the way back and gradients are scaled
down after it. An update whose gradients overflow is left out and the scale halved, which is no fault of the run; the
scale doubles after many updates that were fine (Micikevicius et al. 2018).
"""

from __future__ import annotations

import torch
from torch import Tensor

FINE, OVERFLOW, BAD = 0, 1, 2
FIRST_SCALE, GROWTH, BACKOFF, GROW_AFTER = 2.0**16, 2.0, 0.5, 2000


class LossScale:
    """The factor of the loss; 1 and nothing to do, unless products are float16."""

    def __init__(self, on: bool, device: torch.device) -> None:
        self.on = on
        self.factor = torch.full((), FIRST_SCALE, device=device)
        self.good = torch.zeros((), dtype=torch.int32, device=device)  # updates since it last changed

    def up(self, loss: Tensor) -> Tensor:
        return loss * self.factor if self.on else loss

    def down(self, gradients: list[Tensor]) -> None:
        """In place."""
        if self.on:
            torch._foreach_mul_(gradients, self.factor.reciprocal())

    def verdict(self, norm: Tensor, metrics: Tensor) -> Tensor:
        """FINE, OVERFLOW or BAD, on their device, of an update with this norm of its gradients and these numbers."""
        fine = torch.isfinite(norm + metrics.sum())
        if not self.on:
            return torch.where(fine, FINE, BAD)
        overflow = torch.isfinite(metrics.sum()) & (self.factor > 1)
        found = torch.where(fine, FINE, torch.where(overflow, OVERFLOW, BAD))
        torch._amp_update_scale_(self.factor, self.good, (~fine).float(), GROWTH, BACKOFF, GROW_AFTER)
        return found

    def tensors(self) -> dict[str, Tensor]:
        return {"loss_scale": torch.stack((self.factor, self.good.float())).cpu()} if self.on else {}

    def restore(self, tensors: dict[str, Tensor]) -> None:
        """Go on with a saved scale; a run that was saved without one begins anew."""
        if self.on and "loss_scale" in tensors:
            factor, good = tensors["loss_scale"].tolist()
            self.factor.fill_(factor)
            self.good.fill_(int(good))
