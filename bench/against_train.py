"""Two builds of the trainer beside each other: `python bench/against_train.py --base COMMIT`.

What `gridmill bench train` runs, as each build says it: whole epochs, rollout and learning. Each build runs in a
process of its own with one thread, and both take turns epoch by epoch, so that a noisy machine disturbs both alike.
Speed is agent-steps per CPU second; a line is the median of the paired ratios with its interval of 95 %. The base is
built as bench/against.py builds it.
"""

import argparse
import importlib
import json
import sys
import time
from pathlib import Path
from typing import Any

from against import Build

SETTINGS = ("prospector", "prospector policy.core=none", "arena_basic_easy_shaped policy.core=scan", "toy")


def work() -> None:
    """The child: trains what it is told, an epoch an order."""
    from gridmill.train.trainer import Trainer

    try:
        from gridmill.workshop.bench.train import run_of
    except ModuleNotFoundError:  # before the bench was a folder
        run_of = importlib.import_module("gridmill.workshop.bench_train").run_of
    trainer: Any = None
    for line in sys.stdin:
        order = json.loads(line)
        if order["op"] == "make":
            if trainer is not None:
                trainer.close()
            game, *changes = order["setting"].split()
            trainer = Trainer(run_of(game, None, [*changes, "trainer.threads=1"]))
        began = time.process_time()
        trainer.epoch()
        print(json.dumps({"cpu": time.process_time() - began, "steps": trainer.sizes.batch_size}), flush=True)


def measure(builds: tuple[Build, Build], setting: str, rounds: int) -> str:
    from gridmill.workshop.statistics import median, paired_ratio

    for build in builds:
        build.do(op="make", setting=setting)
    rates: tuple[list[float], list[float]] = ([], [])
    for turn in range(rounds + 1):
        for index in (0, 1) if turn % 2 == 0 else (1, 0):
            took = builds[index].do(op="epoch")
            if turn > 0:  # the first warms up
                rates[index].append(took["steps"] / took["cpu"])
    found = paired_ratio(rates[1], rates[0])
    base, now = (median(one) / 1e3 for one in rates)
    return f"{base:8.1f} {now:8.1f}   {found.ratio:.3f} [{found.low:.3f}, {found.high:.3f}]"


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--base", default="4590d82", help="commit to build and compare with, or the folder of a build")
    parser.add_argument("--site", default="", help="folder with the package of this side; this tree's if not given")
    parser.add_argument("--rounds", type=int, default=40, help="pairs of epochs")
    parser.add_argument("--setting", action="append", help="GAME [key=value ...]; may be given several times")
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.worker:
        work()
        return
    file = str(Path(__file__).resolve())
    from gridmill.workshop.revisions import site_of

    builds = (Build(str(site_of(given.base)), "", file), Build(given.site, "", file))
    print(f"k agent-steps per CPU second: {given.base}, this tree, ratio [95 %] of {given.rounds} pairs of epochs")
    for setting in given.setting or SETTINGS:
        print(f"{setting:<44}", measure(builds, setting, given.rounds), flush=True)


if __name__ == "__main__":
    main()
