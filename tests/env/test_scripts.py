"""Env, scripted agents: a teacher that changes nothing, players in their rows, the same bytes whoever does the work."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest

import gridmill
from gridmill import Env, _native, games
from gridmill.env.scripts import dealt

EASY = games.arena_basic_easy_shaped(num_agents=12, max_steps=25)
LASERS = games.arena(num_agents=12, max_steps=25)
ARRAYS = ("obs", "final_obs", "actions", "rewards", "terminals", "truncations")
CASES = {"arena": (EASY, "arena"), "prospector": (games.prospector(), "shuttle")}


def run(env: Env, steps: int, seed: int = 0) -> list[bytes]:
    """Everything the env shows over some steps with actions of the student's own."""
    rng, seen = np.random.default_rng(seed), []
    for _ in range(steps):
        env.step(rng.integers(0, env.num_actions, env.num_rows))
        seen += [getattr(env, name).tobytes() for name in ARRAYS]
        seen += [env.state_hash().tobytes(), *(c.tobytes() for c in env.take_episodes().values())]
        if env.teacher:
            seen.append(env.teacher_actions.tobytes())
    return seen


def make(game: Any, **options: Any) -> Env:
    env: Env = gridmill.make(game, **{"num_worlds": 6, "seed": 3} | options)
    env.reset()
    return env


@pytest.mark.parametrize("case", CASES)
def test_the_students_rows_do_not_know_of_a_teacher(case: str) -> None:
    """On, off, or not there: the same bytes."""
    game, script = CASES[case]
    seen = []
    for options in ({}, {"teacher": script}, {"teacher": script}):
        with make(game, **options) as env:
            if len(seen) == 2:
                env.teach(False)
            shown = run(env, 40)
            seen.append(
                shown if not env.teacher else [x for i, x in enumerate(shown) if i not in decisions(env, shown)]
            )
    assert seen[0] == seen[1] == seen[2]


def decisions(env: Env, shown: list[bytes]) -> set[int]:
    """Places of the teacher's actions in what `run` saw."""
    each = len(shown) // 40
    return set(range(each - 1, len(shown), each))


@pytest.mark.parametrize("case", CASES)
def test_threads_and_lanes_decide_alike(case: str) -> None:
    game, script = CASES[case]
    expected = None
    for options in ({}, {"threads": 2}, {"lanes": 3}, {"threads": 2, "lanes": 2, "profiling": True}):
        with make(game, teacher=script, **options) as env:
            found = run(env, 60)
            assert env.teacher_calls == 61 * env.num_rows
        expected = expected or found
        assert found == expected


@pytest.mark.parametrize("case", CASES)
def test_a_script_of_rows_decides_what_the_batch_decides(case: str) -> None:
    """Two doors to one script: all rows played in the core, or from Python by `gridmill eval`."""
    game, script = CASES[case]
    with make(game, players={script: 1}) as env, make(game) as other:
        player, state = game.scripts()[script](other, 3), None
        for _ in range(120):
            env.step()
            actions, state = player.act(other.obs, state)
            other.step(actions)
            for name in ARRAYS:
                np.testing.assert_array_equal(getattr(env, name), getattr(other, name), name)
            state = player.reset(state, other.terminals | other.truncations)


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("ticks", [0, 7, 25, 40])
def test_scripts_go_on_to_the_bit_after_a_restore(case: str, ticks: int) -> None:
    game, script = CASES[case]
    options: dict[str, Any] = {"teacher": script}
    if case == "arena":
        options["players"] = {"arena": 0.25}
    with make(game, **options) as env, gridmill.make(game, num_worlds=6, threads=2, lanes=2, **options) as other:
        run(env, ticks)
        saved = env.save()
        other.restore(saved)
        np.testing.assert_array_equal(other.teacher_actions, env.teacher_actions)
        assert other.save() == saved
        assert run(other, 40, seed=1) == run(env, 40, seed=1)


def test_a_state_does_not_bind_the_next_env_to_its_scripts() -> None:
    """Saved with scripts, restored without, and the other way round; the form without scripts is what it was."""
    with make(EASY, teacher="arena") as taught, make(EASY) as plain, make(EASY, players={"arena": 0.5}) as played:
        run(taught, 10)
        run(plain, 10)
        assert plain.save()[:8] == b"GMILLS01"
        plain_bytes = plain.save()
        plain.restore(taught.save())
        assert plain.save() == plain_bytes
        played.restore(plain_bytes)
        np.testing.assert_array_equal(played.state_hash(), taught.state_hash())
        played.step()
        assert (played.state_hash() != taught.state_hash()).any()


