"""Settings of a curriculum: sets of variants of games, and how one of their tasks is chosen."""

from __future__ import annotations

import math
from typing import Annotated, Literal

from pydantic import Field, model_validator

from gridmill.config import Config, ConfigError, Frozen, FrozenDict
from gridmill.games.kinds import AnyGame

Rate = Annotated[float, Field(gt=0.0, le=1.0)]
Share = Annotated[float, Field(ge=0.0, le=1.0)]
Episodes = Annotated[int, Field(ge=1, le=1_000_000)]
Finite = Annotated[float, Field(allow_inf_nan=False)]
LEAST_SHARE = 1e-4  # of all weights: a task of a rarer set would be looked for among too many draws


class Values(Config):
    """One of some values for a path of the game, each as likely as the others."""

    kind: Literal["values"] = "values"
    path: str
    values: Annotated[tuple[bool | int | Finite | str, ...], Field(min_length=1, max_length=10_000)]

    @model_validator(mode="after")
    def _each_once(self) -> Values:
        if len(set(self.values)) < len(self.values):
            raise ConfigError(f"expected values that differ, got {list(self.values)}", "$.values")
        return self

    @property
    def count(self) -> float:
        """How many values there are."""
        return len(self.values)

    def at(self, share: float) -> bool | int | float | str:
        """The value that lies at a share in [0, 1) of them."""
        return self.values[int(share * len(self.values))]

    def to_try(self) -> tuple[bool | int | float | str, ...]:
        return self.values

    def text(self) -> str:
        return ", ".join(map(str, self.values))


class Range(Config):
    """Any value from low to high for a path of the game: whole numbers if both are written as such."""

    kind: Literal["range"] = "range"
    path: str
    low: int | Finite
    high: int | Finite

    @model_validator(mode="after")
    def _upwards(self) -> Range:
        if not self.low < self.high:
            raise ConfigError(f"expected more than low = {self.low}, got {self.high}", "$.high")
        if max(abs(self.low), abs(self.high)) > 2**48:
            raise ConfigError(f"expected numbers up to 2**48, got {self.low} to {self.high}", "$.high")
        return self

    @property
    def whole(self) -> bool:
        return isinstance(self.low, int) and isinstance(self.high, int)

    @property
    def count(self) -> float:
        """How many values there are."""
        return self.high - self.low + 1 if self.whole else math.inf

    def at(self, share: float) -> int | float:
        """The value that lies at a share in [0, 1) of the way."""
        if self.whole:
            return int(self.low) + int(share * (int(self.high) - int(self.low) + 1))
        return self.low + share * (self.high - self.low)

    def to_try(self) -> tuple[int | float, ...]:
        return (self.low, self.high)

    def text(self) -> str:
        return f"{self.low} to {self.high}"


class TaskSet(Config):
    """Variants of one game."""

    game: AnyGame | None = None
    """The game to vary; none = the run's game."""
    weight: Annotated[float, Field(gt=0.0, le=1e6)] = 1.0
    """How often tasks are drawn from this set, relative to other sets; at least 1e-4 of all weights."""
    vary: tuple[Annotated[Values | Range, Field(discriminator="kind")], ...] = ()
    """The paths of the game to vary, each with its values or range."""
    target: Finite
    """An episode completes its task if its score, averaged over the world's agents, reaches this."""

    @model_validator(mode="after")
    def _each_path_once(self) -> TaskSet:
        for i, one in enumerate(self.vary):
            if one.path in [other.path for other in self.vary[:i]]:
                raise ConfigError(f"expected each path once, got `{one.path}` again", f"$.vary[{i}].path")
        return self

    @property
    def count(self) -> float:
        """How many tasks it has."""
        return math.prod(one.count for one in self.vary)


class CurriculumConfig(Config):
    """Which tasks there are and how one is chosen; without sets there is no curriculum."""

    sets: Frozen[str, TaskSet] = FrozenDict()
    """Sets of variants by name; none = no curriculum."""
    choose: Literal["uniform", "learning_progress"] = "learning_progress"
    """How the next task of a world is chosen."""
    tasks: Annotated[int, Field(ge=1, le=1_000_000)] = 256
    """Maximum number of tasks in the pool; all of them are compiled."""
    fast: Rate = 0.3
    """Weight of the newest score in the fast average."""
    slow: Rate = 0.05
    """Weight of the newest score in the slow average; the distance between the two averages is the progress."""
    explore: Share = 0.2
    """Share of the choices that ignore progress."""
    tries: Episodes = 8
    """Episodes of a new task before its progress counts."""
    patience: Episodes = 30
    """Episodes of a task before it may be evicted."""
    least_progress: Share = 0.02
    """A task with less progress than this is learned or hopeless, and may be evicted."""

    @model_validator(mode="after")
    def _fits_together(self) -> CurriculumConfig:
        if self.tasks < len(self.sets):
            raise ConfigError(
                f"expected at least one for each of the {len(self.sets)} sets, got {self.tasks}", "$.tasks"
            )
        if self.slow >= self.fast:
            raise ConfigError(f"expected less than fast = {self.fast}, got {self.slow}", "$.slow")
        total = sum(one.weight for one in self.sets.values())
        for name, one in self.sets.items():
            if one.weight < LEAST_SHARE * total:
                raise ConfigError(
                    f"expected at least {LEAST_SHARE} of all weights, {LEAST_SHARE * total:g} of {total:g}, got "
                    f"{one.weight:g}; raise it, or leave the set out",
                    f"$.sets.{name}.weight",
                )
        return self
