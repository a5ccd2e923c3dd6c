"""Policies: networks built from an environment's spec, and players loaded from checkpoints.

Importing this package alone does not import torch.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gridmill.config import user_code
from gridmill.policy.config import PolicyConfig
from gridmill.policy.spec import Layout, Spec

if TYPE_CHECKING:
    from gridmill.policy.player import Player

__all__ = ["Layout", "PolicyConfig", "Spec", "export", "info", "load"]


def load(path: str | Path, greedy: bool = False, temperature: float = 1.0, code: Sequence[str] = ()) -> Player:
    """A trained policy from a checkpoint, a run's folder (`runs/x`, `runs/x@best`, `runs/x@12`) or its checkpoints/.

    It samples its actions from the logits divided by `temperature` (1e-30 to 1e30), or takes the most likely ones
    (`greedy`). A custom network, encoder or core is loaded only if its file or module is in `code`.
    """
    from gridmill.policy.player import load as load_player

    user_code.take(code)
    return load_player(Path(path), greedy, temperature)


def export(path: str | Path, out: str | Path, code: Sequence[str] = ()) -> dict[str, Any]:
    """Write a trained policy as FILE.onnx or FILE.pt2 (`torch.export`) for other programs; returns its description.

    `path` and `code` as in `load`.
    """
    from gridmill.policy.exporting import export as write

    user_code.take(code)
    return write(path, Path(out))


def info(path: str | Path) -> dict[str, Any]:
    """Describe a trained policy: network, parameters, game, words, hash, steps, score; runs no code that it names."""
    from gridmill.policy import about

    return about.of(path)
