"""Traces of torch's profiler: every `interval_epochs` one, of `active_steps` epochs after waiting and warming up.

A run that has fewer epochs left than that waits and warms up for less, so that it leaves a trace all the same.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch

from gridmill.run import ProfilerConfig


class Traces:
    """Call `around` with every epoch's number; nothing happens unless the settings say so."""

    def __init__(self, config: ProfilerConfig, folder: Path) -> None:
        self.config, self.folder = config, folder
        self._profiler: Any = None
        self._left = 0

    @contextmanager
    def around(self, epoch: int, left: int) -> Iterator[None]:
        """`left` epochs of the run are not done yet, this one among them."""
        c = self.config
        if c.enabled and self._profiler is None and epoch % c.interval_epochs == 0:
            self._start(epoch, left)
        yield
        if self._profiler is not None:
            self._profiler.step()
            self._left -= 1
            if self._left == 0:
                self.close()

    def _start(self, epoch: int, left: int) -> None:
        c = self.config
        warmup = min(c.warmup_steps, left - 1)
        active = min(c.active_steps, left - warmup)
        wait = min(c.wait_steps, left - warmup - active)
        activities = [torch.profiler.ProfilerActivity.CPU]
        if torch.cuda.is_available():
            activities.append(torch.profiler.ProfilerActivity.CUDA)
        self.folder.mkdir(parents=True, exist_ok=True)
        file = self.folder / f"epoch-{epoch:08d}.json"
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Profiler won't be using warmup")  # a run of one epoch has no other way
            schedule = torch.profiler.schedule(wait=wait, warmup=warmup, active=active, repeat=1)
        self._profiler = torch.profiler.profile(
            activities=activities,
            schedule=schedule,
            on_trace_ready=lambda profiler: profiler.export_chrome_trace(str(file)),
            record_shapes=c.record_shapes,
        )
        self._left = wait + warmup + active
        self._profiler.__enter__()

    def close(self) -> None:
        if self._profiler is not None:
            self._profiler.__exit__(None, None, None)
            self._profiler = None
