"""SIGKILL at random moments of whole runs that train, save every epoch, evaluate and write replays.

A process of its own (this file, run as a script) forks the runs, each going on from what the last one left, and a
server that forks their evaluations, so that torch is loaded once. What every kill left is compared, to the bit, with
an undisturbed run at that epoch.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import os
import random
import signal
import socket
import subprocess
import sys
import time
import types
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import IO, Any

import pytest
import torch
from tiny import EPOCH, difference, epochs_of, tiny, without_times
from warm import Start, fresh, warm

from gridmill import replay
from gridmill.policy import checkpoint
from gridmill.policy.saver import Saver
from gridmill.run import Run
from gridmill.runs import evaluator, resume, train

pytestmark = pytest.mark.R1

SUPPORT = Path(__file__).resolve().parents[1] / "support"
ENDLESS = 1_000_000
LONGEST = 0.2  # seconds from what a kill waits for to the kill
VARY = [{"kind": "range", "path": "max_steps", "low": 5, "high": 20}]
CHANGES: dict[str, Any] = {
    "checkpoint__epochs": 1,
    "curriculum": {"sets": {"short": {"vary": VARY, "target": 0.5}}, "tasks": 5, "tries": 1, "patience": 2},
}
EVALUATED: dict[str, Any] = {
    "evaluation__enabled": True,
    "evaluation__episodes": 2,
    "evaluation__replays_every_epochs": 1,
}


def digest(policy: Mapping[str, torch.Tensor], trainer: Mapping[str, torch.Tensor]) -> str:
    """Weights, optimizer, random numbers, worlds, counters: all that a run goes on from."""
    found = hashlib.sha256()
    for part in (policy, trainer):
        for name in sorted(part):
            tensor = part[name].detach().contiguous()
            found.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}".encode())
            found.update(tensor.reshape(-1).view(torch.uint8).numpy().tobytes() if tensor.numel() else b"")
    return found.hexdigest()


# ---- evaluations, forked from a process that has torch


def serve(address: str) -> None:
    """Fork an evaluation for everybody who asks, and tell its process and, when it is over, its exit code."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(address)
        listening.listen()
        while True:
            asked, _ = listening.accept()
            if os.fork() == 0:
                listening.close()
                guard(asked)
                os._exit(0)
            asked.close()


def guard(asked: socket.socket) -> None:
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    words, files, _, _ = socket.recv_fds(asked, 1 << 16, 3)
    child = os.fork()
    if child == 0:
        asked.close()
        become(*json.loads(words), files)
    for file in files:  # or the evaluation would not see that its trainer has died
        os.close(file)
    with contextlib.suppress(OSError):  # the trainer may be gone
        asked.send(b"%020d" % child)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    with contextlib.suppress(OSError):
        asked.send(b"%020d" % code)


def become(code: str, words: list[str], files: list[int]) -> None:
    """In the child: what `python -c code words` would do."""
    os.setsid()
    for number, file in enumerate(files):
        os.dup2(file, number)
    os.environ.update(evaluator.ALONE)
    sys.argv = ["-c", *words]
    ended = 0
    try:
        exec(code, {"__name__": "__main__"})
    except SystemExit as leaving:
        ended = int(leaving.code or 0)
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(ended)


class Warm:
    """What the evaluator uses of `subprocess.Popen`, by that server."""

    address = ""

    def __init__(self, words: list[str], stdout: IO[bytes], stderr: IO[bytes], **_: Any) -> None:
        at = words.index("-c")
        listen, told = os.pipe()
        self.stdin = os.fdopen(told, "wb")
        self.server = socket.socket(socket.AF_UNIX)
        self.server.connect(self.address)
        request = json.dumps([words[at + 1], words[at + 2 :]]).encode()
        socket.send_fds(self.server, [request], [listen, stdout.fileno(), stderr.fileno()])
        os.close(listen)
        self.pid = int(self.server.recv(20))
        self.returncode: int | None = None

    def poll(self, flags: int = socket.MSG_DONTWAIT) -> int | None:
        if self.returncode is None:
            with contextlib.suppress(BlockingIOError):
                self.returncode = int(self.server.recv(20, flags))
                self.server.close()
        return self.returncode

    def wait(self) -> int | None:
        return self.poll(0)


# ---- runs, forked and killed


def one_run(folder: Path, run: Run, first: bool) -> None:
    """In a child: train, or go on."""
    with contextlib.redirect_stdout(io.StringIO()):
        if first:
            train(run, folder.parent, panel=False)
        else:
            resume(folder, panel=False)
    os._exit(9)  # it was to be killed


def saved(folder: Path) -> int:
    """The newest epoch that has a checkpoint."""
    names = (folder / "checkpoints").glob("epoch-????????")
    return max((int(path.name[-8:]) for path in names), default=0)


def wait_for(what: Callable[[], bool], child: int, seconds: float = 120.0) -> None:
    end = time.monotonic() + seconds
    while not what():
        assert os.waitpid(child, os.WNOHANG) == (0, 0), "the run ended by itself"
        assert time.monotonic() < end, f"nothing came within {seconds} s"
        time.sleep(0.005)


def replays(folder: Path) -> set[Path]:
    return set((folder / "replays").glob("*.replay"))


def play_whole(files: set[Path]) -> None:
    for file in sorted(files):
        tape = replay.read(file)
        assert sum(1 for _ in tape.play()) == len(tape.actions) > 0, file


