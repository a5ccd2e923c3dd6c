"""Maps that work: what ASCII pictures mean, and what scatter promises. Bad and enormous ones: `test_random_maps`."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from random_games import agents_of, quiet_make

import gridmill
from gridmill import Env, Game, _native
from gridmill.grid import Ascii, Instances, ObjectType, Scatter

OBJECTS = {"wall": ObjectType(), "crate": ObjectType(tags=("box",)), "mine": ObjectType(inventory={"ore": 3})}


def env_of(map_: Any, num_agents: int = 1, num_worlds: int = 1, **fields: Any) -> Env:
    fields = {"objects": OBJECTS, "resources": ("ore",)} | fields
    env = quiet_make(Game(name="map", num_agents=num_agents, map=map_, **fields), num_worlds=num_worlds)
    env.reset()
    return env


def cells(env: Env, kind: str, world: int = 0) -> set[tuple[int, int]]:
    return {(o["row"], o["column"]) for o in env.inspect(world)["objects"] if o["type"] == kind}


# ---- ascii


def test_what_the_characters_mean() -> None:
    env = env_of(Ascii(text="#.@ \nXM3.", legend={"X": "crate", "M": "mine"}), 2)
    world = env.inspect(0)
    assert (world["height"], world["width"]) == (2, 4)
    assert cells(env, "wall") == {(0, 0)}
    assert cells(env, "crate") == {(1, 0)}
    assert cells(env, "mine") == {(1, 1)}
    assert [(a["row"], a["column"], a["group"]) for a in agents_of(world)] == [(0, 2, 0), (1, 2, 3)]
    mine = next(o for o in world["objects"] if o["type"] == "mine")
    assert mine["inventory"] == {"ore": 3}
    assert mine["tags"] == ["type:mine"]
    assert next(o for o in world["objects"] if o["type"] == "crate")["tags"] == ["box", "type:crate"]


def test_digits_are_groups_and_agents_come_in_reading_order() -> None:
    env = env_of(Ascii(text="9.0\n@15\n..7"), 6)
    assert [(a["row"], a["column"], a["group"]) for a in agents_of(env.inspect(0))] == [
        (0, 0, 9), (0, 2, 0), (1, 0, 0), (1, 1, 1), (1, 2, 5), (2, 2, 7),
    ]  # fmt: skip
    group = [
        next(t.value for t in env.decode(row) if t.feature == "agent:group" and t.row == 0 == t.column)
        for row in range(6)
    ]
    assert group == [9, 0, 0, 1, 5, 7]


@pytest.mark.parametrize("text", ["@.\n.#", "\n\n@.\n.#\n\n", "@.\r\n.#\r\n", "@ \n #"])
def test_blank_lines_around_and_line_ends_do_not_matter(text: str) -> None:
    env = env_of(Ascii(text=text))
    assert (env.inspect(0)["height"], env.inspect(0)["width"]) == (2, 2)
    assert cells(env, "wall") == {(1, 1)}
    assert cells(env, "agent") == {(0, 0)}


def test_a_legend_may_give_the_wall_sign_another_meaning() -> None:
    env = env_of(Ascii(text="#@", legend={"#": "crate"}))
    assert cells(env, "crate") == {(0, 0)}
    assert cells(env, "wall") == set()


def test_a_wall_sign_needs_a_wall() -> None:
    with pytest.raises(ValueError, match=r"^unknown object type `wall`.* - at `\$.map.text`$"):
        env_of(Ascii(text="#@"), objects={"crate": ObjectType()})


def test_a_map_without_walls_needs_no_wall_type() -> None:
    env = env_of(Ascii(text=".@X", legend={"X": "crate"}), objects={"crate": ObjectType()})
    assert cells(env, "crate") == {(0, 2)}


def test_with_more_spawn_cells_than_agents_every_episode_draws() -> None:
    """Each cell is used about equally often, by each agent, and the group is the cell's."""
    worlds = 3_000
    env = env_of(Ascii(text="1.2.3.4.5"), 2, num_worlds=worlds)
    used: Counter[tuple[int, int]] = Counter()
    for world in range(worlds):
        agents = agents_of(env.inspect(world))
        assert len({a["column"] for a in agents}) == 2
        for agent in agents:
            assert agent["group"] == agent["column"] // 2 + 1
            used[agent["agent"], agent["column"]] += 1
    assert len(used) == 10
    assert max(abs(n - worlds / 5) for n in used.values()) < 5 * (worlds * 0.16) ** 0.5, used


