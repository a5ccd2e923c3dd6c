"""Curriculum: the one authority that says which task each world plays next, and learns from every finished episode.

    in a rollout: worlds' episodes end, their next tasks begin; those after that are chosen   `hand_out`
    after it: scores of the episodes -> averages, evictions, new tasks, compiled              `learn`

Every world always knows its next task, so that an episode may be as short as a tick. The pool of tasks to choose from
is bounded and all of it is compiled; it begins with one task a world and grows by one with every episode until it is
full. A task that is evicted leaves its place in the pool at once, and its program when no world plays it any more. All
work is counted in episodes: none of it goes over the pool.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gridmill.config import ConfigError
from gridmill.curriculum.config import CurriculumConfig
from gridmill.curriculum.draws import bits, share
from gridmill.curriculum.levels import Levels
from gridmill.curriculum.pool import Part, Played, worlds_episodes
from gridmill.curriculum.record import task_record
from gridmill.curriculum.tasks import IDS, Tasks, compiled
from gridmill.env import Env, GameConfig

AGAIN = 16  # draws of a new task that is not in the pool, before that is left for later
REMEMBERED = 100  # evicted tasks that the report can show
_ID, _CHOICE = range(2)  # what a random number is for
COUNTERS = ("drawn", "compiles", "refused", "episodes", "completed", "learned", "given_up")


class Curriculum:
    """One for an env that has not been reset yet: `assign_first`, the reset, `assign_next`.

    Where several processes share the worlds, each has the whole of it and the same: every one of them learns from the
    episodes of all, hands out tasks to its own worlds, and is told what the others handed out (`handed_out`, `take`).
    Worlds are drawn for piece by piece, so that what a world gets does not depend on who has the others.
    """

    def __init__(
        self,
        config: CurriculumConfig,
        game: GameConfig,
        env: Env,
        seed: int = 0,
        stat: str = "",
        first_world: int = 0,
        all_worlds: int = 0,
        pieces: int = 1,
    ) -> None:
        self.config, self.env, self.seed, self.stat = config, env, seed, stat
        self.first, self.worlds = first_world, all_worlds or env.num_worlds
        self.handed_out: list[tuple[int, int]] = []  # worlds and numbers of programs, since they were last asked for
        self.tasks = Tasks(config, game)
        self.pool: list[Played] = []
        self.keys: set[tuple[Any, ...]] = set()  # of the tasks in the pool
        self.members: dict[str, list[int]] = {name: [] for name in self.tasks.sets}  # places of each set
        self.levels = Levels()  # by place
        self.programs: dict[int, Played] = {}  # by number; evicted ones too, until another takes the number
        spare = self.tasks.refuse_unfit(env)
        self.free: list[int] = [] if spare is None else [spare]  # numbers that no task needs
        self.playing, self.next = [-1] * self.worlds, [-1] * self.worlds  # numbers, by world
        self.choices = [0] * pieces  # how many were made for the worlds of each
        self.drawn = self.compiles = self.refused = 0
        self.episodes = self.completed = self.learned = self.given_up = 0
        self.refusal = ""  # the newest
        self.evicted: deque[dict[str, Any]] = deque(maxlen=REMEMBERED)
        self.metrics: dict[str, float] = {}  # of the newest epoch

    # ---- worlds

    def assign_first(self) -> None:
        """Before the env's first reset: a task for every world's first episode."""
        self._first_tasks()
        self.next = [self._choose(world) for world in range(self.worlds)]
        here = range(self.env.num_worlds)
        self.env.assign(here, [self.next[self.first + world] for world in here])

    def assign_next(self) -> None:
        """After the first reset: a task for every world's second episode."""
        self._begin(range(self.worlds))
        self.handed_out = []  # everybody did the same
        here = range(self.env.num_worlds)
        self.env.assign(here, [self.next[self.first + world] for world in here])

    def hand_out(self, worlds: Iterable[int]) -> None:
        """These worlds of the env have begun an episode with the task that was next: choose the one after it."""
        begun = list(worlds)
        self._begin([self.first + world for world in begun])
        self.env.assign(begun, [self.next[self.first + world] for world in begun])

    def _begin(self, worlds: Iterable[int]) -> None:
        for world in worlds:
            self._leave(self.playing[world])
            self.playing[world] = self.next[world]
            self.next[world] = self._choose(world)
            if self.worlds > self.env.num_worlds:
                self.handed_out.append((world, self.next[world]))

    def take(self, others: Iterable[Sequence[int]]) -> None:
        """What was handed out to worlds of other processes, each in its order; nobody's own need be told any more."""
        self.handed_out = []
        for world, number in others:
            self._leave(self.playing[world])
            self.playing[world], self.next[world] = self.next[world], number
            self.programs[number].users += 1
            self.choices[self._piece(world)] += 1
        if len(self.choices) > 1:
            self.free.sort()  # in whatever order they were left

    def _piece(self, world: int) -> int:
        return world * len(self.choices) // self.worlds

    def _leave(self, number: int) -> None:
        if number < 0:
            return
        played = self.programs[number]
        played.users -= 1
        if played.users == 0 and played.place < 0:
            self.free.append(number)

    def _choose(self, world: int) -> int:
        """The program to play: by progress or, for a share of the choices, by the sets' weights alone."""
        piece = self._piece(world)
        choice = self.choices[piece] + (piece << 48)
        self.choices[piece] += 1
        place: int | None = None
        if self.config.choose == "learning_progress" and share(self.seed, _CHOICE, choice, 0) >= self.config.explore:
            place = self.levels.draw(lambda i: share(self.seed, _CHOICE, choice, 3 + i))
        if place is None:
            members = self.members[self.tasks.set_at(share(self.seed, _CHOICE, choice, 1))]
            place = members[bits(self.seed, _CHOICE, choice, 2) % len(members)]
        self.pool[place].users += 1
        return self.pool[place].number

    # ---- what is learned

    def learn(self, episodes: Mapping[str, NDArray[Any]]) -> NDArray[np.float64]:
        """Take the records of finished episodes; the score of each, by its own task's game.

        First all scores, then what follows from them: a new task may take the number of one whose episode comes later.
        Episodes that were cut short at the start of a run tell nothing and are left out.
        """
        scores = np.zeros(len(episodes["world"]))
        ended: list[tuple[Played, float]] = []
        for first, last in worlds_episodes(episodes):
            played = self.programs[int(episodes["game"][first])]
            scores[first:last] = played.game.score_of(Part(episodes, first, last), self.stat)
            score = float(scores[first:last].mean())
            whole = last - first == self.env.num_agents and not episodes["desynced"][first]
            if whole and math.isfinite(score):  # a share of nothing is no number
                ended.append((played, score))
        before = self.completed
        of_sets: dict[str, list[float]] = {name: [] for name in self.tasks.sets}
        for played, score in ended:
            of_sets[played.task.set].append(score)
            self._add_score(played, score)
            self._grow()
        self.episodes += len(ended)
        self.metrics = self._metrics(self.completed - before, of_sets)
        return scores

    def _add_score(self, played: Played, score: float) -> None:
        completed = score >= self.tasks.sets[played.task.set].target
        self.completed += completed
        if played.place < 0:  # evicted while it was played
            return
        played.add(score, completed, self.config)
        self._weigh(played)
        over = self.config.choose == "uniform" or played.progress < self.config.least_progress
        if over and played.episodes >= self.config.patience and len(self.pool) < self.tasks.count:
            self._evict(played)

    def _weigh(self, played: Played) -> None:
        """A new task is worth a look; then its progress counts."""
        self.levels.set(played.place, 1.0 if played.episodes < self.config.tries else played.progress)

    def _metrics(self, completed: int, of_sets: Mapping[str, list[float]]) -> dict[str, float]:
        count = sum(map(len, of_sets.values()))
        found: dict[str, float] = {
            "tasks": len(self.pool),
            "programs": len(self.programs),
            "compiles": self.compiles,
            "refused": self.refused,
            "episodes": self.episodes,
            "completed": self.completed,
            "learned": self.learned,
            "given_up": self.given_up,
        }
        if count:
            found["completed_share"] = completed / count
        for name, scores in of_sets.items():
            if scores:
                found |= {f"score/{name}": sum(scores) / len(scores), f"share/{name}": len(scores) / count}
        return {f"curriculum/{name}": value for name, value in found.items()}

    # ---- the pool

    def _first_tasks(self) -> None:
        """One task of each set at least, and one for each world."""
        for name in self.tasks.sets:
            new = self._new_task(name)
            if new is None:
                why = f": {self.refusal}" if self.refusal else ""
                raise ConfigError(f"expected tasks that can be played, got none{why}", f"$.curriculum.sets.{name}")
            self._put(new, len(self.pool))
        for _ in range(self.worlds - len(self.pool)):
            self._grow()

    def _grow(self) -> None:
        if len(self.pool) < min(self.config.tasks, self.tasks.count):
            new = self._new_task()
            if new is not None:
                self._put(new, len(self.pool))

    def _new_task(self, of_set: str = "") -> Played | None:
        """A task that is not in the pool, compiled; None if a few draws found none. `of_set`: of this one only.

        A set has at least `LEAST_SHARE` of all weights, which bounds the draws that look for one of its tasks.
        """
        for _ in range(AGAIN if not of_set else math.ceil(4 * AGAIN / self.tasks.shares[of_set])):
            task = self.tasks.task(bits(self.seed, _ID, self.drawn) % IDS)
            self.drawn += 1
            if task.key in self.keys or of_set not in ("", task.set):
                continue
            try:
                game = self.tasks.game_of(task)
                number = compiled(self.env, game, self.free[-1] if self.free else None)
            except ValueError as error:  # values that are sound alone but not together
                self.refused += 1
                self.refusal = f"task {task.id} ({self.tasks.text(task)}): {' '.join(str(error).split())}"
                continue
            self.compiles += 1
            if self.free:
                self.free.pop()
            self.programs[number] = Played(task, game, number)
            return self.programs[number]
        return None

    def _put(self, new: Played, place: int) -> None:
        """A new task at a place of the pool: the next one, or one that was left."""
        if place == len(self.pool):
            self.pool.append(new)
        self.pool[place] = new
        members = self.members[new.task.set]
        new.place, new.in_set = place, len(members)
        members.append(place)
        self.keys.add(new.task.key)
        self._weigh(new)

    def _evict(self, old: Played) -> None:
        """Put a new task in the place of one, if there is another, and so that every set keeps a task."""
        name, members = old.task.set, self.members[old.task.set]
        only = len(members) == 1
        new = None if only and self.tasks.sets[name].count == 1 else self._new_task(name if only else "")
        if new is None:
            return
        last = members.pop()
        if last != old.place:
            members[old.in_set] = last
            self.pool[last].in_set = old.in_set
        self.keys.discard(old.task.key)
        learned = old.fast >= self.tasks.sets[name].target
        self.learned += learned
        self.given_up += not learned
        self.evicted.append(task_record(self.tasks, old) | {"why": "learned" if learned else "given up"})
        place, old.place = old.place, -1
        if old.users == 0:
            self.free.append(old.number)
        self._put(new, place)

    # ---- state

    def state(self) -> dict[str, Any]:
        """All that changes, as plain data; the worlds' own part of it is in the env's."""
        programs = [[p.number, p.task.id, p.place, p.in_set, *p.figures()] for p in self.programs.values()]
        return {
            "counters": [getattr(self, name) for name in COUNTERS],
            "choices": list(self.choices),
            "refusal": self.refusal,
            "programs": sorted(programs),
            "levels": self.levels.order(),
            "free": self.free,
            "playing": self.playing,
            "next": self.next,
            "evicted": list(self.evicted),
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Continue where this was taken; afterwards the env's state of then must be restored too."""
        worlds = range(self.env.num_worlds)
        self.env.assign(worlds, 0)
        self.env.reset()  # nobody plays a task, so that every program can become what it was
        there, ours, self.programs = len(self.env.games), self.programs, {}
        for number, id, *_ in state["programs"]:  # in order, so that new ones get the numbers they had
            task = self.tasks.task(id)
            game = self.tasks.game_of(task)
            if number not in ours or ours[number].task != task:
                compiled(self.env, game, number if number < there else None)
            self.programs[number] = Played(task, game, number)
        self._restore_pool(state)
        self.levels = Levels()
        for place in range(len(self.pool)):
            self.levels.set(place, 0.0)
        for place in state["levels"]:
            self._weigh(self.pool[place])
        self.free = list(state["free"])
        self.playing, self.next = list(state["playing"]), list(state["next"])
        for number in (*self.playing, *self.next):
            self.programs[number].users += 1
        counters = list(state["counters"])
        # A state of before has the choices among the counters; of another number of pieces, none is drawn twice.
        choices = state["choices"] if "choices" in state else [counters.pop(1)]
        self.choices = choices if len(choices) == len(self.choices) else [max(choices)] * len(self.choices)
        for name, value in zip(COUNTERS, counters, strict=True):
            setattr(self, name, value)
        self.refusal = state["refusal"]
        self.evicted = deque(state["evicted"], maxlen=REMEMBERED)

    def _restore_pool(self, state: Mapping[str, Any]) -> None:
        """Programs that have a place in the pool, and every list in the order it had."""
        for number, _, place, in_set, *figures in state["programs"]:
            played = self.programs[number]
            played.place, played.in_set = place, in_set
            played.take(figures)
        self.pool = sorted((p for p in self.programs.values() if p.place >= 0), key=lambda p: p.place)
        self.keys = {played.task.key for played in self.pool}
        self.members = {name: [] for name in self.tasks.sets}
        for played in sorted(self.pool, key=lambda p: p.in_set):
            self.members[played.task.set].append(played.place)
