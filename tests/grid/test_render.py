"""Pictures of a world: exact text on hand-made worlds, pixels where they carry meaning, PNG read back."""

from __future__ import annotations

import struct
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gridmill
from gridmill.grid import render


def thing(kind: str, row: int, column: int, **more: Any) -> dict[str, Any]:
    return {
        "type": kind, "row": row, "column": column, "inventory": {}, "vibe": 0, "tags": [f"type:{kind}"],
        "agent": None, "group": None, "facing": None, **more,
    }  # fmt: skip


def agent(index: int, row: int, column: int, facing: str = "south", group: int = 0) -> dict[str, Any]:
    return thing("agent", row, column, agent=index, facing=facing, group=group)


class HandMade:
    """Just enough of an env to be looked at."""

    def __init__(self, height: int, width: int, *objects: dict[str, Any], types: tuple[str, ...] = ()) -> None:
        self.tags = [f"type:{name}" for name in types]
        self.view = {
            "tick": 7, "episode": 1, "seed": 42, "height": height, "width": width, "objects": list(objects),
        }  # fmt: skip

    def inspect(self, world: int) -> dict[str, Any]:
        return self.view


def test_ascii_is_exactly_this() -> None:
    objects = [thing("wall", 0, 0), thing("wall", 2, 4), thing("block", 1, 1), thing("mine", 0, 3)]
    env: Any = HandMade(3, 5, *objects, agent(0, 1, 2), agent(1, 2, 0))
    assert render.ascii(env, 4) == (
        "world 4, tick 7, episode 1, seed 42\n"
        "#..m.\n"
        ".b@..\n"
        "@...#\n"
        "# wall x2  @ agent x2  b block x1  m mine x1  . empty"
    )


def test_ascii_shows_groups_as_digits() -> None:
    env: Any = HandMade(1, 3, agent(0, 0, 0, group=0), agent(1, 0, 2, group=1))
    assert render.ascii(env).splitlines()[1:] == [
        "0.1",
        "0 agent of group 0 x1  1 agent of group 1 x1  . empty",
    ]


def test_ascii_letters_are_distinct_and_stay_when_objects_go() -> None:
    types = ("wall", "agent", "altar", "armory", "assembler", "aa")
    full: Any = HandMade(1, 4, *(thing(name, 0, place) for place, name in enumerate(types[2:])), types=types)
    letters = dict(zip(types[2:], render.ascii(full).splitlines()[1], strict=True))
    assert letters == {"aa": "a", "altar": "l", "armory": "r", "assembler": "s"}
    alone: Any = HandMade(1, 1, thing("assembler", 0, 0), types=types)
    assert render.ascii(alone).splitlines()[1] == "s"


def test_ascii_has_a_character_for_every_one_of_many_types() -> None:
    names = [f"t{index}" for index in range(100)]
    env: Any = HandMade(1, 100, *(thing(name, 0, place) for place, name in enumerate(names)))
    line = render.ascii(env).splitlines()[1]
    assert len(line) == 100
    assert not set(line) & set("#.@ ")


def test_a_long_legend_is_wrapped_between_its_entries() -> None:
    names = [f"machine_with_a_name_{index}" for index in range(9)]
    env: Any = HandMade(1, 9, *(thing(name, 0, place) for place, name in enumerate(names)))
    legend = render.ascii(env).splitlines()[2:]
    assert len(legend) > 1
    assert max(map(len, legend)) <= 80
    entries = "  ".join(legend).split("  ")
    assert sorted(entry[2:] for entry in entries) == ["empty", *(f"{name} x1" for name in names)]


def test_ascii_agrees_with_inspect_on_a_real_world() -> None:
    with gridmill.make(gridmill.games.toy(num_agents=4, map_size=12, density=0.1), num_worlds=2, seed=3) as env:
        env.reset()
        rows = render.ascii(env, 1).splitlines()[1:-1]
        found = {(r, c): cell for r, row in enumerate(rows) for c, cell in enumerate(row) if cell != "."}
        expected = {"wall": "#", "agent": "@"}
        assert found == {(o["row"], o["column"]): expected[o["type"]] for o in env.inspect(1)["objects"]}
        assert set(rows[0]) == {"#"}
        assert sum(row.count("@") for row in rows) == 4
        assert render.ascii(env, 0) != render.ascii(env, 1)


def test_rgb_shape_and_repeatability_on_a_real_world() -> None:
    with gridmill.make(gridmill.games.toy(num_agents=4, map_size=12), num_worlds=1, seed=3) as env:
        env.reset()
        picture = render.rgb(env)
        assert picture.shape == (96, 96, 3)
        assert picture.dtype == np.uint8
        picture[:] = 0  # the caller's own: scribbling on it must not reach the next picture
        again = render.rgb(env)
        assert np.array_equal(again, render.rgb(env))
        assert again.any()
        assert render.rgb(env, scale=1).shape == (12, 12, 3)