def test_the_draw_of_spawn_cells_changes_with_the_episode() -> None:
    env = env_of(Ascii(text="@@@@@@@@@@@@"), 1, max_steps=1)
    seen = set()
    for _ in range(60):
        seen |= cells(env, "agent")
        env.step()
    assert len(seen) > 8


def test_everything_but_spawns_is_the_same_in_every_episode() -> None:
    env = env_of(Ascii(text="#@X\nM.#\n..@", legend={"X": "crate", "M": "mine"}), 2, max_steps=1)
    first = [cells(env, kind) for kind in OBJECTS]
    for _ in range(5):
        env.step()
        assert [cells(env, kind) for kind in OBJECTS] == first


# ---- scatter


@pytest.mark.parametrize("border", [0, 1, 3])
def test_scatter_places_exactly_what_was_asked_for(border: int) -> None:
    env = env_of(
        Scatter(height=14, width=20, border=border, objects={"crate": 9, "mine": 4, "wall": 6}), 5, num_worlds=20
    )
    rim = {(r, c) for r in range(14) for c in range(20)} - {
        (r, c) for r in range(border, 14 - border) for c in range(border, 20 - border)
    }
    for world in range(20):
        assert len(cells(env, "crate", world)) == 9
        assert len(cells(env, "mine", world)) == 4
        assert len(cells(env, "agent", world)) == 5
        walls = cells(env, "wall", world)
        assert rim <= walls
        assert len(walls) == 6 + len(rim)
        assert len(env.inspect(world)["objects"]) == 9 + 4 + 5 + len(walls)  # one object per cell


def test_scatter_groups_agents_in_turn() -> None:
    env = env_of(Scatter(height=9, width=9, groups=3), 7)
    assert [a["group"] for a in agents_of(env.inspect(0))] == [0, 1, 2, 0, 1, 2, 0]


def test_scatter_draws_anew_for_every_world_and_episode() -> None:
    env = env_of(Scatter(height=12, width=12, objects={"crate": 10}), 2, num_worlds=10, max_steps=1)
    layouts = []
    for _ in range(10):
        layouts += [str(env.inspect(world)["objects"]) for world in range(10)]
        env.step()
    assert len(set(layouts)) == 100


def reachable(env: Env, world: int) -> set[tuple[int, int]]:
    """Cells one can walk to in four directions from agent 0, through agents but not through other objects."""
    view = env.inspect(world)
    solid = {(o["row"], o["column"]) for o in view["objects"] if o["agent"] is None}
    start = agents_of(view)[0]
    found, todo = set(), [(start["row"], start["column"])]
    while todo:
        cell = todo.pop()
        if cell in found or cell in solid or not (0 <= cell[0] < view["height"] and 0 <= cell[1] < view["width"]):
            continue
        found.add(cell)
        todo += [(cell[0] + 1, cell[1]), (cell[0] - 1, cell[1]), (cell[0], cell[1] + 1), (cell[0], cell[1] - 1)]
    return found


@pytest.mark.parametrize("walls", [20, 50, 66])
def test_on_dense_maps_agents_and_objects_stay_connected(walls: int) -> None:
    """Every agent, and a cell beside every object with a state, can be reached from every other."""
    worlds = 40
    env = env_of(Scatter(height=14, width=14, border=1, objects={"wall": walls, "mine": 3}), 4, num_worlds=worlds)
    for world in range(worlds):
        floor = reachable(env, world)
        assert cells(env, "agent", world) <= floor
        for row, column in cells(env, "mine", world):
            assert floor & {(row + 1, column), (row - 1, column), (row, column + 1), (row, column - 1)}


def test_scatter_fills_a_map_to_the_last_cell() -> None:
    env = env_of(Scatter(height=5, width=5, border=0), 25)
    assert len(cells(env, "agent")) == 25
    env.step()


def test_scatter_says_when_nothing_fits() -> None:
    with pytest.raises(ValueError) as caught:
        env_of(Scatter(height=5, width=5, border=1, objects={"crate": 8}), 2)
    assert str(caught.value) == (
        "expected at least 10 free cells for agents and objects, got 9 inside the border - at `$.map`"
    )


def test_scatter_says_when_it_found_no_connected_layout() -> None:
    """Three mines in a row of five cells: one of them always stands behind another."""
    with pytest.raises(
        _native.WorldFault, match="scatter found no layout in 100 attempts in which every agent and every object"
    ):
        env_of(Scatter(height=1, width=5, border=0, objects={"mine": 3}), 2)


