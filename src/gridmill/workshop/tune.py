"""`gridmill tune`: the settings that train fastest on this machine, and whether the policy still learns with them.

A grid, or a search with Optuna over the same values. Every candidate trains shortly in a process of its own; one whose
blocks scatter is measured again and then dropped. The fastest stable ones are compared with the reference in turns, one
after the other, until one learns as well: its score after equal steps lies within the reference's interval or above. It
is written as a preset.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from gridmill import recipes, sizing
from gridmill.config import ConfigError, flatten, memory
from gridmill.config.files import refuse_unwritable, write_named
from gridmill.config.install import pip_install
from gridmill.config.memory import mebibytes
from gridmill.config.text import hang, short, table
from gridmill.run import Run
from gridmill.runs import overrides, presets
from gridmill.workshop import ab, artefact
from gridmill.workshop.machine import WorkerError
from gridmill.workshop.progress import Progress, stoppable
from gridmill.workshop.statistics import coefficient_of_variation, grouped_ratio, interval_of_mean, mean

KIND = "tune"
UNSTABLE_CV = 0.20
Candidate = tuple[tuple[str, Any], ...]  # settings by path, in the order of the space
Save = Callable[[], None]


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
    finalists: int = 3  # so many of the fastest are checked until one still learns
    output: Path | None = None  # the preset
    resume: Path | None = None

    def check(self) -> None:
        least = {"--trials": (self.trials, 0), "--blocks": (self.blocks, 2), "--check-epochs": (self.check_epochs, 2)}
        least["--finalists"] = (self.finalists, 1)
        for name, (value, lowest) in least.items():
            if value < lowest:
                raise ValueError(f"{name} must be at least {lowest}, got {value}")
        ab.refuse_same_seeds(self.seeds)
        if self.output is not None:
            if self.output.suffix != ".toml":
                raise ValueError(f"--output is a preset, FILE.toml, got `{self.output}`")
            refuse_unwritable(self.output)

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
        "trainer.num_worlds": sorted({max(2, t.num_worlds // 2), t.num_worlds, 2 * t.num_worlds}),
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
        said = f"--trials searches with Optuna, which is missing: {pip_install('gridmill[tune]')}"
        raise ValueError(said) from None
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
    unit, free = rows * run.trainer.bptt_horizon, memory.free()

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
    return few * unit, mebibytes(need(few)) if few else "more than there is"


# ---- does it still learn


Scores = list[list[float | None]]  # by seed: after a quarter of the epochs, and after all


def scores_of(side: ab.Side, seed: int, epochs: int) -> list[float | None]:
    """What a side scores after a quarter of so many epochs and after all; None where no episode had ended."""
    first = max(1, epochs // 4)
    worker = ab.start(side, seed, phases=False)
    try:
        return [worker.ask({"epochs": part}, ab.NEEDED)["score"] for part in (first, max(1, epochs - first))]
    finally:
        worker.close()


def learns(
    settings: Settings, changes: Sequence[str], reference_scores: Scores, scores: Scores, save: Save
) -> dict[str, Any]:
    """Reference and candidate trained for equal steps with every seed: both scores, and whether the candidate's holds.

    Both lists have the scores of the seeds that are done; the others are added, and saved each time.
    """
    base = reference(settings)
    times = base.trainer.batch_size / overrides.apply(base, changes).trainer.batch_size
    sizes = [settings.check_epochs, max(2, round(settings.check_epochs * times))]
    sides = (side_of(settings), side_of(settings, changes))
    progress = Progress(sum(len(settings.seeds) - len(done) for done in (reference_scores, scores)), "checks")
    for number, seed in enumerate(settings.seeds):
        for done, side, epochs in zip((reference_scores, scores), sides, sizes, strict=True):
            if len(done) == number:
                done.append(scores_of(side, seed, epochs))
                save()
                progress.step("does it learn")
    progress.close()
    return judged(reference_scores, scores) | {"epochs": sizes}


def judged(reference_scores: Scores, scores: Scores) -> dict[str, Any]:
    """Whether the candidate's mean lies within the reference's interval or above; None where that cannot be said."""
    early, ends = ([pair[k] for pair in reference_scores] for k in (0, 1))
    own = [pair[1] for pair in scores]
    known = [[s for s in values if s is not None] for values in (early, ends, own)]
    if min(map(len, known)) < len(scores):
        return {"holds": None, "said": "too few episodes ended; raise --check-epochs"}
    began, low, high = mean(known[0]), *interval_of_mean(known[1])
    both = f"score {mean(known[2]):.3f}, reference {mean(known[1]):.3f}"
    if low == -math.inf:
        return {"holds": None, "said": f"{both}: not known whether it learns: give more --seeds"}
    both += f" [{low:.3f}, {high:.3f}], {began:.3f} after a quarter of the steps"
    if mean(known[1]) <= began:
        return {"holds": None, "said": f"{both}: the reference itself learned nothing; raise --check-epochs"}
    holds = mean(known[2]) >= low
    return {"holds": holds, "said": f"{both}: {'it still learns' if holds else 'it learns worse'}"}


# ---- the command


def write_preset(settings: Settings, measured: Run, file: Path) -> str:
    """The run that was measured as a preset file, all that differs from the recipe; the command that trains it."""
    text, left = presets.written(measured, recipes.build(settings.recipe))
    head = f"# Found by `gridmill tune {settings.recipe}` for the machine it ran on.\n"
    write_named(file, (head + text).encode())
    return " ".join(["gridmill train", settings.recipe, "--preset", str(file), *left])


def shown(candidate: Sequence[Sequence[Any]]) -> str:
    return " ".join(f"{path.removeprefix('trainer.')}={value}" for path, value in candidate)


def search(settings: Settings, base: Run, tried: list[dict[str, Any]], save: Save) -> None:
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


def against(settings: Settings, changes: Sequence[str]) -> dict[str, list[float]]:
    """Rates of the reference and of a candidate in turns, so that the machine's moods do not decide."""
    compared = ab.Settings(side_of(settings), side_of(settings, changes), (0,), 2 * settings.blocks, phases=False)
    progress = Progress(2 * settings.blocks, "turns of candidate and reference")
    a, b = list[ab.Block](), list[ab.Block]()
    ab.measure_seed(compared, 0, (a, b), progress)
    progress.close()
    return {"reference": ab.rates([a], "wall")[0], "candidate": ab.rates([b], "wall")[0]}


