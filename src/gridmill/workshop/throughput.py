"""`gridmill throughput`: steps per second of what training is made of, as an artefact per run, with a target.

Steps are `step` calls of one world. Mode env_only steps Prospector alone with random actions: the native batch, or the
reference in plain Python, one world after the other. Modes rollout and train run our trainer with a 2 x 128 MLP, in
whole epochs, and look at the rollout's part or at all of it. Nothing traces allocations while it measures.
"""

from __future__ import annotations

import itertools
import json
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from gridmill.config.text import count, short, table
from gridmill.prospector.actions import NUM_ACTIONS
from gridmill.prospector.single import ProspectorEnv
from gridmill.run import Run
from gridmill.workshop import machine
from gridmill.workshop.bench import train as bench_train
from gridmill.workshop.profile import Load, Round, Runner
from gridmill.workshop.statistics import mean, percentiles

KIND = "gridmill throughput"
BELOW_TARGET = 1


@dataclass(frozen=True)
class Settings:
    """What to measure and what to expect of it."""

    mode: str = "env_only"
    env_impl: str = "auto"
    worlds: int = 64
    threads: int = 1
    steps: int = 200_000
    repeats: int = 10
    warmup: int = 50_000
    seed: int = 0
    target: float | None = None
    enforce: bool = False
    folder: Path = Path("artifacts/throughput")

    def check(self) -> None:
        least = {"--worlds": (self.worlds, 1), "--threads": (self.threads, 1), "--steps": (self.steps, 1)}
        least |= {"--repeats": (self.repeats, 1), "--warmup": (self.warmup, 0)}
        for name, (value, lowest) in least.items():
            if value < lowest:
                raise ValueError(f"{name} must be at least {lowest}, got {value}")
        if self.target is not None and not self.target > 0:
            raise ValueError(f"--target-steps-per-sec must be above 0, got {self.target}")
        if self.enforce and self.target is None:
            raise ValueError("--enforce-target needs --target-steps-per-sec")
        if self.env_impl == "reference" and self.threads > 1:
            raise ValueError("--threads: the reference has one thread; use --env-impl native")


class ReferenceRunner:
    """Worlds in plain Python, stepped in turn with random actions drawn ahead; ended ones begin again at once."""

    def __init__(self, worlds: int, seed: int) -> None:
        self.envs = [ProspectorEnv(seed=seed + world, impl="reference") for world in range(worlds)]
        drawn = np.random.default_rng(seed).integers(0, NUM_ACTIONS, 65_536)
        self.actions = itertools.cycle(drawn.tolist())
        self.turn = itertools.cycle(self.envs)

    def run(self, steps: int) -> Round:
        wall, cpu = time.perf_counter(), time.process_time()
        for env, action in itertools.islice(zip(self.turn, self.actions, strict=False), steps):
            _, _, terminated, truncated, _ = env.step(action)
            if terminated or truncated:
                env.reset()
        return Round(steps, steps, time.process_time() - cpu, time.perf_counter() - wall)

    def close(self) -> None:
        for env in self.envs:
            env.close()


def trained_run(settings: Settings) -> Run:
    """The run of modes rollout and train: 64 steps of every world an epoch, in 8 minibatches where they fit."""
    steps = 64 * settings.worlds
    sizes = {"policy.core": "none", "policy.layers": 1, "seed": settings.seed, "trainer.num_worlds": settings.worlds}
    sizes |= {"trainer.threads": settings.threads, "trainer.env_impl": settings.env_impl, "trainer.batch_size": steps}
    sizes["trainer.minibatch_size"] = steps // 8 if settings.worlds % 8 == 0 else steps
    run = bench_train.standard("prospector")
    for path, value in sizes.items():
        run = run.replace(path, value)
    return run


