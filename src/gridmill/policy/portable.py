"""A policy as plain data and one block of numbers: what a replay file carries, and what a page can run.

The other way, nothing is believed: a file may come from a stranger, so it may not name code, and sizes are compared
before a network is made.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

from gridmill.config import user_code
from gridmill.config.files import kind_of
from gridmill.policy import checkpoint, initial
from gridmill.policy.config import PolicyConfig
from gridmill.policy.network import Policy
from gridmill.policy.record import SavedTrainer, refuse_large
from gridmill.policy.spec import Spec


def settings_of(config: PolicyConfig) -> dict[str, Any]:
    """Settings as a page reads them: it has no word for networks of people's own, which no file may name."""
    return {name: value for name, value in config.tree().items() if name != "network" or value}


def as_record(policy: Policy) -> tuple[dict[str, Any], bytes]:
    """Settings, words, names and shapes of the tensors, and their numbers: float32, one after the other."""
    tensors = {name: tensor.detach().cpu().float().contiguous() for name, tensor in policy.state_dict().items()}
    data = b"".join(tensor.numpy().astype("<f4").tobytes() for tensor in tensors.values())
    return {
        "hash": hashlib.sha256(data).hexdigest(),
        "config": settings_of(policy.config),
        "spec": policy.spec.tree(),
        "tensors": [[name, list(tensor.shape)] for name, tensor in tensors.items()],
    }, data


def from_record(
    config: Mapping[str, Any], spec: Mapping[str, Any], tensors: Sequence[tuple[str, tuple[int, ...]]], data: bytes
) -> Policy:
    """The policy of a record; ValueError if it is none, or one that wants code of its own."""
    for text in user_code.named_in({"policy": dict(config)}):
        raise ValueError(f"policy: a file may not name custom code, got {text[:60]!r}")
    settings, words = PolicyConfig.load(dict(config) | {"init_from": ""}), Spec.load(dict(spec))
    refuse_large(words)
    wanted = Policy.size(settings, words).parameters
    if 4 * wanted != len(data):
        raise ValueError(f"policy: expected {wanted} weights for its settings, got {len(data) // 4}")
    with initial.left_out():
        policy = Policy(settings, words)
    own = {name: tuple(tensor.shape) for name, tensor in policy.state_dict().items()}
    if own != dict(tensors):
        raise ValueError("policy: its tensors are not those that its settings require")
    policy.load_state_dict(_split(tensors, data))
    policy.freeze(True)
    return policy


def _split(tensors: Sequence[tuple[str, tuple[int, ...]]], data: bytes) -> dict[str, Tensor]:
    numbers, found, at = np.frombuffer(data, "<f4").astype(np.float32), {}, 0
    if not np.isfinite(numbers).all():
        raise ValueError("policy: expected finite weights, got NaN or infinity")
    for name, shape in tensors:
        size = math.prod(shape)
        found[name] = torch.from_numpy(numbers[at : at + size].reshape(shape))
        at += size
    return found


# ---- what values mean


def meaning(path: Path, trainer: SavedTrainer) -> tuple[float | None, float | None]:
    """The discount of a checkpoint's values, and what the rewards in them were divided by; None where unknown."""
    gamma = float(trainer.gamma) if isinstance(trainer.gamma, int | float) else None
    if trainer.signal or trainer.reward not in ("raw", "scaled"):
        return gamma, None
    if trainer.reward == "raw":
        return gamma, 1.0
    try:
        if kind_of(path / checkpoint.TRAINER) != "a plain file":
            return gamma, None
        with safe_open(path / checkpoint.TRAINER, framework="pt") as file:
            scale = deviation(file.get_tensor("reward.sums"))
    except (OSError, ValueError, TypeError, ArithmeticError, SafetensorError):  # nobody has checked what is in it
        return gamma, None
    return gamma, scale if math.isfinite(scale) else None


def deviation(sums: Tensor) -> float:
    """The standard deviation of discounted returns, from the sums that a trainer keeps; 0 before any was seen."""
    weight, squares, products, returns = sums.tolist()
    return math.sqrt(max(0.0, returns - products**2 / squares) / weight) if weight > 0 else 0.0
