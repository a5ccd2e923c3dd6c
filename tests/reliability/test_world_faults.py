"""An exception inside a world reaches Python with world, tick, seed and the way to see it again.

The fault is real: games with `overflow="error"` whose agents walk until they see more tokens than fit. After it the
env refuses to step until reset(), still closes, and leaves no thread behind.
"""

from __future__ import annotations

import re

import numpy as np
import pytest
from random_games import attempt, num_threads, quiet_make, settled

import gridmill
from gridmill import Env, Game, _native
from gridmill.grid import Ascii, ObjectType, Observation, Scatter

pytestmark = pytest.mark.R9

WORLDS, LENGTH, SEED = 16, 12, 41
EAST, WEST = 4, 3
STEPS_TO_FAULT = LENGTH - 2  # then the wall at the end enters the 3 x 3 window


def corridor(name: str = "corridor", max_steps: int = 1000) -> Game:
    """An agent at the west end, a wall at the east end: seeing it takes a seventh token where six fit."""
    return Game(
        name=name,
        moves=4,
        max_steps=max_steps,
        map=Ascii(text="@" + "." * (LENGTH - 2) + "#"),
        observation=Observation(height=3, width=3, num_tokens=6, overflow="error"),
    )


def make(threads: int, **options: object) -> Env:
    env = quiet_make(corridor(), num_worlds=WORLDS, seed=SEED, threads=threads, **options)
    env.reset()
    return env


def walk_into(env: Env, worlds: list[int], tick: int) -> None:
    """Everybody waits, except that the agents of `worlds` walk so as to see the wall in that tick."""
    for now in range(1, tick + 1):
        env.actions[:] = 0
        env.actions[worlds] = EAST if now > tick - STEPS_TO_FAULT else 0
        if now < tick:
            env.step()
    env.step()


def expected(world: int, tick: int, episode: int = 0) -> str:
    return (
        f"world {world}, episode {episode}, tick {tick}, seed {SEED}: agent 0 sees 1 tokens more than num_tokens = 6; "
        "raise observation.num_tokens or set observation.overflow to 'drop'"
    )


@pytest.mark.parametrize("threads", [1, 4])
@pytest.mark.parametrize("tick", [10, 11, 13, 17, 29, 64])
@pytest.mark.parametrize("world", [0, 1, 7, 15])
def test_fault_names_world_tick_and_seed(world: int, tick: int, threads: int) -> None:
    before = num_threads()
    env = make(threads)
    with pytest.raises(_native.WorldFault) as caught:
        walk_into(env, [world], tick)
    assert isinstance(caught.value, RuntimeError)
    first, *rest = str(caught.value).splitlines()
    assert first == expected(world, tick)
    assert rest == [
        f"to see it again: env = gridmill.make(<the game 'corridor'>, num_worlds={WORLDS}); "
        "env.reset(seed=<the seed above>); then the same actions up to that tick"
    ]
    for refused in (env.step, lambda: env.send(0), lambda: env.step(np.zeros(WORLDS, np.int32)), env.save):
        with pytest.raises(RuntimeError, match=r"^a world failed in an earlier step, .* call reset\(\) first$"):
            refused()
    env.reset()
    env.step()
    env.close()
    assert settled(num_threads, before) == before


@pytest.mark.parametrize("threads", [1, 4])
def test_the_way_to_see_it_again_works(threads: int) -> None:
    """Make the same env anew, reset with the seed from the text, give the same actions: the same fault."""
    texts = []
    for fresh_threads in (threads, 1):
        env = quiet_make(corridor(), num_worlds=WORLDS, threads=fresh_threads)
        seed = int(re.search(r"seed (\d+):", texts[0])[1]) if texts else SEED  # type: ignore[index]
        env.reset(seed=seed)
        with pytest.raises(_native.WorldFault) as caught:
            walk_into(env, [5], 23)
        texts.append(str(caught.value))
        env.close()
    assert texts[0] == texts[1]


def test_the_recipe_for_several_games_is_a_list() -> None:
    games = [corridor("one"), corridor("two")]
    with quiet_make(games, num_worlds=WORLDS, seed=SEED) as env:
        env.reset()
        recipe = re.escape("gridmill.make([<the game 'one'>, <the game 'two'>], num_worlds=16)")
        with pytest.raises(_native.WorldFault, match=recipe):
            walk_into(env, [1], 12)


@pytest.mark.parametrize("threads", [1, 2, 4, 8])
def test_of_several_faults_the_lowest_world_is_named(threads: int) -> None:
    """Whichever thread is first: the text does not depend on the number of threads."""
    for worlds in ([3, 2, 14], [15, 0], [9, 10, 11, 12]):
        env = make(threads)
        with pytest.raises(_native.WorldFault) as caught:
            walk_into(env, worlds, 15)
        assert str(caught.value).startswith(expected(min(worlds), 15))
        env.close()


