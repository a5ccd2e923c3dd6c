"""Cores: memory along time. Each is a file here, found by its name.

A core maps x [T, N, H] with the state [N, S] before it and the flags of first steps (episode_starts, uint8 [T, N]) to
y [T, N, H] and the state after it. A state is forgotten before a first step, here and nowhere else, so that acting and
learning cannot differ.
"""

from __future__ import annotations

import numpy as np
from torch import nn

from gridmill.config import user_code
from gridmill.policy import onednn
from gridmill.policy.config import Size

onednn.settle()


class Core(nn.Module):
    """What all have. A subclass makes its layers."""

    def __init__(self, hidden: int, rng: np.random.Generator) -> None:
        super().__init__()
        self.state_size = self.size(hidden).state

    def freeze(self, frozen: bool) -> None:
        """Weights do not change from now on, or may again: what depends on them alone can be made once."""

    @classmethod
    def size(cls, hidden: int) -> Size:
        """Known without making anything: the estimate of memory and the recurrent state's storage go by it."""
        raise NotImplementedError


def core_for(name: str) -> type[Core]:
    """The class of a name."""
    return user_code.find(name, __name__, Core, "core")
