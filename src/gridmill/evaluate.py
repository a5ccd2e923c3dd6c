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

from gridmill import games, replay
from gridmill.config.files import write_whole
from gridmill.env import Env, Episodes, GameConfig, Player
from gridmill.games.make import make
from gridmill.run import Run

WORLDS = 256  # played at a time
Columns = dict[str, NDArray[np.float64]]


class Trained(Player, Protocol):
    """A player from a file: it may have learned in another game, so it is shown where it plays."""

    def bind(self, env: Env, seed: int) -> None:
        """Get ready for the words of this environment, drawing actions from this seed on."""

    def think(self, obs: Any, state: Any, masks: Any = None) -> Any:
        """What it makes of some rows: log_probs(), values and the state after it."""

    def as_record(self) -> tuple[dict[str, Any], bytes]:
        """All that it takes to have it again, and its weights."""


@dataclass(frozen=True)
class ReplayOptions:
    """Which episodes are saved, where, and what is in the files beside them."""

    file: Path | None = None  # the first episode
    folder: Path | None = None  # and `count` of all, from the worst to the best
    count: int = 0
    weights: bool = False  # those of a trained policy
    values: bool = False  # what a trained policy made of every tick: values and probabilities

    def worlds(self) -> list[int] | None:
        """The worlds whose actions must be kept; None: all."""
        return None if self.count else [0]


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
    replay: Path | ReplayOptions | None = None,
    players: Mapping[str, float] | None = None,
) -> Result:
    """Play `episodes` episodes of a shipped game by name, a game, or the game of a run with the run's score.

    The first of them goes into the file `replay`, or those that its options say. `players` act in a share of the
    agents, as in `make`; the figures are those of the others.
    """
    if episodes < 1:
        raise ValueError(f"--episodes must be at least 1, got {episodes}")
    kept = ReplayOptions(replay) if isinstance(replay, Path) else replay
    if kept is not None and kept.count and (kept.folder is None or not 0 < kept.count <= episodes):
        raise ValueError(f"replays: expected a folder for 1 to {episodes} episodes, got {kept.count} in {kept.folder}")
    statistic = game.score if isinstance(game, Run) else ""
    played = games.build(game) if isinstance(game, str) else game.played_game if isinstance(game, Run) else game
    trained = load_trained(policy)
    parts = [
        _play(played, policy, trained, count, seed + first, statistic, players, kept if first == 0 or kept is None or kept.count else None)
        for first, count in _chunks(episodes)
    ]
    every = np.concatenate([part.scores for part in parts])
    title = played.score_title(statistic)
    if kept is not None:
        _save(kept, [episode for part in parts for episode in part.episodes], every, played, policy, title, trained)
    scores = _mean(every)
    stats = {name: _mean(np.concatenate([part.columns[name] for part in parts])) for name in parts[0].columns}
    return Result(
        game=label or (game if isinstance(game, str) else played.name),
        policy=policy,
        episodes=episodes,
        score_name=title,
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
        tree.pop("losses", None)  # nobody learns here, so no loss of the user's own is loaded
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


@dataclass(frozen=True)
class _Played:
    """The first episode of each of some worlds."""

    scores: NDArray[np.float64]
    columns: Columns
    episodes: list[_Episode]  # those that were recorded


@dataclass(frozen=True)
class _Episode:
    """What it takes to play an episode again, and what came of it."""

    seed: int
    actions: Any  # [ticks, agents]
    who: dict[str, str]
    reward: float  # the mean over all agents, to be met again


def _play(
    game: GameConfig,
    policy: str,
    trained: Trained | None,
    worlds: int,
    seed: int,
    statistic: str,
    players: Mapping[str, float] | None,
    kept: ReplayOptions | None,
) -> _Played:
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
        tape = None if kept is None else replay.Recorder(env, kept.worlds())
        missing = np.ones(worlds, np.bool_)
        env.reset()
        while missing.any():
            actions, state = player.act(env.obs, state, env.masks)
            env.step(actions)
            if tape is not None:
                tape.after(env)
            ended = env.terminals | env.truncations
            if not ended.any():
                continue
            state = player.reset(state, ended)
            taken = env.take_episodes()
            ended_first.append(taken.where(taken["episode"] == 0))
            missing[ended_first[-1]["world"]] = False
        everybody = Episodes.joined(ended_first)
        recorded = [] if tape is None else _recorded(tape, everybody, env, policy, seed)
        played, agents = everybody.where(own[everybody["agent"]]), int(own.sum())
        found = {name: played.per_world(column, worlds, agents) for name, column in played.figures().items()}
        return _Played(played.per_world(game.score_of(played, statistic), worlds, agents), found, recorded)


# ---- replays


def _recorded(tape: replay.Recorder, played: Episodes, env: Env, policy: str, seed: int) -> list[_Episode]:
    """The episodes of a recorder's worlds."""
    length = played.per_world(played["length"], env.num_worlds, env.num_agents)
    reward = played.per_world(played["reward"], env.num_worlds, env.num_agents)
    who = {"*": who_is(policy)} | {
        str(agent): f"script:{name}" for agent, name in enumerate(env.player_of_agent) if name
    }
    return [
        _Episode(env.games[0].seed_alone(seed, world), tape.actions(world, round(length[world])), who, reward[world])
        for world in range(tape.worlds)
    ]


def who_is(policy: str) -> str:
    """What a replay calls somebody who plays by this policy."""
    kind, _, name = policy.partition(":")
    return "policy" if is_trained(policy) else f"script:{name}" if name else kind


def _save(
    kept: ReplayOptions,
    episodes: list[_Episode],
    scores: NDArray[np.float64],
    game: GameConfig,
    policy: str,
    title: str,
    trained: Trained | None,
) -> None:
    """The files that were asked for."""
    results = [{"score": float(score), "score_name": title} for score in scores]
    record = replay.PolicyRecord(policy)
    if trained is not None:
        record = policy_record(policy, trained, kept.weights)
    if kept.file is not None:
        replay.write(kept.file, _tape(episodes[0], results[0], game, record, (), kept.values, trained))
    if kept.folder is None or not kept.count:
        return
    order = np.argsort(scores, kind="stable")  # the worst first
    places = np.linspace(len(order) - 1, 0, kept.count).round().astype(int)
    digits = len(str(len(order) - 1))
    for place in dict.fromkeys(places.tolist()):
        number = int(order[place])
        tags = [tag for tag, at in (("best", len(order) - 1), ("worst", 0)) if place == at]
        name = "-".join(["episode", f"{number:0{digits}d}", *tags])
        tape = _tape(episodes[number], results[number], game, record, tags, kept.values, trained)
        replay.write(kept.folder / f"{name}{replay.SUFFIX}", tape)


def policy_record(name: str, trained: Trained, weights: bool) -> replay.PolicyRecord:
    """What a file says of a trained policy; its weights only if they are wanted."""
    tree, data = trained.as_record()
    common = {key: tree[key] for key in ("hash", "masks", "gamma", "reward_scale")}
    if not weights:
        return replay.PolicyRecord(name, **common)
    tensors = tuple((key, tuple(shape)) for key, shape in tree["tensors"])
    return replay.PolicyRecord(
        name, **common, config=tree["config"], spec=tree["spec"], tensors=tensors, weights=replay.pack(data)
    )


def _tape(
    episode: _Episode,
    result: Mapping[str, Any],
    game: GameConfig,
    record: replay.PolicyRecord,
    tags: Sequence[str],
    values: bool,
    trained: Trained | None,
) -> replay.Replay:
    """An episode played again; it must come to the same end."""
    tape = replay.record(game, episode.seed, episode.actions, episode.who, record, "", tags, result)
    again = tape.branches[0].result.get("reward")
    if again is None or abs(again - episode.reward) > 1e-9 + 1e-6 * abs(episode.reward):
        raise replay.ReplayError(f"replay: an episode of {game.name} with reward {episode.reward:g} played again to {again}")
    if not values or trained is None:
        return tape
    thoughts = list(watch(tape, trained))
    chances = np.stack([thought.log_probs().exp().numpy() for thought in thoughts])
    return replay.annotated(tape, 0, np.stack([thought.values.numpy() for thought in thoughts]), chances)


def watch(tape: replay.Replay, trained: Trained, branch: int = 0, until: int | None = None) -> Iterator[Any]:
    """What a policy makes of every tick of a branch, as it would have if it had played all along."""
    with replay.Playback(tape, branch) as playback:
        trained.bind(playback.env, 0)
        state = None
        while playback.tick < (playback.end if until is None else until):
            thought = trained.think(playback.env.obs, state, playback.env.masks if trained.masks else None)
            yield thought
            state = thought.state
            playback.step()


# ---- players


def load_trained(policy: str) -> Trained | None:
    """A policy from a folder; None of one that has a name."""
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


def baseline_record(run: Run, episodes: int, seed: int) -> dict[str, Any]:
    """What others get in the game of a run, and the most that can be had: baselines.json, for its report.

    Played on the worlds that an evaluation with the same seed plays.
    """
    game = run.played_game
    results = [evaluate(run, policy, episodes, seed) for policy in baselines(run)]
    parts = as_record(results, seed)["results"]
    ceilings = dict(game.ceilings())
    stat = run.score or game.score.stat
    if stat in ceilings and (run.score or game.score.per == "episode"):
        ceilings["score"] = ceilings[stat]
    return {
        "version": 1,
        "seed": seed,
        "episodes": episodes,
        "policies": {part["policy"]: {name: part[name] for name in ("score", "reward", "stats")} for part in parts},
        "ceilings": ceilings,
    }


def write_baselines(path: Path, run: Run, episodes: int, seed: int) -> None:
    """Make baselines.json. A game that cannot be held against anything has a file that says why."""
    try:
        found = baseline_record(run, episodes, seed)
    except (ValueError, TypeError, RuntimeError) as error:
        found = {"version": 1, "error": " ".join(str(error).split())}
    write_whole(path, json.dumps(found).encode())


def main(arguments: Sequence[str] | None = None) -> None:
    """Evaluate a policy on the game of a run and print the record."""
    asked = argparse.ArgumentParser(prog="python -m gridmill.evaluate", description=main.__doc__)
    asked.add_argument("run", type=Path, help="folder of the run whose game is played")
    asked.add_argument("--policy", required=True)
    asked.add_argument("--episodes", type=int, default=100)
    asked.add_argument("--seed", type=int, default=0)
    asked.add_argument("--replay", type=Path, default=None)
    asked.add_argument("--replay-weights", action="store_true")
    asked.add_argument("--baselines", type=Path, default=None, help="make this file, if it is not there")
    given = asked.parse_args(arguments)
    try:
        if given.baselines is not None and not given.baselines.exists():
            write_baselines(given.baselines, run_of(given.run), given.episodes, given.seed)
        kept = None if given.replay is None else ReplayOptions(given.replay, weights=given.replay_weights)
        result = evaluate(run_of(given.run), given.policy, given.episodes, given.seed, str(given.run), kept)
    except (ValueError, TypeError, OSError, RuntimeError) as error:
        print(f"gridmill: {' '.join(str(error).split())}", file=sys.stderr)
        sys.exit(2)
    print(json.dumps(as_record([result], given.seed)))


if __name__ == "__main__":
    main()
