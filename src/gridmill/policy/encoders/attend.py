"""The encoder `attend`: latent queries that attend to the tokens."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import numpy as np
from torch import Tensor
from torch.nn import functional as F

from gridmill.config import ConfigError
from gridmill.policy.config import PolicyConfig, Size
from gridmill.policy.encoders import TABLE_SCALE, Encoder
from gridmill.policy.initial import RELU, dense, table
from gridmill.policy.spec import Layout, Spec


class Attend(Encoder):
    """A few latent queries attend to the tokens."""

    shaped_by = ("latents", "heads")
    any_length = True
    named_axes: ClassVar[Mapping[str, tuple[int, str]]] = {"place": (0, "places"), "slot": (0, "slots")}

    def __init__(self, config: PolicyConfig, spec: Spec, layout: Layout, rng: np.random.Generator) -> None:
        super().__init__(config, spec, layout, rng)
        _refuse_uneven(config)
        self.heads = config.heads
        self.place = table(layout.places, config.hidden, TABLE_SCALE, rng)
        self.slot = table(layout.slots, config.hidden, TABLE_SCALE, rng)
        self.latents = table(config.latents, config.hidden, 1.0, rng)
        self.mix = dense(config.hidden, config.hidden, RELU, rng, relu=True)
        self.key = dense(config.hidden, config.hidden, 1.0, rng)
        self.value = dense(config.hidden, config.hidden, 1.0, rng)
        self.join = dense(config.latents * config.hidden, config.hidden, RELU, rng, relu=True)

    @classmethod
    def size(cls, config: PolicyConfig, spec: Spec, layout: Layout | None) -> Size:
        assert layout is not None
        _refuse_uneven(config)
        hidden, latents, tokens = config.hidden, config.latents, spec.num_tokens
        dense_layers = 3 * (hidden + 1) + latents * hidden + 1
        parameters = (layout.places + layout.slots + latents + dense_layers) * hidden
        # The embedding of every token, what is made of it (mixed, key, value), the scores, and what was found.
        activations = 4 * tokens * hidden + config.heads * latents * tokens + (2 * latents + 1) * hidden
        return Size(parameters, activations + 3 * tokens // 4)

    def forward(self, obs: Tensor) -> Tensor:
        place, slot, amount, counts = self.tokens.read(obs)
        much = self.slot[(slot + 1).clamp(max=self.slot.shape[0] - 1)] * amount.unsqueeze(-1)
        tokens = self.mix(self.place[place] + self.slot[slot] + much)  # [rows, tokens, hidden]
        rows, _, hidden = tokens.shape
        split = (rows, -1, self.heads, hidden // self.heads)
        key = self.key(tokens).view(split).transpose(1, 2)
        value = self.value(tokens).view(split).transpose(1, 2)
        query = self.latents.to(key.dtype).expand(rows, -1, -1).reshape(split).transpose(1, 2)
        # A row without tokens would attend to nothing and give no number: it may look at what does not count, in vain.
        any_there = counts.any(1, keepdim=True)
        found = F.scaled_dot_product_attention(query, key, value, attn_mask=(counts | ~any_there)[:, None, None, :])
        return self.join(found.transpose(1, 2).reshape(rows, -1) * any_there)  # type: ignore[no-any-return]


def _refuse_uneven(config: PolicyConfig) -> None:
    if config.hidden % config.heads:
        raise ConfigError(
            f"expected hidden to be a multiple of heads = {config.heads}, got {config.hidden}", "$.policy.hidden"
        )
