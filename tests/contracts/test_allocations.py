"""A tick allocates nothing: the engine's own counter stands still over a thousand of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from random_games import quiet_make

import gridmill
from gridmill import Game, _native
from gridmill.grid import (
    AgentType,
    Ascii,
    Constant,
    Inventory,
    Log,
    ObjectType,
    Observation,
    ObservedValue,
    Ratio,
    RewardTerm,
    Stat,
    Sum,
)  # fmt: skip

TICKS = 1_000


def busy_game() -> Game:
    """Everything a tick can do today: vibes, shown values, rewards, sharing, local position, overflow."""
    value = Sum(values=[Inventory(resource="ore"), Ratio(values=[Stat(name="cell.visited"), Constant(value=3.0)])])
    return Game(
        name="busy",
        num_agents=5,
        max_steps=100_000,
        resources=("ore",),
        vibes=("calm", "angry"),
        agent=AgentType(inventory={"ore": 300}),
        objects={"wall": ObjectType(), "crate": ObjectType(inventory={"ore": 5})},
        map=Ascii(text="0#1.X\n..2..\n3.X.4", legend={"X": "crate"}),
        observation=Observation(
            num_tokens=40, local_position=True, values=[ObservedValue(name="shown", value=value, digits=2)]
        ),
        rewards=[RewardTerm(value=Log(values=[value]), mode=mode) for mode in ("change", "gained", "per_tick")],
        reward_sharing=0.5,
    )


GAMES = {"toy": lambda: gridmill.games.toy(max_steps=100_000), "busy": busy_game}


def test_scripts_allocate_nothing() -> None:
    scripts: dict[Any, Any] = {
        gridmill.games.arena(max_steps=300): {"teacher": "arena", "players": {"arena": 0.25}},
        gridmill.games.prospector(): {"teacher": "shuttle"},
    }
    for game, options in scripts.items():
        with gridmill.make(game, num_worlds=4, threads=2, **options) as env:
            env.reset()
            for _ in range(700):  # lists of ended episodes have grown
                env.step(env.teacher_actions)
            env.take_episodes()
            before = _native.allocations()
            for _ in range(250):
                env.step(env.teacher_actions)
            env.teach(False)
            env.teach(True)
            assert _native.allocations() == before


@pytest.mark.parametrize(
    "options",
    [{}, {"masks": True}, {"threads": 2, "lanes": 2}, {"profiling": True}],
    ids=["plain", "masks", "threads and lanes", "profiling"],
)
@pytest.mark.parametrize("name", GAMES)
def test_a_thousand_ticks_allocate_nothing(name: str, options: dict[str, Any]) -> None:
    with quiet_make(GAMES[name](), num_worlds=8, **options) as env:
        env.reset()
        actions = np.random.default_rng(0).integers(-1, env.num_actions + 1, (TICKS, env.num_rows), dtype=np.int32)
        env.step(actions[0])
        before = _native.allocations()
        for tick in range(TICKS):
            env.actions[:] = actions[tick]
            env.step()
        assert _native.allocations() == before


def test_checked_actions_allocate_nothing_either() -> None:
    with quiet_make("toy", num_worlds=4) as env:
        env.reset()
        plain, wide = np.ones(env.num_rows, np.int32), np.ones(2 * env.num_rows, np.int64)[::2]
        env.step(plain)
        before = _native.allocations()
        for _ in range(100):
            env.step(plain)
            env.step(wide)
        assert _native.allocations() == before


def test_lanes_sent_and_received_allocate_nothing() -> None:
    with quiet_make("toy", num_worlds=4, lanes=2, threads=2) as env:
        env.reset()
        before = _native.allocations()
        for _ in range(200):
            env.send(0)
            env.send(1)
            env.recv(1)
            env.recv(0)
        assert _native.allocations() == before


def test_a_reset_in_a_step_allocates_only_for_its_record() -> None:
    """Maps are drawn into scratch space: after the record log has grown once, ends of episodes are free too."""
    game = gridmill.games.toy(max_steps=5)
    with quiet_make(game, num_worlds=4) as env:
        env.reset()
        for _ in range(4_000):  # 64 000 records, nearly the log's capacity
            env.step()
        for _ in range(200):
            env.step()
        before = _native.allocations()
        for _ in range(100):
            env.step()
        assert _native.allocations() == before


def test_the_counter_counts() -> None:
    """Making an env allocates, so a counter that stands still in a tick says something."""
    before = _native.allocations()
    quiet_make("toy", num_worlds=1).close()
    assert _native.allocations() > before
