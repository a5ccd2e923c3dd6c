"""Checkpoints: what comes back, what is kept, what is found, and the exact words of every refusal."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import pickle
from pathlib import Path
from typing import Any

import pytest
import torch
from checkpoints import FILES, assert_whole, names, reseal, save_epoch, state_of

from gridmill import __version__
from gridmill.policy import checkpoint
from gridmill.policy.checkpoint import CheckpointError, FileEntry, NotSaved
from gridmill.policy.saver import Saver


def refusal(path: Path) -> str:
    with pytest.raises(CheckpointError) as caught:
        checkpoint.load(path)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_what_was_saved_comes_back(tmp_path: Path) -> None:
    path = save_epoch(tmp_path / "checkpoints", 12)
    assert path == tmp_path / "checkpoints" / "epoch-00000012"
    assert names(path) == sorted(FILES)
    found = checkpoint.load(path)
    assert (found.path, found.epoch) == (path, 12)
    assert_whole(found)


def test_the_policy_alone(tmp_path: Path) -> None:
    path = save_epoch(tmp_path, 3)
    found = checkpoint.load_policy(path)
    assert found.trainer == {}
    assert torch.equal(found.policy["actor.weight"], state_of(3)[0]["actor.weight"])
    assert found.record == state_of(3)[2]


@pytest.mark.parametrize(
    "dtype", [torch.float16, torch.bfloat16, torch.float64, torch.int8, torch.int16, torch.bool, torch.uint8]
)
def test_any_dtype(tmp_path: Path, dtype: torch.dtype) -> None:
    tensor = torch.arange(24).reshape(2, 3, 4).to(dtype)
    found = checkpoint.load(checkpoint.save(tmp_path, 0, {}, {"x": tensor}, {}, 3, None))
    assert found.trainer["x"].dtype == dtype
    assert torch.equal(found.trainer["x"], tensor)


def test_views_and_shared_tensors(tmp_path: Path) -> None:
    """Tied weights, transposed and cut-out views: values come back, and a gradient does not matter."""
    whole = torch.arange(20.0).reshape(4, 5).requires_grad_()
    tensors = {"whole": whole, "tied": whole, "turned": whole.t(), "row": whole[1], "column": whole[:, 2]}
    found = checkpoint.load(checkpoint.save(tmp_path, 0, tensors, {}, {}, 3, None))
    for name, tensor in tensors.items():
        assert torch.equal(found.policy[name], tensor.detach()), name


def test_saving_does_not_change_what_is_saved(tmp_path: Path) -> None:
    first, second = save_epoch(tmp_path / "a", 5, score=0.1), save_epoch(tmp_path / "b", 5, score=0.1)
    for name in FILES:
        assert (first / name).read_bytes() == (second / name).read_bytes()


# ---- what is kept


@pytest.mark.parametrize("known", [True, False])
def test_on_macos_checkpoints_are_synced_by_its_own_call(
    known: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """F_FULLFSYNC where the file system knows it, else fsync, as everywhere."""
    full, plain = list[int](), list[int]()

    def control(handle: int, command: int) -> int:
        assert command == 51
        if not known:
            raise OSError(errno.ENOTSUP, "not supported")
        full.append(handle)
        return 0

    monkeypatch.setattr(fcntl, "F_FULLFSYNC", 51, raising=False)
    monkeypatch.setattr(fcntl, "fcntl", control)
    monkeypatch.setattr(os, "fsync", plain.append)
    save_epoch(tmp_path, 1)
    synced, other = (full, plain) if known else (plain, full)
    assert len(synced) > len(FILES)  # and the folders
    assert other == []


def epochs(folder: Path) -> list[int]:
    return [int(name.removeprefix("epoch-")) for name in names(folder)]


def test_the_newest_and_the_best_stay(tmp_path: Path) -> None:
    scores = [1.0, 5.0, 2.0, None, 3.0, float("nan"), 4.0, float("inf"), 0.0]
    for epoch, score in enumerate(scores):
        save_epoch(tmp_path, epoch, keep=2, score=score)
    assert epochs(tmp_path) == [1, 7, 8]


def test_without_scores_only_the_newest_stay(tmp_path: Path) -> None:
    for epoch in range(0, 60, 10):
        save_epoch(tmp_path, epoch)
    assert epochs(tmp_path) == [30, 40, 50]


def test_stale_temporary_directories_are_swept(tmp_path: Path) -> None:
    for name in ("epoch-00000003.tmp", "epoch-00000001.gone.tmp"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "policy.safetensors").write_bytes(b"half")
    save_epoch(tmp_path, 4)
    assert epochs(tmp_path) == [4]


def test_a_broken_checkpoint_does_not_take_the_place_of_a_whole_one(tmp_path: Path) -> None:
    for epoch in (1, 2, 3):
        save_epoch(tmp_path, epoch, keep=2)
    (tmp_path / "epoch-00000003" / "run.json").unlink()
    save_epoch(tmp_path, 4, keep=2)
    assert epochs(tmp_path) == [2, 3, 4]
    save_epoch(tmp_path, 5, keep=2)
    assert epochs(tmp_path) == [4, 5]


def test_an_epoch_saved_again_replaces_the_old_one(tmp_path: Path) -> None:
    save_epoch(tmp_path, 7)
    checkpoint.save(tmp_path, 7, {"x": torch.ones(1)}, {}, {"again": True}, 3, None)
    assert epochs(tmp_path) == [7]
    assert checkpoint.load(tmp_path / "epoch-00000007").record == {"again": True}


def test_an_epoch_set_aside_still_loads(tmp_path: Path) -> None:
    """As after a kill between the two renames of a replacement; the next save tidies up."""
    os.rename(save_epoch(tmp_path, 7), tmp_path / "epoch-00000007.old")
    found, skipped = checkpoint.newest(tmp_path)
    assert skipped == []
    assert_whole(found)
    save_epoch(tmp_path, 7)
    assert epochs(tmp_path) == [7]


def test_epochs_ahead_are_left_behind_when_training_goes_back(tmp_path: Path) -> None:
    """Otherwise they would pass for the newest, and the one just written would be swept."""
    for epoch in (8, 9, 10):
        save_epoch(tmp_path, epoch)
    save_epoch(tmp_path, 9)
    assert names(tmp_path) == ["epoch-00000008", "epoch-00000009", "epoch-00000010.left"]
    assert checkpoint.newest(tmp_path)[0].epoch == 9
    assert_whole(checkpoint.load(tmp_path / "epoch-00000010.left"))
    save_epoch(tmp_path, 10)
    save_epoch(tmp_path, 9)
    assert names(tmp_path) == ["epoch-00000008", "epoch-00000009", "epoch-00000010.left"]


# ---- what is found


def test_find_and_newest_in_a_run_in_its_checkpoints_and_by_name(tmp_path: Path) -> None:
    run, inside = tmp_path / "run", tmp_path / "run" / "checkpoints"
    for epoch in (99_999_998, 99_999_999, 100_000_000):
        newest = save_epoch(inside, epoch)
    assert [checkpoint.find(path) for path in (run, inside, newest)] == [newest] * 3
    assert checkpoint.newest(run)[0].epoch == checkpoint.newest(inside)[0].epoch == 100_000_000
    (newest / "trainer.safetensors").unlink()
    assert checkpoint.find(run) == inside / "epoch-99999999"
    assert checkpoint.find(newest) == newest  # asked for by name: loading says what is wrong with it


def test_nothing_to_find(tmp_path: Path) -> None:
    for ask in (checkpoint.find, checkpoint.newest):
        with pytest.raises(CheckpointError) as caught:
            ask(tmp_path)
        assert str(caught.value) == f"expected a checkpoint such as epoch-00000012, got none - in `{tmp_path}`"
        with pytest.raises(CheckpointError) as caught:
            ask(tmp_path / "gone")
        assert str(caught.value) == (f"expected a checkpoint or a run's folder, got nothing - in `{tmp_path / 'gone'}`")


def test_when_none_loads_all_are_named(tmp_path: Path) -> None:
    paths = [save_epoch(tmp_path, epoch) for epoch in (1, 2)]
    for path in paths:
        (path / "run.json").unlink()
    for ask, said in ((checkpoint.newest, "no checkpoint loads"), (checkpoint.find, "no checkpoint is intact")):
        with pytest.raises(CheckpointError) as caught:
            ask(tmp_path)
        reasons = [f"expected a file, got No such file or directory - in `{path / 'run.json'}`" for path in paths[::-1]]
        assert str(caught.value) == f"{said}: {'; '.join(reasons)} - in `{tmp_path}`"


# ---- refusals


def test_the_words_of_refusals(tmp_path: Path) -> None:
    path = save_epoch(tmp_path, 1)
    size = (path / "policy.safetensors").stat().st_size

    whole = (path / "policy.safetensors").read_bytes()
    (path / "policy.safetensors").write_bytes(whole[:-1])
    assert refusal(path) == (
        f"expected {size} bytes as in the manifest, got {size - 1} - in `{path / 'policy.safetensors'}`"
    )
    changed = whole[:-1] + b"\xff"
    (path / "policy.safetensors").write_bytes(changed)
    was, now = FileEntry.of(whole).sha256[:12], FileEntry.of(changed).sha256[:12]
    assert refusal(path) == (
        f"expected sha256 {was} as in the manifest, got {now}: the file was changed"
        f" - in `{path / 'policy.safetensors'}`"
    )
    (path / "policy.safetensors").write_bytes(b"no tensors here at all")
    reseal(path)
    assert refusal(path).startswith("expected safetensors, got SafetensorError: Error while deserializing: ")
    (path / "policy.safetensors").write_bytes(whole)

    for text, said in ((b"{", "expected JSON, got "), (b"[1]", "expected a JSON object, got list - in ")):
        (path / "run.json").write_bytes(text)
        reseal(path)
        assert refusal(path).startswith(said)
    (path / "run.json").write_bytes(b"[" * 100_000)
    reseal(path)
    assert refusal(path).startswith("expected JSON, got maximum recursion depth exceeded")


def manifest_changed(path: Path, **fields: Any) -> None:
    tree = json.loads((path / "manifest.json").read_text())
    (path / "manifest.json").write_text(json.dumps(tree | fields, indent=1) + "\n")


def test_the_words_of_refused_manifests(tmp_path: Path) -> None:
    path = save_epoch(tmp_path, 1)
    text = (path / "manifest.json").read_bytes()
    broken_seal = "the manifest does not match its own sha256: the file was changed"
    cases: list[tuple[dict[str, Any], str]] = [
        ({"epoch": 2}, broken_seal),
        ({"sha256": None}, broken_seal),
        ({"epoch": -1}, "expected greater than or equal to 0, got -1 - at `$.epoch`"),
        ({"zzz": 1}, "unknown setting `zzz` - at `$`"),
        ({"score": float("nan")}, "expected plain data"),
    ]
    for fields, said in cases:
        manifest_changed(path, **fields)
        assert refusal(path).startswith(said)
        (path / "manifest.json").write_bytes(text)
    (path / "manifest.json").write_bytes(text.rstrip())
    assert refusal(path) == f"{broken_seal} - in `{path / 'manifest.json'}`"


def test_another_format_is_refused_naming_both(tmp_path: Path) -> None:
    path = save_epoch(tmp_path, 1)
    manifest_changed(path, format=2, gridmill="9.9.0", worlds={"new": "field"})
    assert refusal(path) == (
        f"expected checkpoint format 1 (gridmill '{__version__}'), got 2 (gridmill '9.9.0') "
        f"- in `{path / 'manifest.json'}`"
    )


def test_sizes_are_checked_before_anything_is_read(tmp_path: Path) -> None:
    """Files of a terabyte that are not there: refused at once."""
    path = save_epoch(tmp_path, 1)
    for name in FILES:
        data = (path / name).read_bytes()
        os.truncate(path / name, 2**40)
        assert f"got {2**40} - in `{path / name}`" in refusal(path)
        (path / name).write_bytes(data)
    assert_whole(checkpoint.load(path))


def test_what_is_no_plain_file_is_not_opened(tmp_path: Path) -> None:
    path = save_epoch(tmp_path, 1)
    for name in FILES:
        data = (path / name).read_bytes()
        makes = {"a pipe": os.mkfifo, "a folder": os.mkdir, "a link": lambda file: os.symlink("/dev/zero", file)}
        for kind, make in makes.items():
            (path / name).unlink()
            make(path / name)
            assert refusal(path) == f"expected a plain file, got {kind} - in `{path / name}`"
            (path / name).rmdir() if (path / name).is_dir() else (path / name).unlink()
            (path / name).write_bytes(data)


def test_errors_travel_between_processes() -> None:
    error = CheckpointError("expected\nthis", Path("runs/x y"))
    again = pickle.loads(pickle.dumps(error))
    assert (str(again), again.path) == ("expected this - in `runs/x y`", error.path)


# ---- the saver


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def blocked(folder: Path) -> None:
    """Nothing can be saved where a file lies in the way, not even by root."""
    folder.write_bytes(b"")


def test_a_saver_goes_on_after_a_miss_and_tries_again(tmp_path: Path) -> None:
    folder, clock, notes = tmp_path / "checkpoints", Clock(), list[str]()
    saver = Saver(folder, 3, notes.append, clock)
    blocked(folder)
    assert saver.save(1, *state_of(1)) is None
    assert notes == [
        f"epoch 1 could not be saved: File exists - in `{folder}`; training continues, the next try is in 10 s"
    ]
    clock.now = 9.0
    assert not saver.retry_due()
    assert saver.save(2, *state_of(2)) is None  # still waiting: not a miss
    assert (saver.misses, len(notes)) == (1, 1)
    clock.now = 10.0
    assert saver.retry_due()
    folder.unlink()
    assert saver.save(3, *state_of(3)) == folder / "epoch-00000003"
    assert (saver.misses, saver.retry_due()) == (0, False)


def test_three_misses_in_a_row_end_it(tmp_path: Path) -> None:
    folder, clock, notes = tmp_path / "checkpoints", Clock(), list[str]()
    saver = Saver(folder, 3, notes.append, clock)
    blocked(folder)
    for epoch, now in enumerate((0.0, 10.0)):
        clock.now = now
        assert saver.save(epoch, *state_of(epoch)) is None
    assert [note.rpartition(" in ")[2] for note in notes] == ["10 s", "60 s"]
    clock.now = 70.0
    with pytest.raises(NotSaved, match=r"; 3 failures in a row, earlier checkpoints are intact$"):
        saver.save(2, *state_of(2))


def test_the_last_save_does_not_wait(tmp_path: Path) -> None:
    folder, notes = tmp_path / "checkpoints", list[str]()
    saver = Saver(folder, 3, notes.append, Clock())
    blocked(folder)
    saver.save(1, *state_of(1))
    folder.unlink()
    assert saver.save(2, *state_of(2)) is None
    assert saver.save(2, *state_of(2), last=True) == folder / "epoch-00000002"


def test_a_mistake_in_the_record_is_not_a_bad_disk(tmp_path: Path) -> None:
    saver = Saver(tmp_path, 3)
    with pytest.raises(ValueError, match="Out of range float values"):
        saver.save(1, {}, {}, {"score": float("nan")})
    assert saver.misses == 0
