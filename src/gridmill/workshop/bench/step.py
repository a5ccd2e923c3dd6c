"""`gridmill bench step`: how fast the env steps, with random actions drawn ahead and no policy.

One path for everything: labelled steppers (ours, a peer, another batch shape) take their rounds in turn; the first is
the subject, the others are compared with it. It measures the env alone, and states no figure without the machine,
commit, command and seed beside it.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from gridmill.config.text import count, hang, short, table
from gridmill.runs.core_report import phase_lines
from gridmill.workshop import artefact, machine
from gridmill.workshop.profile import (
    Load,
    Round,
    Runner,
    instructions,
    resident_per_world,
    swept,
)
from gridmill.workshop.statistics import (
    Point,
    Ratio,
    between_runs,
    independent_ratio,
    paired_ratio,
    summarise,
    trend_lines,
)

KIND = "bench step"
UNSTABLE_CV = 0.20
VERDICTS = ("stable", "unstable: a CV is above 20 %", "the fast observations differ from the reference")


@dataclass(frozen=True)
class Settings:
    """Everything the command line can ask of a measurement."""

    load: Load = field(default_factory=Load)
    iterations: int = 20_000
    rounds: int = 20
    warmup: int = 150_000
    output: Path | None = None
    baseline: tuple[Path, ...] = ()
    phase: str | None = None
    peers: bool = False
    sweep: str | None = None
    overhead: bool = False
    instructions: bool = False

    def check(self) -> None:
        """Refuse what cannot be measured before anything starts."""
        load = self.load
        for name, value, least in (
            ("--iterations", self.iterations, 1),
            ("--rounds", self.rounds, 1),
            ("--warmup", self.warmup, 0),
            ("--worlds", load.worlds, 1),
            ("--threads", load.threads, 1),
            ("--lanes", load.lanes, 1),
        ):
            if value < least:
                raise ValueError(f"{name} must be at least {least}, got {value}")
        if sum((self.peers, self.sweep is not None, self.overhead)) > 1:
            raise ValueError("--peers, --sweep and --overhead are different comparisons; give one of them")
        if self.peers and load.game != "toy":
            raise ValueError(f"--peers compares the game toy alone, got --game {load.game}")


class Peer:
    """Another engine in a process of its own."""

    def __init__(self, python: Path, script: Path, arguments: Sequence[str]) -> None:
        self.rows = int(arguments[arguments.index("--agents") + 1])
        command = [str(python), str(script), *arguments]
        self._worker = machine.Worker(f"peer {script.stem}", command, needed=("window", "tokens_per_row"))
        self.ready = self._worker.ready
        self.name = str(self.ready.get("peer", script.stem))

    def run(self, steps: int) -> Round:
        said = self._worker.ask({"steps": steps}, ("agent_steps", "cpu_seconds", "wall_seconds"))
        return Round(steps, said["agent_steps"], said["cpu_seconds"], said["wall_seconds"])

    def memory_per_world(self) -> int:
        return int(self._worker.ask({"memory": True}, ("rss_bytes_per_world",))["rss_bytes_per_world"])

    def close(self) -> None:
        self._worker.close()


Stepper = Runner | Peer  # what takes a turn


def start_peers(load: Load, num_tokens: int, view: int) -> tuple[list[Peer], list[str]]:
    """Every stepping worker under bench/peers, and the reasons of those that would not start."""
    folder, python = machine.beside("bench/peers"), machine.beside(".venv-peers/bin/python")
    if folder is None:
        raise ValueError("no folder bench/peers here or in the checkout; run from a checkout of gridmill")
    if python is None:
        raise ValueError("the peers' own environment .venv-peers is missing; make it with `make peers`")
    sizes: dict[str, Any] = {"agents": load.agents, "map-size": load.map_size, "density": load.density}
    sizes |= {"seed": load.seed, "window": load.window, "tokens": num_tokens, "view": view}
    arguments = [word for name, value in sizes.items() for word in (f"--{name}", str(value))]
    started: list[Peer] = []
    reasons: list[str] = []
    for script in sorted(folder.glob("*_step.py")):
        try:
            started.append(Peer(python, script, arguments))
        except machine.WorkerError as reason:
            reasons.append(str(reason))
    if not started:
        raise ValueError("no peer could start: " + ("; ".join(reasons) or "bench/peers holds no worker"))
    return started, reasons


def gather(settings: Settings) -> tuple[dict[str, Stepper], list[str]]:
    """The steppers that take turns, the subject first, and notes for the reader."""
    load = settings.load
    if settings.sweep is not None:
        return {label: Runner(one) for label, one in swept(load, settings.sweep).items()}, []
    if settings.overhead:
        on = {"profiling off": False, "profiling on": True}
        return {label: Runner(replace(load, profiling=value)) for label, value in on.items()}, []
    if not settings.peers:
        return {"gridmill": Runner(load)}, []
    own = replace(load, agents=load.agents or 20, map_size=load.map_size or 40, window=load.window or "disc")
    own = replace(own, density=0.04 if own.density is None else own.density)
    runner = Runner(own)
    shapes = runner.env.vocabulary()
    peers, notes = start_peers(own, shapes["num_tokens"], shapes["window"][0])
    steppers: dict[str, Stepper] = {f"gridmill {own.window}": runner}
    for peer in peers:
        window = str(peer.ready["window"])
        steppers[f"{peer.name} {peer.ready.get('version', '')} {window}".replace("  ", " ")] = peer
        if window != own.window:
            notes.append(f"{peer.name} has a {window} window, ours is {own.window}: not the same work")
    if load.window is None:
        steppers["gridmill square"] = Runner(replace(own, window="square"))
    return steppers, notes


def take_turns(steppers: Mapping[str, Stepper], settings: Settings) -> dict[str, list[Round]]:
    """Warm up, then round by round every stepper in turn, with equal agent-steps for each of our own."""
    subject = next(iter(steppers.values()))
    share = {name: 1.0 if isinstance(s, Peer) else subject.rows / s.rows for name, s in steppers.items()}
    rounds: dict[str, list[Round]] = {name: [] for name in steppers}
    watched = sys.stderr.isatty()
    for name, stepper in steppers.items():
        # A peer is tens of times slower and compiles nothing as it goes: one round warms it up.
        warmup = min(settings.warmup, settings.iterations) if isinstance(stepper, Peer) else settings.warmup
        if warmup:
            stepper.run(max(1, round(warmup * share[name])))
    for turn in range(settings.rounds):
        if watched:
            print(f"\rround {turn + 1} of {settings.rounds} ", end="", file=sys.stderr, flush=True)
        for name, stepper in steppers.items():
            rounds[name].append(stepper.run(max(1, round(settings.iterations * share[name]))))
    if watched:
        print("\r" + " " * 40 + "\r", end="", file=sys.stderr, flush=True)
    return rounds


def run_record(label: str, stepper: Stepper, rounds: Sequence[Round], settings: Settings) -> dict[str, Any]:
    """One stepper's rounds and everything known about it, ready for JSON."""
    record: dict[str, Any] = {
        "label": label,
        "rows": stepper.rows,
        "per_cpu_second": asdict(summarise(r.per_cpu_second for r in rounds)),
        "per_wall_second": asdict(summarise(r.per_wall_second for r in rounds)),
        "rounds": [asdict(r) for r in rounds],
    }
    if isinstance(stepper, Peer):
        return record | {
            "peer": stepper.ready,
            "tokens_per_row": float(stepper.ready["tokens_per_row"]),
            "resident_per_world": stepper.memory_per_world(),
        }
    env = stepper.env
    tokens, ticks = stepper.tokens_per_row(), sum(r.steps for r in rounds) * int(env.num_worlds)
    record |= {
        "load": asdict(stepper.load),
        "num_agents": int(env.num_agents),
        "num_tokens": int(env.obs.shape[1]) if env.obs_kind == "tokens" else 0,
        "tokens_per_row": tokens,
        "bytes_per_row": int(env.obs[0].nbytes),
        "bytes_written_per_agent_step": 3 * tokens if env.obs_kind == "tokens" else float(env.obs[0].nbytes),
        "allocations_per_tick": sum(r.allocations or 0 for r in rounds) / ticks,
        "memory": stepper.memory(),
        "validation": stepper.validation(),
    }
    if settings.peers:
        # Memory the process already had may be used again and not show, so never less than what is known.
        record["resident_per_world"] = max(resident_per_world(stepper.load), sum(record["memory"].values()))
    return record


