"""The GPUs of this machine, and copies to them. torch is imported only where a driver shows one: that takes seconds."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch
    from torch import Tensor

# What drivers show: of NVIDIA, of AMD, and of either inside of WSL; containers may have any number of the first.
SIGNS = ("dev/nvidia[0-9]*", "dev/nvidia-caps", "proc/driver/nvidia/gpus/*", "dev/kfd", "dev/dxg", "dev/nvhost-gpu")


def has_sign(root: Path = Path("/")) -> bool:
    """Whether a driver shows a GPU."""
    return any(any(root.glob(sign)) for sign in SIGNS)


def count() -> int:
    """GPUs that a run could use: as many as torch finds, or one where only a driver shows any and torch is missing."""
    if not has_sign():
        return 0
    if importlib.util.find_spec("torch") is None:
        return 1
    import torch

    return torch.cuda.device_count()


def memory() -> int | None:
    """Bytes of the GPU's memory; None where there is none to ask."""
    if not has_sign() or importlib.util.find_spec("torch") is None:
        return None
    import torch

    return int(torch.cuda.get_device_properties(0).total_memory) if torch.cuda.is_available() else None


def sent(tensor: Tensor, device: torch.device) -> Tensor:
    """A tensor of the host on a device; the host does not wait for it, and a GPU reads it from memory it knows."""
    if device.type == "cpu":
        return tensor
    return (tensor.pin_memory() if device.type == "cuda" else tensor).to(device, non_blocking=True)