def test_forked_worlds_share_what_scripts_remember() -> None:
    with make(EASY, teacher="arena") as env:
        run(env, 9)
        env.restore(env.save([2]), [0, 1])
        for _ in range(30):
            rows = env.teacher_actions.reshape(6, -1)
            np.testing.assert_array_equal(rows[0], rows[2])
            np.testing.assert_array_equal(rows[1], rows[2])
            env.step(env.teacher_actions)


def test_every_game_of_a_batch_has_a_script_of_its_own() -> None:
    """World 0 plays the second game of the one batch and the first of the other."""
    with make([EASY, LASERS], teacher="arena") as one, make([LASERS, EASY], teacher="arena") as other:
        one.assign(0, 1)
        other.assign(0, 0)
        one.reset()
        other.reset()
        agents = one.num_agents
        for _ in range(60):
            np.testing.assert_array_equal(one.obs[:agents], other.obs[:agents])
            np.testing.assert_array_equal(one.teacher_actions[:agents], other.teacher_actions[:agents])
            one.step(one.teacher_actions)
            other.step(other.teacher_actions)
        added = one.add_game(EASY.replace("objects.altar.converter.cooldown", 3))
        one.assign(range(6), added)
        run(one, 60)
        with pytest.raises(ValueError, match=r"^teacher: no script `arena` for arena_basic_easy_shaped - its scripts:"):
            one.add_game(EASY.replace("objects.mine.converter.max_conversions", 0))
        assert len(one.games) == 3


# ---- the teacher's switch


def test_a_teacher_that_is_off_is_not_asked() -> None:
    with make(EASY, teacher="arena") as env:
        assert env.teacher_calls == env.num_rows
        run(env, 5)
        env.teach(False)
        calls, last = env.teacher_calls, env.teacher_actions.copy()
        assert calls == 6 * env.num_rows
        run(env, 30)
        env.reset()
        assert env.teacher_calls == calls
        np.testing.assert_array_equal(env.teacher_actions, last)
        env.teach(True)
        assert env.teacher_calls == calls + env.num_rows
        now = env.teacher_actions.copy()
        env.teach(True)
        assert env.teacher_calls == calls + env.num_rows
        np.testing.assert_array_equal(env.teacher_actions, now)
        env.teach(False)
        env.teach(True)  # it begins anew on the same rows
        np.testing.assert_array_equal(env.teacher_actions, now)


def test_players_are_not_taught_and_go_on_when_the_teacher_is_off() -> None:
    with make(EASY, teacher="arena", players={"arena": 0.25}) as env:
        assert env.teacher_calls == env.num_rows * 3 // 4
        env.teach(False)
        playing = env.player_rows == 1
        for _ in range(30):
            wanted = env.teacher_actions.copy()
            env.step(np.zeros(env.num_rows, np.int64))
            np.testing.assert_array_equal(env.actions[playing], wanted[playing])
            assert not env.actions[~playing].any()
        assert env.teacher_calls == env.num_rows * 3 // 4


def test_times_have_parts_for_who_is_there() -> None:
    with make(EASY, profiling=True) as env:
        run(env, 2)
        assert env.step_timing is not None
        assert not {"teacher", "players"} & set(env.step_timing)
    with make(EASY, profiling=True, teacher="arena", players={"arena": 0.5}) as env:
        run(env, 30)
        for times in (env.step_timing, env.step_timing_total):
            assert times is not None
            assert times["teacher"] > 0
            assert times["players"] > 0
            parts = {name: ns for name, ns in times.items() if name not in ("total", "wall", "steps")}
            assert sum(parts.values()) == times["total"]


def test_arrays_stay_readable_and_the_call_order_is_kept() -> None:
    env = gridmill.make(EASY, num_worlds=2, lanes=2, teacher="arena")
    env.teach(False)
    env.teach(True)  # nothing to ask about before the first reset
    assert env.teacher_calls == 0
    env.reset()
    env.send(0)
    with pytest.raises(RuntimeError, match=r"^teach\(\) while lane 0 is in flight; call recv\(0\) first$"):
        env.teach(False)
    env.recv(0)
    actions = env.teacher_actions
    kept = actions.copy()
    env.close()
    np.testing.assert_array_equal(actions, kept)
    with pytest.raises(RuntimeError, match="closed"):
        env.teach(False)


# ---- which agents players have


@pytest.mark.parametrize(
    ("players", "agents", "expected"),
    [
        ({}, 3, ["", "", ""]),
        ({"a": 0.5}, 4, ["", "a", "", "a"]),
        ({"a": 0.25}, 8, ["", "", "a", "", "", "", "a", ""]),
        ({"a": 1}, 2, ["a", "a"]),
        ({"a": 0.5, "b": 0.5}, 4, ["a", "b", "a", "b"]),
        ({"a": 0.34, "b": 0.33}, 3, ["", "a", "b"]),
        ({"a": 0.75}, 4, ["a", "", "a", "a"]),
    ],
)
def test_shares_are_spread_evenly(players: dict[str, float], agents: int, expected: list[str]) -> None:
    assert dealt(players, agents) == expected


