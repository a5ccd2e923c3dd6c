"""The guard: warns of a run that diverges, and keeps what is needed to see why one broke."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save

from gridmill.config.files import write_whole
from gridmill.run import GuardConfig
from gridmill.train.trainer import Trainer

QUIET_EPOCHS = 100  # between two warnings of one kind
KEPT_STEPS = 100


class Guard:
    """Looks at the metrics of every epoch."""

    def __init__(self, config: GuardConfig) -> None:
        self.config = config
        self._said: dict[str, int] = {}

    def look(self, metrics: Mapping[str, Any]) -> list[str]:
        """What is wrong now, each kind at most once in a hundred epochs; NaN (no update) is not wrong here."""
        c = self.config
        kl, entropy = (metrics.get(name, math.nan) for name in ("kl", "loss/entropy"))  # PPO's; it may be off
        explained = metrics["explained_variance"]
        bad = {
            "kl": (kl > c.max_kl, f"KL {kl:.3g} is above {c.max_kl:g}"),
            "entropy": (
                entropy < c.min_entropy,
                f"entropy {entropy:.3g} is below {c.min_entropy:g}: the policy no longer explores",
            ),
            "critic": (
                explained < c.min_explained_variance,
                f"explained variance {explained:.3g} is below {c.min_explained_variance:g}",
            ),
        }
        found = []
        for kind, (wrong, text) in bad.items():
            since = metrics["epoch"] - self._said.get(kind, -math.inf)
            if wrong and since >= QUIET_EPOCHS:
                self._said[kind] = int(metrics["epoch"])
                found.append(text)
        return found


def first_not_finite(tensors: Mapping[str, torch.Tensor]) -> str:
    """The name of a tensor that holds a non-finite value; empty if none does."""
    for name, tensor in tensors.items():
        if tensor.is_floating_point() and not bool(torch.isfinite(tensor).all()):
            return name
    return ""


def dump(folder: Path, trainer: Trainer) -> Path:
    """The last hundred steps and the minibatch that was no good, as a file of tensors; where it lies."""
    x = trainer.experience
    kept = {"obs": x.obs, "actions": x.actions, "rewards": x.rewards, "log_probs": x.log_probs, "values": x.values}
    kept |= {"terminals": x.terminals, "truncations": x.truncations, "episode_starts": x.episode_starts}
    tensors = {f"last.{name}": value[-KEPT_STEPS:].cpu().contiguous() for name, value in kept.items()}
    bad = trainer.learned.bad if trainer.learned is not None else None
    if bad is not None:
        parts = vars(bad)
        tensors |= {f"minibatch.{n}": v.cpu().contiguous() for n, v in parts.items() if isinstance(v, torch.Tensor)}
    path = folder / "dump" / f"epoch-{trainer.epochs:08d}.safetensors"
    write_whole(path, save(tensors))
    return path