def unfinished(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*.tmp"))


def kill_again_and_again(folder: Path, kills: int, seed: int) -> dict[str, Any]:
    torch.set_num_threads(1)
    with contextlib.redirect_stdout(io.StringIO()):
        train(tiny(1, **CHANGES), folder.parent, panel=False)  # what torch loads late is loaded here
    Warm.address = str(folder.parent / "evaluations")
    server = os.fork()
    if server == 0:
        serve(Warm.address)
    evaluator.subprocess = types.SimpleNamespace(Popen=Warm, PIPE=subprocess.PIPE)  # type: ignore[assignment, attr-defined]
    draw, played, amid, digests = random.Random(seed), set[Path](), 0, {}
    try:
        for number in range(kills):
            before, recorded = saved(folder), replays(folder)
            child = os.fork()
            if child == 0:
                one_run(folder, tiny(ENDLESS, run=folder.name, **CHANGES, **EVALUATED), number == 0)
            more = draw.choice([0, 1, 2, 4, "replay"]) if number else 1  # 0: anywhere, often amid a resume
            if more == "replay":
                wait_for(lambda: replays(folder) > recorded, child)  # noqa: B023
            else:
                wait_for(lambda: saved(folder) >= before + more, child)  # noqa: B023
            time.sleep(draw.uniform(0.0, LONGEST))
            os.kill(child, signal.SIGKILL)
            assert os.WIFSIGNALED(os.waitpid(child, 0)[1]), (folder / "log.txt").read_text()
            amid += bool(unfinished(folder / "checkpoints"))
            found, skipped = checkpoint.newest(folder)
            assert skipped == []
            assert found.epoch == saved(folder) >= before  # what was in place stays
            digests[found.epoch] = digest(found.policy, found.trainer)
            assert isinstance(json.loads((folder / "run.json").read_text()), dict)
            more_replays = replays(folder) - played
            play_whole(more_replays)
            played |= more_replays
        epochs = saved(folder) + 3
        with contextlib.redirect_stdout(io.StringIO()):
            result = resume(folder, [f"trainer.total_timesteps={epochs * EPOCH}"], panel=False)
    finally:
        os.kill(server, signal.SIGKILL)
        os.waitpid(server, 0)
    assert (result.exit_code, result.epochs) == (0, epochs), (folder / "log.txt").read_text()
    return {"kills": kills, "amid": amid, "replays": len(played), "epochs": epochs, "digests": digests}


SPINS = "while True: pass"
WRITES = """import os, sys
with open(sys.argv[1], "wb") as file:
    while True:
        file.seek(0)
        file.write(bytes(1 << 22))
        file.flush()
        os.fsync(file.fileno())
"""


@contextlib.contextmanager
def load(folder: Path) -> Iterator[None]:
    """As many busy processes as there are cores, and one that keeps the disk busy."""
    codes = [SPINS] * (os.cpu_count() or 1) + [WRITES]
    children = [subprocess.Popen([sys.executable, "-c", code, str(folder / "written")]) for code in codes]
    try:
        yield
        assert all(child.poll() is None for child in children)
    finally:
        for child in children:
            child.kill()
            child.wait()


def undisturbed(folder: Path, epochs: int, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, dict[int, str]]:
    """A run without kills and without evaluation, and what it saved at each epoch."""
    found, plain = dict[int, str](), Saver.save

    def save(saver: Any, epoch: int, policy: Any, trainer: Any, *rest: Any) -> Any:
        found[epoch] = digest(policy, trainer)
        return plain(saver, epoch, policy, trainer, *rest)

    monkeypatch.setattr(Saver, "save", save)
    return train(tiny(epochs, run="undisturbed", **CHANGES), folder, panel=False).folder, found


@pytest.mark.parametrize(("kills", "start"), [(1, warm), pytest.param(200, fresh, marks=pytest.mark.long)])
def test_killed_and_resumed_again_and_again(
    kills: int,
    start: Start,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    record_property: Callable[[str, object], None],
) -> None:
    """Nothing unreadable, nothing mixed: each time it is the undisturbed run at that epoch, and so it is in the end.
    Many kills are under load.
    """
    folder = tmp_path / "killed"
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(SUPPORT), *filter(None, sys.path)]))
    with load(tmp_path) if kills > 1 else contextlib.nullcontext():
        done = start([sys.executable, __file__, str(folder), str(kills)], tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    result = json.loads(done.stdout)
    whole, digests = undisturbed(tmp_path, result["epochs"], monkeypatch)
    for epoch, left in result.pop("digests").items():
        assert left == digests[int(epoch)], f"what a kill left of epoch {epoch} is not that epoch"
    assert difference(folder, whole) == 0
    assert [without_times(record) | {"total_timesteps": 0} for record in epochs_of(folder)] == [
        without_times(record) | {"total_timesteps": 0} for record in epochs_of(whole)
    ]
    records = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    evaluated = [record["epoch"] for record in records if "evaluation" in record]
    assert evaluated[-1] == result["epochs"]
    assert len(set(evaluated)) == len(evaluated)
    assert ": evaluation: " not in (folder / "log.txt").read_text()  # how a failed one is told
    assert unfinished(folder) == []
    figure = "{kills} kills, {amid} of them amid a save, {epochs} epochs, {replays} replays played whole, "
    record_property("figure", f"{figure.format(**result)}{len(evaluated)} evaluations; 0 unreadable, 0 mixed")


if __name__ == "__main__":
    print(json.dumps(kill_again_and_again(Path(sys.argv[1]), int(sys.argv[2]), seed=1)))
