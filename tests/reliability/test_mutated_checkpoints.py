"""Any bytes in place of a checkpoint's: it loads, or CheckpointError; nothing else.

Half of the mutations leave the manifest as it was, so that all must be refused; the other half get a manifest that fits
them, so that they reach the parsers behind it.
"""

from __future__ import annotations

import json
import random
import struct
from collections.abc import Callable
from pathlib import Path

import pytest
from checkpoints import FILES, assert_whole, reseal, rewrite, save_epoch
from random_games import attempt

from gridmill.policy import checkpoint
from gridmill.policy.checkpoint import CheckpointError

pytestmark = pytest.mark.F7

NUMBERS = [0, 1, -1, 2**31, 2**32, 2**53, 2**63 - 1, 2**63, 2**64 - 1, 2**64, 10**30, -(2**63)]
WORDS = [
    b"null",
    b"true",
    b"NaN",
    b"Infinity",
    b"1e999",
    b'"\\ud800"',
    b"[]",
    b"{}",
    b'""',
    b"[[[[[[[[",
    b"\x00",
    b"\xff",
]
DTYPES = [
    "F64",
    "F32",
    "F16",
    "BF16",
    "I64",
    "U8",
    "BOOL",
    "F8_E4M3",
    "C64",
    "U64",
    "F4",
    "F6_E2M3",
    "F8_E8M0",
    "X9",
    "",
]


def anywhere(draw: random.Random, data: bytes) -> bytes:
    """Bytes flipped, cut, repeated, replaced, at one to three places."""
    for _ in range(draw.randint(1, 3)):
        at, end = sorted(draw.randrange(len(data) + 1) for _ in range(2))
        end = min(end, at + draw.choice([1, 2, 8, 200]))
        piece = draw.choice([b"", draw.randbytes(end - at), data[at:end] * 2, draw.choice(WORDS)])
        data = data[:at] + piece + data[end:]
    return data


def in_the_numbers(draw: random.Random, data: bytes) -> bytes:
    """One number of the text exchanged for an extreme one."""
    digits = [at for at, byte in enumerate(data[:2000]) if byte in b"0123456789"]
    if not digits:
        return anywhere(draw, data)
    at = draw.choice(digits)
    return data[:at] + str(draw.choice(NUMBERS)).encode() + data[at + 1 :]


def in_the_header(draw: random.Random, data: bytes) -> bytes:
    """A safetensors header that is well-formed and wrong: lengths, offsets, shapes, dtypes, names."""
    if draw.random() < 0.1:
        return struct.pack("<Q", draw.choice(NUMBERS) % 2**64) + data[8:]
    length = struct.unpack("<Q", data[:8])[0]
    header, body = json.loads(data[8 : 8 + length]), data[8 + length :]
    for _ in range(draw.randint(1, 2)):
        tensor = header[draw.choice(list(header))]
        what = draw.choice(["dtype", "shape", "data_offsets", "name", "extra"])
        if what == "dtype":
            tensor["dtype"] = draw.choice(DTYPES)
        elif what in ("shape", "data_offsets"):
            numbers = [draw.choice([*NUMBERS, 3, 7, 64]) for _ in range(draw.randint(0, 4))]
            tensor[what] = draw.choice([numbers, [0, *numbers], tensor.get(what)])
        elif what == "name":
            header[draw.choice(["", "__metadata__", "x" * 5000, "\ud800", "a\x00b"])] = dict(tensor)
        else:
            header["extra"] = {"dtype": "F32", "shape": [0, draw.choice(NUMBERS)], "data_offsets": [0, 0]}
    text = json.dumps({name: tensor for name, tensor in header.items() if name != "none"}).encode()
    return struct.pack("<Q", len(text)) + text + body


def refused(path: Path) -> bool:
    error = attempt(lambda: checkpoint.load(path), CheckpointError)
    if not isinstance(error, CheckpointError):
        return False
    assert "\n" not in str(error)
    assert str(path) in str(error)
    assert len(str(error)) < 1_000
    return True


def mutate(folder: Path, mutations: int, seed: int) -> str:
    path = save_epoch(folder, 1)
    contents = {name: (path / name).read_bytes() for name in FILES}
    draw = random.Random(seed)
    errors = [0, 0]
    for number in range(mutations):
        name = draw.choice(FILES)
        kinds = [anywhere, in_the_numbers] + [in_the_header] * 2 * name.endswith("safetensors")
        data = draw.choice(kinds)(draw, contents[name])
        resealed = number % 2 == 1 and name != "manifest.json"
        rewrite(path / name, data)
        if resealed:
            reseal(path)
        failed = refused(path)
        assert failed or resealed or data == contents[name]
        errors[resealed] += failed
        for changed in (name, "manifest.json") if resealed else (name,):
            rewrite(path / changed, contents[changed])
    assert_whole(checkpoint.load(path))
    return f"{mutations} mutations, {sum(errors)} refused, {errors[1]} of them behind a fitting manifest; 0 crashes"


def test_20000_mutated_checkpoints(tmp_path: Path, record_property: Callable[[str, object], None]) -> None:
    """A mutated checkpoint is refused with CheckpointError, or loads if somebody made the manifest fit."""
    record_property("figure", mutate(tmp_path, 20_000, seed=7))


@pytest.mark.long
def test_500000_mutated_checkpoints(tmp_path: Path, record_property: Callable[[str, object], None]) -> None:
    """The same with other seeds."""
    record_property("figure", mutate(tmp_path, 500_000, seed=8))
