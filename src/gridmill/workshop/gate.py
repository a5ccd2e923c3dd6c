"""`gridmill gate`: has the engine become slower? Floors in the tree, two figures for each game, that noise cannot move.

Instructions per agent-step, counted by callgrind, fail above 1.05x the floor. Time is measured as a ratio: agent-steps
for each unit of a fixed load (a copy of the same bytes and a loop over integers), both in turns; it fails below 0.9x
the floor, after further tries. A floor is lowered only with a reason, which is kept in the file.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from gridmill import _native, games
from gridmill.config.files import kind_of, write_named
from gridmill.config.install import command
from gridmill.config.text import hang, table
from gridmill.env.env import batch_options
from gridmill.workshop import artefact, machine
from gridmill.workshop.progress import Progress, stoppable
from gridmill.workshop.runner import Load, Runner
from gridmill.workshop.statistics import bootstrap_interval, median

KIND = "gate"
FAILED = 1
GAMES = ("toy", "arena", "navigation", "cogsguard", "extractor_hub", "prospector")
WORLDS, COUNTED, COUNT_WARMUP = 16, 60, 20
MOST_INSTRUCTIONS, LEAST_RATIO = 1.05, 0.9  # of the floor
TRIES = 3  # of the time, before it is called slower
TARGET = 100_000.0  # steps per second of Prospector's trainer, one day


@dataclass(frozen=True)
class Settings:
    """Which games, how long, and whether what is found becomes the floor."""

    games: tuple[str, ...] = ()
    rounds: int = 30
    record: bool = False
    reason: str = ""
    planted: float = 0.0  # so much extra work, to see the gate fail
    target: bool = False  # also measure how far Prospector's trainer is from its target
    floors: Path | None = None
    resume: Path | None = None

    def tree(self, asked: Sequence[str]) -> dict[str, Any]:
        """For the artefact, and to see whether it can be continued."""
        shown: dict[str, Any] = {"games": list(asked), "rounds": self.rounds, "record": self.record}
        return shown | {"planted": self.planted, "reason": self.reason}

    def check(self) -> None:
        if self.rounds < 3:
            raise ValueError(f"--rounds must be at least 3, got {self.rounds}")
        if not 0 <= self.planted <= 10:
            raise ValueError(f"--planted must be within 0 and 10, got {self.planted}")
        if self.record and self.planted:
            raise ValueError("--record stores real measurements, so it cannot be combined with --planted")
        if self.reason and not self.record:
            raise ValueError("--reason is for --record")


# ---- measuring


def count(game: str, planted: float) -> float:
    """Instructions per agent-step of a batch of that game."""
    for tool in ("valgrind", "callgrind_control"):
        if shutil.which(tool) is None:
            raise ValueError(f"{tool} is missing, which counts the instructions: apt-get install valgrind")
    built = games.build(game)
    options = batch_options(num_worlds=WORLDS, seed=1) | {"players": []}
    order = {
        "packages": sysconfig.get_paths()["purelib"],
        "native": str(_native.__file__),
        "batch": f"{built.kind.capitalize()}Batch",
        "games": [built.core_tree()],
        "names": [built.saved_name()],
        "options": options,
        "warmup": COUNT_WARMUP,
        "steps": round(COUNTED * (1 + planted)),
    }
    base = str(getattr(sys, "_base_executable", sys.executable))
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "order.json"
        file.write_text(json.dumps(order))
        counting = ["valgrind", "--tool=callgrind", "--instr-atstart=no", "--callgrind-out-file=/dev/null"]
        counting += [base, "-I", "-S", str(Path(__file__).with_name("count_side.py")), str(file)]
        child = subprocess.Popen(
            counting, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        try:
            assert child.stdout is not None
            ready = child.stdout.readline().strip() == "ready"
            if ready:
                on = ["callgrind_control", "--instr=on", str(child.pid)]
                subprocess.run(on, check=True, capture_output=True, timeout=120)
            _, said = child.communicate("go\n", timeout=600)
        except subprocess.CalledProcessError as error:
            last = (error.stderr.decode(errors="replace").strip().splitlines() or ["no message"])[-1]
            raise ValueError(
                f"{game}: callgrind_control failed, which needs ptrace: {machine.without_paths(last)}"
            ) from None
        except subprocess.TimeoutExpired as error:
            raise ValueError(f"{game}: {error.cmd[0]} did not answer within {error.timeout:.0f} s") from None
        finally:
            child.kill()
    found = re.search(r"Collected\s*:\s*(\d+)", said)
    if not ready or found is None:
        last = (said.strip().splitlines() or ["no message"])[-1]
        raise ValueError(f"{game}: callgrind counted nothing: {machine.without_paths(last)}")
    return int(found.group(1)) / (COUNTED * WORLDS * built.num_agents)


class Calibration:
    """A fixed load: one unit copies the rows' bytes and runs a loop over integers; CPU seconds for each."""

    LOOPS = 40

    def __init__(self, num_bytes: int) -> None:
        self.source = np.arange(num_bytes, dtype=np.uint8)
        self.copy = np.empty_like(self.source)
        self.numbers = np.arange(4096, dtype=np.uint64)

    def run(self, units: int) -> float:
        began = time.process_time()
        for _ in range(units):
            self.copy[:] = self.source
            for _ in range(self.LOOPS):
                self.numbers *= np.uint64(6364136223846793005)
                self.numbers += np.uint64(1442695040888963407)
        return time.process_time() - began


