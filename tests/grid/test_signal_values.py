"""What a signal reads of grid worlds: every statistic by name, and only of agents for whom something changed."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from random_games import games, quiet_make, random_actions, scripted_actions

import gridmill
from gridmill import Game
from gridmill.grid import Stat, Sum
from gridmill.run import SignalTerm


def of_inventories(game: Game) -> list[str]:
    """Statistics that change only with what an agent holds."""
    kinds = ("get", "put", "gained", "lost", "amount")
    return [f"{resource}.{kind}" for resource in game.resources for kind in kinds]


def play_both(game: Game, seed: int, ticks: int) -> None:
    """By name, agents whose inventory did not change are passed over; inside of a sum, everyone is read."""
    weights = {name: 1.0 + 0.37 * i for i, name in enumerate(of_inventories(game))}
    quick = [SignalTerm(value=name, weight=weight) for name, weight in weights.items()]
    slow = [SignalTerm(value=Sum(values=(Stat(name=name),)), weight=weight) for name, weight in weights.items()]
    made = [quiet_make(game, num_worlds=2, seed=seed, signal=terms) for terms in (quick, slow)]
    actions = random_actions(made[0], seed)
    for env in made:
        env.reset()
    for tick in range(ticks):
        chosen = actions()
        for env in made:
            env.step(chosen)
        if quick:
            assert np.array_equal(made[0].signal, made[1].signal), tick
    for env in made:
        env.close()


@settings(max_examples=40, deadline=None)
@given(games(), st.integers(0, 2**32 - 1))
def test_who_did_not_change_is_passed_over(game: Game, seed: int) -> None:
    play_both(game, seed, 25)


@pytest.mark.long
@settings(max_examples=2_000, deadline=None)
@given(games(), st.integers(0, 2**32 - 1))
def test_who_did_not_change_is_passed_over_in_many_games(game: Game, seed: int) -> None:
    play_both(game, seed, 50)


@pytest.mark.parametrize("name", ["arena", "cogsguard_arena", "extractor_hub"])
def test_every_statistic_is_the_one_of_the_record(name: str) -> None:
    """The signal of a tick is what the records of two games differ by, one of which ends a tick later."""
    game, tick = gridmill.games.build(name), 40
    names = quiet_make(game, num_worlds=1).stat_names
    for first in range(0, len(names), 40):
        chosen = names[first : first + 40]
        weights = np.random.default_rng(first).uniform(0.5, 1.5, len(chosen))
        signal = [SignalTerm(value=n, weight=w) for n, w in zip(chosen, weights, strict=True)]
        records = []
        for length in (tick - 1, tick):
            env = quiet_make(game.replace("max_steps", length), num_worlds=2, seed=4, signal=signal)
            env.reset()
            for step in range(length):
                env.step(scripted_actions(step, env.num_rows, env.num_actions))
            record = env.take_episodes()
            records.append(np.array([record[n] for n in chosen], np.float64))
        assert env.signal is not None
        expected = weights @ (records[1] - records[0])
        assert np.allclose(env.signal, expected, rtol=1e-5, atol=1e-4), chosen
