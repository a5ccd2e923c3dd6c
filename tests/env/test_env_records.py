"""Env, records of ended episodes and times of phases: neither depends on who did the work.

Records live from the end of an episode to `take_episodes` in lists of the workers; they are collected in the order of
(step, world, agent) whoever stepped the world. A timed step is a plain one with the clock read in between.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from random_games import Digest, quiet_make, scripted_actions

import gridmill
from gridmill import Env, Game
from gridmill.grid import (
    AgentType,
    Area,
    Ascii,
    Collective,
    Event,
    Give,
    Inventory,
    ObjectType,
    RewardTerm,
    Rule,
    Stat,
    Take,
)

WORLDS, STEPS = 12, 31


def busy(**fields: Any) -> Game:
    """A small game that uses every phase."""
    fields = {
        "num_agents": 3,
        "max_steps": 5,
        "resources": ("ore", "gem"),
        "agent": AgentType(
            inventory={"ore": 9}, collectives=("blue",), on_tick=(Rule(then=(Take(amounts={"ore": 1}),)),)
        ),
        "collectives": {"blue": Collective()},
        "objects": {"wall": ObjectType(), "well": ObjectType(areas=(Area(radius=2, changes={"gem": 1}),))},
        "events": {"gift": Event(every=2, targets="type:agent", then=(Give(who="target", amounts={"ore": 1}),))},
        "map": Ascii(text="@..W\n.@#.\n..@.", legend={"W": "well"}),
        "rewards": (RewardTerm(value=Stat(name="cell.visited")), RewardTerm(value=Inventory(resource="gem"))),
    } | fields
    return Game(name="busy", **fields)


# ---- records


def all_at_once(env: Env, step: int) -> None:
    env.step(scripted_actions(step, env.num_rows, env.num_actions))


def last_lane_first(env: Env, step: int) -> None:
    env.actions[:] = scripted_actions(step, env.num_rows, env.num_actions)
    for lane in range(env.lanes):
        env.send(lane)
    for lane in reversed(range(env.lanes)):
        env.recv(lane)


def lane_after_lane(env: Env, step: int) -> None:
    env.actions[:] = scripted_actions(step, env.num_rows, env.num_actions)
    for lane in range(env.lanes):
        env.send(lane)
        env.recv(lane)


def records(
    threads: int, lanes: int, desync: bool, take_every: int, drive: Callable[[Env, int], None] = all_at_once
) -> dict[str, np.ndarray]:
    """What was taken, now and then, joined; with the step each record was taken after, counted from 1."""
    options = {"num_worlds": WORLDS, "seed": 8, "threads": threads, "lanes": lanes, "desync_episodes": desync}
    taken = []
    with quiet_make(busy(), **options) as env:
        env.reset()
        for step in range(1, STEPS + 1):
            drive(env, step)
            if step % take_every == 0 or step == STEPS:
                now = env.take_episodes()
                taken.append(now | {"taken": np.full(len(now["world"]), step)})
        assert env.episodes_dropped == 0
    return {name: np.concatenate([each[name] for each in taken]) for name in taken[0]}


@pytest.fixture(scope="module", params=[False, True], ids=["same ticks", "different ticks"])
def desync(request: pytest.FixtureRequest) -> bool:
    return bool(request.param)


@pytest.fixture(scope="module")
def alone(desync: bool) -> dict[str, np.ndarray]:
    return records(1, 1, desync, take_every=1)


def test_records_come_by_step_then_world_then_agent(alone: dict[str, np.ndarray], desync: bool) -> None:
    places = list(zip(*(alone[name].tolist() for name in ("taken", "world", "agent")), strict=True))
    assert places == sorted(places)
    assert len(set(places)) == len(places)
    ends = {step: sum(place[0] == step for place in places) for step in range(1, STEPS + 1)}
    if not desync:
        assert ends == {step: 3 * WORLDS if step % 5 == 0 else 0 for step in range(1, STEPS + 1)}
    else:
        assert min(ends[step] for step in range(2, STEPS + 1)) > 0
    for world in range(WORLDS):
        own = alone["episode"][(alone["world"] == world) & (alone["agent"] == 0)]
        assert own.tolist() == list(range(len(own)))
    assert len(np.unique(alone["reward"])) > 5
    assert len(np.unique(alone["gem.gained"])) > 3


@pytest.mark.parametrize("drive", [all_at_once, last_lane_first, lane_after_lane])
@pytest.mark.parametrize("lanes", [1, 2, 3, 4])
@pytest.mark.parametrize("threads", [1, 2, 3, 4])
def test_records_do_not_depend_on_threads_lanes_or_when_they_are_taken(
    alone: dict[str, np.ndarray], desync: bool, threads: int, lanes: int, drive: Callable[[Env, int], None]
) -> None:
    for take_every in (1, 7):
        found = records(threads, lanes, desync, take_every, drive)
        for name in alone:
            if name != "taken":
                np.testing.assert_array_equal(found[name], alone[name], name)


def test_a_world_does_not_keep_room_for_its_record() -> None:
    """A row of 8-byte numbers for each of its agents would be more than all else it has."""
    vibes = [f"vibe {i}" for i in range(100)]
    game = Game(name="many words", num_agents=20, vibes=vibes, map=Ascii(text="\n".join(["@@@@@"] * 4)))
    with quiet_make(game, num_worlds=2) as env:
        assert 0 < env.bytes_per_world < 8 * len(env.stat_names) * env.num_agents


# ---- times of phases


@pytest.mark.parametrize("name", ["arena_basic", "cogsguard", "busy"])
@pytest.mark.parametrize("threads", [1, 2])
def test_a_timed_step_changes_no_byte(name: str, threads: int) -> None:
    """Episodes end several times, in different worlds at different ticks."""
    game = busy() if name == "busy" else gridmill.games.build(name).replace("max_steps", 9)
    seen = []
    for profiling in (False, True):
        digest = Digest()
        with quiet_make(
            game, num_worlds=5, seed=4, profiling=profiling, masks=True, threads=threads, desync_episodes=True
        ) as env:
            env.reset()
            for step in range(30):
                env.step(scripted_actions(step, env.num_rows, env.num_actions))
                digest.add_arrays(env)
                digest.sha.update(env.state_hash().tobytes())
            digest.add_episodes(env)
        seen.append(digest.hex())
    assert seen[0] == seen[1]


UNUSED = {
    "rewards": {"rewards": ()},
    "aoe": {"objects": {"wall": ObjectType(), "well": ObjectType()}},
    "on_tick": {"agent": AgentType(inventory={"ore": 9}, collectives=("blue",))},
    "collectives": {"collectives": {}, "agent": AgentType(on_tick=(Rule(then=(Give(amounts={"ore": 1}),)),))},
}


@pytest.mark.parametrize("unused", ["", *UNUSED])
def test_every_phase_that_is_used_has_its_time_and_all_of_them_fit_the_step(unused: str) -> None:
    with quiet_make(busy(**UNUSED.get(unused, {})), num_worlds=64, profiling=True, desync_episodes=True) as env:
        env.reset()
        for step in range(40):
            env.step(scripted_actions(step, env.num_rows, env.num_actions))
            last = env.step_timing
            assert last is not None
            phases = {name: ns for name, ns in last.items() if name not in ("total", "wall")}
            assert 0 < last["total"] == sum(phases.values()) <= last["wall"]
            assert {name for name, ns in phases.items() if ns == 0} - {"autoreset"} == ({unused} - {""})
            ended = bool((env.terminals | env.truncations).any())
            assert (phases["autoreset"] > 0) == ended
        total = env.step_timing_total
        assert total is not None
        assert 0 < total["total"] <= total["wall"]
        assert total["autoreset"] > 0


@pytest.mark.parametrize("threads", [2, 3])
def test_times_of_several_threads_fit_the_step_as_often(threads: int) -> None:
    with quiet_make(busy(), num_worlds=64, profiling=True, threads=threads) as env:
        env.reset()
        for step in range(40):
            env.step(scripted_actions(step, env.num_rows, env.num_actions))
        total = env.step_timing_total
        assert total is not None
        assert 0 < total["total"] <= threads * total["wall"]
