"""Step the benchmark world in mettagrid, on request.

`gridmill bench step --peers` starts this file with the peer venv's python and drives it over pipes, so that
the rounds of both engines alternate. One JSON line goes out when the world is ready; then one line per
request: {"steps": N}, {"memory": true}; end of input ends it. Failures are one line {"error": ...}, exit 2.
It does not compare, average or print for people, and it imports nothing of gridmill.
"""

import argparse
import gc
import importlib
import importlib.metadata
import json
import os
import sys
import time
from dataclasses import dataclass
from typing import Any, NoReturn, TextIO

SETTLE_STEPS = 400  # before the first request: agents leave their spawn cells, tokens are counted
CHUNK_STEPS = 2_000  # actions drawn at once, outside the timed region
MEMORY_WORLDS = 50
MEMORY_STEPS = 20  # a world that never stepped has not made its statistics yet


class PeerError(Exception):
    """Anything that ends the worker with an {"error": ...} line."""


class Parser(argparse.ArgumentParser):
    """A parser whose complaints reach the caller as an error line instead of a usage text."""

    def error(self, message: str) -> NoReturn:
        raise PeerError(f"{message} - at the command line; see --help")


@dataclass(frozen=True)
class Wheel:
    """The modules of the installed wheel that the worker touches, and NumPy."""

    np: Any
    words: Any  # the Python configuration models
    convert: Any  # configuration models -> native configuration
    native: Any  # the extension module
    version: str


@dataclass
class World:
    """One native environment; it keeps the arrays alive that the environment writes into."""

    env: Any
    obs: Any  # uint8 [agents, tokens, 3]
    actions: Any  # int32 [agents]
    ends: tuple[Any, Any]  # terminals, truncations
    others: tuple[Any, ...]
    num_actions: int
    walls: int


def parse(arguments: list[str]) -> argparse.Namespace:
    parser = Parser(description="Step the benchmark world in mettagrid; JSON lines in and out.")
    parser.add_argument("--agents", type=int, default=20)
    parser.add_argument("--map-size", type=int, default=40, help="height and width, wall border included")
    parser.add_argument("--density", type=float, default=0.04, help="walls inside the border / all cells")
    parser.add_argument("--seed", type=int, default=42)
    parser.add_argument("--window", choices=("disc", "square"), default="disc", help="a wish")
    parser.add_argument("--tokens", type=int, default=200)
    parser.add_argument("--view", type=int, default=11, help="height and width of the window, odd")
    parser.add_argument(
        "--observe",
        choices=("reference", "optimized"),
        default="reference",
        help="the wheel's two observation paths: same bytes; the reference is the faster one in 0.26.22",
    )
    options = parser.parse_args(arguments)
    for name, least in (("agents", 1), ("map_size", 3), ("seed", 0), ("tokens", 1), ("view", 3)):
        value = getattr(options, name)
        if value < least:
            raise PeerError(f"expected int >= {least}, got {value} - at --{name.replace('_', '-')}")
    if options.view > 15 or options.view % 2 == 0:
        raise PeerError(f"expected an odd int in 3..15, got {options.view} - at --view")
    if not 0.0 <= options.density < 1.0:
        raise PeerError(f"expected a fraction in [0, 1), got {options.density} - at --density")
    return options


def load_wheel() -> Wheel:
    try:
        return Wheel(
            np=importlib.import_module("numpy"),
            words=importlib.import_module("mettagrid.config.mettagrid_config"),
            convert=importlib.import_module("mettagrid.config.mettagrid_c_config"),
            native=importlib.import_module("mettagrid.mettagrid_c"),
            version=importlib.metadata.version("mettagrid"),
        )
    except ImportError as error:
        raise PeerError(f"cannot import the mettagrid wheel: {error}; run `make peers`") from error


def fix_switches(observe: str) -> None:
    """The wheel reads these when a world is made; a leftover of the caller's shell must not decide them."""
    os.environ["METTAGRID_PROFILING"] = "0"
    os.environ["METTAGRID_OBS_VALIDATION"] = "0"
    os.environ["METTAGRID_OBS_THREADS"] = "1"  # two cost twice the CPU time per agent-step
    os.environ["METTAGRID_OBS_USE_OPTIMIZED"] = "1" if observe == "optimized" else "0"


