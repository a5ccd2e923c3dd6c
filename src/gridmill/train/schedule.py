"""Numbers that change over a run: a Schedule and where the run is -> the number now. Nothing is remembered, so a
resumed run goes on with the same numbers."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from gridmill.run import Schedule


@dataclass(frozen=True)
class Progress:
    """Where a run is: agent steps and epochs done, of how many, and the newest metrics."""

    steps: int
    total_steps: int
    epochs: int
    total_epochs: int
    metrics: Mapping[str, float] = field(default_factory=dict)


def number_at(number: float | Schedule, now: Progress) -> float:
    """A setting's value now."""
    if not isinstance(number, Schedule):
        return float(number)
    share = _share(number, now)
    if number.shape == "cosine":
        share = (1 - math.cos(math.pi * share)) / 2
    elif number.shape == "stairs":
        share = math.floor(share * number.stairs) / number.stairs
    return number.start + (number.end - number.start) * share


def _share(schedule: Schedule, now: Progress) -> float:
    """How far along, from 0 to 1. A metric that has not been seen yet counts as the beginning."""
    if schedule.over == "steps":
        at, end = float(now.steps), float(now.total_steps)
    elif schedule.over == "epochs":
        at, end = float(now.epochs), float(now.total_epochs)
    else:
        at, end = now.metrics.get(schedule.over.removeprefix("metric:"), schedule.begin), schedule.until
    until = schedule.until if schedule.until else end
    if until == schedule.begin:
        return 1.0
    return min(1.0, max(0.0, (at - schedule.begin) / (until - schedule.begin)))
