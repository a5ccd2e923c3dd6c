"""`gridmill throughput`: steps per second of what training is made of, as an artefact per run, with target and trend.

Steps are `step` calls of one world. Mode env_only steps Prospector alone with random actions: the native batch, or the
reference in plain Python, one world after the other. Modes rollout and trainer run our trainer with a 2 x 128 MLP, in
whole epochs, and look at the rollout's part or at all of it; trainer_eval is a whole run with its files, checkpoints
and evaluation beside it. Nothing traces allocations while it measures.
"""

from __future__ import annotations

import itertools
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from gridmill.config.files import refuse_unwritable
from gridmill.config.text import count, hang, short, table
from gridmill.prospector.actions import NUM_ACTIONS
from gridmill.prospector.single import ProspectorEnv
from gridmill.run import Run
from gridmill.runs.lines import read_records
from gridmill.workshop import artefact, machine
from gridmill.workshop.bench import train as bench_train
from gridmill.workshop.progress import Progress, stoppable
from gridmill.workshop.runner import Load, Round, Runner
from gridmill.workshop.statistics import Point, coefficient_of_variation, mean, median, percentiles, trend_lines

KIND = "throughput"
LOOK = 0.5  # seconds between two looks at a run that is evaluated
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
    resume: Path | None = None

    def tree(self) -> dict[str, Any]:
        """For the artefact, and to see whether it can be continued."""
        return {name: value for name, value in asdict(self).items() if name not in ("folder", "resume")}

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
    """The run of modes with a trainer: 64 steps of every world an epoch, in 8 minibatches where they fit."""
    steps = 64 * settings.worlds
    sizes = {"policy.core": "none", "policy.layers": 1, "seed": settings.seed, "trainer.num_worlds": settings.worlds}
    sizes |= {"trainer.threads": settings.threads, "trainer.env_impl": settings.env_impl, "trainer.batch_size": steps}
    sizes["trainer.minibatch_size"] = steps // 8 if settings.worlds % 8 == 0 else steps
    run = bench_train.standard("prospector")
    for path, value in sizes.items():
        run = run.replace(path, value)
    return run


