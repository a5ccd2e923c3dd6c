"""One tick: moves, facing, vibes, counts, masks, ends, and who comes first."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from random_games import agents_of, games, quiet_make, random_actions

from gridmill import Env, Game
from gridmill.grid import Ascii, ObjectType
from gridmill.grid.directions import DIRECTIONS, FACINGS

STEPS = {
    "north": (-1, 0), "south": (1, 0), "west": (0, -1), "east": (0, 1),
    "northwest": (-1, -1), "northeast": (-1, 1), "southwest": (1, -1), "southeast": (1, 1),
}  # fmt: skip
FACING = {
    "north": "north", "south": "south", "west": "west", "east": "east",
    "northwest": "north", "northeast": "north", "southwest": "south", "southeast": "south",
}  # fmt: skip


def test_the_package_has_the_same_directions_in_the_order_of_the_actions() -> None:
    assert list(DIRECTIONS.items()) == list(STEPS.items())
    assert tuple(dict.fromkeys(FACING.values())) == FACINGS


def play(text: str, num_agents: int = 1, **fields: Any) -> Env:
    """One world of an ASCII map, reset and ready."""
    more = {"X": "crate"} if "X" in text else {}
    objects = {"wall": ObjectType(), "crate": ObjectType(tags=("box",))}
    options = {name: fields.pop(name) for name in ("num_worlds", "masks", "seed") if name in fields}
    game = Game(name="test", num_agents=num_agents, objects=objects, map=Ascii(text=text, legend=more), **fields)
    env = quiet_make(game, **({"num_worlds": 1} | options))
    env.reset()
    return env


def do(env: Env, *names: str) -> None:
    """One tick; one action name per agent."""
    env.step(np.array([env.action_names.index(name) for name in names], np.int32))


def places(env: Env, world: int = 0) -> list[tuple[int, int]]:
    return [(a["row"], a["column"]) for a in agents_of(env.inspect(world))]


def token(env: Env, feature: str, row: int = 0) -> int:
    """The value of a global token."""
    return next(t.value for t in env.decode(row) if t.feature == feature and t.row is None)


def finish(env: Env) -> dict[str, np.ndarray]:
    while not (taken := env.take_episodes())["world"].size:
        env.step(np.zeros(env.num_rows, np.int32))
    return taken


# ---- moves


@pytest.mark.parametrize("moves", [0, 4, 8])
def test_the_action_list(moves: int) -> None:
    env = play("@", moves=moves, vibes=("calm", "angry", "sad"))
    vibes = ["change_vibe_calm", "change_vibe_angry", "change_vibe_sad"]
    assert env.action_names == ["noop", *(f"move_{d}" for d in list(STEPS)[:moves]), *vibes]
    assert env.num_actions == 1 + moves + 3


@pytest.mark.parametrize("direction", STEPS)
def test_a_move_into_an_empty_cell(direction: str) -> None:
    env = play(".....\n.....\n..@..\n.....\n.....")
    for distance in (1, 2):
        do(env, f"move_{direction}")
        rows, columns = STEPS[direction]
        assert places(env) == [(2 + distance * rows, 2 + distance * columns)]
        assert token(env, "last_action") == env.action_names.index(f"move_{direction}")
    assert len(env.inspect(0)["objects"]) == 1


@pytest.mark.parametrize("direction", STEPS)
@pytest.mark.parametrize("obstacle", ["###\n#@#\n###", "XXX\nX@X\nXXX", "@"])
def test_a_move_into_a_wall_an_object_or_the_edge_fails(direction: str, obstacle: str) -> None:
    env = play(obstacle, max_steps=3)
    before = places(env)
    do(env, f"move_{direction}")
    assert places(env) == before
    assert token(env, "last_action") == 0
    taken = finish(env)
    assert taken[f"action.move_{direction}.failed"].tolist() == [1]
    assert taken[f"action.move_{direction}.success"].tolist() == [0]
    assert taken["action.noop.success"].tolist() == [2]
    assert taken["cell.visited"].tolist() == [1]


@pytest.mark.parametrize("direction", STEPS)
def test_a_move_into_an_agent_fails(direction: str) -> None:
    rows, columns = STEPS[direction]
    cells = [["."] * 3 for _ in range(3)]
    cells[1][1], cells[1 + rows][1 + columns] = "1", "2"
    env = play("\n".join("".join(row) for row in cells), 2)
    mine = [a["group"] for a in agents_of(env.inspect(0))].index(1)
    before = places(env)
    do(env, *(f"move_{direction}" if agent == mine else "noop" for agent in range(2)))
    assert places(env) == before


def test_a_diagonal_may_pass_between_two_walls() -> None:
    """Only the target cell counts."""
    env = play("@#\n#.")
    do(env, "move_southeast")
    assert places(env) == [(1, 1)]


@pytest.mark.parametrize("width", [1, 2, 31, 32, 33, 63, 64, 65, 200])
def test_a_walk_across_maps_of_any_width(width: int) -> None:
    """There and back, with the wall at the end seen on the way."""
    env = play("@" + "." * (width - 1) + "#")
    for column in range(1, width):
        do(env, "move_east")
        assert places(env) == [(0, column)]
    do(env, "move_east")
    assert places(env) == [(0, width - 1)]
    assert (0, 1, "tag", "type:wall") in {(t.row, t.column, t.feature, t.text) for t in env.decode(0)}
    for _ in range(width):
        do(env, "move_west")
    assert places(env) == [(0, 0)]


# ---- facing


def facing(env: Env) -> str:
    return str(agents_of(env.inspect(0))[0]["facing"])


@pytest.mark.parametrize("text", ["...\n.@.\n...", "###\n#@#\n###"], ids=["free", "walled in"])
@pytest.mark.parametrize("direction", STEPS)
def test_facing_is_set_by_every_attempted_move(direction: str, text: str) -> None:
    env = play(text, vibes=("calm", "angry"))
    assert facing(env) == "south"
    do(env, f"move_{direction}")
    assert facing(env) == FACING[direction]
    do(env, "noop")
    do(env, "change_vibe_angry")
    env.step([99])
    assert facing(env) == FACING[direction]


def test_facing_is_south_again_after_a_reset() -> None:
    env = play("@..", max_steps=2)
    do(env, "move_east")
    assert facing(env) == "east"
    do(env, "noop")
    assert facing(env) == "south"


# ---- vibes


def test_a_vibe_is_visible_to_others_and_oneself() -> None:
    env = play("1.2", 2, vibes=("calm", "angry", "sad"))
    seen = [[(t.column, t.text) for t in env.decode(row) if t.feature == "vibe"] for row in range(2)]
    assert seen == [[], []]  # the first vibe is the default and shows nothing
    do(env, "change_vibe_sad", "noop")
    seen = [[(t.column, t.text) for t in env.decode(row) if t.feature == "vibe"] for row in range(2)]
    assert seen == [[(0, "sad")], [(-2, "sad")]]
    assert [a["vibe"] for a in agents_of(env.inspect(0))] == ["sad", "calm"]
    assert token(env, "last_action", 0) == env.action_names.index("change_vibe_sad")
    do(env, "change_vibe_calm", "change_vibe_angry")
    seen = [[(t.column, t.text) for t in env.decode(row) if t.feature == "vibe"] for row in range(2)]
    assert seen == [[(2, "angry")], [(0, "angry")]]


def test_changing_to_the_vibe_one_has_succeeds() -> None:
    env = play("@", vibes=("calm", "angry"), max_steps=2)
    do(env, "change_vibe_calm")
    do(env, "change_vibe_calm")
    taken = env.take_episodes()
    assert taken["action.change_vibe_calm.success"].tolist() == [2]
    assert taken["action.change_vibe_calm.failed"].tolist() == [0]


def test_one_vibe_gives_no_actions() -> None:
    assert play("@", moves=0, vibes=("calm",)).action_names == ["noop"]


# ---- counts


def test_every_action_is_counted_once() -> None:
    env = play("@.#", vibes=("calm", "angry"), max_steps=9)
    for name in ("noop", "move_east", "move_east", "move_west", "move_north", "change_vibe_angry"):
        do(env, name)
    for bad in (-1, env.num_actions, 2**31 - 1):
        env.step(np.array([bad], np.int32))
        if bad != 2**31 - 1:
            assert token(env, "last_action") == 0
    taken = env.take_episodes()
    counted = {k: int(v[0]) for k, v in taken.items() if k.startswith("action.") and v[0]}
    assert counted == {
        "action.noop.success": 1,
        "action.move_east.success": 1,
        "action.move_east.failed": 1,
        "action.move_west.success": 1,
        "action.move_north.failed": 1,
        "action.change_vibe_angry.success": 1,
        "action.invalid": 3,
    }
    assert taken["length"].tolist() == [9]


def test_cell_visited_counts_distinct_cells() -> None:
    env = play("@..\n...\n...", max_steps=12)
    walk = ["east", "west", "east", "east", "south", "south", "north", "north", "east", "west", "southwest", "noop"]
    stood = {(0, 0)}
    for step in walk:
        before = places(env)[0]
        do(env, step if step == "noop" else f"move_{step}")
        rows, columns = STEPS.get(step, (0, 0))
        target = (before[0] + rows, before[1] + columns)
        if 0 <= target[0] < 3 and 0 <= target[1] < 3:
            stood.add(target)
    assert env.take_episodes()["cell.visited"].tolist() == [len(stood)] == [6]


# ---- ends


@pytest.mark.parametrize("limit", ["truncation", "termination"])
def test_a_time_limit_is_a_truncation_unless_the_game_asks(limit: str) -> None:
    env = play("@.", max_steps=3, time_limit=limit)
    for tick in range(1, 7):
        env.step()
        ended = tick % 3 == 0
        assert env.truncations.tolist() == [ended and limit == "truncation"]
        assert env.terminals.tolist() == [ended and limit == "termination"]


def test_progress_grows_to_255() -> None:
    env = play("@.", max_steps=300)
    seen = [token(env, "episode_progress")]
    for _ in range(299):
        env.step()
        seen.append(token(env, "episode_progress"))
    assert seen == [min(255, 256 * tick // 300) for tick in range(300)]
    env.step()
    assert env.truncations.all()
    assert env.final_obs[0, 0].tolist() == [0xFE, env.obs[0, 0, 1], 255]
    assert token(env, "episode_progress") == 0


# ---- who comes first


def wins(text: str, actions: list[str], tries: int) -> np.ndarray:
    """How often each agent moved, over many worlds of the same map and the same wishes."""
    env = play(text, len(actions), num_worlds=tries, seed=11)
    start = [places(env, world) for world in range(tries)]
    do(env, *actions * tries)
    won = np.zeros(len(actions), int)
    for world in range(tries):
        moved = [a != b for a, b in zip(start[world], places(env, world), strict=True)]
        won += moved
    return won


def test_two_agents_win_a_contested_cell_equally_often() -> None:
    won = wins("@.@", ["move_east", "move_west"], 2_000)
    assert won.sum() == 2_000
    assert abs(won[0] - 1_000) < 112, won  # five standard deviations


def test_four_agents_win_a_contested_cell_equally_often() -> None:
    won = wins(".@.\n@.@\n.@.", ["move_south", "move_east", "move_west", "move_north"], 4_000)
    assert won.sum() == 4_000
    assert abs(won - 1_000).max() < 137, won


def test_following_works_when_the_one_ahead_goes_first() -> None:
    won = wins("@@.", ["move_east", "move_east"], 2_000)
    assert won[1] == 2_000
    assert abs(won[0] - 1_000) < 112, won


def test_the_order_changes_from_tick_to_tick() -> None:
    """The same two agents contest a cell again and again: neither always wins."""
    env = play("@.@", 2)
    winners = []
    for _ in range(200):
        do(env, "move_east", "move_west")
        first = places(env)[0] == (0, 1)
        winners.append(first)
        do(env, *(["move_west", "noop"] if first else ["noop", "move_east"]))
    assert 60 < sum(winners) < 140, sum(winners)


# ---- masks


def check_masks(env: Env) -> int:
    """Every agent and action of every world, alone against noops, on a copy: mask 1 exactly where it succeeds."""
    assert env.masks is not None
    saved, masks = env.save(), env.masks.copy()
    last_action = env.features[[f.name for f in env.features].index("last_action")].id
    for agent in range(env.num_agents):
        for action in range(env.num_actions):
            env.restore(saved)
            actions = np.zeros((env.num_worlds, env.num_agents), np.int32)
            actions[:, agent] = action
            env.step(actions.reshape(-1))
            rows = np.arange(env.num_worlds) * env.num_agents + agent
            ended = (env.terminals | env.truncations)[rows]
            shown = np.where(ended[:, None], env.final_obs[rows, 1], env.obs[rows, 1])
            assert (shown[:, 1] == last_action).all()
            succeeded = shown[:, 2] == action
            assert (masks[rows, action] == succeeded).all(), (agent, env.action_names[action])
    env.restore(saved)
    return int(masks.size)


@settings(max_examples=60)
@given(games(most_agents=4, by_chance=False), st.integers(0, 1_000))
def test_masks_equal_outcomes_exhaustively(game: Game, seed: int) -> None:
    game = game.replace("observation.num_tokens", max(2, game.observation.num_tokens))
    with quiet_make(game, num_worlds=2, seed=seed, masks=True) as env:
        actions = random_actions(env, seed)
        env.reset()
        for _ in range(4):
            assert check_masks(env) == env.masks.size
            assert env.masks[:, 0].all()  # noop always works
            env.step(actions())


def test_masks_of_an_action_another_game_has() -> None:
    """The batch's actions are the union; what this world's game lacks is masked and counts as invalid."""
    four = Game(name="four", moves=4, max_steps=2, map=Ascii(text="...\n.@.\n..."))
    eight = four.replace("name", "eight").replace("moves", 8).replace("vibes", ["calm", "angry"])
    with quiet_make([four, eight], num_worlds=2, masks=True) as env:
        env.assign([0, 1], [0, 1])
        env.reset()
        assert env.masks.tolist() == [[1] * 5 + [0] * 6, [1] * 11]
        for name in ("move_northwest", "change_vibe_angry"):
            do(env, name, name)
        taken = env.take_episodes()
        assert taken["action.invalid"].tolist() == [2, 0]
        assert taken["action.move_northwest.success"].tolist() == [0, 1]
        assert taken["action.move_northwest.failed"].tolist() == [0, 0]
