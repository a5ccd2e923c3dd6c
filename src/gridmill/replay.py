"""Replays: one episode of one world as a small file that plays again, tick by tick, in the same engine.

A file is a line of JSON (game, seed, policy, words, and a hash of the state every so many ticks) and then the actions,
deflated. Nothing else is stored: the world follows from its seed. Whoever plays it compares the hashes, so a build
that plays the game differently says so instead of showing something else. Files come from anywhere: every size is
checked before memory is taken.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Generator
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gridmill.env import Env, GameConfig
from gridmill.games import kinds
from gridmill.games.make import make

FORMAT = 1
EVERY = 100  # ticks between two hashes
MOST_BYTES = 64 << 20  # of a file, and of its actions
RATIO = 1032  # the most that deflate can save: more is a lie
SUFFIX = ".replay"


class ReplayError(ValueError):
    """A file that is no replay, or one of another game or build."""


@dataclass
class Recorder:
    """Collects the first episode of world 0."""

    game: GameConfig
    policy: str
    seed: int
    actions: list[NDArray[np.uint16]] = field(default_factory=list)
    hashes: list[str] = field(default_factory=list)
    done: bool = False

    def before(self, env: Env) -> None:
        """Call before every step."""
        if not self.done and len(self.actions) % EVERY == 0:
            self.hashes.append(f"{int(env.state_hash()[0]):016x}")

    def after(self, env: Env) -> None:
        """Call after every step: only then the actions are those that were taken, players' included."""
        if self.done:
            return
        self.actions.append(env.actions[: env.num_agents].astype(np.uint16))
        self.done = bool(env.terminals[0] or env.truncations[0])

    def write(self, path: Path) -> None:
        """The file, whole or not at all."""
        table = np.stack(self.actions)
        head = {
            "gridmill": version("gridmill"),
            "format": FORMAT,
            "kind": self.game.kind,
            "game": self.game.tree(),
            "policy": self.policy,
            "seed": self.seed,
            "ticks": len(table),
            "agents": table.shape[1],
            "every": EVERY,
            "hashes": self.hashes,
        }
        path.parent.mkdir(parents=True, exist_ok=True)
        part = path.with_name(path.name + ".part")
        part.write_bytes(json.dumps(head).encode() + b"\n" + zlib.compress(table.astype("<u2").tobytes(), 6))
        part.replace(path)


@dataclass(frozen=True)
class Replay:
    """A file that has been read."""

    game: GameConfig
    policy: str
    seed: int
    every: int
    hashes: tuple[str, ...]
    actions: NDArray[np.uint16]  # [ticks, agents]

    def play(self) -> Generator[Env, None, None]:
        """The world before each of its ticks; what it shows is valid until the next one is asked for."""
        with make(self.game, num_worlds=1, seed=self.seed) as env:
            if env.num_agents != self.actions.shape[1] or int(self.actions.max()) >= env.num_actions:
                raise ReplayError("replay: its actions do not fit its game")
            env.reset()
            for tick, actions in enumerate(self.actions):
                if tick % self.every == 0 and f"{int(env.state_hash()[0]):016x}" != self.hashes[tick // self.every]:
                    raise ReplayError(f"replay: this build plays the game differently from tick {tick} or before on")
                yield env
                env.step(actions.astype(np.int32))


def read(path: Path) -> Replay:
    """The replay in a file."""
    try:
        size = path.stat().st_size
        if size > MOST_BYTES:
            raise ReplayError(f"replay: expected at most {MOST_BYTES} bytes, got {size} in `{path}`")
        head, _, body = path.read_bytes().partition(b"\n")
        return _decoded(json.loads(head), body)
    except OSError as reason:
        raise ReplayError(f"replay: cannot read `{path}`: {reason.strerror}") from None
    except ReplayError as error:
        raise ReplayError(f"{error} - in `{path}`") from None
    except (ValueError, TypeError, KeyError, OverflowError, RecursionError, zlib.error) as reason:
        raise ReplayError(f"replay: expected a file that `--replay` wrote, got `{path}`: {_line(reason)}") from None


def _decoded(head: Any, body: bytes) -> Replay:
    if not isinstance(head, dict) or head.get("format") != FORMAT:
        found = head.get("format") if isinstance(head, dict) else None
        raise ReplayError(f"replay: expected format {FORMAT}, got {found!r}")
    ticks, agents, every, seed = (_count(head, name) for name in ("ticks", "agents", "every", "seed"))
    if not 0 < ticks * agents * 2 <= min(MOST_BYTES, RATIO * (len(body) + 64)):
        raise ReplayError(f"replay: {ticks} ticks of {agents} agents are not in {len(body)} bytes")
    inflater = zlib.decompressobj()
    raw = inflater.decompress(body, ticks * agents * 2)
    if len(raw) != ticks * agents * 2 or inflater.unconsumed_tail or inflater.unused_data or not inflater.eof:
        raise ReplayError(f"replay: expected the actions of {ticks} ticks of {agents} agents, got others")
    hashes = tuple(str(x) for x in head["hashes"])
    if every == 0 or len(hashes) != -(-ticks // every):
        raise ReplayError(f"replay: expected a hash every {every} ticks, got {len(hashes)} for {ticks}")
    game = kinds.load({"kind": head["kind"]} | head["game"])
    actions = np.frombuffer(raw, "<u2").reshape(ticks, agents)
    return Replay(game, str(head["policy"]), seed, every, hashes, actions)


def _count(head: dict[str, Any], name: str) -> int:
    value = head[name]
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < 2**64:
        raise ReplayError(f"replay: expected a number, got {str(value)[:40]!r} - at `$.{name}`")
    return value


def _line(reason: Exception) -> str:
    return " ".join(str(reason).split())[:200] or type(reason).__name__
