"""Bytes -> Replay, of format 2 and of format 1. Nothing is believed: whatever does not fit is a ReplayError."""

from __future__ import annotations

import os
import re
import stat
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from gridmill.replay import old
from gridmill.replay.blocks import (
    MAGIC,
    MOST_BLOCK,
    MOST_BLOCKS,
    MOST_HEAD,
    RATIO,
    Packed,
    Part,
    ReplayError,
    plain,
    read_bytes,
)
from gridmill.replay.tape import SUFFIX, Branch, Keyframe, PolicyRecord, Replay

MOST_BRANCHES, MOST_AGENTS, MOST_TICKS, MOST_ACTIONS = 1024, 65_535, 10_000_000, 65_536
MOST_KEYFRAMES = 10_000
STARTS = (MAGIC, b'{"gridmill": "')  # of both formats
HASH = re.compile(r"[0-9a-f]{16}")
HEAD_KEYS = {
    "format", "gridmill", "commit", "kind", "game", "core", "fingerprint", "saved_name", "seed", "agents",
    "action_names", "action_bytes", "names", "policy", "branches",
}  # fmt: skip
BRANCH_KEYS = {
    "name", "parent", "fork_tick", "ticks", "ended", "who", "actions", "hashes", "checks", "keyframes", "values",
    "probabilities", "result", "tags",
}  # fmt: skip


def is_replay(path: Path) -> bool:
    """Whether a name means a replay: by its suffix, or because such a file is there."""
    if path.suffix == SUFFIX:
        return True
    try:
        with open(path, "rb", opener=lambda name, flags: os.open(name, flags | os.O_NONBLOCK)) as stream:
            return stat.S_ISREG(os.fstat(stream.fileno()).st_mode) and stream.read(len(MAGIC)).startswith(STARTS)
    except (OSError, ValueError):
        return False


def read(path: Path) -> Replay:
    """The replay in a file."""
    data = read_bytes(Path(path))
    try:
        return decode(data)
    except ReplayError as error:
        raise ReplayError(f"{error} - in `{path}`") from None


def decode(data: bytes) -> Replay:
    """The replay in these bytes."""
    if not data.startswith(MAGIC):
        return old.decode(data)
    end = data.find(b"\n", len(MAGIC), len(MAGIC) + MOST_HEAD)
    if end < 0:
        raise ReplayError(f"replay: the head is longer than {MOST_HEAD} bytes")
    head = Part(plain(data[len(MAGIC) : end]))
    if head["format"].value != 2:
        head["format"].fail("format 2")
    return _Reader(head, memoryview(data)[end + 1 :], len(data)).replay()


