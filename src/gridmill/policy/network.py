"""Policy: encoder -> dense layers -> core -> actor and critic, built from settings and a spec.

One forward serves acting (T = 1) and learning (T = a segment), so the two cannot disagree. The policy knows no trainer;
`Player` (player.py) is the same network behind NumPy arrays.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from gridmill.policy.cores import CORES, Lstm
from gridmill.policy.encoders import ENCODERS, Bag
from gridmill.policy.initial import RELU, dense
from gridmill.policy.kernels import Tokens
from gridmill.policy.layers import Dense, Heads
from gridmill.policy.spec import Layout, Spec
from gridmill.run import PolicyConfig

FORBIDDEN = -1e9  # the logit of an action whose mask is 0


class Output(NamedTuple):
    """What a forward gives for [T, N] rows."""

    logits: Tensor  # [T, N, actions], masked
    values: Tensor  # [T, N]
    state: Tensor  # [N, state_size], after the last step
    hidden: Tensor  # [T, N, hidden], what the heads see


class Policy(nn.Module):
    """A network for one spec."""

    def __init__(self, config: PolicyConfig, spec: Spec, seed: int = 0) -> None:
        super().__init__()
        self.config, self.spec = config, spec
        rng = np.random.default_rng([seed, 0x9E3779B9])
        layout = Layout.of(spec) if spec.kind == "tokens" else None
        sizes = (0, 0) if layout is None else (layout.places, layout.slots)
        self.layout = layout
        self.encoder = ENCODERS[config.encoder](config, spec, *sizes, rng)
        self.dense = nn.ModuleList(dense(config.hidden, config.hidden, RELU, rng, True) for _ in range(config.layers))
        self.core = CORES[config.core](config.hidden, rng)
        self.actor = dense(config.hidden, len(spec.actions), config.actor_gain, rng)
        self.critic = dense(config.hidden, 1, 1.0, rng)
        self.heads = Heads(self.actor, self.critic)
        self.place(torch.device("cpu"))

    @property
    def state_size(self) -> int:
        """Floats of recurrent state per row."""
        return int(self.core.state_size)

    def place(self, device: torch.device) -> Policy:
        """Move to a device, the tables that are no weights included."""
        if self.layout is not None:
            self.encoder.tokens = Tokens(self.layout, device)
        return self.to(device)

    def hold(self, still: bool) -> None:
        """While weights hold still, forwards without gradients share what depends on weights alone."""
        for part in self.modules():
            if isinstance(part, Bag | Dense | Lstm) and part is not self.actor:  # the heads have the actor's
                part.hold(still)
        self.heads.hold(still)

    def read(self, seen: Spec) -> None:
        """From now on read the bytes of an environment with other words, on a CPU."""
        if self.layout is not None:
            self.encoder.tokens = Tokens(Layout.of(self.spec, seen), torch.device("cpu"))

    def forward(self, obs: Tensor, state: Tensor, starts: Tensor, masks: Tensor | None) -> Output:
        """obs [T, N, ...], state [N, state_size], starts uint8 [T, N], masks uint8 [T, N, actions] or None."""
        steps, rows = starts.shape
        x = self.encoder(obs.reshape(steps * rows, *obs.shape[2:]))
        for layer in self.dense:
            x = layer(x)
        y, last = self.core(x.view(steps, rows, -1), state, starts)
        logits, values = self.heads(y)
        logits = logits.float()
        if masks is not None:
            logits = logits.masked_fill(masks == 0, FORBIDDEN)
        return Output(logits, values.float(), last.float(), y)
