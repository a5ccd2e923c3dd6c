"""Numbers that may change over a run: a `Number` is a plain number or a Schedule, `Progress.at` says what it is now.

Nothing is remembered, so a resumed run continues with the same numbers. No torch here.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Discriminator, Field, Tag, model_validator

from gridmill.config import Config, ConfigError

Count = Annotated[int, Field(ge=1, le=2**48)]


class Schedule(Config):
    """A number that changes from `start` to `end` while something goes from `begin` to `until`; constant outside.

    `over` is agent steps, epochs, or the name of a metric (`metric:score`); until = 0 is the end of the run. With
    shape `stairs` it moves in `stairs` equal steps.
    """

    start: float
    end: float
    shape: Literal["linear", "cosine", "stairs"] = "linear"
    over: Annotated[str, Field(pattern=r"^(steps|epochs|metric:.+)$")] = "steps"
    begin: float = 0.0
    until: float = 0.0
    stairs: Count = 10

    @model_validator(mode="after")
    def _has_an_end(self) -> Schedule:
        if self.over.startswith("metric:") and self.until == self.begin:
            raise ConfigError("expected begin and until to differ for a metric", "$.until")
        if not self.over.startswith("metric:") and 0 < self.until < self.begin:
            raise ConfigError(f"expected at least begin = {self.begin:g}, or 0, got {self.until:g}", "$.until")
        return self


def _number_kind(value: Any) -> str:
    return "schedule" if isinstance(value, Schedule | dict) else "number"


Number = Annotated[Annotated[float, Tag("number")] | Annotated[Schedule, Tag("schedule")], Discriminator(_number_kind)]


def _ends(low: float, high: float, open_below: bool = False) -> AfterValidator:
    """Refuses a schedule one of whose ends lies outside."""

    def check(schedule: Schedule) -> Schedule:
        for name, value in (("start", schedule.start), ("end", schedule.end)):
            if value < low or (open_below and value == low):
                what = "greater than" if open_below else "greater than or equal to"
                raise ConfigError(f"expected {what} {low:g}, got {value:g}", f"$.{name}")
            if value > high:
                raise ConfigError(f"expected less than or equal to {high:g}, got {value:g}", f"$.{name}")
        return schedule

    return AfterValidator(check)


ShareNumber = Annotated[
    Annotated[float, Field(ge=0.0, le=1.0), Tag("number")] | Annotated[Schedule, _ends(0.0, 1.0), Tag("schedule")],
    Discriminator(_number_kind),
]
PositiveNumber = Annotated[
    Annotated[float, Field(gt=0.0, le=1e12), Tag("number")]
    | Annotated[Schedule, _ends(0.0, 1e12, open_below=True), Tag("schedule")],
    Discriminator(_number_kind),
]
NotNegativeNumber = Annotated[
    Annotated[float, Field(ge=0.0, le=1e12), Tag("number")] | Annotated[Schedule, _ends(0.0, 1e12), Tag("schedule")],
    Discriminator(_number_kind),
]


BoundedNumber = Annotated[
    Annotated[float, Field(ge=-1e12, le=1e12), Tag("number")]
    | Annotated[Schedule, _ends(-1e12, 1e12), Tag("schedule")],
    Discriminator(_number_kind),
]


@dataclass(frozen=True)
class Progress:
    """Where a run is: agent steps and epochs done, of how many, and the newest metrics."""

    steps: int
    total_steps: int
    epochs: int
    total_epochs: int
    metrics: Mapping[str, float] = field(default_factory=dict)

    def at(self, number: float | Schedule) -> float:
        """A setting's value now."""
        if not isinstance(number, Schedule):
            return float(number)
        share = self._share(number)
        if number.shape == "cosine":
            share = (1 - math.cos(math.pi * share)) / 2
        elif number.shape == "stairs":
            share = math.floor(share * number.stairs) / number.stairs
        return number.start + (number.end - number.start) * share

    def _share(self, schedule: Schedule) -> float:
        """How far along, from 0 to 1. A metric that has not been seen yet counts as the beginning."""
        if schedule.over == "steps":
            at, end = float(self.steps), float(self.total_steps)
        elif schedule.over == "epochs":
            at, end = float(self.epochs), float(self.total_epochs)
        else:
            at, end = self.metrics.get(schedule.over.removeprefix("metric:"), schedule.begin), schedule.until
        until = schedule.until if schedule.until else end
        if not schedule.over.startswith("metric:") and until <= schedule.begin:  # a jump, or after the end of the run
            return float(at >= schedule.begin)
        return min(1.0, max(0.0, (at - schedule.begin) / (until - schedule.begin)))
