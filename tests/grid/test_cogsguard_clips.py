"""CogsGuard on its real map: an aligner at work, the clips at their ticks, what presets pay, what can be reached."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from cogs import holders, small, wait
from random_games import agents_of, quiet_make
from scenes import bump, do, held
from walker import is_type, way

from gridmill import Env, Game, games

HOLD = (11, 26, 51, 76, 101)
AT = (1000, 2500, 5000, 7500, 10_000)


# ---- a life on the real map


def neutral_junction(o: dict[str, Any]) -> bool:
    return bool(o["type"] == "junction" and o["collective"] is None)


def is_ours(o: dict[str, Any]) -> bool:
    return bool(o["collective"] == "cogs")


def next_steps(env: Env) -> list[str]:
    """Gear first, then a heart, then the nearest neutral junction; home when hp runs low. Looks up after five moves."""
    mine = held(env)
    if not mine.get("aligner"):
        wanted = is_type("c:aligner")
    elif not mine.get("heart"):
        wanted = is_type("c:hub")
    elif mine.get("influence", 0) < 1 or mine.get("hp", 0) < 40:
        wanted = is_ours
    else:
        wanted = neutral_junction
    return way(env, 0, wanted)[:5] or ["noop"]


@pytest.mark.parametrize("name", ["cogsguard_arena", pytest.param("cogsguard", marks=pytest.mark.long)])
def test_a_scripted_aligner_takes_junctions(name: str) -> None:
    game = games.build(name, clips="no_clips", max_steps=400)
    env = quiet_make(game, num_worlds=1, seed=3)
    env.reset()
    total, moves = 0.0, list[str]()
    for _ in range(399):
        moves = moves or next_steps(env)
        actions = np.zeros(env.num_rows, np.int32)
        actions[0] = env.action_names.index(moves.pop(0))
        env.step(actions)
        total += float(env.rewards[5])  # somebody who did nothing is paid the same
    assert holders(env)["cogs"] >= 4
    env.step(np.zeros(env.num_rows, np.int32))
    counted = env.take_episodes()
    taken = counted["junction.aligned_by_agent"]
    assert taken[0] >= 3
    assert not taken[1:].any()
    assert (counted["cogs/aligned.junction"] == 1 + taken[0]).all()
    assert total > 1.5  # more than the junction of the hub alone
    assert counted["reward"] == pytest.approx(counted["cogs/aligned.junction.held"] / 400)


# ---- the clips


def test_the_clips_come_at_their_ticks() -> None:
    """One junction at 10, one more at 100, 200, ...; the team's junction is lost at 50 if theirs is near."""
    env = quiet_make(games.cogsguard(), num_worlds=8, seed=2)
    env.reset()
    seen = []
    for tick in range(1, 301):
        wait(env, 1)
        if tick in (9, 10, 99, 100, 199, 200, 299, 300):
            seen.append([holders(env, world)["clips"] for world in range(8)])
    assert seen == [[n] * 8 for n in (0, 1, 1, 2, 2, 3, 3, 4)]


def test_they_free_one_junction_of_the_team_in_a_hundred_ticks() -> None:
    row = "KKK" + "." * 5 + "J@"
    env = small(row, clips="clips_medium", max_steps=400)
    seen = {}
    for tick in range(1, 261):
        wait(env, 1)
        seen[tick] = (holders(env)["cogs"], holders(env)[None], holders(env)["clips"])
    assert sum(seen[49]) == 4
    assert seen[49][2] == 1
    assert seen[50][0] == seen[49][0] - 1
    assert seen[150][0] == seen[149][0] - 1
    assert seen[100][2] == seen[99][2] + 1


def test_they_come_again_when_all_are_scrambled() -> None:
    env = small("@J", {"hp": 200, "heart": 1, "scrambler": 1}, clips="clips_wave_only", max_steps=500)
    wait(env, 10)
    assert holders(env) == {"clips": 1}
    assert bump(env, "east")
    assert holders(env) == {None: 1}
    wait(env, 198)  # tick 209
    assert holders(env) == {None: 1}
    wait(env, 1)
    assert holders(env) == {"clips": 1}


@pytest.mark.parametrize(
    ("clips", "expected"),
    [
        ("clips_medium", [1, 1, 2, 6]), ("clips_easy", [0, 1, 1, 2]), ("clips_hard", [2, 3, 4, 12]),
        ("clips_wave_only", [3, 3, 3, 3]), ("clips_until_300", [1, 1, 2, 4]), ("no_clips", [0, 0, 0, 0]),
    ],
)  # fmt: skip
def test_how_hard_they_press(clips: str, expected: list[int]) -> None:
    """Their junctions after 10, 50, 100 and 500 ticks, unopposed."""
    env = quiet_make(games.cogsguard(clips=clips), num_worlds=1, seed=4)
    env.reset()
    seen = []
    for tick in range(1, 501):
        wait(env, 1)
        if tick in (10, 50, 100, 500):
            seen.append(holders(env)["clips"])
    assert seen == expected


