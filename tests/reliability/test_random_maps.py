"""Any map is drawn or refused in one line; sizes beyond the caps are refused with the numbers.

What a good map means is tested in `tests/grid/test_maps.py`; here are the bad and the enormous ones.
"""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import draws
import psutil
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from random_games import agents_of, attempt, quiet_make

import gridmill
from gridmill import Game, _native
from gridmill.config import Config, memory
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
    Dunes,
    Fill,
    Maze,
    Mirror,
    Objects,
    ObjectType,
    Observation,
    OneOf,
    Part,
    Radial,
    Rim,
    Rooms,
    Scatter,
    Standing,
    Zones,
)  # fmt: skip

pytestmark = pytest.mark.F2

LETTERS = "#.@ 019aX"
ANY = draws.one_of(
    draws.text(LETTERS + "\n", max_size=60),
    draws.text(LETTERS + "\n\r\t\x00é🙂", max_size=40),
    draws.text(max_size=40),
    draws.lists(draws.text(LETTERS, min_size=4, max_size=4), min_size=1, max_size=8).map("\n".join),
    draws.lists(draws.text(LETTERS, max_size=5), max_size=6).map("\r\n".join),
)
KEYS = draws.text(control=False, max_size=2)
LEGENDS = draws.one_of(
    draws.just({"a": "wall", "X": "crate"}),
    draws.dictionaries(
        draws.one_of(draws.sampled_from("aX#.@ 0"), KEYS), draws.sampled_from(["wall", "crate", "cart", ""])
    ),
)


def game_with(map_: Any, num_agents: int = 1, **more: Any) -> Game:
    objects = {"wall": ObjectType(), "crate": ObjectType(tags=("box",))}
    window = Observation(height=3, width=3, num_tokens=60)
    return Game(name="map", num_agents=num_agents, objects=objects, map=map_, observation=window, **more)


def picture(env: gridmill.Env) -> list[str]:
    """The world as an ASCII map again, agents as their group."""
    world = env.inspect(0)
    rows = [["."] * world["width"] for _ in range(world["height"])]
    for o in world["objects"]:
        mark = str(o["group"]) if o["agent"] is not None else "#" if o["type"] == "wall" else "X"
        rows[o["row"]][o["column"]] = mark
    return ["".join(row) for row in rows]


def expected_rows(text: str, legend: dict[str, str]) -> list[str]:
    """The map as `picture` would show it, by the rules of the docs."""
    rows = text.replace("\r", "").strip("\n").split("\n")
    meaning = {" ": ".", "@": "0", "#": "#"} | {key: "#" if kind == "wall" else "X" for key, kind in legend.items()}
    return ["".join(meaning.get(c, c) for c in row) for row in rows]


def try_text(text: str, legend: dict[str, str], num_agents: int) -> None:
    """Drawn as the docs say, or refused in one line with the path."""
    game = game_with(Ascii(text=text, legend=legend), num_agents)
    env = attempt(lambda: quiet_make(game, num_worlds=1), ValueError, TypeError)
    if isinstance(env, Exception):
        assert "`$.map" in str(env), env
        assert "\n" not in str(env), env
        return
    with env:
        env.reset()
        expected = expected_rows(text, legend)
        spawns = sum(c.isdigit() for row in expected for c in row)
        if spawns == num_agents:
            assert picture(env) == expected
        assert len(agents_of(env.inspect(0))) == num_agents <= spawns
        env.step()


TEXTS = given(text=draws.seeded(ANY), legend=draws.seeded(LEGENDS), num_agents=st.integers(1, 3))


@settings(max_examples=3_000)
@TEXTS
def test_3000_random_ascii_maps(text: str, legend: dict[str, str], num_agents: int) -> None:
    try_text(text, legend, num_agents)


@pytest.mark.long
@settings(max_examples=20_000)
@TEXTS
def test_20000_random_ascii_maps(text: str, legend: dict[str, str], num_agents: int) -> None:
    try_text(text, legend, num_agents)


SCATTERED = given(
    height=st.integers(1, 12),
    width=st.integers(1, 12),
    border=st.integers(0, 8),
    crates=st.integers(0, 60),
    walls=st.integers(0, 60),
    num_agents=st.integers(1, 20),
    stateful=st.booleans(),
)


