"""Metrics per window of env steps, added up from whole arrays and never row by row.

An env step is one step of one world; N worlds take N in a tick, in the order of their numbers. A window ends after
exactly `size` of them, in the middle of a tick if need be, so that totals and borders are those of a count made step by
step. Any number of ticks may be added at once: the trainer adds a rollout, a loop of your own `last_step(env)`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gridmill.env.env import Env
from gridmill.env.episodes import Episodes


@dataclass
class MetricsWindow:
    """Sums over one window: of what every step brought, and of the statistics of the episodes that ended in it.

    Statistics come one per agent; `records` is how many there are: episodes x agents, unless the env dropped some.
    """

    index: int
    env_steps: int = 0
    episodes: int = 0
    records: int = 0
    steps: dict[str, float] = field(default_factory=dict)
    sums: dict[str, float] = field(default_factory=dict)

    def means(self) -> dict[str, float]:
        """Every statistic per agent and ended episode; empty if none ended."""
        return {name: total / self.records for name, total in self.sums.items()} if self.records else {}

    def record(self) -> dict[str, Any]:
        """The window as plain data."""
        counts = {"index": self.index, "env_steps": self.env_steps, "episodes": self.episodes}
        return {**counts, **self.steps, "means": self.means()}


class Ticks(NamedTuple):
    """Some ticks of all worlds: what each step brought, by name; whether it ended an episode; the records of those."""

    steps: Mapping[str, NDArray[Any]]  # each [T, worlds]
    ended: NDArray[np.bool_]  # [T, worlds]
    episodes: Episodes  # of env.take_episodes() after the last of them


class Windows:
    """Give `add` every tick in order; it returns the windows that became full."""

    def __init__(self, size: int, current: MetricsWindow | None = None) -> None:
        if size < 1:
            raise ValueError(f"size: expected env steps >= 1, got {size}")
        self.size = size
        self.current = MetricsWindow(0) if current is None else current

    def add(self, ticks: Ticks) -> list[MetricsWindow]:
        """Count some ticks."""
        full: list[MetricsWindow] = []
        ends, at, episodes = _in_order(ticks)
        steps = {name: np.asarray(values, np.float64).reshape(-1) for name, values in ticks.steps.items()}
        first, total = 0, ticks.ended.size
        while first < total:
            window = self.current
            last = min(total, first + self.size - window.env_steps)
            window.env_steps += last - first
            _add_sums(window.steps, steps, first, last)
            a, b = (int(place) for place in np.searchsorted(ends, (first, last)))
            window.episodes += b - a
            a, b = (int(place) for place in np.searchsorted(at, (first, last)))
            if b > a:
                window.records += b - a
                _add_sums(window.sums, episodes, a, b)
            if window.env_steps == self.size:
                full.append(window)
                self.current = MetricsWindow(window.index + 1)
            first = last
        return full


def last_step(env: Env) -> Ticks:
    """The step that `env` has just taken. Takes the env's finished episodes, so nobody else should."""
    shape = (env.num_worlds, env.num_agents)
    ended = (env.terminals | env.truncations).reshape(shape)[:, 0]
    steps: dict[str, NDArray[Any]] = {"reward": env.rewards.reshape(shape).sum(1, dtype=np.float64)[None]}
    if env.signal is not None:
        steps["signal"] = env.signal.reshape(shape).sum(1, dtype=np.float64)[None]
    steps |= {name: values[None] for name, values in env.step_facts().items()}
    return Ticks(steps, ended[None], env.take_episodes() if ended.any() else Episodes())


def _add_sums(sums: dict[str, float], columns: Mapping[str, NDArray[Any]], first: int, last: int) -> None:
    for name, values in columns.items():
        sums[name] = sums.get(name, 0.0) + float(values[first:last].sum())


def _in_order(ticks: Ticks) -> tuple[NDArray[np.int64], NDArray[np.int64], dict[str, NDArray[Any]]]:
    """The env steps that ended episodes; the env step of each record; and the records in that order.

    The k-th end of a world is its k-th episode. It is counted from the last: an env that has too many records to keep
    drops the oldest. Records whose end lies before these ticks have no place in them.
    """
    ends = np.flatnonzero(ticks.ended)
    if len(ends) == 0:
        return ends, ends, {}
    length, worlds = ticks.ended.shape
    world, agent = ticks.episodes["world"].astype(np.int64), ticks.episodes["agent"].astype(np.int64)
    key_of_end = ends % worlds * length + _later_ones(ends % worlds)
    key = world * length + _later_ones(world * (int(agent.max(initial=0)) + 1) + agent)
    order = np.argsort(key_of_end)
    found = order[np.minimum(np.searchsorted(key_of_end, key, sorter=order), len(ends) - 1)]
    known = np.flatnonzero(key_of_end[found] == key)
    placed = known[np.argsort(ends[found[known]], kind="stable")]
    return ends, ends[found[placed]], ticks.episodes.where(placed).figures()


def _later_ones(group: NDArray[np.int64]) -> NDArray[np.int64]:
    """For each entry, how many later ones are of its group."""
    order = np.argsort(group[::-1], kind="stable")
    _, first, counts = np.unique(group[::-1][order], return_index=True, return_counts=True)
    later = np.empty(len(group), np.int64)
    later[len(group) - 1 - order] = np.arange(len(group)) - np.repeat(first, counts)
    return later
