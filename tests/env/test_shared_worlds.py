"""Worlds that several processes share: some of many play as they do among all, and are saved and restored as one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tiny import berries

import gridmill
from gridmill import games

GAMES: dict[str, Any] = {
    "two games, scripts": [
        games.arena_basic_easy_shaped(num_agents=6, max_steps=n).replace("name", f"arena{n}") for n in (12, 15)
    ],
    "berries": berries(),
    "prospector": games.prospector().replace("time_max", 20),
}


def envs(name: str, parts: int) -> list[Any]:
    """Four worlds in so many envs."""
    script: dict[str, Any] = {"teacher": "arena", "players": {"arena": 0.5}} if "scripts" in name else {}
    each = 4 // parts
    return [
        gridmill.make(
            GAMES[name], num_worlds=each, seed=5, desync_episodes=True, min_first_episode=3,
            first_world=each * part, all_worlds=4 if parts > 1 else 0, **script,
        )
        for part in range(parts)
    ]  # fmt: skip


def played(found: list[Any], ticks: int, seed: int) -> list[np.ndarray[Any, Any]]:
    """Obs, rewards and ends of all rows after every tick; actions are the same for a row, whoever has it."""
    seen, draw, width = [], np.random.default_rng(seed), len(found)
    for _ in range(ticks):
        actions = draw.integers(0, found[0].num_actions, width * found[0].num_rows, np.int32)
        for env, own in zip(found, np.split(actions, width), strict=True):
            env.step(own)
        for name in ("obs", "rewards", "terminals", "truncations"):
            seen.append(np.concatenate([getattr(env, name) for env in found]))
    return seen


def same(one: list[Any], other: list[Any]) -> None:
    assert len(one) == len(other)
    assert all(np.array_equal(a, b) for a, b in zip(one, other, strict=True))


@pytest.mark.parametrize("name", GAMES)
def test_some_of_many_play_as_among_all(name: str) -> None:
    whole, halves = envs(name, 1), envs(name, 2)
    for env in (*whole, *halves):
        env.reset()
    same(played(whole, 40, 1), played(halves, 40, 1))
    saved = halves[0].join_saved([env.save() for env in halves])
    assert saved == whole[0].save()
    again = envs(name, 4)
    for world, env in enumerate(again):
        env.restore(saved, first=world)
    same(played(whole, 25, 2), played(again, 25, 2))
    for env in (*whole, *halves, *again):
        env.close()


def test_what_cannot_be_is_refused() -> None:
    with pytest.raises(ValueError, match=r"first_world: expected an int in \[0, 2\], got 3"):
        gridmill.make("toy", num_worlds=2, first_world=3, all_worlds=4)
    with pytest.raises(ValueError, match=r"first_world: expected an int in \[0, 0\], got 1"):
        gridmill.make("toy", num_worlds=2, first_world=1)
    with gridmill.make("toy", num_worlds=2) as env, gridmill.make("toy", num_worlds=2, num_agents=3) as other:
        env.reset()
        other.reset()
        saved = env.save()
        with pytest.raises(ValueError, match="restore: 2 worlds saved, but 2 requested from world 1 on"):
            env.restore(saved, first=1)
        with pytest.raises(ValueError, match="join_saved: a part was saved from a batch with other games or shapes"):
            env.join_saved([saved, other.save()])
        for part in (b"", saved[:20]):
            with pytest.raises(ValueError, match="join_saved: a part was saved from"):
                env.join_saved([part])
    config = games.prospector()
    with pytest.raises(ValueError, match=r"^all_worlds: expected 0 with implementation = 'reference', got 4$"):
        gridmill.make(config, num_worlds=2, all_worlds=4, implementation="reference")
