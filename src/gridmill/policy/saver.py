"""Saving while training: one bad write does not end a run, the third in a row does."""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from torch import Tensor

from gridmill.policy.checkpoint import NotSaved, save

BACK_OFF = (10.0, 60.0)  # seconds after the first and the second miss; the next one is the last


class Saver:
    """Saves for a training run that must not die of one bad write.

    A failed save is noted and training goes on; until the back-off is over, `save` does nothing. `retry_due` says when
    to call it again, whatever the usual clock says. The third failure in a row is NotSaved.
    """

    def __init__(
        self,
        folder: Path,
        keep: int,
        note: Callable[[str], None] = warnings.warn,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.folder, self.keep, self.note, self.clock = folder, keep, note, clock
        self.misses = 0
        self._next_try = -math.inf

    def retry_due(self) -> bool:
        return self.misses > 0 and self.clock() >= self._next_try

    def save(
        self,
        epoch: int,
        policy: Mapping[str, Tensor],
        trainer: Mapping[str, Tensor],
        record: Mapping[str, Any],
        score: float | None = None,
        last: bool = False,
        in_use: Path | None = None,
    ) -> Path | None:
        """Where it lies now, or None after a miss; `last` tries even during the back-off, since no later call comes."""
        if self.clock() < self._next_try and not last:
            return None
        try:
            path = save(self.folder, epoch, policy, trainer, record, self.keep, score, in_use)
        except OSError as error:
            self._miss(epoch, error)
            return None
        self.misses, self._next_try = 0, -math.inf
        return path

    def _miss(self, epoch: int, error: OSError) -> None:
        self.misses += 1
        said = f"epoch {epoch} could not be saved: {error.strerror or type(error).__name__} - in `{self.folder}`"
        if self.misses > len(BACK_OFF):
            raise NotSaved(f"{said}; {self.misses} failures in a row, earlier checkpoints are intact") from error
        wait = BACK_OFF[self.misses - 1]
        self._next_try = self.clock() + wait
        self.note(f"{said}; training continues, the next try is in {wait:g} s")
