"""Small replays to test with."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
from tiny import berries

from gridmill import replay
from gridmill.replay.blocks import MAGIC
from gridmill.replay.tape import Replay


def moves(ticks: int, agents: int, seed: int = 0, actions: int = 5) -> Any:
    return np.random.default_rng(seed).integers(0, actions, (ticks, agents))


def small(ticks: int = 250, forks: int = 2, keyframes_every: int = 50) -> Replay:
    """Berries by chance; forks at 40, 80, ..., each of the one before, and who played in each."""
    game = berries().replace("max_steps", ticks)
    tape = replay.record(
        game, 7, moves(ticks, 2), {"*": "script:x"}, replay.PolicyRecord("script:x"), "the episode",
        keyframes_every=keyframes_every,
    )  # fmt: skip
    for number in range(forks):
        at = 40 * (number + 1)
        own = moves(ticks - at - 10 * number, 2, 1 + number)
        tape = replay.fork(tape, number, at, own, {"1": "human"}, f"fork {number}", keyframes_every=keyframes_every)
    return tape


def parts(data: bytes) -> tuple[dict[str, Any], bytes]:
    """The head and the blocks of a file of format 2."""
    assert data.startswith(MAGIC)
    head, _, body = data[len(MAGIC) :].partition(b"\n")
    return json.loads(head), body


def joined(head: Any, body: bytes) -> bytes:
    return MAGIC + json.dumps(head, separators=(",", ":")).encode() + b"\n" + body
