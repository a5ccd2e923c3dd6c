"""Monitor: what the process and the machine are busy with, as metrics.

Shares are of 1 (all cores, the whole GPU), memory is in bytes. A machine without a GPU, or without the package that
asks it (nvidia-ml-py, extra `train`), has no gpu/ entries.
"""

from __future__ import annotations

import functools
import importlib
from typing import Any

import psutil


def sample() -> dict[str, float]:
    """One look; cpu/util is the mean since the look before, 0 at the first."""
    process = _process()
    with process.oneshot():
        used = process.cpu_percent() / 100
        found = {"memory/rss": float(process.memory_info().rss), "cpu/util": used / (psutil.cpu_count() or 1)}
    found["memory/free"] = float(psutil.virtual_memory().available)
    return found | _gpu_sample()


@functools.cache
def _process() -> Any:
    return psutil.Process()


def _gpu_sample() -> dict[str, float]:
    gpu = _gpu()
    if gpu is None:
        return {}
    library, device = gpu
    try:
        return {
            "gpu/util": library.nvmlDeviceGetUtilizationRates(device).gpu / 100,
            "gpu/memory": float(library.nvmlDeviceGetMemoryInfo(device).used),
        }
    except library.NVMLError:  # a driver that answers no more is no reason to stop
        return {}


@functools.cache
def _gpu() -> tuple[Any, Any] | None:
    try:
        library = importlib.import_module("pynvml")
    except ImportError:
        return None
    try:
        library.nvmlInit()
        return library, library.nvmlDeviceGetHandleByIndex(0)
    except library.NVMLError:
        return None