@settings(max_examples=1_000)
@SCATTERED
def test_random_scatter_maps(**drawn: Any) -> None:
    try_scatter(**drawn)


@pytest.mark.long
@settings(max_examples=5_000)
@SCATTERED
def test_5000_random_scatter_maps(**drawn: Any) -> None:
    try_scatter(**drawn)


def try_scatter(height: int, width: int, border: int, crates: int, walls: int, num_agents: int, stateful: bool) -> None:
    map_ = Scatter(height=height, width=width, border=border, objects={"crate": crates, "wall": walls})
    crate = ObjectType(inventory={"ore": 1}) if stateful else ObjectType()
    game = game_with(map_, num_agents, resources=("ore",)).replace("objects.crate", crate)
    room = max(0, height - 2 * border) * max(0, width - 2 * border)
    wanted = crates + walls + num_agents
    if wanted > room:
        text = (
            f"expected at least {wanted} free cells for agents and objects, got {room} inside the border - at `$.map`"
        )
        with pytest.raises(ValueError) as caught:
            quiet_make(game, num_worlds=1)
        assert str(caught.value) == text
        return
    with quiet_make(game, num_worlds=1) as env:
        fault = attempt(env.reset, _native.WorldFault)
        if isinstance(fault, Exception):
            assert "found no layout in 100 attempts" in str(fault)
            return
        kinds = [o["type"] for o in env.inspect(0)["objects"]]
        assert kinds.count("agent") == num_agents
        assert kinds.count("crate") == crates
        assert kinds.count("wall") == walls + height * width - room


def numbers(model: type[Config], **fixed: Any) -> draws.Plan:
    """A model with small random numbers in all its fields, some of them too large for the map."""
    drawn: dict[str, Any] = {}
    for name, field in model.model_fields.items():
        low = max([getattr(item, "ge", None) or 0 for item in field.metadata], default=0)
        if field.annotation is int:
            drawn[name] = draws.integers(low, low + 5)
        elif field.annotation is float:
            drawn[name] = draws.sampled_from([0.0, 0.3, 1.0])
    return draws.builds(model, **{k: v for k, v in drawn.items() if k not in fixed}, **fixed)


THINGS = draws.lists(
    draws.builds(
        Standing,
        type=draws.sampled_from(["wall", "crate", "agent"]),
        row=draws.integers(-4, 4),
        column=draws.integers(-4, 4),
    ),
    max_size=4,
)
COUNTS = draws.dictionaries(draws.sampled_from(["wall", "crate", "agent"]), draws.integers(0, 9), max_size=3)
LEAVES = draws.one_of(
    draws.builds(Fill, what=draws.sampled_from(["wall", "floor"])),
    numbers(Maze, method=draws.sampled_from(["dfs", "kruskal", "prim"])),
    numbers(Compound, side=draws.sampled_from([1, 5, 9]), gate=draws.sampled_from([0, 1, 3]), things=THINGS),
    numbers(Buildings, weights=draws.just({"crate": 1.0, "wall": 0.5})),
    draws.builds(Objects, counts=COUNTS),
    *(numbers(model) for model in (Rooms, Caves, Bsp, Radial, Clumps, Dunes, Blocks, Rim, Connect)),
)


def held(inner: draws.Plan) -> draws.Plan:
    some = draws.lists(inner, min_size=1, max_size=3)
    axes = draws.sampled_from(["horizontal", "vertical", "both"])
    return draws.one_of(
        numbers(Part, layers=some), numbers(Zones, layers=some), draws.builds(OneOf, layers=some),
        draws.builds(Mirror, axis=axes, layers=some),
    )  # fmt: skip


CANVASES = draws.builds(
    Canvas,
    height=draws.integers(1, 40),
    width=draws.integers(5, 40),
    border=draws.integers(0, 2),
    layers=draws.lists(draws.recursive(LEAVES, held, max_leaves=4), max_size=4),
)


PAINTED = given(map_=draws.seeded(CANVASES), num_agents=st.integers(1, 4), stateful=st.booleans())


@settings(max_examples=1_000)
@PAINTED
def test_random_canvases(map_: Canvas, num_agents: int, stateful: bool) -> None:
    try_canvas(map_, num_agents, stateful)


@pytest.mark.long
@settings(max_examples=5_000)
@PAINTED
def test_5000_random_canvases(map_: Canvas, num_agents: int, stateful: bool) -> None:
    try_canvas(map_, num_agents, stateful)


