"""`gridmill profile train`: where the time of training goes, and what to change.

Trains a recipe shortly with everything that times on: the tree of every K-th rollout, the core's phases, and a trace of
torch's operators, our own parts and the core's threads on one time line. Ends with the operators that take most, and
with advice, each line with the figure it is drawn from.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from gridmill import recipes
from gridmill.config.text import hang, short, table
from gridmill.run import Run
from gridmill.runs import overrides, presets
from gridmill.runs.lines import read_records
from gridmill.runs.rollout_timing import remedies
from gridmill.workshop import artefact
from gridmill.workshop.statistics import amdahl, mean

KIND = "profile train"
NOTHING = 1  # exit code
TOP = 12  # operators shown
PARTS = ("env", "act", "copy", "store", "teacher", "players", "learn")


@dataclass(frozen=True)
class Traced:
    """What the trace has in it."""

    torch: bool = True
    native: bool = True
    wait: int = 2
    warmup: int = 2
    active: int = 4
    shapes: bool = False
    memory: bool = False
    stacks: bool = False


@dataclass(frozen=True)
class Settings:
    """What is trained, how long, and what is looked at."""

    recipe: str
    changes: tuple[str, ...] = ()
    steps: int = 10_000
    rollout_timing: int = 10
    traced: Traced = Traced()
    expected_sps: float | None = None
    runs_dir: Path = Path("runs")
    resume: Path | None = None

    def tree(self) -> dict[str, Any]:
        """For the artefact, and to see whether it can be continued."""
        return {name: value for name, value in asdict(self).items() if name not in ("runs_dir", "resume")}

    def check(self) -> None:
        least = {"--steps": (self.steps, 1), "--rollout-timing": (self.rollout_timing, 0)}
        least |= {"--wait": (self.traced.wait, 0), "--warmup": (self.traced.warmup, 0)}
        least["--active"] = (self.traced.active, 1)
        for name, (value, lowest) in least.items():
            if value < lowest:
                raise ValueError(f"{name} must be at least {lowest}, got {value}")


def planned(settings: Settings) -> Run:
    """The run, with everything that times switched on; what is changed by hand wins.

    It has two epochs at least, since the first warms up, and one of them is shown as a tree.
    """
    t, recipe = settings.traced, presets.fill(recipes.build(settings.recipe))
    batch = overrides.apply(recipe, settings.changes).trainer.batch_size
    steps = max(settings.steps, 2 * batch)
    changes = {
        "run": f"profile-{Path(settings.recipe).stem}-{datetime.now():%Y%m%d-%H%M%S}",
        "trainer.total_timesteps": steps,
        "evaluation.enabled": False,
        "profiler.enabled": t.torch,
        "profiler.interval_epochs": 10**6,
        "profiler.wait_steps": t.wait,
        "profiler.warmup_steps": t.warmup,
        "profiler.active_steps": t.active,
        "profiler.record_shapes": t.shapes,
        "profiler.memory": t.memory,
        "profiler.stacks": t.stacks,
        "profiler.core": t.native,
        "profiler.rollout_timing": min(settings.rollout_timing, steps // batch),
    }
    return overrides.apply(overrides.change(recipe, changes.items()), settings.changes)


# ---- what the trace says


def read_trace(path: Path) -> list[dict[str, Any]]:
    """The events of a trace file."""
    return list(json.loads(path.read_text(encoding="utf-8"))["traceEvents"])


def operators(events: Sequence[Mapping[str, Any]]) -> list[tuple[str, int, float]]:
    """Torch's operators by the time of their own (without those they call): name, calls, milliseconds."""
    ops = [e for e in events if e.get("cat") == "cpu_op" and e.get("ph") == "X"]
    ops.sort(key=lambda e: (e["tid"], float(e["ts"]), -float(e["dur"])))
    own = [float(op["dur"]) for op in ops]
    around: list[int] = []  # operators that are not over yet, the innermost last
    for index, op in enumerate(ops):
        end = float(op["ts"]) + float(op["dur"])
        while around and not _holds(ops[around[-1]], op["tid"], end):
            around.pop()
        if around:
            own[around[-1]] -= float(op["dur"])
        around.append(index)
    sums: dict[str, list[float]] = {}
    for op, micros in zip(ops, own, strict=True):
        sums.setdefault(str(op["name"]), []).append(micros)
    found = [(name, len(each), sum(each) / 1e3) for name, each in sums.items()]
    return sorted(found, key=lambda row: -row[2])


def _holds(outer: Mapping[str, Any], thread: Any, end: float) -> bool:
    return bool(outer["tid"] == thread and float(outer["ts"]) + float(outer["dur"]) >= end)


