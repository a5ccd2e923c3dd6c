"""Damaged replays: whatever is changed, cut, doubled or claimed, a file reads or one line says why not, at once."""

from __future__ import annotations

import contextlib
import copy
import json
import time
import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tapes import joined, parts, small

from gridmill import replay
from gridmill.replay.blocks import MAGIC, ReplayError
from gridmill.replay.reader import decode

pytestmark = pytest.mark.F3

OLD = Path(__file__).resolve().parents[1] / "data" / "4590d82" / "prospector.replay"
SLOWEST = 0.1  # seconds of CPU for one file; honest ones take a hundredth of it
CLAIMS: tuple[Any, ...] = (
    -1, 0, 1, 2, 255, 65_536, 1 << 31, 1 << 53, 1 << 64, 10**30, -(1 << 63), 0.5, 1e308, "", "0", "x" * 70_000,
    "<script>alert(1)</script>", "\ud800", "\u202e", None, True, [], {}, [[]], {"at": 0, "size": 0, "raw": 0},
    {"at": 0, "size": 10**9, "raw": 10**12}, ["0" * 16] * 10,
)  # fmt: skip


def bytes_changed(data: bytes, rng: np.random.Generator) -> bytes:
    """A few bytes set, cut or doubled."""
    found = bytearray(data)
    for _ in range(int(rng.integers(1, 4))):
        at = int(rng.integers(len(found)))
        if rng.random() < 0.5:  # the head is a small part of a file
            at = min(at, int(rng.integers(3000)))
        match int(rng.integers(3)):
            case 0:
                found[at] = int(rng.integers(256))
            case 1:
                del found[at : at + int(rng.integers(1, 40))]
            case _:
                found[at:at] = found[at : at + int(rng.integers(1, 40))]
    return bytes(found)


def places(node: Any) -> Iterator[tuple[Any, Any]]:
    """Every entry of a head: what holds it, and its key."""
    for key in list(node) if isinstance(node, dict) else range(len(node)):
        yield node, key
        if isinstance(node[key], dict | list):
            yield from places(node[key])


def claims_changed(head: str, body: bytes, rng: np.random.Generator) -> bytes:
    """An entry or two of the head that say something else."""
    tree = json.loads(head)
    for _ in range(int(rng.integers(1, 3))):
        whole = tree if rng.random() < 0.1 else {key: part for key, part in tree.items() if key != "game"}
        known = list(places(whole))  # the game is most of a head, and not the reader's
        holder, key = known[int(rng.integers(len(known)))]
        if rng.random() < 0.15 and isinstance(holder, dict):
            del (tree if holder is whole else holder)[key]
        else:
            (tree if holder is whole else holder)[key] = copy.deepcopy(CLAIMS[int(rng.integers(len(CLAIMS)))])
    return joined(tree, body)


def read(data: bytes) -> tuple[replay.Replay | None, str]:
    """A replay, or why it is none."""
    try:
        return decode(data), ""
    except ReplayError as error:
        return None, str(error)


def cpu_seconds(data: bytes) -> float:
    began = time.thread_time()
    read(data)
    return time.thread_time() - began


def attack(count: int, seed: int, play_every: int, timed: bool) -> int:
    """How many were refused; timed: each at once, and one that takes long by the clock is read again, by the CPU's time
    alone.
    """
    rng, whole, old = (
        np.random.default_rng(seed),
        replay.encode(small(ticks=60, forks=1, keyframes_every=25)),
        OLD.read_bytes(),
    )
    head, body = parts(whole)
    head.pop("core")  # nobody reads it here, and it is long
    text = json.dumps(head)
    refused = 0
    for number in range(count):
        kind = number % 8
        data = claims_changed(text, body, rng) if kind < 4 else bytes_changed(old if kind == 4 else whole, rng)
        began = time.perf_counter()
        tape, said = read(data)
        if timed and time.perf_counter() - began > SLOWEST:
            assert min(cpu_seconds(data) for _ in range(3)) < SLOWEST
        assert "\n" not in said
        assert len(said) < 500
        refused += tape is None
        if tape is not None and number % play_every == 0:
            with contextlib.suppress(ReplayError):
                replay.check(tape)
    return refused


def test_mutations_never_crash() -> None:
    assert attack(20_000, 0, play_every=100, timed=False) > 12_000


@pytest.mark.long
def test_a_million_mutations() -> None:
    for seed in range(1, 51):
        assert attack(20_000, seed, play_every=20, timed=True) > 12_000


@pytest.mark.X5
def test_memory_is_bounded(record_property: Callable[[str, object], None]) -> None:
    """Heads of two megabytes of nothing, bombs and claims take less than 64 MB beside the file."""
    whole = replay.encode(small(ticks=60, forks=0))
    head, body = parts(whole)
    hostile = [
        MAGIC + b"[" + b"{}," * 690_000 + b"{}]\n",
        MAGIC + b"[" + b"[]," * 690_000 + b"[]]\n",
        joined(head | {"branches": head["branches"] * 1025}, body),
        joined(head | {"agents": 65_535, "branches": [head["branches"][0] | {"ticks": 10_000_000}]}, body),
    ]
    largest = 0
    for data in hostile:
        tracemalloc.start()
        with pytest.raises(ReplayError):
            decode(data)
        _, most = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert most < 64 << 20
        largest = max(largest, most)
    record_property("figure", f"{len(hostile)} files, {largest / 2**20:.0f} MB at most")
