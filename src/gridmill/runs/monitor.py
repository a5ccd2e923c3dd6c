"""Monitor: what the process and the machine are busy with, as metrics, looked at by a thread of its own.

An epoch's metrics have the means of the looks since the last that had any. Shares are of 1 (all cores, the whole GPU),
memory is in bytes. A machine without a GPU, or without the package that asks it (nvidia-ml-py, extra `train`), has no
gpu/ entries.
"""

from __future__ import annotations

import functools
import importlib
import threading
from typing import Any

import psutil

from gridmill.config import memory


class Monitor:
    """Looks every so many seconds, the first time at once; `take` hands out what was seen since the last time."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._seen: list[dict[str, float]] = []
        self._lock = threading.Lock()
        self._end = threading.Event()
        first = sample()
        del first["cpu/util"]  # a share since the look before, which is not ours
        self._seen.append(first)
        self._thread = threading.Thread(target=self._live, name="monitor", daemon=True)
        self._thread.start()

    def _live(self) -> None:
        while not self._end.wait(max(self._seconds, LEAST_SECONDS)):
            self._look()

    def _look(self) -> None:
        found = sample()
        with self._lock:
            self._seen.append(found)

    def take(self) -> dict[str, float]:
        """Means of what was seen, by name; empty if nobody looked."""
        with self._lock:
            seen, self._seen = self._seen, []
        names = dict.fromkeys(name for one in seen for name in one)
        values = {name: [one[name] for one in seen if name in one] for name in names}
        return {name: sum(known) / len(known) for name, known in values.items()}

    def close(self) -> None:
        self._end.set()
        self._thread.join()


LEAST_SECONDS = 0.05  # between two looks: more would be work of their own


def sample() -> dict[str, float]:
    """One look; cpu/util is the mean since the look before, of whatever monitor."""
    process = _process()
    with process.oneshot():
        used = process.cpu_percent() / 100
        found = {"memory/rss": float(process.memory_info().rss), "cpu/util": used / (psutil.cpu_count() or 1)}
        found["cpu/threads"] = float(process.num_threads())
    found["memory/free"] = float(memory.free())
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
