"""How far runs of the same code at different times lie apart: what `gridmill bench step --baseline` must not call a
change.

    for i in $(seq 16); do gridmill bench step --output apart/toy-$i.json; sleep 225; done    # and other games
    python bench/between_runs.py apart --output bench/results/workshop/between_runs.json

For the runs of each load it says how their medians scatter: the standard deviation of the logarithm of the ratio of two
of them, the largest ratio, and of how many pairs the interval that `--baseline` prints contains 1.
`statistics.BETWEEN_RUNS` is the logarithm of the largest ratio of all.
"""

from __future__ import annotations

import argparse
import itertools
import math
import sys
from pathlib import Path
from typing import Any

from gridmill.config.files import refuse_unwritable
from gridmill.config.text import short, table
from gridmill.workshop import artefact, machine
from gridmill.workshop.bench.saved import read_saved
from gridmill.workshop.statistics import between_runs, independent_ratio, mean, median, stdev

KIND = "between runs"


def rates_of(saved: dict[str, Any]) -> list[float]:
    """Agent-steps per CPU second, round by round."""
    return [one["agent_steps"] / max(one["cpu_seconds"], 1e-9) for one in saved["runs"][0]["rounds"]]


def scatter(runs: list[list[float]]) -> dict[str, Any]:
    """What the runs of one load say."""
    medians = [median(rates) for rates in runs]
    pairs = [between_runs(independent_ratio(b, a)) for a, b in itertools.combinations(runs, 2)]
    return {
        "medians": medians,
        "deviation": math.sqrt(2) * stdev(map(math.log, medians)),
        "largest_ratio": max(medians) / min(medians),
        "pairs": len(pairs),
        "contain_1": mean(not pair.separated for pair in pairs),
    }


def main() -> int:
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("folder", type=Path)
    asked.add_argument("--output", type=Path, required=True)
    arguments = asked.parse_args()
    refuse_unwritable(arguments.output)
    runs: dict[str, list[list[float]]] = {}
    saved = sorted(
        (read_saved(path) for path in arguments.folder.glob("*.json")), key=lambda one: one["machine"]["date"]
    )
    for one in saved:
        load = one["runs"][0]["load"]
        runs.setdefault(f"{load['game']}, {load['worlds']} worlds", []).append(rates_of(one))
    found = {name: scatter(own) for name, own in runs.items()}
    samples = {name: artefact.sample(one["medians"], "agent-steps/CPU s") for name, one in found.items()}
    span = {"first": saved[0]["machine"]["date"], "last": saved[-1]["machine"]["date"]}
    artefact.write(artefact.record(KIND, 0, span, samples, found=found), arguments.output)
    rows = []
    for name, one in found.items():
        cells = (str(len(one["medians"])), short(median(one["medians"])), f"{one['deviation']:.3f}")
        rows.append((name, *cells, f"{one['largest_ratio']:.2f}x", f"{100 * one['contain_1']:.0f} %"))
    header = ("load", "runs", "median", "deviation", "largest ratio", "intervals with 1")
    print("\n".join([*machine.headline(machine.describe()), "", *table(header, rows)]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
