"""`gridmill ab A B`: two settings trained side by side in short blocks, and what the difference is worth.

A side is a recipe with overrides, environment switches and a git revision, in one text:
`ci trainer.async_factor=1 GRIDMILL_OBS_USE_OPTIMIZED=0 @HEAD~3`. For every seed both sides are started anew and take
turns A B, B A, A B ...; the first epochs warm up. Ratios are B to A, per CPU second and per wall second, with an
interval that, of three seeds or more, knows what differs between processes. Beside the measured gain stands the one
that Amdahl's law gives for the one phase that changed most. It trains and compares; what is learned is thrown away.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from gridmill.config.files import write_named
from gridmill.config.text import clipped, count, hang, short, table
from gridmill.env import switches
from gridmill.workshop import artefact, drawing, machine, revisions
from gridmill.workshop.progress import Progress, stoppable
from gridmill.workshop.statistics import Ratio, amdahl, grouped_ratio, mean, ratio_text

KIND = "ab"
NEEDED = ("agent_steps", "cpu_seconds", "wall_seconds", "phases", "core_ns", "score", "rss")
CLOCKS = {"cpu": "cpu_seconds", "wall": "wall_seconds"}
IN_ROLLOUT = ("env", "copy", "act", "teacher", "players", "store")
PARTS = ("rollout", *IN_ROLLOUT, "learn")
_SWITCH = re.compile(r"[A-Z][A-Z0-9_]*=.*")
Block = Mapping[str, Any]  # what a side answered
Blocks = list[list[Block]]  # by seed


@dataclass(frozen=True)
class Side:
    """One of the two: what is trained, with which switches, of which revision (empty: this one)."""

    recipe: str
    changes: tuple[str, ...] = ()
    environment: tuple[str, ...] = ()
    revision: str = ""
    preset: str = ""

    @property
    def text(self) -> str:
        shown = [self.recipe, *self.changes, *self.environment]
        return " ".join(shown + ([f"@{self.revision}"] if self.revision else []))


def side_of(text: str, recipe: str = "ci") -> Side:
    """A side as people write it; a word without = is the recipe, capitals before = are an environment switch."""
    changes, environment, revision, named = [], [], "", list[str]()
    for word in text.replace("@", " @").split():
        if word.startswith("@"):
            revision = word[1:]
        elif _SWITCH.fullmatch(word):
            environment.append(word)
        elif word.startswith("seed="):
            raise ValueError(f"seeds are given by --seeds, got `{word}` in `{text}`")
        elif "=" in word:
            changes.append(word)
        else:
            named.append(word)
    if len(named) > 1:
        raise ValueError(f"expected one recipe in `{text}`, got {' and '.join(named)}")
    for word in environment if not revision else ():  # another revision may have others
        if trouble := switches.unknown(word.partition("=")[0]):
            raise ValueError(f"{trouble} (in `{clipped(text)}`); the switches are {', '.join(switches.KNOWN)}")
    return Side(named[0] if named else recipe, tuple(changes), tuple(environment), revision)


@dataclass(frozen=True)
class Settings:
    """The two sides and how long they are compared."""

    a: Side
    b: Side
    seeds: tuple[int, ...] = (0, 1, 2)
    blocks: int = 4  # a seed
    epochs: int = 1  # a block
    warmup: int = 1  # epochs before the first block
    phases: bool = True  # time the phases of the core, in both
    output: Path | None = None
    resume: Path | None = None

    def check(self) -> None:
        least = {"--blocks": (self.blocks, 1), "--epochs": (self.epochs, 1), "--warmup": (self.warmup, 0)}
        for name, (value, lowest) in least.items():
            if value < lowest:
                raise ValueError(f"{name} must be at least {lowest}, got {value}")
        refuse_same_seeds(self.seeds)

    def tree(self) -> dict[str, Any]:
        """For the artefact, and to see whether it can be continued."""
        shown = {"a": self.a.text, "b": self.b.text, "seeds": list(self.seeds), "blocks": self.blocks}
        return shown | {"epochs": self.epochs, "warmup": self.warmup, "phases": self.phases}


def refuse_same_seeds(seeds: Sequence[int]) -> None:
    if not seeds or len(set(seeds)) < len(seeds):
        raise ValueError(f"--seeds takes different numbers like 0,1,2, got {','.join(map(str, seeds))}")


def start(side: Side, seed: int, phases: bool) -> machine.Worker:
    """A process of that side, ready."""
    order = {"recipe": side.recipe, "changes": side.changes, "seed": seed, "preset": side.preset}
    timed = [f"{switches.PROFILING}=1"] if phases else []
    python = revisions.python_of(revisions.site_of(side.revision) if side.revision else None)
    file = Path(__file__).with_name("ab_side.py")
    command = ["env", *timed, *side.environment, *python, str(file), json.dumps(order)]
    return machine.Worker(f"`{side.text}`", command, needed=("batch_size", "threads"))


def measure_seed(settings: Settings, seed: int, taken: tuple[list[Block], list[Block]], progress: Progress) -> None:
    """Both sides from the start, in turns: who is first changes with every block, which are `taken` as they come."""
    workers: list[machine.Worker] = []
    try:
        for side in (settings.a, settings.b):
            workers.append(start(side, seed, settings.phases))
        if settings.warmup:
            for worker in workers:
                worker.ask({"epochs": settings.warmup}, NEEDED)
        for block in range(settings.blocks):
            for index in (0, 1) if block % 2 == 0 else (1, 0):
                taken[index].append(workers[index].ask({"epochs": settings.epochs}, NEEDED))
            progress.step(f"seed {seed}")
    finally:
        for worker in workers:
            worker.close()


def in_pairs(a: Blocks, b: Blocks) -> tuple[Blocks, Blocks]:
    """The blocks that both sides have: what a stop in the middle of a pair leaves of it is compared with nothing."""
    pairs = [list(zip(*seed, strict=False)) for seed in zip(a, b, strict=False)]
    kept = [seed for seed in pairs if seed]
    return [[one for one, _ in seed] for seed in kept], [[other for _, other in seed] for seed in kept]


def whole_seeds(settings: Settings, blocks: Blocks) -> Blocks:
    """Only the seeds that have all their blocks: their processes are gone, so a part of one cannot be gone on with."""
    return [seed for seed in blocks if len(seed) == settings.blocks]


# ---- what it says


def rates(blocks: Blocks, clock: str) -> list[list[float]]:
    """Agent-steps per second, by seed and block."""
    return [[one["agent_steps"] / max(one[CLOCKS[clock]], 1e-9) for one in seed] for seed in blocks]


def score_ratio(a: Blocks, b: Blocks) -> Ratio | str:
    """Of the scores at the end of each seed; or why there is none."""
    ends = [[seed[-1]["score"] for seed in side] for side in (a, b)]
    if any(score is None for side in ends for score in side):
        return "no episode ended yet"
    if any(score <= 0 for side in ends for score in side):
        return f"not a ratio: {mean(ends[0]):.3f} and {mean(ends[1]):.3f}"
    return grouped_ratio([[s] for s in ends[1]], [[s] for s in ends[0]])


def phase_costs(blocks: Blocks) -> dict[str, float]:
    """All that take at least 0.2 % of the time, over all blocks."""
    found = costs_of([one for seed in blocks for one in seed])
    return {name: ns for name, ns in found.items() if ns >= 0.002 * found["all"]}


def costs_of(every: Sequence[Block]) -> dict[str, float]:
    """Nanoseconds of the wall clock per agent-step: the trainer's phases, and the core's as their parts of `env`.

    The core's threads time their phases by the same clock, all of them; what of it the trainer waited for is `env`.
    """
    steps = sum(one["agent_steps"] for one in every)
    found = {"all": 1e9 * sum(one["wall_seconds"] for one in every) / steps}
    for name in PARTS:
        found[name] = 1e9 * sum(one["phases"].get(name, 0.0) for one in every) / steps
        if name == "env":
            core = {p: sum(one["core_ns"].get(p, 0) for one in every) for p in every[0]["core_ns"]}
            whole = core.pop("total", 0)
            found |= {f"env/{p}": found["env"] * ns / whole for p, ns in core.items() if whole}
    return found


@dataclass(frozen=True)
class Predicted:
    """What Amdahl's law says of the phase that changed most."""

    phase: str
    share: float  # of A's time
    speedup: float  # of the phase, with its interval
    low: float
    high: float
    gain: float  # of all


