"""Env, its state as bytes: save, restore, fork, hash."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from random_games import games, quiet_make, random_actions, scripted_actions

import gridmill
from gridmill import Env, Game
from gridmill.grid import AgentType, Ascii, Observation, RewardTerm, Stat

ARRAYS = ("obs", "final_obs", "actions", "rewards", "terminals", "truncations", "masks")


def lively(name: str = "lively", **fields: Any) -> Game:
    """Crowded, with rewards, vibes and short episodes: a state that matters in many ways."""
    fields = {
        "num_agents": 4,
        "max_steps": 9,
        "resources": ("ore",),
        "vibes": ("calm", "angry"),
        "agent": AgentType(inventory={"ore": 300}),
        "map": Ascii(text="@.@#\n....\n#@.@"),
        "rewards": [
            RewardTerm(value=Stat(name="cell.visited"), mode="gained"),
            RewardTerm(value=Stat(name="action.noop.success")),
        ],
        "reward_sharing": 0.5,
        "observation": Observation(num_tokens=300),
    } | fields
    return Game(name=name, **fields)


def make(seed: int = 0, num_worlds: int = 4, **options: Any) -> Env:
    env = quiet_make(lively(), num_worlds=num_worlds, seed=seed, masks=True, **options)
    env.reset()
    return env


def run(env: Env, steps: int, start: int = 0) -> list[bytes]:
    """Everything the env shows over some steps, record by record."""
    seen = []
    for step in range(start, start + steps):
        env.step(scripted_actions(step, env.num_rows, env.num_actions))
        seen += [getattr(env, name).tobytes() for name in ARRAYS]
        seen += [env.state_hash().tobytes(), *(c.tobytes() for c in env.take_episodes().values())]
    return seen


@pytest.mark.parametrize("ticks", [0, 1, 5, 8, 9, 23])
def test_a_restored_env_continues_to_the_bit(ticks: int) -> None:
    env = make()
    run(env, ticks)
    saved = env.save()
    arrays = [getattr(env, name).copy() for name in ARRAYS]
    onwards = run(env, 30, ticks)
    env.restore(saved)
    for name, before in zip(ARRAYS, arrays, strict=True):
        np.testing.assert_array_equal(getattr(env, name), before, name)
    assert env.save() == saved
    assert run(env, 30, ticks) == onwards


@pytest.mark.parametrize("options", [{"threads": 3}, {"lanes": 2}, {"profiling": True}, {"validation": True}])
def test_another_env_takes_over_to_the_bit(options: dict[str, Any]) -> None:
    """Another process would do the same: nothing but the bytes is carried over, not even a reset."""
    env = make(seed=12)
    run(env, 13)
    other = quiet_make(lively(), num_worlds=4, seed=999, masks=True, **options)
    other.restore(env.save())
    assert run(other, 30, 13) == run(env, 30, 13)


@settings(max_examples=80)
@given(games(most_agents=4), st.integers(0, 1_000), st.integers(0, 9))
def test_random_games_continue_to_the_bit(game: Game, seed: int, ticks: int) -> None:
    with (
        quiet_make(game, num_worlds=2, seed=seed, masks=True) as env,
        quiet_make(game, num_worlds=2, masks=True) as other,
    ):
        actions = random_actions(env, seed)
        env.reset()
        for _ in range(ticks):
            env.step(actions())
        other.restore(env.save())
        for _ in range(6):
            given_now = actions()
            for each in (env, other):
                each.step(given_now)
            assert env.save() == other.save()
            assert all((getattr(env, name) == getattr(other, name)).all() for name in ARRAYS)


def test_some_worlds_in_any_order() -> None:
    env = make()
    run(env, 4)
    hashes, obs = env.state_hash(), env.obs.reshape(4, 4, -1).copy()
    saved = env.save([3, 1])
    run(env, 3, 4)
    later = env.state_hash()
    env.restore(saved, [0, 2])
    assert env.state_hash().tolist() == [hashes[3], later[1], hashes[1], later[3]]
    np.testing.assert_array_equal(env.obs.reshape(4, 4, -1)[[0, 2]], obs[[3, 1]])


def test_forks_stay_equal_given_the_same_actions_and_part_given_others() -> None:
    """A fork keeps the key of the world it came from, so the same actions give the same luck, for episodes to come."""
    env = make(num_worlds=8)
    run(env, 5)
    env.restore(env.save([6]))
    for step in range(40):
        env.step(np.tile(scripted_actions(step, 4, env.num_actions), 8))
        assert len(set(env.state_hash().tolist())) == 1
        assert len({row.tobytes() for row in env.obs.reshape(8, -1)}) == 1
    env.step(np.concatenate([np.full(4, 5), np.zeros(28, int)]))
    assert len(set(env.state_hash().tolist())) == 2


def test_equal_states_have_equal_hashes_and_others_do_not() -> None:
    env, twin = make(), make()
    seen = set()
    for step in range(9):
        np.testing.assert_array_equal(env.state_hash(), twin.state_hash())
        seen |= set(env.state_hash().tolist())
        for each in (env, twin):
            each.step(scripted_actions(step, 16, 11))
    assert env.state_hash().dtype == np.uint64
    assert len(seen) == 36  # every world, every tick


def test_saving_changes_nothing() -> None:
    env, twin = make(), make()
    for step in range(20):
        env.save()
        env.state_hash()
        for each in (env, twin):
            each.step(scripted_actions(step, 16, 11))
    assert env.save() == twin.save()


def test_pending_assignments_are_saved() -> None:
    two = [lively("one"), lively("two")]
    env = quiet_make(two, num_worlds=2, masks=True)
    env.assign([0, 1], [0, 0])
    env.reset()
    env.assign([1], [1])
    other = quiet_make(two, num_worlds=2, masks=True)
    other.restore(env.save())
    assert other.game_of_world.tolist() == [0, 0]
    run(other, 9)
    assert other.game_of_world.tolist() == [0, 1]


def test_games_are_found_by_fingerprint_not_by_number() -> None:
    one, two = lively("one"), lively("two", max_steps=4)
    env = quiet_make([one, two], num_worlds=2, masks=True)
    env.assign([0, 1], [1, 1])
    env.reset()
    other = quiet_make([two, one], num_worlds=2, masks=True)
    other.restore(env.save())
    assert other.game_of_world.tolist() == [0, 0]
    assert [other.inspect(w)["game"] for w in range(2)] == ["two", "two"]
    assert other.inspect(0)["max_steps"] == 4


def test_a_game_the_batch_lacks_is_named() -> None:
    here, there = lively("here"), lively("there")
    env = quiet_make(there, num_worlds=1, masks=True)
    env.reset()
    saved = env.save()
    other = quiet_make(here, num_worlds=1, masks=True)
    other.reset()
    before = other.save()
    with pytest.raises(ValueError) as caught:
        other.restore(saved)
    text = f"restore: this batch does not have the game there {there.fingerprint()}; add it with add_game() first"
    assert str(caught.value) == text
    assert other.save() == before
    other.add_game(there)
    other.restore(saved)
    assert other.inspect(0)["game"] == "there"


@pytest.mark.parametrize("where", ["objects", "map.objects"])
def test_games_that_differ_in_order_are_not_taken_for_one_another(where: str) -> None:
    """The order of declaration decides how types are numbered and maps are drawn, so it is part of what a game is."""
    tree = {
        "name": "order",
        "objects": {"wall": {}, "crate": {}},
        "map": {"kind": "scatter", "height": 9, "width": 9, "objects": {"wall": 4, "crate": 9}},
    }
    one = Game.load(tree)
    spot: Any = tree["objects"] if where == "objects" else tree["map"]["objects"]  # type: ignore[index]
    two = one.replace(where, dict(reversed(spot.items())))
    assert one != two
    assert one.fingerprint() != two.fingerprint()
    env, other = (quiet_make(game, num_worlds=1) for game in (one, two))
    env.reset()
    with pytest.raises(ValueError, match="does not have the game order"):
        other.restore(env.save())


def test_a_batch_with_other_words_for_the_same_game() -> None:
    """The same game has other feature ids where another game adds words: restored rows must not lie about them."""
    ore = Game(name="ore", map=Ascii(text="@.#"), resources=("ore",), agent=AgentType(inventory={"ore": 7}))
    apple = Game(name="apple", map=Ascii(text="@.#"), resources=("apple",), agent=AgentType(inventory={"apple": 7}))
    alone = quiet_make(ore, num_worlds=1)
    alone.reset()
    both = quiet_make([ore, apple], num_worlds=1, validation=True)
    with pytest.raises(ValueError, match="restore: saved from a batch with another feature table"):
        both.restore(alone.save())


@pytest.mark.parametrize(
    ("options", "fields"),
    [({"masks": False}, {}), ({}, {"observation": {"num_tokens": 100}}), ({}, {"vibes": ()}), ({}, {"num_agents": 3})],
    ids=["masks", "tokens", "actions", "agents"],
)
def test_other_shapes_are_refused(options: dict[str, Any], fields: dict[str, Any]) -> None:
    game = lively()
    for name, value in fields.items():
        game = game.replace(name, value)
    other = quiet_make(game, num_worlds=4, **({"masks": True} | options))
    with pytest.raises(ValueError, match=r"^restore: saved from a batch with other shapes"):
        other.restore(make().save())


def test_the_number_of_worlds_must_fit() -> None:
    env = make()
    with pytest.raises(
        ValueError, match=r"^restore: 2 worlds saved, but 4 requested; save one world to fork it into many$"
    ):
        env.restore(env.save([0, 1]))
    with pytest.raises(ValueError, match=r"^restore: 4 worlds saved, but 1 requested"):
        env.restore(env.save(), [2])


@settings(max_examples=400)
@given(st.data())
def test_damaged_bytes_are_refused_and_change_nothing(data: st.DataObject) -> None:
    saved, env = SAVED
    kind = data.draw(st.sampled_from(["flip", "cut", "extend", "empty", "noise", "swap"]))
    if kind == "flip":
        at = data.draw(st.integers(0, len(saved) - 1))
        damaged = saved[:at] + bytes([saved[at] ^ (1 << data.draw(st.integers(0, 7)))]) + saved[at + 1 :]
    elif kind == "cut":
        damaged = saved[: data.draw(st.integers(0, len(saved) - 1))]
    elif kind == "extend":
        damaged = saved + data.draw(st.binary(min_size=1, max_size=20))
    elif kind == "swap":
        at = data.draw(st.integers(8, len(saved) - 40))
        damaged = saved[:at] + saved[at + 16 : at + 32] + saved[at : at + 16] + saved[at + 32 :]
    else:
        damaged = b"" if kind == "empty" else data.draw(st.binary(max_size=100))
    if damaged == saved:
        return
    before = env.state_hash().tolist()
    with pytest.raises(ValueError, match=r"^restore: (these bytes are not a saved state|the saved state is damaged)"):
        env.restore(damaged)
    assert env.state_hash().tolist() == before


def saved_env() -> tuple[bytes, Env]:
    env = make(num_worlds=2)
    run(env, 3)
    return env.save(), env


SAVED = saved_env()


@pytest.mark.parametrize("thing", [None, "text", 3, [1]])
def test_things_that_are_no_bytes(thing: Any) -> None:
    with pytest.raises(TypeError):
        make().restore(thing)


def test_restore_in_place_of_the_first_reset() -> None:
    saved = make().save()
    env = quiet_make(lively(), num_worlds=4, masks=True)
    env.restore(saved)
    env.step()
    half = quiet_make(lively(), num_worlds=4, masks=True)
    half.restore(make().save([0]), [1])
    with pytest.raises(RuntimeError, match=r"call reset\(\)"):
        half.step()
    for world in (0, 2, 3):
        half.restore(make().save([0]), [world])
    half.step()


def test_toy_fits_in_few_bytes() -> None:
    """A saved world of toy: its block and its rows, hardly more."""
    with gridmill.make("toy", num_worlds=2) as env:
        env.reset()
        rows = 20 * (2 * 600 + 4 + 4 + 1 + 1 + 2)
        assert rows < len(env.save([0])) < rows + env.bytes_per_world + 200


@pytest.mark.parametrize("name", ["toy", "cogsguard", "prospector", "corridor"])
def test_an_end_can_be_held(name: str) -> None:
    """Everything of the last step is as without; the world waits for a reset or a state."""
    game = gridmill.games.build(name)
    rng = np.random.default_rng(1)
    with quiet_make(game, num_worlds=1, seed=3) as plain, quiet_make(game, num_worlds=1, seed=3) as held:
        held.hold_ended()
        plain.reset()
        held.reset()
        start = held.save()
        while not (plain.terminals[0] or plain.truncations[0]):
            actions = rng.integers(0, plain.num_actions, plain.num_rows, dtype=np.int32)
            plain.step(actions)
            held.step(actions)
        for array in ("rewards", "terminals", "truncations", "final_obs"):
            np.testing.assert_array_equal(getattr(held, array), getattr(plain, array))
        np.testing.assert_array_equal(held.obs, held.final_obs)
        assert held.take_episodes()["length"][0] == plain.take_episodes()["length"][0]
        said = "the episode of world 0 has ended and is held; reset() or restore() it first"
        for what, call in {"step()": held.step, "save()": held.save, "send()": lambda: held.send(0)}.items():
            with pytest.raises(RuntimeError) as refused:
                call()
            assert str(refused.value) == f"{what}: {said}"
        held.restore(start)
        held.step(np.zeros(held.num_rows, np.int32))
        held.reset(3)
        held.step(np.zeros(held.num_rows, np.int32))


def test_a_world_can_be_saved_beside_one_whose_end_is_held() -> None:
    rng = np.random.default_rng(1)
    with quiet_make("prospector", num_worlds=2, seed=3) as env:
        env.hold_ended()
        env.reset()
        while not (env.terminals | env.truncations).any():
            env.step(rng.integers(0, env.num_actions, env.num_rows, dtype=np.int32))
        ended = (env.terminals | env.truncations).astype(bool)
        assert ended.sum() == 1
        world = int(np.flatnonzero(~ended)[0])
        assert env.save([world])
        with pytest.raises(RuntimeError, match=f"the episode of world {1 - world} has ended"):
            env.save([1 - world])
