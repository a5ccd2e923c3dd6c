"""The statistics every tool of the workshop shares.

Everything is a pure function of its arguments: the bootstrap draws from a seed, so the same values always give the same
interval. It measures nothing and knows no tool.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gridmill.config.text import short, table

Values = NDArray[np.float64]
Statistic = Callable[[Values], Values]  # reduces the last axis

RESAMPLES = 4000
CONFIDENCE = 0.95


def as_values(values: Iterable[float], name: str = "values") -> Values:
    """The values as a float64 vector; empty or non-finite input is refused."""
    array = np.asarray(list(values), dtype=np.float64)
    if array.ndim != 1 or array.size == 0:
        raise ValueError(f"{name} must hold at least one number, got {array.size}")
    if not np.isfinite(array).all():
        raise ValueError(f"{name} must be finite, got {array[~np.isfinite(array)][0]}")
    return array


def median(values: Iterable[float]) -> float:
    """The middle value."""
    return float(np.median(as_values(values)))


def mean(values: Iterable[float]) -> float:
    """The arithmetic mean."""
    return float(np.mean(as_values(values)))


def stdev(values: Iterable[float]) -> float:
    """The sample standard deviation; 0 for a single value, whose spread is unknown."""
    array = as_values(values)
    return float(np.std(array, ddof=1)) if array.size > 1 else 0.0


def coefficient_of_variation(values: Iterable[float]) -> float:
    """Standard deviation over mean, the measure of how steady the rounds were."""
    array = as_values(values)
    centre = float(np.mean(array))
    if centre == 0.0:
        return 0.0 if stdev(array) == 0.0 else float("inf")
    return stdev(array) / abs(centre)


def percentiles(values: Iterable[float], which: Sequence[float]) -> list[float]:
    """The given percentiles (0 to 100), interpolated linearly."""
    for q in which:
        if not 0.0 <= q <= 100.0:
            raise ValueError(f"percentile must be within 0 and 100, got {q}")
    return [float(v) for v in np.percentile(as_values(values), list(which))]


def _median_of_rows(samples: Values) -> Values:
    return np.asarray(np.median(samples, axis=-1), dtype=np.float64)


def _interval(statistics: Values, confidence: float) -> tuple[float, float]:
    if not 0.0 < confidence < 1.0:
        raise ValueError(f"confidence must be between 0 and 1, got {confidence}")
    tail = 50.0 * (1.0 - confidence)
    low, high = np.percentile(statistics, [tail, 100.0 - tail])
    return float(low), float(high)


def _resample(values: Values, seed: int, resamples: int) -> Values:
    """Draws with replacement, [resamples, len(values)]."""
    return values[np.random.default_rng(seed).integers(0, values.size, size=(resamples, values.size))]


def bootstrap_interval(
    values: Iterable[float],
    statistic: Statistic = _median_of_rows,
    *,
    confidence: float = CONFIDENCE,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> tuple[float, float]:
    """Percentile bootstrap interval (Efron 1979) of a statistic, by default the median."""
    return _interval(statistic(_resample(as_values(values), seed, resamples)), confidence)


@dataclass(frozen=True)
class Summary:
    """What one list of rounds says. low and high bound the median."""

    count: int
    median: float
    mean: float
    stdev: float
    cv: float
    low: float
    high: float
    minimum: float
    p5: float
    p95: float
    maximum: float


def summarise(values: Iterable[float], *, seed: int = 0) -> Summary:
    """Median with its interval, mean, spread and tails of one list of rounds."""
    array = as_values(values)
    low, high = bootstrap_interval(array, seed=seed)
    p5, p95 = percentiles(array, (5.0, 95.0))
    return Summary(
        count=int(array.size),
        median=median(array),
        mean=mean(array),
        stdev=stdev(array),
        cv=coefficient_of_variation(array),
        low=low,
        high=high,
        minimum=float(array.min()),
        p5=p5,
        p95=p95,
        maximum=float(array.max()),
    )


@dataclass(frozen=True)
class Ratio:
    """How many times the first list is of the second, with a confidence interval."""

    ratio: float
    low: float
    high: float
    count: int
    paired: bool

    def __str__(self) -> str:
        return f"{self.ratio:.3f}x [{self.low:.3f}, {self.high:.3f}]"

    def tree(self) -> dict[str, Any]:
        """For JSON, which has no infinity: a single pair has no interval."""
        return asdict(self) | ({} if np.isfinite(self.high) else {"low": None, "high": None})

    @property
    def separated(self) -> bool:
        """Whether the interval leaves out 1, i.e. the two really differ."""
        return self.low > 1.0 or self.high < 1.0


def ratio_text(tree: Mapping[str, Any]) -> str:
    """A saved ratio for people."""
    return f"{tree['ratio']:.3f}x" if tree["low"] is None else str(Ratio(**tree))


def _positive(values: Values, name: str) -> Values:
    if (values <= 0.0).any():
        raise ValueError(f"{name} must be above 0 for a ratio, got {float(values.min())}")
    return values


def paired_ratio(first: Iterable[float], second: Iterable[float], *, seed: int = 0) -> Ratio:
    """Ratio of interleaved rounds: round i of one against round i of the other, then the median of the pairs.

    Pairing takes out what slows both at the same moment, which on a shared machine is most of the noise.
    """
    a, b = _positive(as_values(first, "first"), "first"), _positive(as_values(second, "second"), "second")
    if a.size != b.size:
        raise ValueError(f"paired rounds must have the same length, got {a.size} and {b.size}")
    pairs = a / b
    low, high = bootstrap_interval(pairs, seed=seed)
    return Ratio(median(pairs), low, high, int(pairs.size), paired=True)


def independent_ratio(first: Iterable[float], second: Iterable[float], *, seed: int = 0) -> Ratio:
    """Ratio of the medians of two runs made at different times; both are resampled on their own."""
    a, b = _positive(as_values(first, "first"), "first"), _positive(as_values(second, "second"), "second")
    draws = _median_of_rows(_resample(a, seed, RESAMPLES)) / _median_of_rows(_resample(b, seed + 1, RESAMPLES))
    low, high = _interval(draws, CONFIDENCE)
    return Ratio(median(a) / median(b), low, high, int(min(a.size, b.size)), paired=False)


# How far two runs of the same code at different times may lie apart on a shared machine, as the logarithm of their
# ratio: the farthest of 360 pairs (bench/results/workshop/between_runs.json), 1.57x, must not look like a change.
BETWEEN_RUNS = 0.45
_NORMAL = 1.96


def between_runs(ratio: Ratio) -> Ratio:
    """A ratio of two runs made at different times, with an interval that also holds what such runs differ by anyway.

    Both sources of noise are added as variances.
    """
    centre = float(np.log(ratio.ratio))
    down = float(np.hypot(centre - np.log(ratio.low), BETWEEN_RUNS))
    up = float(np.hypot(np.log(ratio.high) - centre, BETWEEN_RUNS))
    low, high = float(np.exp(centre - down)), float(np.exp(centre + up))
    return Ratio(ratio.ratio, low, high, ratio.count, ratio.paired)


# Student's t that leaves 2.5 % above it, by degrees of freedom; beyond the last the normal distribution will do.
_T = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131, 2.120,
      2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042)  # fmt: skip


def _half_width(values: Values) -> float:
    """Half of the 95 % interval of a mean, by Student; infinite for a single value, which tells nothing of it."""
    if values.size < 2:
        return float("inf")
    t = _T[values.size - 2] if values.size - 2 < len(_T) else _NORMAL
    return t * stdev(values) / float(np.sqrt(values.size))


def interval_of_mean(values: Iterable[float]) -> tuple[float, float]:
    """The 95 % interval of a mean, by Student; infinite for a single value."""
    array = as_values(values)
    half = _half_width(array)
    return float(array.mean()) - half, float(array.mean()) + half


def grouped_ratio(first: Sequence[Iterable[float]], second: Sequence[Iterable[float]]) -> Ratio:
    """Ratio of interleaved rounds in groups (a pair of processes each): the geometric mean of the pairs.

    What differs from process to process does not average out within one, so the interval is the wider of two: of all
    pairs, and, of three groups or more, of the groups' means. Groups must be as many on both sides, and as long.
    """
    if len(first) != len(second) or not first:
        raise ValueError(f"both sides must have the same number of groups, got {len(first)} and {len(second)}")
    logs = []
    for one, other in zip(first, second, strict=True):
        a, b = _positive(as_values(one, "first"), "first"), _positive(as_values(other, "second"), "second")
        if a.size != b.size:
            raise ValueError(f"paired rounds must have the same length, got {a.size} and {b.size}")
        logs.append(np.log(a / b))
    pairs = np.concatenate(logs)
    half = _half_width(pairs)
    if len(logs) > 2:
        half = max(half, _half_width(np.array([group.mean() for group in logs])))
    centre = float(pairs.mean())
    low, high = (float(np.exp(centre + side * half)) for side in (-1, 1))
    return Ratio(float(np.exp(centre)), low, high, int(pairs.size), paired=True)


def amdahl(share: float, speedup: float) -> float:
    """How many times faster the whole becomes if a part of this share of its time becomes `speedup` times faster."""
    if not 0.0 <= share <= 1.0 or speedup <= 0.0:
        raise ValueError(f"expected a share within 0 and 1 and a speedup above 0, got {share} and {speedup}")
    return 1.0 / (1.0 - share + share / speedup)


@dataclass(frozen=True)
class Point:
    """One saved run in a series."""

    file: str
    phase: str
    commit: str
    date: str
    shape: str  # only runs of the same shape are compared
    median: float
    cv: float


def trend_lines(points: Sequence[Point], rate: str = "per CPU s") -> list[str]:
    """For each shape: every run with its ratio to the oldest, then each commit against the one before."""
    lines: list[str] = []
    for shape in dict.fromkeys(point.shape for point in points):
        own = sorted((point for point in points if point.shape == shape), key=lambda point: (point.date, point.file))
        rows = [
            (
                p.file[:24],
                p.phase[:12],
                p.commit,
                short(p.median),
                f"{100 * p.cv:.1f} %",
                f"{p.median / own[0].median:.3f}x",
            )
            for p in own
        ]
        lines += ["", shape, *table(("file", "phase", "commit", rate, "CV", "to first"), rows, left=3)]
        commits = {p.commit: median(q.median for q in own if q.commit == p.commit) for p in own}
        best, before, steps = max(commits.values()), 0.0, []
        for commit, value in commits.items():
            change = f"{100 * (value / before - 1):+.1f} %" if before else ""
            steps.append((commit, "#" * max(1, round(30 * value / best)), short(value), change))
            before = value
        lines += ["", *table(("trend by commit", "", rate, "change"), steps, left=2)]
    return lines[1:]