def test_unopposed_they_hold_one_more_every_hundred_ticks() -> None:
    env = quiet_make(games.cogsguard(), num_worlds=16, seed=11)
    env.reset()
    seen = []
    for tick in range(1, 10_000):
        wait(env, 1)
        if tick in AT:
            seen.append([holders(env, world)["clips"] for world in range(env.num_worlds)])
    wait(env, 1)
    counted = env.take_episodes()["clips/aligned.junction"]
    seen.append(counted.reshape(env.num_worlds, -1)[:, 0].tolist())
    assert seen == [[n] * env.num_worlds for n in HOLD]


# ---- rewards


def test_presets_add_up() -> None:
    plain, both = games.cogsguard(), games.cogsguard(rewards=("objective", "milestones", "penalize_vibe_change"))
    assert both.rewards[:1] == plain.rewards
    assert [term.weight for term in both.rewards] == [1 / 10_000, 1.0, 0.5, -0.01]
    assert games.cogsguard(rewards=()).rewards == ()


@pytest.mark.parametrize(
    ("preset", "text", "start", "actions", "paid"),
    [
        ("miner", "K\n@C\nm.", {}, ["move_south", "move_east", "move_north"], [2.0, 0.5, 2.0]),
        ("aligner", "a\n@H", {}, ["move_north", "move_east"], [2.0, 0.5]),
        ("scrambler", "s\n@H", {}, ["move_north", "noop"], [10.0, 0.0]),
        ("scout", "t\n@.H", {}, ["move_north", "move_east"], [2.0, 0.0001]),
        ("credit", "C@H", {}, ["move_west", "move_east", "move_east"], [0.001, 0.002, 0.05]),
        ("milestones", "@J", {"hp": 90, "heart": 1, "influence": 9, "aligner": 1}, ["move_east", "noop"], [1.0, 0.0]),
        ("penalize_vibe_change", "@", {"hp": 90}, ["change_vibe_gear", "noop", "change_vibe_scout"], [-0.01, 0, -0.01]),
    ],
)
def test_what_presets_pay(preset: str, text: str, start: dict[str, int], actions: list[str], paid: list[float]) -> None:
    env = small(text, start, rewards=(preset,), wealth=5)
    got = []
    for action in actions:
        assert do(env, action) == [True]
        got.append(float(env.rewards[0]))
    assert got == pytest.approx(paid, abs=1e-6)


def test_roles_in_turn() -> None:
    """Four agents do the same: each is paid for what its role is paid for, and for nothing else."""
    env = small("@@@@@\nmmmmm\nK....", rewards=("role_conditional",), wealth=5)
    assert do(env, *["move_south"] * 5) == [True] * 5
    assert env.rewards.tolist() == [2.0, 0.0, 0.0, 0.0, 2.0]
    env = small("@@@@@\ntttss\nK....", rewards=("role_conditional",), wealth=5)
    assert do(env, *["move_south"] * 5) == [True] * 5
    assert env.rewards.tolist() == [0.0, 0.0, 0.0, 0.0, 0.0]
    env = small("@@@@\ntsst\nK...", rewards=("role_conditional",), wealth=5)
    assert do(env, *["move_south"] * 4) == [True] * 4
    assert env.rewards.tolist() == [0.0, 0.0, 10.0, 2.0]


def test_bad_choices_are_refused() -> None:
    with pytest.raises(ValueError, match=r"^num_agents: expected 1 to 20, got 21$"):
        games.cogsguard(num_agents=21)
    with pytest.raises(ValueError, match=r"^clips: expected one of clips_medium, .*, no_clips, got 'hard'$"):
        games.cogsguard(clips="hard")
    with pytest.raises(ValueError, match=r"^rewards: expected a list of objective, .*, got 'objective'$"):
        games.cogsguard(rewards="objective")
    with pytest.raises(ValueError, match=r"^wealth: expected 0 to 100, got -1$"):
        games.cogsguard(wealth=-1)


def test_the_arena_is_the_same_game_on_another_map() -> None:
    differs = {path.split(".")[0] for path in games.cogsguard(max_steps=1000).diff(games.cogsguard_arena())}
    assert differs == {"name", "map"}


def test_every_junction_can_be_reached() -> None:
    game: Game = games.cogsguard()
    env = quiet_make(game, num_worlds=3, seed=8)
    env.reset()
    for world in range(3):
        view = env.inspect(world)
        taken = {(o["row"], o["column"]) for o in view["objects"] if o["agent"] is None}
        start = agents_of(view)[0]
        queue = [(start["row"], start["column"])]
        seen = set(queue)
        while queue:
            row, column = queue.pop()
            for cell in ((row - 1, column), (row + 1, column), (row, column - 1), (row, column + 1)):
                if cell not in seen:
                    seen.add(cell)
                    queue += [cell] if cell not in taken else []
        assert all((o["row"], o["column"]) in seen for o in view["objects"] if o["type"] == "junction")
