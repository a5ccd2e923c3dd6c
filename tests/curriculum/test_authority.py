"""What is chosen, learned, evicted and counted, on an env without worlds: scores are a function of the task."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gridmill import curriculum as room
from gridmill import games
from gridmill.curriculum import Curriculum, CurriculumConfig, Range, TaskSet, Values, record
from gridmill.curriculum.authority import AGAIN
from gridmill.curriculum.config import LEAST_SHARE
from gridmill.curriculum.pool import Played
from gridmill.env import GameConfig

ROOM = str(Path(room.__file__).parent)


class NoWorlds:
    """Takes games and assignments; `end` is what an env tells of worlds whose episodes have ended."""

    def __init__(self, worlds: int, agents: int = 1) -> None:
        self.num_worlds, self.num_agents = worlds, agents
        self.games: list[GameConfig] = [games.corridor()]
        self.playing, self.next = [0] * worlds, [-1] * worlds
        self.episode = [0] * worlds
        self.replaced = 0

    def add_game(self, game: GameConfig) -> int:
        self.games.append(game)
        return len(self.games) - 1

    def replace_game(self, number: int, game: GameConfig) -> None:
        assert number not in (*self.playing, *self.next), "a game that is played"
        self.games[number] = game
        self.replaced += 1

    def assign(self, worlds: Any, numbers: Any) -> None:
        worlds = list(worlds)
        for world, number in zip(worlds, [numbers] * len(worlds) if isinstance(numbers, int) else numbers, strict=True):
            self.next[world] = number

    def reset(self) -> None:
        self.playing = list(self.next)
        self.next = [-1] * self.num_worlds

    def end(self, worlds: list[int], score_of: Callable[[int, Any], float], desynced: bool = False) -> dict[str, Any]:
        """Records of these worlds' episodes; the worlds go on with what was assigned."""
        rows = [(w, a, self.playing[w], self.episode[w]) for w in worlds for a in range(self.num_agents)]
        world, agent, game, episode = np.array(rows, np.int64).reshape(-1, 4).T
        reached = np.array([score_of(w, self.games[self.playing[w]]) for w, *_ in rows])
        for w in worlds:
            self.playing[w], self.next[w] = self.next[w], -1
            self.episode[w] += 1
        flags = np.full(len(rows), desynced)
        return {"world": world, "agent": agent, "game": game, "episode": episode, "desynced": flags, "reached": reached}


LENGTHS = Values(path="length", values=(2, 3, 4))


def begun(env: NoWorlds, seed: int = 0, target: float = 0.9, **settings: Any) -> Curriculum:
    settings = {"sets": {"all": TaskSet(vary=(LENGTHS,), target=target)}} | settings
    found: Any = Curriculum(CurriculumConfig(**settings), games.corridor(), env, seed)  # type: ignore[arg-type]
    found.assign_first()
    env.reset()
    found.assign_next()
    return found  # type: ignore[no-any-return]


def episodes(curriculum: Curriculum, env: NoWorlds, count: int, score_of: Callable[[int, Any], float]) -> Counter[int]:
    """So many episodes of every world; the lengths that were played."""
    played: Counter[int] = Counter()
    worlds = list(range(env.num_worlds))
    for _ in range(count):
        played.update(env.games[env.playing[w]].length for w in worlds)  # type: ignore[attr-defined]
        records = env.end(worlds, score_of)
        curriculum.hand_out(worlds)
        assert curriculum.playing == env.playing
        assert curriculum.next == env.next
        curriculum.learn(records)
    return played


# ---- what is chosen


