"""The statistics every tool shares: hand-computed values, intervals that cover, refusals with their texts."""

from __future__ import annotations

import numpy as np
import pytest

from gridmill.config import text
from gridmill.workshop import statistics as st


def test_the_plain_figures_by_hand() -> None:
    values = [1.0, 2.0, 3.0, 4.0, 10.0]
    assert st.median(values) == 3.0
    assert st.mean(values) == 4.0
    assert st.stdev(values) == pytest.approx(np.sqrt(50 / 4))
    assert st.coefficient_of_variation(values) == pytest.approx(np.sqrt(50 / 4) / 4)
    assert st.percentiles(values, (0, 25, 50, 100)) == [1.0, 2.0, 3.0, 10.0]
    assert st.percentiles([0.0, 1.0], (50, 95)) == [0.5, 0.95]


def test_one_value_has_no_spread() -> None:
    summary = st.summarise([7.0])
    assert (summary.count, summary.median, summary.stdev, summary.cv) == (1, 7.0, 0.0, 0.0)
    assert (summary.low, summary.high, summary.minimum, summary.maximum) == (7.0, 7.0, 7.0, 7.0)


def test_variation_around_zero() -> None:
    assert st.coefficient_of_variation([0.0, 0.0]) == 0.0
    assert st.coefficient_of_variation([-1.0, 1.0]) == float("inf")


def test_summary_holds_the_figures() -> None:
    values = list(np.random.default_rng(3).normal(100.0, 5.0, size=40))
    summary = st.summarise(values)
    assert summary.median == st.median(values)
    assert summary.cv == st.coefficient_of_variation(values)
    assert summary.minimum <= summary.p5 <= summary.low <= summary.median <= summary.high <= summary.p95
    assert summary.p95 <= summary.maximum


def test_the_bootstrap_is_a_function_of_its_seed() -> None:
    values = list(np.random.default_rng(1).normal(size=30))

    def interval(seed: int) -> tuple[float, float]:
        return st.bootstrap_interval(values, lambda rows: rows.mean(axis=-1), seed=seed)

    assert interval(5) == interval(5)
    assert interval(5) != interval(6)


def test_a_wider_confidence_is_a_wider_interval() -> None:
    values = list(np.random.default_rng(1).normal(size=30))
    narrow, wide = (st.bootstrap_interval(values, confidence=c) for c in (0.5, 0.99))
    assert wide[0] < narrow[0] < narrow[1] < wide[1]


def test_intervals_cover_the_truth_about_as_often_as_they_say() -> None:
    rng = np.random.default_rng(11)
    covered = 0
    for trial in range(200):
        low, high = st.bootstrap_interval(rng.normal(50.0, 4.0, size=25), resamples=500, seed=trial)
        covered += low <= 50.0 <= high
    assert 175 <= covered <= 199


def test_another_statistic_can_be_given() -> None:
    values = [1.0] * 9 + [101.0]
    low, high = st.bootstrap_interval(values, lambda rows: rows.mean(axis=-1))
    assert low < 11.0 < high
    assert st.bootstrap_interval(values) == (1.0, 1.0)  # the median does not move for one outlier


def test_a_paired_ratio_sees_through_noise_that_hits_both() -> None:
    rng = np.random.default_rng(2)
    weather = rng.uniform(0.3, 1.0, size=30)  # a shared machine, slow at times
    slow, fast = 100.0 * weather, 103.0 * weather * rng.normal(1.0, 0.002, size=30)
    paired, apart = st.paired_ratio(fast, slow), st.independent_ratio(fast, slow)
    assert paired.ratio == pytest.approx(1.03, abs=0.003)
    assert paired.separated
    assert paired.paired
    assert not apart.separated
    assert not apart.paired
    assert apart.high - apart.low > 10 * (paired.high - paired.low)


