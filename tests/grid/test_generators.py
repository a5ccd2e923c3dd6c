"""Canvases: every kind of layer draws what it is called, connected, and by its seed alone.

What is refused is in `test_canvas_refusals`.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from random_games import Digest, agents_of, quiet_make

from gridmill import Env, Game, _native
from gridmill.grid import (
    Ascii,
    Blocks,
    Bsp,
    Buildings,
    Canvas,
    Caves,
    Clumps,
    Compound,
    Connect,
    Converter,
    Dunes,
    Fill,
    Instances,
    Layer,
    Maze,
    Mirror,
    Objects,
    ObjectType,
    OneOf,
    Part,
    Radial,
    Rim,
    Rooms,
    Standing,
    Zones,
    city,
    desert,
    forest,
    plains,
)  # fmt: skip
from gridmill.grid.analysis.converters import counts_on

Spot = tuple[int, int]
OBJECTS = {"wall": ObjectType(), "crate": ObjectType(), "mine": ObjectType(inventory={"ore": 3})}
MINES = Objects(counts={"mine": 6, "crate": 2})
HUB = Compound(side=9, gate=3, clear=1, things=[Standing(type="mine"), Standing(type="agent", row=2, column=1)])

# What a canvas may be made of: each is drawn, looked at and walked through below.
PLANS: dict[str, tuple[Layer, ...]] = {
    "nothing": (MINES,),
    "rooms": (Rooms(rows=3, columns=4, extra_doors=0.0), MINES),
    "rooms with thick walls": (Rooms(rows=2, columns=3, wall=3, door=2), MINES),
    "maze by dfs": (Maze(), MINES),
    "maze by kruskal": (Maze(method="kruskal", corridor=2), MINES),
    "maze by prim": (Maze(method="prim", corridor=1, wall=2), MINES),
    "maze with loops": (Maze(loops=0.3), Objects(counts={"mine": 2})),
    "caves": (Caves(), Connect(), MINES),
    "caves without tunnels": (Caves(), Objects(counts={"mine": 2})),
    "bsp": (Bsp(rooms=7), MINES),
    "radial": (Fill(), Radial(arms=6, width=2), MINES),
    "radial with walls": (Radial(arms=8, wall=1), Connect(), MINES),
    "plains": (plains(), Connect(), MINES),
    "forest": (forest(), Connect(), MINES),
    "desert": (desert(), Connect(), MINES),
    "city": (city(), Connect(), MINES),
    "rim": (Rim(deepest=4), Connect(), MINES),
    "compound": (plains(), HUB, Connect()),
    "buildings": (forest(), Buildings(draws=30, weights={"mine": 2.0, "crate": 1.0}), Connect()),
    "mirror": (Mirror(axis="both", layers=(Caves(), Objects(counts={"mine": 1}))), Connect()),
    "zones": (Zones(count=3, smallest=8, largest=12, layers=(Maze(), forest(), Caves())), Connect(), MINES),
    "one of": (OneOf(layers=(Maze(), Bsp()), weights=(1.0, 3.0)), MINES),
    "area": (Part(top=2, left=3, height=12, width=20, border=1, layers=(Maze(),)), Connect(), MINES),
}


def game_with(layers: tuple[Layer, ...], num_agents: int = 1, height: int = 25, width: int = 34, **more: Any) -> Game:
    map_ = Canvas(height=height, width=width, layers=layers, **more.pop("canvas", {}))
    fields = {"objects": OBJECTS, "resources": ("ore",), "map": map_} | more
    return Game(name="canvas", num_agents=num_agents, **fields)


def env_of(layers: tuple[Layer, ...], num_agents: int = 1, num_worlds: int = 1, seed: int = 0, **more: Any) -> Env:
    env = quiet_make(game_with(layers, num_agents, **more), num_worlds=num_worlds, seed=seed)
    env.reset()
    return env


def cells(env: Env, kind: str, world: int = 0) -> set[Spot]:
    return {(o["row"], o["column"]) for o in env.inspect(world)["objects"] if o["type"] == kind}


def inner(height: int = 25, width: int = 34, border: int = 1) -> set[Spot]:
    return {(r, c) for r in range(border, height - border) for c in range(border, width - border)}


def beside(cell: Spot) -> list[Spot]:
    r, c = cell
    return [(r - 1, c), (r + 1, c), (r, c - 1), (r, c + 1)]


def flooded(floor: set[Spot], start: Spot) -> set[Spot]:
    found, todo = set(), [start]
    while todo:
        cell = todo.pop()
        if cell in floor and cell not in found:
            found.add(cell)
            todo += beside(cell)
    return found


def components(floor: set[Spot]) -> list[set[Spot]]:
    parts, left = [], set(floor)
    while left:
        parts.append(flooded(left, next(iter(left))))
        left -= parts[-1]
    return parts


def floor_of(env: Env, world: int = 0) -> set[Spot]:
    """Cells without anything but an agent."""
    view = env.inspect(world)
    solid = {(o["row"], o["column"]) for o in view["objects"] if o["agent"] is None}
    return {(r, c) for r in range(view["height"]) for c in range(view["width"])} - solid


# ---- all kinds alike


@pytest.mark.parametrize("name", PLANS)
def test_every_agent_and_object_can_be_reached(name: str) -> None:
    worlds = 12
    with env_of(PLANS[name], num_worlds=worlds) as env:
        for world in range(worlds):
            view = env.inspect(world)
            assert (view["height"], view["width"]) == (25, 34)
            assert len({(o["row"], o["column"]) for o in view["objects"]}) == len(view["objects"])
            floor = floor_of(env, world)
            assert floor <= inner(), "the border is closed"
            agents = cells(env, "agent", world)
            walked = flooded(floor, next(iter(agents)))
            assert agents <= walked
            for kind in ("mine", "crate"):
                assert all(walked & set(beside(cell)) for cell in cells(env, kind, world))
            if any(isinstance(layer, Connect) for layer in PLANS[name]):
                assert walked == floor


@pytest.mark.parametrize("name", PLANS)
def test_the_seed_decides_and_nothing_else(name: str) -> None:
    """The same worlds for any number of threads and at any time; another world or seed draws another map."""

    def maps(seed: int, threads: int) -> list[str]:
        with quiet_make(game_with(PLANS[name]), num_worlds=6, seed=seed, threads=threads) as env:
            env.reset()
            return [str(env.inspect(world)["objects"]) for world in range(6)]

    first = maps(1, 1)
    assert maps(1, 2) == first
    assert len(set(first + maps(2, 1))) == 12


def test_episodes_of_all_kinds_are_the_same_with_any_number_of_threads() -> None:
    """Short episodes of many games in one batch, so that workers draw canvases of all sizes in different orders."""
    games = [
        game_with(layers, 1, 21 + i % 5, 30 + i % 7, max_steps=2 + i % 3) for i, layers in enumerate(PLANS.values())
    ]
    digests = []
    for threads in (1, 3):
        with quiet_make(games, num_worlds=2 * len(games), threads=threads) as env:
            env.assign(range(2 * len(games)), [*range(len(games))] * 2)
            env.reset()
            digest = Digest()
            for _ in range(12):
                env.step()
                digest.add_arrays(env)
            digests.append(digest.hex())
    assert digests[0] == digests[1]


@pytest.mark.parametrize("name", ["buildings", "caves", "mirror", "zones"])
def test_a_reset_allocates_nothing_once_warm(name: str) -> None:
    with quiet_make(game_with(PLANS[name], max_steps=1), num_worlds=4, threads=1) as env:
        env.reset()
        for _ in range(20):
            env.step()
        before = _native.allocations()
        for _ in range(50):
            env.step()
        assert _native.allocations() - before < 50, "one episode record per step at most"


def test_canvases_stand_side_by_side() -> None:
    place = Canvas(height=9, width=11, layers=(Maze(), Objects(counts={"mine": 1})))
    with env_of((), 4, map=Instances(maps=[place], rows=2, columns=2, gap=1)) as env:
        view = env.inspect(0)
        assert (view["height"], view["width"]) == (19, 23)
        assert [(a["row"] // 10, a["column"] // 12) for a in agents_of(view)] == [(0, 0), (0, 1), (1, 0), (1, 1)]
        assert Counter((r // 10, c // 12) for r, c in cells(env, "mine")) == dict.fromkeys(
            [(0, 0), (0, 1), (1, 0), (1, 1)], 1
        )


def test_agents_are_grouped_in_turn() -> None:
    with env_of((), 5, canvas={"groups": 3}) as env:
        assert [a["group"] for a in agents_of(env.inspect(0))] == [0, 1, 2, 0, 1]


# ---- one kind at a time


def test_fill_covers_and_clears() -> None:
    with env_of((Fill(), Part(top=1, left=2, height=3, width=4, layers=(Fill(what="floor"),)))) as env:
        assert floor_of(env) == {(r, c) for r in range(2, 5) for c in range(3, 7)}


def test_rooms_have_the_walls_and_doors_that_join_them() -> None:
    """Without extra doors there is one door less than rooms: a tree."""
    with env_of((Rooms(rows=3, columns=4, extra_doors=0.0),), height=13, width=21, num_worlds=10) as env:
        lines = {(r, c) for r, c in inner(13, 21) if r in (4, 8) or c in (5, 10, 15)}
        for world in range(10):
            doors = lines - cells(env, "wall", world)
            assert len(doors) == 11
            assert cells(env, "wall", world) & inner(13, 21) == lines - doors
    with env_of((Rooms(rows=3, columns=4, extra_doors=1.0),), height=13, width=21) as env:
        assert len(lines - cells(env, "wall")) == 3 * 3 + 2 * 4


@pytest.mark.parametrize("method", ["dfs", "kruskal", "prim"])
@pytest.mark.parametrize(("corridor", "wall"), [(1, 1), (3, 1), (2, 2)])
def test_a_maze_is_a_tree_of_chambers(method: str, corridor: int, wall: int) -> None:
    step, rows, columns = corridor + wall, 4, 6
    height, width = rows * step - wall + 2, columns * step - wall + 2
    with env_of((Maze(method=method, corridor=corridor, wall=wall),), height=height, width=width) as env:
        floor = floor_of(env)
        chambers = {(1 + r * step, 1 + c * step) for r in range(rows) for c in range(columns)}
        assert chambers <= floor
        assert len(components(floor)) == 1
        passages = (rows * columns - 1) * corridor * wall
        assert len(floor) == rows * columns * corridor * corridor + passages


def test_the_kinds_of_maze_differ_in_their_dead_ends() -> None:
    """dfs winds in long ways; prim is full of dead ends; kruskal lies between."""

    def dead_ends(method: str) -> float:
        with env_of((Maze(method=method),), height=41, width=41, num_worlds=8) as env:
            floors = [floor_of(env, world) for world in range(8)]
        return sum(sum(len(floor & set(beside(cell))) == 1 for cell in floor) for floor in floors) / 8

    assert dead_ends("dfs") < 0.7 * dead_ends("kruskal")
    assert dead_ends("kruskal") < 0.95 * dead_ends("prim")


def test_caves_are_smooth() -> None:
    """Hardly a wall stands alone after smoothing, and both walls and floor are there."""
    with env_of((Caves(),), height=60, width=60) as env:
        walls = cells(env, "wall")
        alone = [cell for cell in walls & inner(60, 60) if not walls & set(beside(cell))]
        assert len(alone) <= 3
        assert 0.2 < len(floor_of(env)) / len(inner(60, 60)) < 0.8


def test_bsp_has_rooms_of_at_least_the_smallest_size() -> None:
    with env_of((Bsp(rooms=6, smallest=4),), height=40, width=40, num_worlds=10) as env:
        for world in range(10):
            floor = floor_of(env, world)
            assert len(components(floor)) == 1
            squares = {
                (r, c) for r, c in floor if all((r + y, c + x) in floor for y in range(4) for x in range(4))
            }  # fmt: skip
            assert len(components(squares)) >= 4


def test_radial_reaches_every_side_and_only_carves() -> None:
    with env_of((Fill(), Radial(arms=8, width=1, hub=0)), height=23, width=23) as env:
        floor = floor_of(env)
        assert {(1, 11), (21, 11), (11, 1), (11, 21), (1, 1), (1, 21), (21, 1), (21, 21)} <= floor
        assert len(components(floor)) == 1
    with env_of((Radial(),)) as env:
        assert floor_of(env) == inner()


@pytest.mark.parametrize("layer", [Clumps(), Dunes(), Blocks(), Rim(deepest=5)], ids=lambda x: x.kind)
def test_patterns_leave_most_of_the_floor(layer: Layer) -> None:
    with env_of((layer,), height=50, width=50, num_worlds=5) as env:
        for world in range(5):
            assert 0.5 < len(floor_of(env, world)) / len(inner(50, 50)) < 0.97


def test_a_compound_stands_where_it_was_told() -> None:
    things = [Standing(type="mine", row=-1), Standing(type="crate", column=2), Standing(type="agent", row=2, column=-2)]
    layers = (Fill(), Compound(side=7, wall=1, gate=3, clear=2, things=things))
    with env_of(layers, height=17, width=17) as env:
        assert cells(env, "mine") == {(7, 8)}
        assert cells(env, "crate") == {(8, 10)}
        assert cells(env, "agent") == {(10, 6)}
        middle = {(r, c) for r in range(3, 14) for c in range(3, 14)}
        ring = {(r, c) for r in range(5, 12) for c in range(5, 12) if 5 in (r, c) or 11 in (r, c)}
        gates = {cell for cell in ring if {7, 8, 9} & {cell[0], cell[1]}}
        assert cells(env, "wall") == inner(17, 17, 0) - middle | (ring - gates)


def test_agents_choose_among_marked_cells() -> None:
    things = [Standing(type="agent", row=r, column=c) for r in (-1, 1) for c in (-1, 0, 1)]
    with env_of((Compound(side=5, wall=0, gate=0, things=things),), 2, num_worlds=300) as env:
        used = Counter((a["agent"], a["row"], a["column"]) for w in range(300) for a in agents_of(env.inspect(w)))
    assert len(used) == 12
    assert max(abs(n - 50) for n in used.values()) < 5 * 42**0.5


def test_marked_cells_may_lie_in_a_part_of_the_map() -> None:
    west = Part(width=10, layers=(Objects(counts={"agent": 5}),))
    with env_of((west,), 4, num_worlds=10) as env:
        assert all(a["column"] <= 10 for world in range(10) for a in agents_of(env.inspect(world)))


def test_buildings_keep_their_distance_and_clear_their_surroundings() -> None:
    layers = (Fill(), Buildings(draws=80, weights={"mine": 3.0, "crate": 1.0}), Connect())
    numbers = set()
    with env_of(layers, height=40, width=40, num_worlds=20) as env:
        for world in range(20):
            stand = sorted(cells(env, "mine", world) | cells(env, "crate", world))
            numbers.add(len(stand))
            assert all(max(abs(a - c), abs(b - d)) > 1 for i, (a, b) in enumerate(stand) for c, d in stand[:i])
            around = {(r + y, c + x) for r, c in stand for y in (-1, 0, 1) for x in (-1, 0, 1)}
            assert around - set(stand) <= floor_of(env, world)
            assert around <= inner(40, 40)
            assert len(cells(env, "mine", world)) > len(cells(env, "crate", world))
    assert len(numbers) > 5, "how many are kept differs from map to map"


def test_objects_that_are_not_on_this_map_are_nowhere() -> None:
    """Machines run, are seen and are saved however many a map has; none of the missing ones starts."""
    objects = OBJECTS | {"mine": ObjectType(converter=Converter(outputs={"ore": 1}, cooldown=2))}
    layers = (Buildings(draws=60, weights={"mine": 1.0}), Connect())
    game = game_with(layers, 3, objects={"mine": objects["mine"], "wall": objects["wall"]}, max_steps=7)
    with quiet_make(game, num_worlds=4, validation=True) as env:
        env.reset()
        for _ in range(40):
            env.step()
            for world in range(4):
                held = {o["inventory"].get("ore", 0) for o in env.inspect(world)["objects"] if o["type"] == "mine"}
                assert len(held) == 1, "all machines that stand run alike"
        seen = env.observation_validation
        assert seen is not None
        assert (seen.comparisons > 0, seen.mismatches) == (True, 0)
        before = env.state_hash().tolist()
        saved = env.save()
        env.step()
        env.restore(saved)
        assert env.state_hash().tolist() == before


def test_objects_close_no_way() -> None:
    """However crowded: the floor stays one piece, and every one can be walked up to."""
    with env_of((Rooms(rows=2, columns=2), Objects(counts={"crate": 40})), height=14, width=14, num_worlds=10) as env:
        for world in range(10):
            floor = floor_of(env, world)
            assert len(components(floor)) == 1
            assert len(cells(env, "crate", world)) == 40
            assert all(floor & set(beside(cell)) for cell in cells(env, "crate", world))


def test_connect_digs_where_it_is_cheapest_and_not_through_objects() -> None:
    """Two chambers with a thin wall and a thick one between: the tunnel takes the thin one, one cell wide."""
    west = Part(top=3, left=1, height=3, width=3, layers=(Fill(what="floor"),))
    east = Part(top=3, left=5, height=3, width=6, layers=(Fill(what="floor"),))
    with env_of((Fill(), west, east, Connect()), height=11, width=14) as env:
        floor = floor_of(env)
        assert len(floor) == 9 + 18 + 1
        assert len(components(floor)) == 1
    crate = Compound(side=1, wall=0, gate=0, clear=0, things=[Standing(type="crate")])
    crates = [Part(top=r, left=4, height=1, width=1, layers=(crate,)) for r in (3, 4, 5)]
    with env_of((Fill(), west, east, *crates, Connect()), height=11, width=14) as env:
        floor = floor_of(env)
        assert len(floor) == 9 + 18 + 3, "around the crates"
        assert len(components(floor)) == 1


@pytest.mark.parametrize(("axis", "height", "width"), [("horizontal", 20, 21), ("vertical", 21, 20), ("both", 19, 22)])
def test_mirrored_maps_are_symmetric(axis: Any, height: int, width: int) -> None:
    layers = (Mirror(axis=axis, layers=(forest(), Objects(counts={"mine": 2}))),)
    with env_of(layers, height=height, width=width) as env:
        for kind in ("wall", "mine"):
            spots = cells(env, kind)
            if axis != "vertical":
                assert spots == {(r, width - 1 - c) for r, c in spots}
            if axis != "horizontal":
                assert spots == {(height - 1 - r, c) for r, c in spots}
        assert 2 < len(cells(env, "mine")) <= (8 if axis == "both" else 4)


def test_zones_deal_every_layer_once() -> None:
    """Four marks for four parts: one of each, in boxes no larger than allowed, in any order."""
    marks = tuple(Compound(side=3, wall=0, gate=0, things=[Standing(type=kind)]) for kind in ("mine", "crate"))
    seen = set()
    with env_of((Zones(count=2, smallest=5, largest=7, layers=marks),), num_worlds=30) as env:
        for world in range(30):
            assert len(cells(env, "mine", world)) == len(cells(env, "crate", world)) == 1
            seen.add(min(cells(env, "mine", world)) < min(cells(env, "crate", world)))
    assert seen == {True, False}
    half = Zones(count=4, smallest=5, largest=7, share=0.5, layers=marks[:1])
    with env_of((half,)) as env:
        assert len(cells(env, "mine")) == 2


def test_one_of_follows_its_weights() -> None:
    layers = tuple(Objects(counts={kind: 1}) for kind in ("mine", "crate"))
    with env_of((OneOf(layers=layers, weights=(1.0, 3.0)),), num_worlds=400) as env:
        mines = sum(len(cells(env, "mine", world)) for world in range(400))
    assert abs(mines - 100) < 5 * 75**0.5


def test_pictures_stay_what_they_were() -> None:
    """A batch with a canvas and a picture: neither changes what the other draws."""
    with quiet_make([game_with((Caves(),)), game_with((), map=Ascii(text="@.#"))], num_worlds=2) as env:
        env.assign([0, 1], [0, 1])
        env.reset()
        assert cells(env, "wall", 1) == {(0, 2)}


def test_the_most_a_canvas_can_hold_is_known_beforehand() -> None:
    """What `explain` goes by: never less than what stands on a map."""
    for name, layers in PLANS.items():
        most = counts_on(Canvas(layers=layers))
        with env_of(layers, num_worlds=5) as env:
            for world in range(5):
                assert all(len(cells(env, kind, world)) <= most[kind] for kind in ("mine", "crate")), name
    assert counts_on(Canvas(layers=(Mirror(axis="both", layers=(MINES,)),))) == {"mine": 24, "crate": 8}