def test_the_rarest_set_that_may_be_is_found_among_its_draws() -> None:
    env = NoWorlds(4)
    sets = {
        "often": TaskSet(vary=(LENGTHS,), target=0.9, weight=(1 - LEAST_SHARE) / LEAST_SHARE),
        "rare": TaskSet(target=0.9),
    }
    curriculum = begun(env, sets=sets)
    assert len(curriculum.members["rare"]) == 1
    assert curriculum.drawn < 4 * AGAIN / LEAST_SHARE


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("noise", [0.0, 0.05])
def test_learning_progress_prefers_what_can_be_learned(seed: int, noise: float) -> None:
    """Trivial: always 1. Impossible: always 0. Learnable: grows with every episode of it. All with some noise."""
    env, rng = NoWorlds(8), np.random.default_rng(seed)
    curriculum = begun(env, seed)
    times: Counter[int] = Counter()

    def score_of(world: int, game: Any) -> float:
        times[game.length] += 1
        learned = {2: 1.0, 3: min(1.0, times[3] / 400), 4: 0.0}[game.length]
        return learned + (noise * float(rng.normal()) if learned else 0.0)

    played = episodes(curriculum, env, 40, score_of)
    assert played[3] > 0.6 * played.total()
    assert played[3] > (2.5 if noise else 4.0) * max(played[2], played[4])
    assert min(played[2], played[4]) > 0.02 * played.total()  # the floor of exploration
    chance = {row["task"]: row["chance"] for row in record(curriculum)["tasks"]}
    assert sum(chance.values()) == pytest.approx(1.0)
    assert max(chance, key=lambda task: chance[task]) == "all: length = 3"


def test_uniform_is_uniform_and_sets_keep_their_weights() -> None:
    env = NoWorlds(16)
    sets = {"one": TaskSet(vary=(LENGTHS,), weight=1.0, target=1.0), "two": TaskSet(weight=3.0, target=1.0)}
    curriculum = begun(env, sets=sets, choose="uniform", patience=3)
    played = episodes(curriculum, env, 300, lambda world, game: 0.5)
    total = played.total()
    for length, share in {2: 1 / 12, 3: 1 / 12, 4: 1 / 12, 8: 3 / 4}.items():  # 8 is the game as it stands
        assert abs(played[length] / total - share) < 5 * (share / total) ** 0.5 + 0.01
    assert curriculum.compiles == 4  # all tasks there are: nothing to evict for


def test_a_forgotten_task_comes_back() -> None:
    """Progress counts in both directions: scores that fall make a task worth playing again."""
    env = NoWorlds(8)
    curriculum = begun(env)
    fallen = False

    def score_of(world: int, game: Any) -> float:
        return 0.2 if fallen and game.length == 2 else 1.0

    before = episodes(curriculum, env, 30, score_of)
    fallen = True
    after = episodes(curriculum, env, 30, score_of)
    assert after[2] / after.total() > 1.5 * before[2] / before.total()


def test_the_scale_is_the_tasks_own() -> None:
    small, large = (Played(task=None, game=None, number=0) for _ in range(2))  # type: ignore[arg-type]
    config = CurriculumConfig()
    for k in range(20):
        small.add(0.001 * k, False, config)
        large.add(1_000.0 * k, False, config)
    assert small.progress == pytest.approx(large.progress)
    assert small.progress > 0.1


def test_averages_are_what_they_say() -> None:
    """Plain means until 1 / rate episodes, then each new score has its rate."""
    played = Played(task=None, game=None, number=0)  # type: ignore[arg-type]
    config = CurriculumConfig(fast=0.5, slow=0.25)
    scores = [3.0, 1.0, -4.0, 2.0, 7.0, 1.0]
    for score in scores:
        played.add(score, False, config)
    fast = (3.0 + 1.0) / 2
    for score in scores[2:]:
        fast = 0.5 * fast + 0.5 * score
    slow = sum(scores[:4]) / 4
    for score in scores[4:]:
        slow = 0.75 * slow + 0.25 * score
    assert (played.fast, played.slow, played.best) == (pytest.approx(fast), pytest.approx(slow), 7.0)
    assert played.progress == pytest.approx(abs(fast - slow) / 7.0)


# ---- what is counted


