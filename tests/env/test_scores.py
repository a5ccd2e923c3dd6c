"""The score of each game, from records written by hand and from real ones."""

from __future__ import annotations

import numpy as np
import pytest

import gridmill
from gridmill import games
from gridmill.config import ConfigError
from gridmill.games.navigation import navigation_eval, navigation_eval_names


def test_every_shipped_game_has_the_score_it_is_about() -> None:
    assert {name: games.build(name).score_title() for name in [*games.names("grid"), "prospector"]} == {
        "toy": "reward",
        "arena": "heart.get",
        "arena_basic": "heart.get",
        "arena_basic_easy_shaped": "heart.get",
        "navigation": "hearts taken",
        "cogsguard": "junctions held",
        "cogsguard_arena": "junctions held",
        "extractor_hub": "reward",
        "prospector": "net profit",
    }


def test_hearts_of_the_arena_are_counted_per_agent() -> None:
    record = {"heart.get": np.array([3, 5]), "reward": np.array([9.0, 9.0])}
    assert games.arena().score_of(record).tolist() == [3.0, 5.0]


def test_navigation_counts_the_share_of_the_hearts_on_the_map() -> None:
    record = {"heart.get": np.array([10, 5, 0, 1])}
    assert games.navigation().score_of(record).tolist() == [1.0, 0.5, 0.0, 0.1]
    # Three places with 4 altars and the picture with 10: 22 hearts, 11 of them taken.
    fewer = games.navigation(altars=4).score_of({"heart.get": np.array([4, 4, 3, 0])})
    assert fewer.mean() == pytest.approx(11 / 22)
    for name in navigation_eval_names():
        assert navigation_eval(name).score_of({"heart.get": np.array([3])}).tolist() == [1.0], name


def test_cogsguard_counts_the_junctions_held_in_the_mean_over_ticks() -> None:
    game = games.cogsguard_arena()
    record = {"cogs/aligned.junction.held": np.array([2500, 2500]), "length": np.full(2, game.max_steps)}
    assert game.score_of(record).tolist() == [2500 / game.max_steps] * 2


def test_prospector_counts_profit_and_shows_survival_beside() -> None:
    game = games.prospector()
    assert game.score_of({"net_profit": np.array([7.0]), "reward": np.array([-1.0])}).tolist() == [7.0]
    assert "survival" in game.beside


def test_a_statistic_takes_the_place_of_the_games_own_score() -> None:
    game = games.arena()
    record = {"heart.get": np.array([3]), "ore.get": np.array([8]), "world": np.array([0])}
    assert game.score_title("ore.get") == "ore.get"
    assert game.score_of(record, "ore.get").tolist() == [8.0]
    with pytest.raises(ValueError, match=r"^score: unknown statistic `oar.get`; did you mean `ore.get`\?$"):
        game.score_of(record, "oar.get")
    with pytest.raises(ValueError, match=r"^score: unknown statistic `worlds`$"):
        game.score_of({"world": np.array([0])}, "worlds")


def test_a_name_alone_makes_no_score() -> None:
    """A game that is called like ours is scored by what it says itself."""
    game = games.toy().replace("name", "arena_of_my_own")
    assert game.score_title() == "reward"


def test_a_share_of_the_supply_needs_a_map() -> None:
    game = games.prospector().replace("score.per", "supply")
    with pytest.raises(ConfigError, match=r"^expected per = episode or tick for a game of kind prospector"):
        game.score_of({"net_profit": np.array([1.0])})


@pytest.mark.parametrize("name", ["arena", "navigation", "cogsguard", "extractor_hub", "toy", "prospector"])
def test_scores_and_what_is_beside_them_are_in_every_real_record(name: str) -> None:
    with gridmill.make(name, num_worlds=1) as env:
        record = dict.fromkeys([*env.stat_names, "length"], np.zeros(2))
        game = env.games[0]
    assert game.score_of(record).tolist() == [0.0, 0.0]
    assert set(game.beside) <= set(record)
