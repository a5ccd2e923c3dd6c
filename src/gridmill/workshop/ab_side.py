"""One side of `gridmill ab`: a trainer without files that runs epochs as it is told and says what they took.

Started as a file, not as a module, so that the package of any revision can be behind it: it asks for nothing but what
the package had from its first trainer on. One JSON line says that it is ready; {"epochs": N} is answered with one line.
Failures are {"error": ...}, exit 2.
"""

from __future__ import annotations

import json
import os
import sys
import time
from typing import Any


def made(order: dict[str, Any]) -> Any:
    """The trainer of a recipe with changes and a preset."""
    from gridmill import recipes
    from gridmill.runs import overrides, presets
    from gridmill.train.trainer import Trainer

    plain, preset = recipes.build(order["recipe"]), order.get("preset")
    run = presets.apply(plain, preset) if preset else presets.fill(plain)
    changes = ["evaluation.enabled=false", *order["changes"], f"seed={order['seed']}"]
    return Trainer(overrides.apply(run, changes))


def core_ns(env: Any) -> dict[str, int]:
    """Nanoseconds of the core's threads by phase so far; nothing unless they are timed."""
    return {name: int(ns) for name, ns in (env.step_timing_total or {}).items() if name not in ("wall", "steps")}


def epochs(trainer: Any, count: int) -> dict[str, Any]:
    """So many epochs: agent-steps, seconds, seconds by phase of the trainer and of the core, the score now."""
    phases: dict[str, float] = {}
    before, steps = core_ns(trainer.env), trainer.agent_steps
    wall, cpu = time.perf_counter(), time.process_time()
    for _ in range(count):
        for name, value in trainer.epoch().items():
            if name.startswith("time/"):
                phases[name[5:]] = phases.get(name[5:], 0.0) + float(value)
    cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
    core = {name: ns - before.get(name, 0) for name, ns in core_ns(trainer.env).items()}
    score = float(trainer.recent.mean()) if len(trainer.recent) else None
    found = {"agent_steps": trainer.agent_steps - steps, "cpu_seconds": cpu, "wall_seconds": wall, "phases": phases}
    return found | {"core_ns": core, "score": score, "rss": _resident()}


def _resident() -> int:
    import psutil

    return int(psutil.Process().memory_info().rss)


def main() -> int:
    # Whatever a library prints must not come between the answers.
    out = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    try:
        trainer = made(json.loads(sys.argv[1]))
        sizes = {"batch_size": trainer.sizes.batch_size, "threads": trainer.sizes.threads}
        print(json.dumps({"ready": True, **sizes}), file=out, flush=True)
        for line in sys.stdin:
            print(json.dumps(epochs(trainer, int(json.loads(line)["epochs"]))), file=out, flush=True)
    except Exception as error:
        print(json.dumps({"error": " ".join(f"{type(error).__name__}: {error}".split())}), file=out, flush=True)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
