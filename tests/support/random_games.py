"""Random valid games and actions for property tests, and the small tools several tests share.

`games()` is a strategy over everything a `Game` can say today: windows, token budgets small enough to overflow, vibes,
resources beyond one digit, tags, stateful and terrain objects, shown values, rewards of every mode, every kind of map,
machines, limits, blocks to push and swap, lasers and what a move costs, and the rules, areas, events, collectives and
assemblers of `random_rules`. `games(quiet=True)` leaves out what cannot be followed from outside without knowing who
came first: attacks, swaps, costs, machines that take something or can be pushed, and rules that change what an agent
holds without a bump. It does not make invalid games; `test_random_configs` does.
"""

from __future__ import annotations

import hashlib
import os
import time
import warnings
from collections.abc import Callable, Iterable
from typing import Any

import draws as st  # the words of hypothesis.strategies
import numpy as np
from hypothesis import reject
from hypothesis.strategies import SearchStrategy
from random_rules import MARK, RuleMaker, Words

import gridmill
from gridmill import Env, Game
from gridmill.grid import (
    AgentType,
    Ascii,
    Attack,
    Blocks,
    Bsp,
    Buildings,
    Canvas,
    Caves,
    Clumps,
    Connect,
    Constant,
    Converter,
    Count,
    Dunes,
    Event,
    Instances,
    Inventory,
    Layer,
    Limit,
    Log,
    Max,
    Maze,
    Min,
    Mirror,
    Objects,
    ObjectType,
    Observation,
    ObservedValue,
    OneOf,
    Ratio,
    RewardTerm,
    Rooms,
    Scatter,
    SetTag,
    Stat,
    Sum,
    Zones,
)  # fmt: skip

DIRECTIONS = ("north", "south", "west", "east", "northwest", "northeast", "southwest", "southeast")
AMOUNTS = st.sampled_from([0, 1, 2, 17, 255, 256, 257, 511, 512, 4096, 65535])
ODD = st.sampled_from([1, 3, 5, 7, 9, 11, 13, 15])
BUDGETS = st.sampled_from([1, 2, 3, 4, 5, 6, 7, 9, 12, 20, 40, 200, 600])
NUMBERS = st.sampled_from([-3.0, -0.5, 0.0, 0.001, 0.5, 1.0, 2.5, 7.0, 254.5, 300.0])
STATS = ["reward", "action.noop.success", "action.noop.failed", "action.invalid", "cell.visited"]
FIGHTS = ["attack.hit", "attack.blocked", "attack.received", "frozen.ticks"]
SMALL = st.sampled_from([1, 2, 3, 5, 300])


def inventories(resources: list[str]) -> st.Plan:
    if not resources:
        return st.just({})
    return st.dictionaries(st.sampled_from(resources), AMOUNTS, max_size=len(resources))


@st.composite
def converters(draw: st.Draw, resources: list[str], quiet: bool) -> Converter | None:
    """A machine, often none; a quiet one takes nothing."""
    if not resources or draw(st.booleans()):
        return None
    outputs = draw(st.dictionaries(st.sampled_from(resources), SMALL, min_size=1, max_size=2))
    others = [name for name in resources if name not in outputs]
    inputs = draw(st.dictionaries(st.sampled_from(others), SMALL, max_size=2)) if others and not quiet else {}
    return Converter(
        inputs=inputs,
        outputs=outputs,
        cooldown=draw(st.sampled_from([1, 2, 3, 4, 256, 300])),
        max_output=draw(st.sampled_from([1, 2, 5, 400])),
        max_input=draw(st.sampled_from([1, 2, 5])),
        initial_resource_count=draw(st.sampled_from([0, 0, 1, 3, 200])),
        max_conversions=draw(st.sampled_from([-1, -1, 0, 1, 2])),
    )


@st.composite
def limit_lists(draw: st.Draw, resources: list[str]) -> list[Limit]:
    """At most two groups of different resources, some with bonuses."""
    names = draw(st.permutations(resources))
    cut = draw(st.integers(0, len(names)))
    groups = [sorted(g, key=resources.index) for g in (names[:cut][:2], names[cut:][:2]) if draw(st.booleans()) and g]
    bonus = st.dictionaries(st.sampled_from(resources), SMALL, max_size=2) if resources else st.just({})
    return [Limit(resources=g, base=draw(AMOUNTS), max=draw(AMOUNTS), bonus=draw(bonus)) for g in groups]