def test_rgb_draws_each_thing_in_its_cell_and_nothing_elsewhere() -> None:
    env: Any = HandMade(3, 3, thing("wall", 0, 1), thing("block", 1, 0), agent(0, 2, 2))
    empty: Any = HandMade(3, 3)
    differs = (render.rgb(env) != render.rgb(empty)).any(axis=2).reshape(3, 8, 3, 8).any(axis=(1, 3))
    assert {tuple(cell) for cell in np.argwhere(differs).tolist()} == {(0, 1), (1, 0), (2, 2)}


def test_rgb_walls_have_relief() -> None:
    env: Any = HandMade(1, 1, thing("wall", 0, 0))
    tile = render.rgb(env).astype(int).sum(axis=2)
    assert tile[0, 0] > tile[4, 4] > tile[7, 7]


@pytest.mark.parametrize(
    ("facing", "towards"), [("north", (0, 1)), ("south", (2, 1)), ("west", (1, 0)), ("east", (1, 2))]
)
def test_rgb_marks_the_facing(facing: str, towards: tuple[int, int]) -> None:
    env: Any = HandMade(1, 1, agent(0, 0, 0, facing=facing))
    tile = render.rgb(env, scale=24).astype(int)
    marked = (tile.min(axis=2) > 240).reshape(3, 8, 3, 8).sum(axis=(1, 3))
    assert np.unravel_index(marked.argmax(), marked.shape) == towards
    assert marked.sum() > 0


def test_rgb_tells_groups_apart_and_unknown_types_get_a_stable_colour() -> None:
    one: Any = HandMade(1, 2, agent(0, 0, 0, group=0), agent(1, 0, 1, group=1))
    left, right = np.split(render.rgb(one), 2, axis=1)
    assert not np.array_equal(left, right)
    first: Any = HandMade(1, 2, thing("zeppelin", 0, 0), thing("obelisk", 0, 1))
    left, right = np.split(render.rgb(first), 2, axis=1)
    assert not np.array_equal(left, right)


def test_rgb_refuses_with_the_arithmetic() -> None:
    env: Any = HandMade(4096, 4096)
    with pytest.raises(ValueError, match=r"32768 x 32768 x 3 = 3221225472 bytes is over the limit of 268435456"):
        render.rgb(env)
    with pytest.raises(ValueError, match="scale must be 1 to 256 pixels per cell, got 0"):
        render.rgb(env, scale=0)


def read_png(data: bytes) -> np.ndarray[Any, Any]:
    """A second, independent reading of the format: signature, chunks with checksums, unfiltered lines."""
    assert data[:8] == bytes([137, 80, 78, 71, 13, 10, 26, 10])
    chunks, place = {}, 8
    while place < len(data):
        (length,) = struct.unpack_from(">I", data, place)
        name, body = data[place + 4 : place + 8], data[place + 8 : place + 8 + length]
        assert struct.unpack_from(">I", data, place + 8 + length)[0] == zlib.crc32(name + body)
        chunks[name] = body
        place += 12 + length
    assert list(chunks) == [b"IHDR", b"IDAT", b"IEND"]
    width, height, depth, kind, *rest = struct.unpack(">IIBBBBB", chunks[b"IHDR"])
    assert (depth, kind, rest) == (8, 2, [0, 0, 0])
    lines = np.frombuffer(zlib.decompress(chunks[b"IDAT"]), np.uint8).reshape(height, 1 + 3 * width)
    assert not lines[:, 0].any()
    return lines[:, 1:].reshape(height, width, 3)


def test_png_reads_back_the_same(tmp_path: Path) -> None:
    array = np.random.default_rng(0).integers(0, 256, (5, 7, 3), dtype=np.uint8)
    render.write_png(tmp_path / "a.png", array)
    assert np.array_equal(read_png((tmp_path / "a.png").read_bytes()), array)
    render.write_png(str(tmp_path / "b.png"), array[::-1, ::2])  # not contiguous
    assert np.array_equal(read_png((tmp_path / "b.png").read_bytes()), array[::-1, ::2])


def test_png_refuses_other_arrays(tmp_path: Path) -> None:
    wrong: Any
    for wrong in (np.zeros((4, 4, 3)), [[1]]):
        with pytest.raises(TypeError, match=r"array must be uint8 \[h, w, 3\], got (float64|list)"):
            render.write_png(tmp_path / "a.png", wrong)
    for wrong in (np.zeros((4, 4), np.uint8), np.zeros((4, 4, 4), np.uint8), np.zeros((0, 4, 3), np.uint8)):
        with pytest.raises(ValueError, match=r"array must be uint8 \[h, w, 3\], got shape"):
            render.write_png(tmp_path / "a.png", wrong)
    assert not (tmp_path / "a.png").exists()
