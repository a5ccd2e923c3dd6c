"""What kickstart, contrast and a curriculum do to learning, on a small scale: berries in a yard of 8 x 8 cells.

    python bench/small_effects.py losses          # from scratch, with a teacher network, with contrast
    python bench/small_effects.py curriculum      # few bushes: learned as such, or from variants, chosen in two ways

The game is that of examples/own_game.py with two agents, episodes of 20 ticks and bushes that bear every 5; random play
picks 2. Runs of 76 800 agent-steps with several seeds, one after the other, in one process and on one thread. A figure
is a mean over the seeds with its standard error: berries per agent and episode. `losses` prints those of the episodes
that ended in each fifth of a run, `curriculum` those of the finished policy in 128 fresh worlds with few bushes.
"""

from __future__ import annotations

import argparse
import itertools
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from gridmill import recipes
from gridmill.curriculum import CurriculumConfig, Range, TaskSet
from gridmill.evaluate import evaluate
from gridmill.losses import Loss
from gridmill.losses.contrastive import Contrastive
from gridmill.losses.kickstart import Kickstart
from gridmill.run import OptimizerConfig, Run, Schedule, TrainerConfig
from gridmill.runs import train
from gridmill.train.trainer import Trainer

OWN = Path(__file__).resolve().parents[1] / "examples" / "own_game.py"
PARTS = 5
FEW, MANY = 1, 12  # bushes
YARD = {
    "num_agents": 2,
    "max_steps": 20,
    "objects.bush.converter.cooldown": 5,
    "map.height": 8,
    "map.width": 8,
    "map.objects": {"wall": 2, "bush": 6},
}
SIZES = TrainerConfig(
    total_timesteps=76_800,
    num_worlds=64,  # 128 rows x 20 ticks
    threads=1,
    batch_size=2_560,
    minibatch_size=640,
    bptt_horizon=20,
    update_epochs=2,
    gamma=0.9,
    device="cpu",
    reward="scaled",
)


def base(seed: int) -> Run:
    """A run that learns in seconds."""
    return recipes.build(str(OWN)).replace_all(
        [
            ("seed", seed),
            *((f"game.{path}", value) for path, value in YARD.items()),
            ("policy.hidden", 32),
            ("optimizer", OptimizerConfig(learning_rate=Schedule(start=5e-3, end=5e-4), max_grad_norm=2.0)),
            ("trainer", SIZES),
        ]
    )


def told(values: Iterable[float]) -> str:
    """Mean and standard error over seeds."""
    found = np.array(list(values))
    return f"{found.mean():.2f} +- {found.std(ddof=1) / np.sqrt(found.size):.2f}"


def curve(run: Run) -> tuple[list[float], float, dict[str, float]]:
    """Berries in each part of a run, its CPU seconds, and what is to be said about its own modules."""
    trainer = Trainer(run)
    before = {name: p.detach().clone() for name, p in _heads(trainer)}
    began, records = time.process_time(), list[dict[str, Any]]()
    while not trainer.done:
        records.append(trainer.epoch())
    spent = time.process_time() - began
    moved = dict[str, float]()
    for name, p in _heads(trainer):
        moved[f"{name} moved by"] = float((p.detach() - before[name]).norm() / before[name].norm())
    for name in ("contrastive/found", "loss/contrastive", "kickstart/agreement"):
        if name in records[0]:
            moved |= {f"{name}, first epoch": records[0][name], f"{name}, last": records[-1][name]}
    trainer.close()
    ends = np.linspace(0, len(records), PARTS + 1).astype(int)
    parts = [[r for r in records[a:b] if r["episodes"]] for a, b in itertools.pairwise(ends)]
    return [float(np.average([r["score"] for r in p], weights=[r["episodes"] for r in p])) for p in parts], spent, moved


def _heads(trainer: Trainer) -> list[tuple[str, Any]]:
    heads = trainer.learner.heads.items()
    return [(f"{name}.{key}", p) for name, head in heads for key, p in head.named_parameters() if "weight" in key]


def losses(seeds: range, folder: str) -> None:
    teacher = train(base(100).replace("run", "teacher"), folder, panel=False)
    steps = base(0).trainer.total_timesteps
    print(f"the teacher has {teacher.score:.2f} berries after {teacher.agent_steps} agent-steps")
    pull = Kickstart(teacher=str(teacher.folder), value_weight=0.0, weight=Schedule(start=1.0, end=0.0, until=steps))
    kinds: dict[str, dict[str, Loss]] = {
        "from scratch": {},
        "kickstart": {"kickstart": pull},
        "contrastive": {"contrastive": Contrastive()},
    }
    plain: list[float] = []
    for name, more in kinds.items():
        found = [curve(base(seed).replace("losses", dict(base(seed).losses) | more)) for seed in seeds]
        spent = [cpu for _, cpu, _ in found]
        plain = plain or spent
        cost = told(a / b for a, b in zip(spent, plain, strict=True))
        fifths = ", ".join(told(part) for part in zip(*(parts for parts, _, _ in found), strict=True))
        print(f"{name}: {fifths}; CPU seconds against from scratch {cost}", flush=True)
        for each in found[0][2]:
            print(f"  {each}: {told(moved[each] for _, _, moved in found)}")


def curriculum(seeds: range, folder: str) -> None:
    few = "map.objects.bush"
    sets = {"bushes": TaskSet(vary=(Range(path=few, low=1, high=MANY),), target=2.0)}
    variants = CurriculumConfig(sets=sets, tasks=MANY)
    for choose in ("uniform", "learning_progress", "none"):
        scores = list[float]()
        for seed in seeds:
            run = base(seed).replace_all([("run", f"{choose}-{seed}"), (f"game.{few}", FEW)])
            if choose != "none":
                run = run.replace("curriculum", variants.replace("choose", choose))
            result = train(run, folder, panel=False)
            scores.append(evaluate(run, str(result.folder), 128, 10_000).score.mean)
        print(f"{choose}: {told(scores)} ({', '.join(f'{score:.2f}' for score in scores)})", flush=True)


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("what", choices=("losses", "curriculum"))
    asked.add_argument("--seeds", type=int, default=3)
    arguments = asked.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        (losses if arguments.what == "losses" else curriculum)(range(1, 1 + arguments.seeds), folder)


if __name__ == "__main__":
    main()