@st.composite
def fights(draw: st.Draw, resources: list[str]) -> dict[str, Any]:
    """Attack, swap and move_cost, each in some games."""
    costs = (
        st.dictionaries(st.sampled_from(resources), st.sampled_from([0, 1, 2]), max_size=2)
        if resources
        else st.just({})
    )
    attack = st.builds(
        Attack,
        cost=costs,
        armor=st.sampled_from(["", *resources]),
        freeze_duration=st.sampled_from([1, 2, 3, 10, 300]),
        aim=st.sampled_from(["nearest", "cells", "both"]),
    )
    return {
        "attack": draw(st.one_of(st.just(None), attack)),
        "swap": draw(st.booleans()),
        "move_cost": draw(st.one_of(st.just({}), costs)),
    }


def game_values(words: Words, moves: int, quiet: bool = True) -> st.Plan:
    """Game values nested a few levels deep, every kind among them."""
    resources = words.resources
    flows = [f"{name}.{flow}" for name in resources for flow in ("get", "put", "gained", "lost")]
    stats = [
        *STATS,
        *([] if quiet else FIGHTS),
        *flows,
        *(f"action.move_{d}.{how}" for d in DIRECTIONS[:moves] for how in ("failed", "success")),
    ]
    leaves = [st.builds(Constant, value=NUMBERS), st.sampled_from(stats).map(lambda name: Stat(name=name))]
    tags, teams = st.sampled_from(words.tags), st.sampled_from(["", *words.teams])
    leaves.append(st.builds(Count, tag=tags, collective=teams, resource=st.sampled_from(["", *resources])))
    if resources:
        leaves.append(st.sampled_from(resources).map(lambda name: Inventory(resource=name)))
        resource = st.sampled_from(resources)
        leaves.append(st.builds(Inventory, resource=resource, of=st.just("collective"), collective=teams))
    if words.teams:
        counted = ["aligned.agent", "aligned.agent.held", *(f"{name}.amount" for name in resources)]
        leaves.append(st.builds(Stat, name=st.sampled_from(counted), of=st.just("collective"), collective=teams))

    def combined(inner: st.Plan) -> st.Plan:
        some = st.lists(inner, min_size=1, max_size=3)
        several = [st.builds(kind, values=some) for kind in (Sum, Min, Max)]
        two = st.builds(Ratio, values=st.lists(inner, min_size=2, max_size=2))
        one = st.builds(Log, values=st.lists(inner, min_size=1, max_size=1))
        return st.one_of(*several, two, one)

    return st.recursive(st.one_of(*leaves), combined, max_leaves=5)


@st.composite
def windows(draw: st.Draw) -> dict[str, Any]:
    if draw(st.booleans()):
        side = draw(ODD)
        return {"window": "disc", "height": side, "width": side}
    return {"window": "square", "height": draw(ODD), "width": draw(ODD)}