def run(settings: Settings) -> int:
    """Search, compare, check, write the preset. 0 done, 1 nothing was stable, 130 stopped."""
    settings.check()
    base = reference(settings)
    sizing.refuse_unfit(base)
    presets.written(base, recipes.build(settings.recipe))  # what cannot be a preset is refused now
    tried: list[dict[str, Any]] = []
    done: dict[str, Any] = {}  # of the comparison with the reference
    if settings.resume is not None:
        then = artefact.continued(settings.resume, KIND, settings.tree(), "tried", "compared")
        tried, done = then["tried"], then["compared"]
    artefact.refuse_unsaved(KIND, None)
    record = artefact.record(KIND, base.seed, settings.tree(), {}, tried=tried, compared=done)
    path = artefact.place(record, base.recipe)

    def save(**own: Any) -> None:
        rates = {shown(one["candidate"]): artefact.sample(one["rates"], "agent-steps/s") for one in tried}
        artefact.write(record | {"samples": rates, "finished": False} | own, path)

    own: dict[str, Any] = {}
    with stoppable() as stopped:
        search(settings, base, tried, save)
        own = conclude(settings, tried, done, save)
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


def conclude(
    settings: Settings, tried: Sequence[Mapping[str, Any]], done: dict[str, Any], save: Save
) -> dict[str, Any]:
    """The fastest stable candidate that is not slower than the reference in turns and still learns; else that one.

    Only the first few are looked at. `done` has what was measured before a stop, and takes what is measured now.
    """
    steady = sorted((one for one in tried if one["stable"]), key=lambda one: -mean(one["rates"]))
    if not steady:
        return {"winner": None, "said": "no candidate was stable"}
    asked = {"seeds": list(settings.seeds), "check_epochs": settings.check_epochs}
    if done.get("asked") != asked:
        done.clear()
        done |= {"asked": asked, "reference": [], "finalists": []}
    said: list[str] = []  # of those that did not win
    for one in steady[: settings.finalists]:
        changes = list(one["changes"])
        if not changes:
            return {"winner": [], "said": "; ".join([*said, "the reference itself is the fastest"])}
        finalist = next((known for known in done["finalists"] if known["changes"] == changes), None)
        if finalist is None:
            finalist = {"changes": changes, "turns": against(settings, changes), "scores": []}
            done["finalists"].append(finalist)
            save()
        ratio = grouped_ratio([finalist["turns"]["candidate"]], [finalist["turns"]["reference"]])
        finalist["ratio"], told = ratio.tree(), f"{' '.join(changes)} is {ratio} of the reference"
        if ratio.ratio < 1.0:
            said.append(f"{told} in turns")
            continue
        checked = learns(settings, changes, done["reference"], finalist["scores"], save)
        finalist["check"] = checked
        if checked["holds"]:
            return {"winner": changes, "said": "; ".join([*said, told, checked["said"]])}
        said += [told, checked["said"]]
        if checked["holds"] is None:
            break  # of the others it would not be known either
    return {"winner": [], "said": "; ".join([*said, "the reference stays"])}


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
