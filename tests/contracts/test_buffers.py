"""The arrays an env shares: made once, native memory underneath, alive as long as someone holds one."""

from __future__ import annotations

import contextlib
import gc
import threading
from collections.abc import Callable

import numpy as np
import pytest
from random_games import quiet_make, scripted_actions

import gridmill
from gridmill import Env

NAMES = ("obs", "final_obs", "actions", "rewards", "terminals", "truncations", "masks")


@pytest.fixture
def env() -> Env:
    made = quiet_make(gridmill.games.toy(num_agents=3, map_size=8, max_steps=7), num_worlds=4, masks=True)
    made.reset()
    return made


def test_dtypes_and_shapes(env: Env) -> None:
    shapes = {name: (getattr(env, name).dtype.name, getattr(env, name).shape) for name in NAMES}
    assert shapes == {
        "obs": ("uint8", (12, 200, 3)),
        "final_obs": ("uint8", (12, 200, 3)),
        "actions": ("int32", (12,)),
        "rewards": ("float32", (12,)),
        "terminals": ("bool", (12,)),
        "truncations": ("bool", (12,)),
        "masks": ("uint8", (12, 9)),
    }
    for name in NAMES:
        array = getattr(env, name)
        assert array.flags.c_contiguous
        assert array.flags.writeable  # torch warns about read-only arrays
        assert array.ctypes.data % 64 == 0
        assert array.base is not None


def test_masks_are_none_when_off() -> None:
    with quiet_make("toy", num_worlds=1) as env:
        assert env.masks is None


def test_arrays_are_the_same_objects_across_steps(env: Env) -> None:
    before = {name: (id(getattr(env, name)), getattr(env, name).ctypes.data) for name in NAMES}
    for step in range(20):
        env.step(scripted_actions(step, env.num_rows, env.num_actions))
    env.reset(seed=4)
    env.restore(env.save())
    env.take_episodes()
    assert {name: (id(getattr(env, name)), getattr(env, name).ctypes.data) for name in NAMES} == before


def test_arrays_do_not_overlap(env: Env) -> None:
    arrays = [getattr(env, name) for name in NAMES]
    for i, one in enumerate(arrays):
        for other in arrays[i + 1 :]:
            assert not np.shares_memory(one, other)


@pytest.mark.parametrize("how", ["close", "del", "close and del"])
def test_views_stay_valid(env: Env, how: str) -> None:
    """Every array, and views and slices made of it, can be read after the env is gone."""
    env.step(scripted_actions(0, env.num_rows, env.num_actions))
    kept = {name: getattr(env, name) for name in NAMES}
    kept["slice"] = env.obs[3:5, ::7, 1]
    copies = {name: array.copy() for name, array in kept.items()}
    if "close" in how:
        env.close()
    if "del" in how:
        del env
    gc.collect()
    filler = [quiet_make("toy", num_worlds=4) for _ in range(3)]  # memory that was freed would be handed out again
    for other in filler:
        other.reset()
    for name, array in kept.items():
        np.testing.assert_array_equal(array, copies[name], name)


def test_one_kept_array_is_enough() -> None:
    rewards = quiet_make("toy", num_worlds=4).rewards
    gc.collect()
    assert rewards.tolist() == [0.0] * 80
    rewards[:] = 1
    assert rewards.sum() == 80


def test_two_envs_share_nothing() -> None:
    one, two = quiet_make("toy", num_worlds=2), quiet_make("toy", num_worlds=2)
    one.reset(seed=1)
    two.reset(seed=2)
    before = two.obs.copy()
    assert not np.shares_memory(one.obs, two.obs)
    one.step(scripted_actions(0, one.num_rows, one.num_actions))
    np.testing.assert_array_equal(two.obs, before)


@pytest.mark.parametrize(
    ("actions", "error", "text"),
    [
        (np.zeros(12, np.float32), TypeError, "actions must be int32 or int64, got float32"),
        (np.zeros(12, np.uint8), TypeError, "actions must be int32 or int64, got uint8"),
        (np.zeros(12, bool), TypeError, "actions must be int32 or int64, got bool"),
        (np.zeros(11, np.int32), ValueError, "actions must have shape [12], got [11]"),
        (np.zeros(0, np.int64), ValueError, "actions must have shape [12], got [0]"),
        (np.zeros((12, 1), np.int32), ValueError, "actions must have shape [12], got [12, 1]"),
        (np.zeros((), np.int32), ValueError, "actions must have shape [12], got []"),
        (np.zeros((2, 2, 3), np.int64), ValueError, "actions must have shape [12], got [2, 2, 3]"),
    ],
)
def test_wrong_actions_are_refused_word_for_word(
    env: Env, actions: np.ndarray, error: type[Exception], text: str
) -> None:
    before = env.state_hash().tolist()
    with pytest.raises(error) as caught:
        env.step(actions)
    assert str(caught.value) == text
    assert env.state_hash().tolist() == before


def send_and_recv(env: Env) -> None:
    env.send(0)
    env.recv(0)


@pytest.mark.parametrize("call", [Env.step, Env.reset, send_and_recv], ids=["step", "reset", "recv"])
def test_the_gil_is_released(call: Callable[[Env], None]) -> None:
    """Another thread can find the env busy only if it may run while the worlds do."""
    game = gridmill.games.toy(num_agents=100, map_size=60)
    stop = threading.Event()
    with quiet_make(game, num_worlds=100) as env:
        env.reset()

        def work() -> None:
            while not stop.is_set():
                with contextlib.suppress(RuntimeError):  # refused while the other thread looks
                    call(env)

        thread = threading.Thread(target=work)
        thread.start()
        found_busy = False
        for _ in range(200_000):
            try:
                env.take_episodes()
            except RuntimeError as error:
                found_busy = "being used by another thread" in str(error)
            if found_busy:
                break
        stop.set()
        thread.join()
    assert found_busy
