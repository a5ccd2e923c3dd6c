"""How much memory a process may have: the machine's, or what a cgroup of either version says."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from tiny import berries

import gridmill
from gridmill import recipes, sizing
from gridmill.config import ConfigError, memory

pytestmark = pytest.mark.S5

MACHINE = psutil.virtual_memory().total
MIB = 1 << 20


def system(root: Path, said: str, files: dict[str, str]) -> Path:
    """A /proc and a /sys."""
    (root / "proc/self").mkdir(parents=True)
    (root / "proc/self/cgroup").write_text(said)
    for name, text in files.items():
        path = root / "sys/fs/cgroup" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text + "\n")
    return root


def test_a_machine_without_cgroups(tmp_path: Path) -> None:
    assert memory.limit(tmp_path) == MACHINE
    assert memory.limit_in_words(tmp_path) == f"this machine has {memory.mebibytes(MACHINE)}"
    assert 0 < memory.free(tmp_path) <= MACHINE


def test_the_second_version(tmp_path: Path) -> None:
    """A limit bounds the groups inside of it too."""
    files = {"a/b/memory.max": "max", "a/memory.max": str(700 * MIB), "a/memory.current": str(600 * MIB)}
    root = system(tmp_path, "0::/a/b\n", files)
    assert memory.limit(root) == 700 * MIB
    assert memory.free(root) <= 100 * MIB
    assert memory.limit_in_words(root) == "the cgroup of this process allows 700 MiB"


@pytest.mark.parametrize("top", ["", "memory"])
def test_files_that_were_read_count_as_free(tmp_path: Path, top: str) -> None:
    """A container that has read its data has used all that it may have, and yet can have it."""
    names = ("limit_in_bytes", "usage_in_bytes") if top else ("max", "current")
    stat = f"inactive_file {5 * MIB}\ntotal_inactive_file {60 * MIB}" if top else f"anon 1\ninactive_file {60 * MIB}"
    numbers = {names[0]: str(100 * MIB), names[1]: str(100 * MIB), "stat": stat}
    files = {f"{top}/x/memory.{name}".lstrip("/"): text for name, text in numbers.items()}
    assert memory.free(system(tmp_path, "4:memory:/x\n" if top else "0::/x\n", files)) == 60 * MIB


def test_the_first_version(tmp_path: Path) -> None:
    numbers = {"limit_in_bytes": str(300 * MIB), "usage_in_bytes": str(400 * MIB)}
    files = {f"memory/x/memory.{name}": text for name, text in numbers.items()}
    root = system(tmp_path, "5:cpu,cpuacct:/x\n4:memory:/x\n0::/\n", files)
    assert memory.limit(root) == 300 * MIB
    assert memory.free(root) == 0


def test_a_container_that_sees_only_its_own(tmp_path: Path) -> None:
    """Its path is the host's, its files are at the top."""
    root = system(tmp_path, "0::/system.slice/docker-1.scope\n", {"memory.max": str(500 * MIB)})
    assert memory.limit(root) == 500 * MIB


@pytest.mark.parametrize("said", ["", "0::\n", "garbage", "4:memory:\n", "0::/../../..\n", "\0\xff:::\n"])
def test_what_cannot_be_read_sets_no_limit(tmp_path: Path, said: str) -> None:
    assert memory.limit(system(tmp_path, said, {"memory.max": "much"})) == MACHINE


def test_no_limit_is_the_machine(tmp_path: Path) -> None:
    files = {"memory/memory.limit_in_bytes": "9223372036854771712"}
    assert memory.limit(system(tmp_path, "4:memory:/\n", files)) == MACHINE


def test_what_the_cgroup_does_not_allow_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs and environments that the machine could hold, with the arithmetic, before memory is taken."""
    monkeypatch.setattr(memory, "limit", lambda root=None: 64 * MIB)
    with pytest.raises(ConfigError) as caught:
        sizing.memory(recipes.build("arena"))
    assert "MiB, the cgroup of this process allows 64 MiB; lower one of " in str(caught.value)
    arithmetic = r"65536 worlds x \d+ bytes = [\d,]+ MiB"
    said = rf"^not enough memory: {arithmetic}, the cgroup of this process allows 64 MiB; lower num_worlds$"
    with pytest.raises(ValueError, match=said):
        gridmill.make(berries(), num_worlds=1 << 16)
    gridmill.make(berries(), num_worlds=16).close()


@pytest.fixture
def small_group() -> Iterator[Path]:
    """A cgroup of this machine with 256 MiB, for a child process."""
    told = dict(line.split(":", 2)[1:] for line in Path("/proc/self/cgroup").read_text().splitlines())
    first = "memory" in told
    place = Path("/sys/fs/cgroup/memory" if first else "/sys/fs/cgroup") / told.get("memory" if first else "", "")[1:]
    group = place / f"gridmill-{os.getpid()}"
    try:
        group.mkdir()
    except OSError as reason:
        pytest.skip(f"this machine lets nobody make a cgroup: {reason.strerror}")
    try:
        try:
            (group / ("memory.limit_in_bytes" if first else "memory.max")).write_text(str(256 * MIB))
        except OSError as reason:
            pytest.skip(f"this machine limits no memory of a cgroup: {reason.strerror}")
        yield group
    finally:
        group.rmdir()


def test_a_process_of_a_real_cgroup_is_told_its_limit(small_group: Path) -> None:
    """More than it allows is refused before it is taken, and what fits plays: the system never has to kill."""
    code = (
        "import os, sys\n"
        "open(sys.argv[1], 'w').write(str(os.getpid()))\n"
        "import gridmill\n"
        "try: gridmill.make('arena', num_worlds=65_536)\n"
        "except ValueError as error: print(error)\n"
        "with gridmill.make('arena', num_worlds=256) as env:\n"
        "    env.reset()\n"
        "    env.step()\n"
    )
    words = [sys.executable, "-c", code, str(small_group / "cgroup.procs")]
    done = subprocess.run(words, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    said = r"not enough memory: 65536 worlds x \d+ bytes = [\d,]+ MiB, the cgroup of this process allows 256 MiB; "
    assert re.fullmatch(said + r"lower num_worlds\n", done.stdout)
