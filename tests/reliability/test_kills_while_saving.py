"""SIGKILL at random moments of a process that does nothing but save.

A process of its own (this file, run as a script) forks a child that saves epoch after epoch and tells each one it has
saved; kills it; looks at what lies there; and forks the next, which goes on from there.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from warm import Start, fresh, warm

pytestmark = pytest.mark.R1

SUPPORT = Path(__file__).resolve().parents[1] / "support"
KEEP = 3


def save_for_ever(folder: Path, first: int, floats: int, told: int) -> None:
    from checkpoints import save_epoch

    for epoch in range(first, first + 1_000_000):
        save_epoch(folder, epoch, KEEP, score=float(epoch % 7), floats=floats)
        os.write(told, b"%016d" % epoch)


def killed_child(work: Callable[[int], None], seconds: float) -> int:
    """Fork, wait for the first epoch and then a while, kill; returns the last epoch that was said to be saved."""
    listen, told = os.pipe()
    child = os.fork()
    if child == 0:
        work(told)
        os._exit(1)
    os.close(told)
    words = os.read(listen, 16)
    time.sleep(seconds)
    os.kill(child, signal.SIGKILL)
    assert os.WIFSIGNALED(os.waitpid(child, 0)[1])
    while more := os.read(listen, 1 << 16):
        words += more
    os.close(listen)
    return int(words[-16:])


def kill_again_and_again(folder: Path, kills: int, floats: int, longest: float, seed: int) -> dict[str, int]:
    import torch
    from checkpoints import assert_whole, names, save_epoch

    from gridmill.policy import checkpoint

    torch.set_num_threads(1)
    draw = random.Random(seed)
    epoch, amid = 0, 0
    for _ in range(kills):
        first = epoch + 1
        saved = killed_child(lambda told: save_for_ever(folder, first, floats, told), draw.uniform(0.0, longest))  # noqa: B023
        amid += any(name.endswith(".tmp") for name in names(folder))
        found, skipped = checkpoint.newest(folder)
        assert skipped == []
        assert found.epoch in (saved, saved + 1)  # what was said to be saved is; one more may be in place
        assert_whole(found, floats)
        epoch = found.epoch
    save_epoch(folder, epoch + 1, KEEP, floats=floats)
    assert len(names(folder)) in (KEEP, KEEP + 1)  # the best may be one of the newest
    assert not any(name.endswith((".tmp", ".old", ".left")) for name in names(folder))
    return {"kills": kills, "amid": amid, "epochs": epoch}


def run(folder: Path, kills: int, floats: int, longest: float, start: Start) -> dict[str, int]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", os.pathsep.join([str(SUPPORT), *filter(None, sys.path)]))
        done = start([sys.executable, __file__, str(folder), str(kills), str(floats), str(longest)], folder.parent)
    assert done.returncode == 0, done.stderr
    result: dict[str, int] = json.loads(done.stdout)
    return result


def figure(result: dict[str, int]) -> str:
    return "{kills} kills, {amid} of them amid a save, {epochs} epochs; 0 unreadable, 0 mixed".format(**result)


def test_20_kills(tmp_path: Path, record_property: Callable[[str, object], None]) -> None:
    """Killed while saving: the newest checkpoint loads, all of one epoch, none that was said to be saved is lost."""
    result = run(tmp_path / "checkpoints", kills=20, floats=50_000, longest=0.1, start=warm)
    record_property("figure", figure(result))
    assert result["amid"] > 0


@pytest.mark.long
def test_200_kills_with_25_MB(tmp_path: Path, record_property: Callable[[str, object], None]) -> None:
    """The same 200 times, with a state of 25 MB."""
    result = run(tmp_path / "checkpoints", kills=200, floats=2_083_332, longest=0.5, start=fresh)
    record_property("figure", figure(result))
    assert result["amid"] > 100


if __name__ == "__main__":
    where, number, size, wait = sys.argv[1:]
    print(json.dumps(kill_again_and_again(Path(where), int(number), int(size), float(wait), seed=1)))
