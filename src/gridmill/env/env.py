"""Env: one native batch seen as NumPy arrays that are made once; the same for every game.

Python writes `actions` and reads the rest; what `step` returns are the same arrays every time. What only one kind of
game offers is in its own class (`grid.env`, `prospector.env`); `make` builds them.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable, Mapping, Sequence
from types import TracebackType
from typing import Any, Literal, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from gridmill import _native
from gridmill.config.text import clipped
from gridmill.env.arguments import not_negative, numbers, saved_bytes, seed_of, whole
from gridmill.env.episodes import Episodes
from gridmill.env.kind import GameConfig
from gridmill.env.scripts import Part, dealt
from gridmill.env.switches import FAST, PROFILING, VALIDATION, switch

BESIDE_PHASES = ("autoreset", "players", "teacher")  # what a step does beside the game's own phases
MOST_NAMED = 8  # games that a fault names: a curriculum has a thousand

MOST_SAID = 1000  # characters of an error of the core


class TracedPhase(NamedTuple):
    """One phase of one world's step: which worker and thread of the system, and when, in ns of the monotonic clock."""

    worker: int
    thread: int
    world: int
    phase: str
    begin: int
    end: int


class Step(NamedTuple):
    """What a step returns: arrays of the env, which the next step overwrites."""

    obs: npt.NDArray[Any]
    rewards: npt.NDArray[np.float32]
    terminals: npt.NDArray[np.bool_]
    truncations: npt.NDArray[np.bool_]


