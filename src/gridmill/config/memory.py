"""How much memory this process may have: the machine's, or less where its cgroup says so, as in a container."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import psutil

ROOT = Path("/")


def limit(root: Path = ROOT) -> int:
    """Bytes at most. `root` is where /proc and /sys are, for tests."""
    return min([int(psutil.virtual_memory().total), *(most for most, _ in _cgroups(root))])


def free(root: Path = ROOT) -> int:
    """Bytes that can still be taken."""
    left = [most - used for most, used in _cgroups(root)]
    return max(0, min([int(psutil.virtual_memory().available), *left]))


def limit_in_words(root: Path = ROOT) -> str:
    """Who sets the limit, and how high."""
    most, machine = limit(root), psutil.virtual_memory().total
    return f"{'this machine has' if most == machine else 'the cgroup of this process allows'} {mebibytes(most)}"


def mebibytes(size: int) -> str:
    """`1,234 MiB`."""
    return f"{-(-size // 2**20):,} MiB"


def _cgroups(root: Path) -> Iterator[tuple[int, int]]:
    """Limit and use of every group with a limit that this process is in: a group's bounds those inside of it too.

    Pages of files that were read once count as free: the system drops them first.
    """
    for line in _text(root / "proc/self/cgroup").splitlines():
        number, _, rest = line.partition(":")
        names, _, path = rest.partition(":")
        if number == "0" and not names:
            top, most, used = root / "sys/fs/cgroup", "memory.max", "memory.current"
        elif "memory" in names.split(","):
            top, most, used = root / "sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes"
        else:
            continue
        inside = top / path.strip("/")
        for group in (inside, *inside.parents):  # seen from a container, its own path may not be there: then its top is
            if not group.is_relative_to(top):
                break
            with suppress(ValueError):  # "max": no limit
                yield int(_text(group / most)), max(0, int(_text(group / used) or "0") - _droppable(group))


def _droppable(group: Path) -> int:
    said = dict(line.partition(" ")[::2] for line in _text(group / "memory.stat").splitlines())
    return int(said.get("total_inactive_file") or said.get("inactive_file") or "0")


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="ascii", errors="replace").strip()
    except OSError:
        return ""