def test_the_score_is_by_the_tasks_own_game_and_a_mean_over_agents() -> None:
    env = NoWorlds(2, agents=3)
    own = games.corridor().replace("score.per", "tick")
    sets = {"own": TaskSet(game=own, vary=(LENGTHS,), target=0.1)}
    curriculum = begun(env, sets=sets)
    records = env.end([0, 1], lambda world, game: 1.0 + world)
    records["length"] = np.array([10, 20, 40, 10, 10, 10])
    playing = curriculum.playing.copy()
    curriculum.hand_out([0, 1])
    scores = curriculum.learn(records)
    assert scores.tolist() == pytest.approx([0.1, 0.05, 0.025, 0.2, 0.2, 0.2])
    first, second = (curriculum.programs[number] for number in playing)
    if first is second:
        assert first.best == pytest.approx(0.2)
    else:
        assert (first.fast, second.fast) == (pytest.approx(0.175 / 3), pytest.approx(0.2))
    assert curriculum.completed == 1  # 0.2 >= 0.1 > 0.0583


def test_desynced_and_incomplete_episodes_tell_nothing() -> None:
    env = NoWorlds(4, agents=2)
    curriculum = begun(env)
    records = env.end([0, 1, 2, 3], lambda world, game: 1.0, desynced=True)
    curriculum.hand_out([0, 1, 2, 3])
    curriculum.learn(records)
    assert curriculum.episodes == curriculum.completed == 0
    assert all(played.episodes == 0 for played in curriculum.pool)
    records = env.end([0, 1, 2, 3], lambda world, game: 1.0)
    curriculum.hand_out([0, 1, 2, 3])
    curriculum.learn({name: values[1:] for name, values in records.items()})  # the env dropped the oldest record
    assert curriculum.episodes == 3
    broken = env.end([0], lambda world, game: float("nan"))
    curriculum.hand_out([0])
    curriculum.learn(broken)
    assert curriculum.episodes == 3


def test_completed_tasks_are_counted() -> None:
    env = NoWorlds(3)
    curriculum = begun(env, target=0.5)
    episodes(curriculum, env, 10, lambda world, game: 0.5 if game.length == 3 else 0.4)
    threes = sum(played.episodes for played in curriculum.pool if played.task.values == (3,))
    assert curriculum.completed == threes > 0
    assert curriculum.metrics["curriculum/completed"] == threes
    shown = {row["task"]: (row["episodes"], row["completed"]) for row in record(curriculum)["tasks"]}
    assert shown["all: length = 3"] == (threes, threes)
    assert shown["all: length = 2"][1] == 0


# ---- what is evicted

MANY = {"all": TaskSet(vary=(Range(path="length", low=2, high=900_000),), target=0.9)}


def stays(world: int, game: Any) -> float:
    """A third of the tasks is learned, a third hopeless, a third goes up and down."""
    return {0: 1.0, 1: 0.0, 2: 0.5 + 0.5 * (world % 2)}[game.length % 3]


@pytest.mark.parametrize("choose", ["uniform", "learning_progress"])
def test_programs_do_not_pile_up(choose: str) -> None:
    env = NoWorlds(6)
    curriculum = begun(env, sets=MANY, choose=choose, tasks=10, tries=2, patience=4)
    episodes(curriculum, env, 400, stays)
    assert len(curriculum.pool) == 10
    assert len(env.games) <= 1 + 10 + 2 * 6
    assert env.replaced > 50
    assert curriculum.learned + curriculum.given_up == curriculum.compiles - 10
    assert curriculum.learned > 10
    assert curriculum.given_up > 10
    assert len(curriculum.keys) == 10
    used = Counter((*curriculum.playing, *curriculum.next))
    assert all(curriculum.programs[number].users == count for number, count in used.items())
    why = {row["why"] for row in curriculum.evicted}
    assert why == {"learned", "given up"}
    if choose == "learning_progress":
        for row in curriculum.evicted:
            assert row["progress"] < curriculum.config.least_progress
            assert row["episodes"] >= 4