def limits(runner: Runner, record: Mapping[str, Any]) -> dict[str, Any]:
    """The limit set by memory: plain memcpy of whole rows, and of only the bytes that were written."""
    rate, found = record["per_cpu_second"]["median"], {}
    sizes = {"row": record["bytes_per_row"], "written": round(record["bytes_written_per_agent_step"])}
    if sizes["row"] == sizes["written"]:
        del sizes["written"]
    for name, size in sizes.items():
        limit = runner.memcpy_limit(size)
        found[name] = {"bytes": size, "rows_per_second": limit, "share": rate / limit}
    return found


def compare(rounds: Mapping[str, Sequence[Round]], runs: Sequence[dict[str, Any]]) -> None:
    """Write into every run but the first its ratio to the first; beside peers, the first's ratio to it."""
    first, peers = rounds[runs[0]["label"]], any("peer" in run_ for run_ in runs)
    for run_ in runs[1:]:
        other = rounds[run_["label"]]
        for rate in ("per_cpu_second", "per_wall_second"):
            a, b = [getattr(r, rate) for r in other], [getattr(r, rate) for r in first]
            run_[f"ratio_{rate}"] = asdict(paired_ratio(b, a) if peers else paired_ratio(a, b))


def read_saved(path: Path) -> dict[str, Any]:
    """A run saved with --output."""
    try:
        saved = json.loads(path.read_text(encoding="utf-8"))
    except ValueError:
        saved = None
    known = (KIND, f"gridmill {KIND}")  # as it was called before artefacts had one form
    if not isinstance(saved, dict) or saved.get("kind") not in known or not saved.get("runs"):
        raise ValueError(f"`{path.name}` is not a run saved by `gridmill bench step --output`")
    return saved


