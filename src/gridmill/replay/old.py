"""Format 1, which was written before forks and keyframes: a line of JSON, then the actions. It is only read."""

from __future__ import annotations

import re

import numpy as np

from gridmill.replay.blocks import MOST_BLOCK, MOST_HEAD, Packed, Part, ReplayError, plain
from gridmill.replay.tape import Branch, PolicyRecord, Replay

RATIO = 1032  # the most that deflate can save; writers of format 1 knew no other cap
MOST_TICKS, MOST_AGENTS = 10_000_000, 65_535
HASH = re.compile(r"[0-9a-f]{16}")


def decode(data: bytes) -> Replay:
    """The replay in bytes that do not begin as one of format 2."""
    end = data.find(b"\n", 0, MOST_HEAD)
    if not data.startswith(b"{") or end < 0:
        raise ReplayError(f"replay: expected a file that begins with `gridmill-replay 2`, got {bytes(data[:20])!r}")
    head, body = Part(plain(data[:end])), memoryview(data)[end + 1 :]
    if head["format"].value != 1:
        head["format"].fail("format 1 or 2")
    ticks, agents = head["ticks"].number(1, MOST_TICKS), head["agents"].number(1, MOST_AGENTS)
    every, raw = head["every"].number(1, MOST_TICKS), 2 * ticks * agents
    if raw > min(MOST_BLOCK, RATIO * (len(body) + 64)):
        raise ReplayError(f"replay: {ticks} ticks of {agents} agents are not in {len(body)} bytes")
    actions = np.frombuffer(Packed(body, raw).unpack(), "<u2").reshape(ticks, agents)
    hashes = tuple(part.text(16) for part in head["hashes"].items(MOST_TICKS))
    if len(hashes) != -(-ticks // every) or not all(map(HASH.fullmatch, hashes)):
        raise ReplayError(f"replay: the hashes do not match one every {every} ticks, for {ticks} ticks")
    policy = head["policy"].text()
    return Replay(
        kind=head["kind"].text(),
        tree=head["game"].object(),
        seed=head["seed"].number(0, 2**64 - 1),
        action_names=(),
        branches=(
            Branch("", None, 0, actions, ended=True, who={"*": _who(policy)}, hashes=hashes, last="", every=every),
        ),
        played_by=PolicyRecord(policy),
        format=1,
        version=head["gridmill"].text(),
    )


def _who(policy: str) -> str:
    """What the format of today calls a player that the older one called by its policy."""
    kind, _, name = policy.partition(":")
    return f"script:{name}" if kind in ("bot", "script") else "random" if policy == "random" else "policy"
