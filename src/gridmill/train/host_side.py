"""The host's side of a rollout whose network is on a device: what crosses, when, and from which memory.

A step must send what the policy reads (observations, masks, first steps) and wait for the actions; everything else that
the host knows is kept here and sent once, after the last step. The env's arrays are registered with the device, so that
copies out of them do not block, once and as whole pages, since no page can be registered twice.
"""

from __future__ import annotations

import mmap
from collections.abc import Iterable
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gridmill.train.experience import Experience


class HostSide:
    """Columns of an experience that the host fills, by name, as arrays [T, rows, ...]."""

    def __init__(self, experience: Experience, names: Iterable[str], device: torch.device) -> None:
        self.experience, self.device = experience, device
        self.sent: dict[str, Tensor] = {}  # columns that are sent at the end: not where the experience is the host's
        self.columns: dict[str, NDArray[Any]] = {}
        for name in names:
            column = experience.columns[name]
            if column.device.type != "cpu":
                column = self.sent[name] = torch.zeros(
                    column.shape, dtype=column.dtype, pin_memory=device.type == "cuda"
                )
            self.columns[name] = column.numpy()
        self.starts = experience.known_starts = np.zeros((experience.sizes.horizon, experience.sizes.rows), np.uint8)
        self._registered: list[int] = []

    def send(self) -> None:
        """What was kept, into the experience."""
        for name, column in self.sent.items():
            self.experience.columns[name].copy_(column, non_blocking=True)

    # ---- memory that the device knows

    def register(self, arrays: Iterable[NDArray[Any]]) -> None:
        """Make arrays of the env known to a GPU; elsewhere nothing is to be done."""
        if self.device.type != "cuda":
            return
        for start, size in pages_of(arrays):
            failed = int(_runtime().cudaHostRegister(start, size, 0))
            if failed:
                raise RuntimeError(f"cannot pin the environment's arrays: CUDA error {failed}")
            self._registered.append(start)

    def close(self) -> None:
        """Before the env's memory is given back."""
        while self._registered:
            _runtime().cudaHostUnregister(self._registered.pop())


def pages_of(arrays: Iterable[NDArray[Any]]) -> list[tuple[int, int]]:
    """The whole pages under some arrays as (address, bytes), those that touch joined."""
    size = mmap.PAGESIZE
    spans = sorted(
        (array.ctypes.data // size * size, -(-(array.ctypes.data + array.nbytes) // size) * size) for array in arrays
    )
    found: list[tuple[int, int]] = []
    for start, end in spans:
        if found and start <= found[-1][1]:
            found[-1] = found[-1][0], max(end, found[-1][1])
        else:
            found.append((start, end))
    return [(start, end - start) for start, end in found]


def _runtime() -> Any:
    return torch.cuda.cudart()  # type: ignore[no-untyped-call]
