"""Env, method by method: stepping, lanes, episodes, auto-reset, desync, games.

Looking and switches are in `test_env_looking`, save, restore and fork in `test_env_state`; misuse is in
`reliability/test_api_misuse`, the arrays themselves in `contracts/test_buffers`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from random_games import Digest, agents_of, quiet_make, random_actions, scripted_actions

import gridmill
from gridmill import Game
from gridmill.grid import (
    AgentType,
    Ascii,
    Observation,
    RewardTerm,
    Stat,
)  # fmt: skip


def small(max_steps: int = 7, **sizes: Any) -> Game:
    return gridmill.games.toy(**({"num_agents": 3, "map_size": 9, "max_steps": max_steps} | sizes))


def plain(name: str = "plain", text: str = "@..", **fields: Any) -> Game:
    return Game(name=name, map=Ascii(text=text), **fields)


# ---- facts


def test_what_an_env_says_about_itself() -> None:
    with quiet_make(small(), num_worlds=6, threads=2, lanes=3) as env:
        assert (env.num_worlds, env.num_agents, env.num_rows, env.num_tokens) == (6, 3, 18, 200)
        assert (env.threads, env.lanes, env.window) == (2, 3, (11, 11))
        assert env.num_actions == len(env.action_names) == 9
        assert env.games == [small()]
        assert [f.id for f in env.features] == list(range(len(env.features)))
        assert [f.name for f in env.features] == sorted(f.name for f in env.features)
        assert all(f.normalizer > 0 for f in env.features)
        assert {"episode_progress", "last_action", "last_reward", "tag", "agent:id", "agent:group"} == {
            f.name for f in env.features
        }
        assert env.tags == ["type:agent", "type:wall"]
        assert env.vibes == []
        assert env.bytes_per_world < 32 * 1024
        assert not env.closed
    assert env.closed


def test_memory_of_toy() -> None:
    with gridmill.make("toy", num_worlds=1) as env:
        assert env.bytes_per_world <= 32 * 1024


def test_a_name_a_game_and_a_list_of_them() -> None:
    for game in ("toy", gridmill.games.toy(), ["toy"], [gridmill.games.toy()]):
        with gridmill.make(game, num_worlds=1) as env:
            assert [g.name for g in env.games] == ["toy"]


def test_games_are_dealt_out_in_turn() -> None:
    with quiet_make([plain("a"), plain("b"), plain("c")], num_worlds=7) as env:
        env.reset()
        assert env.game_of_world.tolist() == [0, 1, 2, 0, 1, 2, 0]
        assert [env.inspect(w)["game"] for w in range(7)] == ["a", "b", "c", "a", "b", "c", "a"]


def test_games_of_other_shapes_are_refused_with_both() -> None:
    rest = "obs 200x3, 9 actions, window 11x11 square"
    shapes = f"expected 1 agents, {rest}, got 2 agents, {rest}"
    with pytest.raises(ValueError) as caught:
        gridmill.make([plain(), plain("two", "@@", num_agents=2)])
    assert str(caught.value) == f"games of one batch must have the same shape: {shapes}"


# ---- stepping and lanes


@pytest.mark.parametrize("lanes", [1, 2, 4])
def test_rows_of_lanes_cut_the_arrays_into_slices(lanes: int) -> None:
    with quiet_make(small(), num_worlds=8, lanes=lanes) as env:
        rows = [env.rows(lane) for lane in range(lanes)]
        assert [(r.start, r.stop, r.step) for r in rows] == [
            (24 // lanes * k, 24 // lanes * (k + 1), None) for k in range(lanes)
        ]
        with pytest.raises(ValueError, match=rf"^lane {lanes} is not in \[0, {lanes}\)$"):
            env.rows(lanes)


@pytest.mark.parametrize("threads", [1, 3])
def test_send_and_recv_equal_step(threads: int) -> None:
    stepped = quiet_make(small(), num_worlds=8, seed=5, masks=True)
    sent = quiet_make(small(), num_worlds=8, seed=5, masks=True, lanes=2, threads=threads)
    digests = [Digest(), Digest()]
    for env in (stepped, sent):
        env.reset()
    for step in range(30):
        actions = scripted_actions(step, 24, 9)
        stepped.step(actions)
        for lane in (0, 1):
            sent.actions[sent.rows(lane)] = actions[sent.rows(lane)]
            sent.send(lane)
        for lane in (0, 1):
            sent.recv(lane)
        for digest, env in zip(digests, (stepped, sent), strict=True):
            digest.add_arrays(env)
    for digest, env in zip(digests, (stepped, sent), strict=True):
        digest.add_episodes(env)
    assert digests[0].hex() == digests[1].hex()
    np.testing.assert_array_equal(stepped.state_hash(), sent.state_hash())


def test_recv_of_one_lane_leaves_the_other_alone() -> None:
    with quiet_make(small(), num_worlds=4, lanes=2) as env:
        env.reset()
        before = env.obs[env.rows(1)].copy()
        for _ in range(3):
            env.send(0)
            env.recv(0)
        assert [env.inspect(w)["tick"] for w in range(4)] == [3, 3, 0, 0]
        np.testing.assert_array_equal(env.obs[env.rows(1)], before)


def test_step_copies_its_actions_in() -> None:
    with quiet_make(small(), num_worlds=2) as env:
        env.reset()
        given = np.arange(6)
        env.step(given)
        assert env.actions.tolist() == list(range(6))
        env.step()
        assert env.actions.tolist() == list(range(6))


def test_reset_with_a_seed_begins_again_and_without_one_goes_on() -> None:
    with quiet_make(small(), num_worlds=2, seed=3) as env:
        env.reset()
        first = env.obs.copy()
        env.step()
        env.reset()
        assert [env.inspect(w)["episode"] for w in range(2)] == [1, 1]
        assert not (env.obs == first).all()
        env.reset(seed=3)
        assert [env.inspect(w)["episode"] for w in range(2)] == [0, 0]
        np.testing.assert_array_equal(env.obs, first)
        assert not env.rewards.any()
        assert not env.truncations.any()


# ---- episodes


def test_take_episodes_against_a_hand_count() -> None:
    """Two agents in a corridor, five ticks: every column and every number."""
    game = Game(
        name="count",
        num_agents=2,
        max_steps=5,
        moves=4,
        resources=("ore",),
        agent=AgentType(inventory={"ore": 9}),
        map=Ascii(text="#1..2#"),
        rewards=[RewardTerm(value=Stat(name="cell.visited"), weight=0.5)],
        observation=Observation(height=3, width=3, num_tokens=8),
    )
    with quiet_make(game, num_worlds=1) as env:
        env.reset()
        west, east, north = 3, 4, 1
        for first, second in ((east, west), (0, west), (east, north), (99, 0), (west, east)):
            assert env.take_episodes()["world"].size == 0
            env.step(np.array([first, second]))
        taken = env.take_episodes()
        assert env.take_episodes()["world"].size == 0
        assert env.episodes_dropped == 0
    shown = {name: column.tolist() for name, column in taken.items() if column.any()}
    # Tokens: 3 globals, 4 for each agent in sight (group, id, ore, tag), 1 for a wall in sight. Agent 0 stands in the
    # first cell at the start and at the end (a wall in sight), in the second in between (agent 1 in sight).
    tokens = {"tokens_written": taken["tokens_written"].tolist(), "tokens_dropped": taken["tokens_dropped"].tolist()}
    assert shown == tokens | {
        "agent": [0, 1],
        "length": [5, 5],
        "reward": [0.5, 0.5],
        "ore.amount": [9, 9],
        "cell.visited": [2, 2],
        "action.invalid": [1, 0],
        "action.noop.success": [1, 1],
        "action.move_east.success": [1, 1],
        "action.move_east.failed": [1, 0],
        "action.move_west.success": [1, 1],
        "action.move_west.failed": [0, 1],
        "action.move_north.failed": [0, 1],
    }
    assert [sum(pair) for pair in zip(*tokens.values(), strict=True)] == [8 + 4 * 11 + 8] * 2
    assert tokens["tokens_dropped"] == [4 * 3] * 2
    assert {taken[n].dtype.name for n in taken if n not in ("reward", "desynced")} == {"int64"}
    assert (taken["reward"].dtype.name, taken["desynced"].dtype.name) == ("float64", "bool")
    assert set(taken) == {"world", "agent", "game", "episode", "length", "desynced", *env.stat_names}


def test_take_episodes_in_order_with_their_numbers() -> None:
    with quiet_make(small(max_steps=3), num_worlds=4, desync_episodes=True, min_first_episode=1) as env:
        env.reset()
        for _ in range(9):
            env.step()
        taken = env.take_episodes()
    ends, rows = [], list(zip(*(taken[n].tolist() for n in ("world", "agent", "episode", "length")), strict=True))
    first = [2, 2, 3, 3]  # 1 + round(2 * (i + 1) / 4), halves up
    for tick in range(1, 10):
        for world in range(4):
            episode, rest = divmod(tick - first[world], 3)
            if tick >= first[world] and rest == 0:
                ends += [(world, agent, episode, first[world] if episode == 0 else 3) for agent in range(3)]
    assert rows == ends


def test_the_sum_of_rewards_is_in_the_record() -> None:
    game = plain(
        text="@" * 5,
        num_agents=5,
        max_steps=11,
        rewards=[RewardTerm(value=Stat(name="action.noop.success"), weight=0.1)],
    )
    with quiet_make(game, num_worlds=3) as env:
        env.reset()
        actions = random_actions(env, 4)
        total = np.zeros(15)
        for _ in range(11):
            env.step(actions())
            total += env.rewards
        assert env.take_episodes()["reward"].tolist() == total.tolist()


# ---- auto-reset


def test_after_an_end_obs_is_the_new_episode_and_final_obs_the_old() -> None:
    """A twin that never ends shows what the last observation was; a twin that is reset shows the first one."""
    short = small(max_steps=4)
    with (
        quiet_make(short, num_worlds=3, seed=8) as env,
        quiet_make(small(max_steps=400), num_worlds=3, seed=8) as endless,
    ):
        env.reset()
        endless.reset()
        for step in range(4):
            actions = scripted_actions(step, 9, 9)
            env.step(actions)
            endless.step(actions)
        assert env.truncations.all()
        assert not env.terminals.any()
        assert [env.inspect(w)["episode"] for w in range(3)] == [1, 1, 1]
        assert [env.inspect(w)["tick"] for w in range(3)] == [0, 0, 0]
        np.testing.assert_array_equal(env.final_obs[:, 1:], endless.obs[:, 1:])  # token 0 is the progress
        assert env.final_obs[:, 0, 2].tolist() == [255] * 9
        with quiet_make(short, num_worlds=3, seed=8) as again:
            again.reset()
            again.reset()
            np.testing.assert_array_equal(env.obs, again.obs)


def test_the_first_observation_of_every_episode_is_seen() -> None:
    """In every step, `obs` is what the world shows now: progress 0 exactly once per episode."""
    with quiet_make(small(max_steps=3), num_worlds=2) as env:
        env.reset()
        progress = [env.obs[0, 0, 2]]
        for _ in range(9):
            env.step()
            progress.append(env.obs[0, 0, 2])
        assert progress == [0, 85, 170] * 3 + [0]


def test_final_obs_is_kept_until_the_next_end() -> None:
    with quiet_make(small(max_steps=3), num_worlds=1) as env:
        env.reset()
        for _ in range(3):
            env.step()
        kept = env.final_obs.copy()
        env.step()
        np.testing.assert_array_equal(env.final_obs, kept)


# ---- desync


@pytest.mark.parametrize(
    ("least", "max_steps", "worlds"), [(1, 10, 4), (3, 10, 7), (None, 20, 5), (90, 20, 4), (0, 9, 3)]
)
def test_desync_lengths_follow_the_formula(least: int | None, max_steps: int, worlds: int) -> None:
    m = min(max(1, 1 if least is None else least), max_steps)
    lengths = [m + int((max_steps - m) * (i + 1) / worlds + 0.5) for i in range(worlds)]
    with quiet_make(small(max_steps), num_worlds=worlds, desync_episodes=True, min_first_episode=least) as env:
        env.reset()
        assert [env.inspect(w)["max_steps"] for w in range(worlds)] == lengths
        for _ in range(3 * max_steps):
            env.step()
        taken = env.take_episodes()
        for world in range(worlds):
            mine = (taken["world"] == world) & (taken["agent"] == 0)
            assert taken["length"][mine].tolist() == [lengths[world], *[max_steps] * (mine.sum() - 1)]
            assert taken["desynced"][mine].tolist() == [lengths[world] < max_steps, *[False] * (mine.sum() - 1)]


def test_desync_changes_nothing_but_the_first_length() -> None:
    """The shortened world goes through the same states; progress and later episodes use the full length."""
    with (
        quiet_make(small(20), num_worlds=4) as full,
        quiet_make(small(20), num_worlds=4, desync_episodes=True) as desync,
    ):
        full.reset()
        desync.reset()
        for step in range(5):
            np.testing.assert_array_equal(full.obs, desync.obs)
            for env in (full, desync):
                env.step(scripted_actions(step, 12, 9))
        desync.step()
        assert desync.inspect(0)["max_steps"] == 20  # its first episode of 6 ticks is over
        desync.reset(seed=1)
        assert desync.inspect(0)["max_steps"] == 6  # a seeded start is a first episode again


# ---- several games


def test_assign_is_taken_at_the_next_reset_only() -> None:
    a, b = plain("a", "@..", max_steps=3), plain("b", "@.#", max_steps=5)
    with quiet_make([a, b], num_worlds=2) as env:
        env.assign([0, 1], [0, 0])
        env.reset()
        env.step()
        env.assign(1, 1)
        assert env.game_of_world.tolist() == [0, 0]
        assert [env.inspect(w)["game"] for w in range(2)] == ["a", "a"]
        env.step()
        assert env.game_of_world.tolist() == [0, 0]
        env.step()
        assert env.truncations.all()
        assert env.game_of_world.tolist() == [0, 1]
        assert [o["type"] for o in env.inspect(1)["objects"]] == ["agent", "wall"]
        for _ in range(5):
            env.step()
        taken = env.take_episodes()
        assert taken["game"].tolist() == [0, 0, 0, 1]
        assert taken["length"].tolist() == [3, 3, 3, 5]
        env.assign([0, 1], [1, 0])
        env.assign([0], [0])  # the last word counts
        env.reset()
        assert env.game_of_world.tolist() == [0, 0]


def test_an_assignment_lasts_through_seeded_resets() -> None:
    with quiet_make([plain("a"), plain("b")], num_worlds=2) as env:
        env.assign([0, 1], [1, 1])
        env.reset()
        env.reset(seed=9)
        assert env.game_of_world.tolist() == [1, 1]


def test_add_game_returns_the_number_for_assign() -> None:
    with quiet_make(plain("a", "@...", max_steps=2), num_worlds=2) as env:
        env.reset()
        before = env.obs.copy()
        index = env.add_game(plain("huge", "\n".join(["@" + "." * 99] + ["." * 100] * 99), max_steps=4))
        assert index == 1
        assert [g.name for g in env.games] == ["a", "huge"]
        np.testing.assert_array_equal(env.obs, before)
        env.assign([1], [index])
        env.step()
        assert env.inspect(1)["width"] == 4  # the larger block did not disturb what runs
        env.step()
        assert (env.inspect(0)["width"], env.inspect(1)["width"]) == (4, 100)
        env.step(np.array([2, 2]))
        assert [(a["row"], a["column"]) for a in agents_of(env.inspect(1))] == [(1, 0)]


def test_a_game_that_would_add_words_is_refused_with_their_names() -> None:
    base = plain("a", moves=4, resources=("ore",))
    diagonals = "`move_northwest`, `move_northeast`, `move_southwest`, `move_southeast`"
    cases = {
        "features the batch does not have: `inv:heart`, `inv:wood`": base.replace(
            "resources", ["ore", "wood", "heart"]
        ),
        "features the batch does not have: `lp:east`, `lp:north`, `lp:south`, `lp:west`": base.replace(
            "observation.local_position", True
        ),
        "features the batch does not have: `inv:ore:p1`": base.replace("agent.inventory", {"ore": 256}),
        "tags the batch does not have: `red`": base.replace("agent.tags", ["red"]),
        "tags the batch does not have: `type:crate`": base.replace("objects.crate", {}),
        f"actions the batch does not have: {diagonals}": base.replace("moves", 8),
    }
    with quiet_make(base, num_worlds=1) as env:
        env.reset()
        for text, game in cases.items():
            with pytest.raises(ValueError) as caught:
                env.add_game(game)
            assert str(caught.value) == f"this game would add {text} - at `$`"
        with pytest.raises(
            ValueError, match=r"^games of one batch must have the same shape: expected 1 agents, obs 200"
        ):
            env.add_game(base.replace("observation.num_tokens", 100))
        assert len(env.games) == 1
        env.step()


def test_games_of_one_batch_share_the_union_of_their_words() -> None:
    ore = plain("ore", "@.", moves=4, resources=("ore",), agent=AgentType(inventory={"ore": 300}))
    vibe = plain(
        "vibe", "@.", moves=0, vibes=("calm", "angry"), resources=("apple",), agent=AgentType(inventory={"apple": 2})
    )
    with quiet_make([ore, vibe], num_worlds=2) as env:
        env.assign([0, 1], [0, 1])
        env.reset()
        names = [f.name for f in env.features]
        assert names == sorted(names)
        assert {"inv:ore", "inv:ore:p1", "inv:apple", "vibe"} <= set(names)
        assert env.action_names[:5] == ["noop", "move_north", "move_south", "move_west", "move_east"]
        assert env.action_names[5:] == ["change_vibe_calm", "change_vibe_angry"]
        held = [{t.feature: t.value for t in env.decode(row) if t.feature.startswith("inv:")} for row in range(2)]
        assert held == [{"inv:ore": 44, "inv:ore:p1": 1}, {"inv:apple": 2}]
        env.step(np.array([6, 6]))
        env.step(np.array([4, 4]))
        assert [a["column"] for w in range(2) for a in agents_of(env.inspect(w))] == [1, 0]


def test_two_envs_in_one_process_do_not_share_a_table() -> None:
    one = quiet_make(plain(resources=("ore",), agent=AgentType(inventory={"ore": 3})), num_worlds=1)
    before = [f.name for f in one.features]
    two = quiet_make(
        plain(resources=("apple", "zinc"), agent=AgentType(inventory={"apple": 4}), vibes=("a", "b")), num_worlds=1
    )
    for env in (one, two):
        env.reset()
        env.step()
    assert [f.name for f in one.features] == before != [f.name for f in two.features]
    assert {t.feature: t.value for t in one.decode(0) if "inv:" in t.feature} == {"inv:ore": 3}
    assert {t.feature: t.value for t in two.decode(0) if "inv:" in t.feature} == {"inv:apple": 4}


def test_actions_that_are_a_view_of_the_actions() -> None:
    """The reverse of the array itself is read before it is written."""
    game = gridmill.games.toy(num_agents=4, map_size=12)
    one, two = quiet_make(game, num_worlds=2), quiet_make(game, num_worlds=2)
    given = np.arange(8, dtype=np.int32)
    one.reset(), two.reset()
    one.actions[:] = given
    one.step(one.actions[::-1])
    two.step(given[::-1].copy())
    assert one.state_hash().tolist() == two.state_hash().tolist()


def test_validation_with_overlapping_lanes() -> None:
    with quiet_make("toy", num_worlds=4, lanes=2, threads=2, validation=True) as env:
        env.reset()
        for _ in range(20):
            env.send(0), env.send(1)
            env.recv(0), env.recv(1)
        report = env.observation_validation
        assert report is not None
        assert (report.comparisons, report.mismatches) == (4 * 20 * 21, 0)


def test_arrays_cannot_be_replaced() -> None:
    env = quiet_make("toy", num_worlds=1)
    with pytest.raises(AttributeError, match=r"write into it: env.actions\[:\] = ..."):
        env.actions = np.zeros(20, np.int32)
    with pytest.raises(AttributeError):
        env.obs = np.zeros(1)  # type: ignore[misc]


def test_dense_of_rows_somebody_wrote_to() -> None:
    """Bytes that are no tokens are passed over."""
    env = quiet_make("toy", num_worlds=2)
    env.reset()
    env.obs[:] = np.random.default_rng(0).integers(0, 256, env.obs.shape, dtype=np.uint8)
    assert env.dense().shape == (40, len(env.dense_channels), 11, 11)