def time_ratios(game: str, rounds: int, planted: float) -> list[float]:
    """Agent-steps for each unit of calibration, round by round; a round of either takes about 20 ms."""
    runner = Runner(Load(game=game, worlds=WORLDS))
    try:
        load = Calibration(int(runner.env.obs.nbytes))
        steps = max(1, round(0.02 / max(runner.run(20).cpu_seconds / 20, 1e-6)))
        units = max(1, round(0.02 / max(load.run(5) / 5, 1e-6)))
        found = []
        for turn in range(rounds + 1):
            spent = load.run(units) / units
            taken = runner.run(round(steps * (1 + planted)))
            if turn:  # the first warms up
                found.append(steps * runner.rows / max(taken.cpu_seconds, 1e-9) * spent)
        return found
    finally:
        runner.close()


def measure(game: str, settings: Settings, floor: Mapping[str, Any] | None) -> dict[str, Any]:
    """Both figures of a game; the time again if it is below the floor, the best of the tries counts.

    What becomes a floor is of all tries together, so that no lucky one sets it.
    """
    instructions = count(game, settings.planted)
    best: list[float] = []
    for _ in range(TRIES):
        ratios = time_ratios(game, settings.rounds, settings.planted)
        if settings.record:
            best += ratios
            continue
        best = max(best, ratios, key=lambda values: median(values) if values else 0.0)
        if floor is None or median(best) >= LEAST_RATIO * floor["ratio"]:
            break
    low, high = bootstrap_interval(best)
    return {"instructions": instructions, "ratio": median(best), "low": low, "high": high, "ratios": best}


# ---- floors


def floors_file(given: Path | None) -> Path:
    """The file of the tree, or the one that was given."""
    if given is not None:
        return given
    root = machine.checkout_root()
    if root is None:
        raise ValueError(
            "the floors are in bench/floors.json of a checkout, and this is not a checkout; give --floors FILE"
        )
    return root / "bench" / "floors.json"


def read_floors(path: Path) -> list[dict[str, Any]]:
    """What the file says: the floors of each machine that recorded some; none if there is no file yet."""
    if not kind_of(path):
        return []
    found = artefact.plain_json(path)
    try:
        return [
            {"machine": dict(one["machine"]), "games": {name: dict(game) for name, game in one["games"].items()}}
            for one in found["machines"]
        ]
    except (ValueError, KeyError, TypeError, AttributeError):
        raise ValueError(f"`{path}` is not a file of floors; record one with `{command('gate', '--record')}`") from None


