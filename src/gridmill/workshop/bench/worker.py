"""What `bench train` and `bench rollout` measure of our own, each in a process of its own with its own threads.

`python -m gridmill.workshop.bench.worker KIND RUN`, RUN the record of the run as JSON, KIND one of `trainer` (whole
epochs of our trainer, without files), `bound` (torch's own pieces of the same network) or `step` (the env alone). It
says in one JSON line that it is ready, then answers {"epochs": N}, each an epoch's worth of agent-steps, in the same
words as a peer. Failures are one line {"error": ...}, exit 2.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Mapping
from typing import Any, TextIO

import gridmill
from gridmill.policy import onednn
from gridmill.run import Run
from gridmill.workshop.runner import Load, Runner

Answer = dict[str, Any]
Part = tuple[dict[str, Any], Callable[[int], Answer]]  # what it says of itself, and what it does for so many epochs


def answer(epochs: int, agent_steps: int, cpu: float, wall: float) -> Answer:
    empty: Answer = {"phases": {}, "cpu_phases": {}}
    return {"epochs": epochs, "agent_steps": agent_steps, "cpu_seconds": cpu, "wall_seconds": wall, **empty}


def timed(epochs: int, batch_size: int, once: Callable[[], tuple[Mapping[str, float], Mapping[str, float]]]) -> Answer:
    """Call `once` per epoch; it returns seconds by phase, of the wall clock and of the CPU (may be empty)."""
    phases: dict[str, float] = {}
    cpu_phases: dict[str, float] = {}
    wall, cpu = time.perf_counter(), time.process_time()
    for _ in range(epochs):
        for sums, spent in zip((phases, cpu_phases), once(), strict=True):
            for name, seconds in spent.items():
                sums[name] = sums.get(name, 0.0) + seconds
    cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
    return answer(epochs, epochs * batch_size, cpu, wall) | {"phases": phases, "cpu_phases": cpu_phases}


def phases_of(metrics: Mapping[str, Any]) -> dict[str, float]:
    """`time/act` and its like of an epoch's metrics, without the prefix."""
    return {name.removeprefix("time/"): float(s) for name, s in metrics.items() if name.startswith("time/")}


def torch_says(threads: int) -> dict[str, Any]:
    onednn.settle()
    import torch

    torch.set_num_threads(threads)
    return {"torch": torch.__version__}


def trainer(run: Run) -> Part:
    """Our trainer, from its first epoch on."""
    said = torch_says(run.trainer.threads)
    from gridmill.train.trainer import Trainer
    from gridmill.workshop.bench.plain_network import num_weights

    subject = Trainer(run, None)
    said["num_weights"] = num_weights(subject.policy)
    return said, lambda epochs: timed(epochs, run.trainer.batch_size, lambda: (phases_of(subject.epoch()), {}))


def bound(run: Run) -> Part:
    """Act and learn in plain torch, nothing else."""
    said = torch_says(run.trainer.threads)
    from gridmill.workshop.bench.plain_network import Pieces, num_weights

    with gridmill.make(run.game, num_worlds=1) as env:
        obs_size, num_actions, agents = env.obs.shape[1], env.num_actions, env.num_agents
    pieces = Pieces(run, obs_size, num_actions, run.trainer.num_worlds * agents)
    said["num_weights"] = num_weights(pieces.parts)

    def once() -> tuple[Mapping[str, float], Mapping[str, float]]:
        watch = pieces.epoch()
        return watch.wall, watch.cpu

    return said, lambda epochs: timed(epochs, run.trainer.batch_size, once)


def step(run: Run) -> Part:
    """The env with random actions drawn ahead."""
    env = gridmill.make(
        run.game,
        num_worlds=run.trainer.num_worlds,
        seed=run.seed,
        threads=run.trainer.threads,
        masks=run.trainer.masks,
        desync_episodes=run.trainer.desync_episodes,
    )
    env.reset()
    runner = Runner(Load(worlds=env.num_worlds, threads=env.threads, seed=run.seed), env)
    steps = max(1, run.trainer.batch_size // env.num_rows)

    def walk(epochs: int) -> Answer:
        found = runner.run(epochs * steps)
        return answer(epochs, found.agent_steps, found.cpu_seconds, found.wall_seconds)

    return {}, walk


KINDS: dict[str, Callable[[Run], Part]] = {"trainer": trainer, "bound": bound, "step": step}


def serve(arguments: list[str], out: TextIO) -> None:
    kind, record = arguments
    said, work = KINDS[kind](Run.model_validate_json(record))
    print(json.dumps({"ready": True, "name": kind, **said}), file=out, flush=True)
    for line in sys.stdin:
        print(json.dumps(work(int(json.loads(line)["epochs"]))), file=out, flush=True)


def main() -> int:
    # Whatever a library prints must not come between the answers.
    out = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    try:
        serve(sys.argv[1:], out)
    except Exception as error:
        print(json.dumps({"error": " ".join(f"{type(error).__name__}: {error}".split())}), file=out, flush=True)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