def _phase_costs(run_: Mapping[str, Any]) -> dict[str, list[float]]:
    """ns per agent-step and round, by phase; empty without profiling."""
    rounds = [r for r in run_["rounds"] if r["phases"]]
    names = [name for name in (rounds[0]["phases"] if rounds else ()) if name not in ("wall", "steps")]
    return {name: [r["phases"][name] / r["agent_steps"] for r in rounds] for name in names}


def against_baseline(record: Mapping[str, Any], saved: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Now against a saved run: rates (above 1 is faster) and time by phase (below 1 is faster)."""
    now, then = record["runs"][0], saved["runs"][0]
    rates = [[r["agent_steps"] / max(r["cpu_seconds"], 1e-9) for r in run_["rounds"]] for run_ in (now, then)]
    costs, before = _phase_costs(now), _phase_costs(then)
    shared = [name for name in costs if name in before and min(costs[name]) > 0 and min(before[name]) > 0]
    differing = [k for k, v in now["load"].items() if then.get("load", {}).get(k) != v]
    if record["machine"]["cpu"]["model"] != saved["machine"]["cpu"]["model"]:
        differing.append("CPU")
    return {
        "file": name,
        "phase": saved.get("phase"),
        "commit": saved["machine"]["commit"]["hash"],
        "differs_in": differing,
        "per_cpu_second": asdict(between_runs(independent_ratio(*rates))),
        "phases": {name: asdict(between_runs(independent_ratio(costs[name], before[name]))) for name in shared},
    }


def measure(settings: Settings, steppers: Mapping[str, Stepper]) -> dict[str, Any]:
    """Everything that was asked for, as one record ready for JSON."""
    try:
        rounds = take_turns(steppers, settings)
        runs = [run_record(label, stepper, rounds[label], settings) for label, stepper in steppers.items()]
        subject = next(iter(steppers.values()))
        assert isinstance(subject, Runner)
        runs[0]["memcpy"] = limits(subject, runs[0])
        runs[0]["instructions"] = instructions(subject.load, subject.rows, settings.instructions)
    finally:
        for stepper in steppers.values():
            stepper.close()
    compare(rounds, runs)
    mismatches = sum(r["validation"]["mismatches"] for r in runs if r.get("validation"))
    steady = all(r[f"per_{clock}_second"]["cv"] <= UNSTABLE_CV for r in runs for clock in ("cpu", "wall"))
    asked = {"iterations": settings.iterations, "warmup": settings.warmup, "rounds": settings.rounds}
    samples = {}
    for run_ in runs:
        rates = [r["agent_steps"] / max(r["cpu_seconds"], 1e-9) for r in run_["rounds"]]
        samples[run_["label"]] = artefact.sample(rates, "agent-steps/CPU s")
    found = artefact.record(KIND, settings.load.seed, asked, samples, phase=settings.phase, runs=runs)
    return found | {"exit_code": 2 if mismatches else 0 if steady else 1}


def _rate_row(name: str, rate: Mapping[str, float]) -> tuple[str, ...]:
    spread = f"{short(rate['low'])} to {short(rate['high'])}"
    return name, short(rate["median"]), short(rate["mean"]), f"{100 * rate['cv']:.1f} %", spread


def subject_lines(run_: Mapping[str, Any]) -> list[str]:
    """The subject in full: rates, then the counts that noise cannot touch."""
    rates = [_rate_row(f"per {name} second", run_[f"per_{name.lower()}_second"]) for name in ("CPU", "wall")]
    memory, counted = run_["memory"], run_["instructions"]
    facts = [
        ("agents per world", f"{run_['num_agents']}"),
        *([("tokens per row", f"{run_['tokens_per_row']:.1f} of {run_['num_tokens']}")] if run_["num_tokens"] else []),
        ("bytes written per agent-step", f"{run_['bytes_written_per_agent_step']:.1f}"),
        ("allocations per tick", f"{run_['allocations_per_tick']:.4f}"),
        ("memory per world", f"{memory['world']:,} bytes, and {memory['rows']:,} in its rows"),
    ]
    for limit in run_["memcpy"].values():
        reached = f"{short(limit['rows_per_second'])} rows/s, this is {100 * limit['share']:.1f} % of it"
        facts.append((f"memcpy limit, {limit['bytes']} bytes", reached))
    if "reason" in counted:
        facts.append(("instructions per agent-step", "not counted"))
    else:
        text = f"{counted['per_agent_step']:.0f} ({counted['tool']}, {counted['path']} path)"
        facts.append(("instructions per agent-step", text))
    seen = run_["validation"]
    if seen is not None:
        facts.append(("observations compared", f"{seen['comparisons']:,}, {seen['mismatches']:,} differ"))
        facts.append(("reference / fast time", f"{seen['ratio']:.2f}x"))
    lines = table(("agent-steps", "median", "mean", "CV", "95 % of the median"), rates)
    lines += ["", *(f"{name:<30}{text}" for name, text in facts)]
    if "reason" in counted:
        lines += hang("", f"({counted['reason']})")
    if seen is not None and seen["first_mismatch"]:
        lines += hang("", f"first mismatch: {seen['first_mismatch']}")
    return lines


def comparison_lines(runs: Sequence[Mapping[str, Any]]) -> list[str]:
    """Everybody beside the subject, per CPU second and per wall second."""
    lines: list[str] = []
    for name in ("CPU", "wall"):
        rate = f"per_{name.lower()}_second"
        rows = []
        for run_ in runs:
            ratio = str(Ratio(**run_[f"ratio_{rate}"])) if f"ratio_{rate}" in run_ else "-"
            found = run_[rate]
            rows.append((run_["label"], short(found["median"]), f"{100 * found['cv']:.1f} %", ratio))
        peers = any("peer" in run_ for run_ in runs)
        versus = f"{runs[0]['label']} / it" if peers else f"ratio to {runs[0]['label']}"
        lines += ["", *table((f"per {name} second", "median", "CV", f"{versus} [95 %]"), rows)]
    facts = [(r["label"], f"{r['tokens_per_row']:.1f}", f"{_world_bytes(r):,}") for r in runs]
    return [*lines, "", *table(("", "tokens per row", "bytes per world"), facts)]


def _world_bytes(run_: Mapping[str, Any]) -> int:
    return int(run_["resident_per_world"] if "resident_per_world" in run_ else sum(run_["memory"].values()))


def baseline_lines(found: Mapping[str, Any]) -> list[str]:
    """One comparison with a saved run."""
    label = f" ({found['phase']})" if found["phase"] else ""
    lines = ["", f"against {found['file']}{label}, rate now / then: {Ratio(**found['per_cpu_second'])}"]
    lines += hang(
        "",
        "(runs at different times differ by themselves, which the interval counts in; `gridmill ab` is sharper)",
    )
    if found["differs_in"]:
        lines += hang("", f"careful, not the same load: {', '.join(found['differs_in'])} differ")
    rows = [(name, Ratio(**ratio)) for name, ratio in found["phases"].items()]
    return lines + (table(("phase", "time now / then [95 %]"), rows) if rows else [])


def report(folder: Path) -> int:
    """A summary of every saved run in a folder: table, trend by commit, and a plot. Measures nothing."""
    if not folder.is_dir():
        raise ValueError(f"--report takes a folder of saved runs, and `{folder}` is none")
    points = []
    for path in sorted(folder.glob("*.json")):
        try:
            saved = read_saved(path)
        except ValueError as reason:
            print(f"left out: {reason}")
            continue
        run_, made = saved["runs"][0], saved["machine"]
        load = run_["load"]
        batch = [count(load[f"{noun}s"], noun) for noun in ("world", "thread", "lane")]
        shape = ", ".join([load["game"], count(run_["num_agents"], "agent"), *batch])
        rate, commit = run_["per_cpu_second"], str(made["commit"]["hash"] or "none")[:10]
        points.append(Point(path.stem, saved["phase"] or "", commit, made["date"], shape, rate["median"], rate["cv"]))
    if not points:
        raise ValueError(f"no saved runs in `{folder}`; save one with `gridmill bench step --output FILE`")
    print("\n".join(trend_lines(points)))
    try:
        import matplotlib
    except ImportError:
        needed = list(machine.extras().get("plots", ("matplotlib",)))
        print(f"\nno plot: matplotlib is missing; {machine.install_command(needed)}")
        return 0
    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(8, 4.5), layout="constrained")
    for shape in dict.fromkeys(point.shape for point in points):
        own = sorted((p for p in points if p.shape == shape), key=lambda p: p.date)
        axes.plot([p.date[:16] for p in own], [p.median for p in own], marker="o", label=shape)
    axes.set(xlabel="date (UTC)", ylabel="agent-steps per CPU second", title="bench step")
    axes.set_ylim(bottom=0)
    axes.tick_params(axis="x", rotation=30)
    axes.legend()
    figure.savefig(folder / "report.png")
    pyplot.close(figure)
    print(f"\nplot: {folder / 'report.png'}")
    return 0


def lines_of(record: Mapping[str, Any], settings: Settings) -> list[str]:
    """The whole record for people."""
    runs, subject = record["runs"], record["runs"][0]
    lines = [*machine.headline(record["machine"]), "", *subject_lines(subject)]
    if len(runs) > 1:
        lines += comparison_lines(runs)
    if settings.overhead:
        cost = Ratio(**runs[1]["ratio_per_cpu_second"])
        text = f"{100 / cost.ratio - 100:.1f} % [{100 / cost.high - 100:.1f}, {100 / cost.low - 100:.1f}]"
        lines += ["", f"profiling on costs {text} of CPU time"]
    timed = [r for r in subject["rounds"] if r["phases"]]
    if timed:
        totals = {name: sum(r["phases"][name] for r in timed) for name in timed[0]["phases"]}
        wall, steps = sum(r["wall_seconds"] for r in timed), sum(r["steps"] for r in timed)
        lines += ["", *phase_lines(totals, steps, wall)]
    for found in record["baselines"]:
        lines += baseline_lines(found)
    return lines


def run(settings: Settings) -> int:
    """Measure, print, save. Returns the exit code: 0 fine, 1 unstable, 2 validation mismatches."""
    settings.check()
    saved = [(path.name, read_saved(path)) for path in settings.baseline]
    if settings.output is not None:
        artefact.refuse_unwritable(settings.output)
    steppers, notes = gather(settings)
    load = settings.load
    batch = (count(load.worlds, "world"), count(load.threads, "thread"), count(load.lanes, "lane"))
    print(f"gridmill {KIND}: {load.game}, {', '.join(batch)}, seed {load.seed}")
    print(
        f"{count(settings.rounds, 'round')} of {settings.iterations:,} steps after {settings.warmup:,}",
        flush=True,
    )
    record = measure(settings, steppers)
    record["baselines"] = [against_baseline(record, then, name) for name, then in saved]
    print("\n".join(lines_of(record, settings)))
    for note in notes:
        print("\n".join(["", *hang("", f"note: {note}")]))
    print(f"\nresult: {VERDICTS[record['exit_code']]}")
    if settings.output is not None:
        print(f"saved to {artefact.write(record, settings.output)}")
    return int(record["exit_code"])
