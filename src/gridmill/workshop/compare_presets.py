"""`gridmill compare-presets`: one recipe with two presets, in turns: speed, utilisation, memory, balance, and what was
learned after equal time and after equal steps.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gridmill import recipes, sizing
from gridmill.config.text import hang, short, table
from gridmill.runs import overrides, presets
from gridmill.workshop import ab, artefact, machine
from gridmill.workshop.progress import Progress, stoppable
from gridmill.workshop.statistics import mean

KIND = "compare-presets"


@dataclass(frozen=True)
class Settings:
    """What is trained, with which two presets, and how long each."""

    recipe: str = "prospector"
    changes: tuple[str, ...] = ()
    presets: tuple[str, str] = ("baseline", "ultra_fast")
    seconds: float = 60.0  # of training, of each
    seed: int = 0
    output: Path | None = None

    def check(self) -> None:
        if not self.seconds > 0:
            raise ValueError(f"--seconds must be above 0, got {self.seconds}")
        if self.presets[0] == self.presets[1]:
            raise ValueError(f"--preset takes two different ones, got `{self.presets[0]}` twice")
        for preset in self.presets:
            run = presets.apply(recipes.build(self.recipe), preset)
            sizing.refuse_unfit(overrides.apply(run, self.changes))
        if self.output is not None:
            artefact.refuse_unwritable(self.output)


def measure(settings: Settings, found: Mapping[str, list[dict[str, Any]]]) -> None:
    """Epochs in turns, whoever has trained less goes on, until both have trained so long; into `found`, by preset."""
    workers: dict[str, machine.Worker] = {}
    progress = Progress(100, "per cent")
    try:
        for preset in settings.presets:
            side = ab.Side(settings.recipe, settings.changes, preset=preset)
            workers[preset] = ab.start(side, settings.seed, phases=False)
        while True:
            spent = {preset: sum(one["wall_seconds"] for one in found[preset]) for preset in settings.presets}
            least = min(spent, key=lambda preset: spent[preset])
            if spent[least] >= settings.seconds:
                return
            found[least].append(workers[least].ask({"epochs": 1}, ab.NEEDED))
            part = sum(min(s, settings.seconds) for s in spent.values()) / (2 * settings.seconds)
            while progress.done < 100 * part:
                progress.step(least)
    finally:
        progress.close()
        for worker in workers.values():
            worker.close()


def score_after(epochs: Sequence[Mapping[str, Any]], name: str, amount: float) -> float | None:
    """The score when so many seconds (`wall_seconds`) or agent-steps were over."""
    total, score = 0.0, None
    for one in epochs:
        total += one[name]
        if total > amount and score is not None:
            break
        score = one["score"] if one["score"] is not None else score
    return score


def summary(found: Mapping[str, Sequence[Mapping[str, Any]]]) -> dict[str, dict[str, Any]]:
    """Everything that is compared, by preset. The first epoch warms up and does not count for the speed."""
    time = min(sum(one["wall_seconds"] for one in epochs) for epochs in found.values())
    steps = min(sum(one["agent_steps"] for one in epochs) for epochs in found.values())
    cores, told = sizing.usable_cores(), {}
    for preset, epochs in found.items():
        timed = epochs[1:] or epochs
        wall, cpu = (sum(one[name] for one in timed) for name in ("wall_seconds", "cpu_seconds"))
        rollout, learn = (sum(one["phases"][name] for one in timed) for name in ("rollout", "learn"))
        agent_steps = sum(one["agent_steps"] for one in timed)
        told[preset] = {
            "sps": agent_steps / wall,
            "per_cpu_second": agent_steps / max(cpu, 1e-9),
            "utilisation": cpu / wall / cores,
            "memory": max(one["rss"] for one in epochs),
            "balance": rollout / max(learn, 1e-9),
            "score_after_equal_time": score_after(epochs, "wall_seconds", time),
            "score_after_equal_steps": score_after(epochs, "agent_steps", steps),
            "epochs": len(epochs),
        }
    return told


def lines_of(told: Mapping[str, Mapping[str, Any]], seconds: float) -> list[str]:
    """A column for each preset, and their ratio."""
    one, other = told.values()

    def score(value: float | None) -> str:
        return "-" if value is None else f"{value:.3f}"

    rows = [
        ("steps per wall second", *(short(x["sps"]) for x in (one, other)), f"{other['sps'] / one['sps']:.2f}x"),
        ("steps per CPU second", *(short(x["per_cpu_second"]) for x in (one, other)),
         f"{other['per_cpu_second'] / one['per_cpu_second']:.2f}x"),
        ("cores busy", *(f"{100 * x['utilisation']:.0f} %" for x in (one, other)), ""),
        ("memory", *(sizing.mebibytes(x["memory"]) for x in (one, other)), f"{other['memory'] / one['memory']:.2f}x"),
        ("rollout / learning", *(f"{x['balance']:.2f}" for x in (one, other)), ""),
        (f"score after {seconds:.0f} s", *(score(x["score_after_equal_time"]) for x in (one, other)), ""),
        ("score after equal steps", *(score(x["score_after_equal_steps"]) for x in (one, other)), ""),
    ]  # fmt: skip
    return table(("", *told, "ratio"), rows)


def run(settings: Settings) -> int:
    """Measure, print, save. 0 done, 130 stopped."""
    settings.check()
    found: dict[str, list[dict[str, Any]]] = {preset: [] for preset in settings.presets}
    with stoppable() as stopped:
        measure(settings, found)
    told = summary(found) if all(found.values()) else {}
    samples = {}
    for preset, epochs in found.items():
        rates = [one["agent_steps"] / max(one["wall_seconds"], 1e-9) for one in epochs]
        samples[preset] = artefact.sample(rates, "agent-steps/s")
    asked: dict[str, Any] = {"recipe": settings.recipe, "changes": list(settings.changes)}
    asked["presets"] = list(settings.presets)
    asked |= {"seconds": settings.seconds}
    record = artefact.record(KIND, settings.seed, asked, samples, summary=told, epochs=found)
    record |= {"finished": not stopped, "exit_code": artefact.INTERRUPTED if stopped else 0}
    print("\n".join([*machine.headline(record["machine"]), ""]))
    if told:
        print("\n".join(lines_of(told, settings.seconds)))
        faster = mean([told[settings.presets[1]]["sps"]]) / told[settings.presets[0]]["sps"]
        said = f"{settings.presets[1]} trains {faster:.2f}x as many steps in the same time on this machine"
        print("\n".join(["", *hang("", said)]))
    for reason in stopped:
        print(f"{reason}; what was measured is saved")
    path = settings.output or artefact.place(record, settings.recipe.split("/")[-1])
    print(f"saved to {artefact.write(record, path)}")
    return int(record["exit_code"])
