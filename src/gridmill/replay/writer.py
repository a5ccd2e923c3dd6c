"""Replay -> bytes of format 2."""

from __future__ import annotations

import json
from functools import cache
from importlib.metadata import version
from pathlib import Path
from subprocess import SubprocessError, run
from typing import Any

import numpy as np

from gridmill.config.files import write_named
from gridmill.replay.blocks import MAGIC, MOST_FILE, MOST_HEAD, Packed, ReplayError, line, pack
from gridmill.replay.reader import decode
from gridmill.replay.tape import Branch, PolicyRecord, Replay


def write(path: Path, tape: Replay) -> None:
    """Write the file, completely or not at all; a replay that no reader would accept is not written."""
    write_named(path, readable(tape))


def readable(tape: Replay) -> bytes:
    """The bytes of a file that every reader accepts; ReplayError if there is none."""
    data = encode(tape)
    try:
        decode(data)
    except ReplayError as reason:
        raise ReplayError(f"replay: not written, because it could not be read again: {reason}") from None
    return data


def encode(tape: Replay) -> bytes:
    """The bytes of a file; blocks that were read are taken over as they are."""
    if tape.format != 2:
        raise ReplayError(f"replay: expected a replay of format 2 to write, got format {tape.format}; record it again")
    game, blocks, wide = tape.game, _Blocks(), action_bytes(len(tape.action_names))
    head = {
        "format": 2,
        "gridmill": version("gridmill"),
        "commit": commit(),
        "kind": tape.kind,
        "game": tape.tree,
        "core": game.core_tree(),
        "fingerprint": game.fingerprint(),
        "saved_name": game.saved_name(),
        "seed": str(tape.seed),
        "agents": tape.agents,
        "action_names": list(tape.action_names),
        "action_bytes": wide,
        "names": dict(tape.names),
        "policy": None if tape.played_by is None else _policy(tape.played_by, blocks),
        "branches": [_branch(branch, blocks, wide) for branch in tape.branches],
        **tape.more,
    }
    try:
        text = json.dumps(head, separators=(",", ":"), allow_nan=False).encode()
    except (ValueError, TypeError, RecursionError) as reason:  # NaN, or what is no JSON
        raise ReplayError(f"replay: its head cannot be written as JSON: {line(reason)}") from None
    if len(text) >= MOST_HEAD:
        raise ReplayError(f"replay: expected a head of less than {MOST_HEAD} bytes, got {len(text)}")
    data = b"".join([MAGIC, text, b"\n", *blocks.parts])
    if len(data) > MOST_FILE:
        raise ReplayError(f"replay: expected at most {MOST_FILE} bytes in a file, got {len(data)}; cut the episode")
    return data


class _Blocks:
    """The blocks of a file in their order."""

    def __init__(self) -> None:
        self.parts: list[bytes | memoryview] = []
        self.size = 0

    def add(self, what: Packed | bytes) -> dict[str, int]:
        """What the head says of a block that comes next."""
        block = pack(what) if isinstance(what, bytes) else what
        self.parts.append(block.data)
        named = {"at": self.size, "size": len(block.data), "raw": block.raw}
        self.size += len(block.data)
        return named


def action_bytes(num_actions: int) -> int:
    """Bytes of an action in a file: the number after the last one stands for what is no action."""
    return 1 if num_actions < 256 else 2


def _branch(branch: Branch, blocks: _Blocks, wide: int) -> dict[str, Any]:
    found: dict[str, Any] = {
        "name": branch.name,
        "parent": branch.parent,
        "fork_tick": branch.fork_tick,
        "ticks": branch.ticks,
        "ended": branch.ended,
        "who": dict(branch.who),
        "actions": blocks.add(as_stored(branch.actions, wide)),
        "hashes": {"every": branch.every, "values": list(branch.hashes), "last": branch.last},
        "keyframes": [{"tick": frame.tick, "state": blocks.add(frame.state)} for frame in branch.keyframes],
        "result": dict(branch.result),
        "tags": list(branch.tags),
    }
    if branch.checks is not None:
        found["checks"] = blocks.add(branch.checks.astype("<u4").tobytes())
    for name in ("values", "probabilities"):
        block: Packed | None = getattr(branch, name)
        if block is not None:
            found[name] = blocks.add(block)
    return found | dict(branch.more)


def as_stored(actions: Any, wide: int) -> bytes:
    """Actions as a block holds them."""
    return np.asarray(actions).astype("u1" if wide == 1 else "<u2").tobytes()


def _policy(record: PolicyRecord, blocks: _Blocks) -> dict[str, Any]:
    found: dict[str, Any] = {name: getattr(record, name) for name in ("name", "hash", "masks", "gamma", "reward_scale")}
    if record.weights is not None:
        found |= {"config": record.config, "spec": record.spec}
        found |= {"tensors": [[name, list(shape)] for name, shape in record.tensors]}
        found["weights"] = blocks.add(record.weights)
    return found


@cache
def commit() -> str | None:
    """The commit of the checkout that this package is in; None if it is in none."""
    root = Path(__file__).resolve().parents[3]
    if not (root / ".git").exists():
        return None
    try:
        done = run(["git", "rev-parse", "HEAD"], cwd=root, capture_output=True, text=True, timeout=20, check=True)
    except (OSError, SubprocessError):
        return None
    return done.stdout.strip() or None
