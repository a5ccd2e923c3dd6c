"""One recipe with several seeds: `gridmill train ci seeds=1,2,3`. A run each, one after the other, then one page."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

from gridmill.config.install import command
from gridmill.config.text import harmless, table
from gridmill.evaluate.means import standard_error
from gridmill.run import Run
from gridmill.runs import ending, session
from gridmill.runs.epoch import Result
from gridmill.runs.figures import number
from gridmill.runs.heading import Origin
from gridmill.runs.place import name_of, refuse_occupied
from gridmill.runs.report import compare


def train(
    run: Run,
    seeds: Sequence[int],
    runs_dir: Path,
    fresh: bool = False,
    recipe: Run | Origin | None = None,
    typed: Sequence[str] = (),
) -> int:
    """Train them, compare them, and say what came out; the exit code of the first that did not finish, else 0.

    `typed` are the words behind `gridmill train`, without name and seeds: with them, the rest can be trained later.
    """
    base = run.run or name_of(run.recipe)
    runs = [run.replace_all([("run", f"{base}-seed-{seed}"), ("seed", seed)]) for seed in seeds]
    for each in runs if not fresh else ():
        refuse_occupied(runs_dir / each.run)  # before the first of them is trained
    results: list[Result] = []
    for place, each in enumerate(runs):
        print(f"{'' if place == 0 else chr(10)}seed {each.seed}, {place + 1} of {len(runs)}", flush=True)
        results.append(session.train(each, runs_dir, fresh=fresh, recipe=recipe))
        if results[-1].exit_code:
            left = ",".join(str(seed) for seed in seeds[place + 1 :])
            others = [f"seeds={left}", f"run={base}"]
            rest = f"the others: {command('train', *typed, *others)}" if typed else f"not started: {' '.join(others)}"
            print(f"stopped with seed {each.seed}{f'; {harmless(rest)}' if left else ''}")
            return results[-1].exit_code
    print("\n" + "\n".join(_table(seeds, results)))
    if len(results) > 1:
        page = compare.write([each.folder for each in results], runs_dir / f"{base}.html")
        print(harmless(f"{'compared':<{ending.NAMED}}{page}"))
    return 0


def _table(seeds: Sequence[int], results: Sequence[Result]) -> list[str]:
    """A line a seed, then the mean of the scores with its standard error."""
    rows = [
        (seed, ending.word(each.folder), number(each.score), f"{each.agent_steps / max(1e-9, each.seconds):,.0f}")
        for seed, each in zip(seeds, results, strict=True)
    ]
    lines = table(("seed", "run", "score", "steps/s"), rows, left=2)
    scores = [each.score for each in results if each.score is not None]
    if len(scores) < 2:
        return lines
    mean = math.fsum(scores) / len(scores)
    error = number(standard_error(scores))
    return [*lines, f"mean {number(mean)} +- {error} (standard error) over {len(scores)} seeds"]