def measure_training(settings: Settings) -> list[Round]:
    """The repeats in whole epochs. The trainer times its rollout by the wall clock only."""
    run = trained_run(settings)
    worker = bench_train.start("trainer", run)
    try:
        if settings.warmup:
            bench_train.epochs_of(worker, max(1, settings.warmup // run.trainer.batch_size))
        epochs = max(1, settings.steps // run.trainer.batch_size)
        taken = [bench_train.epochs_of(worker, epochs) for _ in range(settings.repeats)]
    finally:
        worker.close()
    if settings.mode == "train":
        return [Round(one.epochs, one.agent_steps, one.cpu_seconds, one.wall_seconds) for one in taken]
    return [Round(one.epochs, one.agent_steps, 0.0, one.phases["rollout"]) for one in taken]


def measure(settings: Settings) -> list[Round]:
    """The repeats, after a warm-up. A native repeat is a whole number of batch steps."""
    if settings.mode != "env_only":
        return measure_training(settings)
    runner: Runner | ReferenceRunner
    if settings.env_impl == "reference":
        runner, rows = ReferenceRunner(settings.worlds, settings.seed), 1
    else:
        load = Load(game="prospector", worlds=settings.worlds, threads=settings.threads, seed=settings.seed)
        runner, rows = Runner(load), settings.worlds
    try:
        if settings.warmup:
            runner.run(max(1, settings.warmup // rows))
        return [runner.run(max(1, settings.steps // rows)) for _ in range(settings.repeats)]
    finally:
        runner.close()


def spread(values: Sequence[float]) -> dict[str, float]:
    p50, p95, p99 = percentiles(values, (50.0, 95.0, 99.0))
    return {"min": min(values), "mean": mean(values), "p50": p50, "p95": p95, "p99": p99}


def record_of(settings: Settings, rounds: Sequence[Round]) -> dict[str, Any]:
    """Everything that was found, ready for JSON."""
    wall = spread([r.per_wall_second for r in rounds])
    asked = {k: str(v) if isinstance(v, Path) else v for k, v in asdict(settings).items()}
    return {
        "kind": KIND,
        "mode": settings.mode,
        "env_impl": "reference" if settings.env_impl == "reference" else "native",
        "settings": asked,
        "machine": machine.describe(),
        "steps_per_second": wall,
        "steps_per_cpu_second": None if settings.mode == "rollout" else spread([r.per_cpu_second for r in rounds]),
        "target": settings.target,
        "reached": None if settings.target is None else wall["mean"] >= settings.target,
        "rounds": [asdict(r) for r in rounds],
    }


def write_artefact(record: dict[str, Any], folder: Path, mode: str) -> Path:
    """One file per run, named by time, commit and mode."""
    commit = str(record["machine"]["commit"]["hash"] or "none")[:10]
    path = folder / f"{datetime.now(UTC):%Y%m%dT%H%M%SZ}-{commit}-{mode}.json"
    folder.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(record, indent=1, default=str) + "\n", encoding="utf-8")
    return path


def run(settings: Settings) -> int:
    """Measure, print, save. Returns 1 if a target was to be enforced and the mean is below it."""
    settings.check()
    record = record_of(settings, measure(settings))
    path = write_artefact(record, settings.folder, settings.mode)
    shape = f"{count(settings.worlds, 'world')}, {count(settings.threads, 'thread')}, seed {settings.seed}"
    print(f"{KIND}: {settings.mode}, prospector, {record['env_impl']}, {shape}")
    print(f"{count(settings.repeats, 'repeat')} of {settings.steps:,} steps after {settings.warmup:,}")
    print("\n".join(machine.headline(record["machine"])) + "\n")
    names = ("min", "mean", "p50", "p95", "p99")
    found = {"per wall second": record["steps_per_second"], "per CPU second": record["steps_per_cpu_second"]}
    rows = [(title, *(short(values[name]) for name in names)) for title, values in found.items() if values]
    print("\n".join(table(("steps", *names), rows)))
    if settings.target is not None:
        share = record["steps_per_second"]["mean"] / settings.target
        verdict = "reached" if record["reached"] else "missed"
        print(f"\ntarget {short(settings.target)} steps per second: {verdict}, the mean is {share:.2f} of it")
    print(f"saved to {path}")
    return BELOW_TARGET if settings.enforce and not record["reached"] else 0
