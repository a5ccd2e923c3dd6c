"""`gridmill bench train`: how fast training is, beside what bounds it and, with --peers, beside another trainer.

Step (the env alone), rollout and train are always shown together, with the share of each phase. Every subject is a
process of its own (`worker`, bench/peers/puffer_train.py), and they take their rounds in turn: our trainer, the
pieces of torch it cannot do without, the env, the peer, for each number of threads. `rollout` shows the same
measurement from the rollout's side. Nothing here imports torch.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal, NamedTuple

import gridmill
from gridmill import _native
from gridmill.config.files import refuse_unwritable
from gridmill.config.text import count, hang, short, table
from gridmill.run import CheckpointConfig, PolicyConfig, Run, TrainerConfig
from gridmill.workshop import artefact, machine
from gridmill.workshop.bench.plain_network import NETWORK, PHASES, why_not
from gridmill.workshop.progress import Progress, stoppable
from gridmill.workshop.statistics import Ratio, paired_ratio, summarise

KIND = "bench train"
UNSTABLE_CV = 0.20
VERDICTS = {0: "stable", 1: "unstable: a CV of train per CPU second is above 20 %", artefact.INTERRUPTED: "stopped"}
ROWS, HORIZON = 1024, 64  # of the run that is measured when no recipe is given: 65 536 agent-steps an epoch
ANSWER = ("epochs", "agent_steps", "cpu_seconds", "wall_seconds", "phases", "cpu_phases")
IN_ROLLOUT = ("env", "act", "copy", "store")
AFTER_ROLLOUT = ("advantage", "learn", "optimizer", "log", "checkpoint")
Clock = Literal["cpu", "wall"]
CLOCKS: tuple[Clock, ...] = ("cpu", "wall")


class Against(NamedTuple):
    """One comparison: a part of our epoch (None: all of it) with phases (None: all) of another subject."""

    ours: str | None
    subject: str
    phases: tuple[str, ...] | None
    name: str


TRAIN = (
    Against(None, "bound", NETWORK, "train / torch's act + learn"),
    Against(None, "bound", PHASES, "train / ... + sampling + loss"),
    Against(None, "peer", None, "train / peer"),
)
ROLLOUT = (
    Against("rollout", "bound", ("act",), "rollout / torch's act"),
    Against("rollout", "bound", ("act", "sample"), "rollout / ... + sampling"),
    Against("rollout", "peer", ("rollout",), "rollout / peer's rollout"),
)


@dataclass(frozen=True)
class Settings:
    """What is measured and how long."""

    run: Run
    threads: tuple[int, ...] = (1,)
    rounds: int = 10
    epochs: int = 1  # per round
    warmup: int = 1
    peers: bool = False
    output: Path | None = None
    resume: Path | None = None

    def tree(self) -> dict[str, Any]:
        """For the artefact, and to see whether it can be continued."""
        shown = {"epochs_per_round": self.epochs, "warmup": self.warmup, "rounds": self.rounds}
        return shown | {"threads": list(self.threads), "peers": self.peers, "run": self.run.tree()}

    def check(self) -> None:
        least = {"--rounds": (self.rounds, 1), "--epochs": (self.epochs, 1), "--warmup": (self.warmup, 0)}
        least["--threads"] = (min(self.threads, default=0), 1)
        for name, (value, lowest) in least.items():
            if value < lowest:
                raise ValueError(f"{name} must be at least {lowest}, got {value}")
        reason = why_not(self.run)
        if self.peers and reason is not None:
            raise ValueError(f"--peers: {reason}")


@dataclass(frozen=True)
class Epochs:
    """One measured stretch of whole epochs; phases are seconds on the wall clock, cpu_phases where they are known."""

    epochs: int
    agent_steps: int
    cpu_seconds: float
    wall_seconds: float
    phases: Mapping[str, float] = field(default_factory=dict)
    cpu_phases: Mapping[str, float] = field(default_factory=dict)

    def seconds(self, clock: Clock, phases: Sequence[str] | None = None) -> float | None:
        """All of it or some phases; None where a phase was not timed by this clock."""
        if phases is None:
            return self.cpu_seconds if clock == "cpu" else self.wall_seconds
        known = self.cpu_phases if clock == "cpu" else self.phases
        return sum(known[name] for name in phases) if all(name in known for name in phases) else None


def rates(rounds: Sequence[Epochs], clock: Clock, phases: Sequence[str] | None = None) -> list[float] | None:
    """Agent-steps per second, round by round; None where they are not known."""
    seconds = [one.seconds(clock, phases) for one in rounds]
    if not seconds or any(s is None for s in seconds):
        return None
    return [one.agent_steps / max(s or 0.0, 1e-9) for one, s in zip(rounds, seconds, strict=True)]


# ---- what runs


def standard(game: str) -> Run:
    """The measured run of a game when no recipe is given: the settings that published figures of trainers use."""
    built = gridmill.games.build(game)
    with gridmill.make(built, num_worlds=1) as env:
        worlds = max(8, ROWS // env.num_agents // 8 * 8)
        batch = worlds * env.num_agents * HORIZON
    vector = built.obs_kind == "vector"
    return Run(
        recipe="bench",
        game=built,
        policy=PolicyConfig(encoder="mlp" if vector else "bag", core="lstm"),
        trainer=TrainerConfig(
            total_timesteps=10**10,
            num_worlds=worlds,
            batch_size=batch,
            minibatch_size=batch // 8,
            bptt_horizon=HORIZON,
            device="cpu",
            masks=False,
        ),
        checkpoint=CheckpointConfig(seconds=0.0),
    )


def run_of(game: str | None, recipe: str | None, changes: Sequence[str]) -> Run:
    """A recipe's run, or the standard one of a game, with key=value changes."""
    if game is not None and recipe is not None:
        raise ValueError("--game and --recipe both name what to measure; give one of them")
    if recipe is None:
        run = standard(game or "prospector")
    else:
        from gridmill import recipes

        run = recipes.build(recipe).replace("evaluation.enabled", False)
    if changes:
        from gridmill.runs import overrides

        run = overrides.apply(run, list(changes))
    return run