def try_canvas(map_: Canvas, num_agents: int, stateful: bool) -> None:
    """Drawn, or refused in one line: at compile with the path, or by the reset that found no such map."""
    crate = ObjectType(inventory={"ore": 1}) if stateful else ObjectType()
    game = game_with(map_, num_agents, resources=("ore",)).replace("objects.crate", crate)
    env = attempt(lambda: quiet_make(game, num_worlds=1), ValueError)
    if isinstance(env, Exception):
        assert "`$.map" in str(env), env
        assert "\n" not in str(env), env
        return
    with env:
        fault = attempt(env.reset, _native.WorldFault)
        if isinstance(fault, Exception):
            assert "in 100 attempts" in str(fault)
            assert "- at `$.map`" in str(fault)
            return
        rows = picture(env)
        assert (len(rows), len(rows[0])) == (map_.height, map_.width)
        assert len(agents_of(env.inspect(0))) == num_agents
        env.step()


@pytest.mark.parametrize(
    ("text", "legend", "message"),
    [
        ("", {}, "expected at least one row, got none - at `$.map.text`"),
        ("\n\r\n\n", {}, "expected at least one row, got none - at `$.map.text`"),
        ("@..\n..", {}, "row 1 has 2 characters, expected 3 like the first - at `$.map.text`"),
        ("@.\n\n..", {}, "row 1 has 0 characters, expected 2 like the first - at `$.map.text`"),
        ("..", {}, "expected cells for 1 agents (`@` or a digit), got 0 - at `$.map.text`"),
        ("@?", {}, "character '?' in row 0, column 1 is not in the legend - at `$.map.text`"),
        ("@.\n.\t", {}, "character 'byte 9' in row 1, column 1 is not in the legend - at `$.map.text`"),
        ("@\x00", {}, "character 'byte 0' in row 0, column 1 is not in the legend - at `$.map.text`"),
        ("@é", {}, "character 'byte 195' in row 0, column 1 is not in the legend - at `$.map.text`"),
        ("@X", {"X": "crat"}, "unknown object type `crat`; did you mean `crate`? - at `$.map.legend.X`"),
        ("@", {"XY": "wall"}, "expected one ASCII character, got 'XY' - at `$.map.legend.XY`"),
        ("@", {"": "wall"}, "expected one ASCII character, got '' - at `$.map.legend.`"),
        ("@", {"@": "wall"}, "'@' already means empty floor or an agent - at `$.map.legend.@`"),
        ("@", {"7": "wall"}, "'7' already means empty floor or an agent - at `$.map.legend.7`"),
        ("@", {"X": "agent"}, "unknown object type `agent` - at `$.map.legend.X`"),
    ],
)
def test_typical_mistakes_word_for_word(text: str, legend: dict[str, str], message: str) -> None:
    with pytest.raises(ValueError) as caught:
        quiet_make(game_with(Ascii(text=text, legend=legend)), num_worlds=1)
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("rows", "columns"), [(4097, 1), (1, 4097), (4097, 4097), (5000, 3), (3, 100_000)], ids=lambda n: str(n)
)
def test_maps_with_too_many_rows_or_columns(rows: int, columns: int) -> None:
    text = "\n".join(["@" + "." * (columns - 1)] + ["." * columns] * (rows - 1))
    with pytest.raises(ValueError) as caught:
        quiet_make(game_with(Ascii(text=text)), num_worlds=1)
    assert str(caught.value) == f"expected at most 4096 x 4096 cells, got {rows} x {columns} - at `$.map.text`"
    if max(rows, columns) <= 4097:
        with pytest.raises(ValueError, match=r"4096, got 4097 - at `\$.map.(height|width)`$"):
            Game.load(game_with(Scatter()).tree() | {"map": {"kind": "scatter", "height": rows, "width": columns}})


def test_the_largest_ascii_map_works() -> None:
    text = "\n".join(["." * 4096] * 4095 + ["." * 4095 + "@"])
    with quiet_make(game_with(Ascii(text=text)), num_worlds=1) as env:
        env.reset()
        assert [(a["row"], a["column"]) for a in agents_of(env.inspect(0))] == [(4095, 4095)]
        env.step([1])
        env.step([3])
        assert [(a["row"], a["column"]) for a in agents_of(env.inspect(0))] == [(4094, 4094)]


