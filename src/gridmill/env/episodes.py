"""Episodes: what `Env.take_episodes` gives, and every mean that is taken of it.

A record per agent and ended episode, as columns by name: the keys say which episode it was, the rest are figures.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

HEAD = ("world", "agent", "game", "episode", "length", "desynced")  # in the order of the core
KEYS = tuple(name for name in HEAD if name != "length")  # which episode it was; the rest are figures


def is_figure(name: str) -> bool:
    """Whether a column is a number to take means of, and not a key."""
    return name not in KEYS


class Episodes(dict[str, NDArray[Any]]):
    """Columns by name, all of the same length; without columns there are no episodes."""

    @classmethod
    def of(cls, heads: NDArray[np.int64], stats: NDArray[np.float64], names: Sequence[tuple[str, bool]]) -> Self:
        """From the core's two tables; `names` are the statistics, each with whether it counts in whole numbers."""
        found = cls({name: heads[:, i] for i, name in enumerate(HEAD)})
        found["desynced"] = found["desynced"].astype(bool)
        for i, (name, integer) in enumerate(names):
            found[name] = stats[:, i].astype(np.int64) if integer else stats[:, i].copy()
        return found

    @classmethod
    def joined(cls, parts: Iterable[Episodes]) -> Self:
        """All records of several, in order."""
        listed = [part for part in parts if part]
        return cls({name: np.concatenate([part[name] for part in listed]) for name in (listed[0] if listed else ())})

    @property
    def count(self) -> int:
        """Agent-episodes."""
        return len(self["world"]) if self else 0

    def figures(self) -> dict[str, NDArray[Any]]:
        """The columns to take means of: length, reward and every statistic."""
        return {name: column for name, column in self.items() if is_figure(name)}

    def where(self, chosen: NDArray[Any]) -> Self:
        """The records that a mask or an index chooses."""
        return type(self)({name: column[chosen] for name, column in self.items()})

    def whole(self) -> Self:
        """Without episodes cut short by `desync_episodes` at the start of a run, which are not a fair sample."""
        return self.where(~self["desynced"]) if self else self

    def means(self) -> dict[str, float]:
        """Every figure per agent and episode; empty where no episode ended."""
        return {name: float(column.mean()) for name, column in self.figures().items()} if self.count else {}

    def per_agent(self, agents: int) -> list[dict[str, float]]:
        """The figures of each agent's last record here; empty for an agent that has none."""
        rows: list[dict[str, float]] = [{} for _ in range(agents)]
        for place, agent in enumerate(self["agent"].tolist()):
            rows[agent] = {name: float(column[place]) for name, column in self.figures().items()}
        return rows

    def per_world(self, values: NDArray[Any], worlds: int, agents: int) -> NDArray[np.float64]:
        """Means of one value per record over the agents of each world, of worlds with one episode each in here."""
        found = np.zeros(worlds)
        np.add.at(found, self["world"], values / agents)
        return found
