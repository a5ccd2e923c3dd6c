"""`gridmill compare-presets`: one recipe with two presets, in turns: speed, utilisation, memory, balance, and what was
learned after equal time and after equal steps.

For every seed both begin anew and take their epochs in turn, whoever has trained less, until both have trained so long.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gridmill import recipes, sizing
from gridmill.config.memory import mebibytes
from gridmill.config.text import count, hang, short, table
from gridmill.runs import overrides, presets
from gridmill.workshop import ab, artefact, machine
from gridmill.workshop.progress import Progress, stoppable
from gridmill.workshop.statistics import grouped_ratio, interval_of_mean, mean, ratio_text

KIND = "compare-presets"
Found = dict[str, list[list[dict[str, Any]]]]  # epochs by preset and seed; those of the last seed may be cut short


@dataclass(frozen=True)
class Settings:
    """What is trained, with which two presets, and how long each."""

    recipe: str = "prospector"
    changes: tuple[str, ...] = ()
    presets: tuple[str, str] = ("baseline", "ultra_fast")
    seconds: float = 60.0  # of training, of each, with every seed
    seeds: tuple[int, ...] = (0, 1, 2)
    output: Path | None = None
    resume: Path | None = None

    def check(self) -> None:
        if not self.seconds > 0:
            raise ValueError(f"--seconds must be above 0, got {self.seconds}")
        if self.presets[0] == self.presets[1]:
            raise ValueError(f"--preset takes two different ones, got `{self.presets[0]}` twice")
        ab.refuse_same_seeds(self.seeds)
        for preset in self.presets:
            run = presets.apply(recipes.build(self.recipe), preset)
            sizing.refuse_unfit(overrides.apply(run, self.changes))

    def tree(self) -> dict[str, Any]:
        """For the artefact, and to see whether it can be continued."""
        shown: dict[str, Any] = {"recipe": self.recipe, "changes": list(self.changes), "presets": list(self.presets)}
        return shown | {"seconds": self.seconds, "seeds": list(self.seeds)}


def seconds_of(epochs: Sequence[Mapping[str, Any]]) -> float:
    return float(sum(one["wall_seconds"] for one in epochs))


def whole_seeds(settings: Settings, found: Found) -> Found:
    """Only the seeds with which both have trained so long."""
    both = zip(*(found[preset] for preset in settings.presets), strict=True)
    done = [all(seconds_of(epochs) >= settings.seconds for epochs in pair) for pair in both]
    return {preset: found[preset][: sum(done)] for preset in settings.presets}


def measure_seed(settings: Settings, seed: int, found: Found, progress: Progress) -> None:
    """Both presets from the start; their epochs go into `found` as they come."""
    workers: dict[str, machine.Worker] = {}
    began = progress.done
    for preset in settings.presets:
        found[preset].append([])
    try:
        for preset in settings.presets:
            side = ab.Side(settings.recipe, settings.changes, preset=preset)
            workers[preset] = ab.start(side, seed, phases=False)
        while True:
            spent = {preset: seconds_of(found[preset][-1]) for preset in settings.presets}
            least = min(spent, key=lambda preset: spent[preset])
            part = sum(min(s, settings.seconds) for s in spent.values()) / (2 * settings.seconds)
            while progress.done < began + 100 * part:
                progress.step(f"seed {seed}, {least}")
            if spent[least] >= settings.seconds:
                return
            found[least][-1].append(workers[least].ask({"epochs": 1}, ab.NEEDED))
    finally:
        for worker in workers.values():
            worker.close()


# ---- what it says


def score_after(epochs: Sequence[Mapping[str, Any]], name: str, amount: float) -> float | None:
    """The score when so many seconds (`wall_seconds`) or agent-steps were over."""
    total, score = 0.0, None
    for one in epochs:
        total += one[name]
        if total > amount and score is not None:
            break
        score = one["score"] if one["score"] is not None else score
    return score


def rate_of(epochs: Sequence[Mapping[str, Any]], clock: str) -> float:
    """Agent-steps per second. The first epoch warms up and does not count."""
    timed = epochs[1:] or epochs
    return float(sum(one["agent_steps"] for one in timed) / max(sum(one[clock] for one in timed), 1e-9))


def equal_scores(found: Found, name: str) -> dict[str, list[float | None]]:
    """By preset and seed the score after as much of this (seconds, agent-steps) as both have had."""
    scores: dict[str, list[float | None]] = {preset: [] for preset in found}
    for pair in zip(*found.values(), strict=True):
        amount = min(sum(one[name] for one in epochs) for epochs in pair)
        for preset, epochs in zip(found, pair, strict=True):
            scores[preset].append(score_after(epochs, name, amount))
    return scores


def summary(found: Found) -> dict[str, dict[str, Any]]:
    """Everything that is compared, by preset."""
    time, steps = equal_scores(found, "wall_seconds"), equal_scores(found, "agent_steps")
    cores, told = sizing.usable_cores(), {}
    for preset, seeds in found.items():
        timed = [one for epochs in seeds for one in (epochs[1:] or epochs)]
        wall, cpu = (sum(one[name] for one in timed) for name in ("wall_seconds", "cpu_seconds"))
        rollout, learn = (sum(one["phases"][name] for one in timed) for name in ("rollout", "learn"))
        agent_steps = sum(one["agent_steps"] for one in timed)
        told[preset] = {
            "sps": agent_steps / wall,
            "per_cpu_second": agent_steps / max(cpu, 1e-9),
            "utilisation": cpu / wall / cores,
            "memory": max(one["rss"] for epochs in seeds for one in epochs),
            "balance": rollout / max(learn, 1e-9),
            "score_after_equal_time": time[preset],
            "score_after_equal_steps": steps[preset],
            "epochs": [len(epochs) for epochs in seeds],
        }
    return told


def ratios(found: Found) -> dict[str, dict[str, Any]]:
    """Speed of the second to the first, seed by seed, by both clocks; without an interval for a single seed."""
    first, second = found.values()
    told = {}
    for clock, name in ab.CLOCKS.items():
        rates = [[[rate_of(epochs, name)] for epochs in seeds] for seeds in (second, first)]
        told[clock] = grouped_ratio(*rates).tree()
    return told


def _score_text(scores: Sequence[float | None]) -> str:
    known = [score for score in scores if score is not None]
    if not known:
        return "-"
    low, high = interval_of_mean(known)
    return f"{mean(known):.3f}" + (f" [{low:.3f}, {high:.3f}]" if math.isfinite(low) else "")


def lines_of(told: Mapping[str, Mapping[str, Any]], speed: Mapping[str, Any], seconds: float) -> list[str]:
    """A column for each preset, and their ratio."""
    one, other = told.values()
    both = (one, other)
    rows = [
        ("steps per wall second", *(short(x["sps"]) for x in both), ratio_text(speed["wall"])),
        ("steps per CPU second", *(short(x["per_cpu_second"]) for x in both), ratio_text(speed["cpu"])),
        ("cores busy", *(f"{100 * x['utilisation']:.0f} %" for x in both), ""),
        ("memory", *(mebibytes(x["memory"]) for x in both), f"{other['memory'] / one['memory']:.2f}x"),
        ("rollout / learning", *(f"{x['balance']:.2f}" for x in both), ""),
    ]
    lines = table(("", *told, "ratio [95 %]"), rows)
    scores = [
        (f"score after {seconds:g} s", *(_score_text(x["score_after_equal_time"]) for x in both)),
        ("score after equal steps", *(_score_text(x["score_after_equal_steps"]) for x in both)),
    ]
    return [*lines, "", *table(("mean of the seeds [95 %]", *told), scores)]


def run(settings: Settings) -> int:
    """Measure, print, save. 0 done, 130 stopped: then it can be continued."""
    settings.check()
    found: Found = {preset: [] for preset in settings.presets}
    if settings.resume is not None:
        then = artefact.continued(settings.resume, KIND, settings.tree(), "epochs")
        found = whole_seeds(settings, then["epochs"])
    artefact.refuse_unsaved(KIND, settings.output)
    left = settings.seeds[len(found[settings.presets[0]]) :]
    progress = Progress(100 * len(left), "hundredths" if len(left) > 1 else "per cent")
    with stoppable() as stopped:
        for seed in left:
            measure_seed(settings, seed, found, progress)
    progress.close()
    shown = {preset: [epochs for epochs in seeds if epochs] for preset, seeds in found.items()}
    both = min(map(len, shown.values()))
    shown = {preset: seeds[:both] for preset, seeds in shown.items()}
    own: dict[str, Any] = {"summary": summary(shown), "ratios": ratios(shown)} if both else {}
    samples = {}
    for preset, seeds in shown.items():
        rates = [one["agent_steps"] / max(one["wall_seconds"], 1e-9) for epochs in seeds for one in epochs]
        samples[preset] = artefact.sample(rates, "agent-steps/s")
    record = artefact.record(KIND, settings.seeds[0], settings.tree(), samples, epochs=found, **own)
    record |= {"finished": not stopped, "exit_code": artefact.INTERRUPTED if stopped else 0}
    print("\n".join([*machine.headline(record["machine"]), count(both, "seed"), ""]))
    if own:
        print("\n".join(lines_of(own["summary"], own["ratios"], settings.seconds)))
        said = f"{settings.presets[1]} trains {ratio_text(own['ratios']['wall'])} as many steps in the same time here"
        print("\n".join(["", *hang("", said)]))
    path = settings.output or artefact.place(record, settings.recipe)
    for reason in stopped:
        print(f"{reason} after {count(len(whole_seeds(settings, found)[settings.presets[0]]), 'whole seed')}; "
              f"continue with --resume {path}")  # fmt: skip
    print(f"saved to {artefact.write(record, path)}")
    return int(record["exit_code"])
