"""Env: games compiled into one native batch, seen as NumPy arrays that are made once.

`make` is the door. What every game has is in `batch`; here is what only one kind has: names of tokens and
shadow validation for grids, facts of the last step for Prospector.
"""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Sequence
from typing import Any, Literal, NamedTuple, overload

import numpy as np
import numpy.typing as npt

from gridmill import _native, games
from gridmill.batch import Env
from gridmill.games import AnyGame
from gridmill.grid import Game
from gridmill.grid.first_pay import min_first_episode as own_min_first_episode
from gridmill.prospector.actions import ACTION_NAMES
from gridmill.prospector.config import ProspectorConfig


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


class StepInfo(NamedTuple):
    """What the last step of each row was: its length in ticks, whether it was invalid, the action that counted."""

    dt: npt.NDArray[np.int32]
    invalid: npt.NDArray[np.bool_]
    action: npt.NDArray[np.int32]


def _switch(name: str, given: bool | None, default: bool) -> bool:
    """An argument, or else an environment variable (0/1), or else the default."""
    if given is not None:
        return given
    text = os.environ.get(name, "")
    if text in ("", "0", "1"):
        return default if text == "" else text == "1"
    raise ValueError(f"{name}: expected 0 or 1, got {text!r}")


@overload
def make(  # type: ignore[overload-overlap]
    game: Literal["prospector"] | ProspectorConfig | Sequence[ProspectorConfig],
    num_worlds: int = ...,
    seed: int = ...,
    threads: int = ...,
    lanes: int = ...,
    masks: bool = ...,
    desync_episodes: bool = ...,
    min_first_episode: int | None = ...,
    profiling: bool | None = ...,
    validation: bool | None = ...,
) -> ProspectorBatchEnv: ...
@overload
def make(
    game: str | Game | Sequence[str | Game],
    num_worlds: int = ...,
    seed: int = ...,
    threads: int = ...,
    lanes: int = ...,
    masks: bool = ...,
    desync_episodes: bool = ...,
    min_first_episode: int | None = ...,
    profiling: bool | None = ...,
    validation: bool | None = ...,
) -> GridEnv: ...
def make(
    game: str | AnyGame | Sequence[str | AnyGame],
    num_worlds: int = 64,
    seed: int = 0,
    threads: int = 1,
    lanes: int = 1,
    masks: bool = False,
    desync_episodes: bool = False,
    min_first_episode: int | None = None,
    profiling: bool | None = None,
    validation: bool | None = None,
) -> GridEnv | ProspectorBatchEnv:
    """An environment of `num_worlds` worlds of one game, or of several games dealt out in turn.

    `desync_episodes` shortens each world's first episode by a different amount, never below `min_first_episode`;
    by default that is the tick by which every reward that can pay could have paid with one of each building.
    """
    if not isinstance(game, str | AnyGame | Sequence):
        raise TypeError(f"game: expected a name, a Game or a list of them, got {type(game).__name__}")
    items = [game] if isinstance(game, str | AnyGame) else list(game)
    if not items:
        raise ValueError("game: expected a name, a Game or a list of them, got an empty list")
    built = [games.build(item) if isinstance(item, str) else item for item in items]
    for item in built:
        if not isinstance(item, AnyGame):
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
    options: dict[str, Any] = {
        "num_worlds": int(num_worlds),
        "seed": int(seed),
        "threads": int(threads),
        "lanes": int(lanes),
        "masks": bool(masks),
        "desync_episodes": bool(desync_episodes),
        "min_first_episode": -1 if min_first_episode is None else int(min_first_episode),
        "profiling": _switch("GRIDMILL_PROFILING", profiling, False),
        "validation": _switch("GRIDMILL_OBS_VALIDATION", validation, False),
        "fast": _switch("GRIDMILL_OBS_USE_OPTIMIZED", None, True),
    }
    grids = [item for item in built if isinstance(item, Game)]
    ships = [item for item in built if isinstance(item, ProspectorConfig)]
    if grids and ships:
        raise ValueError("game: games of one batch must be of one kind, got grid games and prospector")
    if ships:
        if validation:
            raise ValueError("validation: expected a grid game, got prospector; its observations have one path only")
        return ProspectorBatchEnv(ships, **options | {"validation": False})
    if min_first_episode is None and desync_episodes:
        # One number for the batch: what the slowest of its games needs; the core cuts it to each game's max_steps.
        options["min_first_episode"] = max(map(own_min_first_episode, grids))
    return GridEnv(grids, **options)


class GridEnv(Env):
    """Worlds of the grid engine: observations are tokens, uint8 [rows, tokens, 3], and everything has a name."""

    _batch: _native.GridBatch

    def __init__(self, built: list[Game], **options: Any) -> None:
        super().__init__(_native.GridBatch, built, options)
        self.num_tokens: int = self._batch.num_tokens()
        self.window: tuple[int, int] = self._batch.window()
        self.action_names = self._batch.actions()
        self.features = [Feature(i, n, scale) for i, (n, scale) in enumerate(self._batch.features())]
        self.tags: list[str] = self._batch.tags()
        self.vibes: list[str] = self._batch.vibes()
        self.dense_channels: list[str] = self._batch.dense_channels()
        self._reported = 0
        for index in range(len(built)):
            self._warn_of_overflow(index)

    @property
    def games(self) -> list[Game]:
        return [game for game in self._games if isinstance(game, Game)]

    def add_game(self, game: str | AnyGame) -> int:
        index = super().add_game(game)
        self._warn_of_overflow(index)
        return index

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

    def _stepped(self) -> None:
        if self.validating:
            self._report_validation()

    def _warn_of_overflow(self, index: int) -> None:
        worst = int(self._batch.worst_tokens(index))
        game = self._games[index]
        assert isinstance(game, Game)
        if worst > self.num_tokens and game.observation.overflow == "warn":
            warnings.warn(
                f"{game.name}: an agent could see {worst} tokens at worst, more than "
                f"observation.num_tokens = {self.num_tokens}; the nearest are kept and the rest is counted as "
                "tokens_dropped (observation.overflow = 'drop' says that this is fine)",
                TokenBudgetWarning,
                stacklevel=4,
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


class ProspectorBatchEnv(Env):
    """Worlds of Prospector: one ship each, observations float32 [rows, 260]."""

    _batch: _native.ProspectorBatch

    def __init__(self, built: list[ProspectorConfig], **options: Any) -> None:
        super().__init__(_native.ProspectorBatch, built, options)
        self.action_names = list(ACTION_NAMES)
        self._step_info = StepInfo(
            np.zeros(self.num_rows, np.int32), np.zeros(self.num_rows, np.bool_), np.zeros(self.num_rows, np.int32)
        )

    @property
    def step_info(self) -> StepInfo:
        """dt, invalid and action of every row's last step; the arrays are made once and filled when asked for."""
        self._batch.step_info(*self._step_info)
        return self._step_info

    @property
    def rng_states(self) -> npt.NDArray[np.uint64]:
        """The state of each world's random stream."""
        return self._batch.rng_states()


class TokenBudgetWarning(UserWarning):
    """A game could show more tokens than a row has room for."""
