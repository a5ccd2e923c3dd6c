"""The engine of pages plays every game as the native core does: the same hashes, rows, names and objects."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from engine_node import ask, last_hash, opening, played
from random_games import scripted_actions

import gridmill
from gridmill.env import GameConfig

GAMES = gridmill.games.names()
STEPS = 60
LONG_SEEDS = (0, 7, 2026, 2**53 + 1, 2**64 - 1)


def small(name: str) -> GameConfig:
    """A shipped game whose episodes end soon, where it has a clock of its own."""
    game = gridmill.games.build(name)
    return game.replace("max_steps", STEPS // 2 - 5) if "max_steps" in type(game).model_fields else game


@pytest.fixture(scope="module")
def answers() -> dict[str, dict[str, Any]]:
    """Of all games at once: node takes longer to start than they take to play."""
    jobs = [{"do": "play", "open": opening(small(name), 2026), "steps": STEPS, "every": 10} for name in GAMES]
    return dict(zip(GAMES, ask(*jobs), strict=True))


@pytest.mark.parametrize("name", GAMES)
def test_hashes_and_rows_equal_the_native_ones(name: str, answers: dict[str, dict[str, Any]]) -> None:
    """The end of an episode included."""
    native = played(small(name), 2026, STEPS, every=10)
    assert native["ends"] or name == "prospector"
    assert {key: answers[name][key] for key in native} == native


@pytest.mark.long
@pytest.mark.parametrize("seed", LONG_SEEDS)
@pytest.mark.parametrize("name", GAMES)
def test_a_thousand_ticks_equal_the_native_ones(name: str, seed: int) -> None:
    game = gridmill.games.build(name)
    native = played(game, seed, 1_000)
    [page] = ask({"do": "play", "open": opening(game, seed), "steps": 1_000})
    assert {key: page[key] for key in native} == native


# ---- what a world says of itself


ABSENT = ("agent", "collective", "converting", "vibe", "column")  # in the page left out where there is none, or renamed


def python_objects(seen: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Objects of Env.inspect in the words of the page: what is not there is left out."""
    objects = []
    for thing in seen:
        kept = {key: value for key, value in thing.items() if key not in ABSENT}
        kept["col"] = thing["column"]
        for key in ("agent", "collective"):
            if thing[key] is not None:
                kept[key] = thing[key]
        for key in ("converting", "vibe"):
            if thing[key]:
                kept[key] = thing[key]
        objects.append(kept)
    return objects


@pytest.mark.parametrize("name", ["arena", "cogsguard_arena", "extractor_hub"])
def test_a_grid_shows_what_python_shows(name: str) -> None:
    game = gridmill.games.build(name)
    [page] = ask({"do": "look", "open": opening(game, 3), "steps": 40})
    with gridmill.make(game, num_worlds=1, seed=3, masks=True) as env:
        env.reset()
        for step in range(40):
            env.step(scripted_actions(step, env.num_rows, env.num_actions))
        native = env.inspect(0)
        info = page["info"]
        assert info["actionNames"] == env.action_names
        assert info["statNames"] == env.stat_names
        assert [(f["id"], f["name"], f["normalization"]) for f in info["features"]] == [tuple(f) for f in env.features]
        assert (info["tags"], info["vibes"]) == (env.tags, env.vibes)
        assert info["obsShape"] == list(env.obs.shape[1:])
        assert (info["window"]["height"], info["window"]["width"]) == tuple(env.window)
        assert page["scripts"] == list(game.scripts())
    inspected = page["inspect"]
    ids = [thing.pop("id") for thing in inspected["objects"]]
    assert len(set(ids)) == len(ids)
    assert inspected["objects"] == python_objects(native["objects"])
    assert inspected["collectives"] == native["collectives"]
    assert [inspected[key] for key in ("tick", "episode", "height", "width")] == [
        native[key] for key in ("tick", "episode", "height", "width")
    ]


@pytest.mark.parametrize("name", ["prospector", "corridor"])
def test_other_kinds_have_pythons_names(name: str) -> None:
    [page] = ask({"do": "look", "open": opening(gridmill.games.build(name), 3), "steps": 5})
    with gridmill.make(name, num_worlds=1, seed=3) as env:
        assert page["info"]["actionNames"] == env.action_names
        assert page["info"]["statNames"] == env.stat_names
        assert page["info"]["obsShape"] == list(env.obs.shape[1:])


def test_statistics_of_an_ended_episode_are_the_records() -> None:
    game = small("toy")
    [page] = ask({"do": "look", "open": opening(game, 5), "steps": STEPS})
    with gridmill.make(game, num_worlds=1, seed=5, masks=True) as env:
        env.reset()
        for step in range(STEPS):
            env.step(scripted_actions(step, env.num_rows, env.num_actions))
        episodes = env.take_episodes()
        last = np.asarray(episodes["episode"]) == max(episodes["episode"])
        for name in env.stat_names:
            assert page["ended"][name] == np.asarray(episodes[name])[last].tolist(), name
    assert sum(page["stats"]["cell.visited"]) > 0  # of the episode after it


@pytest.mark.parametrize("name", ["arena", "navigation", "prospector"])
def test_scripts_play_as_in_python(name: str) -> None:
    """With what they remember and draw, over the end of an episode where there is one."""
    game = small(name)
    script = next(iter(game.scripts()))
    [page] = ask({"do": "script", "open": opening(game, 11), "name": script, "steps": STEPS})
    with gridmill.make(game, num_worlds=1, seed=11, masks=True) as env:
        env.reset()
        player, state = game.scripts()[script](env, 11), None
        for step in range(STEPS):
            actions, state = player.act(env.obs, state)
            assert page[step] == actions.tolist(), step
            env.step(actions)
            state = player.reset(state, env.terminals | env.truncations)


# ---- states


@pytest.mark.parametrize("name", ["toy", "cogsguard", "prospector", "corridor"])
def test_states_are_the_same_bytes_and_go_both_ways(name: str) -> None:
    import base64

    game = gridmill.games.build(name)
    with gridmill.make(game, num_worlds=1, seed=9, masks=True) as env:
        env.reset()
        for step in range(20):
            env.step(scripted_actions(step, env.num_rows, env.num_actions))
        saved = env.save([0])
        text = base64.b64encode(saved).decode()
        first, second = ask(
            {"do": "play", "open": opening(game, 9), "steps": 20, "keep": True},
            {"do": "play", "open": opening(game, 1), "steps": 20, "from": 20, "state": text, "every": 10},
        )
        assert base64.b64decode(first["state"]) == saved
        env.restore(base64.b64decode(first["state"]), [0])
        hashes = [f"{int(env.state_hash()[0]):016x}"]
        for step in range(20, 40):
            env.step(scripted_actions(step, env.num_rows, env.num_actions))
            if (step + 1) % 10 == 0:
                hashes.append(f"{int(env.state_hash()[0]):016x}")
        assert second["hashes"] == hashes
        assert second["last"] == last_hash(env)
