"""The rollouts: the moment forked into many worlds of one batch, which the engine steps in its threads."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gridmill.env import Env
from gridmill.games.make import make
from gridmill.replay import Replay
from gridmill.whatif.players import Floats, Moment, OnPlayer

WORLDS = 1024  # at a time
MOST_TICKS = 100_000  # of a rollout in a game without an end


@dataclass(frozen=True)
class Returns:
    """Of every rollout [actions, rollouts]: what was paid; the same discounted, with what the critic expects after."""

    paid: Floats
    discounted: Floats
    ticks: int


def returns_of(
    tape: Replay, moment: Moment, player: OnPlayer, rollouts: int, horizon: int, seed: int, threads: int, agent: int
) -> Returns:
    actions = len(moment.names)
    most = max(1, WORLDS // actions)
    parts = [
        _chunk(tape, moment, player, min(most, rollouts - first), horizon, [seed, first], threads, agent)
        for first in range(0, rollouts, most)
    ]
    paid, discounted = (
        np.concatenate(each, axis=1) for each in zip(*((p.paid, p.discounted) for p in parts), strict=True)
    )
    return Returns(paid, discounted, max(part.ticks for part in parts))


def _chunk(
    tape: Replay,
    moment: Moment,
    player: OnPlayer,
    rollouts: int,
    horizon: int,
    seed: list[int],
    threads: int,
    agent: int,
) -> Returns:
    """World a * rollouts + r is rollout r of action a."""
    groups, gamma = len(moment.names), 1.0 if player.gamma is None else player.gamma
    worlds = groups * rollouts
    draws = np.random.default_rng(seed).integers(0, 2**64, rollouts + 1, np.uint64)
    options = {"masks": True, "threads": min(threads, worlds, os.cpu_count() or 1), **player.options}
    env: Env = make(tape.game, num_worlds=worlds, seed=tape.seed, **options)
    with env:
        env.reset()
        env.restore(moment.state, range(worlds))
        env.reseed(range(worlds), np.tile(draws[:rollouts], groups).tolist())
        player.begin(env, moment, groups, int(draws[-1] >> np.uint64(1)))
        rows = np.arange(worlds) * env.num_agents + agent
        alive, paid, discounted = np.ones(worlds), np.zeros(worlds), np.zeros(worlds)
        ticks = 0
        for actions in _ticks(env, player, rows, np.repeat(np.arange(groups, dtype=np.int32), rollouts), horizon):
            env.step(actions)
            paid += alive * env.rewards[rows]
            discounted += alive * gamma**ticks * env.rewards[rows]
            ticks += 1
            alive[env.terminals[rows] | env.truncations[rows]] = 0.0
            if not alive.any():
                break
        if alive.any() and (values := player.values(env)) is not None:
            discounted += alive * gamma**ticks * values[rows]
    shape = (groups, rollouts)
    return Returns(paid.reshape(shape), discounted.reshape(shape), ticks)


def _ticks(
    env: Env, player: OnPlayer, rows: NDArray[np.int64], first: NDArray[np.int32], horizon: int
) -> Iterator[NDArray[np.int32]]:
    """The actions of every tick; in the first, the agent's are given."""
    actions = player.act(env).copy()
    actions[rows] = first
    yield actions
    done = 1
    while done < (horizon or MOST_TICKS):
        yield player.act(env)
        done += 1
