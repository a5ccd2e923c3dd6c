"""Env: one native batch seen as NumPy arrays that are made once; the same for every game.

Python writes `actions` and reads the rest; `step` returns nothing because the arrays are the result. What only one
kind of game offers is in `env`, where `make` is; adapters for other libraries' interfaces are in `faces`.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable, Sequence
from types import TracebackType
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from gridmill import _native, games
from gridmill.games import AnyGame


class Env:
    """Many worlds behind a handful of arrays; see `gridmill.make` for the arguments."""

    _batch: _native.GridBatch | _native.ProspectorBatch

    def __init__(self, batch: Any, built: Sequence[AnyGame], options: dict[str, Any]) -> None:
        self._batch = batch([game.tree() for game in built], [_name_of(game) for game in built], **options)
        self._games: list[AnyGame] = list(built)
        unsaid = {"num_worlds": 0, "lanes": 1, "desync_episodes": False, "min_first_episode": -1}
        self._options = ", ".join(f"{k}={options[k]}" for k, usual in unsaid.items() if options[k] != usual)
        self.num_worlds: int = options["num_worlds"]
        self.threads: int = options["threads"]
        self.lanes: int = options["lanes"]
        self.profiling: bool = options["profiling"]
        self.validating: bool = options["validation"]
        self.num_agents: int = self._batch.num_agents
        self.num_actions: int = self._batch.num_actions
        self.num_rows = self.num_worlds * self.num_agents
        self._arrays: dict[str, Any] = self._batch.arrays()
        self.action_names: list[str] = []
        self.phases: tuple[str, ...] = tuple(batch.phases)
        self.stat_names: list[str] = [name for name, _ in self._batch.stats()]
        self._stat_is_int = [integer for _, integer in self._batch.stats()]
        self._flying = 0  # lanes sent and not yet received

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
        self._stepped()

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
        if self._flying == 0:  # what workers count is theirs while a lane flies
            self._stepped()

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
        names = ("world", "agent", "game", "episode", "length", "desynced")
        taken: dict[str, npt.NDArray[Any]] = {name: heads[:, i] for i, name in enumerate(names)}
        taken["desynced"] = taken["desynced"].astype(bool)
        for i, (name, integer) in enumerate(zip(self.stat_names, self._stat_is_int, strict=True)):
            taken[name] = stats[:, i].astype(np.int64) if integer else stats[:, i].copy()
        return taken

    @property
    def episodes_dropped(self) -> int:
        """Agent-episodes that were not taken in time: only the newest are kept."""
        return int(self._batch.episodes_dropped)

    @property
    def games(self) -> Sequence[AnyGame]:
        return list(self._games)

    def add_game(self, game: str | AnyGame) -> int:
        """Compile another game of the same shapes and words; the number is for `assign`."""
        game = games.build(game) if isinstance(game, str) else game
        if type(game) is not type(self._games[0]):
            raise TypeError(f"game: expected a {type(self._games[0]).__name__}, got {type(game).__name__}")
        index = int(self._batch.add_game(game.tree(), _name_of(game)))
        self._games.append(game)
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

    @property
    def bytes_per_world(self) -> int:
        """Native memory per world beside its rows of the arrays."""
        return int(self._batch.bytes_per_world)

    @property
    def step_timing(self) -> dict[str, int] | None:
        """ns per phase of the last step, added over worlds, with `autoreset`, `total` and `wall`; None when off."""
        return self._timing(self._batch.timing()) if self.profiling else None

    @property
    def step_timing_total(self) -> dict[str, int] | None:
        """Like `step_timing`, added up since the env was made, with the number of `steps`."""
        if not self.profiling:
            return None
        return self._timing(self._batch.timing_total()) | {"steps": int(self._batch.timed_steps)}

    # ---- inside

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
        return list(range(self.num_worlds)) if worlds is None else [operator.index(w) for w in worlds]

    def _with_recipe(self, fault: Exception) -> Exception:
        """The same fault with the way to see it again."""
        shipped = [name for name in games.names() if any(game == games.build(name) for game in self._games)]
        calls = [repr(game.name) if game.name in shipped else f"<your game {game.name!r}>" for game in self._games]
        made = calls[0] if len(calls) == 1 else f"[{', '.join(calls)}]"
        return _native.WorldFault(
            f"{fault}\nto see it again: env = gridmill.make({made}, {self._options}); "
            "env.reset(seed=<the seed above>); then the same actions up to that tick"
        )

    def _timing(self, values: list[int]) -> dict[str, int]:
        *phases, wall = values
        named = dict(zip((*self.phases, "autoreset"), phases, strict=True))
        return named | {"total": sum(phases), "wall": wall}


def _name_of(game: AnyGame) -> str:
    """What a saved state calls a game: for people the name, for the machine the fingerprint."""
    return f"{game.name} {game.fingerprint()}"