def test_every_set_keeps_a_task() -> None:
    env = NoWorlds(4)
    sets = {
        "rare": TaskSet(vary=(Range(path="length", low=2, high=9),), weight=0.02, target=0.9),
        "one": TaskSet(weight=0.02, target=0.9),
        "common": MANY["all"],
    }
    curriculum = begun(env, sets=sets, tasks=5, tries=1, patience=1)
    episodes(curriculum, env, 200, lambda world, game: 0.0)
    assert all(curriculum.members.values())
    assert curriculum.members["one"]
    places = sorted(place for members in curriculum.members.values() for place in members)
    assert places == list(range(5))


def test_values_that_do_not_go_together_are_counted_and_left_out() -> None:
    env = NoWorlds(4)
    add, replace = env.add_game, env.replace_game

    def checked(game: Any) -> Any:
        if game.length == 3 and game.max_steps == 9:
            raise ValueError("too short for so long")
        return game

    env.add_game = lambda game: add(checked(game))  # type: ignore[method-assign]
    env.replace_game = lambda number, game: replace(number, checked(game))  # type: ignore[method-assign]
    steps = Values(path="max_steps", values=(9, 50))
    curriculum = begun(env, sets={"all": TaskSet(vary=(LENGTHS, steps), target=0.9)})
    episodes(curriculum, env, 20, stays)
    assert len(curriculum.pool) == 5
    assert curriculum.refused > 0
    assert "(all: length = 3, max_steps = 9): too short for so long" in curriculum.refusal


# ---- what it costs


def lines_per_episode(pool: int, choose: str) -> float:
    """Lines of this package that run for an episode, with a full pool and evictions."""
    env = NoWorlds(4)
    curriculum = begun(env, sets=MANY, choose=choose, tasks=pool, tries=2, patience=3)
    rng = np.random.default_rng(1)
    while len(curriculum.pool) < pool:
        episodes(curriculum, env, 1, stays)
    count = 0

    def local(frame: Any, event: str, argument: Any) -> Any:
        nonlocal count
        count += event == "line"
        return local

    before = curriculum.episodes
    sys.settrace(lambda frame, event, argument: local if frame.f_code.co_filename.startswith(ROOM) else None)
    try:
        episodes(curriculum, env, 150, lambda world, game: stays(world, game) + float(rng.random()) / 8)
    finally:
        sys.settrace(None)
    return count / (curriculum.episodes - before)


@pytest.mark.parametrize("choose", ["uniform", "learning_progress"])
def test_an_episode_costs_the_same_for_any_number_of_tasks(
    choose: str, record_property: Callable[[str, object], None]
) -> None:
    """Counted, not timed: lines that run; nothing in there goes over the pool in one line."""
    counts = {pool: lines_per_episode(pool, choose) for pool in (8, 128, 2_048)}
    record_property("figure", f"{choose}: lines per episode by tasks: {counts}")
    assert max(counts.values()) < 1.6 * min(counts.values()), counts
    assert max(counts.values()) < 400, counts


# ---- state


@pytest.mark.parametrize("choose", ["uniform", "learning_progress"])
def test_state_comes_back_equal(choose: str) -> None:
    """The same choices, programs and figures after going through plain data, whatever was there before."""
    settings: dict[str, Any] = {"sets": MANY, "choose": choose, "tasks": 10, "tries": 2, "patience": 4}
    one, other = NoWorlds(6), NoWorlds(6)
    first = begun(one, **settings)
    episodes(first, one, 60, stays)
    second = begun(other, **settings)
    episodes(second, other, 7, stays)
    second.restore(first.state())
    other.playing, other.next, other.episode = list(one.playing), list(one.next), list(one.episode)  # env.restore
    assert second.state() == first.state()
    assert record(second) == record(first)
    assert other.games[1:] == one.games[1:]
    assert episodes(first, one, 60, stays) == episodes(second, other, 60, stays)
    assert second.state() == first.state()
