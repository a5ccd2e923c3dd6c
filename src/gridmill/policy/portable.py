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
from gridmill.policy import checkpoint
from gridmill.policy.config import PolicyConfig
from gridmill.policy.network import Policy
from gridmill.policy.spec import Spec

MOST_WORDS = 4096  # features, tags, vibes, actions
MOST_WINDOW = 16  # a place has four bits for each side
MOST_NUMBERS = 1 << 24  # of an observation


def as_record(policy: Policy) -> tuple[dict[str, Any], bytes]:
    """Settings, words, names and shapes of the tensors, and their numbers: float32, one after the other."""
    tensors = {name: tensor.detach().cpu().float().contiguous() for name, tensor in policy.state_dict().items()}
    data = b"".join(tensor.numpy().astype("<f4").tobytes() for tensor in tensors.values())
    return {
        "hash": hashlib.sha256(data).hexdigest(),
        "config": policy.config.tree(),
        "spec": policy.spec.tree(),
        "tensors": [[name, list(tensor.shape)] for name, tensor in tensors.items()],
    }, data


def from_record(
    config: Mapping[str, Any], spec: Mapping[str, Any], tensors: Sequence[tuple[str, tuple[int, ...]]], data: bytes
) -> Policy:
    """The policy of a record; ValueError if it is none, or one that wants code of its own."""
    for part in ("encoder", "core"):
        if user_code.is_own(str(config.get(part, ""))):
            raise ValueError(f"policy: a file may not name code of its own, got {str(config[part])[:60]!r}")
    settings, words = PolicyConfig.load(dict(config) | {"init_from": ""}), Spec.load(dict(spec))
    _refuse_large(words)
    wanted = Policy.size(settings, words).parameters
    if 4 * wanted != len(data):
        raise ValueError(f"policy: expected {wanted} weights for its settings, got {len(data) // 4}")
    policy = Policy(settings, words)
    own = {name: tuple(tensor.shape) for name, tensor in policy.state_dict().items()}
    if own != dict(tensors):
        raise ValueError("policy: expected the tensors of its settings, got others")
    policy.load_state_dict(_split(tensors, data))
    policy.freeze(True)
    return policy


def _split(tensors: Sequence[tuple[str, tuple[int, ...]]], data: bytes) -> dict[str, Tensor]:
    numbers, found, at = np.frombuffer(data, "<f4").astype(np.float32), {}, 0
    if not np.isfinite(numbers).all():
        raise ValueError("policy: expected finite weights, got others")
    for name, shape in tensors:
        size = math.prod(shape)
        found[name] = torch.from_numpy(numbers[at : at + size].reshape(shape))
        at += size
    return found


def _refuse_large(spec: Spec) -> None:
    words = max(len(spec.actions), len(spec.features), len(spec.tags), len(spec.vibes), len(spec.normalizers))
    sizes = (max(spec.window) <= MOST_WINDOW, words <= MOST_WORDS, max(spec.obs_size, spec.num_tokens) <= MOST_NUMBERS)
    tops = all(0 <= top <= MOST_NUMBERS for top in spec.normalizers)
    if not all(sizes) or not tops or min(*spec.window, spec.obs_size, spec.num_tokens) < 0:
        raise ValueError("policy: expected the words of a game, got more than any game has")


# ---- what values mean


def meaning(path: Path, run: Mapping[str, Any]) -> tuple[float | None, float | None]:
    """The discount of a checkpoint's values, and what the rewards in them were divided by; None where unknown."""
    trainer = run.get("trainer", {})
    gamma = trainer.get("gamma")
    gamma = float(gamma) if isinstance(gamma, int | float) else None
    if trainer.get("signal") or trainer.get("reward") not in ("raw", "scaled"):
        return gamma, None
    if trainer["reward"] == "raw":
        return gamma, 1.0
    try:
        with safe_open(path / checkpoint.TRAINER, framework="pt") as file:
            return gamma, deviation(file.get_tensor("reward.sums"))
    except (OSError, SafetensorError):
        return gamma, None


def deviation(sums: Tensor) -> float:
    """The standard deviation of discounted returns, from the sums that a trainer keeps; 0 before any was seen."""
    weight, squares, products, returns = sums.tolist()
    return math.sqrt(max(0.0, returns - products**2 / squares) / weight) if weight > 0 else 0.0
