"""Recording: actions are all that is kept while a game is played; a branch is made by playing them again.

So a file is proved to play when it is written, and whoever plays pays for a copy of the actions only.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gridmill.env import Env, GameConfig
from gridmill.replay.blocks import MOST_BLOCK, ReplayError, pack
from gridmill.replay.playback import Playback, check_of, outcome, state_hash
from gridmill.replay.tape import EVERY, Actions, Branch, Keyframe, PolicyRecord, Replay
from gridmill.replay.writer import action_bytes, as_stored

KEYFRAMES_EVERY = 1000  # ticks
MOST_LOG = 256 << 20  # bytes of actions that a recorder keeps


def as_taken(actions: NDArray[np.int32], num_actions: int) -> NDArray[np.int32]:
    """Actions as a replay has them: all numbers that are no action do the same in a world, so one stands for them.

    A script says -1 for what its game does not offer; without a sign it is above them all.
    """
    return np.minimum(actions.view(np.uint32), np.uint32(num_actions)).view(np.int32)


class Recorder:
    """The actions of some worlds of a batch, tick by tick."""

    def __init__(self, env: Env, worlds: Sequence[int] | None = None) -> None:
        """Of these worlds, the first ones of the batch, or of all."""
        self.agents, self.worlds = env.num_agents, env.num_worlds if worlds is None else max(worlds) + 1
        self._rows = self.worlds * self.agents
        self._log = np.zeros((256, self._rows), np.uint8 if action_bytes(env.num_actions) == 1 else np.uint16)
        self.ticks = 0

    def after(self, env: Env) -> None:
        """Call after every step: only then are the actions those that were taken, including those of players."""
        if self.ticks == len(self._log):
            if 2 * self._log.nbytes > MOST_LOG:
                raise ReplayError(
                    f"replay: the actions of {self.worlds} worlds take more than {MOST_LOG >> 20} MiB; "
                    "record fewer episodes"
                )
            self._log = np.concatenate((self._log, np.zeros_like(self._log)))
        self._log[self.ticks] = as_taken(env.actions[: self._rows], env.num_actions)
        self.ticks += 1

    def actions(self, world: int, ticks: int) -> Actions:
        """The actions of a world's first episode, [ticks, agents]."""
        return self._log[:ticks, world * self.agents : (world + 1) * self.agents].copy()


def record(
    game: GameConfig,
    seed: int,
    actions: Any,
    who: Mapping[str, str],
    policy: PolicyRecord | None = None,
    name: str = "",
    tags: Sequence[str] = (),
    result: Mapping[str, Any] = MappingProxyType({}),
    keyframes_every: int = KEYFRAMES_EVERY,
) -> Replay:
    """A replay of one episode, or of the beginning of one, from its actions [ticks, agents]."""
    own = _checked(actions, game.num_agents)
    first = Branch(name, None, 0, own, False, who, (), "", tags=tuple(tags), result=result)
    bare = Replay(game.kind, game.tree(), seed, ("?",), (first,), policy, {"game": game.name})
    return _played(bare, 0, keyframes_every)


def fork(
    tape: Replay,
    parent: int,
    fork_tick: int,
    actions: Any,
    who: Mapping[str, str],
    name: str = "",
    tags: Sequence[str] = (),
    keyframes_every: int = KEYFRAMES_EVERY,
) -> Replay:
    """The same replay with one branch more: from a tick of another branch on, these actions [ticks, agents]."""
    tape = upgraded(tape)
    above = tape.branch(parent)
    while above.parent is not None and 0 <= fork_tick < above.fork_tick:  # there it is a fork of what that forked from
        parent, above = above.parent, tape.branches[above.parent]
    last = above.end - above.ended
    if not 0 <= fork_tick <= last:
        raise ReplayError(f"replay: expected a fork at a tick in [0, {last}] of branch {parent}, got {fork_tick}")
    more = Branch(name, parent, fork_tick, _checked(actions, tape.agents), False, who, (), "", tags=tuple(tags))
    return _played(replace(tape, branches=(*tape.branches, more)), len(tape.branches), keyframes_every)


