"""Env: games compiled into one native batch, seen as NumPy arrays that are made once.

`make` is the door. Python writes `actions` and reads the rest; `step` returns nothing because the arrays are the
result. Adapters for other libraries' interfaces are in `faces`, pictures in `render`.
"""

from __future__ import annotations

import operator
import os
import sys
import warnings
from collections.abc import Iterable, Sequence
from types import TracebackType
from typing import Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from gridmill import _native, games
from gridmill.grid import Game
from gridmill.grid.first_pay import min_first_episode as own_min_first_episode

PHASES = tuple(_native.GridBatch.phases)


class Feature(NamedTuple):
    """A feature of the token observations; `value / normalizer` lies in about [0, 1]."""

    id: int
    name: str
    normalizer: float


class Token(NamedTuple):
    """One observed token by name; row and column are relative to the agent, None for a global token."""

    row: int | None
    column: int | None
    feature: str
    value: int
    text: str


class Validation(NamedTuple):
    """What shadow validation has seen so far; `ratio` is reference time over fast time."""

    comparisons: int
    mismatches: int
    fast_ns: int
    reference_ns: int
    ratio: float
    first_mismatch: dict[str, Any] | None


def _switch(name: str, given: bool | None, default: bool) -> bool:
    """An argument, or else an environment variable (0/1), or else the default."""
    if given is not None:
        return given
    text = os.environ.get(name, "")
    if text in ("", "0", "1"):
        return default if text == "" else text == "1"
    raise ValueError(f"{name}: expected 0 or 1, got {text!r}")


def make(
    game: str | Game | Sequence[str | Game],
    num_worlds: int = 64,
    seed: int = 0,
    threads: int = 1,
    lanes: int = 1,
    masks: bool = False,
    desync_episodes: bool = False,
    min_first_episode: int | None = None,
    profiling: bool | None = None,
    validation: bool | None = None,
) -> Env:
    """An environment of `num_worlds` worlds of one game, or of several games dealt out in turn.

    `desync_episodes` shortens each world's first episode by a different amount, never below `min_first_episode`;
    by default that is the tick by which every reward that can pay could have paid with one of each building.
    """
    if not isinstance(game, str | Game | Sequence):
        raise TypeError(f"game: expected a name, a Game or a list of them, got {type(game).__name__}")
    items = [game] if isinstance(game, str | Game) else list(game)
    if not items:
        raise ValueError("game: expected a name, a Game or a list of them, got an empty list")
    built = [games.build(item) if isinstance(item, str) else item for item in items]
    for item in built:
        if not isinstance(item, Game):
            raise TypeError(f"game: expected a name or a Game, got {type(item).__name__}")
    sizes = {"num_worlds": num_worlds, "seed": seed, "threads": threads, "lanes": lanes}
    if min_first_episode is not None:
        sizes["min_first_episode"] = min_first_episode
    for name, value in sizes.items():
        if isinstance(value, bool) or not isinstance(value, int | np.integer):
            raise TypeError(f"{name}: expected an int, got {value!r}")
    for name, flag in {"masks": masks, "desync_episodes": desync_episodes}.items():
        if not isinstance(flag, bool | np.bool_):
            raise TypeError(f"{name}: expected True or False, got {flag!r}")
    if not 0 <= seed < 2**64:
        raise ValueError(f"seed: expected an int in [0, 2**64), got {seed}")
    if threads > (os.cpu_count() or 1):
        warnings.warn(
            f"threads={threads} is more than the {os.cpu_count()} cores of this machine; results stay the same, "
            "speed will not gain",
            stacklevel=2,
        )
    if min_first_episode is None:
        # One number for the batch: what the slowest of its games needs; the core cuts it to each game's max_steps.
        min_first_episode = max(map(own_min_first_episode, built)) if desync_episodes else -1
    return Env(
        built,
        num_worlds=int(num_worlds),
        seed=int(seed),
        threads=int(threads),
        lanes=int(lanes),
        masks=bool(masks),
        desync_episodes=bool(desync_episodes),
        min_first_episode=int(min_first_episode),
        profiling=_switch("GRIDMILL_PROFILING", profiling, False),
        validation=_switch("GRIDMILL_OBS_VALIDATION", validation, False),
        fast=_switch("GRIDMILL_OBS_USE_OPTIMIZED", None, True),
    )