def of_here(machines: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The floors of a machine like this one; if there are none, those of the machine that has most in common."""
    now = here()
    alike = [sum(one["machine"].get(name) == value for name, value in now.items()) for one in machines]
    return dict(machines[alike.index(max(alike))]) if alike else {"machine": {}, "games": {}}


def here() -> dict[str, str]:
    """What floors depend on: time on the CPU, instructions on the kernels and the compiler."""
    built = machine.native_build()
    return {"cpu": str(machine.cpu()["model"]), **{name: built.get(name, "unknown") for name in ("isa", "compiler")}}


def raised(
    floor: Mapping[str, Any] | None, found: Mapping[str, Any], reason: str, when: Mapping[str, str]
) -> dict[str, Any]:
    """The floor after what was found: only ever higher, unless a reason is given for lowering it."""
    new = {"instructions": round(found["instructions"], 2), "ratio": round(found["ratio"], 4)}
    history = [] if floor is None else list(floor["history"])
    if floor is not None:
        lower = new["instructions"] > floor["instructions"] or new["ratio"] < floor["ratio"]
        if not reason:
            new["instructions"] = min(new["instructions"], floor["instructions"])
            if found["low"] <= floor["ratio"]:  # not surely higher
                new["ratio"] = floor["ratio"]
        if (new["instructions"], new["ratio"]) == (floor["instructions"], floor["ratio"]):
            return dict(floor)
        if lower and reason:
            when = {**when, "reason": reason}
    return new | {"history": [*history, {**when, **new}]}


def judge(found: Mapping[str, Any], floor: Mapping[str, Any], same: Mapping[str, bool]) -> list[str]:
    """What is wrong; nothing if all is well. A figure of another machine is not judged."""
    wrong = []
    if same["isa"] and same["compiler"] and found["instructions"] > MOST_INSTRUCTIONS * floor["instructions"]:
        times = found["instructions"] / floor["instructions"]
        wrong.append(f"{found['instructions']:.0f} instructions per agent-step, {times:.3f}x of the floor")
    if same["cpu"] and found["ratio"] < LEAST_RATIO * floor["ratio"]:
        wrong.append(f"time ratio {found['ratio']:.2f}, {found['ratio'] / floor['ratio']:.3f}x of the floor")
    return wrong


# ---- the command


def lines_of(found: Mapping[str, Mapping[str, Any]], floors: Mapping[str, Any]) -> list[str]:
    """A row for each game: both figures and how far they are from the floor."""
    rows = []
    for game, one in found.items():
        floor = floors["games"].get(game)
        cells = ("-", "-") if floor is None else (
            f"{one['instructions'] / floor['instructions']:.3f}x", f"{one['ratio'] / floor['ratio']:.3f}x"
        )  # fmt: skip
        ratio = f"{one['ratio']:.1f} [{one['low']:.1f}, {one['high']:.1f}]"
        rows.append((game, f"{one['instructions']:.0f}", cells[0], ratio, cells[1]))
    return table(("game", "instructions", "of floor", "time ratio [95 %]", "of floor"), rows)


def trend(floors: Mapping[str, Any]) -> list[str]:
    """How the floors came to be, by commit."""
    rows = []
    for game, floor in floors["games"].items():
        for step in floor["history"]:
            cells = (f"{step['instructions']:.0f}", f"{step['ratio']:.1f}", step.get("reason", ""))
            rows.append((game, step["date"][:10], step["commit"], *cells))
    header = ("floor", "since", "commit", "instructions", "ratio", "lowered because")
    return [line[:80] for line in table(header, rows, left=3)] if rows else []


def target_line() -> str:
    """Prospector's trainer against what it shall reach one day, measured shortly."""
    from gridmill.workshop import throughput

    settings = throughput.Settings(mode="trainer", steps=20_000, repeats=3, warmup=10_000)
    rate = median([one.per_wall_second for one in throughput.measure(settings)])
    return (
        f"target: prospector's trainer makes {rate:,.0f} of {TARGET:,.0f} steps per second, {rate / TARGET:.2f} of it"
    )


def refuse_unmeasurable(settings: Settings, asked: Sequence[str], floors: Mapping[str, Any], same: bool) -> None:
    """Before anything is measured: games that are none, and floors that are missing or of another machine."""
    unknown = [game for game in asked if game not in games.names()]
    if unknown:
        raise ValueError(f"unknown game `{unknown[0]}` - games: {', '.join(games.names())}")
    if settings.record:
        return
    missing = [game for game in asked if game not in floors["games"]]
    if missing:
        raise ValueError(f"{', '.join(missing)}: no floor yet; record one with --record")
    if not same:
        raise ValueError(
            f"the floors are of {floors['machine']}, this is {here()}; record your own with --record --floors FILE"
        )


def recorded(floors: Mapping[str, Any], found: Mapping[str, Any], settings: Settings) -> dict[str, Any]:
    """This machine's floors with what was found."""
    when = {"date": str(machine.describe()["date"]), "commit": str(machine.commit()["hash"] or "none")[:10]}
    kept = dict(floors["games"]) if floors["machine"] == here() else {}
    for game, one in found.items():
        kept[game] = raised(kept.get(game), one, settings.reason, when)
    return {"machine": here(), "games": kept}


def record_of(settings: Settings, asked: Sequence[str], found: Mapping[str, Any], **own: Any) -> dict[str, Any]:
    """Everything as an artefact."""
    samples = {}
    for game, one in found.items():
        samples[f"{game} time ratio"] = artefact.sample(one["ratios"], f"{game}: agent-steps per unit")
        samples[f"{game} instructions"] = artefact.sample([one["instructions"]], "instructions", "lower")
    return artefact.record(KIND, Load.seed, settings.tree(asked), samples, found=found, **own)


def run(settings: Settings) -> int:
    """Measure, judge, print, save. 0 all is well, 1 below a floor, 130 stopped."""
    settings.check()
    path = floors_file(settings.floors)
    machines, now = read_floors(path), here()
    floors = of_here(machines)
    same = {name: floors["machine"].get(name, value) == value for name, value in now.items()}
    asked = settings.games or tuple(floors["games"]) or GAMES
    refuse_unmeasurable(settings, asked, floors, any(same.values()))
    found: dict[str, dict[str, Any]] = {}
    if settings.resume is not None:
        found = artefact.continued(settings.resume, KIND, settings.tree(asked), "found")["found"]
    artefact.refuse_unsaved(KIND, None)
    left = [game for game in asked if game not in found]
    progress, target = Progress(len(left), "games"), ""
    with stoppable() as stopped:
        for game in left:
            found[game] = measure(game, settings, floors["games"].get(game))
            progress.step(game)
        progress.close()
        target = target_line() if settings.target else ""
    print("\n".join(lines_of(found, floors)))
    wrong: dict[str, list[str]] = {}
    if settings.record and not stopped:
        floors = recorded(floors, found, settings)
        machines = [one for one in machines if one["machine"] != now] + [floors]
        write_named(path, (json.dumps({"machines": machines}, indent=1) + "\n").encode())
        print(f"floors written to {path.name}")
    elif not settings.record:
        wrong = {game: judge(one, floors["games"][game], same) for game, one in found.items()}
    print("\n".join(["", *trend(floors)]))
    if target:
        print("\n".join(hang("", target)))
    for name, value in now.items():
        if not same[name] and not settings.record:
            said = f"the floors are of another {name} ({floors['machine'][name]}, here {value})"
            print("\n".join(hang("note: ", f"{said}: what depends on it is not judged")))
    for game, reasons in wrong.items():
        for reason in reasons:
            print("\n".join(hang(f"{game}: ", reason)))
    code = artefact.INTERRUPTED if stopped else FAILED if any(wrong.values()) else 0
    print(f"result: {'stopped' if stopped else 'slower' if code else 'not slower'}")
    record = record_of(settings, asked, found, floors=floors, wrong=wrong)
    record |= {"exit_code": code, "finished": not stopped}
    path = artefact.place(record, "gate")
    for reason in stopped:
        print(f"{reason} after {len(found)} of {len(asked)} games; continue with --resume {path}")
    print(f"saved to {artefact.write(record, path)}")
    return code


def lowered_without_reason(floors: Mapping[str, Any]) -> Sequence[str]:
    """Games whose history has a floor below the one before it and no reason: for the test that reads the tree's."""
    bad = []
    for game, floor in floors["games"].items():
        for before, after in zip(floor["history"], floor["history"][1:], strict=False):
            lower = after["instructions"] > before["instructions"] or after["ratio"] < before["ratio"]
            if lower and not after.get("reason"):
                bad.append(game)
        last = floor["history"][-1]
        if (last["instructions"], last["ratio"]) != (floor["instructions"], floor["ratio"]):
            bad.append(game)
    return bad
