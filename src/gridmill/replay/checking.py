"""Check: every branch of a replay is played again and compared with all that the file says of it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from gridmill.env import Env
from gridmill.replay.blocks import ReplayError
from gridmill.replay.playback import CHECK, check_of, outcome, state_hash, world_of
from gridmill.replay.tape import Branch, Replay
from gridmill.replay.writer import as_stored

FORM = 8  # bytes that a saved state begins with, which say how it is saved


@dataclass(frozen=True)
class Finding:
    """What a branch turned out to be. `tick` is the first that differs, or `since` and it the ticks it lies among."""

    branch: int
    ticks: int
    hashes: int = 0  # that were compared and are equal, as are the other two
    checks: int = 0
    keyframes: int = 0
    difference: str = ""  # empty: equal
    tick: int | None = None
    since: int | None = None

    @property
    def equal(self) -> bool:
        return not self.difference

    @property
    def where(self) -> str:
        """The tick or ticks, in words."""
        if self.tick is None:
            return ""
        return (
            f"at tick {self.tick}" if self.since in (None, self.tick) else f"between tick {self.since} and {self.tick}"
        )


def check(tape: Replay) -> list[Finding]:
    """One finding per branch."""
    found, forks = list[Finding](), dict[int, bytes]()
    with world_of(tape) as env:
        for number, branch in enumerate(tape.branches):
            if number > 0 and number not in forks:
                said = f"not reached: branch {branch.parent} differs before it forks"
                found.append(Finding(number, branch.ticks, difference=said, tick=branch.fork_tick))
                continue
            if number > 0:
                env.restore(forks.pop(number), [0])
            leaves: dict[int, list[int]] = {}
            for other, child in enumerate(tape.branches):
                if child.parent == number:
                    leaves.setdefault(child.fork_tick, []).append(other)
            found.append(_Comparison(env, tape, number).run(leaves, forks))
    return found


class _Comparison:
    """One branch, played from where `env` is."""

    def __init__(self, env: Env, tape: Replay, number: int) -> None:
        self.env, self.number, self.branch = env, number, tape.branches[number]
        self.wide = self.branch.actions.dtype.itemsize
        self.hashes = dict(zip(self.branch.hash_ticks(), self.branch.hashes, strict=True))
        self.frames = {frame.tick: frame.state for frame in self.branch.keyframes}
        self.since = self.branch.fork_tick  # the first tick whose outcome is not yet known to be equal
        self.done = {"hashes": 0, "checks": 0, "keyframes": 0}

    def run(self, leaves: dict[int, list[int]], forks: dict[int, bytes]) -> Finding:
        """States at which other branches leave are put into `forks`, as far as it is equal."""
        branch = self.branch
        for said in self._ticks(leaves, forks):
            if said:
                return said
        if branch.end in leaves:
            forks |= dict.fromkeys(leaves[branch.end], self.env.save([0]))
        return self._found()

    def _ticks(self, leaves: dict[int, list[int]], forks: dict[int, bytes]) -> Iterator[Finding | None]:
        env, branch = self.env, self.branch
        came = state_hash(env)
        for tick in range(branch.fork_tick, branch.end):
            yield self._before(tick, came)
            if tick in leaves:
                forks |= dict.fromkeys(leaves[tick], env.save([0]))
            row = branch.actions[tick - branch.fork_tick]
            env.step(row.astype(np.int32))
            came = outcome(env)
            yield self._after(tick, came, as_stored(row, self.wide))
            ended = bool(env.terminals[0] or env.truncations[0])
            if ended != (branch.ended and tick + 1 == branch.end):
                said = "the episode ends there" if ended else "the episode does not end there"
                yield self._differs(said, tick, tick)

    def _before(self, tick: int, came: str) -> Finding | None:
        """A hash or a keyframe of the moment before a tick."""
        expected = self.hashes.get(tick)
        if expected is not None:
            if expected != came:
                return self._differs("this build plays it differently, or its actions were changed", tick - 1)
            self.done["hashes"] += 1
            self.since = tick
        if tick in self.frames:
            said, state = self.frames[tick].unpack(), self.env.save([0])
            # One of a build that saved states in another form is of no use here, and does no harm.
            if said != state and said[:FORM] == state[:FORM]:
                return self._differs("its keyframe is not the state that its actions lead to", tick, tick)
            self.done["keyframes"] += said == state
        return None

    def _after(self, tick: int, came: str, actions: bytes) -> Finding | None:
        """The check of a tick, and what came of the last one."""
        branch = self.branch
        if branch.checks is not None:
            said, found = int(branch.checks[tick - branch.fork_tick]), check_of(came, actions)
            if said >> 16 != found >> 16:
                return self._differs("its actions are not those that were recorded", tick, tick)
            if said & CHECK != found & CHECK:
                return self._differs("this build plays it differently", tick, tick)
            self.done["checks"] += 1
            self.since = tick + 1
        if tick + 1 == branch.end and branch.last:
            if branch.last != came:
                return self._differs("this build plays it differently, or its actions were changed", tick)
            self.done["hashes"] += 1
        return None

    def _found(self) -> Finding:
        done = self.done
        return Finding(self.number, self.branch.ticks, done["hashes"], done["checks"], done["keyframes"])

    def _differs(self, what: str, tick: int, since: int | None = None) -> Finding:
        first = min(self.since, tick) if since is None else since
        tick = max(tick, self.branch.fork_tick) if tick < 0 else tick
        return replace(self._found(), difference=what, tick=tick, since=max(first, 0))


def expect_equal(tape: Replay) -> None:
    """ReplayError with the first difference, if there is one."""
    for finding in check(tape):
        if not finding.equal:
            raise ReplayError(f"replay: branch {finding.branch} differs {finding.where}: {finding.difference}")


def line_of(finding: Finding, branch: Branch) -> str:
    """A finding as a line for people."""
    if finding.equal:
        counted = f"{finding.hashes} hashes, {finding.checks} checks, {finding.keyframes} keyframes"
        return f"branch {finding.branch}: equal, {finding.ticks} ticks ({counted})"
    return f"branch {finding.branch}: differs {finding.where}: {finding.difference}"
