"""Damaged replays: whatever is changed, cut, doubled or claimed, a file reads or one line says why not, at once."""

from __future__ import annotations

import json
import time
import tracemalloc
from collections.abc import Iterator
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
            (tree if holder is whole else holder)[key] = CLAIMS[int(rng.integers(len(CLAIMS)))]
    return joined(tree, body)


def attack(count: int, seed: int, play_every: int) -> tuple[int, float]:
    """How many were refused, and the longest time that one took."""
    rng, whole, old = (
        np.random.default_rng(seed),
        replay.encode(small(ticks=60, forks=1, keyframes_every=25)),
        OLD.read_bytes(),
    )
    head, body = parts(whole)
    head.pop("core")  # nobody reads it here, and it is long
    text = json.dumps(head)
    refused, slowest = 0, 0.0
    for number in range(count):
        kind = number % 8
        data = claims_changed(text, body, rng) if kind < 4 else bytes_changed(old if kind == 4 else whole, rng)
        began = time.perf_counter()
        try:
            tape = decode(data)
            if number % play_every == 0:
                replay.check(tape)
        except ReplayError as error:
            refused += 1
            said = str(error)
        else:
            said = ""
        assert "\n" not in said
        assert len(said) < 500
        slowest = max(slowest, time.perf_counter() - began)
    return refused, slowest


def test_mutations_never_crash() -> None:
    refused, _ = attack(5_000, 0, play_every=100)
    assert refused > 3_000


@pytest.mark.long
def test_a_million_mutations() -> None:
    for seed in range(1, 51):
        refused, slowest = attack(20_000, seed, play_every=20)
        assert refused > 12_000
        assert slowest < 5.0  # on a machine that does other things


def test_memory_is_bounded() -> None:
    """Heads of two megabytes of nothing, bombs and claims take less than 64 MB beside the file."""
    whole = replay.encode(small(ticks=60, forks=0))
    head, body = parts(whole)
    hostile = [
        MAGIC + b"[" + b"{}," * 690_000 + b"{}]\n",
        MAGIC + b"[" + b"[]," * 690_000 + b"[]]\n",
        joined(head | {"branches": head["branches"] * 1025}, body),
        joined(head | {"agents": 65_535, "branches": [head["branches"][0] | {"ticks": 10_000_000}]}, body),
    ]
    for data in hostile:
        tracemalloc.start()
        with pytest.raises(ReplayError):
            decode(data)
        _, most = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert most < 64 << 20