def trace_lines(path: Path) -> list[str]:
    """The file, who is in it, and its operators that take most."""
    events = read_trace(path)
    names = {e["tid"]: e["args"]["name"] for e in events if e.get("name") == "thread_name"}
    kinds = {"cpu_op": "operators", "gridmill": "parts", "core": "phases"}
    rows = []
    for thread, name in names.items():
        counts = [sum(e.get("cat") == kind and e["tid"] == thread for e in events) for kind in kinds]
        rows.append((name, *map(str, counts)))
    ops = operators(events)
    whole = sum(ms for *_, ms in ops) or 1.0
    shown = [(name[:44], str(calls), f"{ms:.2f}", f"{100 * ms / whole:.1f} %") for name, calls, ms in ops[:TOP]]
    backward = sum(e.get("name") == "backward" and e.get("cat") == "gridmill" for e in events)
    lines = [f"trace: {path}", "(open it in ui.perfetto.dev or chrome://tracing)", ""]
    lines += table(("thread", *kinds.values()), rows)
    lines += ["", f"backward passes: {backward}", ""]
    return lines + table(("operator", "calls", "own ms", "share"), shown)


# ---- advice


def shares_of(records: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    """Shares of the epochs' time, the first epoch left out where there are others; with sps, and what was monitored."""
    epochs = [r for r in records if "time/rollout" in r]
    epochs = epochs[1:] or epochs
    whole = sum(r["time/rollout"] + r["time/learn"] for r in epochs)
    names = ("rollout", *PARTS)
    found = {name: sum(r.get(f"time/{name}", 0.0) for r in epochs) / whole for name in names}
    found["sps"] = mean([r["sps"] for r in epochs])
    for name in ("cpu/util", "gpu/util", "memory/rss"):
        known = [r[name] for r in records if name in r]
        if known:
            found[name] = mean(known)
    return found


LEARN_REMEDY = "fewer trainer.update_epochs, a larger trainer.minibatch_size, a smaller policy.hidden"
BOUND = {"act": "forward"}  # parts that the field has another word for


def advice(found: Mapping[str, float], expected_sps: float | None = None) -> list[str]:
    """What to change, drawn from the shares: the bottleneck with what Amdahl allows, then the seeds' verdicts."""
    part = max(PARTS, key=lambda name: found[name])
    name, remedy = f"{BOUND.get(part, part)}-bound", remedies().get(part, LEARN_REMEDY)
    gains = f"at most {amdahl(found[part], 1e9):.2f}x if it were free, {amdahl(found[part], 2.0):.2f}x if twice as fast"
    lines = [f"{name}: {part} is {100 * found[part]:.0f} % of the time, {gains}; {remedy}"]
    balance = found["rollout"] / max(found["learn"], 1e-9)
    if not 0.5 <= balance <= 2.0:
        more = "learning" if balance < 1 else "the rollout"
        lines.append(f"out of balance: rollout to learning is {balance:.2f}, {more} dominates; the other waits for it")
    if found.get("gpu/util", 1.0) < 0.9:
        lines.append(f"the GPU is busy {100 * found['gpu/util']:.0f} % of the time, below 90 %: larger batches")
    if expected_sps is not None and found["sps"] < 0.5 * expected_sps:
        lines.append(
            f"{short(found['sps'])} steps per second are below half of the expected {short(expected_sps)}: "
            "look at the machine's load first (cpu/util), then at the bottleneck above"
        )
    if found.get("cpu/util", 1.0) < 0.5:
        lines.append(
            f"cores are busy {100 * found['cpu/util']:.0f} % of the time: other processes use them, or threads wait"
        )
    return lines


def run(settings: Settings) -> int:
    """Train, look, say. The exit code is the training's, 1 if it had no whole epoch."""
    settings.check()
    planned_run = planned(settings)
    then = None
    if settings.resume is not None:
        then = artefact.continued(settings.resume, KIND, settings.tree(), "run")
    artefact.refuse_unsaved(KIND, None)
    from gridmill.runs import session

    if then is None:
        done = session.train(planned_run, settings.runs_dir)
    else:
        done = session.resume(settings.runs_dir / then["run"])
    records = read_records(done.folder / "metrics.jsonl")
    if not any("time/rollout" in one for one in records):
        print("gridmill: no epoch was finished, so there are no times to show", file=sys.stderr)
        return done.exit_code or NOTHING
    found = shares_of(records)
    rows = [(name, f"{100 * found[name]:.1f} %") for name in ("rollout", *PARTS) if found[name] >= 0.001]
    print("\n".join(["", *table(("share of the time", ""), rows)]))
    files = sorted((done.folder / "traces").glob("profiler_trace_*.json"))
    for file in files:
        print("\n".join(["", *trace_lines(file)]))
    said = advice(found, settings.expected_sps)
    print("\nadvice")
    for line in said:
        print("\n".join(hang("- ", line)))
    samples = {"sps": artefact.sample([r["sps"] for r in records if "sps" in r], "agent-steps/s")}
    own = {"run": done.folder.name, "shares": found, "advice": said, "traces": [file.name for file in files]}
    record = artefact.record(KIND, planned_run.seed, settings.tree(), samples, **own)
    record |= {"exit_code": done.exit_code, "finished": done.exit_code == 0}
    path = artefact.write(record, artefact.place(record, planned_run.recipe))
    if done.exit_code in artefact.STOPPED:
        print(f"continue with --resume {path}")
    print(f"saved to {path}")
    return done.exit_code
