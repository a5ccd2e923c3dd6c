"""Bad actions. Wrong arrays are refused before the core is touched; out-of-range numbers are a counted noop."""

from __future__ import annotations

from typing import Any

import draws
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from random_games import attempt, quiet_make

import gridmill
from gridmill import Env

pytestmark = pytest.mark.F5

ROWS = 12
OTHER_DTYPES = [
    np.int8, np.int16, np.uint8, np.uint16, np.uint32, np.uint64, np.float16, np.float32, np.float64, np.bool_,
    np.complex64, np.dtype(">i4"), np.dtype(">i8"), np.dtype("S4"), np.dtype("U2"), np.dtype("M8[s]"), np.dtype("O"),
    np.dtype([("a", "i4")]),
]  # fmt: skip


@pytest.fixture(scope="module")
def env() -> Env:
    made = quiet_make(gridmill.games.toy(num_agents=3, map_size=8, max_steps=10_000), num_worlds=4, seed=2, masks=True)
    made.reset()
    return made


def everything(env: Env) -> list[bytes]:
    arrays = (env.state_hash(), env.obs, env.actions, env.rewards, env.terminals, env.truncations, env.masks)
    return [np.ascontiguousarray(a).tobytes() for a in arrays]


def refused(env: Env, actions: Any, error: type[Exception], text: str) -> None:
    before = everything(env)
    with pytest.raises(error, match=text):
        env.step(actions)
    assert everything(env) == before


SHAPES = st.one_of(
    st.integers(0, 40).filter(lambda n: n != ROWS).map(lambda n: (n,)),
    st.just(()),
    st.tuples(st.integers(0, 13), st.integers(0, 13)),
    st.tuples(st.just(ROWS), st.just(1)),
    st.tuples(st.just(1), st.just(ROWS)),
    st.tuples(st.integers(0, 4), st.integers(0, 4), st.integers(0, 4)),
)


@settings(max_examples=1_500)
@given(shape=SHAPES, dtype=st.sampled_from([np.int32, np.int64]), fill=st.integers(-3, 12))
def test_wrong_shapes_are_refused(env: Env, shape: tuple[int, ...], dtype: Any, fill: int) -> None:
    text = r"^actions must have shape \[12\], got \[" + ", ".join(map(str, shape)) + r"\]$"
    refused(env, np.full(shape, fill, dtype), ValueError, text)


@settings(max_examples=1_000)
@given(dtype=st.sampled_from(OTHER_DTYPES), shape=st.one_of(st.just((ROWS,)), SHAPES))
def test_wrong_dtypes_are_refused(env: Env, dtype: Any, shape: tuple[int, ...]) -> None:
    """The dtype is named first, whatever the shape."""
    array = np.zeros(shape, dtype)
    refused(env, array, TypeError, "^actions must be int32 or int64, got ")


@settings(max_examples=500)
@given(st.lists(st.sampled_from([float("nan"), float("inf"), -float("inf"), 0.0, 1.0]), min_size=ROWS, max_size=ROWS))
def test_floats_are_refused_even_whole_ones(env: Env, values: list[float]) -> None:
    refused(env, np.array(values), TypeError, "^actions must be int32 or int64, got float64$")
    refused(env, np.array(values, np.float32), TypeError, "^actions must be int32 or int64, got float32$")


@pytest.mark.parametrize("thing", [[], [1.5] * ROWS, "north", {"a": 1}, object(), [None] * ROWS, [[0] * ROWS], 3, True])
def test_things_that_are_no_actions(env: Env, thing: Any) -> None:
    before = everything(env)
    with pytest.raises((TypeError, ValueError)):
        env.step(thing)
    assert everything(env) == before


EDGES = [-1, -(2**31), 2**31 - 1, 9, 10, 255, 256, 2**16]
WIDE = [*EDGES, 2**31, 2**32, 2**32 + 1, -(2**32), 2**63 - 1, -(2**63), -(2**31) - 1, 2**33 + 4]


def actions_among(odd: list[int]) -> draws.Plan:
    return draws.lists(draws.one_of(draws.integers(0, 8), draws.sampled_from(odd)), ROWS, ROWS)


@settings(max_examples=1_000)
@given(draws.seeded(actions_among(EDGES)))
def test_numbers_out_of_range_are_noops_counted_once(env: Env, values: list[int]) -> None:
    check_counts(env, np.array(values, np.int32))


