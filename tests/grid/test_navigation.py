"""Navigation: places with one agent each, altars that give one heart and no more, evaluation maps that can be won."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest
from random_games import agents_of, quiet_make
from walker import way

import gridmill
from gridmill import Env, Game, games
from gridmill.grid import Ascii

NAMES = games.navigation_eval_names()


def start(game: Game, **options: Any) -> Env:
    env = quiet_make(game, **({"num_worlds": 1, "seed": 1} | options))
    env.reset()
    return env


def full_altar(o: dict[str, Any]) -> bool:
    return bool(o["type"] == "altar" and o["inventory"].get("heart"))


def collect(env: Env, index: int, ticks: int) -> list[float]:
    """Walks one agent, while all others rest, to altar after altar; the rewards it got."""
    paid: list[float] = []
    moves: list[str] = []
    for _ in range(ticks):
        moves = moves or way(env, index, full_altar)
        if not moves:
            break
        actions = np.zeros(env.num_rows, np.int32)
        actions[index] = env.action_names.index(moves.pop(0))
        env.step(actions)
        paid += [float(env.rewards[index])] if env.rewards[index] else []
        if env.truncations[index]:
            break
    return paid


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_four_places_with_an_agent_and_ten_altars_each(seed: int) -> None:
    env = start(games.navigation(), seed=seed)
    view = env.inspect(0)
    assert (view["height"], view["width"]) == (65, 65)
    counted: Counter[tuple[str, int, int]] = Counter()
    for o in view["objects"]:
        if o["type"] != "wall":
            counted[o["type"], (o["row"] - 6) // 28, (o["column"] - 6) // 28] += 1
    places = [(row, column) for row in (0, 1) for column in (0, 1)]
    assert counted == {**{("altar", *p): 10 for p in places}, **{("agent", *p): 1 for p in places}}
    assert env.action_names == ["noop", "move_north", "move_south", "move_west", "move_east"]


def test_places_are_drawn_anew_in_every_episode_but_the_picture_stays() -> None:
    env = start(games.navigation(max_steps=2))
    seen = []
    for _ in range(3):
        walls = {(o["row"], o["column"]) for o in env.inspect(0)["objects"] if o["type"] == "wall"}
        seen.append(({w for w in walls if w[0] < 34 or w[1] < 34}, {w for w in walls if w[0] >= 34 and w[1] >= 34}))
        env.step()
        env.step()
    assert seen[0][0] != seen[1][0] != seen[2][0]
    assert seen[0][1] == seen[1][1] == seen[2][1]


@pytest.mark.parametrize("seed", range(6))
def test_every_altar_of_every_place_can_be_had_once(seed: int) -> None:
    env = start(games.navigation(max_steps=1000), seed=seed)
    for index in range(4):
        assert collect(env, index, 999) == [1.0] * 10
        assert agents_of(env.inspect(0))[index]["inventory"] == {"heart": 10}
        env.reset(seed)


def test_an_altar_never_holds_another_heart() -> None:
    env = start(games.navigation_eval("radial_small").replace("max_steps", 700))
    assert len(collect(env, 0, 150)) == 3
    for _ in range(500):
        env.step()
    assert not any(map(full_altar, env.inspect(0)["objects"]))


def test_enough_of_the_evaluation_maps() -> None:
    assert len(NAMES) == len(set(NAMES)) >= 12
    built = [games.navigation_eval(name) for name in NAMES]
    assert len({game.name for game in built}) == len(NAMES)
    assert all(42 <= game.max_steps <= 1000 for game in built)


@pytest.mark.parametrize("name", NAMES)
def test_an_evaluation_map_can_be_won_in_its_time(name: str) -> None:
    """By one who sees everything; a third for each altar, a whole for all."""
    game = games.navigation_eval(name)
    env = start(game)
    kinds = Counter(o["type"] for o in env.inspect(0)["objects"])
    assert (kinds["agent"], kinds["altar"]) == (1, 3)
    paid = collect(env, 0, game.max_steps)
    assert paid == pytest.approx([1 / 3] * 3)


@pytest.mark.parametrize("name", NAMES)
def test_evaluation_maps_are_closed(name: str) -> None:
    game = games.navigation_eval(name)
    if isinstance(game.map, Ascii):
        rows = game.map.text.strip("\n").split("\n")
        assert set(rows[0] + rows[-1] + "".join(row[0] + row[-1] for row in rows)) == {"#"}


def test_evaluation_maps_go_into_one_batch() -> None:
    env = quiet_make([games.navigation_eval(name) for name in NAMES], num_worlds=len(NAMES))
    env.reset()
    for _ in range(20):
        env.step(np.ones(env.num_rows, np.int32))
    assert [env.games[g].name for g in env.game_of_world] == [f"navigation_{name}" for name in NAMES]


def test_names_and_sizes_are_checked() -> None:
    with pytest.raises(ValueError, match=r"^unknown evaluation map `spirall`; did you mean `spiral`\? - maps: corri"):
        games.navigation_eval("spirall")
    with pytest.raises(ValueError, match=r"^altars: expected 1 to 20, got 0$"):
        games.navigation(altars=0)
    assert gridmill.games.build("navigation", rows=1, columns=3).num_agents == 3
