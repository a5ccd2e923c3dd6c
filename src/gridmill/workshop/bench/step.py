"""`gridmill bench step`: how fast the env steps, with random actions drawn ahead and no policy.

One path for everything: labelled steppers (ours, a peer, another batch shape) take their rounds in turn; the first is
the subject, the others are compared with it. It measures the env alone, and states no figure without the machine,
commit, command and seed beside it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from gridmill.config.files import refuse_unwritable
from gridmill.config.text import count, hang, short, table
from gridmill.runs.core_report import phase_lines
from gridmill.workshop import artefact, machine
from gridmill.workshop.bench.saved import KIND, against_baseline, baseline_lines, read_saved
from gridmill.workshop.progress import Progress, between_pieces, stoppable
from gridmill.workshop.runner import (
    Load,
    Round,
    Runner,
    added_validation,
    instructions,
    resident_per_world,
    swept,
)
from gridmill.workshop.statistics import Ratio, paired_ratio, summarise

UNSTABLE_CV = 0.20
VERDICTS = {0: "stable", 1: "unstable: a CV is above 20 %", 2: "the fast observations differ from the reference"}
VERDICTS[artefact.INTERRUPTED] = "stopped"


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
    resume: Path | None = None

    def tree(self) -> dict[str, Any]:
        """For the artefact, and to see whether it can be continued."""
        shown: dict[str, Any] = {"iterations": self.iterations, "warmup": self.warmup, "rounds": self.rounds}
        shown |= {"load": asdict(self.load), "sweep": self.sweep, "peers": self.peers, "overhead": self.overhead}
        return shown

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


def warm_up(steppers: Mapping[str, Stepper], settings: Settings, stopped: Sequence[str]) -> None:
    """Everybody but peers takes the same steps; a peer is tens of times slower and one round warms it up."""
    for name, stepper in steppers.items():
        left = min(settings.warmup, settings.iterations) if isinstance(stepper, Peer) else settings.warmup
        while left > 0 and not stopped:
            stepper.run(max(1, round(min(left, settings.iterations) * _share(steppers, name))))
            left -= settings.iterations


def take_turns(
    steppers: Mapping[str, Stepper], settings: Settings, rounds: Mapping[str, list[Round]], stopped: Sequence[str]
) -> None:
    """The rounds that are not there yet, every stepper in turn, with equal agent-steps for each of our own."""
    done = min(map(len, rounds.values()))
    progress = Progress(settings.rounds - done, "rounds")
    for _ in range(done, settings.rounds):
        if stopped:
            break
        for name, stepper in steppers.items():
            rounds[name].append(stepper.run(max(1, round(settings.iterations * _share(steppers, name)))))
        progress.step()
    progress.close()


def _share(steppers: Mapping[str, Stepper], name: str) -> float:
    subject, stepper = next(iter(steppers.values())), steppers[name]
    return 1.0 if isinstance(stepper, Peer) else subject.rows / stepper.rows


def facts_of(label: str, stepper: Stepper, peers: bool) -> dict[str, Any]:
    """What is known of a stepper besides its rounds; asked before them."""
    facts: dict[str, Any] = {"label": label, "rows": stepper.rows}
    if isinstance(stepper, Peer):
        tokens, resident = float(stepper.ready["tokens_per_row"]), stepper.memory_per_world()
        return facts | {"peer": stepper.ready, "tokens_per_row": tokens, "resident_per_world": resident}
    env, tokens = stepper.env, stepper.tokens_per_row()
    facts |= {
        "load": asdict(stepper.load),
        "num_agents": int(env.num_agents),
        "num_tokens": int(env.obs.shape[1]) if env.obs_kind == "tokens" else 0,
        "tokens_per_row": tokens,
        "bytes_per_row": int(env.obs[0].nbytes),
        "bytes_written_per_agent_step": 3 * tokens if env.obs_kind == "tokens" else float(env.obs[0].nbytes),
        "memory": stepper.memory(),
    }
    if peers:
        # Memory the process already had may be used again and not show, so never less than what is known.
        facts["resident_per_world"] = max(resident_per_world(stepper.load), sum(facts["memory"].values()))
    return facts


def run_record(facts: Mapping[str, Any], stepper: Stepper, rounds: Sequence[Round], then: Any) -> dict[str, Any]:
    """One stepper's facts and rounds, ready for JSON; `then` is its record before this run was stopped, if it was."""
    record: dict[str, Any] = {
        **facts,
        "per_cpu_second": asdict(summarise(r.per_cpu_second for r in rounds)),
        "per_wall_second": asdict(summarise(r.per_wall_second for r in rounds)),
        "rounds": [asdict(r) for r in rounds],
    }
    if isinstance(stepper, Runner):
        ticks = sum(r.steps for r in rounds) * int(stepper.env.num_worlds)
        record["allocations_per_tick"] = sum(r.allocations or 0 for r in rounds) / ticks
        record["validation"] = added_validation(stepper.validation(), then and then["validation"])
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


