"""Encoders: observations [rows, ...] -> features [rows, hidden]. Each is a file here, found by its name.

Shapes come from the spec alone; how bytes find their meaning is the layout's, so no encoder knows a game.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Literal

import numpy as np
from torch import nn

from gridmill.config import ConfigError, user_code
from gridmill.policy.config import PolicyConfig, Size
from gridmill.policy.kernels import Tokens
from gridmill.policy.spec import Layout, Spec

TABLE_SCALE = 0.1  # of initial embeddings
AUTO = {"tokens": "bag", "vector": "mlp"}


class Encoder(nn.Module):
    """What all have: `tokens`, set by the policy for the bytes of the environment it plays in."""

    reads: ClassVar[Literal["tokens", "vector"]] = "tokens"
    shaped_by: ClassVar[tuple[str, ...]] = ()  # settings that its parameters depend on beside `hidden`
    fixed_window: ClassVar[bool] = False  # whether its parameters fit one window only
    any_length: ClassVar[bool] = False  # whether it can be shown rows without the room behind their last tokens
    # Parameters one of whose axes has names, and what it lists: places, slots, or rows, columns or places times slots.
    named_axes: ClassVar[Mapping[str, tuple[int, str]]] = {}
    tokens: Tokens

    def __init__(self, config: PolicyConfig, spec: Spec, layout: Layout | None, rng: np.random.Generator) -> None:
        """A subclass makes its layers; `layout` has the numbers of places and slots of tokens."""
        super().__init__()

    def freeze(self, frozen: bool) -> None:
        """Weights do not change from now on, or may again: what depends on them alone can be made once."""

    @classmethod
    def size(cls, config: PolicyConfig, spec: Spec, layout: Layout | None) -> Size:
        """For the estimate of memory, without making anything; here that of a dense layer over the observation."""
        inputs = spec.obs_size or 3 * spec.num_tokens
        return Size((inputs + 1) * config.hidden, inputs + config.hidden)


def name_for(config: PolicyConfig, spec: Spec) -> str:
    """The encoder's name; `auto` is settled by what there is to read."""
    return AUTO[spec.kind] if config.encoder == "auto" else config.encoder


def encoder_for(config: PolicyConfig, spec: Spec) -> type[Encoder]:
    """The class; refused if it reads something else."""
    name = name_for(config, spec)
    found = user_code.find(name, __name__, Encoder, "encoder")
    if found.reads != spec.kind:
        raise ConfigError(
            f"expected an encoder that reads {spec.kind}, got {name}, which reads {found.reads}", "$.policy.encoder"
        )
    return found
