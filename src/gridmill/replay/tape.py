"""Replay: what is in a file, as a record; its branches, and the actions along each from tick 0 on."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gridmill.env import Env, GameConfig
from gridmill.games import kinds
from gridmill.replay.blocks import Packed, ReplayError, line

EVERY = 100  # ticks between two hashes
SUFFIX = ".replay"
Actions = NDArray[Any]  # uint8 or uint16


@dataclass(frozen=True)
class Keyframe:
    """The state before a tick, as somebody says it is."""

    tick: int
    state: Packed


@dataclass(frozen=True)
class Branch:
    """The ticks from `fork_tick` on; before it, those of the parent."""

    name: str
    parent: int | None
    fork_tick: int
    actions: Actions  # [ticks, agents]
    ended: bool
    who: Mapping[str, str]
    hashes: tuple[str, ...]  # of the states before every tick that `every` divides
    last: str  # what came of the last tick; empty in format 1
    every: int = EVERY
    checks: NDArray[np.uint32] | None = None  # [ticks]
    keyframes: tuple[Keyframe, ...] = ()
    values: Packed | None = None  # float32 [ticks, agents]
    probabilities: Packed | None = None  # uint8 [ticks, agents, actions]
    result: Mapping[str, Any] = field(default_factory=dict)
    tags: tuple[str, ...] = ()
    more: Mapping[str, Any] = field(default_factory=dict)  # what this version does not know

    @property
    def ticks(self) -> int:
        return len(self.actions)

    @property
    def end(self) -> int:
        """The tick after the last one."""
        return self.fork_tick + len(self.actions)

    @cached_property
    def named(self) -> dict[str, str]:
        """`who` without what names nobody."""
        agents = self.actions.shape[1]
        return {key: name for key, name in self.who.items() if name and (key == "*" or _is_agent(key, agents))}

    def hash_ticks(self) -> range:
        """The ticks that `hashes` are of."""
        return range(-(-self.fork_tick // self.every) * self.every, self.end, self.every)


def _is_agent(key: str, agents: int) -> bool:
    """Whether a key of `who` is the number of an agent, as `str` writes it."""
    return len(key) <= 5 and key.isascii() and key.isdigit() and int(key) < agents and key == str(int(key))


@dataclass(frozen=True)
class PolicyRecord:
    """Who played; with weights, all that it takes to let it play again."""

    name: str
    hash: str | None = None
    masks: bool = False
    gamma: float | None = None
    reward_scale: float | None = None
    config: Mapping[str, Any] | None = None
    spec: Mapping[str, Any] | None = None
    tensors: tuple[tuple[str, tuple[int, ...]], ...] = ()
    weights: Packed | None = None


@dataclass(frozen=True)
class Replay:
    """A file that has been read, or is about to be written."""

    kind: str
    tree: Mapping[str, Any]  # of the game
    seed: int
    action_names: tuple[str, ...]
    branches: tuple[Branch, ...]
    played_by: PolicyRecord | None = None
    names: Mapping[str, str] = field(default_factory=dict)
    format: int = 2
    version: str = ""  # of gridmill, that wrote it
    commit: str | None = None
    more: Mapping[str, Any] = field(default_factory=dict)

    @cached_property
    def game(self) -> GameConfig:
        """The game; ReplayError if this build has no such game."""
        try:
            return kinds.load({"kind": self.kind} | dict(self.tree))
        except (ValueError, TypeError, KeyError, OverflowError, RecursionError) as reason:
            raise ReplayError(f"replay: this build cannot make its game: {line(reason)}") from None

    @property
    def agents(self) -> int:
        return int(self.branches[0].actions.shape[1])

    @property
    def policy(self) -> str:
        """The name of who played."""
        return "" if self.played_by is None else self.played_by.name

    @property
    def actions(self) -> Actions:
        """Those of the recorded episode, [ticks, agents]."""
        return self.branches[0].actions

    def branch(self, number: int) -> Branch:
        if not 0 <= number < len(self.branches):
            raise ReplayError(f"replay: expected a branch in [0, {len(self.branches)}), got {number}")
        return self.branches[number]

    def path(self, branch: int) -> list[tuple[Branch, int]]:
        """The branches that lead to the end of one, each with the tick at which the next one leaves it."""
        here = self.branch(branch)
        found = [(here, here.end)]
        while here.parent is not None:
            tick, here = here.fork_tick, self.branches[here.parent]
            found.append((here, tick))
        return found[::-1]

    def actions_along(self, branch: int = 0) -> Actions:
        """The actions from tick 0 to the end of a branch."""
        parts = [b.actions[: until - b.fork_tick] for b, until in self.path(branch)]
        return parts[0] if len(parts) == 1 else np.concatenate(parts)

    def who(self, branch: int = 0) -> list[str]:
        """Who acted for each agent in the branch's own ticks."""
        named = self.who_by_key(branch)
        rest = named.get("*", "")
        return [named.get(str(agent), rest) for agent in range(self.agents)]

    def who_by_key(self, branch: int = 0) -> dict[str, str]:
        """The same as a file says it: by an agent's number, and `*` for all others.

        A file of a few kilobytes may have many agents in many branches: whoever asks for each of them counts keys.
        """
        here, chain = self.branch(branch), list[Mapping[str, str]]()
        while True:
            chain.append(here.named)
            if here.parent is None or "*" in chain[-1] or len(chain[-1]) >= self.agents:
                break
            here = self.branches[here.parent]
        found = dict[str, str]()
        for who in reversed(chain):
            found.update(who)
        return found

    def play(self, branch: int = 0) -> Generator[Env, None, None]:
        """The world before each of its ticks; what it shows is valid until the next one is asked for."""
        with closing(self.moments(branch)) as shown:
            yield from islice(shown, self.branch(branch).end)

    def moments(self, branch: int = 0) -> Generator[Env, None, None]:
        """The same, and then the world as the last tick left it: one more than there are ticks."""
        from gridmill.replay.playback import Playback

        with Playback(self, branch) as playback:
            while True:
                playback.compare()
                yield playback.env
                if playback.tick == playback.end:
                    return
                playback.step()