@contextmanager
def package_alone() -> Iterator[Path]:
    """A folder with this package and its extension and nothing else, for the path of another environment's Python."""
    with tempfile.TemporaryDirectory() as folder:
        inside = Path(folder) / "gridmill"
        inside.mkdir()
        entries = {entry.name: entry for entry in Path(str(gridmill.__file__)).parent.iterdir()}
        entries[Path(str(_native.__file__)).name] = Path(str(_native.__file__))
        for name, entry in entries.items():
            (inside / name).symlink_to(entry.resolve())
        yield Path(folder)


def peer_command(package: Path) -> list[str]:
    """How the peer starts, without the run."""
    script, python = machine.beside("bench/peers/puffer_train.py"), machine.beside(".venv-peers-train/bin/python")
    if script is None:
        raise ValueError("no file bench/peers/puffer_train.py here or in the checkout; run from a checkout of gridmill")
    if python is None:
        raise ValueError("the peer's own environment .venv-peers-train is missing; make it with `make peers-train`")
    return [f"PYTHONPATH={package}", str(python), str(script)]


class Subject(NamedTuple):
    """Who takes turns."""

    threads: int
    kind: str
    worker: machine.Worker


def start(kind: str, run: Run, command: Sequence[str] = ()) -> machine.Worker:
    """A process of ours of that kind, or another that answers alike, with as many threads as the run says."""
    threads = run.trainer.threads
    words = command or [sys.executable, "-P", "-m", "gridmill.workshop.bench.worker", kind]
    full = ["env", f"OMP_NUM_THREADS={threads}", *words, run.model_dump_json()]
    return machine.Worker(f"{kind} with {count(threads, 'thread')}", full, needed=("name",))


@contextmanager
def subjects(settings: Settings) -> Iterator[list[Subject]]:
    """All of them started: for each number of threads the trainer, its bound, the env and the peer."""
    with ExitStack() as stack:
        commands: dict[str, Sequence[str]] = {"trainer": (), "bound": (), "step": ()}
        if why_not(settings.run) is not None:
            del commands["bound"]
        if settings.peers:
            commands["peer"] = peer_command(stack.enter_context(package_alone()))
        started: list[Subject] = []
        for threads in settings.threads:
            run = settings.run.replace("trainer.threads", threads)
            for kind, command in commands.items():
                worker = start(kind, run, command)
                stack.callback(worker.close)
                started.append(Subject(threads, kind, worker))
        yield started


def epochs_of(worker: machine.Worker, epochs: int) -> Epochs:
    """Let a worker run and say what it took."""
    said = worker.ask({"epochs": epochs}, ANSWER)
    return Epochs(**{name: said[name] for name in ANSWER})


Found = dict[tuple[int, str], list[Epochs]]  # by number of threads and kind of subject


def take_turns(taking: Sequence[Subject], settings: Settings, found: Found) -> None:
    """Warm everybody up, then round by round each in turn, until all rounds are there."""
    done = min(len(rounds) for rounds in found.values())
    progress = Progress(settings.rounds - done, "rounds")
    for one in taking if settings.warmup and done < settings.rounds else ():
        epochs_of(one.worker, settings.warmup)
    for _ in range(done, settings.rounds):
        for one in taking:
            found[one.threads, one.kind].append(epochs_of(one.worker, settings.epochs))
        progress.step()
    progress.close()