def upgraded(tape: Replay) -> Replay:
    """A replay that can be written: one of format 1, which lacks what a file of today must say, is recorded anew."""
    if tape.format != 1:
        return tape
    own = tape.branches[0]
    again = record(tape.game, tape.seed, tape.actions, own.who, tape.played_by, own.name)
    if again.branches[0].hashes != own.hashes and own.every == EVERY:
        raise ReplayError("replay: this build plays this file of format 1 differently; it cannot be taken over")
    return again


def _checked(actions: Any, agents: int) -> Actions:
    found = np.asarray(actions)
    if found.ndim != 2 or found.shape[1] != agents or not len(found) or not np.issubdtype(found.dtype, np.integer):
        raise ReplayError(
            f"replay: expected actions as whole numbers [ticks, {agents}], got {found.dtype} {found.shape}"
        )
    if int(found.min()) < 0 or int(found.max()) > 0xFFFF:
        raise ReplayError(f"replay: expected actions in [0, 65536), got {found.min()} to {found.max()}")
    if found.size * 2 > MOST_BLOCK:
        raise ReplayError(f"replay: {found.shape[0]} ticks of {agents} agents are too many for one file")
    return found.astype(np.uint16)


def _played(bare: Replay, number: int, keyframes_every: int) -> Replay:
    """A replay whose branch has hashes, checks and keyframes, and ends where the episode did."""
    bare = replace(bare, format=2)
    own = bare.branches[number]
    hashes, checks, frames = list[str](), list[int](), list[Keyframe]()
    # Masks are part of a keyframe and of nothing else here; without them a world is faster.
    masks = bool(keyframes_every) and own.end - 1 >= keyframes_every
    with Playback(bare, number, masks=masks) as playback:
        env = playback.env
        names = tuple(env.action_names) or tuple(map(str, range(env.num_actions)))
        wide = action_bytes(len(names))
        actions = own.actions.astype(np.uint8 if wide == 1 else np.uint16)
        rows = [as_stored(row, wide) for row in actions]
        playback.seek(own.fork_tick)
        came = state_hash(env)
        while playback.tick < own.end:
            tick = playback.tick
            if tick % EVERY == 0:
                hashes.append(came)
            if keyframes_every and tick > own.fork_tick and tick % keyframes_every == 0:
                frames.append(Keyframe(tick, pack(env.save([0]))))
            playback.step()
            came = outcome(env)
            checks.append(check_of(came, rows[tick - own.fork_tick]))
        result = _result(bare.game, env, own.end) if playback.ended else {}
        ended = playback.ended
    branch = replace(
        own,
        actions=actions,
        ended=ended,
        hashes=tuple(hashes),
        last=came,
        every=EVERY,
        checks=np.array(checks, np.uint32),
        keyframes=tuple(frames),
        result=result | dict(own.result),
    )
    branches = (*bare.branches[:number], branch, *bare.branches[number + 1 :])
    return replace(bare, action_names=names, branches=branches)


def _result(game: GameConfig, env: Env, length: int) -> dict[str, Any]:
    """What the game says of an episode that has just ended."""
    found = env.take_episodes()
    score = float(np.mean(game.score_of(found)))
    reward = float(np.mean(found["reward"])) if "reward" in found else None
    return {"score": score, "score_name": game.score_title(), "reward": reward, "length": length}


def annotated(tape: Replay, branch: int, values: NDArray[np.float32], probabilities: NDArray[np.float32]) -> Replay:
    """The same replay with what a policy made of a branch: values [ticks, agents], probabilities [.., actions]."""
    own = tape.branch(branch)
    shape = (own.ticks, tape.agents)
    if values.shape != shape or probabilities.shape != (*shape, len(tape.action_names)):
        raise ReplayError(f"replay: expected values {shape} and probabilities of each action, got {values.shape}")
    shares = np.rint(255 * probabilities).astype(np.uint8)
    own = replace(own, values=pack(values.astype("<f4").tobytes()), probabilities=pack(shares.tobytes()))
    return replace(tape, branches=(*tape.branches[:branch], own, *tape.branches[branch + 1 :]))