class Env:
    """Many worlds behind a handful of arrays; see `gridmill.make` for the arguments."""

    _batch: Any  # a Batch of the core, or what answers to the same names

    def __init__(self, batch: Any, games: Sequence[GameConfig], options: dict[str, Any]) -> None:
        self.teacher: str = options["teacher"]
        self.players: dict[str, Part] = options["players"]
        for game in games:
            self._expect_scripts(game)
        self._player_of_agent = dealt(self.players, games[0].num_agents, games[0].teams)
        trees, names = [game.core_tree() for game in games], [game.saved_name() for game in games]
        try:
            self._batch = batch(trees, names, **options | {"players": self._player_of_agent})
        except MemoryError:
            raise MemoryError(
                f"not enough memory for {options['num_worlds']} worlds of {clipped(games[0].name)}; lower num_worlds"
            ) from None
        except ValueError as error:
            if len(str(error)) <= MOST_SAID:
                raise
            raise ValueError(clipped(str(error), MOST_SAID)) from None  # names in a game may have any length
        self._games: list[GameConfig] = list(games)
        unsaid = {
            "num_worlds": 0,
            "lanes": 1,
            "desync_episodes": False,
            "min_first_episode": -1,
            "teacher": "",
            "players": {},
            "first_world": 0,
            "all_worlds": 0,
        }
        self._options = ", ".join(f"{k}={options[k]!r}" for k, usual in unsaid.items() if options[k] != usual)
        self.num_worlds: int = options["num_worlds"]
        self.threads: int = options["threads"]
        self.lanes: int = options["lanes"]
        self.profiling: bool = options["profiling"]
        self.validating: bool = options["validation"]
        self.num_agents: int = self._batch.num_agents
        self.num_actions: int = self._batch.num_actions
        self.num_rows = self.num_worlds * self.num_agents
        self._arrays: dict[str, Any] = self._batch.arrays()
        self._step = Step(self.obs, self.rewards, self.terminals, self.truncations)
        self.action_names: list[str] = []
        self.phases: tuple[str, ...] = tuple(self._batch.phases)
        self._stats: list[tuple[str, bool]] = self._batch.stats()
        self.stat_names: list[str] = [name for name, _ in self._stats]
        self._flying = 0  # lanes sent and not yet received
        acting = np.array([name != "" for name in self._player_of_agent], np.uint8)
        self.player_rows: npt.NDArray[np.uint8] = np.tile(acting, self.num_worlds)  # 1: a scripted player acts
        self.player_rows.flags.writeable = False

    def __repr__(self) -> str:
        more = len(self._games) - 1
        games = f"{self._games[0].name}{f' and {more} more' if more else ''}"
        worlds = f"{self.num_worlds} worlds x {self.num_agents} agents, {self.num_actions} actions"
        return f"<{type(self).__name__} {games}: {worlds}, obs {self.obs.dtype} {list(self.obs.shape)}>"

    # ---- the arrays: views of the core's memory, made once

    @property
    def obs(self) -> npt.NDArray[Any]:
        """What each agent sees: [rows, ...], of the game's own type."""
        return self._arrays["obs"]  # type: ignore[no-any-return]

    @property
    def final_obs(self) -> npt.NDArray[Any]:
        """Like obs, of the episode that ended; meaningful where terminals | truncations."""
        return self._arrays["final_obs"]  # type: ignore[no-any-return]

    @property
    def actions(self) -> npt.NDArray[np.int32]:
        """[rows], the only array to write into."""
        return self._arrays["actions"]  # type: ignore[no-any-return]

    @actions.setter
    def actions(self, value: Any) -> None:
        raise AttributeError("the array of actions is the core's own; write into it: env.actions[:] = ...")

    @property
    def rewards(self) -> npt.NDArray[np.float32]:
        """[rows], of the last tick."""
        return self._arrays["rewards"]  # type: ignore[no-any-return]

    @property
    def terminals(self) -> npt.NDArray[np.bool_]:
        """[rows]: the episode ended by the game's own rules."""
        return self._arrays["terminals"]  # type: ignore[no-any-return]

    @property
    def truncations(self) -> npt.NDArray[np.bool_]:
        """[rows]: the episode ended by its time limit."""
        return self._arrays["truncations"]  # type: ignore[no-any-return]

    @property
    def signal(self) -> npt.NDArray[np.float32] | None:
        """[rows], the signal of `make(signal=...)` for the last tick; None unless requested."""
        return self._arrays["signal"]  # type: ignore[no-any-return]

    @property
    def masks(self) -> npt.NDArray[np.uint8] | None:
        """[rows, actions]: 1 where an action would succeed; None unless requested."""
        return self._arrays["masks"]  # type: ignore[no-any-return]

    # ---- scripted agents

    @property
    def player_of_agent(self) -> list[str]:
        """The script that acts for each agent of a world; empty where the caller does."""
        return list(self._player_of_agent)

    @property
    def teacher_actions(self) -> npt.NDArray[np.int32]:
        """[rows], what the teacher would do given the current `obs`; in rows of players, what they will do."""
        if not self.teacher:
            raise ValueError("this env has no teacher: create it with teacher=NAME")
        return self._arrays["teacher_actions"]  # type: ignore[no-any-return]

    def teach(self, on: bool) -> None:
        """Switch the teacher. Off: it does not run and `teacher_actions` does not change; on again: it starts over."""
        if not self.teacher:
            raise ValueError("this env has no teacher: create it with teacher=NAME")
        self._batch.teach(bool(on))

    @property
    def teacher_calls(self) -> int:
        """How many rows the teacher has been run for since the env was created."""
        return int(self._batch.teacher_calls) if self.teacher else 0

    def weigh_signal(self, weights: Sequence[float]) -> None:
        """Set the weights of the signal's terms from now on, in their order."""
        self._batch.weigh_signal([float(weight) for weight in weights])

    # ---- stepping

    def reset(self, seed: int | None = None) -> npt.NDArray[Any]:
        """Start new episodes in all worlds, from a seed or else the next episode of each; returns the observations."""
        checked = None if seed is None else seed_of(seed)
        try:
            self._batch.reset(checked)
        except _native.WorldFault as fault:
            raise self._with_recipe(fault) from None
        return self.obs

    def step(self, actions: Any = None) -> Step:
        """One tick of every world. `actions` (int32 or int64, [rows]) are checked and copied in first.

        Returns the env's own `obs`, `rewards`, `terminals` and `truncations`; the next step overwrites them.
        """
        if actions is not None:
            self._write(actions)
        try:
            self._batch.step()
        except _native.WorldFault as fault:
            raise self._with_recipe(fault) from None
        self._stepped()
        return self._step

    def send(self, lane: int) -> None:
        """Start a lane's tick; until `recv` returns, its rows belong to the core."""
        self._batch.send(whole("lane", lane))
        self._flying += 1

    def recv(self, lane: int) -> None:
        """Wait for a lane that was sent, and help with its remaining work."""
        try:
            self._batch.recv(whole("lane", lane))
        except _native.WorldFault as fault:
            self._flying -= 1
            raise self._with_recipe(fault) from None
        self._flying -= 1
        if self._flying == 0:  # what workers count is theirs while a lane flies
            self._stepped()

    def rows(self, lane: int) -> slice:
        """The rows of a lane: a contiguous slice of every array."""
        if not 0 <= operator.index(lane) < self.lanes:
            raise ValueError(f"lane {lane} is not in [0, {self.lanes})")
        size = self.num_rows // self.lanes
        return slice(lane * size, (lane + 1) * size)

    def hold_ended(self) -> None:
        """From now on, a world whose episode ends stays as its last tick left it, so that it can be inspected.

        Until it is reset or restored, `step`, `send` and `save` are refused.
        """
        self._batch.hold_ended()

    def close(self) -> None:
        """Join the threads and free the worlds. Arrays that are still referenced stay readable."""
        self._batch.close()

    @property
    def closed(self) -> bool:
        return bool(self._batch.closed)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        self.close()

    # ---- episodes and games

    def take_episodes(self) -> Episodes:
        """Episodes finished since the last call, one entry per agent: where, how long, and every statistic."""
        heads, stats = self._batch.take_episodes()
        return Episodes.of(heads, stats, self._stats)

    @property
    def episodes_dropped(self) -> int:
        """Agent-episodes that were not taken in time: only the newest are kept."""
        return int(self._batch.episodes_dropped)

    @property
    def games(self) -> Sequence[GameConfig]:
        return list(self._games)

    def add_game(self, game: GameConfig) -> int:
        """Compile another game of the same shapes and vocabulary; the number is for `assign`."""
        self._refuse_other_kind(game)
        self._expect_scripts(game)
        index = int(self._batch.add_game(game.core_tree(), game.saved_name()))
        self._games.append(game)
        return index

    def replace_game(self, number: int, game: GameConfig) -> None:
        """Compile a game like `add_game`, in place of one that no world plays or will play next."""
        self._refuse_other_kind(game)
        self._expect_scripts(game)
        self._batch.replace_game(whole("game", number), game.core_tree(), game.saved_name())
        self._games[number] = game

    def assign(self, worlds: int | Iterable[int], games: int | Iterable[int]) -> None:
        """Give worlds a game, taken at each world's next reset and never in the middle of an episode.

        Lanes of other worlds may be in flight.
        """
        chosen, given = numbers("worlds", worlds), numbers("games", games)
        self._batch.assign(chosen, given * len(chosen) if isinstance(games, int | np.integer) else given)

    @property
    def game_of_world(self) -> npt.NDArray[np.int32]:
        """The game each world plays now."""
        found: npt.NDArray[np.int32] = self._batch.game_of_world()
        return found

    # ---- state

    def save(self, worlds: Iterable[int] | None = None) -> bytes:
        """The complete state of some worlds (default: all) as bytes, including their rows of the arrays."""
        return bytes(self._batch.save(self._worlds(worlds)))

    def restore(
        self, data: bytes | bytearray | memoryview, worlds: Iterable[int] | None = None, first: int | None = None
    ) -> None:
        """Restore saved worlds; one saved world may be forked into several.

        `first`: the number of the first saved world to use, if more were saved.
        """
        some = {} if first is None else {"first": not_negative("first", first)}
        self._batch.restore(saved_bytes(data), self._worlds(worlds), **some)

    def join_saved(self, parts: Sequence[bytes]) -> bytes:
        """Join the saved states of envs with the same games, as if one env had saved all of their worlds."""
        return bytes(self._batch.join_saved([saved_bytes(part) for part in parts]))

    def state_hash(self) -> npt.NDArray[np.uint64]:
        """A hash of each world's state; equal exactly if the states are equal."""
        found: npt.NDArray[np.uint64] = self._batch.state_hash()
        return found

    def reseed(self, worlds: Iterable[int], seeds: Iterable[int]) -> None:
        """Make worlds draw other random numbers from now on; the past does not change.

        This makes forks of one world differ; forks with the same seed draw the same numbers.
        """
        self._batch.reseed(self._worlds(worlds), [seed_of(seed) for seed in seeds])

    # ---- looking

    @property
    def obs_kind(self) -> Literal["tokens", "vector"]:
        """What a row of `obs` is."""
        return self._games[0].obs_kind

    def render(self, world: int = 0, mode: str = "ansi") -> Any:
        """A picture of one world: text for "ansi", an RGB array for "rgb_array"."""
        raise ValueError(f"{self._games[0].name} has no picture")

    def picture(self, world: int = 0, scale: int = 8, legend: bool = True) -> Any:
        """An RGB array [height, width, 3] of one world, optionally with a legend; the size is the same in all ticks."""
        raise ValueError(f"{self._games[0].name} has no picture")

    @property
    def observation_validation(self) -> Any:
        """Results of shadow validation; None when it is off or the game has none."""
        return None

    def vocabulary(self) -> dict[str, Any]:
        """What a policy must know about the observations beyond their kind, by the names of `policy.Spec`."""
        return {"obs_size": int(self.obs.shape[1])}

    def step_facts(self) -> dict[str, npt.NDArray[Any]]:
        """Facts about the last step of every world in addition to its reward, by name: each [worlds]."""
        return {}

    @property
    def bytes_per_world(self) -> int:
        """Native memory per world, not counting its rows of the arrays."""
        return int(self._batch.bytes_per_world)

    @property
    def step_timing(self) -> dict[str, int] | None:
        """ns per phase of the last step, added over worlds, with `autoreset`, `total` and `wall`; None when off."""
        return self._timing(self._batch.timing()) if self.profiling else None

    @property
    def step_timing_total(self) -> dict[str, int] | None:
        """Like `step_timing`, summed since the env was created, with the number of `steps`."""
        if not self.profiling:
            return None
        return self._timing(self._batch.timing_total()) | {"steps": int(self._batch.timed_steps)}

    def trace_phases(self, room: int) -> None:
        """From now on record when each worker ran which phase, up to `room` phases per worker; 0 stops it."""
        self._batch.trace(not_negative("room", room))

    def take_traced_phases(self) -> tuple[list[TracedPhase], int]:
        """The phases recorded since the last call, and how many did not fit."""
        rows, dropped = self._batch.take_trace()
        names = (*self.phases, *BESIDE_PHASES)
        return [TracedPhase(w, t, world, names[p], a, b) for w, t, world, p, a, b in rows.tolist()], int(dropped)

    # ---- inside

    def _refuse_other_kind(self, game: GameConfig) -> None:
        if type(game) is not type(self._games[0]):
            by_name = f"; a game by its name is gridmill.games.build({game!r:.60})" if isinstance(game, str) else ""
            raise TypeError(f"game: expected a {type(self._games[0]).__name__}, got {type(game).__name__}{by_name}")

    def _stepped(self) -> None:
        """After a step, when no lane is in flight."""

    def _write(self, actions: Any) -> None:
        array = actions if isinstance(actions, np.ndarray) else np.asarray(actions)
        if array.dtype not in (np.int32, np.int64):
            raise TypeError(f"actions must be int32 or int64, got {array.dtype}")
        if np.may_share_memory(array, self.actions):
            array = array.copy()  # a view of the actions themselves, such as their reverse
        self._batch.write_actions(array)

    def _worlds(self, worlds: Iterable[int] | None) -> list[int]:
        return list(range(self.num_worlds)) if worlds is None else numbers("worlds", worlds)

    def _with_recipe(self, fault: Exception) -> Exception:
        """The same fault with the way to see it again."""
        made = ", ".join(f"<the game {game.name!r}>" for game in self._games[:MOST_NAMED])
        more = len(self._games) - MOST_NAMED
        made = made if len(self._games) == 1 else f"[{made}, and {more} more]" if more > 0 else f"[{made}]"
        return _native.WorldFault(
            f"{fault}\nto see it again: env = gridmill.make({made}, {self._options}); "
            "env.reset(seed=<the seed above>); then the same actions up to that tick"
        )

    def _expect_scripts(self, game: GameConfig) -> None:
        if self.teacher:
            game.expect_script(self.teacher, "teacher")
        for name in self.players:
            game.expect_script(name, "players")

    def _timing(self, values: list[int]) -> dict[str, int]:
        *phases, wall = values
        named = dict(zip((*self.phases, *BESIDE_PHASES), phases, strict=True))
        absent = {name for name in ("players", "teacher") if not getattr(self, name)}
        shown = {name: ns for name, ns in named.items() if name not in absent}
        return shown | {"total": sum(shown.values()), "wall": wall}