@pytest.mark.parametrize("threads", [1, 4])
def test_fault_comes_out_of_recv(threads: int) -> None:
    env = make(threads, lanes=4)
    for now in range(1, STEPS_TO_FAULT + 1):
        env.actions[:] = 0
        env.actions[6] = EAST
        for lane in range(4):
            env.send(lane)
        if now < STEPS_TO_FAULT:
            for lane in range(4):
                env.recv(lane)
    faults = [attempt(lambda lane=lane: env.recv(lane), _native.WorldFault) for lane in range(4)]
    assert faults[1] is not None  # lane 1 holds the world that failed; the others may tell of it too
    for fault in faults:
        assert fault is None or str(fault).startswith(expected(6, STEPS_TO_FAULT))
        assert fault is None or "to see it again" in str(fault)
    with pytest.raises(RuntimeError, match="a world failed"):
        env.send(0)
    env.reset(seed=SEED)
    env.step()
    env.close()


def test_fault_while_profiling() -> None:
    """The timed step runs phase by phase; a failed world is left out of the later phases."""
    env = make(2, profiling=True)
    with pytest.raises(_native.WorldFault) as caught:
        walk_into(env, [4, 8], 20)
    assert str(caught.value).startswith(expected(4, 20))
    env.reset()
    env.step()
    env.close()


def test_after_reset_the_env_is_as_good_as_new() -> None:
    broken, fresh = make(4), make(1)
    with pytest.raises(_native.WorldFault):
        walk_into(broken, [7], 30)
    broken.reset(seed=SEED)
    fresh.reset(seed=SEED)
    for step in range(40):
        for env in (broken, fresh):
            env.step(np.full(WORLDS, EAST if step % 9 < 5 else WEST, np.int32))
    np.testing.assert_array_equal(broken.obs, fresh.obs)
    np.testing.assert_array_equal(broken.state_hash(), fresh.state_hash())
    broken.close()
    fresh.close()


def test_fault_at_reset() -> None:
    """An episode that cannot begin: named, with the way to see it again, and the env still closes."""
    game = Game(  # a row of five cells: of three crates one never touches the floor
        name="full",
        num_agents=2,
        resources=("ore",),
        objects={"wall": ObjectType(), "crate": ObjectType(inventory={"ore": 1})},
        map=Scatter(height=1, width=5, border=0, objects={"crate": 3}),
    )
    before = num_threads()
    env = quiet_make(game, num_worlds=64, seed=9, threads=4)
    with pytest.raises(_native.WorldFault) as caught:
        env.reset()
    assert str(caught.value).startswith("world 0, episode 0, tick 0, seed 9: scatter found no layout in 100 attempts ")
    assert "to see it again: env = gridmill.make(<the game 'full'>, num_worlds=64)" in str(caught.value)
    for _ in range(9):
        env.add_game(game)
    with pytest.raises(_native.WorldFault, match=r"(<the game 'full'>, ){8}and 2 more\], num_worlds=64"):
        env.reset()
    with pytest.raises(RuntimeError, match="call reset"):
        env.step()
    env.close()
    assert settled(num_threads, before) == before


def test_fault_in_an_auto_reset() -> None:
    """A new episode that begins with a fault inside step(): episode 1, tick 0."""
    game = Game(
        name="unlucky",
        max_steps=2,
        map=Ascii(text="@..@#"),
        observation=Observation(height=3, width=3, num_tokens=6, overflow="error"),
    )
    seen = set()
    for seed in range(40):
        with quiet_make(game, num_worlds=1, seed=seed) as env:
            fault = attempt(env.reset, _native.WorldFault)
            if isinstance(fault, Exception):
                seen.add(0)
                assert f"episode 0, tick 0, seed {seed}" in str(fault)
                continue
            env.step()
            fault = attempt(env.step, _native.WorldFault)
            if isinstance(fault, Exception):
                seen.add(1)
                assert str(fault).startswith(f"world 0, episode 1, tick 0, seed {seed}: agent 0 sees 1 tokens more")
                with pytest.raises(RuntimeError, match="a world failed"):
                    env.step()
    assert seen == {0, 1}


def test_restoring_one_world_does_not_hide_the_others_fault() -> None:
    """World 3 failed half way through a tick; putting world 0 back does not make world 3 whole."""
    env = make(1)
    saved = env.save([0])
    with pytest.raises(_native.WorldFault):
        walk_into(env, [3], 12)
    env.restore(saved, [0])
    with pytest.raises(RuntimeError, match="a world failed"):
        env.step()
    env.close()


def test_restoring_all_worlds_heals() -> None:
    env = make(2)
    saved = env.save()
    with pytest.raises(_native.WorldFault):
        walk_into(env, [3], 12)
    env.restore(saved)
    with pytest.raises(_native.WorldFault) as caught:
        walk_into(env, [3], 12)
    assert str(caught.value).startswith(expected(3, 12))
    env.close()


def test_dropping_a_broken_env_leaks_nothing() -> None:
    before = num_threads()
    for _ in range(5):
        env = make(4)
        with pytest.raises(_native.WorldFault):
            walk_into(env, [2], 11)
        del env
    assert settled(num_threads, before) == before


def test_the_fault_class_is_public_as_a_runtime_error() -> None:
    assert issubclass(_native.WorldFault, RuntimeError)
    assert not issubclass(gridmill.ConfigError, RuntimeError)
