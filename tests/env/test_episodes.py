"""Episodes: what is chosen and averaged, against loops over single records."""

from __future__ import annotations

import numpy as np
import pytest

import gridmill
from gridmill.env.episodes import HEAD, KEYS, Episodes, is_figure

STATS = [("reward", False), ("ore", True)]
# world, agent, game, episode, length, desynced | reward, ore
RECORDS = [
    (0, 0, 0, 0, 5, 1, 0.5, 1),
    (0, 1, 0, 0, 5, 1, 1.5, 2),
    (1, 0, 0, 0, 9, 0, -1.0, 3),
    (1, 1, 0, 0, 9, 0, 0.25, 7),
    (0, 0, 0, 1, 7, 0, 4.0, 0),
    (0, 1, 0, 1, 7, 0, 0.125, 5),
]


def episodes(records: list[tuple[float, ...]] = RECORDS) -> Episodes:
    table = np.array(records, np.float64).reshape(len(records), 8)
    return Episodes.of(table[:, :6].astype(np.int64), table[:, 6:], STATS)


def test_columns_are_named_and_typed() -> None:
    found = episodes()
    assert list(found) == [*HEAD, "reward", "ore"]
    assert (found["desynced"].dtype, found["reward"].dtype, found["ore"].dtype) == (bool, np.float64, np.int64)
    assert list(found.figures()) == ["length", "reward", "ore"]
    assert [name for name in found if not is_figure(name)] == list(KEYS)
    assert found.count == 6


def test_an_env_gives_them() -> None:
    with gridmill.make("toy", num_worlds=2, seed=3) as env:
        env.reset()
        found = env.take_episodes()
        assert isinstance(found, Episodes)
        assert list(found) == [*HEAD, *env.stat_names]
        assert found.count == 0
        assert found.means() == found.whole().means() == {}


def test_means_are_those_of_a_loop() -> None:
    kept = [record for record in RECORDS if not record[5]]
    expected = {
        name: sum(record[place] for record in kept) / len(kept)
        for name, place in {"length": 4, "reward": 6, "ore": 7}.items()
    }
    assert episodes().whole().means() == pytest.approx(expected)
    assert episodes().means() != pytest.approx(expected)


def test_no_column_is_no_episode() -> None:
    nothing = Episodes()
    assert (nothing.count, nothing.means(), nothing.whole(), Episodes.joined([])) == (0, {}, {}, {})
    assert Episodes.joined([nothing, episodes()]).count == 6


def test_joined_are_in_order() -> None:
    parts = [episodes(RECORDS[:2]), episodes([]), episodes(RECORDS[2:])]
    joined, whole = Episodes.joined(parts), episodes()
    assert list(joined) == list(whole)
    for name, column in whole.items():
        assert joined[name].tolist() == column.tolist()
        assert joined[name].dtype == column.dtype


def test_per_agent_is_the_last_record() -> None:
    last = [{"length": 7.0, "reward": 4.0, "ore": 0.0}, {"length": 7.0, "reward": 0.125, "ore": 5.0}, {}]
    assert episodes().per_agent(3) == last


def test_per_world_is_the_mean_over_its_agents() -> None:
    first = episodes().where(episodes()["episode"] == 0)
    assert first.per_world(first["reward"], worlds=3, agents=2).tolist() == [1.0, -0.375, 0.0]
