"""`gridmill tune`: the settings that train fastest on this machine, and whether the policy still learns with them.

A grid, or a search with Optuna over the same values. Every candidate trains shortly in a process of its own; one whose
blocks scatter is measured again and then dropped. The fastest stable one is compared with the reference in turns, and
must learn as well: its score after equal steps lies within the reference's interval or above. The winner is a preset.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import psutil

from gridmill import recipes, sizing
from gridmill.config import ConfigError, flatten
from gridmill.config.files import write_whole
from gridmill.config.text import hang, short, table
from gridmill.run import Run
from gridmill.runs import overrides, presets
from gridmill.workshop import ab, artefact
from gridmill.workshop.machine import WorkerError
from gridmill.workshop.progress import Progress, stoppable
from gridmill.workshop.statistics import Ratio, coefficient_of_variation, grouped_ratio, interval_of_mean, mean

KIND = "tune"
UNSTABLE_CV = 0.20
Candidate = tuple[tuple[str, Any], ...]  # settings by path, in the order of the space


@dataclass(frozen=True)
class Settings:
    """What is tuned, among which values, and how long."""

    recipe: str
    changes: tuple[str, ...] = ()
    space: tuple[str, ...] = ()  # `trainer.threads=1,2`
    preset: str = ""  # the reference; empty: the one for this machine
    trials: int = 0  # of Optuna; 0: the whole grid
    blocks: int = 4
    check_epochs: int = 20
    seeds: tuple[int, ...] = (0, 1, 2, 3, 4)
    output: Path | None = None  # the preset
    resume: Path | None = None

    def check(self) -> None:
        least = {"--trials": (self.trials, 0), "--blocks": (self.blocks, 2), "--check-epochs": (self.check_epochs, 1)}
        for name, (value, lowest) in least.items():
            if value < lowest:
                raise ValueError(f"{name} must be at least {lowest}, got {value}")
        ab.refuse_same_seeds(self.seeds)
        if self.output is not None:
            if self.output.suffix != ".toml":
                raise ValueError(f"--output is a preset, FILE.toml, got `{self.output}`")
            artefact.refuse_unwritable(self.output)

    def tree(self) -> dict[str, Any]:
        return {"recipe": self.recipe, "changes": list(self.changes), "space": list(self.space), "preset": self.preset,
                "blocks": self.blocks}  # fmt: skip


def reference(settings: Settings) -> Run:
    """The run that candidates change."""
    plain = recipes.build(settings.recipe)
    run = presets.apply(plain, settings.preset) if settings.preset else presets.fill(plain)
    return overrides.apply(run, settings.changes)


def space_of(settings: Settings, run: Run) -> dict[str, list[Any]]:
    """The values of every setting that is tried; without a word those that matter on a CPU."""
    if settings.space:
        found = {}
        for text in settings.space:
            path, values = overrides.split(text)
            found[path] = [overrides.read(value.strip(), path) for value in values.split(",")]
        return found
    t = run.trainer
    return {
        "trainer.threads": sorted({1, sizing.cores()}),
        "trainer.async_factor": [1, 2],
        "trainer.num_worlds": sorted({max(2, t.num_worlds // 2 * 2 // 2), t.num_worlds, 2 * t.num_worlds}),
        "trainer.minibatch_size": [t.minibatch_size, 2 * t.minibatch_size],
    }


def fitted(run: Run, candidate: Candidate) -> Run | None:
    """The run of a candidate, its sizes rounded to what fits; None if there is no such run."""
    try:
        return presets.fitted(overrides.change(run, candidate))[0]
    except ConfigError:
        return None


def as_changes(run: Run, base: Run) -> tuple[str, ...]:
    """What differs from the reference, as overrides."""
    now, then = flatten(run.tree()), flatten(base.tree())
    return tuple(overrides.written(path, now[path]) for path in now if now[path] != then.get(path))


def side_of(settings: Settings, changes: Sequence[str] = ()) -> ab.Side:
    return ab.Side(settings.recipe, (*settings.changes, *changes), preset=settings.preset)


def measure(side: ab.Side, blocks: int) -> list[float]:
    """Agent-steps per wall second, block by block, after one epoch to warm up."""
    worker = ab.start(side, 0, phases=False)
    try:
        worker.ask({"epochs": 1}, ab.NEEDED)
        taken = [worker.ask({"epochs": 1}, ab.NEEDED) for _ in range(blocks)]
        return [one["agent_steps"] / max(one["wall_seconds"], 1e-9) for one in taken]
    finally:
        worker.close()


def stable(side: ab.Side, blocks: int) -> tuple[list[float], bool]:
    """The rates, measured again if they scatter; whether they are steady at last."""
    rates = measure(side, blocks)
    if coefficient_of_variation(rates) > UNSTABLE_CV:
        rates = measure(side, blocks)
    return rates, coefficient_of_variation(rates) <= UNSTABLE_CV


def candidates(space: Mapping[str, list[Any]], trials: int, told: Mapping[Candidate, float]) -> Iterator[Candidate]:
    """All of the grid, or those that Optuna asks for; `told` has what was found for those that came before."""
    if not trials:
        for values in itertools.product(*space.values()):
            yield tuple(zip(space, values, strict=True))
        return
    try:
        import optuna
    except ImportError:
        raise ValueError("--trials searches with Optuna, which is missing: pip install gridmill[tune]") from None
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    study = optuna.create_study(direction="maximize", sampler=optuna.samplers.TPESampler(seed=0))
    for _ in range(trials):
        trial = study.ask()
        chosen = tuple((path, trial.suggest_categorical(path, values)) for path, values in space.items())
        yield chosen
        study.tell(trial, told.get(chosen, 0.0))


def largest_batch(run: Run) -> tuple[int, str]:
    """The largest batch that fits into the memory that is free now, in whole segments of all rows; what it takes."""
    rows = run.trainer.num_worlds * sizing.players_of_agents(run, run.game.num_agents).count("")
    unit, free = rows * run.trainer.bptt_horizon, psutil.virtual_memory().available

    def need(units: int) -> int:
        changed = run.replace_all([("trainer.batch_size", units * unit), ("trainer.minibatch_size", unit)])
        try:
            return sizing.memory(changed).total
        except ConfigError:
            return 2**62

    few, many = 0, 1
    while need(many) <= free:
        few, many = many, 2 * many
    while many - few > max(1, few // 100):
        middle = (few + many) // 2
        few, many = (middle, many) if need(middle) <= free else (few, middle)
    return few * unit, sizing.mebibytes(need(few)) if few else "more than there is"


# ---- does it still learn


def learns(settings: Settings, changes: Sequence[str], progress: Progress) -> dict[str, Any]:
    """Reference and winner trained for equal steps with every seed: both scores, and whether the winner's holds."""
    scores: tuple[list[float | None], list[float | None]] = ([], [])
    sides = (side_of(settings), side_of(settings, changes))
    sizes, batch = [settings.check_epochs, settings.check_epochs], 1
    for seed in settings.seeds:
        for index, side in enumerate(sides):
            worker = ab.start(side, seed, phases=False)
            try:
                if index == 1:  # as many agent-steps as the reference had
                    sizes[1] = max(1, round(sizes[0] * batch / worker.ready["batch_size"]))
                else:
                    batch = int(worker.ready["batch_size"])
                scores[index].append(worker.ask({"epochs": sizes[index]}, ab.NEEDED)["score"])
            finally:
                worker.close()
            progress.step("does it learn")
    known = [[s for s in side if s is not None] for side in scores]
    found: dict[str, Any] = {"reference": scores[0], "winner": scores[1], "epochs": sizes}
    if not all(known):
        return found | {"holds": None, "said": "no episode ended; raise --check-epochs"}
    low, high = interval_of_mean(known[0])
    if not math.isfinite(low):
        both = f"score {mean(known[1]):.3f}, reference {mean(known[0]):.3f}"
        return found | {"holds": None, "said": f"{both}: not known whether it learns: give more --seeds"}
    holds = mean(known[1]) >= low
    both = f"score {mean(known[1]):.3f}, reference {mean(known[0]):.3f} [{low:.3f}, {high:.3f}]"
    return found | {"holds": holds, "said": f"{both}: {'it still learns' if holds else 'it learns worse'}"}


