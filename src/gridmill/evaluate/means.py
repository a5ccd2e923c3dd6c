"""Means with their standard errors: the one place where they are computed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Mean:
    """A mean over worlds with its standard error, and the median, because profits are skewed."""

    mean: float
    se: float
    median: float
    worlds: int


def standard_error(values: Sequence[float] | NDArray[np.float64]) -> float:
    """Of the mean of independent values; with a single one the spread is unknown, and it is said to be 0."""
    found = np.asarray(values, np.float64)
    return float(np.std(found, ddof=1) / np.sqrt(found.size)) if found.size > 1 else 0.0


def mean_of(values: NDArray[np.float64]) -> Mean:
    """Of figures of worlds."""
    return Mean(float(np.mean(values)), standard_error(values), float(np.median(values)), values.size)
