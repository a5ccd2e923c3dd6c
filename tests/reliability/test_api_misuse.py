"""Calls in the wrong order, from the wrong thread, after close and after fork raise; nothing ever crashes.

The state machine at the end draws whole histories of calls and knows after each of them what must be refused.
What could take the process down with it is in `test_forks_and_exits`.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule, run_state_machine_as_test
from random_games import attempt, quiet_make

import gridmill
from gridmill import Env

pytestmark = pytest.mark.F6

GAME = gridmill.games.toy(num_agents=2, map_size=8, max_steps=5)
LANES, WORLDS = 2, 4
ROWS = WORLDS * 2


def fresh(threads: int = 1, **options: Any) -> Env:
    return quiet_make(GAME, num_worlds=WORLDS, lanes=LANES, threads=threads, **options)


def started(threads: int = 1) -> Env:
    env = fresh(threads)
    env.reset()
    return env


BEFORE_RESET = {
    "step": lambda env: env.step(),
    "step with actions": lambda env: env.step(np.zeros(ROWS, np.int32)),
    "send": lambda env: env.send(0),
    "save": lambda env: env.save(),
    "state_hash": lambda env: env.state_hash(),
    "inspect": lambda env: env.inspect(0),
    "decode": lambda env: env.decode(0),
    "dense": lambda env: env.dense(),
}
ALL_CALLS: dict[str, Callable[[Env], Any]] = BEFORE_RESET | {
    "reset": lambda env: env.reset(),
    "reset with a seed": lambda env: env.reset(seed=3),
    "take_episodes": lambda env: env.take_episodes(),
    "assign": lambda env: env.assign([0, 1, 2, 3], [0, 0, 0, 0]),
    "add_game": lambda env: env.add_game(GAME.replace("name", "another")),
    "replace_game": lambda env: env.replace_game(0, GAME.replace("name", "another")),
    "game_of_world": lambda env: env.game_of_world,
    "restore": lambda env: env.restore(SAVED),
}
SAVED = started().save()
BITS = "{}: expected an int of at most 64 bits, got 67 bits"


@pytest.mark.parametrize("call", BEFORE_RESET)
def test_before_reset(call: str) -> None:
    env = fresh()
    with pytest.raises(RuntimeError, match=r"^call reset\(\) before the first step$"):
        BEFORE_RESET[call](env)
    env.reset()
    env.step()
    env.close()


@pytest.mark.parametrize("call", [*ALL_CALLS, "recv"])
def test_after_close(call: str) -> None:
    env = started()
    env.close()
    assert env.closed
    with pytest.raises(RuntimeError, match=r"^this env is closed$"):
        env.recv(0) if call == "recv" else ALL_CALLS[call](env)
    env.close()


@pytest.mark.parametrize("call", ALL_CALLS)
@pytest.mark.parametrize("threads", [1, 3])
def test_while_a_lane_is_in_flight(call: str, threads: int) -> None:
    env = started(threads)
    env.send(1)
    if call == "send":
        env.send(0)  # another lane may be sent
        env.recv(0)
    else:
        with pytest.raises(RuntimeError, match=r"while lane 1 is in flight; call recv\(1\) first$"):
            ALL_CALLS[call](env)
    env.recv(1)
    env.send(0)
    env.recv(0)
    env.step()
    env.close()


def test_send_twice_and_recv_without_send() -> None:
    env = started()
    with pytest.raises(RuntimeError, match=r"^recv\(0\): nothing was sent to this lane; call send\(0\) first$"):
        env.recv(0)
    env.send(0)
    with pytest.raises(RuntimeError, match=r"^send\(0\): this lane is already in flight; call recv\(0\) first$"):
        env.send(0)
    env.recv(0)
    with pytest.raises(RuntimeError, match="nothing was sent"):
        env.recv(0)
    env.close()


@pytest.mark.parametrize("lane", [-1, 2, 99, 2**31 - 1])
def test_lanes_that_do_not_exist(lane: int) -> None:
    with started() as env:
        for call in (env.send, env.recv, env.rows):
            with pytest.raises(ValueError, match=rf"^lane {lane} is not in \[0, 2\)$"):
                call(lane)
        env.step()


@pytest.mark.parametrize("lane", [2**40, -(2**70), 0.5, "0", None])
def test_lanes_that_are_no_lanes(lane: Any) -> None:
    with started() as env:
        for call in (env.send, env.recv):
            with pytest.raises((TypeError, ValueError)):
                call(lane)
        env.step()


@pytest.mark.parametrize("worlds", [[-1], [4], [2**40], [0, 1, 2, 9]])
def test_worlds_that_do_not_exist(worlds: list[int]) -> None:
    with started() as env:
        before = env.state_hash().tolist()
        for call in (
            env.save,
            lambda w: env.restore(SAVED, w),
            lambda w: env.assign(w, 0),
            lambda w: env.inspect(w[-1]),
        ):
            with pytest.raises(ValueError, match=r"^world -?\d+ is not in \[0, 4\)$"):
                call(worlds)
        assert env.state_hash().tolist() == before


HUGE = 10**20
NO_ARGUMENTS: dict[str, tuple[Callable[[Any], Any], str]] = {
    "restore from no bytes": (lambda env: env.restore(None), "expected the bytes that `save` returned, got NoneType"),
    "restore from a text": (lambda env: env.restore("a"), "expected the bytes that `save` returned, got str"),
    "restore from too far": (lambda env: env.restore(SAVED, first=HUGE), BITS.format("first")),
    "trace of less than nothing": (
        lambda env: env.trace_phases(-1),
        "room: expected an int of at least 0, got -1",
    ),
    "restore from before": (lambda env: env.restore(SAVED, first=-1), "first: expected an int of at least 0, got -1"),
    "restore too many": (lambda env: env.restore(SAVED, [HUGE]), BITS.format("worlds")),
    "join no bytes": (lambda env: env.join_saved([3]), "expected the bytes that `save` returned, got int"),
    "save no world": (lambda env: env.save([None]), "worlds: expected an int, got None"),
    "assign too many": (lambda env: env.assign(HUGE, 0), BITS.format("worlds")),
    "assign a far game": (lambda env: env.assign(0, HUGE), BITS.format("games")),
    "assign no numbers": (lambda env: env.assign(None, 0), "worlds: expected an int or ints, got None"),
    "decode a name": (lambda env: env.decode("a"), "row: expected an int, got 'a'"),
    "decode too far": (lambda env: env.decode(HUGE), BITS.format("row")),
    "inspect a name": (lambda env: env.inspect("a"), "world: expected an int, got 'a'"),
    "tokens of no game": (lambda env: env.worst_tokens(1), "game 1 is not in [0, 1)"),
    "seed below zero": (lambda env: env.reseed([0], [-1]), "seed: expected an int in [0, 2**64), got -1"),
    "send a name": (lambda env: env.send("a"), "lane: expected an int, got 'a'"),
    "dense of a number": (lambda env: env.dense(rows=-1), "rows: expected an array of uint8, got int"),
    "dense of a row": (lambda env: env.dense(env.obs[0]), "rows: expected 3 dimensions, got 2"),
    "dense into floats": (
        lambda env: env.dense_into(np.zeros((1, 1, 1, 1))),
        "out: expected an array of uint8, got one of float64",
    ),
    "dense into gaps": (
        lambda env: env.dense(out=np.zeros((2, 2, 2, 2), np.uint8)[:, ::2]),
        "out: expected a writable array without gaps (C-contiguous)",
    ),
    "a game of a million letters": (
        lambda env: env.add_game("x" * 1_000_000),
        f"game: expected a Game, got str; a game by its name is gridmill.games.build('{'x' * 59})",
    ),
}


@pytest.mark.parametrize("name", NO_ARGUMENTS)
def test_arguments_that_are_none_are_refused_by_name(name: str) -> None:
    """Not with the signature of a binding, and nothing has changed."""
    call, said = NO_ARGUMENTS[name]
    with started() as env:
        before = env.state_hash().tolist()
        with pytest.raises((TypeError, ValueError)) as caught:
            call(env)
        assert str(caught.value) == said
        assert env.state_hash().tolist() == before


def test_a_copy_of_what_was_saved_is_restored() -> None:
    with started() as env:
        saved, before = env.save(), env.state_hash().tolist()
        for copy in (bytearray(saved), memoryview(saved)):
            env.step()
            env.restore(copy)
            assert env.state_hash().tolist() == before


def test_rows_and_games_that_do_not_exist() -> None:
    with started() as env:
        for row in (-1, ROWS, 2**40):
            with pytest.raises(ValueError, match=rf"^row {row} is not in \[0, 8\)$"):
                env.decode(row)
        with pytest.raises(ValueError, match=r"^assign: game 1 is not in \[0, 1\); add_game\(\) returns the number$"):
            env.assign([0], [1])
        with pytest.raises(ValueError, match=r"^assign: 2 worlds but 1 games$"):
            env.assign([0, 1], [0])
        with pytest.raises(
            ValueError, match=r"^replace_game: game 1 is not in \[0, 1\); add_game\(\) returns the number$"
        ):
            env.replace_game(1, GAME)
        with pytest.raises(
            ValueError, match=r"^replace_game: expected a game that no world plays, but game 0 is played by"
        ):
            env.replace_game(0, GAME)
        env.send(1)
        env.assign([0], [0])  # worlds of a lane that is not in flight
        env.recv(1)


@pytest.mark.parametrize("seed", [-1, 2**64, 1.5, "7", True])
def test_seeds_that_are_no_seeds(seed: Any) -> None:
    env = fresh()
    with pytest.raises((TypeError, ValueError), match=r"^seed: expected an int"):
        env.reset(seed=seed)
    with pytest.raises((TypeError, ValueError), match=r"^seed: expected an int"):
        gridmill.make(GAME, seed=seed)
    env.reset()
    env.close()


@pytest.mark.parametrize(
    ("options", "error", "text"),
    [
        ({"num_worlds": 0}, ValueError, r"num_worlds: expected an int in \[1, 16777216\], got 0"),
        ({"num_worlds": -1}, ValueError, r"num_worlds: expected an int in \[1, 16777216\], got -1"),
        ({"num_worlds": 2.0}, TypeError, r"num_worlds: expected an int, got 2.0"),
        ({"threads": 0}, ValueError, r"threads: expected an int in \[1, 1024\], got 0"),
        ({"lanes": 0}, ValueError, r"lanes: expected an int in \[1, 64\], got 0"),
        ({"num_worlds": 6, "lanes": 4}, ValueError, "num_worlds must be a multiple of lanes: expected a multiple of 4"),
        ({"min_first_episode": 2.7}, TypeError, "min_first_episode: expected an int"),
        ({"masks": "no"}, TypeError, "masks: expected"),
        ({"desync_episodes": 1.5}, TypeError, "desync_episodes: expected"),
        ({"min_first_episode": -2}, ValueError, r"min_first_episode: expected an int in \[-1, 1000000000\], got -2"),
        ({"num_worlds": 2**24}, ValueError, r"not enough memory: 16777216 worlds x \(\d+ bytes of state \+ 2 rows"),
    ],
)  # fmt: skip
def test_sizes_that_cannot_be(options: dict[str, Any], error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=f"^{text}"):
        quiet_make(GAME, **options)


def test_close_in_every_state() -> None:
    """Before reset, twice, with lanes in flight, inside a `with`, by leaving it to the collector."""
    fresh(2).close()
    for in_flight in ([], [0], [0, 1]):
        env = started(3)
        for lane in in_flight:
            env.send(lane)
        env.close()
        env.close()
    with started(2) as env:
        env.send(0)
    assert env.closed
    env = started(2)
    env.send(0)
    env.send(1)
    del env


def test_arrays_are_readable_after_close_and_del() -> None:
    env = started(2)
    env.step()
    arrays = [env.obs, env.final_obs, env.actions, env.rewards, env.terminals, env.truncations]
    before = [a.tobytes() for a in arrays]
    env.close()
    assert [a.tobytes() for a in arrays] == before
    del env
    assert [a.tobytes() for a in arrays] == before
    arrays[2][:] = 5  # writing to what nobody steps any more harms nobody
    assert (arrays[2] == 5).all()


def test_two_threads_at_once() -> None:
    """Two threads on one env: each call works or is refused with a RuntimeError, and the env survives."""
    env = quiet_make("toy", num_worlds=32, threads=2)
    env.reset()
    refused, done, other = [], [], []

    def hammer() -> None:
        for _ in range(200):
            try:
                env.step()
                done.append(1)
            except RuntimeError as error:
                refused.append(str(error))
            except BaseException as error:
                other.append(error)

    hammers = [threading.Thread(target=hammer) for _ in range(4)]
    for thread in hammers:
        thread.start()
    for thread in hammers:
        thread.join()
    assert not other
    assert set(refused) <= {"this env is being used by another thread; only one thread may use it at a time"}
    assert len(done) + len(refused) == 800
    assert done
    env.step()
    assert env.inspect(0)["tick"] == (len(done) + 1) % 1000
    env.close()


def test_close_while_another_thread_steps() -> None:
    for _ in range(20):
        env = quiet_make("toy", num_worlds=16, threads=2)
        env.reset()
        failures: list[BaseException] = []
        begun = threading.Event()

        def run(env: Env = env, begun: threading.Event = begun, failures: list[BaseException] = failures) -> None:
            try:
                while True:
                    env.step()
                    begun.set()
            except RuntimeError as error:
                failures.append(error)

        thread = threading.Thread(target=run)
        thread.start()
        begun.wait()
        while (error := attempt(env.close, RuntimeError)) is not None:
            assert "another thread" in str(error)
        thread.join()
        assert str(failures[0]) in (
            "this env is closed",
            "this env is being used by another thread; only one thread may use it at a time",
        )
        env.close()


class Misuse(RuleBasedStateMachine):
    """Random histories of calls on one env; the model is four facts."""

    @initialize(threads=st.integers(1, 3), masks=st.booleans())
    def begin(self, threads: int, masks: bool) -> None:
        self.env = fresh(threads, masks=masks)
        self.ready, self.closed = False, False
        self.in_flight: set[int] = set()
        self.saved: bytes | None = None

    def expect(self, call: Callable[[], Any], needs_reset: bool = True) -> Any:
        """Does the call; it must work or be refused as the model says."""
        if self.closed or self.in_flight or (needs_reset and not self.ready):
            with pytest.raises(RuntimeError):
                call()
            return None
        return call()

    @rule(seed=st.one_of(st.none(), st.integers(0, 5)))
    def reset(self, seed: int | None) -> None:
        self.expect(lambda: self.env.reset(seed=seed), needs_reset=False)
        self.ready = self.ready or not (self.closed or self.in_flight)

    @rule(given=st.booleans())
    def step(self, given: bool) -> None:
        self.expect(lambda: self.env.step(np.ones(ROWS, np.int64) if given else None))

    @rule(lane=st.integers(0, LANES - 1))
    def send(self, lane: int) -> None:
        if self.closed or not self.ready or lane in self.in_flight:
            with pytest.raises(RuntimeError):
                self.env.send(lane)
            return
        self.env.send(lane)
        self.in_flight.add(lane)

    @rule(lane=st.integers(0, LANES - 1))
    def recv(self, lane: int) -> None:
        if self.closed or lane not in self.in_flight:
            with pytest.raises(RuntimeError):
                self.env.recv(lane)
            return
        self.env.recv(lane)
        self.in_flight.discard(lane)

    @rule()
    def save(self) -> None:
        self.saved = self.expect(self.env.save) or self.saved

    @rule()
    def restore(self) -> None:
        if self.saved is not None:
            self.expect(lambda: self.env.restore(self.saved), needs_reset=False)

    @rule(name=st.sampled_from(sorted(BEFORE_RESET.keys() - {"send"})))
    def look(self, name: str) -> None:
        self.expect(lambda: BEFORE_RESET[name](self.env))

    @rule(name=st.sampled_from(["take_episodes", "assign", "game_of_world"]))
    def ask(self, name: str) -> None:
        self.expect(lambda: ALL_CALLS[name](self.env), needs_reset=False)

    @rule()
    def close(self) -> None:
        self.env.close()
        self.closed, self.in_flight = True, set()
        assert self.env.obs.shape == (ROWS, 200, 3)

    def teardown(self) -> None:
        if hasattr(self, "env"):
            self.env.close()


def test_500_random_histories() -> None:
    run_state_machine_as_test(Misuse, settings=settings(max_examples=500, stateful_step_count=30))


@pytest.mark.long
def test_2000_random_histories() -> None:
    run_state_machine_as_test(Misuse, settings=settings(max_examples=2_000, stateful_step_count=30))