# ---- the command


def write_preset(settings: Settings, measured: Run, file: Path) -> str:
    """The run that was measured as a preset file, all that differs from the recipe; the command that trains it."""
    text, left = presets.written(measured, recipes.build(settings.recipe))
    head = f"# Found by `gridmill tune {settings.recipe}` for the machine it ran on.\n"
    write_whole(file, (head + text).encode())
    return " ".join(["gridmill train", settings.recipe, "--preset", str(file), *left])


def shown(candidate: Sequence[Sequence[Any]]) -> str:
    return " ".join(f"{path.removeprefix('trainer.')}={value}" for path, value in candidate)


def search(settings: Settings, base: Run, tried: list[dict[str, Any]], save: Any) -> None:
    """Try every candidate that was not tried before; what was found is put into `tried`, and saved each time."""
    space = space_of(settings, base)
    known = {tuple((p, v) for p, v in one["candidate"]): one for one in tried}
    told = {key: mean(one["rates"]) if one["stable"] else 0.0 for key, one in known.items()}
    total = settings.trials or math.prod(map(len, space.values()))
    progress = Progress(total, "candidates")
    for candidate in candidates(space, settings.trials, told):
        run = None if candidate in known else fitted(base, candidate)
        if run is not None:
            changes = as_changes(run, base)
            one: dict[str, Any] = {"candidate": [list(pair) for pair in candidate], "changes": list(changes)}
            try:
                rates, steady = stable(side_of(settings, changes), settings.blocks)
            except WorkerError as error:  # too large for the memory, say: the others may do
                rates, steady = [], False
                one["failed"] = str(error)
            one |= {"rates": rates, "stable": steady}
            tried.append(one)
            known[candidate], told[candidate] = one, mean(rates) if steady else 0.0
            save()
        progress.step(shown(candidate))
    progress.close()