def test_the_largest_scatter_map_works() -> None:
    walls = 65_535 - 4 * 4095 - 2
    game = game_with(Scatter(height=4096, width=4096, border=1, objects={"wall": walls}), 2)
    with quiet_make(game, num_worlds=1) as env:
        env.reset()
        assert len(env.inspect(0)["objects"]) == 65_535
        env.step()
    more = game.replace("map.objects.wall", walls + 1)
    with pytest.raises(ValueError, match=r"^expected at most 65535 objects on a map, got 65536\b.* - at `\$.map`$"):
        quiet_make(more, num_worlds=1)


def test_objects_up_to_the_cap_and_one_more() -> None:
    """Walls count like everything else: 65 535 with the agent, not one more."""
    full = ["#" * 256] * 255 + ["#" * 254 + "@."]
    assert sum(row.count("#") + row.count("@") for row in full) == 65_535
    with quiet_make(game_with(Ascii(text="\n".join(full))), num_worlds=1) as env:
        env.reset()
        env.step([4])
        assert len(env.inspect(0)["objects"]) == 65_535
    with pytest.raises(
        ValueError, match=r"^expected at most 65535 objects on a map, got 65536\b.* - at `\$.map.text`$"
    ):
        quiet_make(game_with(Ascii(text="\n".join([*full[:-1], "#" * 255 + "@"]))), num_worlds=1)


def crates_and_an_agent(crates: int) -> Game:
    rows = ["X" * 256] * (crates // 256) + ["X" * (crates % 256) + "." * (256 - crates % 256)] + ["@" + "." * 255]
    game = game_with(Ascii(text="\n".join(rows), legend={"X": "crate"}), resources=("ore",))
    return game.replace("objects.crate", {"inventory": {"ore": 1}})


@pytest.mark.parametrize("crates", [60_000, 65_532])
def test_objects_with_a_state_up_to_the_cap(crates: int) -> None:
    """Objects with a state of their own and kinds of terrain share 65 534 codes: here the agent, crates and walls."""
    with quiet_make(crates_and_an_agent(crates), num_worlds=1) as env:
        env.reset()
        assert sum(o["type"] == "crate" for o in env.inspect(0)["objects"]) == crates


def test_one_object_with_a_state_too_many() -> None:
    expected = r"^expected at most 65534 codes, got 65534 objects with a state \+ 1 kinds of terrain - at `\$.map`$"
    with pytest.raises(ValueError, match=expected):
        quiet_make(crates_and_an_agent(65_533), num_worlds=1)


def test_agents_up_to_the_cap_and_one_more() -> None:
    text = "\n".join(["@" * 64] * 64 + ["." * 64])
    game = game_with(Ascii(text=text), 4096)
    with quiet_make(game, num_worlds=1) as env:
        env.reset()
        env.step()
        assert len(agents_of(env.inspect(0))) == 4096
        assert env.obs.shape == (4096, 60, 3)
    with pytest.raises(ValueError, match=r"^expected less than or equal to 4096, got 4097 - at `\$.num_agents`$"):
        game.replace("num_agents", 4097)


def test_a_million_empty_lines_before_the_map() -> None:
    """Work grows with the text, not with its square: 10 CPU seconds are hundreds of times what is needed."""
    script = (
        "import resource; resource.setrlimit(resource.RLIMIT_CPU, (10, 10))\n"
        "import gridmill; from gridmill.grid import Ascii\n"
        "game = gridmill.Game(name='late', map=Ascii(text='\\n' * 1_000_000 + '@.'))\n"
        "env = gridmill.make(game, num_worlds=1); env.reset(); print(env.inspect(0)['height'])"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "1\n"), done.stderr


def test_more_memory_than_there_is_is_refused_with_the_arithmetic(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "limit", lambda: psutil.virtual_memory().total)  # the core's own refusal
    game = game_with(Scatter(height=4096, width=4096, border=0), 4096)
    with pytest.raises(ValueError) as caught:
        quiet_make(game, num_worlds=1_000_000)
    text = r"not enough memory: 1000000 worlds x \(\d+ bytes of state \+ 4096 rows x \d+ bytes\) = \d+ MiB, "
    assert caught.match(f"^{text}this machine has \\d+ MiB; lower num_worlds$")
