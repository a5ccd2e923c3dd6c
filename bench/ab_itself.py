"""Whether `gridmill ab` can be believed: a setting against itself, many times over.

    python bench/ab_itself.py --repetitions 20 --output bench/results/ab_itself.json

Nothing differs between the two sides, so a 95 % interval should contain 1 in 19 of 20 repetitions, and the ratios
should scatter around 1. It ends with 1 if fewer than 17 of 20 do, or if their mean is off by more than 1 %. Every
repetition is a whole `gridmill ab` with seeds of its own; the artefact has all of them, and is written after each.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from gridmill.config.files import refuse_unwritable
from gridmill.config.text import table
from gridmill.workshop import ab, artefact, machine
from gridmill.workshop.statistics import mean, ratio_text

KIND = "ab itself"
SIDE = (
    "ci trainer.batch_size=3072 trainer.minibatch_size=1536 trainer.bptt_horizon=64 trainer.threads=1 policy.hidden=16"
)
SEEDS = 3  # of a repetition
LEAST_INSIDE, MOST_OFF = 17 / 20, 0.01
Ratios = Mapping[str, Any]  # a saved ratio by clock


def repetition(side: str, number: int, blocks: int, epochs: int) -> Ratios:
    """One `gridmill ab`, without what it prints."""
    seeds = tuple(range(SEEDS * number, SEEDS * (number + 1)))
    with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()):
        path = Path(folder) / "ab.json"
        one = ab.side_of(side)
        code = ab.run(ab.Settings(one, one, seeds, blocks, epochs, phases=False, output=path))
        if code:
            raise SystemExit(code)
        return dict(artefact.read(path, ab.KIND)["ratios"])


def inside(ratios: Sequence[Ratios], clock: str) -> int:
    return sum(one[clock]["low"] <= 1.0 <= one[clock]["high"] for one in ratios)


def record_of(asked: Mapping[str, Any], ratios: Sequence[Ratios]) -> dict[str, Any]:
    """Everything as an artefact; whether it holds is judged per CPU second."""
    samples = {
        f"per {clock} second": artefact.sample([r[clock]["ratio"] for r in ratios], "B / A") for clock in ab.CLOCKS
    }
    told = {
        clock: {"inside": inside(ratios, clock), "mean": mean(r[clock]["ratio"] for r in ratios)} for clock in ab.CLOCKS
    }
    holds = told["cpu"]["inside"] >= LEAST_INSIDE * len(ratios) and abs(told["cpu"]["mean"] - 1.0) <= MOST_OFF
    finished = len(ratios) == asked["repetitions"]
    record = artefact.record(KIND, 0, asked, samples, ratios=list(ratios), told=told)
    return record | {"finished": finished, "exit_code": 0 if holds else 1}


def lines_of(record: Mapping[str, Any]) -> list[str]:
    """A row for each repetition, then what they come to."""
    rows = []
    for number, one in enumerate(record["ratios"]):
        cells = [cell for clock in ab.CLOCKS for cell in (ratio_text(one[clock]), "" if inside([one], clock) else "no")]
        rows.append((str(number + 1), *cells))
    lines = table(("", "per CPU second [95 %]", "has 1", "per wall second [95 %]", "has 1"), rows)
    for clock, told in record["told"].items():
        lines.append(f"per {clock} second: 1 is inside {told['inside']} of {len(rows)}, the mean is {told['mean']:.5f}")
    return lines


def main() -> int:
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("side", nargs="?", default=SIDE)
    asked.add_argument("--repetitions", type=int, default=20)
    asked.add_argument("--blocks", type=int, default=4)
    asked.add_argument("--epochs", type=int, default=2)
    asked.add_argument("--output", type=Path, required=True)
    arguments = asked.parse_args()
    for name in ("repetitions", "blocks", "epochs"):
        if getattr(arguments, name) < 1:
            asked.error(f"--{name}: expected at least 1, got {getattr(arguments, name)}")
    refuse_unwritable(arguments.output)
    settings = {name: value for name, value in vars(arguments).items() if name != "output"}
    ratios: list[Ratios] = []
    for number in range(arguments.repetitions):
        ratios.append(repetition(arguments.side, number, arguments.blocks, arguments.epochs))
        record = record_of(settings, ratios)
        artefact.write(record, arguments.output)
        print(f"{number + 1}: {ratio_text(ratios[-1]['cpu'])}", file=sys.stderr, flush=True)
    print("\n".join([*machine.headline(record["machine"]), "", *lines_of(record)]))
    return int(record["exit_code"])


if __name__ == "__main__":
    sys.exit(main())
