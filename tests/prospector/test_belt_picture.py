"""Prospector's picture: it agrees with the observation, moves with the ship, and is the same every time."""

from __future__ import annotations

import numpy as np
import pytest

import gridmill
from gridmill.adapters import GridmillEnv
from gridmill.env.picture import text_width
from gridmill.prospector.actions import COMMODITIES
from gridmill.prospector.config import ProspectorConfig
from gridmill.prospector.render import GROUND, INK, LONGEST, SHIP, TANKS, TRACK, _places, ascii_of


def test_what_is_shown_is_what_is_observed() -> None:
    with gridmill.make("prospector", num_worlds=2, seed=3) as env:
        env.reset()
        for action in (8, 12, 29, 29, 6):
            env.step(np.full(2, action, np.int32))
        view, row = env.inspect(1), env.obs[1]
        ship = view["ship"]
        observed = [ship["fuel"] / 1000, ship["hull"] / 100, ship["heat"] / 100, ship["tool"] / 100]
        assert row[:4] == pytest.approx(observed, abs=1e-6)
        assert row[8:14] == pytest.approx([amount / 200 for amount in view["cargo"].values()], abs=1e-6)
        assert round(float(row[22]) * 31) == ship["sector"]
        assert view["sectors"][0]["kind"] == "station"
        assert sum(1 for start, _, _ in view["links"] if start == ship["sector"]) == int(row[24:66:7].sum())
        assert view["tick"] == 5
        with pytest.raises((ValueError, IndexError)):
            env.inspect(2)


def test_the_picture_moves_with_the_ship_and_repeats() -> None:
    with gridmill.make("prospector", num_worlds=1, seed=4) as env:
        env.reset()
        first = env.picture(0, 8)
        assert first.shape == (352, 784, 3)
        assert env.picture(0, 8, legend=False).shape == (352, 512, 3)
        assert (env.picture(0, 8) == first).all()
        env.step(np.zeros(1, np.int32))
        assert env.inspect(0)["ship"]["sector"] != 0
        second = env.picture(0, 8)
        where = [np.argwhere((picture[:, :512] == SHIP).all(-1)).mean(axis=0) for picture in (first, second)]
        assert np.abs(where[0] - where[1]).max() > 10
        assert (first[0, 0] == GROUND).all()
        text = env.render(0, "ansi")
        assert "sector" in text
        assert max(map(len, text.splitlines())) <= 80
        with pytest.raises(ValueError, match="scale must be 1 to 256"):
            env.picture(0, 0)


@pytest.mark.parametrize("scale", [6, 8, 12, 16])
def test_names_are_whole_and_touch_no_bar(scale: int) -> None:
    with gridmill.make("prospector", num_worlds=1, seed=4) as env:
        env.reset()
        panel = env.picture(0, scale)[:, 64 * scale :]
        names, bars = (np.argwhere((panel == colour).all(-1))[:, 1] for colour in (INK, TRACK))
        assert len("rare_isotopes") == LONGEST
        assert names.max() + 1 >= text_width("x" * LONGEST, scale // 6) - 2 * (scale // 6)
        assert names.max() + 2 * (scale // 6) < bars.min()


def test_one_tick_is_one() -> None:
    view = {
        "tick": 0, "episode": 0, "seed": 1, "action": 0, "invalid": False, "links": [(0, 1, 1), (0, 2, 3)],
        "ship": {"sector": 0, "credits": 0, "time_remaining": 9, **dict.fromkeys(TANKS, 0.0)},
        "sectors": [{"kind": kind, "asteroids": 0} for kind in ("station", "cluster", "hazard")],
        "cargo": dict.fromkeys(COMMODITIES, 0.0), "price": dict.fromkeys(COMMODITIES, 1.0),
        "previous_price": dict.fromkeys(COMMODITIES, 1.0),
    }  # fmt: skip
    assert "ways: 1 (cluster, 1 tick), 2 (hazard, 3 ticks)" in ascii_of(view, ProspectorConfig())


def test_sectors_lie_apart() -> None:
    links = tuple((0, k, 1 + k % 4) for k in range(1, 12)) + tuple((k, k + 12, 2) for k in range(1, 12))
    places = np.array(_places(24, links))
    far = np.linalg.norm(places[:, None] - places[None], axis=-1) + np.eye(24)
    assert far.min() > 0.02
    assert places.min() >= 0.0
    assert places.max() <= 1.0
    assert _places(1, ()) == ((0.0, 0.0),)


def test_gymnasium_shows_it() -> None:
    env = GridmillEnv("prospector", render_mode="rgb_array")
    env.reset(seed=1)
    picture = env.render()
    assert picture.dtype == np.uint8
    assert picture.ndim == 3
    env.close()