def measure_training(settings: Settings, done: list[Round], progress: Progress) -> None:
    """The repeats that are not there yet, in whole epochs. The trainer times its rollout by the wall clock only."""
    run = trained_run(settings)
    worker = bench_train.start("trainer", run)
    try:
        if settings.warmup:
            bench_train.epochs_of(worker, max(1, settings.warmup // run.trainer.batch_size))
        epochs = max(1, settings.steps // run.trainer.batch_size)
        while len(done) < settings.repeats:
            one = bench_train.epochs_of(worker, epochs)
            if settings.mode == "rollout":
                done.append(Round(one.epochs, one.agent_steps, 0.0, one.phases["rollout"]))
            else:
                done.append(Round(one.epochs, one.agent_steps, one.cpu_seconds, one.wall_seconds))
            progress.step()
    finally:
        worker.close()


# It watches its standard input: nobody writes there, so the end of it is the end of the process that measures.
TRAIN = """
import os, sys, threading
threading.Thread(target=lambda: (os.read(0, 1), os._exit(1)), daemon=True).start()
from gridmill.run import Run
from gridmill.runs import train
train(Run.model_validate_json(sys.argv[1]), sys.argv[2], panel=False)
"""


def measure_with_evaluation(settings: Settings, done: list[Round], progress: Progress) -> None:
    """A run in a process and a folder of its own, evaluated in another process all the time; repeats are its epochs."""
    run, known = trained_run(settings), len(done)
    batch = run.trainer.batch_size
    epochs, before = max(1, settings.steps // batch), -(-settings.warmup // batch)
    changes: dict[str, Any] = {
        "trainer.total_timesteps": (before + epochs * (settings.repeats - known)) * batch,
        "evaluation.enabled": True,
    }
    changes |= {"evaluation.epochs": epochs, "checkpoint.epochs": epochs, "evaluation.final_seconds": 0.0}
    for path, value in changes.items():
        run = run.replace(path, value)
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-P", "-c", TRAIN, run.replace("run", "measured").model_dump_json(), folder]
        metrics, said = Path(folder) / "measured" / "metrics.jsonl", Path(folder) / "said.txt"
        with said.open("w") as noise:
            child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=noise, stderr=noise, start_new_session=True)
        try:
            ended = None
            while ended is None:
                ended = child.poll()  # before the file is read: what is written until then counts
                marks = [0.0, *(float(line["seconds"]) for line in read_records(metrics) if "sps" in line)]
                for first in range(before + epochs * (len(done) - known), len(marks) - epochs, epochs):
                    done.append(Round(epochs, epochs * batch, 0.0, marks[first + epochs] - marks[first]))
                    progress.step()
                time.sleep(0.0 if ended is not None else LOOK)
        finally:
            child.kill()  # its evaluation ends with it
            child.communicate()
        if ended:
            last = (said.read_text(encoding="utf-8").strip().splitlines() or ["no message"])[-1]
            raise ValueError(f"the training ended with code {ended}: {machine.without_paths(last)}")


def measure(settings: Settings, done: list[Round] | None = None) -> list[Round]:
    """The repeats that are not in `done`, after a warm-up, put there when each is over; a native one is whole steps."""
    done = [] if done is None else done
    if len(done) >= settings.repeats:
        return done
    progress = Progress(settings.repeats - len(done), "repeats")
    try:
        if settings.mode == "trainer_eval":
            measure_with_evaluation(settings, done, progress)
        elif settings.mode == "env_only":
            measure_env(settings, done, progress)
        else:
            measure_training(settings, done, progress)
    finally:
        progress.close()
    return done


def measure_env(settings: Settings, done: list[Round], progress: Progress) -> None:
    """The repeats of the env alone."""
    runner: Runner | ReferenceRunner
    if settings.env_impl == "reference":
        runner, rows = ReferenceRunner(settings.worlds, settings.seed), 1
    else:
        load = Load(game="prospector", worlds=settings.worlds, threads=settings.threads, seed=settings.seed)
        runner, rows = Runner(load), settings.worlds
    try:
        if settings.warmup:
            runner.run(max(1, settings.warmup // rows))
        while len(done) < settings.repeats:
            done.append(runner.run(max(1, settings.steps // rows)))
            progress.step()
    finally:
        runner.close()


def spread(values: Sequence[float]) -> dict[str, float]:
    p50, p95, p99 = percentiles(values, (50.0, 95.0, 99.0))
    return {"min": min(values), "mean": mean(values), "p50": p50, "p95": p95, "p99": p99}


def record_of(settings: Settings, rounds: Sequence[Round]) -> dict[str, Any]:
    """Everything that was found, as an artefact."""
    rates = [r.per_wall_second for r in rounds]
    wall = spread(rates)
    known = settings.mode not in ("rollout", "trainer_eval")  # CPU time
    return artefact.record(
        KIND,
        settings.seed,
        settings.tree(),
        {"steps per wall second": artefact.sample(rates, "steps/s")},
        mode=settings.mode,
        env_impl="reference" if settings.env_impl == "reference" else "native",
        steps_per_second=wall,
        steps_per_cpu_second=spread([r.per_cpu_second for r in rounds]) if known else None,
        target=settings.target,
        reached=None if settings.target is None else wall["mean"] >= settings.target,
        rounds=[asdict(r) for r in rounds],
    )


SHAPE = ("mode", "env_impl", "worlds", "threads")  # of settings: only such runs are compared


def earlier(folder: Path, settings: Settings) -> list[Point]:
    """Saved runs of the same shape in a folder, whole ones."""
    found = []
    for path in sorted(folder.glob("*.json")):
        try:
            saved = artefact.read(path, KIND)
            values, mean = saved["samples"]["steps per wall second"]["values"], float(saved["steps_per_second"]["mean"])
            cv = coefficient_of_variation(values)
        except (ValueError, OSError, KeyError, TypeError):  # it is no run of ours
            continue
        same = all(saved["settings"].get(name) == getattr(settings, name) for name in SHAPE)
        if not same or not saved["finished"]:
            continue
        made = saved["machine"]
        commit = str(made["commit"]["hash"] or "none")[:10]
        shape = f"{settings.mode}, {count(settings.worlds, 'world')}, {count(settings.threads, 'thread')}"
        found.append(Point(path.stem[:16], "", commit, made["date"], shape, mean, cv))
    return found


def against(before: Sequence[Point], rate: float) -> str:
    """This run beside those that were there before it. It judges nothing: floors that are enforced are the gate's."""
    rates = [point.median for point in before]
    middle, runs = median(rates), count(len(rates), "earlier run")
    return f"{rate / middle:.2f}x of {short(middle)}, the median of {runs}; the lowest was {short(min(rates))}"


def lines_of(record: Mapping[str, Any], settings: Settings) -> list[str]:
    """The record for people."""
    shape = f"{count(settings.worlds, 'world')}, {count(settings.threads, 'thread')}, seed {settings.seed}"
    lines = [f"gridmill {KIND}: {settings.mode}, prospector, {record['env_impl']}, {shape}"]
    lines.append(f"{count(settings.repeats, 'repeat')} of {settings.steps:,} steps after {settings.warmup:,}")
    lines += [*machine.headline(record["machine"]), ""]
    names = ("min", "mean", "p50", "p95", "p99")
    found = {"per wall second": record["steps_per_second"], "per CPU second": record["steps_per_cpu_second"]}
    rows = [(title, *(short(values[name]) for name in names)) for title, values in found.items() if values]
    lines += table(("steps", *names), rows)
    if settings.target is not None:
        share = record["steps_per_second"]["mean"] / settings.target
        verdict = "reached" if record["reached"] else "missed"
        said = f"target {short(settings.target)} steps per second: {verdict}, the mean is {share:.2f} of it"
        lines += ["", said]
    return lines


def run(settings: Settings) -> int:
    """Measure, print, save. 1 if a target was to be enforced and the mean is below it, 130 stopped: to be continued."""
    settings.check()
    refuse_unwritable(settings.folder / "x.json")
    rounds: list[Round] = []
    if settings.resume is not None:
        then = artefact.continued(settings.resume, KIND, settings.tree(), "rounds")
        rounds = [Round(**one) for one in then["rounds"]]
    with stoppable() as stopped:
        measure(settings, rounds)
    if not rounds:
        print(f"{stopped[0]} before the first repeat was over; nothing is saved")
        return artefact.INTERRUPTED
    record = record_of(settings, rounds)
    missed = settings.enforce and not record["reached"]
    record |= {"finished": not stopped, "exit_code": artefact.INTERRUPTED if stopped else BELOW_TARGET if missed else 0}
    before = earlier(settings.folder, settings)
    path = artefact.write(record, artefact.place(record, settings.mode, settings.folder))
    print("\n".join(lines_of(record, settings)))
    if before:
        trend = trend_lines(earlier(settings.folder, settings), "steps/s")
        print("\n".join(["", *trend, "", *hang("this run: ", against(before, record["steps_per_second"]["mean"]))]))
    for reason in stopped:
        print(f"{reason} after {count(len(rounds), 'repeat')}; continue with --resume {path}")
    print(f"saved to {path}")
    return int(record["exit_code"])
