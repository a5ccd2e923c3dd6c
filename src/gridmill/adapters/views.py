"""How the rows of a batch look to other libraries: tokens as they are or dense boxes, spaces, figures of episodes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from gridmill.env import Env, Episodes

ObsForm = Literal["tokens", "dense"]
FORMS = ("tokens", "dense")


class View:
    """The observations of an env in one form; a vector is a vector in both.

    Tokens are location, feature and value, nearest first; 255 255 255 is an empty token. Dense is uint8 [channels,
    height, width]: a plane for each feature with its values, and one for each tag with 0 or 1 (`channels` names them).
    """

    def __init__(self, env: Env, form: str) -> None:
        if form not in FORMS:
            env.close()
            raise ValueError(f"obs must be 'tokens' or 'dense', got {form!r}")
        grid: Any = env  # only those have channels
        self.env = grid
        self.dense = form == "dense" and env.obs_kind == "tokens"
        self.channels: list[str] = list(grid.dense_channels) if self.dense else []
        self.space = self._space()
        self._coming: NDArray[Any]

    def _space(self) -> spaces.Box[Any]:
        if self.dense:
            high = np.full(self.env.dense_shape, 255, np.uint8)
            high[len(self.env.features) :] = 1  # of tags
            return spaces.Box(0, high, dtype=np.uint8)
        if self.env.obs_kind == "tokens":
            return spaces.Box(0, 255, self.env.obs.shape[1:], np.uint8)
        return spaces.Box(-1.0, 1.0, self.env.obs.shape[1:], np.float32)

    def empty(self) -> NDArray[Any]:
        """Room for all rows of the env."""
        return np.zeros((self.env.num_rows, *self.space.shape), self.space.dtype)

    def begin(self, out: NDArray[Any] | None = None) -> None:
        """Before a step or reset of the whole env: dense rows are written while it runs, in `out` or a new array."""
        if self.dense:
            self._coming = np.empty((self.env.num_rows, *self.space.shape), np.uint8) if out is None else out
            self.env.dense_into(self._coming)

    def end(self, out: NDArray[Any] | None = None) -> NDArray[Any]:
        """After it: all rows of `obs` in this form, in the `out` that `begin` had or a new array."""
        if not self.dense:
            return self.of(self.env.obs, out)
        self.env.dense_into(None)  # what is handed out stays as it is, whoever steps the env
        return self._coming

    def of(self, rows: NDArray[Any], out: NDArray[Any] | None = None) -> NDArray[Any]:
        """Rows of `obs` or `final_obs` in this form, as a copy or in `out`."""
        if self.dense:
            return self.env.dense(rows, out)  # type: ignore[no-any-return]
        if out is None:
            return rows.copy()
        np.copyto(out, rows)
        return out


def rows_of(episodes: Episodes, num_agents: int) -> NDArray[np.int64]:
    """The row of the batch that each record is about."""
    found: NDArray[np.int64] = episodes["world"] * num_agents + episodes["agent"]
    return found


def stats_of(episodes: Episodes, place: int) -> dict[str, float]:
    """Length, reward and every statistic of one record."""
    return {name: float(column[place]) for name, column in episodes.figures().items()}


def by_row(episodes: Episodes, env: Env) -> Mapping[str, NDArray[np.float64]]:
    """Every figure as an array over the rows of the batch, 0 where no episode ended."""
    rows = rows_of(episodes, env.num_agents)
    found = {}
    for name, column in episodes.figures().items():
        found[name] = np.zeros(env.num_rows)
        found[name][rows] = column
    return found