def test_any_shares_give_the_nearest_numbers_and_no_long_gaps() -> None:
    rng = np.random.default_rng(0)
    for _ in range(200):
        agents = int(rng.integers(1, 60))
        a, b = sorted(rng.integers(0, agents + 1, 2).tolist())
        shares = {name: n / agents for name, n in (("a", a), ("b", b - a)) if n}
        found = dealt(shares, agents)
        assert Counter(found) == Counter({"a": a, "b": b - a, "": agents - b})
        for name, share in shares.items():  # never further than two agents from its share, wherever one looks
            due = np.cumsum([who == name for who in found]) - share * np.arange(1, agents + 1)
            assert np.abs(due).max() < 2


def test_every_world_has_its_share_of_players() -> None:
    with make(EASY, players={"arena": 0.25}) as env:
        rows = env.player_rows.reshape(env.num_worlds, env.num_agents)
        assert rows.dtype == np.uint8
        assert (rows == rows[0]).all()
        assert rows[0].sum() == 3
        with pytest.raises(ValueError, match="read-only"):
            env.player_rows[0] = 1
    with make(EASY) as env:
        assert not env.player_rows.any()


# ---- what is refused


@pytest.mark.parametrize(
    ("game", "options", "said"),
    [
        (
            "arena",
            {"teacher": "arna"},
            "teacher: no script `arna` for arena; did you mean `arena`? - its scripts: arena",
        ),
        ("toy", {"teacher": "arena"}, "teacher: no script `arena` for toy - its scripts: none"),
        ("corridor", {"players": {"x": 1}}, "players: no script `x` for corridor - its scripts: none"),
        ("arena", {"players": {"arena": 0}}, "players: expected a share in (0, 1] for `arena`, got 0"),
        ("arena", {"players": {"arena": ()}}, "players: expected a share, agents or a team for `arena`, got no agents"),
        ("arena", {"players": {"arena": True}}, "players: expected a share in (0, 1] for `arena`, got True"),
        ("arena", {"players": {"arena": float("nan")}}, "players: expected a share in (0, 1] for `arena`, got nan"),
        (
            "arena",
            {"players": {"arena": 0.01}},
            "players: 0.01 of 24 agents is less than one agent for `arena`; expected at least 0.0417",
        ),
        (
            "prospector",
            {"players": {"shuttle": 1, "greedy_miner": 1}},
            "players: expected shares of at most 1 in total, got 2",
        ),
        (
            "prospector",
            {"teacher": "shuttle", "implementation": "reference"},
            "teacher, players: scripts need implementation='native', got 'reference'",
        ),
    ],
)
def test_what_cannot_be_is_said_in_one_line(game: str, options: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError) as error:
        gridmill.make(game, num_worlds=1, **options)
    assert str(error.value) == said


def test_wrong_types_are_refused() -> None:
    with pytest.raises(TypeError, match=r"^teacher: expected the name of a script, got 3$"):
        gridmill.make("arena", teacher=3)  # type: ignore[call-overload]
    with pytest.raises(
        TypeError, match=r"^players: expected shares of the agents by the names of scripts, got \['a'\]$"
    ):
        gridmill.make("arena", players=["a"])  # type: ignore[call-overload]
    with make(EASY) as env:
        for call in (lambda: env.teach(True), lambda: env.teacher_actions):
            with pytest.raises(ValueError, match=r"^this env has no teacher: create it with teacher=NAME$"):
                call()
        assert env.teacher_calls == 0


def test_a_script_of_rows_checks_its_arrays() -> None:
    script = _native.GridScript([EASY.core_tree()], "arena", 12, 0)
    with pytest.raises(ValueError, match=r"^obs: expected 12 rows, got 3$"):
        script.act(np.zeros((3, 200, 3), np.uint8), np.zeros(12, np.int32))
    with pytest.raises(ValueError, match=r"^obs: expected 600 numbers in a row, got 300$"):
        script.act(np.zeros((12, 100, 3), np.uint8), np.zeros(12, np.int32))
    with pytest.raises(ValueError, match=r"^actions: expected 12 rows, got 3$"):
        script.act(np.zeros((12, 200, 3), np.uint8), np.zeros(3, np.int32))
    with pytest.raises(ValueError, match=r"^ended: expected 12 rows, got 2$"):
        script.reset(np.zeros(2, np.bool_))
