"""Evaluates policies on games: `gridmill eval`. Torch is imported only for a checkpoint.

An evaluation plays the first episode of as many worlds as there are episodes, so a result can be reproduced from the
game, the policy, the seed and the number of episodes. Each policy on each game has its own env. The standard error is
over the means of worlds: agents of one world share its map and its machines, so they are not independent samples.
Training runs it in a separate process: `python -m gridmill.evaluate RUN --policy CHECKPOINT`.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gridmill import games
from gridmill.config import user_code
from gridmill.config.files import read_plain
from gridmill.env import Env, Episodes, GameConfig
from gridmill.env.arguments import seed_of
from gridmill.env.scripts import Part, dealt
from gridmill.evaluate.means import Mean, mean_of
from gridmill.evaluate.players import Cast, Choice, beside_scripts, chosen, is_trained, load_trained
from gridmill.evaluate.replays import Episode, ReplayOptions, policy_record, recorded, save, watch
from gridmill.games.make import make
from gridmill.replay import Recorder
from gridmill.run import Run

__all__ = [
    "EvaluationResult",
    "Mean",
    "ReplayOptions",
    "as_record",
    "baselines",
    "evaluate",
    "is_trained",
    "load_trained",
    "policy_record",
    "rows_of",
    "run_of",
    "settings_of",
    "watch",
]

WORLDS = 256  # played at a time
MOST_EPISODES = 10**9  # their scores are kept: 8 GB, and weeks of the smallest game
MOST_RECORD = 1 << 26  # bytes of a run.json; one has some 50 kB
Columns = dict[str, NDArray[np.float64]]


@dataclass(frozen=True)
class EvaluationResult:
    """One policy on one game."""

    game: str
    policy: str
    episodes: int
    score_name: str
    score: Mean
    reward: Mean
    stats: dict[str, Mean]
    beside: tuple[str, ...]  # statistics a table shows under score and reward
    sha256: str = ""  # of a trained policy: its weights and its record


def evaluate(
    game: str | GameConfig | Run,
    policy: Any,
    episodes: int = 100,
    seed: int = 0,
    label: str = "",
    replay: Path | ReplayOptions | None = None,
    players: Mapping[str, Part] | None = None,
    greedy: bool = False,
    temperature: float = 1.0,
    on_tick: Callable[[int, int], None] | None = None,
) -> EvaluationResult:
    """Play `episodes` episodes of a shipped game by name, a game, or the game of a run with the run's score.

    `policy` is random, script:NAME, a run's or checkpoint's folder, FILE.py:function (called with the env and a seed);
    or an object: a loaded player, one with `act`, a model of Stable-Baselines3, a function of observations. Trained
    policies sample their actions at a `temperature`, or take the most likely ones (`greedy`). The first episode is
    written to the file `replay`, or the episodes that its options select. `players` (scripts, folders or files) act for
    a share of the agents, a list of them or a team, as in `make`; the results are those of the other agents. `on_tick`
    is called after every tick with its number and the number of finished episodes.
    """
    kept = ReplayOptions(replay) if isinstance(replay, Path) else replay
    played, statistic, choice, others = _ready(game, policy, episodes, kept, players or {}, greedy, temperature)
    if seed_of(seed) + episodes > 2**64:  # each batch is played from a seed of its own
        raise ValueError(f"seed: expected at most 2**64 - {episodes} for {episodes} episodes, got {seed}")
    parts = list[_Played]()
    for first, count in _chunks(episodes):
        of_these = kept if kept is not None and (first == 0 or kept.count) else None
        told = None if on_tick is None else functools.partial(_told, on_tick, first)
        parts.append(_play(played, choice, others, count, seed + first, statistic, players or {}, of_these, told))
    every = np.concatenate([part.scores for part in parts])
    title = played.score_title(statistic)
    if kept is not None:
        episodes_of = [episode for part in parts for episode in part.episodes]
        save(kept, episodes_of, every, played, choice.name, title, choice.trained)
    scores = mean_of(every)
    stats = {name: mean_of(np.concatenate([part.columns[name] for part in parts])) for name in parts[0].columns}
    return EvaluationResult(
        game=label or (game if isinstance(game, str) else played.name),
        policy=choice.name,
        episodes=episodes,
        score_name=title,
        score=scores,
        reward=stats["reward"],
        stats=stats,
        beside=played.beside,
        sha256=getattr(choice.trained, "sha256", ""),
    )


def refuse_wrong(
    game: str | GameConfig | Run,
    policy: Any,
    episodes: int,
    replay: ReplayOptions | None,
    players: Mapping[str, Part],
    greedy: bool,
    temperature: float,
) -> None:
    """ValueError for what `evaluate` would refuse, before anything is played."""
    _ready(game, policy, episodes, replay, players, greedy, temperature)


def _ready(
    game: str | GameConfig | Run,
    policy: Any,
    episodes: int,
    kept: ReplayOptions | None,
    players: Mapping[str, Part],
    greedy: bool,
    temperature: float,
) -> tuple[GameConfig, str, Choice, dict[str, Choice]]:
    """The game, the statistic that a run scores by, the policy, and the players that are no scripts of the game."""
    if isinstance(episodes, bool) or not isinstance(episodes, int | np.integer):
        raise TypeError(f"episodes: expected an int, got {episodes!r:.60}")
    if not isinstance(players, Mapping):
        raise TypeError(f"players: expected shares by name, such as {{'random': 0.5}}, got {players!r:.60}")
    if episodes < 1:
        raise ValueError(f"--episodes must be at least 1, got {episodes}")
    if episodes > MOST_EPISODES:
        raise ValueError(f"--episodes must be at most {MOST_EPISODES}, got {episodes}")
    if kept is not None and kept.count and (kept.folder is None or not 0 < kept.count <= episodes):
        raise ValueError(f"replays: expected a folder for 1 to {episodes} episodes, got {kept.count} in {kept.folder}")
    statistic = game.score if isinstance(game, Run) else ""
    played = games.build(game) if isinstance(game, str) else game.played_game if isinstance(game, Run) else game
    choice = chosen(policy, greedy, temperature)
    if isinstance(policy, str) and policy.partition(":")[0] in ("bot", "script"):
        played.expect_script(policy.partition(":")[2], "policy")
    scripts = played.scripts() if players else {}
    for name in players:
        if name not in scripts and not beside_scripts(name):
            played.expect_script(name, "players")
    if players and "" not in dealt(players, played.num_agents, played.teams, scripts):
        raise ValueError("players: expected shares that leave an agent for the policy, got all")
    return played, statistic, choice, {name: chosen(name) for name in players if name not in scripts}


def settings_of(folder: Path) -> Any:
    """The settings in the record of a run or checkpoint, as plain data that nobody has checked."""
    file = folder / "run.json"
    try:
        record = json.loads(read_plain(file, MOST_RECORD))
    except (OSError, ValueError, RecursionError) as reason:
        raise ValueError(f"expected a run or checkpoint folder, got `{folder}`: {reason}") from None
    if not isinstance(record, dict) or "run" not in record:
        raise ValueError(f"expected the record of a run, got none in `{file}` - at `$.run`")
    return Run.upgraded(record["run"])


def run_of(folder: Path) -> Run:
    """The run whose folder or checkpoint this is, to play its game again."""
    tree = settings_of(folder)
    if isinstance(tree, dict):
        # Nobody learns here, and a policy is read with its weights: no code of the user's own is needed for either.
        for name in ("losses", "supervised_steps", "optimizer", "policy"):
            tree.pop(name, None)
    with user_code.from_a_file(None, folder):
        return Run.load(tree)


def baselines(game: GameConfig | Run) -> list[str]:
    """Policies to compare a trained one with: random play, and the game's script if it has one."""
    return list((game.played_game if isinstance(game, Run) else game).baselines())