def resumed(settings: Settings, kind: str) -> Found:
    """The rounds that an interrupted run has left; none if there was none."""
    found: Found = {}
    if settings.resume is not None:
        for one in artefact.continued(settings.resume, kind, settings.tree(), "runs")["runs"]:
            for subject, rounds in one["rounds"].items():
                found[one["threads"], subject] = [Epochs(**each) for each in rounds]
    return found


# ---- what it says


def comparisons(rounds: Mapping[str, Sequence[Epochs]]) -> list[dict[str, Any]]:
    """Our trainer against everybody else of the same number of threads, by both clocks where they are known."""
    found = []
    for one in (*TRAIN, *ROLLOUT):
        for clock in CLOCKS if one.subject in rounds else ():
            ours = rates(rounds["trainer"], clock, None if one.ours is None else (one.ours,))
            others = rates(rounds[one.subject], clock, one.phases)
            if ours is not None and others is not None:
                found.append({"name": one.name, "clock": clock, **asdict(paired_ratio(ours, others))})
    return found


def speeds(rounds: Mapping[str, Sequence[Epochs]], peer: str) -> dict[str, dict[Clock, dict[str, Any]]]:
    """Every rate by name and clock."""
    asked: dict[str, tuple[str, tuple[str, ...] | None]] = {
        "step": ("step", None),
        "rollout": ("trainer", ("rollout",)),
        "train": ("trainer", None),
        "torch's act": ("bound", ("act",)),
        "torch's act + learn": ("bound", NETWORK),
        "... + sampling + loss": ("bound", PHASES),
        f"{peer} rollout": ("peer", ("rollout",)),
        f"{peer} train": ("peer", None),
    }
    found: dict[str, dict[Clock, dict[str, Any]]] = {}
    for name, (subject, phases) in asked.items():
        known = {clock: rates(rounds.get(subject, ()), clock, phases) for clock in CLOCKS}
        summed: dict[Clock, dict[str, Any]] = {c: asdict(summarise(r)) for c, r in known.items() if r is not None}
        if summed:
            found[name] = summed
    return found


def shares(rounds: Sequence[Epochs]) -> dict[str, float]:
    """Mean seconds of an epoch by phase; what no phase covers is `other`."""
    epochs = sum(one.epochs for one in rounds)
    known = {name for one in rounds for name in one.phases}
    mean = {name: sum(one.phases.get(name, 0.0) for one in rounds) / epochs for name in known}
    whole = sum(one.wall_seconds for one in rounds) / epochs
    top = [name for name in ("rollout", *AFTER_ROLLOUT) if name in mean]
    order = [name for name in ("rollout", *IN_ROLLOUT, *AFTER_ROLLOUT) if name in mean]
    return {name: mean[name] for name in order} | {"other": whole - sum(mean[n] for n in top), "epoch": whole}


def one_record(threads: int, taking: Sequence[Subject], rounds: Mapping[str, Sequence[Epochs]]) -> dict[str, Any]:
    """Everything known for one number of threads."""
    ready = {one.kind: one.worker.ready for one in taking if one.threads == threads}
    peer = str(ready.get("peer", {}).get("name", "peer"))
    whole = rounds["trainer"]
    return {
        "threads": threads,
        "subjects": ready,
        "speeds": speeds(rounds, peer),
        "comparisons": comparisons(rounds),
        "phases": shares(whole),
        "cores_used": sum(one.cpu_seconds for one in whole) / sum(one.wall_seconds for one in whole),
        "rounds": {kind: [asdict(one) for one in taken] for kind, taken in rounds.items()},
    }


def notes_of(settings: Settings, runs: Sequence[Mapping[str, Any]]) -> list[str]:
    """What a reader must know to trust the ratios."""
    notes = []
    reason = why_not(settings.run)
    if reason is not None:
        notes.append(f"no act + learn bound: {reason}")
    for one in runs:
        sizes = {kind: said["num_weights"] for kind, said in one["subjects"].items() if "num_weights" in said}
        if len(set(sizes.values())) > 1:
            told = ", ".join(f"{kind} {size:,}" for kind, size in sizes.items())
            notes.append(f"not the same network: the entries of all matrices are {told}")
            break
    return notes


