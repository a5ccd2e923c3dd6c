"""A run of a stranger, every command that opens one, and a child process for each that cannot harm the test.

`honest` makes the run once; a test copies it, changes it and asks every command of `commands`.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tiny import SUPPORT, tiny
from torch import Tensor
from warm import FORKS

from gridmill.evaluate import ReplayOptions, evaluate
from gridmill.policy import checkpoint
from gridmill.runs import train
from gridmill.workshop import artefact

PATIENCE = 60.0  # seconds after which a command is ended
REPLAY = "replays/first.replay"
CHECKPOINT = "checkpoints/epoch-00000001"
ARTEFACT = "artifacts/first.json"


def honest(folder: Path) -> Path:
    """A run of two epochs with a checkpoint of each, a replay that has the policy in it, and an artefact."""
    run = tiny(2, run="mine", checkpoint__epochs=1)
    made = train(run, folder, panel=False).folder
    evaluate(run, str(made), 1, 0, replay=ReplayOptions(made / REPLAY, weights=True))
    artefact.write(artefact.record("ab", 0, {}, {"rate": artefact.sample([1.0, 2.0], "steps/s")}), made / ARTEFACT)
    return made


def commands(run: Path, out: Path, file: str = REPLAY) -> dict[str, list[str]]:
    """Every command that opens a run, a checkpoint, a replay, a sweep or an artefact, on this one; what they write goes
    to `out`.
    """
    name, tape, tiny_recipe = str(run), str(run / file), f"{SUPPORT / 'tiny.py'}:tiny"
    train = ["train", tiny_recipe, "run=next", "--runs-dir", str(out)]
    whatif = ["whatif", tape, "--tick", "1", "--agent", "0", "--rollouts", "2", "--horizon", "2"]
    return {
        "resume": ["resume", name, "trainer.total_timesteps=384"],
        "eval its game": ["eval", name, "--episodes", "1"],
        "eval beside it": ["eval", f"{SUPPORT / 'tiny.py'}:berries", "--players", f"{name}=0.5", "--episodes", "1"],
        "eval its policy": ["eval", f"{SUPPORT / 'tiny.py'}:berries", "--policy", name, "--episodes", "1"],
        "eval its best": ["eval", f"{SUPPORT / 'tiny.py'}:berries", "--policy", f"{name}@best", "--episodes", "1"],
        "report": ["report", name, "--out", str(out / "report.html")],
        "report without baselines": ["report", name, "--no-baselines", "--out", str(out / "report.html")],
        "explain": ["explain", name],
        "diff": ["diff", name, str(run / CHECKPOINT)],
        "diff from a game": ["diff", f"{SUPPORT / 'tiny.py'}:berries", name, "--json"],
        "policy info": ["policy", "info", name],
        "policy info of a checkpoint": ["policy", "info", str(run / CHECKPOINT), "--json"],
        "policy export": ["policy", "export", name, str(out / "policy.pt2")],
        "sweep": ["sweep", name],
        "artifacts": ["artifacts", name, "--page", str(out / "artifacts.html")],
        "runs": ["runs", "--runs-dir", str(run.parent)],
        "runs as JSON": ["runs", "--runs-dir", str(run.parent), "--json"],
        "view": ["view", name, "--export", str(out / "page.html")],
        "view its replay": ["view", tape, "--export", str(out / "page.html")],
        "play": ["play", name, "--export", str(out / "play.html")],
        "show": ["show", tape],
        "show the run": ["show", name, "--steps", "2"],
        "show as a picture": ["show", tape, "--png", str(out / "shown.png")],
        "watch": ["watch", tape, "--to", "2"],
        "watch the run": ["watch", name, "--to", "2"],
        "replay check": ["replay", "check", tape],
        "replay check as JSON": ["replay", "check", tape, "--json"],
        "replay info": ["replay", "info", tape],
        "replay cut": ["replay", "cut", tape, "--to", "2", "-o", str(out / "cut.replay")],
        "replay merge": ["replay", "merge", tape, tape, "-o", str(out / "merged.replay")],
        "whatif": whatif,
        "whatif with its policy": [*whatif, "--policy", name],
        "train or resume": ["train", tiny_recipe, f"run={run.name}", "--runs-dir", str(run.parent), "--or-resume"],
        "begin with it": [*train, f"policy.init_from={name}"],
        "play beside it": [*train, f'players={{"{name}": 0.5}}', "trainer.batch_size=64", "trainer.minibatch_size=32"],
        "learn from it": [*train, f"losses.kickstart.teacher={name}"],
        "learn from its replay": [*train, f"losses.clone.replays={tape}"],
    }


@dataclass(frozen=True)
class Answer:
    """What came of a command."""

    code: int | None  # None: it had not ended after PATIENCE
    out: str
    err: str
    cpu: float  # seconds, of its children too
    waited: float  # seconds in which it neither ran nor was about to


def ask(words: list[str], folder: Path, out: Path) -> Answer:
    """A command of `gridmill` in a child process that begins in a folder."""
    files = {name: out / f".{name}" for name in ("out", "err", "clocks")}
    for file in files.values():
        file.unlink(missing_ok=True)
    child = FORKS.Process(target=_child, args=(words, str(folder), {name: str(f) for name, f in files.items()}))
    child.start()
    try:
        child.join(PATIENCE)
        code = child.exitcode
    finally:
        child.kill()
        child.join()
    said = {name: file.read_text(errors="replace") if file.exists() else "" for name, file in files.items()}
    clocks = said["clocks"].split() if code is not None and said["clocks"] else ["inf", "inf"]
    return Answer(code, said["out"], said["err"], *map(float, clocks))


def _child(words: list[str], folder: str, files: Mapping[str, str]) -> None:
    os.chdir(folder)
    for number, name in ((1, "out"), (2, "err")):
        os.dup2(os.open(files[name], os.O_WRONLY | os.O_CREAT | os.O_APPEND), number)
    from gridmill.cli import main

    began = time.monotonic(), cpu(), queued()
    try:
        main(words)
    finally:
        took = time.monotonic() - began[0]
        ran = cpu() - began[1]
        Path(files["clocks"]).write_text(f"{ran} {max(0.0, took - ran - (queued() - began[2]))}")


def cpu() -> float:
    """Seconds of this process and of its children that have ended."""
    return sum(os.times()[:4])


def queued() -> float:
    """Seconds in which the main thread could have run, had there been a core; 0 if the system does not say."""
    with suppress(OSError):
        return int(Path("/proc/self/task", str(os.getpid()), "schedstat").read_text().split()[1]) / 1e9
    return 0.0


def changed_record(run: Path, change: Callable[[dict[str, Any]], None]) -> None:
    """All checkpoints and run.json with their record changed, and manifests that fit."""
    for path in sorted((run / "checkpoints").iterdir()):
        found = checkpoint.load(path)
        change(found.record)
        resave(found, found.policy, found.trainer)
    (run / "run.json").write_bytes((path / "run.json").read_bytes())


def resave(found: checkpoint.Checkpoint, policy: Mapping[str, Tensor], trainer: Mapping[str, Tensor]) -> None:
    """A checkpoint with other tensors, as one who means harm would make it."""
    folder = found.path.parent
    checkpoint.save(folder / "new", found.epoch, policy, trainer, found.record, 9, None)
    for file in found.path.iterdir():
        file.unlink()
        os.rename(folder / "new" / found.path.name / file.name, file)
    (folder / "new" / found.path.name).rmdir()
    (folder / "new").rmdir()


def one_line(answer: Answer) -> None:
    """No traceback, no crash, no end of PATIENCE: done, or refused in one line."""
    assert answer.code in (0, 2), answer
    assert "Traceback" not in answer.err + answer.out, answer
    if answer.code == 2 and not answer.out:
        refusals = [line for line in answer.err.splitlines() if line.startswith("gridmill: ")]
        assert refusals, answer
        assert all(len(line) < 2000 for line in answer.err.splitlines()), answer


def tape_with(run: Path, change: Callable[[dict[str, Any]], None]) -> None:
    """The replay with its head changed."""
    from tapes import joined, parts

    head, body = parts((run / REPLAY).read_bytes())
    change(head)
    (run / REPLAY).write_bytes(joined(head, body))
