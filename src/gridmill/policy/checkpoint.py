"""Checkpoints: one directory per saved epoch, whole or not there at all.

    checkpoints/epoch-00000012/  policy.safetensors  trainer.safetensors  run.json  manifest.json

Written beside its place as `.tmp`, synced, then renamed: whatever happens meanwhile, what was saved before still loads.
The manifest names size and sha256 of each file and seals itself, so one wrong byte anywhere is refused. Only tensors
and JSON are read, never code. What the tensors mean is the trainer's business. Other names a checkpoint can have:
`.old`, replaced by the same epoch saved again (still loads, until the new one is safe), and `.left`, ahead of an epoch
that training went back to (nobody loads or removes it but a person).
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import math
import os
import re
import shutil
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from errno import EIO, ENOTDIR
from pathlib import Path
from typing import Annotated, Any

import torch
from pydantic import Field
from safetensors.torch import load as tensors_from_bytes
from safetensors.torch import save as bytes_from_tensors
from torch import Tensor

from gridmill import __version__
from gridmill.config import Config, ConfigError
from gridmill.config.files import kind_of, open_plain
from gridmill.policy import onednn, pin
from gridmill.policy.which import split as which_of

onednn.settle()

FORMAT = 1
POLICY, TRAINER, RECORD, MANIFEST = "policy.safetensors", "trainer.safetensors", "run.json", "manifest.json"
MOST_JSON = 2**26  # bytes of run.json or manifest.json; a run's record has some 50 kB
NAME = re.compile(r"epoch-(\d{8,15})(\.old)?")


class CheckpointError(ValueError):
    """A checkpoint that cannot be used: one line, ending in the file or directory."""

    def __init__(self, what: str, path: Path) -> None:
        self.what = " ".join(what.split())
        self.path = path
        super().__init__(f"{self.what} - in `{' '.join(str(path).split())}`")

    def __reduce__(self) -> tuple[Any, ...]:
        return CheckpointError, (self.what, self.path)


class NotSaved(RuntimeError):
    """Saving failed again and again; a run ends with it."""


@dataclass(frozen=True)
class Checkpoint:
    """What was saved at the end of one epoch; without `trainer` when only the policy was asked for."""

    path: Path
    epoch: int
    policy: dict[str, Tensor]
    trainer: dict[str, Tensor]
    record: dict[str, Any]
    sha256: str = ""  # Manifest.identity
    score: float | None = None


class FileEntry(Config):
    """One file as the manifest knows it."""

    size: Annotated[int, Field(ge=0)]  # bytes
    sha256: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]

    @staticmethod
    def of(data: bytes) -> FileEntry:
        return FileEntry(size=len(data), sha256=hashlib.sha256(data).hexdigest())


class Manifest(Config):
    """manifest.json, but for the seal over the rest of it."""

    format: int
    gridmill: str  # the version that wrote it
    epoch: Annotated[int, Field(ge=0)]
    score: float | None
    policy: FileEntry
    trainer: FileEntry
    record: FileEntry

    @property
    def identity(self) -> str:
        """The sha256 of the weights and of the record, which says what they mean: other actions, another policy."""
        return hashlib.sha256(f"{self.policy.sha256} {self.record.sha256}".encode()).hexdigest()

    def files(self) -> dict[str, FileEntry]:
        return {POLICY: self.policy, TRAINER: self.trainer, RECORD: self.record}

    def sealed(self) -> bytes:
        """The bytes of manifest.json: one way to write a manifest, so any other bytes are damage."""
        tree = self.tree()
        seal = hashlib.sha256(json.dumps(tree).encode()).hexdigest()
        return (json.dumps(tree | {"sha256": seal}, indent=1) + "\n").encode()


# ---- saving


def save(
    folder: Path,
    epoch: int,
    policy: Mapping[str, Tensor],
    trainer: Mapping[str, Tensor],
    record: Mapping[str, Any],
    keep: int,
    score: float | None,
    in_use: Path | None = None,
) -> Path:
    """Write folder/epoch-N, then remove what is older than the newest `keep`, not the best by score and not `in_use`.

    A score that is not a finite number counts as none. OSError: what was there still loads.
    """
    final = folder / f"epoch-{epoch:08d}"
    unfinished = folder / (final.name + ".tmp")
    _make_folder(folder)
    for stale in folder.glob("*.tmp"):
        _discard(stale)
    try:
        os.mkdir(unfinished)
        manifest = Manifest(
            format=FORMAT,
            gridmill=__version__,
            epoch=epoch,
            score=float(score) if score is not None and math.isfinite(score) else None,
            policy=_write(unfinished / POLICY, _tensor_bytes(policy)),
            trainer=_write(unfinished / TRAINER, _tensor_bytes(trainer)),
            record=_write(unfinished / RECORD, json.dumps(dict(record), indent=1, allow_nan=False).encode()),
        )
        _write(unfinished / MANIFEST, manifest.sealed())
        _sync_directory(unfinished)
        _put_in_place(unfinished, final)
    except OSError:
        _discard(unfinished)  # a full disk needs the room
        raise
    _sync_directory(folder)
    with contextlib.suppress(OSError):  # it is saved; what cannot be removed now is tried next time
        _sweep(folder, epoch, keep, in_use)
    return final


def _make_folder(folder: Path) -> None:
    """The folder itself: what is removed in it must be ours, and behind a link it may be anybody's."""
    if kind_of(folder) == "a link":
        raise NotADirectoryError(ENOTDIR, "expected a folder, got a link", str(folder))
    if not folder.is_dir():
        folder.mkdir(parents=True, exist_ok=True)
        _sync_directory(folder.parent)