def against(settings: Settings, changes: Sequence[str]) -> Ratio:
    """The winner and the reference in turns, so that the machine's moods do not decide."""
    compared = ab.Settings(side_of(settings), side_of(settings, changes), (0,), 2 * settings.blocks, phases=False)
    a, b = ab.measure_seed(compared, 0, Progress(2 * settings.blocks, "winner against reference"))
    return grouped_ratio(ab.rates([b], "wall"), ab.rates([a], "wall"))


def run(settings: Settings) -> int:
    """Search, compare, check, write the preset. 0 done, 1 nothing was stable, 130 stopped."""
    settings.check()
    base = reference(settings)
    sizing.refuse_unfit(base)
    presets.written(base, recipes.build(settings.recipe))  # what cannot be a preset is refused now
    tried: list[dict[str, Any]] = []
    if settings.resume is not None:
        then = artefact.read(settings.resume, KIND)
        if then["settings"] != settings.tree():
            raise ValueError(f"`{settings.resume}` was measured with other settings; begin anew without --resume")
        tried = then["tried"]
    record = artefact.record(KIND, base.seed, settings.tree(), {}, tried=tried)
    path = artefact.place(record, base.recipe)

    def save(**own: Any) -> None:
        rates = {shown(one["candidate"]): artefact.sample(one["rates"], "agent-steps/s") for one in tried}
        artefact.write(record | {"samples": rates, "finished": False} | own, path)

    own: dict[str, Any] = {}
    with stoppable() as stopped:
        search(settings, base, tried, save)
        own = conclude(settings, tried)
    code = artefact.INTERRUPTED if stopped else 0 if own.get("winner") is not None else 1
    save(**own, finished=not stopped, exit_code=code)
    print("\n".join(lines_of(tried, own)))
    batch, need = largest_batch(base)
    print("\n".join(hang("", f"largest batch that fits into free memory: {batch:_} agent-steps, {need}")))
    if own.get("winner"):
        file = settings.output or path.with_suffix(".toml")
        command = write_preset(settings, overrides.apply(base, own["winner"]), file)
        print(f"preset: {file}; use it: {command}")
    for reason in stopped:
        print(f"{reason} after {len(tried)} candidates; continue with --resume {path}")
    print(f"saved to {path}")
    return code


def conclude(settings: Settings, tried: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The fastest stable candidate, if it is not slower than the reference in turns and still learns; else that one."""
    steady = sorted((one for one in tried if one["stable"]), key=lambda one: -mean(one["rates"]))
    if not steady:
        return {"winner": None, "said": "no candidate was stable"}
    best = list(steady[0]["changes"])
    if not best:
        return {"winner": [], "ratio": None, "said": "the reference itself is the fastest"}
    ratio = against(settings, best)
    if ratio.ratio < 1.0:
        return {
            "winner": [],
            "ratio": str(ratio),
            "said": f"the fastest is {ratio} of the reference in turns: it stays",
        }
    checked = learns(settings, best, Progress(2 * len(settings.seeds), "checks"))
    if checked["holds"] is not True:
        return {"winner": [], "ratio": str(ratio), "check": checked, "said": f"{checked['said']}; the reference stays"}
    said = f"{' '.join(best)} is {ratio} of the reference; {checked['said']}"
    return {"winner": best, "ratio": str(ratio), "check": checked, "said": said}


def lines_of(tried: Sequence[Mapping[str, Any]], own: Mapping[str, Any]) -> list[str]:
    """Every candidate, the fastest first, and what was concluded."""
    ordered = sorted((one for one in tried if one["rates"]), key=lambda one: (not one["stable"], -mean(one["rates"])))
    rows = []
    for one in ordered:
        cv = f"{100 * coefficient_of_variation(one['rates']):.0f} %"
        rows.append((shown(one["candidate"])[:52], short(mean(one["rates"])), cv, "" if one["stable"] else "unstable"))
    lines = table(("candidate", "steps/s", "CV", ""), rows)
    for one in tried:
        if not one["rates"]:
            lines += hang("failed: ", f"{shown(one['candidate'])}: {one['failed']}")
    return [*lines, "", *hang("result: ", own.get("said", "stopped"))]


def largest(recipe: str, changes: Sequence[str], preset: str) -> int:
    """Only the largest batch, as a line."""
    batch, need = largest_batch(reference(replace(Settings(recipe), changes=tuple(changes), preset=preset)))
    print(f"trainer.batch_size={batch} takes {need} of the memory that is free now")
    return 0