@st.composite
def ascii_maps(draw: st.Draw, types: list[str], num_agents: int) -> Ascii:
    """Rows of characters; sometimes wider than the engine's 32- and 64-column strips."""
    height = draw(st.integers(1, 9))
    width = draw(st.one_of(st.integers(1, 12), st.integers(28, 70)))
    while height * width < num_agents:
        height += 1
    letters = {chr(ord("A") + i): name for i, name in enumerate(types) if name != "wall"}
    marks = "....... ##@012" + "".join(letters) * 2
    seed = draw(st.integers(0, 2**32 - 1))
    cells = np.random.default_rng(seed).choice(list(marks), size=height * width)
    missing = num_agents - int(np.isin(cells, list("@0123456789")).sum())
    if missing > 0:
        free = np.flatnonzero(~np.isin(cells, list("@0123456789")))
        cells[free[:: max(1, len(free) // missing)][:missing]] = "@"
    text = "\n".join("".join(row) for row in cells.reshape(height, width))
    return Ascii(text="\n" + text + "\n", legend=letters)


@st.composite
def scatter_maps(draw: st.Draw, types: list[str], num_agents: int) -> Scatter:
    border = draw(st.integers(0, 2))
    inner_rows, inner_columns = draw(st.integers(4, 14)), draw(st.integers(4, 40))
    while inner_rows * inner_columns < 4 * num_agents:
        inner_rows += 1
    room = inner_rows * inner_columns // 8
    counts = {name: draw(st.integers(0, room // len(types))) for name in types}
    return Scatter(
        height=inner_rows + 2 * border, width=inner_columns + 2 * border, border=border, objects=counts,
        groups=draw(st.integers(1, 3)),
    )  # fmt: skip


@st.composite
def instance_maps(draw: st.Draw, types: list[str], num_agents: int) -> Instances:
    """Places of one map. Walls between places and around them only where the text says who stands where."""
    rows, columns = draw(st.sampled_from([(r, c) for r in (1, 2, 3) for c in (1, 2, 3) if num_agents % (r * c) == 0]))
    border = draw(st.integers(0, 3))
    if draw(st.booleans()):
        inner = draw(scatter_maps(types, num_agents // (rows * columns)))
        flat = inner.tree() | {"border": 0}
        return Instances(maps=[flat], rows=rows, columns=columns, border=border)
    text = draw(ascii_maps(types, num_agents // (rows * columns)))
    turned = "\n".join(reversed(text.text.strip("\n").split("\n")))
    maps = [text, text.replace("text", turned)]
    return Instances(maps=maps, rows=rows, columns=columns, border=border, gap=draw(st.integers(0, 2)))


LAND: list[Layer] = [
    Rooms(rows=2, columns=2), Maze(method="kruskal", corridor=2), Maze(method="prim", loops=0.5), Caves(fill=0.35),
    Bsp(rooms=4), Clumps(every=4), Dunes(), Blocks(), Mirror(axis="both", layers=(Clumps(every=3),)),
    Zones(count=2, smallest=5, largest=9, layers=(Maze(), Blocks())), OneOf(layers=(Dunes(), Clumps())),
]  # fmt: skip


@st.composite
def canvas_maps(draw: st.Draw, types: list[str], num_agents: int) -> Canvas:
    """Land with buildings, whose number nobody knows beforehand, everything connected."""
    land = draw(st.lists(st.sampled_from(LAND), min_size=1, max_size=2))
    things = [name for name in types if name != "wall"]
    layers: list[Layer] = [*land, Connect()]
    if things:
        weights = {name: draw(st.sampled_from([0.5, 1.0])) for name in things}
        counts = {name: draw(st.integers(0, 1)) for name in things}
        layers = [*land, Buildings(draws=draw(st.integers(0, 8)), weights=weights), Connect(), Objects(counts=counts)]
    return Canvas(
        height=draw(st.integers(14, 18)), width=draw(st.integers(14 + num_agents, 40)), border=draw(st.integers(0, 2)),
        layers=layers, groups=draw(st.integers(1, 3)),
    )  # fmt: skip


@st.composite
def kinds(draw: st.Draw, maker: RuleMaker, tags: list[str], counts_as: str) -> ObjectType:
    """A kind of object: plain, a machine, an assembler, or one that works by rules."""
    words, quiet = maker.words, maker.quiet
    what = draw(st.sampled_from(["plain", "converter", "assembler", "rules"]))
    ruled = what == "rules" and not quiet
    return ObjectType(
        tags=tags,
        inventory=draw(inventories(words.resources)),
        vibe=draw(st.sampled_from(["", *words.vibes])),
        limits=draw(limit_lists(words.resources)) if ruled else [],
        collective=draw(st.sampled_from(["", *words.teams])),
        counts_as=counts_as,
        converter=draw(converters(words.resources, quiet)) if what == "converter" else None,
        assembler=maker.assembler() if what == "assembler" else None,
        pushable=draw(st.booleans()) and (what == "plain" or not quiet),
        swappable=draw(st.booleans()),
        use=draw(st.sampled_from(["first", "all"])),
        on_use=maker.use_rules() if what == "rules" else [],
        on_tick=maker.rules() if ruled else [],
        areas=maker.areas() if ruled else [],
    )


@st.composite
def agent_types(draw: st.Draw, maker: RuleMaker, tags: list[str]) -> AgentType:
    words = maker.words
    ruled = draw(st.booleans()) and not maker.quiet
    return AgentType(
        tags=tags,
        inventory=draw(inventories(words.resources)),
        vibe=draw(st.sampled_from(["", *words.vibes])),
        limits=draw(limit_lists(words.resources)),
        collectives=draw(st.lists(st.sampled_from(words.teams), max_size=3)) if words.teams else [],
        use=draw(st.sampled_from(["first", "all"])),
        on_use=maker.rules() if ruled else [],
        on_tick=maker.rules() if ruled else [],
        areas=maker.areas() if ruled else [],
    )


@st.composite
def happenings(draw: st.Draw, maker: RuleMaker) -> dict[str, Any]:
    """What the clock and tags set off, in some games."""
    if not maker.by_chance or not draw(st.booleans()):
        return {}
    fields: dict[str, Any] = {"events": maker.events(), "territory": draw(st.sampled_from(["nearest", "strongest"]))}
    if maker.quiet:
        return fields
    fields |= {"on_tick": maker.rules(1), "spawn_room": draw(st.sampled_from([0, 1, 64]))}
    if draw(st.booleans()):  # rules of a tag need something that sets it
        fields["events"]["mark"] = Event(at=(2,), targets="type:agent", then=(SetTag(tag=MARK),))
        fields |= {"on_tag_added": {MARK: maker.rules()}, "on_tag_removed": {MARK: maker.rules()}}
    return fields


@st.composite
def game_plans(
    draw: st.Draw, overflow: str = "drop", most_agents: int = 6, quiet: bool = False, by_chance: bool = True
) -> Game:
    """A random valid game that every env can be made of without an error (a budget warning is possible).

    Without `by_chance` nothing happens by chance or by the clock: what will work can be known.
    """
    num_agents = draw(st.integers(1, most_agents))
    resources = draw(st.subsets(["ore", "heart", "battery", "wood"], 4))
    vibes = draw(st.subsets(["calm", "angry", "sad", "glad"], 4))
    moves = draw(st.sampled_from([0, 4, 8]))
    types = ["wall", *draw(st.subsets(["mine", "crate", "altar", "_x"], 3))]
    tags = {name: draw(st.subsets(["red", "blue", "hot", "a tag", "zebra"], 3)) for name in ["agent", *types]}
    variant = types[-1] if not quiet and len(types) > 2 and draw(st.booleans()) else ""  # counts as another
    named = {"type:agent", *(f"type:{name}" for name in types if name != variant)}
    known = sorted(named | {tag for some in tags.values() for tag in some})
    fought = {} if quiet else draw(fights(resources))
    teams = draw(st.subsets(["reds", "blues", "a team"], 2))
    words = Words(resources, vibes, known, types, teams, attack=fought.get("attack") is not None)
    maker = RuleMaker(draw(st.integers(0, 2**32 - 1)), words, quiet, by_chance)
    objects = {"wall": ObjectType(tags=tags["wall"])}
    for name in types[1:]:
        counts_as = draw(st.sampled_from(types[:-1])) if name == variant else ""
        objects[name] = draw(kinds(maker, tags[name], counts_as))
    value = game_values(words, moves, quiet)
    shown = draw(st.lists(st.tuples(value, st.integers(1, 2)), max_size=3))
    term = st.builds(
        RewardTerm,
        weight=st.sampled_from([-1.0, 0.1, 0.005, 1.0, 3.0]),
        value=value,
        cap=st.sampled_from([0.0, 0.5, 2.0, 1e9]),
        mode=st.sampled_from(["change", "gained", "per_tick"]),
    )
    maps = draw(st.sampled_from([ascii_maps, scatter_maps, instance_maps, canvas_maps]))
    return Game(
        name="random",
        num_agents=num_agents,
        max_steps=draw(st.sampled_from([1, 2, 3, 5, 8, 100, 70_000])),
        time_limit=draw(st.sampled_from(["truncation", "termination"])),
        moves=moves,
        resources=resources,
        vibes=vibes,
        **fought,
        agent=draw(agent_types(maker, tags["agent"])),
        collectives=maker.collectives(),
        objects=objects,
        **draw(happenings(maker)),
        map=draw(maps(list(objects), num_agents)),
        observation=Observation(
            **draw(windows()),
            num_tokens=draw(BUDGETS),
            local_position=draw(st.booleans()),
            reward_scale=draw(st.sampled_from([100.0, 1.0, 0.0, -50.0, 12.5, 1e6])),
            overflow=overflow,  # type: ignore[arg-type]
            values=[ObservedValue(name=f"shown {i}", value=v, digits=d) for i, (v, d) in enumerate(shown)],
        ),
        rewards=draw(st.lists(term, max_size=3)),
        reward_sharing=draw(st.sampled_from([0.0, 0.25, 1.0])),
    )


def games(**options: Any) -> SearchStrategy[Game]:
    """The strategy of `game_plans`."""
    return st.seeded(game_plans(**options))


def quiet_make(game: Any, **options: Any) -> Env:
    """`gridmill.make` where neither a small token budget nor more threads than cores is news.

    One game in a thousand has rules that could take too long and is refused for it, as it should be (promise F9):
    another is drawn in its place.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", gridmill.TokenBudgetWarning)
        warnings.filterwarnings("ignore", message="threads=.* is more than the .* cores")
        try:
            return gridmill.make(game, **options)
        except ValueError as refusal:
            if "expected rules of at most 50 million steps in a tick" not in str(refusal):
                raise
            reject()


def random_actions(env: Env, seed: int, beyond: int = 1) -> Callable[[], np.ndarray]:
    """A source of int32 actions, a few of them out of range."""
    rng = np.random.default_rng(seed)
    return lambda: rng.integers(-beyond, env.num_actions + beyond, env.num_rows, dtype=np.int32)


def scripted_actions(step: int, rows: int, num_actions: int) -> np.ndarray:
    """Actions from arithmetic alone, the same with every version of every library."""
    row = np.arange(rows, dtype=np.uint64)
    mixed = (row * np.uint64(104_729) + np.uint64(step * 7_919 + 1)) * np.uint64(0x9E3779B97F4A7C15)
    return ((mixed >> np.uint64(33)) % np.uint64(num_actions)).astype(np.int32)


def attempt(call: Callable[[], Any], *errors: type[Exception]) -> Any:
    """What the call returns, or the exception it raised if it is one of these; any other goes through."""
    try:
        return call()
    except errors as error:
        return error


class Digest:
    """SHA-256 over everything a policy can see of an env, step after step."""

    def __init__(self) -> None:
        self.sha = hashlib.sha256()

    def add_arrays(self, env: Env, rows: slice = slice(None)) -> None:
        ended = env.terminals[rows] | env.truncations[rows]
        for array in (env.obs[rows], env.rewards[rows], env.terminals[rows], env.truncations[rows]):
            self.sha.update(np.ascontiguousarray(array))
        if ended.any():
            self.sha.update(np.ascontiguousarray(env.final_obs[rows][ended]))
        if env.masks is not None:
            self.sha.update(np.ascontiguousarray(env.masks[rows]))

    def add_episodes(self, env: Env) -> None:
        record = env.take_episodes()
        record["short_first"] = record.pop("desynced")  # its name when the stored hashes were made
        for name, column in sorted(record.items()):
            self.sha.update(f"{name} {column.dtype} {column.shape}".encode())
            self.sha.update(np.ascontiguousarray(column))

    def hex(self) -> str:
        return self.sha.hexdigest()


def settled(count: Callable[[], int], expected: int) -> int:
    """A count that may lag a moment behind (a joined thread leaves /proc a little later): its last value."""
    for _ in range(200):
        if count() == expected:
            break
        time.sleep(0.01)
    return count()


def num_threads() -> int:
    return len(os.listdir("/proc/self/task"))


def num_handles() -> int:
    return len(os.listdir("/proc/self/fd"))


def agents_of(world: dict[str, Any]) -> list[dict[str, Any]]:
    """The agents of an inspected world, by index."""
    found: Iterable[dict[str, Any]] = (o for o in world["objects"] if o["agent"] is not None)
    return sorted(found, key=lambda o: int(o["agent"]))
