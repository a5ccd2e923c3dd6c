"""Two builds of the engine beside each other: `python bench/against.py --base COMMIT`.

Each build runs in a process of its own and both take turns, a slice of ticks each, so that a noisy machine disturbs
both alike. Speed is agent-steps per CPU second with one thread, per second by the clock with more; a line is the median
of the rounds' ratios and their quartiles. `--check` compares the bytes instead: observations, rewards, ends, masks,
states.
The base is built from git into build/against/; this tree's build is the one of the running interpreter.
"""

import argparse
import hashlib
import itertools
import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

GAMES = "toy,arena,arena_basic_easy_shaped,navigation,extractor_hub,cogsguard_arena,cogsguard,prospector"


class Build:
    """One build in its own process; `ask` sends an order, `answer` waits for what came of it."""

    def __init__(self, site: str, isa: str, file: str = __file__) -> None:
        from gridmill.workshop.revisions import python_of  # not in older builds, whose workers read this file too

        given = os.environ | ({"GRIDMILL_ISA": isa} if isa else {})
        command = [*python_of(Path(site) if site else None), file, "--worker"]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=given)

    def ask(self, **order: Any) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(order) + "\n")
        self.process.stdin.flush()

    def answer(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            raise SystemExit(f"a build's process ended with code {self.process.wait()}")
        return dict(json.loads(line))

    def do(self, **order: Any) -> dict[str, Any]:
        self.ask(**order)
        return self.answer()


def work() -> None:
    """The child: makes an environment and steps it as told, with actions drawn beforehand."""
    import numpy as np

    import gridmill

    env: Any = None
    for line in sys.stdin:
        order = json.loads(line)
        if order["op"] == "make":
            if env is not None:
                env.close()
            env = gridmill.make(
                order["game"], num_worlds=order["worlds"], threads=order["threads"], masks=order["masks"], seed=1
            )
            env.reset()
            rng = np.random.default_rng(2)
            drawn = rng.integers(0, env.num_actions, (64, env.num_rows)).astype(np.int32)
            turn = itertools.cycle(range(64))
            reply: dict[str, Any] = {"rows": env.num_rows, "file": gridmill._native.__file__}
        else:
            seen = hashlib.blake2b()
            cpu, wall = time.process_time(), time.perf_counter()
            for _ in range(order["ticks"]):
                env.step(drawn[next(turn)])
                if order["check"]:
                    shown = [env.obs, env.rewards, env.terminals, env.truncations]
                    for array in [*shown, *([env.masks] if env.masks is not None else [])]:
                        seen.update(np.ascontiguousarray(array).tobytes())
            reply = {"cpu": time.process_time() - cpu, "wall": time.perf_counter() - wall}
            if order["check"]:
                reply |= {"seen": seen.hexdigest(), "state": hashlib.blake2b(env.state_hash().tobytes()).hexdigest()}
        print(json.dumps(reply), flush=True)


def measure(builds: tuple[Build, Build], setting: dict[str, Any], rounds: int, seconds: float, whole: int) -> str:
    rows, _ = (build.do(op="make", **setting)["rows"] for build in builds)
    # One slice of ticks a round: as long as the base needs for the asked seconds, or a share of a whole episode.
    builds[0].do(op="run", ticks=30, check=False)
    warm = builds[0].do(op="run", ticks=30, check=False)
    builds[1].do(op="run", ticks=60, check=False)
    ticks = whole // rounds if whole else max(20, int(seconds / (warm["cpu"] / 30)))
    clock = "cpu" if setting["threads"] == 1 else "wall"
    ratios, speeds = [], []
    for turn in range(rounds):
        took: dict[int, float] = {}
        for index in (0, 1) if turn % 2 == 0 else (1, 0):
            took[index] = builds[index].do(op="run", ticks=ticks, check=False)[clock]
        ratios.append(took[0] / took[1])
        speeds.append([ticks * rows / took[index] / 1e6 for index in (0, 1)])
    low, middle, high = statistics.quantiles(ratios, n=4) if rounds > 1 else [ratios[0]] * 3
    base, now = (statistics.median(speed[index] for speed in speeds) for index in (0, 1))
    return f"{base:8.2f} {now:8.2f}   {middle:5.2f} [{low:.2f}, {high:.2f}]"


def check(builds: tuple[Build, Build], setting: dict[str, Any], ticks: int) -> str:
    for build in builds:
        build.do(op="make", **setting)
    for build in builds:
        build.ask(op="run", ticks=ticks, check=True)
    first, second = (build.answer() for build in builds)
    same = [name for name in ("seen", "state") if first[name] != second[name]]
    return "equal" if not same else "DIFFERS in " + " and ".join(same)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--base", default="4590d82", help="commit to build and compare with, or the folder of a build")
    parser.add_argument("--site", default="", help="folder with the package of this side; this tree's if not given")
    parser.add_argument("--isa", default="", help="GRIDMILL_ISA of this side")
    parser.add_argument("--games", default=GAMES)
    parser.add_argument("--worlds", default="64,1024")
    parser.add_argument("--threads", default="1")
    parser.add_argument("--masks", default="off,on")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--seconds", type=float, default=0.3, help="CPU seconds of the base in a round")
    parser.add_argument("--whole", type=int, default=0, metavar="TICKS", help="spread this many ticks over the rounds")
    parser.add_argument("--check", type=int, default=0, metavar="TICKS", help="compare bytes for this many ticks")
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.worker:
        work()
        return 0
    from gridmill.workshop.revisions import site_of

    builds = (Build(str(site_of(given.base)), ""), Build(given.site, given.isa))
    if not given.check:
        print(f"M agent-steps per second: {given.base}, this tree, ratio [quartiles] of {given.rounds} rounds")
    failed = False
    for game in given.games.split(","):
        for worlds in map(int, given.worlds.split(",")):
            for threads in map(int, given.threads.split(",")):
                for masks in given.masks.split(","):
                    setting = {"game": game, "worlds": worlds, "threads": threads, "masks": masks == "on"}
                    name = f"{game:<24}{worlds:>5} worlds {threads} thread{'s' * (threads > 1):<2}masks {masks:<4}"
                    if given.check:
                        said = check(builds, setting, given.check)
                        failed = failed or said != "equal"
                    else:
                        said = measure(builds, setting, given.rounds, given.seconds, given.whole)
                    print(name, said, flush=True)
    return 2 if failed else 0


if __name__ == "__main__":
    raise SystemExit(main())
