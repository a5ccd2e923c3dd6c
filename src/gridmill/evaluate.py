"""Policies x games -> a table: `gridmill eval`. The part that needs no torch: random play and scripted bots.

An evaluation plays the first episode of as many worlds as episodes were asked for, each from its own seed, so a
figure can be had again from the game, the policy, the seed and the number of episodes. Called by the command line.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gridmill import games
from gridmill.config import did_you_mean
from gridmill.env import GridEnv, ProspectorBatchEnv, make
from gridmill.games import AnyGame
from gridmill.prospector.bots import BOTS, Bot
from gridmill.prospector.config import ProspectorConfig

WORLDS = 256  # played at a time
NOT_STATS = ("world", "agent", "game", "episode", "short_first")
BatchEnv = GridEnv | ProspectorBatchEnv
Play = Callable[[BatchEnv], None]  # writes env.actions


@dataclass(frozen=True)
class Mean:
    """A mean over episodes with its standard error; the median beside it, since profits are skewed."""

    mean: float
    se: float
    median: float


@dataclass(frozen=True)
class Result:
    """One policy on one game."""

    game: str
    policy: str
    episodes: int
    score: Mean
    reward: Mean
    stats: dict[str, Mean]


def evaluate(name: str, policy: str, episodes: int, seed: int) -> Result:
    """Play `episodes` episodes of a shipped game; world i of Prospector has seed + i."""
    if episodes < 1:
        raise ValueError(f"--episodes must be at least 1, got {episodes}")
    game = games.build(name)
    parts = [_play(game, policy, count, seed + first) for first, count in _chunks(episodes)]
    columns = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    stats = {name: _mean(values) for name, values in columns.items()}
    score = game.score if isinstance(game, ProspectorConfig) else "reward"
    return Result(name, policy, episodes, stats[score], stats["reward"], stats)


def _chunks(episodes: int) -> Iterator[tuple[int, int]]:
    for first in range(0, episodes, WORLDS):
        yield first, min(WORLDS, episodes - first)


def _play(game: AnyGame, policy: str, worlds: int, seed: int) -> dict[str, NDArray[np.float64]]:
    """Every statistic of the first episode of each world, a mean over its agents."""
    env: BatchEnv = make(game, num_worlds=worlds, seed=seed)
    with env:
        play = _player(policy, env, seed)
        env.reset()
        found: dict[str, NDArray[np.float64]] = {}
        missing = np.ones(worlds, np.bool_)
        while missing.any():
            play(env)
            env.step()
            if not (env.terminals.any() or env.truncations.any()):
                continue
            taken = env.take_episodes()
            first = taken["episode"] == 0
            for name, values in taken.items():
                if name not in NOT_STATS:
                    sums = found.setdefault(name, np.zeros(worlds))
                    np.add.at(sums, taken["world"][first], values[first] / env.num_agents)
            missing[taken["world"][first]] = False
        return found


def _player(policy: str, env: BatchEnv, seed: int) -> Play:
    kind, _, name = policy.partition(":")
    if policy == "random":
        rng = np.random.default_rng(seed)

        def at_random(env: BatchEnv) -> None:
            env.actions[:] = rng.integers(0, env.num_actions, env.num_rows, dtype=np.int32)

        return at_random
    if kind != "bot":
        raise ValueError(f"policy: expected random or bot:NAME, got `{policy}`")
    if not isinstance(env, ProspectorBatchEnv):
        raise ValueError(f"policy: `{policy}` plays prospector only")
    if name not in BOTS:
        raise ValueError(f"unknown bot `{name}`{did_you_mean(name, list(BOTS))} - bots: {', '.join(BOTS)}")
    bot = Bot(name, env.num_rows)

    def scripted(env: BatchEnv) -> None:
        bot.reset(env.terminals | env.truncations)
        bot.act(env.obs, env.actions)

    return scripted


def _mean(values: NDArray[np.float64]) -> Mean:
    spread = float(np.std(values, ddof=1)) if values.size > 1 else 0.0
    return Mean(float(np.mean(values)), spread / float(np.sqrt(values.size)), float(np.median(values)))


SHOWN = {
    "reward": "return",
    "net_profit": "net profit",
    "survival": "survival",
    "profit_per_tick": "profit per tick",
    "overheat_ticks": "overheat ticks",
    "pirate_encounters": "pirate encounters",
    "length": "steps",
}


def rows_of(results: Sequence[Result]) -> list[tuple[str, ...]]:
    """One line per policy and statistic: game, policy, statistic, mean, standard error, median."""
    rows: list[tuple[str, ...]] = []
    for result in results:
        for name, title in SHOWN.items():
            if name in result.stats:
                found = result.stats[name]
                figures = (f"{found.mean:.4g}", f"{found.se:.2g}", f"{found.median:.4g}")
                rows.append((result.game, result.policy, title, *figures))
    return rows


def as_record(results: Sequence[Result], seed: int) -> dict[str, Any]:
    """Plain data for --json."""
    return {"version": 1, "seed": seed, "results": [asdict(result) for result in results]}
