"""The checkers of Gymnasium, PettingZoo and Stable-Baselines3, on every shipped game but Prospector, which has a
file of its own. PettingZoo's are for games with a map.

No error, and no warning but the one about the shape of observations (a list of tokens is neither an image nor
a vector). Stable-Baselines3 needs torch; where it is not installed, its part is skipped and says so.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import gymnasium
import pytest
from gymnasium.utils.env_checker import check_env
from pettingzoo.test import api_test, parallel_api_test, parallel_seed_test, seed_test, state_test
from pettingzoo.utils import parallel_to_aec

import gridmill
from gridmill.adapters import GridmillVectorEnv, parallel_env

pytestmark = pytest.mark.D7

GRIDS = gridmill.games.names("grid")
GAMES = [*GRIDS, "corridor"]
SHAPE_WARNING = "unconventional shape"


@contextmanager
def no_warning_but_shape() -> Iterator[None]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield
    assert [str(warning.message) for warning in caught if SHAPE_WARNING not in str(warning.message)] == []


def short_game(name: str) -> Any:
    """The shipped game with a time limit that the checkers reach."""
    return gridmill.games.build(name).replace("max_steps", 12)


def test_there_are_games() -> None:
    assert "toy" in GAMES
    assert all(f"gridmill/{name}-v0" in gymnasium.registry for name in GAMES)


@pytest.mark.parametrize("game", GAMES)
@pytest.mark.parametrize("options", [{}, {"others": "random"}, {"masks": True}], ids=["noop", "random", "masks"])
def test_gymnasium_checker(game: str, options: dict[str, Any]) -> None:
    with no_warning_but_shape():
        env = gymnasium.make(f"gridmill/{game}-v0", **options)
        check_env(env.unwrapped)
        env.close()


@pytest.mark.parametrize("game", GAMES)
def test_gymnasium_passive_checker_over_an_end(game: str) -> None:
    """`gymnasium.make` wraps the env in the passive checker: every step of two episodes goes through it."""
    with no_warning_but_shape():
        env = gymnasium.make(f"gridmill/{game}-v0", game=short_game(game))
        env.action_space.seed(0)
        for _ in range(2):
            env.reset()
            ends = [env.step(env.action_space.sample())[3] for _ in range(12)]
            assert ends == [False] * 11 + [True]
        env.close()


@pytest.mark.parametrize("game", GAMES)
def test_gymnasium_vector_env_is_accepted(game: str) -> None:
    """`make_vec` itself warns about a missing or ill-typed autoreset mode."""
    rows = gridmill.games.build(game).num_agents * 2
    with no_warning_but_shape():
        envs = gymnasium.make_vec(f"gridmill/{game}-v0", num_envs=rows)
        assert isinstance(envs, GridmillVectorEnv)
        obs, _ = envs.reset(seed=0)
        assert envs.observation_space.contains(obs)
        envs.action_space.seed(0)
        obs, rewards, terminated, truncated, _ = envs.step(envs.action_space.sample())
        assert envs.observation_space.contains(obs)
        assert rewards.shape == terminated.shape == truncated.shape == (rows,)
        envs.close()


@pytest.mark.parametrize("game", GRIDS)
@pytest.mark.parametrize("masks", [False, True], ids=["plain", "masks"])
def test_pettingzoo_checkers(game: str, masks: bool, capsys: pytest.CaptureFixture[str]) -> None:
    """With few agents: what the checkers do takes time by the agent."""
    few = short_game(game).replace("num_agents", 4)

    def make(**options: Any) -> Any:
        return parallel_env(few, masks=masks, **options)

    with no_warning_but_shape():
        parallel_api_test(make(), num_cycles=30)
        parallel_seed_test(make, num_cycles=30)
        api_test(parallel_to_aec(make()), num_cycles=30)
        seed_test(lambda: parallel_to_aec(make()), num_cycles=30)
        state_test(parallel_to_aec(make()), make(), num_cycles=5)
    printed = capsys.readouterr().out
    assert "Passed Parallel API test" in printed
    assert "Passed API test" in printed


@pytest.mark.parametrize("game", GRIDS)
def test_pettingzoo_checker_on_the_game_as_shipped(game: str) -> None:
    with no_warning_but_shape():
        parallel_api_test(parallel_env(game), num_cycles=20)


@pytest.mark.parametrize("game", GAMES)
def test_stable_baselines3_checker(game: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what importing torch may warn about is not ours
        checker = pytest.importorskip(
            "stable_baselines3.common.env_checker",
            reason="stable-baselines3 is not installed (it needs torch): pip install 'gridmill[dev]'",
        )
    with no_warning_but_shape():
        checker.check_env(gymnasium.make(f"gridmill/{game}-v0").unwrapped)