@pytest.mark.parametrize(
    ("map_", "text"),
    [
        (Scatter(objects={"crat": 3}), "unknown object type `crat`; did you mean `crate`? - at `$.map.objects.crat`"),
        (Scatter(objects={"agent": 3}), "unknown object type `agent` - at `$.map.objects.agent`"),
    ],
)
def test_scatter_refuses_unknown_objects(map_: Scatter, text: str) -> None:
    with pytest.raises(ValueError) as caught:
        env_of(map_)
    assert str(caught.value) == text


def test_a_border_needs_a_wall() -> None:
    with pytest.raises(ValueError, match=r"^unknown object type `wall` - at `\$.map.border`$"):
        env_of(Scatter(height=5, width=5, border=1), objects={"box": ObjectType()})


def test_ascii_and_scatter_games_share_a_batch() -> None:
    """Worlds alternate between a small fixed map and a large drawn one, episode after episode."""
    fixed = Game(name="fixed", max_steps=2, map=Ascii(text="@.#"))
    drawn = Game(name="drawn", max_steps=3, map=Scatter(height=30, width=30, objects={"wall": 50}))
    with quiet_make([fixed, drawn], num_worlds=6, threads=1) as env:
        env.assign(range(6), [0, 1] * 3)
        env.reset()
        for _ in range(30):
            env.step()
            for world in range(6):
                assert len(cells(env, "wall", world)) == (1 if world % 2 == 0 else 50 + 4 * 29)


def test_toy_is_what_its_parameters_say() -> None:
    game = gridmill.games.toy(num_agents=7, map_size=21, density=0.1)
    with quiet_make(game, num_worlds=1) as env:
        env.reset()
        assert len(cells(env, "agent")) == 7
        assert len(cells(env, "wall")) == round(0.1 * 21 * 21) + 4 * 20
        assert env.inspect(0)["height"] == env.inspect(0)["width"] == 21


# ---- places side by side


def test_instances_stand_in_turn_with_gaps_and_a_border_of_walls() -> None:
    ones, twos = Ascii(text="1.\n.."), Ascii(text="..\n.2")
    game = Game(name="places", num_agents=6, map=Instances(maps=[ones, twos], rows=2, columns=3, gap=1, border=2))
    with quiet_make(game, num_worlds=1) as env:
        env.reset()
        world = env.inspect(0)
    assert (world["height"], world["width"]) == (2 * 2 + 1 + 4, 3 * 2 + 2 + 4)
    agents = sorted((o for o in world["objects"] if o["agent"] is not None), key=lambda o: o["agent"])
    tops = [(2 + 3 * r, 2 + 3 * c) for r in range(2) for c in range(3)]
    expected = [(row, column, 1) if i % 2 == 0 else (row + 1, column + 1, 2) for i, (row, column) in enumerate(tops)]
    assert [(a["row"], a["column"], a["group"]) for a in agents] == expected
    walls = {(o["row"], o["column"]) for o in world["objects"] if o["type"] == "wall"}
    floor = {(row + r, column + c) for row, column in tops for r in range(2) for c in range(2)}
    assert walls == {(r, c) for r in range(9) for c in range(12)} - floor


@pytest.mark.parametrize(("gap", "border"), [(1, 0), (0, 1)])
def test_scattered_places_may_be_walled_off_from_each_other(gap: int, border: int) -> None:
    """One agent to each room: a place is a world of its own, and what is in it can be reached from inside."""
    room = Scatter(height=6, width=6, border=border, objects={"wall": 2})
    game = Game(name="rooms", num_agents=4, map=Instances(maps=[room], rows=2, columns=2, gap=gap))
    with quiet_make(game, num_worlds=2) as env:
        env.reset()
        for world in range(2):
            agents = [o for o in env.inspect(world)["objects"] if o["agent"] is not None]
            rooms = {a["agent"]: (a["row"] // (6 + gap), a["column"] // (6 + gap)) for a in agents}
            assert rooms == {0: (0, 0), 1: (0, 1), 2: (1, 0), 3: (1, 1)}


def test_places_of_both_kinds_get_their_agents_in_order() -> None:
    maps = [Scatter(height=3, width=3, border=0), Ascii(text="...\n.@.\n...")]
    game = Game(name="mixed", num_agents=4, map=Instances(maps=maps, rows=1, columns=4))
    with quiet_make(game, num_worlds=1) as env:
        env.reset()
        agents = sorted((o for o in env.inspect(0)["objects"] if o["agent"] is not None), key=lambda o: o["agent"])
    assert [a["column"] // 3 for a in agents] == [0, 1, 2, 3]
