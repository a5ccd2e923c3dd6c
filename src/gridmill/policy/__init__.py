"""Policies: networks built from an environment's spec, and players loaded from checkpoints.

Importing this package alone does not import torch.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from gridmill.policy.config import PolicyConfig
from gridmill.policy.spec import Layout, Spec

if TYPE_CHECKING:
    from gridmill.policy.player import Player

__all__ = ["Layout", "PolicyConfig", "Spec", "load"]


def load(path: str | Path) -> Player:
    """A trained policy from a checkpoint, a run directory, or its checkpoints directory."""
    from gridmill.policy.player import load as load_player

    return load_player(Path(path))
