"""What bench, profile, gate and throughput drive: a game in a batch shape (`Load`), and an env that takes random
actions drawn ahead (`Runner`), with what can be counted of it: time, allocations, phases, memory, instructions.

It compares nothing and judges nothing.
"""

from __future__ import annotations

import itertools
import json
import sys
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

import gridmill
from gridmill import _native, recipes
from gridmill.env.kind import GameConfig
from gridmill.env.tokens import NO_TOKEN
from gridmill.workshop import machine

SWEPT = ("worlds", "agents", "threads", "lanes", "map_size")
POOL = 65536  # action arrays drawn ahead; long enough that no agent drifts to a wall within an episode
SAMPLES = 64  # steps looked at when tokens are counted
RESIDENT_WORLDS = 256  # worlds made to see what one adds to the resident memory
COUNTED_STEPS = (200, 1200)  # instructions are the difference between these two runs
MEMCPY_SECONDS = 0.5


@dataclass(frozen=True)
class Load:
    """What is measured: a game, its sizes (None: the game's own) and the shape of the batch."""

    game: str = "toy"
    agents: int | None = None
    map_size: int | None = None
    density: float | None = None
    window: str | None = None
    worlds: int = 1
    threads: int = 1
    lanes: int = 1
    seed: int = 42
    profiling: bool | None = None
    teacher: str | None = None  # a script that is asked in every row; its actions are taken

    def sizes(self) -> dict[str, Any]:
        """Arguments for the game's function: only what was asked for."""
        asked = {
            "num_agents": self.agents,
            "map_size": self.map_size,
            "density": self.density,
            "window": self.window,
        }
        return {name: value for name, value in asked.items() if value is not None}


def swept(load: Load, sweep: str) -> dict[str, Load]:
    """`worlds=64,256` or `game=toy,arena` as labelled loads."""
    key, _, listed = sweep.partition("=")
    name = key.strip().replace("-", "_")
    if name == "game":
        games = [game.strip() for game in listed.split(",")]
        if len(games) < 2 or len(set(games)) < len(games):
            raise ValueError(f"--sweep game takes two or more different games, got `{listed}`")
        return {f"game={game}": replace(load, game=game) for game in games}
    if name not in SWEPT:
        raise ValueError(f"--sweep takes one of {', '.join(SWEPT)}, game as NAME=N,N,..., got `{sweep}`")
    try:
        values = [int(value) for value in listed.split(",")]
    except ValueError:
        values = []
    if len(values) < 2 or min(values) < 1 or len(set(values)) < len(values):
        raise ValueError(f"--sweep {name} takes two or more different numbers of at least 1, got `{listed}`")
    changes: list[dict[str, Any]] = [{name: value} for value in values]
    return {f"{name}={change[name]}": replace(load, **change) for change in changes}


@dataclass(frozen=True)
class Round:
    """One measured stretch of steps; phases are ns summed over worlds, None when profiling is off."""

    steps: int
    agent_steps: int
    cpu_seconds: float
    wall_seconds: float
    allocations: int | None = None
    phases: Mapping[str, int] | None = None

    @property
    def per_cpu_second(self) -> float:
        return self.agent_steps / max(self.cpu_seconds, 1e-9)

    @property
    def per_wall_second(self) -> float:
        return self.agent_steps / max(self.wall_seconds, 1e-9)


def game_of(load: Load) -> GameConfig:
    """The game that a load names, or that of the recipe of this name, which has its own sizes."""
    if load.game in gridmill.games.names() or load.game not in recipes.names():
        return gridmill.games.build(load.game, **load.sizes())
    if load.sizes():
        option = next(iter(load.sizes())).removeprefix("num_").replace("_", "-")
        raise ValueError(f"--{option}: expected a game with this size, got the recipe `{load.game}`; give its game")
    return recipes.build(load.game).game


def make_env(load: Load) -> gridmill.Env:
    """The env of a load, reset."""
    env: gridmill.Env = gridmill.make(
        game_of(load),
        num_worlds=load.worlds,
        seed=load.seed,
        threads=load.threads,
        lanes=load.lanes,
        profiling=load.profiling,
        teacher=load.teacher or "",
    )
    env.reset()
    return env