def predicted(a: Blocks, b: Blocks) -> Predicted | None:
    """From the blocks of both sides: of the phases that surely differ the one that changed most; None if there is none.

    How much faster a phase is comes from pairs of blocks, its share from all of them.
    """
    costs = [phase_costs(blocks) for blocks in (a, b)]
    names = [name for name in costs[0] if name in costs[1]]
    whole = {name.partition("/")[0] for name in names if "/" in name} | {"all", "rollout"}
    changed = sorted(set(names) - whole, key=lambda name: -abs(costs[0][name] - costs[1][name]))
    for name in changed:
        each = [[[costs_of([one]).get(name, 0.0) for one in seed] for seed in blocks] for blocks in (a, b)]
        if min(ns for side in each for seed in side for ns in seed) <= 0:
            continue
        ratio = grouped_ratio(each[0], each[1])
        if ratio.separated:
            share = min(1.0, costs[0][name] / costs[0]["all"])
            phase, gain = name.removeprefix("env/"), amdahl(share, ratio.ratio)
            return Predicted(phase, share, ratio.ratio, ratio.low, ratio.high, gain)
    return None


def record_of(settings: Settings, a: Blocks, b: Blocks) -> dict[str, Any]:
    """Everything that was found, as an artefact."""
    done = len(whole_seeds(settings, a))
    found: dict[str, Any] = {"blocks": {"a": a, "b": b}, "done_seeds": done}
    samples = {}
    if a:
        costs = {"a": phase_costs(a), "b": phase_costs(b)}
        foreseen, score = predicted(a, b), score_ratio(a, b)
        found |= {
            "ratios": {clock: grouped_ratio(rates(b, clock), rates(a, clock)).tree() for clock in CLOCKS},
            "score": score.tree() if isinstance(score, Ratio) else score,
            "phase_costs": costs,
            "predicted": None if foreseen is None else asdict(foreseen),
        }
        for name, blocks in (("A", a), ("B", b)):
            values = [rate for seed in rates(blocks, "cpu") for rate in seed]
            samples[f"{name} per CPU second"] = artefact.sample(values, "agent-steps/s")
    record = artefact.record(KIND, settings.seeds[0], settings.tree(), samples, **found)
    return record | {"finished": done == len(settings.seeds)}


