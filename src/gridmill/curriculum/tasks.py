"""Tasks: from an id to the values of a variant, and from those to a game. Pure functions of the settings.

An id is a seed of 32 bits: it draws the set, then a value for each path that the set varies. Two ids may name the same
values; `Task.key` tells.
"""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass
from typing import Any

from gridmill.config import ConfigError
from gridmill.curriculum.config import CurriculumConfig, TaskSet
from gridmill.curriculum.draws import share
from gridmill.env import Env, GameConfig
from gridmill.grid.env import TokenBudgetWarning

IDS = 2**32


@dataclass(frozen=True)
class Task:
    """A variant by name: its set and a value for each path that varies there."""

    id: int
    set: str
    values: tuple[Any, ...]

    @property
    def key(self) -> tuple[Any, ...]:
        """What two tasks have in common that are the same variant."""
        return (self.set, *self.values)


class Tasks:
    """All tasks of a curriculum. `game` is what a set varies that names none."""

    def __init__(self, config: CurriculumConfig, game: GameConfig) -> None:
        self.sets = dict(config.sets)
        self.game = game
        total = sum(one.weight for one in self.sets.values())
        self.shares = {name: one.weight / total for name, one in self.sets.items()}
        self.count = sum(one.count for one in self.sets.values())

    def base(self, name: str) -> GameConfig:
        """The game that a set varies."""
        found = self.sets[name].game
        return self.game if found is None else found

    def task(self, id: int) -> Task:
        """The task of an id."""
        name = self.set_at(share(id, 0))
        values = tuple(one.at(share(id, place)) for place, one in enumerate(self.sets[name].vary, 1))
        return Task(id, name, values)

    def set_at(self, at: float) -> str:
        """The set that lies at a share in [0, 1) of all, by weight."""
        for name, width in self.shares.items():
            if at < width:
                return name
            at -= width
        return name

    def settings(self, task: Task) -> dict[str, Any]:
        """What a task changes in its set's game: {path: value}."""
        return {one.path: value for one, value in zip(self.sets[task.set].vary, task.values, strict=True)}

    def game_of(self, task: Task) -> GameConfig:
        """The game of a task; refused if its values do not go together."""
        return self.base(task.set).replace_all(self.settings(task).items())

    def text(self, task: Task) -> str:
        """A task in a line."""
        changed = ", ".join(f"{path} = {_short(value)}" for path, value in self.settings(task).items())
        return f"{task.set}: {changed}" if changed else task.set

    def refuse_unfit(self, env: Env) -> int | None:
        """Compile every value of every list and both ends of every range, each alone; refuse the first that cannot be.

        A range is taken to be sound between its ends. Returns the number of a game of `env` that was made for this and
        may be replaced; None if nothing varies.
        """
        number: int | None = None
        for name, one in self.sets.items():
            for place, vary in enumerate(one.vary):
                for value in vary.to_try():
                    try:
                        number = compiled(env, self.base(name).replace(vary.path, value), number)
                    except ValueError as error:
                        raise _refusal(name, place, one, value, error) from None
        return number


def compiled(env: Env, game: GameConfig, number: int | None) -> int:
    """Compile a game in the place of another, or beside all others; its number."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TokenBudgetWarning)  # was said of the games that are varied
        if number is None:
            return env.add_game(game)
        env.replace_game(number, game)
        return number


def _refusal(name: str, place: int, one: TaskSet, value: Any, error: Exception) -> ConfigError:
    what = error.what if isinstance(error, ConfigError) else str(error)
    return ConfigError(
        f"`{one.vary[place].path}` = {value!r} cannot be played in one batch with the other tasks: {what}",
        f"$.curriculum.sets.{name}.vary[{place}]",
    )


def _short(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) and math.isfinite(value) else str(value)
