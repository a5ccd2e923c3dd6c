"""Env, what one can see of it: tokens by name, the dense view, a world by name, timing, validation, switches."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from random_games import Digest, quiet_make, random_actions, scripted_actions

import gridmill
from gridmill import Env, Game
from gridmill.grid import AgentType, Ascii, Constant, ObjectType, Observation, ObservedValue, Scatter


def small(max_steps: int = 7) -> Game:
    return gridmill.games.toy(num_agents=3, map_size=9, max_steps=max_steps)


def test_decode() -> None:
    game = Game(
        name="look",
        num_agents=2,
        vibes=("calm", "angry"),
        resources=("ore",),
        objects={"wall": ObjectType(), "mine": ObjectType(inventory={"ore": 515}, tags=("deep",))},
        map=Ascii(text="M..\n.1.\n..2", legend={"M": "mine"}),
        observation=Observation(local_position=True, values=[ObservedValue(name="ten", value=Constant(value=10.0))]),
    )
    with quiet_make(game, num_worlds=1) as env:
        env.reset()
        env.step(np.array([3, env.action_names.index("change_vibe_angry")]))
        tokens = [tuple(t) for t in env.decode(0)]
    assert tokens[:5] == [
        (None, None, "episode_progress", 0, "0"),
        (None, None, "last_action", 3, "move_west"),
        (None, None, "last_reward", 128, "128"),
        (None, None, "lp:west", 1, "1"),
        (None, None, "ten", 10, "10"),
    ]
    assert tokens[5:] == [
        (0, 0, "agent:group", 1, "1"),
        (0, 0, "agent:id", 0, "0"),
        (0, 0, "tag", env.tags.index("type:agent"), "type:agent"),
        (-1, 0, "inv:ore", 3, "3"),
        (-1, 0, "inv:ore:p1", 2, "2"),
        (-1, 0, "tag", env.tags.index("deep"), "deep"),
        (-1, 0, "tag", env.tags.index("type:mine"), "type:mine"),
        (1, 2, "agent:group", 2, "2"),
        (1, 2, "agent:id", 1, "1"),
        (1, 2, "tag", env.tags.index("type:agent"), "type:agent"),
        (1, 2, "vibe", 1, "angry"),
    ]


def slow_dense(env: Env) -> np.ndarray:
    """`dense()` from `obs`, token by token."""
    height, width = env.window
    names = [f.name for f in env.features]
    out = np.zeros((env.num_rows, len(env.dense_channels), height, width), np.uint8)
    for row, place in np.ndindex(env.num_rows, env.num_tokens):
        location, feature, value = (int(x) for x in env.obs[row, place])
        if location == 0xFF:
            continue
        if location == 0xFE:
            out[row, feature] = value
            continue
        out[row, feature, location >> 4, location & 15] = value
        if names[feature] == "tag":
            out[row, len(names) + value, location >> 4, location & 15] = 1
    return out


@pytest.mark.parametrize("window", [(11, 11), (3, 15), (15, 5), (1, 1)])
def test_dense_against_a_slow_version(window: tuple[int, int]) -> None:
    game = Game(
        name="dense", num_agents=4, vibes=("a", "b"), resources=("ore",),
        agent=AgentType(tags=("red",), inventory={"ore": 700}),
        map=Scatter(height=12, width=12, objects={"wall": 20}),
        observation=Observation(height=window[0], width=window[1], num_tokens=60, local_position=True),
    )  # fmt: skip
    with quiet_make(game, num_worlds=3) as env:
        actions = random_actions(env, 1)
        env.reset()
        for _ in range(4):
            env.step(actions())
        assert env.dense_channels == [f.name for f in env.features] + [f"tag:{tag}" for tag in env.tags]
        dense = env.dense()
        assert dense.shape == (12, len(env.dense_channels), *window)
        np.testing.assert_array_equal(dense, slow_dense(env))


def test_dense_with_windows_of_different_sizes() -> None:
    """Games of one batch may have different windows; a box for all of them is as large as the largest, or refused."""
    script = (
        "import gridmill\nfrom gridmill.grid import Ascii, Observation, Scatter\n"
        "small = gridmill.Game(name='s', map=Ascii(text='@.'), observation=Observation(height=3, width=3))\n"
        "seen = Observation(height=15, width=15)\n"
        "large = gridmill.Game(name='l', map=Scatter(height=20, width=20, objects={'wall': 100}), observation=seen)\n"
        "try:\n"
        "    env = gridmill.make([small, large], num_worlds=64)\n"
        "    env.assign(range(64), [0] + [1] * 63)\n"
        "    env.reset()\n"
        "    shape = env.dense().shape[2:]\n"
        "except ValueError as error:\n"
        "    assert 'window' in str(error)\n"
        "    shape = (15, 15)\n"
        "print(shape)"
    )
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", script], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "(15, 15)\n"), done.stderr


def test_inspect() -> None:
    game = Game(
        name="seen",
        map=Ascii(text="#@M", legend={"M": "mine"}),
        resources=("ore",),
        vibes=("calm",),
        objects={"wall": ObjectType(), "mine": ObjectType(inventory={"ore": 5})},
    )
    with quiet_make(game, num_worlds=2, seed=77) as env:
        env.reset()
        env.step()
        world = env.inspect(1)
        facts = {name: world[name] for name in world if name != "objects"}
        assert facts == {
            "tick": 1,
            "episode": 0,
            "seed": 77,
            "max_steps": 1000,
            "game": "seen",
            "height": 1,
            "width": 3,
            "collectives": {},
        }
        wall = {
            "type": "wall",
            "row": 0,
            "column": 0,
            "vibe": "calm",
            "tags": ["type:wall"],
            "inventory": {},
            "agent": None,
            "collective": None,
            "converting": 0,
        }
        agent = wall | {"type": "agent", "column": 1, "tags": ["type:agent"], "agent": 0, "group": 0}
        agent |= {"facing": "south", "frozen": 0}
        mine = wall | {"type": "mine", "column": 2, "tags": ["type:mine"], "inventory": {"ore": 5}}
        assert world["objects"] == [wall, agent, mine]


# ---- profiling and switches

PHASES = ["reset", "events", "actions", "on_tick", "aoe", "collectives", "observations", "rewards", "truncation"]


@pytest.mark.parametrize("lanes", [1, 2])
def test_profiling_changes_no_result(lanes: int) -> None:
    digests = []
    for profiling in (False, True):
        digest = Digest()
        with quiet_make(small(max_steps=5), num_worlds=6, seed=2, profiling=profiling, masks=True, lanes=lanes) as env:
            env.reset()
            for step in range(23):
                env.step(scripted_actions(step, env.num_rows, env.num_actions))
                digest.add_arrays(env)
            digest.add_episodes(env)
            digest.sha.update(env.state_hash().tobytes())
        digests.append(digest.hex())
    assert digests[0] == digests[1]


def test_profiling_off_says_none() -> None:
    with quiet_make(small(), num_worlds=1) as env:
        env.reset()
        env.step()
        assert env.step_timing is None
        assert env.step_timing_total is None
        assert env.observation_validation is None


def test_profiling_on_names_every_phase() -> None:
    with quiet_make(small(max_steps=5), num_worlds=4, profiling=True) as env:
        env.reset()
        sums: dict[str, int] = {}
        for step in range(1, 12):
            env.step()
            timing = env.step_timing
            assert timing is not None
            assert list(timing) == [*PHASES, "autoreset", "total", "wall"]
            assert timing["total"] == sum(timing[name] for name in [*PHASES, "autoreset"])
            assert all(ns >= 0 for ns in timing.values())
            assert (timing["autoreset"] > 0) == (step % 5 == 0)
            sums = {name: sums.get(name, 0) + ns for name, ns in timing.items()}
        total = env.step_timing_total
        assert total is not None
        assert total.pop("steps") == 11
        assert total == pytest.approx(sums, rel=0.05, abs=50)  # each step rounds to whole ns


@pytest.mark.parametrize(
    ("variable", "attribute"), [("GRIDMILL_PROFILING", "profiling"), ("GRIDMILL_OBS_VALIDATION", "validating")]
)
def test_switches(monkeypatch: pytest.MonkeyPatch, variable: str, attribute: str) -> None:
    argument = {"profiling": "profiling", "validating": "validation"}[attribute]

    def made(**options: Any) -> bool:
        with quiet_make(small(), num_worlds=1, **options) as env:
            return bool(getattr(env, attribute))

    assert not made()
    for text, on in (("1", True), ("0", False), ("", False)):
        monkeypatch.setenv(variable, text)
        assert made() is on
        assert made(**{argument: True})
        assert not made(**{argument: False})
    monkeypatch.setenv(variable, "yes")
    with pytest.raises(ValueError, match=rf"^{variable}: expected 0 or 1, got 'yes'$"):
        made()


def test_switches_are_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    with quiet_make(small(), num_worlds=1) as env:
        monkeypatch.setenv("GRIDMILL_PROFILING", "1")
        monkeypatch.setenv("GRIDMILL_OBS_VALIDATION", "1")
        env.reset()
        env.step()
        assert env.step_timing is None
        assert env.observation_validation is None


def test_validation_counts_and_reports(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    for optimized in ("1", "0"):
        monkeypatch.setenv("GRIDMILL_OBS_USE_OPTIMIZED", optimized)
        with quiet_make(small(), num_worlds=10, validation=True) as env:
            env.reset()
            for _ in range(400):
                env.step()
            report = env.observation_validation
            assert report is not None
            resets = 400 // 7
            assert report.comparisons == 30 * (401 + resets)
            assert (report.mismatches, report.first_mismatch) == (0, None)
            assert report.fast_ns > 0
            assert report.ratio == report.reference_ns / report.fast_ns
        lines = capsys.readouterr().err.splitlines()
        assert [line.split()[2] for line in lines] == ["1020", "10020"]
        assert all(" comparisons, 0 mismatches, reference takes " in line for line in lines)


def test_more_threads_than_cores_is_allowed_and_warned_about() -> None:
    with pytest.warns(
        UserWarning, match=r"^threads=1000 is more than the \d+ cores of this machine; results stay the same"
    ):
        gridmill.make(small(), num_worlds=1, threads=1000).close()