Runs = Mapping[str, Mapping[str, Any]]  # what an interrupted run has left, by label


def measure(settings: Settings, steppers: Mapping[str, Stepper], then: Runs) -> tuple[dict[str, Any], list[str]]:
    """Everything that was asked for, as one record ready for JSON, and what stopped it before it was all there."""
    rounds = {label: [Round(**r) for r in then[label]["rounds"]] if label in then else [] for label in steppers}
    subject = next(iter(steppers.values()))
    assert isinstance(subject, Runner)
    try:
        with between_pieces() as stopped:
            if any(len(taken) < settings.rounds for taken in rounds.values()):
                warm_up(steppers, settings, stopped)
            facts = {label: facts_of(label, stepper, settings.peers) for label, stepper in steppers.items()}
            take_turns(steppers, settings, rounds, stopped)
        if not all(rounds.values()):
            return {}, stopped
        runs = [run_record(facts[k], stepper, rounds[k], then.get(k)) for k, stepper in steppers.items()]
        runs[0]["memcpy"] = limits(subject, runs[0])
        runs[0]["instructions"] = {"reason": "stopped before they were counted"}
        with stoppable() as late:
            if not stopped:
                runs[0]["instructions"] = instructions(subject.load, subject.rows, settings.instructions)
    finally:
        for stepper in steppers.values():
            stepper.close()
    compare(rounds, runs)
    mismatches = sum(r["validation"]["mismatches"] for r in runs if r.get("validation"))
    steady = all(r[f"per_{clock}_second"]["cv"] <= UNSTABLE_CV for r in runs for clock in ("cpu", "wall"))
    samples = {}
    for run_ in runs:
        rates = [r["agent_steps"] / max(r["cpu_seconds"], 1e-9) for r in run_["rounds"]]
        samples[run_["label"]] = artefact.sample(rates, "agent-steps/CPU s")
    found = artefact.record(KIND, settings.load.seed, settings.tree(), samples, phase=settings.phase, runs=runs)
    reasons = [*stopped, *late]
    code = 2 if mismatches else artefact.INTERRUPTED if reasons else 0 if steady else 1
    return found | {"finished": not reasons, "exit_code": code}, reasons


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
    """Measure, print, save. 0 fine, 1 unstable, 2 validation mismatches, 130 stopped: then it can be continued."""
    settings.check()
    saved = [(path.name, read_saved(path)) for path in settings.baseline]
    if settings.output is not None:
        refuse_unwritable(settings.output)
    then = artefact.continued(settings.resume, KIND, settings.tree(), "runs")["runs"] if settings.resume else ()
    steppers, notes = gather(settings)
    load = settings.load
    batch = (count(load.worlds, "world"), count(load.threads, "thread"), count(load.lanes, "lane"))
    print(f"gridmill {KIND}: {load.game}, {', '.join(batch)}, seed {load.seed}")
    print(
        f"{count(settings.rounds, 'round')} of {settings.iterations:,} steps after {settings.warmup:,}",
        flush=True,
    )
    record, stopped = measure(settings, steppers, {run_["label"]: run_ for run_ in then})
    if not record:
        print(f"{stopped[0]} before the first round was over; nothing is saved")
        return artefact.INTERRUPTED
    record["baselines"] = [against_baseline(record, then, name) for name, then in saved]
    print("\n".join(lines_of(record, settings)))
    for note in notes:
        print("\n".join(["", *hang("", f"note: {note}")]))
    code = int(record["exit_code"])
    print(f"\nresult: {VERDICTS[code]}")
    path = settings.output or (artefact.place(record, settings.load.game) if stopped else None)
    for reason in stopped:
        done = count(len(record["runs"][0]["rounds"]), "round")
        print(f"{reason} after {done}; continue with --resume {path}")
    if path is not None:
        print(f"saved to {artefact.write(record, path)}")
    return code