class Env:
    """Many worlds behind a handful of arrays; see `make` for the arguments."""

    def __init__(self, built: list[Game], **options: Any) -> None:
        trees = [game.tree() for game in built]
        self._batch = _native.GridBatch(trees, [_name_of(game) for game in built], **options)
        self._games = list(built)
        unsaid = {"num_worlds": 0, "lanes": 1, "desync_episodes": False, "min_first_episode": -1}
        self._options = ", ".join(f"{k}={options[k]}" for k, usual in unsaid.items() if options[k] != usual)
        self.num_worlds: int = options["num_worlds"]
        self.threads: int = options["threads"]
        self.lanes: int = options["lanes"]
        self.profiling: bool = options["profiling"]
        self.validating: bool = options["validation"]
        self.num_agents: int = self._batch.num_agents
        self.num_actions: int = self._batch.num_actions
        self.num_tokens: int = self._batch.num_tokens()
        self.num_rows = self.num_worlds * self.num_agents
        self.window: tuple[int, int] = self._batch.window()
        self._arrays: dict[str, Any] = self._batch.arrays()
        self.action_names: list[str] = self._batch.actions()
        self.features = [Feature(i, n, scale) for i, (n, scale) in enumerate(self._batch.features())]
        self.tags: list[str] = self._batch.tags()
        self.vibes: list[str] = self._batch.vibes()
        self.dense_channels: list[str] = self._batch.dense_channels()
        self.stat_names: list[str] = [name for name, _ in self._batch.stats()]
        self._stat_is_int = [integer for _, integer in self._batch.stats()]
        self._reported = 0
        self._flying = 0  # lanes sent and not yet received
        for index in range(len(built)):
            self._warn_of_overflow(index)

    # ---- the arrays: views of the core's memory, made once

    @property
    def obs(self) -> npt.NDArray[np.uint8]:
        """What each agent sees: [rows, tokens, 3]."""
        return self._arrays["obs"]  # type: ignore[no-any-return]

    @property
    def final_obs(self) -> npt.NDArray[np.uint8]:
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
    def masks(self) -> npt.NDArray[np.uint8] | None:
        """[rows, actions]: 1 where an action would succeed; None unless asked for."""
        return self._arrays["masks"]  # type: ignore[no-any-return]

    # ---- stepping

    def reset(self, seed: int | None = None) -> None:
        """Start new episodes everywhere: from a seed, or, without one, the next episode of each world."""
        if seed is not None and (isinstance(seed, bool) or not isinstance(seed, int | np.integer)):
            raise TypeError(f"seed: expected an int or None, got {seed!r}")
        if seed is not None and not 0 <= seed < 2**64:
            raise ValueError(f"seed: expected an int in [0, 2**64), got {seed}")
        try:
            self._batch.reset(None if seed is None else int(seed))
        except _native.WorldFault as fault:
            raise self._with_recipe(fault) from None

    def step(self, actions: Any = None) -> None:
        """One tick of every world. `actions` (int32 or int64, [rows]) are checked and copied in first."""
        if actions is not None:
            self._write(actions)
        try:
            self._batch.step()
        except _native.WorldFault as fault:
            raise self._with_recipe(fault) from None
        if self.validating:
            self._report_validation()

    def send(self, lane: int) -> None:
        """Start a lane's tick; until `recv` returns, its rows belong to the core."""
        self._batch.send(lane)
        self._flying += 1

    def recv(self, lane: int) -> None:
        """Wait for a lane that was sent, helping with what is left."""
        try:
            self._batch.recv(lane)
        except _native.WorldFault as fault:
            self._flying -= 1
            raise self._with_recipe(fault) from None
        self._flying -= 1
        if self.validating and self._flying == 0:  # what workers count is theirs while a lane flies
            self._report_validation()

    def rows(self, lane: int) -> slice:
        """The rows of a lane: a contiguous slice of every array."""
        if not 0 <= operator.index(lane) < self.lanes:
            raise ValueError(f"lane {lane} is not in [0, {self.lanes})")
        size = self.num_rows // self.lanes
        return slice(lane * size, (lane + 1) * size)

    def close(self) -> None:
        """Join the threads and free the worlds. Arrays someone holds stay readable."""
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

    def take_episodes(self) -> dict[str, npt.NDArray[Any]]:
        """Episodes finished since the last call, one entry per agent: where, how long, and every statistic."""
        heads, stats = self._batch.take_episodes()
        names = ("world", "agent", "game", "episode", "length", "short_first")
        taken: dict[str, npt.NDArray[Any]] = {name: heads[:, i] for i, name in enumerate(names)}
        taken["short_first"] = taken["short_first"].astype(bool)
        for i, (name, integer) in enumerate(zip(self.stat_names, self._stat_is_int, strict=True)):
            taken[name] = stats[:, i].astype(np.int64) if integer else stats[:, i].copy()
        return taken

    @property
    def episodes_dropped(self) -> int:
        """Agent-episodes that were not taken in time: only the newest are kept."""
        return int(self._batch.episodes_dropped)

    @property
    def games(self) -> list[Game]:
        return list(self._games)

    def add_game(self, game: str | Game) -> int:
        """Compile another game of the same shapes and words; the number is for `assign`."""
        game = games.build(game) if isinstance(game, str) else game
        index = int(self._batch.add_game(game.tree(), _name_of(game)))
        self._games.append(game)
        self._warn_of_overflow(index)
        return index

    def assign(self, worlds: int | Iterable[int], games: int | Iterable[int]) -> None:
        """Give worlds a game, taken at each world's next reset and never in the middle of an episode."""
        chosen = [int(worlds)] if isinstance(worlds, int | np.integer) else [operator.index(w) for w in worlds]
        given = (
            [int(games)] * len(chosen) if isinstance(games, int | np.integer) else [operator.index(g) for g in games]
        )
        self._batch.assign(chosen, given)

    @property
    def game_of_world(self) -> npt.NDArray[np.int32]:
        """The game each world plays now."""
        return self._batch.game_of_world()

    # ---- state

    def save(self, worlds: Iterable[int] | None = None) -> bytes:
        """The whole state of some worlds (default: all) as bytes, rows of the arrays included."""
        return self._batch.save(self._worlds(worlds))

    def restore(self, data: bytes, worlds: Iterable[int] | None = None) -> None:
        """Put saved worlds back; one saved world may be forked into several."""
        self._batch.restore(data, self._worlds(worlds))

    def state_hash(self) -> npt.NDArray[np.uint64]:
        """A hash of each world's state, equal exactly when the states are."""
        return self._batch.state_hash()

    # ---- looking

    def decode(self, row: int) -> list[Token]:
        """The tokens of one row of `obs` by name."""
        return [Token(*token) for token in self._batch.describe_row(row)]

    def dense(self) -> npt.NDArray[np.uint8]:
        """`obs` as a dense box [rows, channels, height, width]; `dense_channels` names the planes."""
        return self._batch.dense()

    def inspect(self, world: int = 0) -> dict[str, Any]:
        """One world by name: its clock and every object with place, tags, vibe and inventory."""
        return self._batch.inspect(world)

    @property
    def bytes_per_world(self) -> int:
        """Native memory per world beside its rows of the arrays."""
        return int(self._batch.bytes_per_world)

    @property
    def step_timing(self) -> dict[str, int] | None:
        """ns per phase of the last step, added over worlds, with `autoreset`, `total` and `wall`; None when off."""
        return _timing(self._batch.timing()) if self.profiling else None

    @property
    def step_timing_total(self) -> dict[str, int] | None:
        """Like `step_timing`, added up since the env was made, with the number of `steps`."""
        if not self.profiling:
            return None
        return _timing(self._batch.timing_total()) | {"steps": int(self._batch.timed_steps)}

    @property
    def observation_validation(self) -> Validation | None:
        """What shadow validation has found; None when it is off."""
        if not self.validating:
            return None
        report = self._batch.validation()
        first = report["first_mismatch"]
        if first is not None:
            first = first | {side: [Token(*t) for t in first[side]] for side in ("fast", "reference")}
        ratio = report["reference_ns"] / max(1, report["fast_ns"])
        return Validation(
            report["comparisons"],
            report["mismatches"],
            report["fast_ns"],
            report["reference_ns"],
            ratio,
            first,
        )

    # ---- inside

    def _write(self, actions: Any) -> None:
        array = actions if isinstance(actions, np.ndarray) else np.asarray(actions)
        if array.dtype not in (np.int32, np.int64):
            raise TypeError(f"actions must be int32 or int64, got {array.dtype}")
        if np.may_share_memory(array, self.actions):
            array = array.copy()  # a view of the actions themselves, such as their reverse
        self._batch.write_actions(array)

    def _worlds(self, worlds: Iterable[int] | None) -> list[int]:
        return list(range(self.num_worlds)) if worlds is None else [operator.index(w) for w in worlds]

    def _warn_of_overflow(self, index: int) -> None:
        worst = int(self._batch.worst_tokens(index))
        game = self._games[index]
        if worst > self.num_tokens and game.observation.overflow == "warn":
            warnings.warn(
                f"{game.name}: an agent could see {worst} tokens at worst, more than "
                f"observation.num_tokens = {self.num_tokens}; the nearest are kept and the rest is counted as "
                "tokens_dropped (observation.overflow = 'drop' says that this is fine)",
                TokenBudgetWarning,
                stacklevel=4,
            )

    def _with_recipe(self, fault: Exception) -> Exception:
        """The same fault with the way to see it again."""
        shipped = [name for name in games.names() if any(game == games.build(name) for game in self._games)]
        calls = [repr(game.name) if game.name in shipped else f"<your game {game.name!r}>" for game in self._games]
        made = calls[0] if len(calls) == 1 else f"[{', '.join(calls)}]"
        return _native.WorldFault(
            f"{fault}\nto see it again: env = gridmill.make({made}, {self._options}); "
            "env.reset(seed=<the seed above>); then the same actions up to that tick"
        )

    def _report_validation(self) -> None:
        """Progress on stderr at 1 000, 10 000 and every 100 000 comparisons; the core never prints."""
        report = self._batch.validation()
        count = report["comparisons"]
        marks = [mark for mark in (1_000, 10_000, count // 100_000 * 100_000) if self._reported < mark <= count]
        if marks:
            self._reported = marks[-1]
            print(
                f"observation validation: {count} comparisons, {report['mismatches']} mismatches, reference takes "
                f"{report['reference_ns'] / max(1, report['fast_ns']):.1f}x the time",
                file=sys.stderr,
            )


class TokenBudgetWarning(UserWarning):
    """A game could show more tokens than a row has room for."""


def _name_of(game: Game) -> str:
    """What a saved state calls a game: for people the name, for the machine the fingerprint."""
    return f"{game.name} {game.fingerprint()}"


def _timing(values: list[int]) -> dict[str, int]:
    *phases, wall = values
    named = dict(zip((*PHASES, "autoreset"), phases, strict=True))
    return named | {"total": sum(phases), "wall": wall}
