"""Files under a root, for a server: which may be read, which may be made, and every way out of the root refused.

A path comes from an address, so from anybody. It must be plain (no `..`, no separators of other systems, nothing
hidden), and what it leads to, links followed, must be a regular file of a known kind inside the root.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO
from urllib.parse import unquote_to_bytes

TYPES = {
    ".css": "text/css; charset=utf-8",
    ".gif": "image/gif",
    ".html": "text/html; charset=utf-8",
    ".ico": "image/x-icon",
    ".js": "text/javascript; charset=utf-8",
    ".json": "application/json",
    ".jsonl": "application/jsonl",
    ".mjs": "text/javascript; charset=utf-8",
    ".mp4": "video/mp4",
    ".png": "image/png",
    ".replay": "application/octet-stream",
    ".svg": "image/svg+xml",
    ".txt": "text/plain; charset=utf-8",
    ".wasm": "application/wasm",
}
# Of the files of runs; code is not among them, so nothing from a run's folder can become a script of the page.
READ = {".gif", ".html", ".json", ".jsonl", ".mp4", ".png", ".replay", ".txt"}
REPLAY_MAGIC = b"gridmill-replay "
MOST_LISTED = 10_000
MOST_VISITED = 100_000  # files and folders looked at for a list
NOTHING = "default-src 'none'; sandbox"


class Refused(Exception):
    """A request that gets an error, with its HTTP status."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status


@contextmanager
def opened(root: Path, path: str) -> Iterator[tuple[BinaryIO, int, str, str]]:
    """A file by the path in an address: its bytes, their number, content type and content security policy."""
    place = _inside(root, _plain(path))
    if place.suffix not in READ:
        raise Refused(404, "not found")
    try:
        # NONBLOCK: a pipe would wait for its other end. NOFOLLOW: the path is resolved, a link here is a new one.
        handle = os.open(place, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        raise Refused(404, "not found") from None
    found = os.fstat(handle)
    if not stat.S_ISREG(found.st_mode):
        os.close(handle)
        raise Refused(404, "not found")
    with open(handle, "rb") as file:
        yield file, found.st_size, TYPES[place.suffix], _report_policy() if place.suffix == ".html" else NOTHING


def save(root: Path, path: str, body: bytes) -> str:
    """Write a new replay into a folder that is there; the path under the root. What exists stays as it is."""
    parts = _plain(path)
    folder = _inside(root, parts[:-1])
    name = parts[-1]
    if not name.endswith(".replay") or not folder.is_dir():
        raise Refused(403, "expected the name of a new .replay file in a folder that is there")
    if not body.startswith(REPLAY_MAGIC):
        raise Refused(415, "expected a replay")
    place = folder / name
    try:
        handle = os.open(place, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o644)
    except FileExistsError:
        raise Refused(409, f"{name} exists: choose another name") from None
    try:
        with open(handle, "wb") as file:
            file.write(body)
    except OSError:
        place.unlink()
        raise
    return "/".join(parts)


def listed(root: Path) -> list[dict[str, str | int | float]]:
    """The files that `opened` would give, sorted by path, as far as a large tree is walked; links are not followed."""
    found: list[dict[str, str | int | float]] = []
    visited = 0
    for folder, inner, names in os.walk(root):
        visited += len(inner) + len(names)
        inner[:] = sorted(name for name in inner if not name.startswith("."))
        for name in sorted(names):
            place = Path(folder, name)
            if place.suffix not in READ or name.startswith(".") or place.is_symlink():
                continue
            try:
                facts = place.stat()
            except OSError:
                continue
            if stat.S_ISREG(facts.st_mode):
                inside = place.relative_to(root).as_posix()
                found.append({"path": inside, "size": facts.st_size, "modified": facts.st_mtime})
            if len(found) == MOST_LISTED:
                return found
        if visited >= MOST_VISITED:
            break
    return found


def _report_policy() -> str:
    """The page of a run may run the report's own script, and has no other rights here."""
    from gridmill.runs.report.document import POLICY  # brings more along than the rest of this file needs

    return f"{POLICY}; sandbox allow-scripts allow-downloads"


def _plain(path: str) -> list[str]:
    """The parts of a path in an address, or a refusal; nothing is normalised, what is odd is refused."""
    try:
        text = unquote_to_bytes(path).decode("utf-8")
    except UnicodeDecodeError:
        raise Refused(404, "not found") from None
    parts = text.split("/")
    for part in parts:
        if not part or part.startswith(".") or len(part.encode()) > 255 or "\\" in part or ":" in part:
            raise Refused(404, "not found")
        if any(ord(letter) < 32 or ord(letter) == 127 for letter in part):
            raise Refused(404, "not found")
    return parts


def _inside(root: Path, parts: list[str]) -> Path:
    """What a plain path leads to, all links followed; only if that is under the root and not hidden there."""
    try:
        place = root.joinpath(*parts).resolve(strict=True)
    except (OSError, RuntimeError, ValueError):
        raise Refused(404, "not found") from None
    if not place.is_relative_to(root) or any(part.startswith(".") for part in place.relative_to(root).parts):
        raise Refused(404, "not found")
    return place