@settings(max_examples=1_000)
@given(draws.seeded(actions_among(WIDE)))
def test_numbers_beyond_32_bits_are_invalid_too(env: Env, values: list[int]) -> None:
    """2**32 + 1 must not become action 1."""
    check_counts(env, np.array(values, np.int64))


def check_counts(env: Env, actions: np.ndarray) -> None:
    """One tick three times: every bad number does what -1 does, and moves nobody who stands still in a noop."""
    saved, bad = env.save(), (actions < 0) | (actions >= env.num_actions)
    results, places = [], []
    for tried in (actions, np.where(bad, -1, actions), np.where(bad, 0, actions)):
        env.restore(saved)
        env.step(tried)
        env.actions[:] = 0  # what was asked for is no part of the result
        results.append(everything(env))
        places.append([[(o["agent"], o["row"], o["column"]) for o in env.inspect(w)["objects"]] for w in range(4)])
    assert results[0] == results[1]
    assert places[0] == places[2]
    assert (results[0] == results[2]) == (not bad.any())  # an invalid one is counted, a noop is another count


def test_invalid_is_counted_once_per_action() -> None:
    game = gridmill.games.toy(num_agents=2, map_size=6, max_steps=6)
    with gridmill.make(game, num_worlds=1) as env:
        env.reset()
        for bad in (-1, 9, 2**40, -(2**63), 0, 1):
            env.step(np.array([bad, 0], np.int64))
        taken = env.take_episodes()
        assert taken["action.invalid"].tolist() == [4, 0]
        assert taken["action.noop.success"].tolist() == [1, 6]
        tried = sum(v for k, v in taken.items() if k.startswith("action."))
        assert tried.tolist() == [6, 6]


@settings(max_examples=300)
@given(
    values=st.lists(st.integers(0, 8), min_size=ROWS, max_size=ROWS),
    dtype=st.sampled_from([np.int32, np.int64]),
    layout=st.sampled_from(
        ["strided", "reversed", "read-only", "column", "broadcast", "big stride", "subclass", "list"]
    ),
)
def test_any_layout_of_the_right_numbers_is_taken(env: Env, values: list[int], dtype: Any, layout: str) -> None:
    plain = np.array(values, dtype)
    if layout == "broadcast":
        plain = np.full(ROWS, values[0], dtype)
    laid: Any = {
        "strided": lambda: np.repeat(plain, 2)[::2],
        "reversed": lambda: plain[::-1].copy()[::-1],
        "read-only": lambda: read_only(plain),
        "column": lambda: np.stack([plain, plain + 50], axis=1)[:, 0],
        "broadcast": lambda: np.broadcast_to(plain[:1], (ROWS,)),
        "big stride": lambda: np.repeat(plain, 1000)[::1000],
        "subclass": lambda: plain.view(np.recarray),
        "list": lambda: values,
    }[layout]()
    saved = env.save()
    env.step(laid)
    after = everything(env)
    env.restore(saved)
    env.step(plain if layout != "list" else np.array(values))
    assert everything(env) == after


def read_only(array: np.ndarray) -> np.ndarray:
    array = array.copy()
    array.flags.writeable = False
    return array


@pytest.mark.parametrize("odd", ["field of a packed record", "unaligned"])
def test_arrays_no_pointer_can_walk(env: Env, odd: str) -> None:
    """int32 values 6 bytes apart, or at an odd address: taken as they are or refused by name, never misread."""
    if odd == "unaligned":
        array = np.zeros(4 * ROWS + 1, np.uint8)[1:].view(np.int32)
    else:
        array = np.zeros(ROWS, np.dtype([("action", "<i4"), ("more", "<i2")]))["action"]
    array[:] = np.arange(ROWS) % 9
    saved, before = env.save(), everything(env)
    error = attempt(lambda: env.step(array), TypeError, ValueError)
    if error is not None:
        assert "actions" in str(error)
        assert everything(env) == before
        return
    after = everything(env)
    env.restore(saved)
    env.step(np.array(array))
    assert everything(env) == after


def test_actions_written_in_place_need_no_check_to_be_safe(env: Env) -> None:
    env.actions[:] = np.array([-(2**31), 2**31 - 1, 9] * 4, np.int32)
    saved = env.save()
    env.step()
    after = everything(env)
    env.restore(saved)
    env.step(env.actions.copy())
    assert everything(env) == after
