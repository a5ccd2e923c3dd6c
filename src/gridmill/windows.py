"""Metrics per window of env steps: what a trainer logs, added up from whole arrays and never row by row.

An env step is one `step` call of one world; a batch of N worlds takes N at a time, in the order of their rows. A window
ends after exactly `size` of them, in the middle of a batch step if need be, so that totals and borders are those of
a count made step by step. Ticks of a game's own clock are counted apart. Works for any env; dt and invalid actions are
counted where the game says them (`step_info`).
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from gridmill.batch import Env
from gridmill.env import ProspectorBatchEnv

NOT_METRICS = ("world", "agent", "game", "episode", "short_first")


@dataclass
class Window:
    """Sums over one window; `episodes` ended in it, and `sums` has every statistic of theirs added up."""

    index: int
    env_steps: int = 0
    ticks: int = 0
    invalid_actions: int = 0
    reward: float = 0.0
    episodes: int = 0
    sums: dict[str, float] = field(default_factory=dict)

    def means(self) -> dict[str, float]:
        """Every statistic per ended episode; empty if none ended."""
        return {name: total / self.episodes for name, total in self.sums.items()} if self.episodes else {}


class Windows:
    """Call `add` after every step of `env`; it returns the windows that became full. One agent per world."""

    def __init__(self, env: Env, size: int) -> None:
        if size < 1:
            raise ValueError(f"size: expected env steps >= 1, got {size}")
        if env.num_agents != 1:
            raise ValueError(f"windows count worlds of one agent, got {env.num_agents} agents; use take_episodes()")
        self.env, self.size = env, size
        self.current = Window(0)

    def add(self) -> list[Window]:
        """Count the step just taken. Takes the env's finished episodes, so nobody else should."""
        env, full, first = self.env, [], 0
        ended = bool(env.terminals.any() or env.truncations.any())
        episodes = env.take_episodes() if ended else {}
        info = env.step_info if isinstance(env, ProspectorBatchEnv) else None
        while first < env.num_rows:
            window = self.current
            last = min(env.num_rows, first + self.size - window.env_steps)
            rows = slice(first, last)
            window.env_steps += last - first
            window.reward += float(env.rewards[rows].sum(dtype=np.float64))
            if info is None:
                window.ticks += last - first
            else:
                window.ticks += int(info.dt[rows].sum())
                window.invalid_actions += int(np.count_nonzero(info.invalid[rows]))
            if ended:
                inside = (episodes["world"] >= first) & (episodes["world"] < last)
                window.episodes += int(np.count_nonzero(inside))
                for name, values in episodes.items():
                    if name not in NOT_METRICS:
                        window.sums[name] = window.sums.get(name, 0.0) + float(values[inside].sum())
            if window.env_steps == self.size:
                full.append(window)
                self.current = Window(window.index + 1)
            first = last
        return full