def measure(settings: Settings, kind: str) -> tuple[dict[str, Any], list[str]]:
    """Run everything and gather one record, ready for JSON, and what stopped it; no record without a whole round."""
    then, found = resumed(settings, kind), Found()
    with stoppable() as stopped, subjects(settings) as taking:
        found = {(one.threads, one.kind): then.get((one.threads, one.kind), []) for one in taking}
        take_turns(taking, settings, found)
    whole = min(map(len, found.values()), default=0)
    if not whole:
        return {}, stopped
    found = {subject: rounds[:whole] for subject, rounds in found.items()}  # the last one may be of some of them only
    runs = []
    for threads in settings.threads:
        own = {name: taken for (number, name), taken in found.items() if number == threads}
        runs.append(one_record(threads, taking, own))
    steady = all(one["speeds"]["train"]["cpu"]["cv"] <= UNSTABLE_CV for one in runs)
    samples = {}
    for one in runs:
        values = rates([Epochs(**each) for each in one["rounds"]["trainer"]], "cpu") or []
        samples[f"train, {count(one['threads'], 'thread')}"] = artefact.sample(values, "agent-steps/CPU s")
    more = {"run": settings.run.tree(), "runs": runs, "notes": notes_of(settings, runs)}
    record = artefact.record(kind, settings.run.seed, settings.tree(), samples, **more)
    code = artefact.INTERRUPTED if stopped else 0 if steady else 1
    return record | {"finished": not stopped, "exit_code": code}, stopped


def speed_lines(one: Mapping[str, Any]) -> list[str]:
    """Step, rollout and train together, and everybody beside them."""
    rows = []
    for name, clocks in one["speeds"].items():
        cells = [name]
        for clock in CLOCKS:
            known = clocks.get(clock)
            cells += ["-", ""] if known is None else [short(known["median"]), f"{100 * known['cv']:.0f} %"]
        rows.append(cells)
    header = (count(one["threads"], "thread"), "per CPU s", "CV", "per wall s", "CV")
    return [*table(header, rows), f"(the trainer kept {one['cores_used']:.2f} cores busy)"]


def ratio_lines(one: Mapping[str, Any], wanted: Sequence[Against]) -> list[str]:
    """The comparisons that were asked for, one line each."""
    names = ("ratio", "low", "high", "count", "paired")
    rows = []
    for name in (against.name for against in wanted):
        known = {c["clock"]: str(Ratio(**{k: c[k] for k in names})) for c in one["comparisons"] if c["name"] == name}
        if known:
            rows.append((name, *(known.get(clock, "-") for clock in CLOCKS)))
    return table(("ratio [95 %]", "per CPU second", "per wall second"), rows) if rows else []


def phase_lines(one: Mapping[str, Any]) -> list[str]:
    """Where an epoch of ours goes."""
    phases = one["phases"]
    rows = []
    for name, seconds in phases.items():
        label = f"  {name}" if name in IN_ROLLOUT else name
        rows.append((label, f"{1e3 * seconds:.1f}", f"{100 * seconds / phases['epoch']:.1f} %"))
    return table(("phase", "ms per epoch", "share"), rows)


def lines_of(record: Mapping[str, Any], wanted: Sequence[Against]) -> list[str]:
    """The whole record for people."""
    lines = machine.headline(record["machine"])
    for one in record["runs"]:
        for part in (speed_lines(one), ratio_lines(one, wanted), phase_lines(one)):
            lines += ["", *part] if part else []
    for note in record["notes"]:
        lines += ["", *hang("", f"note: {note}")]
    return lines


def run(settings: Settings, kind: str = KIND, wanted: Sequence[Against] = TRAIN) -> int:
    """Measure, print, save. 0 fine, 1 unstable, 130 stopped: then it can be continued."""
    settings.check()
    if settings.output is not None:
        refuse_unwritable(settings.output)
    what = settings.run
    trainer, policy = what.trainer, what.policy
    print(f"gridmill {kind}: {what.game.name}, {count(trainer.num_worlds, 'world')}, seed {what.seed}")
    print(f"encoder {policy.encoder}, core {policy.core}, hidden {policy.hidden}, layers {policy.layers}")
    sizes = f"minibatch {trainer.minibatch_size:,}, horizon {trainer.bptt_horizon}, lanes {trainer.async_factor}"
    print(f"batch {trainer.batch_size:,}, {sizes}, {trainer.update_epochs} x")
    print(f"{count(settings.rounds, 'round')} of {count(settings.epochs, 'epoch')} after {settings.warmup}", flush=True)
    record, stopped = measure(settings, kind)
    if not record:
        print(f"{stopped[0]} before the first round was over; nothing is saved")
        return artefact.INTERRUPTED
    print("\n".join(lines_of(record, wanted)))
    print(f"\nresult: {VERDICTS[record['exit_code']]}")
    path = settings.output or (artefact.place(record, what.game.name) if stopped else None)
    for reason in stopped:
        done = count(len(record["runs"][0]["rounds"]["trainer"]), "round")
        print(f"{reason} after {done}; continue with --resume {path}")
    if path is not None:
        print(f"saved to {artefact.write(record, path)}")
    return int(record["exit_code"])
