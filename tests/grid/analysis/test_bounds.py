"""Bounds are bounds: in random games, and among stations that ask for much, nothing comes before its first tick."""

from __future__ import annotations

from typing import Any

import draws
import random_games
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from random_rules import Words
from test_converter_schedule import bench

from gridmill import Game
from gridmill.grid import AgentType, Give, Holds, ObjectType, RewardTerm, Rule, Stat, Take, Transfer
from gridmill.grid.analysis.earliest import Earliest
from gridmill.grid.analysis.earliest_reward import first_rewards


def simple_values(game: Game) -> st.SearchStrategy[Any]:
    tags = ["type:agent", *(f"type:{n}" for n, kind in game.objects.items() if not kind.counts_as)]
    words = Words(list(game.resources), list(game.vibes), tags, list(game.objects), list(game.collectives), False)
    return draws.seeded(random_games.game_values(words, game.moves, quiet=False))


@settings(max_examples=100)
@given(data=st.data(), game=random_games.games(), seed=st.integers(0, 2**32 - 1))
def test_nothing_pays_before_its_first_tick(data: st.DataObject, game: Game, seed: int) -> None:
    assume(game.attack is None)  # loot is not counted
    value = data.draw(simple_values(game))
    game = game.replace("max_steps", 40).replace("reward_sharing", 0.0)
    game = game.replace("rewards", [RewardTerm(value=value, mode="gained")])
    (first,) = first_rewards(Earliest(game), "every")
    with random_games.quiet_make(game, num_worlds=4, seed=seed) as env:
        env.reset()
        actions = random_games.random_actions(env, seed)
        for tick in range(1, game.max_steps):
            env.step(actions())
            if (env.rewards > 0).any():
                assert first is not None, "said to be never paid"
                assert tick >= first
                return


LETTERS = ["a", "b", "c", "d"]


@st.composite
def stations(draw: st.DrawFn) -> dict[str, ObjectType]:
    """Places to bump into, each of which asks for some letters and gives one, of a store of its own or from nothing."""
    found = {}
    for index, letter in enumerate(draw(st.lists(st.sampled_from(LETTERS), min_size=3, max_size=8))):
        asked = draw(st.dictionaries(st.sampled_from(LETTERS), st.integers(1, 3), max_size=2))
        price = draw(st.dictionaries(st.sampled_from(LETTERS), st.integers(1, 2), max_size=1))
        amounts = {letter: draw(st.integers(1, 2))}
        given = draw(st.sampled_from([Give(amounts=amounts), Transfer(amounts=amounts)]))
        back = Rule(when=(Holds(amounts=price),), then=(Transfer(source="actor", to="target", amounts=price),))
        rule = Rule(when=(Holds(amounts=asked),), then=(Take(amounts=price), given))
        rules = draw(st.permutations([rule, back])) if price else [rule]
        found[f"s{index}"] = ObjectType(on_use=rules, use=draw(st.sampled_from(["first", "all"])))
    return found


@settings(max_examples=100)
@given(
    places=stations(),
    start=st.dictionaries(st.sampled_from(LETTERS), st.integers(1, 2), max_size=1),
    seed=st.integers(0, 2**32 - 1),
)
def test_an_agent_among_stations_is_never_quicker(
    places: dict[str, ObjectType], start: dict[str, int], seed: int
) -> None:
    rewards = [RewardTerm(weight=100.0**i, value=Stat(name=f"{letter}.gained")) for i, letter in enumerate(LETTERS)]
    game = bench(places, "a", resources=LETTERS, agent=AgentType(inventory=start), rewards=rewards, max_steps=25)
    first = dict(zip(LETTERS, first_rewards(Earliest(game), "one"), strict=True))
    with random_games.quiet_make(game, num_worlds=64, seed=seed) as env:
        env.reset()
        actions = random_games.random_actions(env, seed, beyond=0)
        for tick in range(1, game.max_steps):
            env.step(actions())
            for i, letter in enumerate(LETTERS):
                gained = env.rewards.astype(int) // 100**i % 100
                if gained.any():
                    earliest = first[letter]
                    assert earliest is not None, f"{letter} is said to be never gained"
                    assert tick >= earliest, letter