def _discard(path: Path) -> None:
    """Away with what is not whole, if the disk lets it go; of a link only the link itself."""
    if kind_of(path) == "a folder":
        shutil.rmtree(path, ignore_errors=True)
    else:
        with contextlib.suppress(OSError):
            path.unlink(missing_ok=True)


def _tensor_bytes(tensors: Mapping[str, Tensor]) -> bytes:
    """Copies, because the file format knows neither views nor other devices."""
    return bytes_from_tensors(
        {name: tensor.detach().cpu().clone(memory_format=torch.contiguous_format) for name, tensor in tensors.items()}
    )


def _write(path: Path, data: bytes) -> FileEntry:
    """The whole file on the disk, or an OSError."""
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
    try:
        rest = memoryview(data)
        while rest and (written := os.write(handle, rest)):
            rest = rest[written:]
        _sync(handle)
        if os.fstat(handle).st_size != len(data):
            raise OSError(EIO, f"expected {len(data)} bytes on the disk, got {os.fstat(handle).st_size}", str(path))
    finally:
        os.close(handle)
    return FileEntry.of(data)


def _sync(handle: int) -> None:
    """On the disk, even if the power fails. On macOS fsync may leave it in the disk's own memory."""
    if hasattr(fcntl, "F_FULLFSYNC"):
        with contextlib.suppress(OSError):  # not every file system has it
            fcntl.fcntl(handle, fcntl.F_FULLFSYNC)
            return
    os.fsync(handle)