class Runner:
    """An env that takes its teacher's actions, or random ones drawn ahead; the load's own env, unless one is given."""

    def __init__(self, load: Load, env: gridmill.Env | None = None) -> None:
        self.load = load
        self.env = make_env(load) if env is None else env
        rng = np.random.default_rng(load.seed)
        rows = self.env.num_rows
        # Each array of the pool is a window on one long draw: 65536 arrays for the memory of two.
        draw = rng.integers(0, self.env.num_actions, size=rows + POOL, dtype=np.int32)
        windows = [self.env.teacher_actions] if load.teacher else [draw[k : k + rows] for k in rng.permutation(POOL)]
        self.pool = itertools.cycle(windows)

    @property
    def rows(self) -> int:
        return int(self.env.num_rows)

    def run(self, steps: int) -> Round:
        """Take the steps and say what they cost. Lanes above 1 go through send and recv."""
        phases, allocations = self._phase_totals(), _native.allocations()
        walk = self._walk if self.env.lanes == 1 else self._walk_lanes
        wall, cpu = time.perf_counter(), time.process_time()
        walk(steps)
        cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
        allocations = _native.allocations() - allocations
        after = self._phase_totals()
        spent = None if phases is None or after is None else {k: after[k] - phases[k] for k in phases}
        return Round(steps, steps * self.rows, cpu, wall, allocations, spent)

    def _walk(self, steps: int) -> None:
        actions, step = self.env.actions, self.env.step
        for drawn in itertools.islice(self.pool, steps):
            actions[:] = drawn
            step()

    def _walk_lanes(self, steps: int) -> None:
        env, actions = self.env, self.env.actions
        lanes = [(lane, env.rows(lane)) for lane in range(env.lanes)]
        flying = False
        for drawn in itertools.islice(self.pool, steps):
            for lane, rows in lanes:
                if flying:
                    env.recv(lane)
                actions[rows] = drawn[rows]
                env.send(lane)
            flying = True
        for lane, _ in lanes if flying else ():
            env.recv(lane)

    def _phase_totals(self) -> dict[str, int] | None:
        totals = self.env.step_timing_total
        return None if totals is None else {k: int(v) for k, v in totals.items() if k != "steps"}

    def tokens_per_row(self) -> float:
        """Mean number of tokens in a row, looked at outside of what is timed; 0 for games without tokens."""
        if self.env.obs_kind != "tokens":
            return 0.0
        seen = 0
        for _ in range(SAMPLES):
            self._walk(1) if self.env.lanes == 1 else self._walk_lanes(1)
            seen += int(np.count_nonzero(self.env.obs[:, :, 0] != NO_TOKEN))
        return seen / (SAMPLES * self.rows)

    def memory(self) -> dict[str, int]:
        """Bytes per world: the world itself in the core, and its rows in the shared arrays."""
        env = self.env
        arrays = (env.obs, env.actions, env.rewards, env.terminals, env.truncations, env.final_obs, env.masks)
        shared = sum(array.nbytes for array in arrays if array is not None)
        return {"world": int(env.bytes_per_world), "rows": shared // int(env.num_worlds)}

    def validation(self) -> dict[str, Any] | None:
        """What shadow validation counted; None when it is off."""
        return validation_of(self.env.observation_validation)

    def memcpy_limit(self, size: int) -> float:
        """Rows per second when each step only copies `size` bytes per row."""
        return float(_native.memcpy_limit(self.rows, max(1, size), MEMCPY_SECONDS))

    def close(self) -> None:
        self.env.close()


SUMMED = ("comparisons", "mismatches", "fast_ns", "reference_ns")


def validation_of(seen: Any) -> dict[str, Any] | None:
    """An env's `observation_validation` for JSON; None when it is off."""
    return None if seen is None else {name: getattr(seen, name) for name in (*SUMMED, "ratio", "first_mismatch")}


def added_validation(now: dict[str, Any] | None, then: dict[str, Any] | None) -> dict[str, Any] | None:
    """What was counted in both parts of a measurement that was stopped and continued."""
    if now is None or then is None:
        return now or then
    sums = {name: now[name] + then[name] for name in SUMMED}
    first = then["first_mismatch"] or now["first_mismatch"]
    return sums | {"ratio": sums["reference_ns"] / max(sums["fast_ns"], 1), "first_mismatch": first}


def resident_per_world(load: Load) -> int:
    """Resident bytes a world adds to this process, arrays included; comparable with any other engine's."""
    before = machine.resident_bytes()
    with make_env(replace(load, worlds=RESIDENT_WORLDS, threads=1, lanes=1)) as env:
        for array in (env.obs, env.final_obs):
            array.flat[:: array[0].size] = array.flat[:: array[0].size]  # rows that no step has touched yet count too
        env.step()
        return max(0, machine.resident_bytes() - before) // RESIDENT_WORLDS


def count_child(load: str, steps: str) -> None:
    """What a counted child process does; its last line says which path the core took."""
    runner = Runner(Load(**json.loads(load)))
    runner.run(100 + int(steps))
    runner.close()
    print(_native.build_info().get("isa", "unknown"))


def instructions(load: Load, rows: int, asked: bool) -> dict[str, Any]:
    """Instructions per agent-step (the loop in Python included), or why they were not counted."""
    if not asked and not machine.perf_works():
        return {"reason": "perf cannot count here; --instructions counts with valgrind"}
    code = "import sys; from gridmill.workshop.runner import count_child as c; c(*sys.argv[1:])"
    child = [sys.executable, "-P", "-c", code, json.dumps(asdict(load))]
    try:
        counted = machine.count_instructions(lambda steps: [*child, str(steps)], *COUNTED_STEPS)
    except (OSError, ValueError) as reason:
        return {"reason": machine.without_paths(str(reason))}
    return {"per_agent_step": counted.per_step / rows, "tool": counted.tool, "path": counted.said}
