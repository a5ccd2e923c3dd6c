"""Wrote the files beside it, with the package of commit 4590d82 and not with a later one.

    PYTHONPATH=<its src with its extension> python write.py <empty folder>

A run of six epochs of each kind of game: its checkpoint after four, from which that commit itself resumed, and what
came of it. A replay of each, with the hash of every tick.
"""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

from gridmill import evaluate, games, recipes, replay
from gridmill.grid import Scatter
from gridmill.policy import checkpoint
from gridmill.run import CheckpointConfig, PolicyConfig, Run, Schedule
from gridmill.train import resume, train
from gridmill.train.trainer import Trainer

EPOCHS, HALF = 6, 4


def grid() -> Run:
    """The recipe ci on a small map with a small window; agents share the advantages of those they see."""
    run = recipes.build("ci")
    game = games.arena_basic_easy_shaped(num_agents=6).replace_all(
        [
            ("map", Scatter(height=9, width=9, objects={"wall": 3, "mine": 9, "generator": 4, "altar": 2})),
            ("observation.height", 3),
            ("observation.width", 3),
            ("objects.mine.converter.cooldown", 5),
            ("max_steps", 40),
        ]
    )
    return run.replace_all(
        [
            ("game", game),
            ("policy.hidden", 16),
            ("trainer.num_worlds", 2),
            ("trainer.batch_size", 384),
            ("trainer.minibatch_size", 96),
            ("trainer.bptt_horizon", 16),
            ("trainer.total_timesteps", EPOCHS * 384),
            ("trainer.sight_share", Schedule(start=0.2, end=0.1)),
        ]
    )


def prospector() -> Run:
    """The recipe, small, with a memory."""
    return recipes.build("prospector").replace_all(
        [
            ("game.time_max", 2000.0),
            ("policy", PolicyConfig(encoder="mlp", core="lstm", hidden=16)),
            ("trainer.num_worlds", 2),
            ("trainer.batch_size", 256),
            ("trainer.minibatch_size", 64),
            ("trainer.bptt_horizon", 32),
            ("trainer.total_timesteps", EPOCHS * 256),
        ]
    )


def steady(run: Run, name: str) -> Run:
    settings = [
        ("run", name),
        ("trainer.threads", 1),
        ("trainer.device", "cpu"),
        ("checkpoint", CheckpointConfig(epochs=HALF, seconds=0)),
    ]
    return run.replace_all(settings)


def hashes_of(folder: Path) -> list[str]:
    """The worlds of a checkpoint, put back into an environment."""
    found = checkpoint.load(folder)
    trainer = Trainer(Run.load(found.record["run"]))
    trainer.restore(found.policy, found.trainer, found.record["last"])
    hashes = [f"{int(value):016x}" for value in trainer.env.state_hash()]
    trainer.close()
    return hashes


def metrics_of(folder: Path) -> list[dict[str, float]]:
    """The lines of metrics.jsonl without clocks."""
    lines = map(json.loads, (folder / "metrics.jsonl").read_text().splitlines())
    clocks = ("sps", "eta", "seconds", "last_checkpoint", "time/", "memory/", "cpu/", "gpu/")
    return [{name: value for name, value in line.items() if not name.startswith(clocks)} for line in lines]


def write_run(out: Path, work: Path, name: str, run: Run) -> None:
    """First a run to start from, then the run; its half is kept, resumed and compared."""
    first = train(steady(run, f"{name}-first").replace("trainer.total_timesteps", run.trainer.batch_size), work)
    whole = train(steady(run, name).replace("policy.start", str(first.folder)), work)
    half = whole.folder / "checkpoints" / f"epoch-{HALF:08d}"
    end = whole.folder / "checkpoints" / f"epoch-{EPOCHS:08d}"
    kept = out / name / "checkpoints" / half.name
    shutil.copytree(half, kept)
    work_again = work / "again" / name
    shutil.copytree(out / name, work_again)
    assert resume(work_again, panel=False).exit_code == 0
    again = work_again / "checkpoints" / end.name
    assert (again / "policy.safetensors").read_bytes() == (end / "policy.safetensors").read_bytes()
    shutil.copy(end / "policy.safetensors", out / name / "after.safetensors")
    told = {"half": hashes_of(half), "end": hashes_of(end), "metrics": metrics_of(work_again)}
    (out / name / "after.json").write_text(json.dumps(told, indent=1) + "\n")


def write_replay(out: Path, game: games.AnyGame, policy: str, name: str) -> None:
    file = out / f"{name}.replay"
    evaluate.evaluate(game, policy, episodes=1, seed=7, replay=file)
    tape = replay.read(file)
    hashes = [f"{int(env.state_hash()[0]):016x}" for env in tape.play()]
    (out / f"{name}.hashes.json").write_text(json.dumps(hashes, indent=0) + "\n")


def main() -> None:
    out = Path(sys.argv[1])
    work = out / "work"
    work.mkdir(parents=True)
    write_run(out, work, "grid", grid())
    write_run(out, work, "prospector", prospector())
    write_replay(out, games.cogsguard_arena().replace("max_steps", 250), "random", "grid")
    write_replay(out, games.prospector().replace("time_max", 4000.0), "bot:shuttle", "prospector")
    shutil.rmtree(work)


if __name__ == "__main__":
    main()
