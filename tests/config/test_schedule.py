"""Schedules at hand-computed points."""

from __future__ import annotations

import math
from typing import Any

import pytest

from gridmill.config.schedule import Progress
from gridmill.run import PPO, Schedule


def now(steps: int = 0, epochs: int = 0, **metrics: float) -> Progress:
    return Progress(steps, 1000, epochs, 50, metrics)


def at(progress: Progress, **schedule: Any) -> float:
    return progress.at(Schedule(**({"start": 1.0, "end": 3.0} | schedule)))


def test_a_number_stays() -> None:
    assert now(500).at(0.25) == 0.25


@pytest.mark.parametrize(("steps", "value"), [(0, 1.0), (250, 1.5), (500, 2.0), (1000, 3.0), (2000, 3.0)])
def test_linear_over_the_run(steps: int, value: float) -> None:
    assert at(now(steps)) == value


@pytest.mark.parametrize(("steps", "value"), [(0, 1.0), (200, 1.0), (300, 2.0), (400, 3.0), (900, 3.0)])
def test_still_before_begin_and_after_until(steps: int, value: float) -> None:
    assert at(now(steps), begin=200, until=400) == value


@pytest.mark.parametrize(("steps", "share"), [(0, 0.0), (250, (1 - math.sqrt(0.5)) / 2), (500, 0.5), (1000, 1.0)])
def test_cosine(steps: int, share: float) -> None:
    assert at(now(steps), shape="cosine") == pytest.approx(1 + 2 * share)


@pytest.mark.parametrize(("steps", "value"), [(0, 1.0), (249, 1.0), (250, 1.5), (999, 2.5), (1000, 3.0)])
def test_stairs(steps: int, value: float) -> None:
    assert at(now(steps), shape="stairs", stairs=4) == value


def test_over_epochs_and_not_steps() -> None:
    assert at(now(steps=1000, epochs=25), over="epochs") == 2.0
    assert at(now(steps=0, epochs=10), over="epochs", until=20) == 2.0


def test_over_a_metric() -> None:
    schedule = {"over": "metric:score", "begin": 10.0, "until": 20.0}
    assert at(now(), **schedule) == 1.0  # not seen yet
    assert at(now(score=15.0), **schedule) == 2.0
    assert at(now(score=99.0), **schedule) == 3.0
    # a metric that falls
    assert at(now(loss=0.25), over="metric:loss", begin=1.0, until=0.5) == 3.0
    assert at(now(loss=0.75), over="metric:loss", begin=1.0, until=0.5) == 2.0
    assert at(now(loss=0.5), over="metric:loss", begin=1.0, until=0.0) == 2.0


def test_a_run_of_no_length_is_at_its_end() -> None:
    assert Progress(0, 0, 0, 0).at(Schedule(start=1, end=3)) == 3.0


@pytest.mark.parametrize(("steps", "value"), [(0, 1.0), (999, 1.0), (1000, 1.0)])
def test_one_that_begins_after_the_run_never_moves(steps: int, value: float) -> None:
    assert at(now(steps), begin=3000) == value


@pytest.mark.parametrize(("steps", "value"), [(0, 1.0), (399, 1.0), (400, 3.0), (1000, 3.0)])
def test_one_without_a_length_is_a_jump(steps: int, value: float) -> None:
    assert at(now(steps), begin=400, until=400) == value


def test_an_end_before_the_beginning_is_refused() -> None:
    with pytest.raises(ValueError, match=r"expected at least begin = 400, or 0, got 300"):
        Schedule(start=1, end=3, begin=400, until=300)
    with pytest.raises(ValueError, match=r"expected more than begin = 400, or 0, got 400"):
        PPO(begin=400, until=400)