def _sync_directory(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        _sync(handle)
    finally:
        os.close(handle)


def _put_in_place(unfinished: Path, final: Path) -> None:
    """One rename; an epoch saved before goes aside under a name that still loads, and the sweep removes it."""
    if final.exists():
        aside = final.with_name(final.name + ".old")
        _remove(aside)
        os.rename(final, aside)
    os.rename(unfinished, final)


def _remove(path: Path) -> None:
    """Out of sight with one rename first: half a checkpoint never bears a checkpoint's name."""
    if kind_of(path):
        gone = path.with_name(f"{path.name}.gone.tmp")
        os.rename(path, gone)
        _discard(gone)


def _sweep(folder: Path, epoch: int, keep: int, in_use: Path | None) -> None:
    """Keep the newest `keep` whole ones up to `epoch`, the best and the one in use.

    One that cannot be removed stops no other.
    """
    listed = _listed(folder)
    whole: list[tuple[int, Path, float]] = []
    for path in listed:
        with contextlib.suppress(OSError):
            if _epoch_of(path) > epoch:  # training went back: these would pass for the newest
                left = path.with_name(path.name + ".left")
                _remove(left)
                os.rename(path, left)
            elif path.suffix == ".old" and path.with_suffix("").exists():
                _remove(path)
            else:
                with contextlib.suppress(CheckpointError):
                    score = _manifest(path).score
                    whole.append((_epoch_of(path), path, -math.inf if score is None else score))
    if len(whole) <= keep:
        return
    best = max(whole, key=lambda entry: (entry[2], entry[0]))[1]
    oldest = whole[keep - 1][0]
    for path in listed:
        if _epoch_of(path) < oldest and path not in (best, in_use):
            with contextlib.suppress(OSError):
                _remove(path)


# ---- loading


def load(path: Path) -> Checkpoint:
    """Everything, every byte checked; CheckpointError if anything is wrong."""
    return _load(path, with_trainer=True)


def load_policy(path: Path) -> Checkpoint:
    """The same without the trainer's tensors, which evaluation does not need."""
    return _load(path, with_trainer=False)


def newest(folder: Path, load: Callable[[Path], Checkpoint] = load) -> tuple[Checkpoint, list[str]]:
    """The newest checkpoint that loads, and why newer ones do not; CheckpointError if there is none.

    The folder is a run's, or its checkpoints/; with `@best` or `@EPOCH` behind it another one is meant (which.py).
    """
    skipped: list[str] = []
    for path in _candidates(folder):
        try:
            _refuse_link(path)
            return load(path), skipped
        except CheckpointError as error:
            skipped.append(str(error))
    raise CheckpointError("no checkpoint loads: " + "; ".join(skipped), folder)


def latest(path: Path, load: Callable[[Path], Checkpoint] = load) -> Checkpoint:
    """The checkpoint at a path, or the newest under it that loads, with a warning for each newer one that does not.

    With `#` and the first digits of a sha256 behind the path, that policy (`Manifest.identity`).
    """
    path, digits = pin.split(str(path))
    if digits:
        return load(_pinned(path, digits))
    if (path / MANIFEST).exists():
        return load(path)
    found, skipped = newest(path, load)
    for line in skipped:
        warnings.warn(f"skipped: {line}", stacklevel=2)
    return found


def _pinned(path: Path, digits: str) -> Path:
    """The newest checkpoint with this hash; those of its files are compared when they are read."""
    seen: list[str] = []
    for candidate in [path] if (path / MANIFEST).exists() else _candidates(path):
        with contextlib.suppress(CheckpointError):
            seen.append(_manifest(candidate).identity)
            if seen[-1].startswith(digits):
                return candidate
    there = ", ".join(one[: pin.SHOWN] for one in seen[:5]) or "none"
    raise CheckpointError(f"expected a policy with the sha256 {digits[: pin.SHOWN]}, got {there}", path)


def find(path: Path) -> Path:
    """The checkpoint meant by a checkpoint's directory, a run's, or its checkpoints/: there, the newest whole one.

    With `@best` or `@EPOCH` behind a run's it is another one (which.py).
    """
    if (path / MANIFEST).exists():
        return path
    reasons: list[str] = []
    for candidate in _candidates(path):
        try:
            _refuse_link(candidate)
            _manifest(candidate)
            return candidate
        except CheckpointError as error:
            reasons.append(str(error))
    raise CheckpointError("no checkpoint is intact: " + "; ".join(reasons), path)


def _candidates(text: Path) -> list[Path]:
    """Of a run's folder, or its checkpoints/, those that may be meant; the first that loads is taken."""
    folder, which = which_of(text)
    inside = folder / "checkpoints"
    try:
        linked = kind_of(inside) == "a link"
        found = [] if linked else _listed(inside if inside.is_dir() else folder)
    except (OSError, ValueError) as error:
        got = "nothing" if isinstance(error, FileNotFoundError) else _reason(error)
        raise CheckpointError(f"expected a checkpoint or a run's folder, got {got}", text) from None
    if linked:
        raise CheckpointError("expected a folder, got a link", inside)
    if not found:
        raise CheckpointError("expected a checkpoint such as epoch-00000012, got none", folder)
    if which == "best":
        return _by_score(found, folder)
    if which != "last":
        found = [path for path in found if _epoch_of(path) == int(which)]
        if not found:
            raise CheckpointError(f"expected a checkpoint of epoch {which}, got none", folder)
    return found


def _refuse_link(path: Path) -> None:
    """Of what lies in a run's folder; the folder itself may be called by a link."""
    if kind_of(path) == "a link":
        raise CheckpointError("expected a folder, got a link", path)


def _by_score(paths: list[Path], folder: Path) -> list[Path]:
    """Those with a score, the best first; of equal ones the newest."""
    scores: dict[Path, float] = {}
    for path in paths:
        with contextlib.suppress(CheckpointError):
            score = _manifest(path).score
            if score is not None:
                scores[path] = score
    if not scores:
        raise CheckpointError("expected a checkpoint with a score, got none (no episode had ended); use @last", folder)
    return sorted(scores, key=lambda path: (-scores[path], -_epoch_of(path)))


def _listed(folder: Path) -> list[Path]:
    """Newest first; of one epoch, the one set aside comes last."""
    named = [folder / name for name in os.listdir(folder) if NAME.fullmatch(name)]
    return sorted(named, key=lambda path: (-_epoch_of(path), path.suffix))


def _epoch_of(path: Path) -> int:
    match = NAME.fullmatch(path.name)
    assert match is not None
    return int(match[1])


def _load(path: Path, with_trainer: bool) -> Checkpoint:
    manifest = _manifest(path)
    record = _json(_content(path / RECORD, manifest.record), path / RECORD)
    policy = _tensors(path / POLICY, manifest.policy)
    trainer = _tensors(path / TRAINER, manifest.trainer) if with_trainer else {}
    return Checkpoint(path, manifest.epoch, policy, trainer, record, manifest.identity, manifest.score)


def _manifest(path: Path) -> Manifest:
    """The manifest, its seal and the sizes of all files checked; nothing large is read."""
    file = path / MANIFEST
    data = _read(file, _size(file, MOST_JSON))
    tree = _json(data, file)
    if tree.get("format") != FORMAT:
        writer = f"{tree.get('format')!r:.40} (gridmill {tree.get('gridmill')!r:.40})"
        raise CheckpointError(f"expected checkpoint format {FORMAT} (gridmill {__version__!r}), got {writer}", file)
    try:
        manifest = Manifest.load({name: value for name, value in tree.items() if name != "sha256"})
    except ConfigError as error:
        raise CheckpointError(str(error), file) from None
    if manifest.sealed() != data:
        raise CheckpointError("the manifest does not match its own sha256: the file was changed", file)
    for name, entry in manifest.files().items():
        size = _size(path / name, MOST_JSON if name == RECORD else None)
        if size != entry.size:
            raise CheckpointError(f"expected {entry.size} bytes as in the manifest, got {size}", path / name)
    return manifest


def _size(file: Path, most: int | None = None) -> int:
    """Of a plain file; a link would lead elsewhere, a pipe or a device would never end."""
    try:
        kind = kind_of(file)
        size = os.lstat(file).st_size
    except (OSError, ValueError) as error:
        raise CheckpointError(f"expected a file, got {_reason(error)}", file) from None
    if kind != "a plain file":
        raise CheckpointError(f"expected a plain file, got {kind}", file)
    if most is not None and size > most:
        raise CheckpointError(f"expected at most {most} bytes, got {size}", file)
    return size


def _read(file: Path, size: int) -> bytes:
    try:
        with os.fdopen(open_plain(file), "rb") as stream:
            data = stream.read(size)
    except (OSError, MemoryError) as error:
        raise CheckpointError(f"expected {size} readable bytes, got {_reason(error)}", file) from None
    return data


def _reason(error: Exception) -> str:
    return (error.strerror if isinstance(error, OSError) else str(error)) or type(error).__name__


def _content(file: Path, entry: FileEntry) -> bytes:
    data = _read(file, entry.size)
    found = FileEntry.of(data)
    if found != entry:
        raise CheckpointError(
            f"expected sha256 {entry.sha256[:12]} as in the manifest, got {found.sha256[:12]}: the file was changed",
            file,
        )
    return data


def _json(data: bytes, file: Path) -> dict[str, Any]:
    try:
        tree = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise CheckpointError(f"expected JSON, got {error}", file) from None
    if not isinstance(tree, dict):
        raise CheckpointError(f"expected a JSON object, got {type(tree).__name__}", file)
    return tree


def _tensors(file: Path, entry: FileEntry) -> dict[str, Tensor]:
    data = _content(file, entry)
    try:
        return tensors_from_bytes(data)
    except Exception as error:  # whatever a parser of foreign bytes trips over, the file is what is wrong
        raise CheckpointError(f"expected safetensors, got {type(error).__name__}: {error!s:.200}", file) from None
