"""Who plays on after the forks: chance, a script or a trained policy, with what it remembers at the moment."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from gridmill import evaluate
from gridmill.env import Env
from gridmill.policy import which
from gridmill.replay import Playback, Replay, ReplayError
from gridmill.replay.blocks import line

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Moment:
    """A world before a tick, and what a player knows of it."""

    state: bytes
    names: tuple[str, ...]  # of the actions
    possible: NDArray[np.bool_]  # [actions] of the agent
    memory: Any = None  # the player's, of one world
    chances: Floats | None = None  # [actions]
    value: float | None = None


class OnPlayer(Protocol):
    """Who plays on after the forks: groups of worlds, one for each action, whose draws are the same."""

    name: str
    options: dict[str, Any]  # of `make`
    gamma: float | None

    def watch(self, tape: Replay, branch: int, tick: int, agent: int) -> Moment:
        """Play up to a tick, remembering what it saw."""

    def begin(self, env: Env, moment: Moment, groups: int, seed: int) -> None:
        """Get ready for an env in which every world is at the moment."""

    def act(self, env: Env) -> NDArray[np.int32]:
        """Actions of all rows."""

    def values(self, env: Env) -> Floats | None:
        """Of all rows as they are now."""


def player_of(tape: Replay, policy: str) -> OnPlayer:
    record = tape.played_by
    if not policy and record is not None and record.weights is not None:
        return TrainedPlayer(f"{record.name} (in the file)", _from_file(tape))
    asked, policy = policy, policy or tape.policy
    if not policy or (evaluate.is_trained(policy) and not which.exists(policy)):
        raise ReplayError(
            f"whatif: the file names the policy {policy!r:.80}, which is neither on this machine nor in the file; "
            "choose who continues: --policy random, script:NAME or a folder"
        )
    if evaluate.is_trained(policy):
        player = evaluate.load_trained(policy)
        if not asked:
            _refuse_other(tape, player)
        return TrainedPlayer(policy, player)
    kind, _, name = policy.partition(":")
    if kind == "random":
        return RandomPlayer()
    tape.game.expect_script(name, "policy")
    return ScriptPlayer(name)


def _refuse_other(tape: Replay, player: Any) -> None:
    """ReplayError unless the policy of the file's name has the weights that played; anybody's may have that name."""
    wanted = tape.played_by.hash if tape.played_by is not None else None
    has = player.as_record()[0]["hash"] if wanted is not None and hasattr(player, "as_record") else wanted
    if has != wanted:
        raise ReplayError(
            f"whatif: the file was played by `{tape.policy:.80}` with weights {wanted!s:.12}, those here are "
            f"{has:.12}; choose who continues: --policy {tape.policy:.80} as it is now, @EPOCH after it, or random"
        )


def _from_file(tape: Replay) -> Any:
    from gridmill.policy.player import of_record

    record = tape.played_by
    assert record is not None
    assert record.weights is not None
    try:
        return of_record(vars(record), record.tensors, record.weights.unpack())
    except (ValueError, TypeError, KeyError, RuntimeError) as reason:
        raise ReplayError(f"replay: its policy cannot be made: {line(reason)}") from None


def _moment(playback: Playback, agent: int, **more: Any) -> Moment:
    env = playback.env
    names = tuple(env.action_names) or tuple(map(str, range(env.num_actions)))
    assert env.masks is not None
    return Moment(env.save([0]), names, env.masks[agent] != 0, **more)


class RandomPlayer:
    """Any action."""

    def __init__(self) -> None:
        self.name, self.options = "random", dict[str, Any]()
        self.gamma: float | None = None

    def watch(self, tape: Replay, branch: int, tick: int, agent: int) -> Moment:
        with Playback(tape, branch) as playback:
            playback.seek(tick)
            return _moment(playback, agent)

    def begin(self, env: Env, moment: Moment, groups: int, seed: int) -> None:
        self.rng, self.groups = np.random.default_rng(seed), groups

    def act(self, env: Env) -> NDArray[np.int32]:
        drawn = self.rng.integers(0, env.num_actions, env.num_rows // self.groups, dtype=np.int32)
        return np.tile(drawn, self.groups)

    def values(self, env: Env) -> None:
        return None


class ScriptPlayer:
    """A script of the game: a teacher of the batch, so what it remembers is forked with the worlds."""

    def __init__(self, script: str) -> None:
        self.name, self.options = f"script:{script}", {"teacher": script}
        self.gamma: float | None = None

    def watch(self, tape: Replay, branch: int, tick: int, agent: int) -> Moment:
        with Playback(tape, branch, **self.options) as playback:
            playback.seek(tick)
            wanted = int(playback.env.teacher_actions[agent])
            chances = (np.arange(playback.env.num_actions) == wanted).astype(np.float64)  # -1: it wants none of them
            return _moment(playback, agent, chances=chances)

    def begin(self, env: Env, moment: Moment, groups: int, seed: int) -> None:
        pass

    def act(self, env: Env) -> NDArray[np.int32]:
        return env.teacher_actions

    def values(self, env: Env) -> None:
        return None


class TrainedPlayer:
    """A network; what it remembers is its recurrent state."""

    def __init__(self, name: str, player: Any) -> None:
        self.name, self.player = name, player
        self.options: dict[str, Any] = {}
        self.gamma: float | None = player.gamma

    def watch(self, tape: Replay, branch: int, tick: int, agent: int) -> Moment:
        player, memory = self.player, None
        with Playback(tape, branch) as playback:
            player.bind(playback.env, 0)
            while True:
                env = playback.env
                thought = player.think(env.obs, memory, env.masks)
                if playback.tick == tick:
                    break
                memory = thought.state
                playback.step()
            chances = thought.log_probs().exp()[agent].numpy().astype(np.float64)
            scale = player.reward_scale
            value = None if scale is None else scale * float(thought.values[agent])
            return _moment(playback, agent, memory=memory, chances=chances, value=value)

    def begin(self, env: Env, moment: Moment, groups: int, seed: int) -> None:
        self.player.bind(env, seed)
        self.groups, self.step = groups, 0
        self.memory = None if moment.memory is None else np.tile(moment.memory, (env.num_worlds, 1))

    def act(self, env: Env) -> NDArray[np.int32]:
        self.memory = self.player.reset(self.memory, env.terminals | env.truncations)
        thought = self.player.think(env.obs, self.memory, env.masks)
        self.memory = thought.state
        rows = env.num_rows // self.groups
        parts = [slice(first, first + rows) for first in range(0, env.num_rows, rows)]
        allowed = thought.allowed
        groups = [
            thought._replace(logits=thought.logits[part], allowed=None if allowed is None else allowed[part])
            for part in parts
        ]
        self.step += 1
        return np.concatenate([self.player.choose(group, self.step) for group in groups])

    def values(self, env: Env) -> Floats | None:
        if self.player.reward_scale is None:
            return None
        thought = self.player.think(env.obs, self.memory, env.masks)
        return np.asarray(self.player.reward_scale * thought.values.numpy(), np.float64)
