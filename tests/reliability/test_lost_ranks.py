"""Processes of a run that die, hang or lose their host, under torchrun as people start it (R7, R8).

Long: every start is an interpreter of its own. What one rank sees of another is in tests/train/test_ranks.py.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

SUPPORT = Path(__file__).resolve().parents[1] / "support"
RECIPE = f"""
import sys
sys.path.insert(0, {str(SUPPORT)!r})
from ranked import run_of

def endless():
    return run_of(10_000_000, checkpoint__seconds=1.0)
"""
TORCHRUN = [sys.executable, "-m", "torch.distributed.run"]

pytestmark = [pytest.mark.long, pytest.mark.timeout(3_600)]  # on a busy machine a start takes a minute


def training(folder: Path, *settings: str) -> list[str]:
    (folder / "recipe.py").write_text(RECIPE)
    words = ["-m", "gridmill", "train", str(folder / "recipe.py:endless"), "--runs-dir", str(folder), "--or-resume"]
    return [*words, "run=two", *settings]


@contextlib.contextmanager
def launched(words: list[str], log: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A launcher in a session of its own; it and all that it started are gone afterwards."""
    with log.open("ab") as said:
        child = subprocess.Popen(words, stdout=said, stderr=said, start_new_session=True)
    try:
        yield child
    finally:
        with contextlib.suppress(psutil.NoSuchProcess):  # it may have ended by itself, and its processes with it
            for each in (*psutil.Process(child.pid).children(recursive=True), psutil.Process(child.pid)):
                with contextlib.suppress(psutil.NoSuchProcess):
                    each.kill()
        child.wait()


def ranks_of(launcher: subprocess.Popen[bytes]) -> list[psutil.Process]:
    """The processes that train, by rank."""
    found: dict[int, psutil.Process] = {}
    for each in psutil.Process(launcher.pid).children(recursive=True):
        with contextlib.suppress(psutil.Error):
            if "gridmill" in each.cmdline() and "RANK" in (said := each.environ()):
                found[int(said["RANK"])] = each
    return [found[rank] for rank in sorted(found)]


def epochs(folder: Path) -> list[dict[str, Any]]:
    """Whole lines of the metrics so far."""
    path = folder / "two" / "metrics.jsonl"
    lines = path.read_text().split("\n")[:-1] if path.exists() else []
    return [record for record in map(json.loads, lines) if "agent_steps" in record]


def until(done: Callable[[], bool], log: Path, seconds: float = 300.0) -> float:
    """Wait; how long it took."""
    began = time.monotonic()
    while not done():
        assert time.monotonic() - began < seconds, log.read_text()[-4000:]
        time.sleep(0.05)
    return time.monotonic() - began


def newest(folder: Path) -> int:
    """The epoch of the newest checkpoint; 0 without one."""
    found = (folder / "two" / "checkpoints").glob("epoch-????????")
    return max((int(path.name.removeprefix("epoch-")) for path in found), default=0)


def is_back(folder: Path, sessions: int, kept: int) -> bool:
    """Whether so many sessions have begun, and the last has trained on from the checkpoint it began with."""
    log = folder / "two" / "log.txt"
    begun = log.read_text().count("ranks: 2 (gloo)") if log.exists() else 0
    return begun >= sessions and bool(told := epochs(folder)) and told[-1]["epoch"] > kept


def assert_no_step_lost_or_twice(folder: Path) -> None:
    steps = [record["agent_steps"] for record in epochs(folder)]
    assert steps == [256 * (i + 1) for i in range(len(steps))]
    assert list(folder.glob("two.before-*")) == []  # nothing began anew


@pytest.mark.R7
def test_a_rank_killed_ten_times(tmp_path: Path, record_property: Callable[[str, object], None]) -> None:
    """Each time the run goes on from its last checkpoint: no step is lost before it, none counted twice, no hang."""
    log, times, kept = tmp_path / "launcher.log", list[float](), 0
    words = [*TORCHRUN, "--nproc-per-node", "2", "--max-restarts", "10", *training(tmp_path)]
    with launched(words, log) as launcher:
        for kill in range(10):
            until(lambda before=kept: newest(tmp_path) > before, log)  # type: ignore[misc]
            kept = newest(tmp_path)
            ranks_of(launcher)[kill % 2].kill()
            times.append(until(lambda n=kill + 2, e=kept: is_back(tmp_path, n, e), log))  # type: ignore[misc]
    assert_no_step_lost_or_twice(tmp_path)
    assert max(times) <= 15.0
    record_property("figure", f"10 kills, back after {min(times):.1f} to {max(times):.1f} s")


