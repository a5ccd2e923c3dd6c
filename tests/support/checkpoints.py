"""A small state whose every part tells its epoch, so that parts of different epochs are seen at once."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from gridmill.policy import checkpoint
from gridmill.policy.checkpoint import Checkpoint, FileEntry, Manifest

FILES = ("policy.safetensors", "trainer.safetensors", "run.json", "manifest.json")


def state_of(epoch: int, floats: int = 64) -> tuple[dict[str, Tensor], dict[str, Tensor], dict[str, Any]]:
    """Weights; optimizer, random state, worlds (bytes) and counters; the record with a curriculum: all of one epoch."""
    noise = hashlib.sha256(str(epoch).encode()).digest()
    policy = {"actor.weight": torch.full((floats // 4, 4), float(epoch)), "critic.bias": torch.tensor(epoch / 2)}
    trainer = {
        "optimizer.exp_avg": torch.full((floats,), epoch + 0.25, dtype=torch.float64),
        "random": torch.frombuffer(bytearray(noise), dtype=torch.uint8),
        "worlds": torch.full((3, 7), epoch % 251, dtype=torch.uint8),
        "counter": torch.tensor(epoch, dtype=torch.int64),
        "none": torch.zeros((0, 5), dtype=torch.bfloat16),
    }
    return policy, trainer, {"epoch": epoch, "curriculum": {"tasks": [epoch, epoch + 1]}}


def save_epoch(folder: Path, epoch: int, keep: int = 3, score: float | None = None, floats: int = 64) -> Path:
    return checkpoint.save(folder, epoch, *state_of(epoch, floats), keep=keep, score=score)


def assert_whole(found: Checkpoint, floats: int = 64) -> None:
    """Every part comes from the epoch the checkpoint names."""
    policy, trainer, record = state_of(found.epoch, floats)
    for got, expected in ((found.policy, policy), (found.trainer, trainer)):
        assert got.keys() == expected.keys()
        for name, tensor in expected.items():
            assert got[name].dtype == tensor.dtype, name
            assert torch.equal(got[name], tensor), f"epoch {found.epoch}: {name} is of another epoch"
    assert found.record == record


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def rewrite(file: Path, data: bytes) -> None:
    """As a new file: some file systems wait for the disk when an old one is emptied and written again."""
    file.unlink(missing_ok=True)
    file.write_bytes(data)


def reseal(path: Path) -> None:
    """Give changed files a manifest that fits them, as somebody who means harm would."""
    tree = json.loads((path / "manifest.json").read_bytes())
    del tree["sha256"]
    for part, name in zip(("policy", "trainer", "record"), FILES, strict=False):
        tree[part] = FileEntry.of((path / name).read_bytes()).tree()
    rewrite(path / "manifest.json", Manifest.load(tree).sealed())
