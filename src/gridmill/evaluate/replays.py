"""Which episodes of an evaluation are saved as replays, and what is in the files: `gridmill eval --replay, --replays`.

While episodes are played, only their actions are kept. Those that are chosen are played again in a world of their own
and must come to the same end.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gridmill import replay
from gridmill.config import user_code
from gridmill.config.files import write_whole
from gridmill.env import Env, Episodes, GameConfig
from gridmill.evaluate.players import Trained, is_trained
from gridmill.replay.writer import readable


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
class Episode:
    """What it takes to play an episode again, and what came of it."""

    seed: int
    actions: Any  # [ticks, agents]
    who: dict[str, str]
    reward: float  # the mean over all agents, to be met again


def recorded(
    tape: replay.Recorder, played: Episodes, env: Env, policy: str, seed: int, order: Sequence[str]
) -> list[Episode]:
    """The episodes of a recorder's worlds; `order` is who plays beside the policy, by agent."""
    length = played.per_world(played["length"], env.num_worlds, env.num_agents)
    reward = played.per_world(played["reward"], env.num_worlds, env.num_agents)
    scripts = env.games[0].scripts() if any(order) else {}
    who = {"*": who_is(policy)} | {
        str(agent): f"script:{name}" if name in scripts else "policy" for agent, name in enumerate(order) if name
    }
    return [
        Episode(env.games[0].seed_alone(seed, world), tape.actions(world, round(length[world])), who, reward[world])
        for world in range(tape.worlds)
    ]


def who_is(policy: str) -> str:
    """What a replay calls somebody who plays by this policy."""
    kind, _, name = policy.partition(":")
    return "policy" if is_trained(policy) else f"script:{name}" if name else kind


def save(
    kept: ReplayOptions,
    episodes: list[Episode],
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
        write_whole(kept.folder / f"{name}{replay.SUFFIX}", readable(tape))  # a link there leads nowhere


def policy_record(name: str, trained: Trained, weights: bool) -> replay.PolicyRecord:
    """What a file says of a trained policy; its weights only if they are wanted."""
    if not hasattr(trained, "as_record"):  # a player of somebody's own
        return replay.PolicyRecord(name)
    tree, data = trained.as_record()
    common = {key: tree[key] for key in ("hash", "masks", "gamma", "reward_scale")}
    if not weights:
        return replay.PolicyRecord(name, **common)
    if user_code.named_in({"policy": tree["config"]}):
        raise ValueError(f"replay: a file cannot contain `{name}`, which uses custom code; do not store its weights")
    tensors = tuple((key, tuple(shape)) for key, shape in tree["tensors"])
    return replay.PolicyRecord(
        name, **common, config=tree["config"], spec=tree["spec"], tensors=tensors, weights=replay.pack(data)
    )


def _tape(
    episode: Episode,
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
        raise replay.ReplayError(
            f"replay: an episode of {game.name} with reward {episode.reward:g} played again to {again}"
        )
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