def _chunks(episodes: int) -> Iterator[tuple[int, int]]:
    for first in range(0, episodes, WORLDS):
        yield first, min(WORLDS, episodes - first)


def _told(on_tick: Callable[[int, int], None], before: int, tick: int, ended: int) -> None:
    """Worlds are played some at a time: those that came before have ended."""
    on_tick(tick, before + ended)


@dataclass(frozen=True)
class _Played:
    """The first episode of each of some worlds."""

    scores: NDArray[np.float64]
    columns: Columns
    episodes: list[Episode]  # those that were recorded


def _play(
    game: GameConfig,
    choice: Choice,
    others: Mapping[str, Choice],
    worlds: int,
    seed: int,
    statistic: str,
    players: Mapping[str, Part],
    kept: ReplayOptions | None,
    on_tick: Callable[[int, int], None] | None,
) -> _Played:
    """Score and statistics of the first episode of each world, means over the agents that the policy plays."""
    order = dealt(players, game.num_agents, game.teams, game.scripts() if players else ())
    scripts = {name: tuple(a for a, who in enumerate(order) if who == name) for name in players if name not in others}
    masks = choice.masks or any(other.masks for other in others.values())
    env: Env = make(game, num_worlds=worlds, seed=seed, masks=masks, players=scripts)
    with env:
        known = dict.fromkeys([*env.stat_names, "length"], np.zeros(0))
        game.score_of(known, statistic)  # a wrong name is refused before anything is played
        cast = Cast(choice, others, order, env, seed)
        ended_first = list[Episodes]()
        tape = None if kept is None else Recorder(env, kept.worlds())
        missing, tick = np.ones(worlds, np.bool_), 0
        env.reset()
        while missing.any():
            tick += 1
            if on_tick is not None:
                on_tick(tick, worlds - int(missing.sum()))
            env.step(cast.act())
            if tape is not None:
                tape.after(env)
            ended = env.terminals | env.truncations
            if not ended.any():
                continue
            cast.reset(ended)
            taken = env.take_episodes()
            ended_first.append(taken.where(taken["episode"] == 0))
            missing[ended_first[-1]["world"]] = False
        everybody = Episodes.joined(ended_first)
        saved = [] if tape is None else recorded(tape, everybody, env, choice.name, seed, order)
        own = np.array([name == "" for name in order])
        played, agents = everybody.where(own[everybody["agent"]]), int(own.sum())
        found = {name: played.per_world(column, worlds, agents) for name, column in played.figures().items()}
        return _Played(played.per_world(game.score_of(played, statistic), worlds, agents), found, saved)


