"""The encoder `mlp`: a dense layer over a vector observation."""

from __future__ import annotations

import numpy as np
from torch import Tensor

from gridmill.policy.config import PolicyConfig, Size
from gridmill.policy.encoders import Encoder
from gridmill.policy.initial import RELU, dense
from gridmill.policy.spec import Layout, Spec


class Mlp(Encoder):
    """A dense layer over a vector observation."""

    reads = "vector"

    def __init__(self, config: PolicyConfig, spec: Spec, layout: Layout | None, rng: np.random.Generator) -> None:
        super().__init__(config, spec, layout, rng)
        self.first = dense(spec.obs_size, config.hidden, RELU, rng, relu=True)

    @classmethod
    def size(cls, config: PolicyConfig, spec: Spec, layout: Layout | None) -> Size:
        return Size((spec.obs_size + 1) * config.hidden, spec.obs_size + config.hidden)

    def forward(self, obs: Tensor) -> Tensor:
        return self.first(obs)  # type: ignore[no-any-return]
