"""machina_1 and machina_arena: how much stands on them, what the compound has where, and that all can be reached."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from random_games import agents_of, quiet_make

from gridmill import Env, Game
from gridmill.grid import ObjectType, Observation, machina_1, machina_arena
from gridmill.grid.machina import EXTRACTORS, HUB, JUNCTION, STATIONS, hub_compound

SEEDS = range(30)
CENTRE = 48
PLAIN = ObjectType(inventory={"heart": 1})
OBJECTS = {"wall": ObjectType(), **dict.fromkeys((JUNCTION, HUB, *STATIONS, *EXTRACTORS), PLAIN)}
# The counts of 30 maps of the original game: mean, least, most.
COUNTS = {
    "junction": (118.1, 101, 136),
    **dict.fromkeys(EXTRACTORS, (39.4, 23, 57)),
    "wall": (3258, 3051, 3395),
    "empty": (6057, 5914, 6264),
}


def env_of(map_: Any, seed: int = 0, num_agents: int = 8) -> Env:
    game = Game(
        name="machina", num_agents=num_agents, resources=("heart",), objects=OBJECTS, map=map_,
        observation=Observation(overflow="drop"),
    )  # fmt: skip
    env = quiet_make(game, num_worlds=1, seed=seed)
    env.reset()
    return env


def by_cell(view: dict[str, Any]) -> dict[tuple[int, int], str]:
    return {(o["row"], o["column"]): o["type"] for o in view["objects"]}


@pytest.fixture(scope="module")
def worlds() -> list[dict[str, Any]]:
    views = []
    for seed in SEEDS:
        with env_of(machina_1(), seed) as env:
            views.append(env.inspect(0))
    return views


def test_how_much_there_is(worlds: list[dict[str, Any]]) -> None:
    found: dict[str, list[int]] = {name: [] for name in COUNTS}
    for view in worlds:
        assert (view["height"], view["width"]) == (98, 98)
        counts = Counter(o["type"] for o in view["objects"])
        counts["empty"] = 98 * 98 - len(view["objects"])
        for name in COUNTS:
            found[name].append(counts[name])
        assert [counts[name] for name in (HUB, *STATIONS, "agent")] == [1, 1, 1, 1, 1, 8]
    for name, (mean, least, most) in COUNTS.items():
        assert least <= min(found[name]) <= max(found[name]) <= most, (name, found[name])
        assert abs(sum(found[name]) / len(found[name]) - mean) < 0.06 * mean, (name, found[name])


def test_the_border_is_closed_and_five_wide(worlds: list[dict[str, Any]]) -> None:
    rim = {(r, c) for r in range(98) for c in range(98) if not (5 <= r < 93 and 5 <= c < 93)}
    assert len(rim) == 1860
    for view in worlds:
        there = by_cell(view)
        assert all(there.get(cell) == "wall" for cell in rim)


def test_the_compound(worlds: list[dict[str, Any]]) -> None:
    expected = {(0, 0): HUB, (-3, 0): JUNCTION}
    expected |= {(4, -3): "c:aligner", (4, -1): "c:scrambler", (4, 1): "c:miner", (4, 3): "c:scout"}
    expected |= {(-8, -8): "carbon_extractor", (-8, 8): "oxygen_extractor"}
    expected |= {(8, -8): "germanium_extractor", (8, 8): "silicon_extractor"}
    ring = {(r, c) for r in range(-10, 11) for c in range(-10, 11) if 10 in (abs(r), abs(c))}
    expected |= {cell: "wall" for cell in ring if min(abs(cell[0]), abs(cell[1])) > 2}
    for view in worlds:
        there = {(r - CENTRE, c - CENTRE): kind for (r, c), kind in by_cell(view).items() if kind != "agent"}
        assert {cell: kind for cell, kind in there.items() if max(map(abs, cell)) <= 13} == expected


def test_agents_start_on_twenty_pads(worlds: list[dict[str, Any]]) -> None:
    """Four pads at distance 2, the others in eight directions; which of them are used, and by whom, is drawn."""
    used: Counter[tuple[int, int]] = Counter()
    first = set()
    for view in worlds:
        spots = [(a["row"] - CENTRE, a["column"] - CENTRE) for a in agents_of(view)]
        used.update(spots)
        first.add(spots[0])
    assert len(used) == 20
    assert {(2, 0), (-2, 0), (0, 2), (0, -2)} <= set(used)
    for r, c in used:
        assert r == 0 or c == 0 or abs(r) == abs(c)
        assert max(abs(r), abs(c)) in (2, 3, 4, 5)
    assert len(first) > 8, "the order is shuffled"


def test_everything_can_be_reached_from_every_start(worlds: list[dict[str, Any]]) -> None:
    for view in worlds:
        there = by_cell(view)
        start = agents_of(view)[0]
        walked, todo = set(), [(start["row"], start["column"])]
        while todo:
            r, c = todo.pop()
            if (r, c) in walked or there.get((r, c), "agent") != "agent":
                continue
            walked.add((r, c))
            todo += [(r + 1, c), (r - 1, c), (r, c + 1), (r, c - 1)]
        empty = {(r, c) for r in range(98) for c in range(98)} - {k for k, v in there.items() if v != "agent"}
        assert walked == empty, "every component is tunnelled to the largest"
        for (r, c), kind in there.items():
            if kind not in ("wall", "agent"):
                assert walked & {(r + 1, c), (r - 1, c), (r, c + 1), (r, c - 1)}, (kind, r, c)


def test_buildings_keep_their_distance(worlds: list[dict[str, Any]]) -> None:
    for view in worlds:
        stand = {cell for cell, kind in by_cell(view).items() if kind in (JUNCTION, *EXTRACTORS)}
        assert all((r + y, c + x) not in stand for r, c in stand for y in (-1, 0, 1) for x in (-1, 0, 1) if y or x)


def test_maps_differ(worlds: list[dict[str, Any]]) -> None:
    assert len({str(view["objects"]) for view in worlds}) == len(worlds)


def test_the_arena_is_the_same_on_a_smaller_map() -> None:
    found: Counter[str] = Counter()
    for seed in range(5):
        with env_of(machina_arena(), seed) as env:
            view = env.inspect(0)
        assert (view["height"], view["width"]) == (60, 60)
        there = by_cell(view)
        assert there[(29, 29)] == HUB
        found.update(there.values())
    assert found[HUB] == 5
    for name in EXTRACTORS:
        assert 0.2 < found[name] / found[JUNCTION] < 0.8


@pytest.mark.parametrize("num_agents", [1, 20])
def test_one_to_twenty_agents(num_agents: int) -> None:
    with env_of(machina_1(), num_agents=num_agents) as env:
        assert len(agents_of(env.inspect(0))) == num_agents


def test_more_agents_than_pads_are_refused() -> None:
    with pytest.raises(ValueError, match=r"^expected at least 21 cells marked for agents, got 20; .* - at `\$.map`$"):
        env_of(machina_1(), num_agents=21)
    with env_of(machina_1(compound=hub_compound(num_pads=24)), num_agents=21) as env:
        assert len(agents_of(env.inspect(0))) == 21
    with pytest.raises(ValueError, match=r"^num_pads: expected 1 to 27, got 28$"):
        hub_compound(num_pads=28)


def test_the_buildings_are_what_the_weights_say() -> None:
    with env_of(machina_1(weights={JUNCTION: 1.0}, coverage=0.01)) as env:
        counts = Counter(o["type"] for o in env.inspect(0)["objects"])
    assert [counts[name] for name in EXTRACTORS] == [1, 1, 1, 1]
    assert 40 < counts[JUNCTION] < 75
