"""A damaged newest checkpoint is named, and the one before is taken; never a fresh start in silence."""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from checkpoints import FILES, assert_whole, rewrite, save_epoch

from gridmill.policy import checkpoint
from gridmill.policy.checkpoint import CheckpointError

pytestmark = pytest.mark.R4

MUTATIONS = 500


def truncated(draw: random.Random, data: bytes) -> bytes:
    return data[: draw.randrange(len(data))]


def flipped(draw: random.Random, data: bytes) -> bytes:
    at = draw.randrange(len(data))
    return data[:at] + bytes([data[at] ^ 1 << draw.randrange(8)]) + data[at + 1 :]


def emptied(draw: random.Random, data: bytes) -> bytes:
    return b""


def zeroed(draw: random.Random, data: bytes) -> bytes:
    at, length = draw.randrange(len(data)), draw.randrange(1, 4096)
    return data[:at] + bytes(len(data[at : at + length])) + data[at + length :]


def lengthened(draw: random.Random, data: bytes) -> bytes:
    return data + draw.randbytes(draw.randrange(1, 64))


def wrong_hash(draw: random.Random, data: bytes) -> bytes:
    """A hex digit of a manifest changed; of another file, a digit of a number or a byte of it."""
    digits = [at for at, byte in enumerate(data) if byte in b"0123456789abcdef"]
    at = draw.choice(digits)
    other = draw.choice([byte for byte in b"0123456789abcdef" if byte != data[at]])
    return data[:at] + bytes([other]) + data[at + 1 :]


DAMAGES = [truncated, flipped, emptied, zeroed, lengthened, wrong_hash]


def damaged(draw: random.Random, path: Path) -> str:
    """One file of a checkpoint damaged, missing, or taken from the checkpoint before; returns its name."""
    name = draw.choice(FILES)
    file = path / name
    what = draw.randrange(len(DAMAGES) + 2)
    if what == len(DAMAGES):
        file.unlink()
    elif what == len(DAMAGES) + 1:
        shutil.copyfile(path.with_name("epoch-00000002") / name, file)
    else:
        data = file.read_bytes()
        while (changed := DAMAGES[what](draw, data)) == data:  # zeros over zeros are no damage
            pass
        rewrite(file, changed)
    return name


def restored(path: Path, contents: dict[str, bytes]) -> None:
    for name, data in contents.items():
        rewrite(path / name, data)


def test_500_mutations_of_the_newest(tmp_path: Path, record_property: Callable[[str, object], None]) -> None:
    """A damaged newest checkpoint: skipped with its name and the reason, the one before is loaded whole."""
    for epoch in (1, 2, 3):
        path = save_epoch(tmp_path, epoch)
    contents = {name: (path / name).read_bytes() for name in FILES}
    draw = random.Random(4)
    for _ in range(MUTATIONS):
        name = damaged(draw, path)
        found, skipped = checkpoint.newest(tmp_path)
        assert found.epoch == 2
        assert_whole(found)
        assert len(skipped) == 1
        assert str(path) in skipped[0]
        # A manifest taken from another checkpoint is whole; it is the files that do not fit it.
        assert name in skipped[0] or name == "manifest.json"
        assert "\n" not in skipped[0]
        restored(path, contents)
    assert checkpoint.newest(tmp_path)[1] == []
    record_property("figure", f"{MUTATIONS} mutations, 0 silent restarts, 0 crashes")


def test_all_damaged(tmp_path: Path) -> None:
    """When none loads there is an error that names each, not a fresh start."""
    paths = [save_epoch(tmp_path, epoch) for epoch in (1, 2, 3)]
    contents = [{name: (path / name).read_bytes() for name in FILES} for path in paths]
    draw = random.Random(5)
    for _ in range(50):
        for path in paths:
            rewrite(path / draw.choice(FILES), draw.randbytes(draw.randrange(200)))
        with pytest.raises(CheckpointError) as caught:
            checkpoint.newest(tmp_path)
        assert all(str(path) in str(caught.value) for path in paths)
        for path, whole in zip(paths, contents, strict=True):
            restored(path, whole)


def test_training_goes_on_over_a_damaged_one(tmp_path: Path) -> None:
    """Back at epoch 2 because 3 is damaged: 3 is written again, and then it is the newest."""
    for epoch in (1, 2, 3):
        path = save_epoch(tmp_path, epoch)
    (path / "policy.safetensors").write_bytes(b"")
    assert checkpoint.newest(tmp_path)[0].epoch == 2
    save_epoch(tmp_path, 3)
    found, skipped = checkpoint.newest(tmp_path)
    assert (found.epoch, skipped) == (3, [])
    assert_whole(found)