def draw_map(np: Any, size: int, walls: int, agents: int, seed: int) -> list[list[str]]:
    inner = size - 2
    if walls + agents > inner * inner:
        raise PeerError(
            f"{walls} walls + {agents} agents do not fit into the {inner * inner} cells inside the border"
            " - at --density, --agents, --map-size"
        )
    border = ["wall"] * size
    cells = [border, *(["wall", *["empty"] * inner, "wall"] for _ in range(inner)), border]
    places = np.random.default_rng(seed).permutation(inner * inner)[: walls + agents].tolist()
    for index, place in enumerate(places):
        cells[1 + place // inner][1 + place % inner] = "wall" if index < walls else "agent.default"
    return cells


def make_world(wheel: Wheel, cells: list[list[str]], tokens: int, view: int, seed: int) -> World:
    np, words = wheel.np, wheel.words
    agents = sum(row.count("agent.default") for row in cells)
    game = words.GameConfig(
        num_agents=agents,
        max_steps=0,  # no limit: an ended world would have to be rebuilt, and resets are not measured here
        resource_names=[],
        protocol_details_obs=False,
        obs=words.ObsConfig(width=view, height=view, num_tokens=tokens),
        actions=words.ActionsConfig(
            move=words.MoveActionConfig(allowed_directions=list(words.Directions)),
            change_vibe=words.ChangeVibeActionConfig(enabled=False),
        ),
        objects={"wall": words.WallConfig()},
    )
    native_game, renames = wheel.convert.convert_to_cpp_game_config(game)
    named = wheel.convert.rename_map_agents(cells, renames) if renames else cells
    env = wheel.native.MettaGrid(native_game, named, seed)
    obs = np.full((agents, tokens, 3), 255, dtype=wheel.native.dtype_observations)
    terminals = np.zeros(agents, dtype=wheel.native.dtype_terminals)
    truncations = np.zeros(agents, dtype=wheel.native.dtype_truncations)
    rewards = np.zeros(agents, dtype=wheel.native.dtype_rewards)
    actions = np.zeros(agents, dtype=wheel.native.dtype_actions)
    vibes = np.zeros(agents, dtype=wheel.native.dtype_actions)
    env.set_buffers(obs, terminals, truncations, rewards, actions, vibes)
    walls = sum(row.count("wall") for row in cells)
    return World(env, obs, actions, (terminals, truncations), (rewards, vibes), len(game.actions.actions()), walls)


def find_window(wheel: Wheel, view: int) -> tuple[str, int]:
    """The window's shape, seen by an agent in a solid block of walls: every cell in view holds an object."""
    size = view + 2
    cells = [["wall"] * size for _ in range(size)]
    cells[size // 2][size // 2] = "agent.default"
    world = make_world(wheel, cells, tokens=4 * view * view, view=view, seed=0)
    world.env.step()
    seen = {int(place) for place in world.obs[0, :, 0] if place < 0xFE}
    radius = view // 2
    disc: set[int] = set()
    for row in range(view):
        for column in range(view):
            down, right = abs(row - radius), abs(column - radius)
            square = down * down + right * right
            bump = radius >= 2 and square == radius * radius + 1 and max(down, right) == radius
            if square <= radius * radius or bump:
                disc.add(row << 4 | column)
    if len(seen) == view * view:
        return "square", len(seen)
    return ("disc" if seen == disc else "other"), len(seen)


def run(wheel: Wheel, world: World, steps: int, random: Any) -> dict[str, float]:
    """Step `steps` times; drawing the actions is not part of the time."""
    agents = len(world.actions)
    step, target = world.env.step, world.actions
    cpu = wall = 0.0
    left = steps
    while left > 0:
        chunk = min(left, CHUNK_STEPS)
        rows = list(random.integers(0, world.num_actions, size=(chunk, agents), dtype=target.dtype))
        wall_start, cpu_start = time.perf_counter(), time.process_time()
        for row in rows:
            target[:] = row
            step()
        cpu += time.process_time() - cpu_start
        wall += time.perf_counter() - wall_start
        left -= chunk
    if any(flags.any() for flags in world.ends):
        raise PeerError("expected a world without a step limit, but an episode ended; its times mean nothing")
    return {"agent_steps": steps * agents, "cpu_seconds": cpu, "wall_seconds": wall}


def resident_bytes() -> int:
    with open("/proc/self/statm", encoding="ascii") as statm:
        return int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def measure_memory(wheel: Wheel, options: argparse.Namespace, cells: list[list[str]]) -> dict[str, float]:
    """RSS growth per world, its rows' buffers included; the first extra world pays for what is made once."""
    worlds: list[World] = []
    random = wheel.np.random.default_rng(options.seed)
    before = 0
    for index in range(MEMORY_WORLDS + 1):
        worlds.append(make_world(wheel, cells, options.tokens, options.view, options.seed + index))
        run(wheel, worlds[-1], MEMORY_STEPS, random)
        if index == 0:
            gc.collect()
            before = resident_bytes()
    gc.collect()
    grown = resident_bytes() - before
    first = worlds[0]
    arrays = (first.obs, first.actions, *first.ends, *first.others)
    return {
        "rss_bytes_per_world": grown / MEMORY_WORLDS,
        "row_buffer_bytes_per_world": sum(int(array.nbytes) for array in arrays),
        "worlds": MEMORY_WORLDS,
    }


def count_tokens(wheel: Wheel, world: World, random: Any) -> float:
    """Mean number of non-empty tokens of a row, while the world settles."""
    samples: list[float] = []
    for _ in range(SETTLE_STEPS // 10):
        run(wheel, world, 10, random)
        samples.append(float((world.obs[:, :, 0] != 0xFF).sum(axis=1).mean()))
    return sum(samples) / len(samples)


def read_request(line: str) -> int | None:
    """The number of steps asked for, or None for the memory request."""
    try:
        request = json.loads(line)
    except ValueError:
        request = None
    if request == {"memory": True}:
        return None
    steps = request.get("steps") if isinstance(request, dict) and len(request) == 1 else None
    if type(steps) is not int or steps < 1:
        wanted = '{"steps": int >= 1} or {"memory": true}'
        raise PeerError(f"expected {wanted}, got {line.strip()!r} - at standard input")
    return steps


def serve(arguments: list[str], out: TextIO) -> None:
    def say(record: dict[str, Any]) -> None:
        print(json.dumps(record), file=out, flush=True)

    options = parse(arguments)
    fix_switches(options.observe)
    wheel = load_wheel()
    walls = round(options.density * options.map_size**2)
    cells = draw_map(wheel.np, options.map_size, walls, options.agents, options.seed)
    window, window_cells = find_window(wheel, options.view)
    world = make_world(wheel, cells, options.tokens, options.view, options.seed)
    random = wheel.np.random.default_rng(options.seed)
    tokens_per_row = count_tokens(wheel, world, random)
    say(
        {
            "ready": True,
            "peer": "mettagrid",
            "version": wheel.version,
            "window": window,
            "window_cells": window_cells,
            "num_actions": world.num_actions,
            "tokens_per_row": tokens_per_row,
            "walls": world.walls,
            "observe": options.observe,
        }
    )
    memory: dict[str, float] | None = None
    for line in sys.stdin:
        steps = read_request(line)
        if steps is not None:
            say(run(wheel, world, steps, random))
            continue
        # Measured once: a second set of worlds would move into the memory the first one gave back.
        memory = memory or measure_memory(wheel, options, cells)
        say(memory)


def main() -> int:
    # The wheel prints from C++ too, so the file descriptor itself is turned away, not only sys.stdout.
    out = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    try:
        serve(sys.argv[1:], out)
    except KeyboardInterrupt:
        return 130
    except Exception as error:
        text = str(error) if isinstance(error, PeerError) else f"{type(error).__name__}: {error}"
        print(json.dumps({"error": " ".join(text.split())}), file=out, flush=True)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