@pytest.mark.R8
@pytest.mark.parametrize("trial", range(5))
def test_a_rank_that_hangs_is_named(trial: int, tmp_path: Path, record_property: Callable[[str, object], None]) -> None:
    """SIGSTOP of either rank, with a timeout of 30 s; torchrun then ends both."""
    log, who = tmp_path / "launcher.log", trial % 2
    words = [*TORCHRUN, "--nproc-per-node", "2", *training(tmp_path, "ranks.timeout=30")]
    with launched(words, log) as launcher:
        until(lambda: len(epochs(tmp_path)) >= 2 + trial, log)
        ranks_of(launcher)[who].send_signal(signal.SIGSTOP)
        took = until(lambda: f"gridmill: rank {who} has stopped (no sign of life) while " in log.read_text(), log, 60)
        assert launcher.wait(90) != 0
    assert took < 30
    record_property("figure", f"rank {who} named after {took:.1f} s")


# ---- two hosts: two network namespaces of this machine, with a cable between them

needs_hosts = pytest.mark.skipif(
    os.geteuid() != 0 or shutil.which("ip") is None, reason="network namespaces need root and iproute2"
)


def ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, capture_output=True)


@contextlib.contextmanager
def hosts() -> Iterator[list[str]]:
    """Two of them; their addresses are 10.77.0.1 and 10.77.0.2."""
    names = [f"gridmill{os.getpid()}{end}" for end in "ab"]
    try:
        for name in names:
            ip("netns", "add", name)
    except subprocess.CalledProcessError as error:
        pytest.skip(f"no network namespaces here: {error.stderr.decode().strip()}")
    try:
        a, b = (f"gm{os.getpid() % 100_000}{end}" for end in "ab")
        ip("link", "add", a, "netns", names[0], "type", "veth", "peer", "name", b, "netns", names[1])
        for number, (name, end) in enumerate(zip(names, (a, b), strict=True)):
            ip("-n", name, "addr", "add", f"10.77.0.{number + 1}/24", "dev", end)
            ip("-n", name, "link", "set", end, "up")
            ip("-n", name, "link", "set", "lo", "up")
        yield names
    finally:
        for name in names:
            subprocess.run(["ip", "netns", "delete", name], capture_output=True)


def on_host(number: int, name: str, folder: Path) -> list[str]:
    """A launcher on one of two hosts: as many as there are train, from one on."""
    cable = f"GLOO_SOCKET_IFNAME=gm{os.getpid() % 100_000}{'ab'[number]}"
    place = ["env", cable, "TORCH_DISABLE_SHARE_RDZV_TCP_STORE=1", *TORCHRUN]
    meet = ["--rdzv-backend", "c10d", "--rdzv-endpoint", "10.77.0.1:29400", "--rdzv-id", "two-hosts"]
    nodes = ["--nnodes", "2", "--nproc-per-node", "1", "--local-addr", f"10.77.0.{number + 1}", "--max-restarts", "5"]
    close = ["--rdzv-conf", f"is_host={int(number == 0)},last_call_timeout=2,join_timeout=120"]
    return ["ip", "netns", "exec", name, *place, *nodes, *meet, *close, *training(folder, "ranks.timeout=15")]


@needs_hosts
@pytest.mark.R7
def test_a_host_is_lost_and_comes_back(tmp_path: Path, record_property: Callable[[str, object], None]) -> None:
    """The other waits for it and goes on with the last checkpoint."""
    logs = [tmp_path / f"host-{number}.log" for number in range(2)]
    with hosts() as names, contextlib.ExitStack() as held:
        held.enter_context(launched(on_host(0, names[0], tmp_path), logs[0]))
        with launched(on_host(1, names[1], tmp_path), logs[1]):
            until(lambda: newest(tmp_path) > 0, logs[0])
        kept = newest(tmp_path)  # the second host is gone
        time.sleep(5)
        held.enter_context(launched(on_host(1, names[1], tmp_path), logs[1]))
        took = until(lambda: is_back(tmp_path, 2, kept), logs[0])
    assert_no_step_lost_or_twice(tmp_path)
    record_property("figure", f"a host lost and started again: training {took:.1f} s after that")
