"""`gridmill validate`: real training with shadow validation: observations by both paths, every step, byte by byte.

It judges nothing but that: exit 0 only if as many rows were compared as promised and none differed. The run has its
own folder, whose log.txt ends with the count, and of a mismatch both rows with the names of their tokens.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from gridmill import recipes, sizing
from gridmill.config.text import hang
from gridmill.env import switches
from gridmill.run import Run
from gridmill.runs import overrides, presets
from gridmill.workshop import artefact
from gridmill.workshop.runner import added_validation, validation_of

KIND = "validate"
NOTHING_COMPARED, MISMATCH = 1, 2
SMOKE = 20_000  # agent-steps
SOAK = 100_000
SOAK_PER_WORLD = 10_000  # comparisons, at least


@dataclass(frozen=True)
class Settings:
    """How long, of which recipe, and where the run goes."""

    length: str = "smoke"
    recipe: str = "ci"
    changes: tuple[str, ...] = ()
    runs_dir: Path = Path("runs")
    resume: Path | None = None

    def tree(self) -> dict[str, Any]:
        """For the artefact, and to see whether it can be continued."""
        return {"length": self.length, "recipe": self.recipe, "changes": list(self.changes)}


def steps_of(length: str, num_worlds: int) -> int:
    """Agent-steps of `smoke`, of `soak` (every world has its share of comparisons), or of a number."""
    if length == "smoke":
        return SMOKE
    if length == "soak":
        return max(SOAK, (SOAK_PER_WORLD + 1) * num_worlds)
    steps = overrides.read(length, "N")
    if not isinstance(steps, int) or isinstance(steps, bool) or steps < 1:
        raise ValueError(f"expected smoke, soak or a number of agent-steps, got `{length}`")
    return steps


def planned(settings: Settings) -> Run:
    """The run: the recipe with its overrides, so long, without evaluation."""
    for text in settings.changes:
        if overrides.split(text)[0] == "trainer.total_timesteps":
            raise ValueError(f"trainer.total_timesteps: give the length instead, as in `gridmill validate {SMOKE}`")
    run = overrides.apply(presets.fill(recipes.build(settings.recipe)), settings.changes)
    if run.game.obs_kind != "tokens":
        raise ValueError(f"{run.game.name} has only one observation path, so there is nothing to compare; try ci")
    name = run.run or f"validate-{settings.length}-{datetime.now():%Y%m%d-%H%M%S-%f}"
    steps = steps_of(settings.length, run.trainer.num_worlds)
    changes = {"run": name, "trainer.total_timesteps": steps, "evaluation.enabled": False}
    return overrides.change(run, changes.items())


def verdict(found: Mapping[str, Any] | None, num_worlds: int, length: str) -> tuple[int, str]:
    """Exit code and what to say of the counts."""
    if found is None or found["comparisons"] == 0:
        return NOTHING_COMPARED, "nothing was compared"
    if found["mismatches"]:
        return MISMATCH, "the fast observations differ from the reference"
    each = found["comparisons"] // num_worlds
    if length == "soak" and each < SOAK_PER_WORLD:
        return NOTHING_COMPARED, f"{each:,} comparisons per world, expected {SOAK_PER_WORLD:,}"
    return 0, "equal to the byte"


def run(settings: Settings) -> int:
    """Train, compare, say so. 0 equal, 1 too little was compared, 2 a mismatch, or the code the training ended with."""
    planned_run = planned(settings)
    sizing.refuse_unfit(planned_run)
    if not switches.switch(switches.VALIDATION, None, True):
        raise ValueError(f"{switches.VALIDATION}=0 switches off the comparison that this command makes; unset it")
    then = None
    if settings.resume is not None:
        then = artefact.continued(settings.resume, KIND, settings.tree(), "run", "validation")
    artefact.refuse_unsaved(KIND, None)
    os.environ[switches.VALIDATION] = "1"
    from gridmill.runs import session

    if then is None:
        done, counted = session.train(planned_run, settings.runs_dir), None
    else:
        done, counted = session.resume(settings.runs_dir / then["run"]), then["validation"]
    counted = added_validation(validation_of(done.validation), counted)
    worlds = planned_run.trainer.num_worlds
    code, said = verdict(counted, worlds, settings.length)
    if done.exit_code and code != MISMATCH:
        code, said = done.exit_code, f"the training ended with exit code {done.exit_code}"
    path = _save(settings, planned_run, done, counted, code)
    if counted is not None and then is not None:
        said += f", {counted['comparisons']:,} comparisons in total"
    print("\n".join(hang("result: ", said)))
    if done.exit_code in artefact.STOPPED:
        print(f"continue with --resume {path}")
    print(f"log: {done.folder / 'log.txt'}")
    return code


def _save(settings: Settings, planned_run: Run, done: Any, counted: Mapping[str, Any] | None, code: int) -> Path:
    samples = {} if counted is None else {"reference / fast time": artefact.sample([counted["ratio"]], "x", "lower")}
    record = artefact.record(
        KIND,
        planned_run.seed,
        settings.tree(),
        samples,
        num_worlds=planned_run.trainer.num_worlds,
        agent_steps=done.agent_steps,
        run=done.folder.name,
        validation=counted,
    )
    record |= {"exit_code": code, "finished": done.exit_code == 0}
    path = artefact.write(record, artefact.place(record, settings.length))
    print(f"saved to {path}")
    return path
