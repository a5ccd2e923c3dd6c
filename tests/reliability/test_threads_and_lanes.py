"""Results do not depend on the number of threads, on lanes, or on the order lanes are sent and received in."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import pytest
from random_games import Digest, quiet_make, scripted_actions

import gridmill
from gridmill import Env, Game
from gridmill.env import GameConfig
from gridmill.grid import AgentType, Ascii, ObjectType, RewardTerm, Stat

pytestmark = pytest.mark.D2

STEPS, WORLDS, LANES = 500, 16, 4


def crowd() -> Game:
    """Many agents in little room: who moves first decides nearly every tick."""
    return Game(
        name="crowd",
        num_agents=6,
        max_steps=70,
        map=Ascii(text="012#.@\n@.....\n.@#X.@\n@..@.@", legend={"X": "crate"}),
        resources=("ore",),
        vibes=("calm", "angry"),
        agent=AgentType(inventory={"ore": 300}),
        objects={"wall": ObjectType(), "crate": ObjectType(inventory={"ore": 5})},
        rewards=[RewardTerm(value=Stat(name="cell.visited"), weight=0.1)],
        reward_sharing=0.5,
    )


GAMES: dict[str, Callable[[], GameConfig]] = {
    "toy": lambda: gridmill.games.toy(num_agents=8, map_size=14, density=0.2, max_steps=120),
    "crowd": crowd,
    "corridor": gridmill.games.corridor,
}


def make(game: GameConfig, threads: int, lanes: int) -> Env:
    env = quiet_make(game, num_worlds=WORLDS, seed=3, threads=threads, lanes=lanes, masks=True, desync_episodes=True)
    env.reset()
    return env


def together(env: Env) -> Iterator[None]:
    for step in range(STEPS):
        env.step(scripted_actions(step, env.num_rows, env.num_actions))
        yield


def lanes_in_order(env: Env, sends: list[int], recvs: list[int]) -> Iterator[None]:
    for step in range(STEPS):
        env.actions[:] = scripted_actions(step, env.num_rows, env.num_actions)
        for lane in sends:
            env.send(lane)
        for lane in recvs:
            env.recv(lane)
        yield


def watch(env: Env, run: Iterator[None]) -> tuple[str, list[bytes]]:
    """One hash over all arrays and records, and every world's state hash at each 50th step."""
    digest, states = Digest(), []
    digest.add_arrays(env)
    for step, _ in enumerate(run):
        digest.add_arrays(env)
        if step % 50 == 49:
            states.append(env.state_hash().tobytes())
    digest.add_episodes(env)
    env.close()
    return digest.hex(), states


@pytest.fixture(scope="module", params=list(GAMES))
def game(request: pytest.FixtureRequest) -> GameConfig:
    return GAMES[request.param]()


@pytest.fixture(scope="module")
def alone(game: GameConfig) -> tuple[str, list[bytes]]:
    """The trajectory of one thread and one lane."""
    env = make(game, threads=1, lanes=1)
    seen = watch(env, together(env))
    assert len(set(seen[1])) == STEPS // 50
    return seen


@pytest.mark.parametrize("lanes", [1, 2, 4])
@pytest.mark.parametrize("threads", [1, 2, 4, 8])
def test_threads_and_lanes_do_not_matter(
    game: GameConfig, alone: tuple[str, list[bytes]], threads: int, lanes: int
) -> None:
    env = make(game, threads, lanes)
    assert watch(env, together(env)) == alone


@pytest.mark.parametrize(
    ("sends", "recvs"), [([0, 1, 2, 3], [3, 2, 1, 0]), ([2, 0, 3, 1], [0, 1, 2, 3]), ([3, 2, 1, 0], [1, 3, 0, 2])]
)
@pytest.mark.parametrize("threads", [1, 4])
def test_order_of_send_and_recv_does_not_matter(
    game: GameConfig, alone: tuple[str, list[bytes]], threads: int, sends: list[int], recvs: list[int]
) -> None:
    env = make(game, threads, LANES)
    assert watch(env, lanes_in_order(env, sends, recvs)) == alone


def lane_by_lane(game: GameConfig, threads: int, next_lane: Callable[[list[int]], int]) -> list[str]:
    """Each lane's own trajectory when lanes run ahead of one another as `next_lane` says."""
    env = make(game, threads, LANES)
    digests = [Digest() for _ in range(LANES)]
    done = [0] * LANES
    while min(done) < STEPS // 4:
        lane = next_lane(done)
        rows = env.rows(lane)
        env.actions[rows] = scripted_actions(done[lane], env.num_rows, env.num_actions)[rows]
        env.send(lane)
        env.recv(lane)
        digests[lane].add_arrays(env, rows)
        done[lane] += 1
    for digest, state in zip(digests, np.split(env.state_hash(), LANES), strict=True):
        digest.sha.update(state.tobytes())
    env.close()
    return [digest.hex() for digest in digests]


def test_a_lane_may_run_ahead(game: GameConfig) -> None:
    """All of lane 3 first, then 2, and so on, is the same as all lanes in step."""
    last_first = lane_by_lane(game, 2, lambda done: max(k for k in range(LANES) if done[k] < STEPS // 4))
    in_step = lane_by_lane(game, 1, lambda done: done.index(min(done)))
    assert last_first == in_step
    assert len(set(in_step)) == LANES


def test_records_come_in_the_same_order(game: GameConfig) -> None:
    taken = []
    for threads, lanes in ((1, 1), (4, 2), (2, 4)):
        env = make(game, threads, lanes)
        for _ in together(env):
            pass
        taken.append(env.take_episodes())
        env.close()
    assert len(taken[0]["world"]) > WORLDS
    for other in taken[1:]:
        assert all((taken[0][name] == other[name]).all() for name in taken[0])
