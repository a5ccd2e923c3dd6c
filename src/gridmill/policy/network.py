"""Policy: encoder -> dense layers -> core -> actor and critic, made from settings and a spec.

One forward serves acting (T = 1) and learning (T = a segment), so the two cannot disagree. The policy knows no trainer;
`Player` (player.py) is the same network behind NumPy arrays. A whole network of the user's own is in own_network.py;
`build` in build.py makes the one or the other.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from gridmill.policy.config import PolicyConfig, Size
from gridmill.policy.cores import core_for
from gridmill.policy.encoders import encoder_for, name_for
from gridmill.policy.initial import RELU, dense
from gridmill.policy.kernels import Tokens
from gridmill.policy.layers import Heads
from gridmill.policy.spec import Layout, Spec

FORBIDDEN = -1e9  # the logit of an action whose mask is 0


class Output(NamedTuple):
    """What a forward gives for [T, N] rows."""

    logits: Tensor  # [T, N, actions], masked
    values: Tensor  # [T, N]
    state: Tensor  # [N, state_size], after the last step
    hidden: Tensor  # [T, N, hidden], what the heads see


class Policy(nn.Module):
    """A network for one spec."""

    gives_hidden = True  # whether Output.hidden is what the heads see

    def __init__(self, config: PolicyConfig, spec: Spec, seed: int = 0) -> None:
        super().__init__()
        self.config, self.spec = config, spec
        rng = np.random.default_rng([seed, 0x9E3779B9])
        self.layout = _layout(spec)
        with torch.random.fork_rng(devices=[]):  # parts of the user's own may draw from torch: a seed gives the same
            torch.manual_seed(seed)
            self._make(rng)
        self.place(torch.device("cpu"))

    def _make(self, rng: np.random.Generator) -> None:
        """The parts with weights, in the order in which numbers are drawn for them."""
        config, spec = self.config, self.spec
        self.encoder = encoder_for(config, spec)(config, spec, self.layout, rng)
        self.dense = nn.ModuleList(dense(config.hidden, config.hidden, RELU, rng, True) for _ in range(config.layers))
        self.core = core_for(config.core)(config.hidden, rng)
        self.actor = dense(config.hidden, len(spec.actions), config.actor_gain, rng)
        self.critic = dense(config.hidden, 1, 1.0, rng)
        self.heads = Heads(self.actor, self.critic)

    def __repr__(self) -> str:
        config, count = self.config, sum(parameter.numel() for parameter in self.parameters())
        parts = f"{name_for(config, self.spec)} -> {config.core}, hidden {config.hidden}, layers {config.layers}"
        return f"<Policy {parts}: {count:,} parameters, {len(self.spec.actions)} actions>"

    @property
    def state_size(self) -> int:
        """Floats of recurrent state per row."""
        return int(self.core.state_size)

    @property
    def any_length(self) -> bool:
        """Whether rows of tokens may be shown without the room behind them."""
        return self.layout is not None and bool(self.encoder.any_length)

    def place(self, device: torch.device) -> Policy:
        """Move to a device, the tables that are no weights included."""
        if self.layout is not None:
            self.encoder.tokens = Tokens(self.layout, device)
        return self.to(device)

    @staticmethod
    def size(config: PolicyConfig, spec: Spec) -> Size:
        """What a network of these settings takes, without making one."""
        encoder = encoder_for(config, spec).size(config, spec, _layout(spec))
        core = core_for(config.core).size(config.hidden)
        hidden, actions = config.hidden, len(spec.actions)
        dense_layers = config.layers * hidden + actions + 1  # outputs of layers with `hidden` inputs and a bias
        return Size(
            encoder.parameters + core.parameters + dense_layers * (hidden + 1),
            encoder.activations + core.activations + 2 * config.layers * hidden + 3 * actions,
            core.state,
        )

    @contextmanager
    def frozen(self) -> Iterator[Policy]:
        """The acting form: what depends on weights alone (packed weights, joined tables) is made once.

        Forwards without gradients use it, so nobody may change weights before the context ends.
        """
        self.freeze(True)
        try:
            yield self
        finally:
            self.freeze(False)

    def freeze(self, frozen: bool) -> None:
        """The same without an end, for weights that are never changed again."""
        for part in self.modules():
            freeze: Any = getattr(part, "freeze", None)
            if freeze is not None and part not in (self, self.actor):  # the heads have the actor's
                freeze(frozen)
        self.heads.freeze(frozen)

    def read(self, seen: Spec) -> None:
        """From now on read the bytes of an environment with other words, on a CPU."""
        if self.layout is not None:
            self.encoder.tokens = Tokens(Layout.of(self.spec, seen), torch.device("cpu"))

    def forward(self, obs: Tensor, state: Tensor, episode_starts: Tensor, masks: Tensor | None) -> Output:
        """obs [T, N, ...], state [N, state_size], episode_starts uint8 [T, N], masks uint8 [T, N, actions] or None."""
        steps, rows = episode_starts.shape
        x = self.encoder(obs.reshape(steps * rows, *obs.shape[2:]))
        for layer in self.dense:
            x = layer(x)
        y, last = self.core(x.view(steps, rows, -1), state, episode_starts)
        logits, values = self.heads(y)
        logits = logits.float()
        if masks is not None:
            logits = logits.masked_fill(masks == 0, FORBIDDEN)
        return Output(logits, values.float(), last.float(), y)


def _layout(spec: Spec) -> Layout | None:
    return Layout.of(spec) if spec.kind == "tokens" else None