# ---- figures


def rows_of(results: Sequence[EvaluationResult]) -> list[tuple[str, ...]]:
    """Results of one game, a line per statistic and policy: statistic, policy, mean, standard error, median."""
    lines = [(f"{results[0].score_name} (score)", [result.score for result in results])]
    if results[0].score_name != "reward":
        lines.append(("reward", [result.reward for result in results]))
    for name in results[0].beside:
        lines.append((name.replace("_", " "), [result.stats[name] for result in results]))
    rows: list[tuple[str, ...]] = []
    for title, figures in lines:
        for result, found in zip(results, figures, strict=True):
            se = f"{found.se:.2g}" if found.worlds > 1 else "-"
            rows.append((title, result.policy, f"{found.mean:.4g}", se, f"{found.median:.4g}"))
    return rows


def as_record(
    results: Sequence[EvaluationResult], seed: int, players: Mapping[str, Part] | None = None
) -> dict[str, Any]:
    """Plain data for --json; every statistic is in it, and who played beside the policies, if anybody did."""

    def plain(found: Mean) -> dict[str, float]:
        return {"mean": found.mean, "se": found.se}

    return {
        "version": 1,
        "seed": seed,
        **({"players": dict(players)} if players else {}),
        "results": [
            {
                "game": result.game,
                "policy": result.policy,
                **({"sha256": result.sha256} if result.sha256 else {}),
                "episodes": result.episodes,
                "score": plain(result.score),
                "reward": plain(result.reward),
                "stats": {name: plain(found) for name, found in result.stats.items()},
            }
            for result in results
        ],
    }
