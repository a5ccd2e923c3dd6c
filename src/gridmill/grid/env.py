"""GridEnv: the Env of grid games. Observations are tokens with names, and worlds can be looked at."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from gridmill import _native
from gridmill.env import Env, GameConfig
from gridmill.env.arguments import rows_of_bytes, whole, written_rows

if TYPE_CHECKING:
    from gridmill.grid.game import Game


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


class TokenBudgetWarning(UserWarning):
    """A game could show more tokens than fit into a row."""


class GridEnv(Env):
    """Worlds of the grid engine: observations are tokens, uint8 [rows, tokens, 3], and everything has a name."""

    _batch: _native.GridBatch
    _games: list[Game]  # type: ignore[assignment]

    def __init__(self, games: Sequence[Game], **options: Any) -> None:
        super().__init__(_native.GridBatch, games, options)
        self.num_tokens: int = self._batch.num_tokens()
        self.window: tuple[int, int] = self._batch.window()
        self.action_names = self._batch.actions()
        self.features = [Feature(i, n, scale) for i, (n, scale) in enumerate(self._batch.features())]
        self.tags: list[str] = self._batch.tags()
        self.vibes: list[str] = self._batch.vibes()
        self.dense_channels: list[str] = self._batch.dense_channels()
        self._reported = 0
        for index in range(len(games)):
            self._warn_of_overflow(index)

    @property
    def games(self) -> list[Game]:
        return list(self._games)

    def vocabulary(self) -> dict[str, Any]:
        return {
            "num_tokens": self.num_tokens,
            "window": (self.window[0], self.window[1]),
            "features": tuple(feature.name for feature in self.features),
            "normalizers": tuple(float(feature.normalizer) for feature in self.features),
            "tags": tuple(self.tags),
            "vibes": tuple(self.vibes),
        }

    def add_game(self, game: GameConfig) -> int:
        index = super().add_game(game)
        self._warn_of_overflow(index)
        return index

    def replace_game(self, number: int, game: GameConfig) -> None:
        super().replace_game(number, game)
        self._warn_of_overflow(number)

    # ---- looking

    def decode(self, row: int) -> list[Token]:
        """The tokens of one row of `obs` by name."""
        return [Token(*token) for token in self._batch.describe_row(whole("row", row))]

    @property
    def dense_shape(self) -> tuple[int, int, int]:
        """Of a row that `dense` writes: channels, height, width."""
        return len(self.dense_channels), *self.window

    def dense(
        self, rows: npt.NDArray[np.uint8] | None = None, out: npt.NDArray[np.uint8] | None = None
    ) -> npt.NDArray[np.uint8]:
        """Rows of tokens (default: `obs`) as dense boxes [rows, channels, height, width], in `out` if it is given.

        `dense_channels` names the planes: one for each feature with its values, and one for each tag with 0 or 1.
        What lies nowhere fills its plane.
        """
        tokens = np.ascontiguousarray(self.obs if rows is None else rows_of_bytes("rows", rows, 3))
        found = np.empty((len(tokens), *self.dense_shape), np.uint8) if out is None else written_rows("out", out, 4)
        self._batch.dense(tokens, found)
        return found

    def dense_into(self, out: npt.NDArray[np.uint8] | None) -> None:
        """From now on whatever writes `obs` (step, recv, reset, restore) writes `dense()` of these rows into `out`.

        That costs less than `dense` after the step, and each thread writes its own worlds. None ends it.
        """
        self._batch.dense_into(None if out is None else written_rows("out", out, 4))
        self._dense_out = out  # the batch writes to its memory

    def inspect(self, world: int = 0) -> dict[str, Any]:
        """One world by name: its clock and every object with place, tags, vibe and inventory."""
        return self._batch.inspect(whole("world", world))

    def render(self, world: int = 0, mode: str = "ansi") -> Any:
        from gridmill.grid import render

        return render.ascii(self, world) if mode == "ansi" else render.rgb(self, world)

    def picture(self, world: int = 0, scale: int = 8, legend: bool = True) -> Any:
        from gridmill.grid import render

        return render.rgb_with_legend(self, world, scale) if legend else render.rgb(self, world, scale)

    def worst_tokens(self, game: int = 0) -> int:
        """The most tokens that one agent of a game could see."""
        if not 0 <= whole("game", game) < len(self.games):
            raise ValueError(f"game {game} is not in [0, {len(self.games)})")
        return int(self._batch.worst_tokens(game))

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
        worst = self.worst_tokens(index)
        game = self._games[index]
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
