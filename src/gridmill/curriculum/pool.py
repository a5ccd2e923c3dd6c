"""What a curriculum keeps of a task: its game and program, what came of its episodes, its place among others."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gridmill.curriculum.config import CurriculumConfig
from gridmill.curriculum.tasks import Task
from gridmill.env import GameConfig


@dataclass
class Played:
    """A task with its program and its scores."""

    task: Task
    game: GameConfig
    number: int  # of the program
    users: int = 0  # worlds that play it, or will next
    place: int = -1  # in the pool; -1: not there any more
    in_set: int = -1  # in the list of its set's places
    episodes: int = 0
    completed: int = 0  # of these
    fast: float = 0.0
    slow: float = 0.0
    best: float = 0.0  # the largest |score|: the task's own scale

    def add(self, score: float, completed: bool, config: CurriculumConfig) -> None:
        """One more episode; until there are enough of them, both averages are plain means."""
        self.episodes += 1
        self.completed += completed
        self.fast += (score - self.fast) * max(config.fast, 1.0 / self.episodes)
        self.slow += (score - self.slow) * max(config.slow, 1.0 / self.episodes)
        self.best = max(self.best, abs(score))

    @property
    def progress(self) -> float:
        """How far the two averages are apart, for better or worse, as a share of the task's scale."""
        return abs(self.fast - self.slow) / self.best if self.best > 0.0 else 0.0

    def figures(self) -> list[float]:
        """What its episodes have left, as `take` takes it."""
        return [self.episodes, self.completed, self.fast, self.slow, self.best]

    def take(self, figures: list[Any]) -> None:
        self.episodes, self.completed, self.fast, self.slow, self.best = figures


class Part(Mapping[str, NDArray[Any]]):
    """Some records of `Env.take_episodes`; columns are cut when they are asked for."""

    def __init__(self, episodes: Mapping[str, NDArray[Any]], first: int, last: int) -> None:
        self._episodes, self._rows = episodes, slice(first, last)

    def __getitem__(self, name: str) -> NDArray[Any]:
        return self._episodes[name][self._rows]

    def __contains__(self, name: object) -> bool:
        return name in self._episodes

    def __iter__(self) -> Iterator[str]:
        return iter(self._episodes)

    def __len__(self) -> int:
        return len(self._episodes)


def worlds_episodes(episodes: Mapping[str, NDArray[Any]]) -> Iterator[tuple[int, int]]:
    """First and last + 1 record of each world's episode: the records of its agents follow one another."""
    world, episode = episodes["world"], episodes["episode"]
    if len(world) == 0:
        return
    changes = np.flatnonzero((np.diff(world) != 0) | (np.diff(episode) != 0)) + 1
    edges = [0, *changes.tolist(), len(world)]
    yield from pairwise(edges)