def test_a_ratio_of_equal_runs_is_one() -> None:
    assert st.paired_ratio([1.0, 2.0, 4.0], [1.0, 2.0, 4.0]) == st.Ratio(1.0, 1.0, 1.0, 3, True)
    assert str(st.paired_ratio([3.0, 3.0], [2.0, 2.0])) == "1.500x [1.500, 1.500]"


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: st.median([]), "values must hold at least one number, got 0"),
        (lambda: st.mean([1.0, float("nan")]), "values must be finite, got nan"),
        (lambda: st.percentiles([1.0], (101.0,)), "percentile must be within 0 and 100, got 101.0"),
        (lambda: st.paired_ratio([1.0, 2.0], [1.0]), "paired rounds must have the same length, got 2 and 1"),
        (lambda: st.paired_ratio([1.0], [0.0]), "second must be above 0 for a ratio, got 0.0"),
        (lambda: st.bootstrap_interval([1.0], confidence=1.0), "confidence must be between 0 and 1, got 1.0"),
    ],
)
def test_bad_input_is_refused_with_its_text(call: object, text: str) -> None:
    with pytest.raises(ValueError) as refused:
        call()  # type: ignore[operator]
    assert str(refused.value) == text


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (7_612_345.0, "7.61 M"),
        (182_400.0, "182.4 k"),
        (1_500.0, "1.50 k"),
        (2.5e9, "2.50 G"),
        (38.24, "38.2"),
        (0.5, "0.500"),
        (20.0, "20"),
    ],
)
def test_short_figures(value: float, shown: str) -> None:
    assert text.short(value) == shown


def test_counts_know_one_from_many() -> None:
    assert (text.count(1, "world"), text.count(4096, "world")) == ("1 world", "4,096 worlds")


def test_a_table_lines_up() -> None:
    assert text.table(("name", "n"), [("a", 1), ("long name", 1000)]) == [
        "name          n",
        "a             1",
        "long name  1000",
    ]


def test_a_trend_compares_only_runs_of_one_shape() -> None:
    def point(file: str, commit: str, date: str, shape: str, rate: float) -> st.Point:
        return st.Point(file, "", commit, date, shape, rate, 0.01)

    lines = st.trend_lines(
        [
            point("late", "bbb", "2026-02", "toy", 3e6),
            point("early", "aaa", "2026-01", "toy", 2e6),
            point("other", "aaa", "2026-01", "arena", 1e6),
        ]
    )
    toy = lines[lines.index("toy") : lines.index("arena") - 1]
    assert [line.split()[0] for line in toy[2:4]] == ["early", "late"]
    assert toy[3].split()[-1] == "1.500x"
    assert toy[-1].split()[0] == "bbb"
    assert toy[-1].endswith("+50.0 %")
    assert "arena" in lines
    assert all(len(line) <= 80 for line in lines)


def test_amdahl_by_hand() -> None:
    """A phase of 60 % of the step made 3x faster: the step 6 % of training, then 25 %."""
    assert st.amdahl(0.60 * 0.06, 3.0) == pytest.approx(1.0246, abs=1e-4)
    assert st.amdahl(0.60 * 0.25, 3.0) == pytest.approx(1.1111, abs=1e-4)
    assert st.amdahl(1.0, 2.0) == 2.0
    with pytest.raises(ValueError, match="expected a share within 0 and 1"):
        st.amdahl(1.1, 2.0)


def test_a_grouped_ratio_by_hand() -> None:
    found = st.grouped_ratio([[2.0, 8.0]], [[1.0, 2.0]])
    assert found.ratio == pytest.approx(8**0.5)
    assert found.low == pytest.approx(8**0.5 / found.high * 8**0.5)
    with pytest.raises(ValueError, match="both sides must have the same number of groups"):
        st.grouped_ratio([[1.0]], [])
    with pytest.raises(ValueError, match="paired rounds must have the same length"):
        st.grouped_ratio([[1.0]], [[1.0, 2.0]])


def test_a_grouped_interval_knows_what_differs_between_groups() -> None:
    """Same sides, noise of 1 % a round and 2 % a process: 95 % of intervals hold 1; without groups far fewer do."""
    rng = np.random.default_rng(3)
    inside = blind = 0
    for _ in range(400):
        a = [np.exp(rng.normal(0, 0.02) + rng.normal(0, 0.01, 4)) for _ in range(3)]
        b = [np.ones(4)] * 3
        found = st.grouped_ratio(a, b)
        inside += found.low <= 1 <= found.high
        flat = st.paired_ratio(np.concatenate(a), np.concatenate(b))
        blind += flat.low <= 1 <= flat.high
    assert inside >= 0.93 * 400
    assert blind < 0.85 * 400
