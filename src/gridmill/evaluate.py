"""Policies x games -> figures: `gridmill eval`. Torch comes along only with a checkpoint.

An evaluation plays the first episode of as many worlds as episodes were asked for, so a figure can be had again from
the game, the policy, the seed and the number of episodes. Each policy on each game has an env of its own. The standard
error is over the means of worlds: agents of one world share its map and its machines, so they are no independent
witnesses. Training runs this file in a process of its own: `python -m gridmill.evaluate RUN --policy CHECKPOINT`.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from gridmill import games
from gridmill.env import Env, Episodes, GameConfig, Player
from gridmill.games.make import make
from gridmill.replay import Recorder
from gridmill.run import Run

WORLDS = 256  # played at a time
Columns = dict[str, NDArray[np.float64]]


class Trained(Player, Protocol):
    """A player from a file: it may have learned in another game, so it is shown where it plays."""

    def bind(self, env: Env, seed: int) -> None:
        """Get ready for the words of this environment, drawing actions from this seed on."""


@dataclass(frozen=True)
class Mean:
    """A mean over worlds with its standard error; the median beside it, since profits are skewed."""

    mean: float
    se: float
    median: float
    worlds: int


@dataclass(frozen=True)
class Result:
    """One policy on one game."""

    game: str
    policy: str
    episodes: int
    score_name: str
    score: Mean
    reward: Mean
    stats: dict[str, Mean]
    beside: tuple[str, ...]  # statistics a table shows under score and reward


def evaluate(
    game: str | GameConfig | Run,
    policy: str,
    episodes: int,
    seed: int,
    label: str = "",
    replay: Path | None = None,
    players: Mapping[str, float] | None = None,
) -> Result:
    """Play `episodes` episodes of a shipped game by name, a game, or the game of a run with the run's score.

    The first of them goes into the file `replay`. `players` act in a share of the agents, as in `make`; the figures are
    those of the others.
    """
    if episodes < 1:
        raise ValueError(f"--episodes must be at least 1, got {episodes}")
    statistic = game.score if isinstance(game, Run) else ""
    played = games.build(game) if isinstance(game, str) else game.played_game if isinstance(game, Run) else game
    trained = _trained(policy)
    tape = Recorder(played, policy, seed) if replay is not None else None
    parts = [
        _play(played, policy, trained, count, seed + first, statistic, players, tape if first == 0 else None)
        for first, count in _chunks(episodes)
    ]
    if tape is not None and replay is not None:
        tape.write(replay)
    scores = _mean(np.concatenate([score for score, _ in parts]))
    stats = {name: _mean(np.concatenate([columns[name] for _, columns in parts])) for name in parts[0][1]}
    return Result(
        game=label or (game if isinstance(game, str) else played.name),
        policy=policy,
        episodes=episodes,
        score_name=played.score_title(statistic),
        score=scores,
        reward=stats["reward"],
        stats=stats,
        beside=played.beside,
    )


def run_of(folder: Path) -> Run:
    """The run whose folder or checkpoint this is, to play its game again."""
    file = folder / "run.json"
    try:
        record = json.loads(file.read_text())
    except (OSError, ValueError) as reason:
        raise ValueError(f"expected a run or checkpoint folder, got `{folder}`: {reason}") from None
    if not isinstance(record, dict) or "run" not in record:
        raise ValueError(f"expected the record of a run, got none in `{file}` - at `$.run`")
    tree = Run.upgraded(record["run"])
    if isinstance(tree, dict):
        for learning in ("losses", "supervised_steps"):  # nobody learns here, so no loss of the user's own is loaded
            tree.pop(learning, None)
    return Run.load(tree)


def baselines(game: GameConfig | Run) -> list[str]:
    """Policies to hold a trained one against: chance, and the best script there is."""
    return list((game.played_game if isinstance(game, Run) else game).baselines())


def is_trained(policy: str) -> bool:
    """Whether a policy comes from a file; every other has a name with a meaning of its own."""
    return policy != "random" and policy.partition(":")[0] not in ("bot", "script")


def _chunks(episodes: int) -> Iterator[tuple[int, int]]:
    for first in range(0, episodes, WORLDS):
        yield first, min(WORLDS, episodes - first)


def _play(
    game: GameConfig,
    policy: str,
    trained: Trained | None,
    worlds: int,
    seed: int,
    statistic: str,
    players: Mapping[str, float] | None,
    tape: Recorder | None,
) -> tuple[NDArray[np.float64], Columns]:
    """Score and statistics of the first episode of each world, means over the agents that the policy plays."""
    masks = trained is not None and trained.masks
    env: Env = make(game, num_worlds=worlds, seed=seed, masks=masks, players=players)
    with env:
        own = env.player_rows[: env.num_agents] == 0
        if not own.any():
            raise ValueError("players: expected shares that leave an agent for the policy, got all")
        known = dict.fromkeys([*env.stat_names, "length"], np.zeros(0))
        game.score_of(known, statistic)  # a wrong name is refused before anything is played
        if trained is not None:
            trained.bind(env, seed)
        player = trained or _named(policy, env, seed)
        state, ended_first = None, list[Episodes]()
        missing = np.ones(worlds, np.bool_)
        env.reset()
        while missing.any():
            actions, state = player.act(env.obs, state, env.masks)
            if tape is not None:
                tape.before(env)
            env.step(actions)
            if tape is not None:
                tape.after(env)
            ended = env.terminals | env.truncations
            if not ended.any():
                continue
            state = player.reset(state, ended)
            taken = env.take_episodes()
            ended_first.append(taken.where((taken["episode"] == 0) & own[taken["agent"]]))
            missing[ended_first[-1]["world"]] = False
        played, agents = Episodes.joined(ended_first), int(own.sum())
        found = {name: played.per_world(column, worlds, agents) for name, column in played.figures().items()}
        return played.per_world(game.score_of(played, statistic), worlds, agents), found


# ---- players


def _trained(policy: str) -> Trained | None:
    if not is_trained(policy):
        return None
    if not Path(policy).exists():
        raise ValueError(f"policy: expected random, script:NAME or the folder of a checkpoint or run, got `{policy}`")
    try:
        from gridmill.policy import load

        return load(policy)
    except ModuleNotFoundError as missing:
        raise ValueError(
            f"policy: `{policy}` needs {missing.name}, which is not installed: pip install 'gridmill[train]'"
        ) from None


def _named(policy: str, env: Env, seed: int) -> Player:
    kind, _, name = policy.partition(":")
    if kind == "random":
        return _Random(env.num_actions, seed)
    env.games[0].expect_script(name, "policy")
    return env.games[0].scripts()[name](env, seed)


class _Random:
    """Any action, also ones that cannot succeed."""

    masks = False

    def __init__(self, num_actions: int, seed: int) -> None:
        self.num_actions = num_actions
        self.rng = np.random.default_rng(seed)

    def act(self, obs: NDArray[Any], state: None, masks: Any = None) -> tuple[NDArray[np.int32], None]:
        return self.rng.integers(0, self.num_actions, len(obs), dtype=np.int32), None

    def reset(self, state: None, ended: NDArray[np.bool_]) -> None:
        return None


# ---- figures


def _mean(values: NDArray[np.float64]) -> Mean:
    """With a single world the spread is unknown, and the standard error said to be 0."""
    spread = float(np.std(values, ddof=1)) if values.size > 1 else 0.0
    se = spread / float(np.sqrt(values.size))
    return Mean(float(np.mean(values)), se, float(np.median(values)), values.size)


def rows_of(results: Sequence[Result]) -> list[tuple[str, ...]]:
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


def as_record(results: Sequence[Result], seed: int, players: Mapping[str, float] | None = None) -> dict[str, Any]:
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
                "episodes": result.episodes,
                "score": plain(result.score),
                "reward": plain(result.reward),
                "stats": {name: plain(found) for name, found in result.stats.items()},
            }
            for result in results
        ],
    }


def main(arguments: Sequence[str] | None = None) -> None:
    """Evaluate a policy on the game of a run and print the record."""
    asked = argparse.ArgumentParser(prog="python -m gridmill.evaluate", description=main.__doc__)
    asked.add_argument("run", type=Path, help="folder of the run whose game is played")
    asked.add_argument("--policy", required=True)
    asked.add_argument("--episodes", type=int, default=100)
    asked.add_argument("--seed", type=int, default=0)
    asked.add_argument("--replay", type=Path, default=None)
    given = asked.parse_args(arguments)
    try:
        result = evaluate(run_of(given.run), given.policy, given.episodes, given.seed, str(given.run), given.replay)
    except (ValueError, TypeError, OSError, RuntimeError) as error:
        print(f"gridmill: {' '.join(str(error).split())}", file=sys.stderr)
        sys.exit(2)
    print(json.dumps(as_record([result], given.seed)))


if __name__ == "__main__":
    main()