class _Reader:
    """A head and the blocks behind it."""

    def __init__(self, head: Part, body: memoryview, size: int) -> None:
        self.head, self.body = head, body
        self.left = min(MOST_BLOCKS, RATIO * size)  # bytes that blocks may still unpack to
        self.agents = head["agents"].number(1, MOST_AGENTS)
        self.action_names = tuple(part.text() for part in head["action_names"].items(MOST_ACTIONS))
        if not self.action_names:
            head["action_names"].fail("the name of an action")
        self.wide = head["action_bytes"].number(1, 2)

    def replay(self) -> Replay:
        head, branches = self.head, list[Branch]()
        for part in head["branches"].items(MOST_BRANCHES):
            branches.append(self.branch(part, branches))
        if not branches:
            head["branches"].fail("at least one branch")
        seed = head["seed"].text(20)
        if not (seed.isascii() and seed.isdigit() and int(seed) < 2**64):
            head["seed"].fail("a number below 2**64 as text")
        policy, names, commit = head.get("policy"), head.get("names"), head.get("commit")
        named = {} if names is None else {name: names[name].text() for name in names.object()}
        return Replay(
            kind=head["kind"].text(),
            tree=head["game"].object(),
            seed=int(seed),
            action_names=self.action_names,
            branches=tuple(branches),
            played_by=None if policy is None else self.policy(policy),
            names=named,
            version=head["gridmill"].text(),
            commit=None if commit is None else commit.text(),
            more={key: value for key, value in head.object().items() if key not in HEAD_KEYS},
        )

    def branch(self, part: Part, before: list[Branch]) -> Branch:
        fork_tick = part["fork_tick"].number(0, MOST_TICKS)
        ticks = part["ticks"].number(1, MOST_TICKS)
        parent = self.parent(part, before, fork_tick)
        kind = "u1" if self.wide == 1 else "<u2"
        actions = np.frombuffer(self.block(part["actions"], ticks * self.agents * self.wide).unpack(), kind)
        if int(actions.max()) > len(self.action_names):
            part["actions"].fail(f"actions below {len(self.action_names)}, or that number for what is none")
        checks = part.get("checks")
        result, tags = part.get("result"), part.get("tags")
        hashes = part["hashes"]
        branch = Branch(
            name=part["name"].text(),
            parent=parent,
            fork_tick=fork_tick,
            actions=actions.reshape(ticks, self.agents),
            ended=part["ended"].flag(),
            who={agent: part["who"][agent].text() for agent in part["who"].object()},
            every=hashes["every"].number(1, MOST_TICKS),
            hashes=tuple(_hash(x) for x in hashes["values"].items(MOST_TICKS)),
            last=_hash(hashes["last"]),
            checks=None if checks is None else np.frombuffer(self.block(checks, 4 * ticks).unpack(), "<u4"),
            values=self.optional(part.get("values"), 4 * ticks * self.agents),
            probabilities=self.optional(part.get("probabilities"), ticks * self.agents * len(self.action_names)),
            result={} if result is None else {key: _figure(result, key) for key in result.object()},
            tags=() if tags is None else tuple(tag.text() for tag in tags.items(100)),
            more={key: value for key, value in part.object().items() if key not in BRANCH_KEYS},
        )
        if len(branch.hashes) != len(branch.hash_ticks()):
            hashes["values"].fail(f"{len(branch.hash_ticks())} hashes, one every {branch.every} ticks")
        return replace(branch, keyframes=self.keyframes(part, branch))

    def parent(self, part: Part, before: list[Branch], fork_tick: int) -> int | None:
        named = part.get("parent")
        if not before:
            if named is not None or fork_tick != 0:
                part.fail("no parent and no fork of branch 0")
            return None
        parent = part["parent"].number(0, len(before) - 1)
        above = before[parent]
        first, last = above.fork_tick, above.end - above.ended
        if not first <= fork_tick <= last:
            part["fork_tick"].fail(f"a tick of its parent's own, in [{first}, {last}]")
        return parent

    def keyframes(self, part: Part, branch: Branch) -> tuple[Keyframe, ...]:
        found, listed = list[Keyframe](), part.get("keyframes")
        for entry in [] if listed is None else listed.items(MOST_KEYFRAMES):
            least = found[-1].tick if found else branch.fork_tick
            tick = entry["tick"].number(least + 1, branch.end - 1)
            found.append(Keyframe(tick, self.block(entry["state"])))
        return tuple(found)

    def policy(self, part: Part) -> PolicyRecord:
        found = PolicyRecord(
            name=part["name"].text(),
            hash=None if part.get("hash") is None else part["hash"].text(64),
            masks=part["masks"].flag(),
            gamma=_number(part, "gamma"),
            reward_scale=_number(part, "reward_scale"),
        )
        if part.get("weights") is None:
            return found
        tensors = tuple(_tensor(entry) for entry in part["tensors"].items(10_000))
        numbers = 0
        for _, shape in tensors:
            size = 1
            for side in shape:
                size *= side
            numbers += size
        return replace(
            found,
            config=part["config"].object(),
            spec=part["spec"].object(),
            tensors=tensors,
            weights=self.block(part["weights"], 4 * numbers),
        )

    def optional(self, part: Part | None, raw: int) -> Packed | None:
        return None if part is None else self.block(part, raw)

    def block(self, part: Part, raw: int | None = None) -> Packed:
        """A block that the head names, of `raw` bytes if that is known; unpacked only when somebody asks for it."""
        at, size = part["at"].number(0, len(self.body)), part["size"].number(0, len(self.body))
        said = part["raw"].number(0, MOST_BLOCK)
        if at + size > len(self.body):
            part.fail(f"a block within {len(self.body)} bytes")
        if raw is not None and said != raw:
            part["raw"].fail(f"{raw} bytes")
        self.left -= said
        if said > RATIO * size or self.left < 0:
            part["raw"].fail(f"at most {RATIO} times what is in the file")
        return Packed(self.body[at : at + size], said)


def _hash(part: Part) -> str:
    text = part.text(16)
    if HASH.fullmatch(text) is None:
        part.fail("16 hex digits")
    return text


def _figure(whole: Part, name: str) -> Any:
    """A number, or a word such as the name of a score; None where there is none."""
    part = whole.get(name)
    if part is None:
        return None
    if isinstance(part.value, str):
        return part.text()
    if isinstance(part.value, bool) or not isinstance(part.value, int | float) or not abs(part.value) <= 2**53:
        part.fail("a number or text")
    return part.value


def _number(whole: Part, name: str) -> float | None:
    value = _figure(whole, name)
    if isinstance(value, str):
        whole[name].fail("a number")
    return None if value is None else float(value)


def _tensor(part: Part) -> tuple[str, tuple[int, ...]]:
    pair = part.items(2)
    if len(pair) != 2:
        part.fail("a name and a shape")
    return pair[0].text(), tuple(side.number(0, MOST_BLOCK) for side in pair[1].items(8))
