"""Playback: one branch of a replay in one world, at any tick; and what a state or a last tick is compared by."""

from __future__ import annotations

import zlib
from bisect import bisect_right
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from gridmill.env import Env
from gridmill.games.make import make
from gridmill.replay.blocks import ReplayError, line

if TYPE_CHECKING:  # a replay plays itself with what is here
    from gridmill.replay.tape import Keyframe, Replay

CHECK = 0xFFFF  # the bits of a hash or of a CRC that a check holds
MOST_FAILURES = 4  # keyframes of no use, after which no other is tried


class Playback:
    """A world that plays the actions of a branch from tick 0 on. `env` is at `tick`, before that tick's actions; at
    the end, after the last ones, also if they ended the episode.

    `options` go to `make`; with a teacher, who remembers what was before, keyframes are not used.
    """

    def __init__(self, tape: Replay, branch: int = 0, **options: Any) -> None:
        self.tape, self.branch = tape, branch
        self.actions = tape.actions_along(branch)
        self.end = len(self.actions)
        self.path = tape.path(branch)
        self.env = world_of(tape, **options)
        self.env.hold_ended()
        self.tick = 0
        self.ended = False  # whether the last step ended the episode: then the world stays as that left it
        self._hashes: dict[int, str] = {}
        self._frames: list[Keyframe] = []
        self._failures = 0  # keyframes that were tried and could not be believed
        for part, until in self.path:
            said = zip(part.hash_ticks(), part.hashes, strict=False)  # one that is being recorded has none yet
            self._hashes |= {t: text for t, text in said if t < until}
            self._frames += [frame for frame in part.keyframes if frame.tick < until]
        if options.get("teacher"):
            self._frames.clear()

    def step(self) -> None:
        """Play one tick."""
        if self.tick >= self.end:
            raise ReplayError(f"replay: it ends at tick {self.end}")
        self.env.actions[:] = self.actions[self.tick]
        self.env.step()
        self.tick += 1
        self.ended = bool(self.env.terminals[0] or self.env.truncations[0])
        if self.ended and self.tick < self.end:
            raise ReplayError(f"replay: the episode ends at tick {self.tick}, but the file continues to {self.end}")

    def seek(self, tick: int) -> None:
        """Go to the moment before a tick, over the nearest keyframe that holds what its hash says."""
        if not 0 <= tick <= self.end:
            raise ReplayError(f"replay: expected a tick in [0, {self.end}], got {tick}")
        if tick == self.tick:
            return
        if not self._by_keyframe(tick) and (tick < self.tick or self.ended):
            self.env.reset(self.tape.seed)
            self.tick, self.ended = 0, False
        while self.tick < tick:
            self.step()

    def _by_keyframe(self, tick: int) -> bool:
        """Take the last keyframe up to a tick, if there is one that saves steps and can be believed."""
        while self._frames:
            place = bisect_right(self._frames, tick, key=lambda frame: frame.tick)
            frame = self._frames[place - 1] if place else None
            if frame is None or (frame.tick <= self.tick <= tick and not self.ended):
                return False
            if self._restore(frame):
                return True
            del self._frames[place - 1]  # not asked again
            self._failures += 1
            if self._failures == MOST_FAILURES:  # a file that lies: to try them all would take longer than to play
                self._frames.clear()
        return False

    def _restore(self, frame: Keyframe) -> bool:
        try:
            self.env.restore(frame.state.unpack(), [0])
        except ValueError:
            believed = False
        else:
            said = self._hashes.get(frame.tick)
            believed = said is None or said == state_hash(self.env)
        if believed:
            self.tick, self.ended = frame.tick, False
        else:  # the world may hold anything now
            self.env.reset(self.tape.seed)
            self.tick, self.ended = 0, False
        return believed

    def compare(self) -> None:
        """Refuse to go on if the file has a hash of this moment, and it is another."""
        said = self._hashes.get(self.tick)
        if said is not None and state_hash(self.env) != said:
            raise ReplayError(f"replay: this build plays the game differently, at tick {self.tick} at the latest")

    def close(self) -> None:
        self.env.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        self.close()


def world_of(tape: Replay, **options: Any) -> Env:
    """The one world that a replay is of, at tick 0; `options` go to `make`."""
    game = tape.game
    try:
        env: Env = make(game, **{"num_worlds": 1, "seed": tape.seed, "masks": True} | options)
    except (ValueError, TypeError, MemoryError) as reason:
        raise ReplayError(f"replay: this build cannot make its world: {line(reason)}") from None
    highest = max(int(branch.actions.max()) for branch in tape.branches)
    if env.num_agents != tape.agents or highest > env.num_actions:  # that number: no action
        env.close()
        raise ReplayError("replay: its actions do not fit its game")
    env.reset()
    return env


# ---- what is compared


def state_hash(env: Env) -> str:
    """The hash of world 0 as a file holds it."""
    return f"{int(env.state_hash()[0]):016x}"


def outcome(env: Env) -> str:
    """What came of the step before in a world that is alone: the hash of its state, or of the end of its episode."""
    if not (env.terminals[0] or env.truncations[0]):
        return state_hash(env)
    found = 0
    for array in (env.rewards, env.terminals, env.truncations, env.final_obs):
        found = zlib.crc32(np.ascontiguousarray(array).tobytes(), found)
    return f"{found:016x}"


def check_of(outcome: str, actions: bytes) -> int:
    """The check of a tick: of what came of it, and of its actions as they are stored."""
    return (int(outcome, 16) & CHECK) | (zlib.crc32(actions) & CHECK) << 16