def batch_options(
    num_worlds: int = 64,
    seed: int = 0,
    threads: int = 1,
    lanes: int = 1,
    masks: bool = False,
    desync_episodes: bool = False,
    min_first_episode: int | None = None,
    profiling: bool | None = None,
    validation: bool | None = None,
    teacher: str = "",
    players: Mapping[str, Part] | None = None,
    first_world: int = 0,
    all_worlds: int = 0,
) -> dict[str, Any]:
    """The arguments of a batch, checked; what is None comes from the environment variables or is off."""
    sizes = {"num_worlds": num_worlds, "seed": seed, "threads": threads, "lanes": lanes}
    sizes |= {"first_world": first_world, "all_worlds": all_worlds}
    if min_first_episode is not None:
        sizes["min_first_episode"] = min_first_episode
    for name, value in sizes.items():
        if isinstance(value, bool) or not isinstance(value, int | np.integer):
            raise TypeError(f"{name}: expected an int, got {value!r:.60}")
        if name != "seed" and not -(2**31) <= value < 2**31:  # the core says what it takes
            raise ValueError(f"{name}: expected an int below 2**31, got {value!r:.60}")
    for name, flag in {"masks": masks, "desync_episodes": desync_episodes}.items():
        if not isinstance(flag, bool | np.bool_):
            raise TypeError(f"{name}: expected True or False, got {flag!r}")
    if not 0 <= seed < 2**64:
        raise ValueError(f"seed: expected an int in [0, 2**64), got {seed!r:.60}")
    if not isinstance(teacher, str):
        raise TypeError(f"teacher: expected the name of a script, got {teacher!r}")
    if not isinstance(players, Mapping | None) or not all(isinstance(name, str) for name in players or ()):
        raise TypeError(f"players: expected shares of the agents by the names of scripts, got {players!r}")
    return {
        "num_worlds": int(num_worlds),
        "seed": int(seed),
        "threads": int(threads),
        "lanes": int(lanes),
        "masks": bool(masks),
        "desync_episodes": bool(desync_episodes),
        "min_first_episode": -1 if min_first_episode is None else int(min_first_episode),
        "profiling": switch(PROFILING, profiling, False),
        "validation": switch(VALIDATION, validation, False),
        "fast": switch(FAST, None, True),
        "teacher": teacher,
        "players": dict(players or {}),
        "signal": [],
        "first_world": int(first_world),
        "all_worlds": int(all_worlds),
    }