def lines_of(record: Mapping[str, Any]) -> list[str]:
    """The record for people."""
    blocks = record["blocks"]
    rows = []
    for clock, title in (("cpu", "steps per CPU s"), ("wall", "steps per wall s")):
        middle = [short(mean(r for seed in rates(blocks[side], clock) for r in seed)) for side in ("a", "b")]
        rows.append((title, *middle, ratio_text(record["ratios"][clock])))
    score = record["score"]
    ends = [[seed[-1]["score"] for seed in blocks[side]] for side in ("a", "b")]
    known = all(s is not None for side in ends for s in side)
    shown = [f"{mean(side):.3f}" if known else "-" for side in ends]
    rows.append(("score", *shown, score if isinstance(score, str) else ratio_text(score)))
    lines = table(("", "A", "B", "B / A [95 %]"), rows)
    a, b = record["phase_costs"]["a"], record["phase_costs"]["b"]
    costs = []
    for name in costs_of([one for seed in blocks["a"] for one in seed]):
        if name not in a and name not in b:
            continue
        inner = f"    {name[4:]}" if name.startswith("env/") else name
        label = f"  {name}" if name in IN_ROLLOUT else inner
        cells = [f(side.get(name, 0.0), side["all"]) for side in (a, b) for f in (_ns, _share)]
        costs.append((label, *cells, f"{a[name] / b[name]:.2f}x" if name in a and name in b else "-"))
    lines += ["", *table(("ns per agent-step", "A", "share", "B", "share", "A / B"), costs)]
    text = "no phase differs significantly between A and B"
    if record["predicted"] is not None:
        p = Predicted(**record["predicted"])
        times = f"{p.speedup:.2f}x [{p.low:.2f}, {p.high:.2f}] as fast in B"
        text = f"{p.phase}, {100 * p.share:.1f} % of A's time, is {times}: that alone gives {p.gain:.3f}x"
    cpu, wall = ratio_text(record["ratios"]["cpu"]), ratio_text(record["ratios"]["wall"])
    return [*lines, "", *hang("Amdahl: ", f"{text}; measured {wall} by the clock, {cpu} per CPU second")]


def _ns(cost: float, whole: float) -> str:
    return f"{cost:,.0f}"


def _share(cost: float, whole: float) -> str:
    return f"{100 * cost / whole:.1f} %"


def run(settings: Settings) -> int:
    """Measure, print, save. 0 fine, 130 if it was stopped: what was measured is saved, and can be continued."""
    settings.check()
    a, b = Blocks(), Blocks()
    if settings.resume is not None:
        then = artefact.continued(settings.resume, KIND, settings.tree(), "blocks")
        a, b = (whole_seeds(settings, then["blocks"][side]) for side in ("a", "b"))
    artefact.refuse_unsaved(KIND, settings.output)
    print("\n".join([*hang("A  ", settings.a.text), *hang("B  ", settings.b.text)]))
    print(
        f"{count(len(settings.seeds), 'seed')} x {count(settings.blocks, 'block')} of "
        f"{count(settings.epochs, 'epoch')} after {settings.warmup}, in turns",
        flush=True,
    )
    left = settings.seeds[len(a) :]
    record = record_of(settings, a, b)
    path = settings.output or artefact.place(record, "ab")
    progress = Progress(len(left) * settings.blocks, "blocks")
    with stoppable() as stopped:
        for seed in left:
            a.append([])
            b.append([])
            measure_seed(settings, seed, (a[-1], b[-1]), progress)
            artefact.write(record_of(settings, a, b), path)
    progress.close()
    a, b = in_pairs(a, b)
    record = record_of(settings, a, b)
    record["exit_code"] = artefact.INTERRUPTED if stopped else 0
    artefact.write(record, path)
    if a:
        print("\n".join([*machine.headline(record["machine"]), "", *lines_of(record)]))
        picture = path.with_suffix(".svg")
        write_named(picture, drawing.strips(record["samples"]).encode())
        print(f"\nplot: {picture}")
    for reason in stopped:
        done = f"{record['done_seeds']} of {len(settings.seeds)} seeds"
        print(f"{reason} after {done}, {count(sum(map(len, a)), 'pair')} of blocks; continue with --resume {path}")
    print(f"saved to {path}")
    return int(record["exit_code"])
