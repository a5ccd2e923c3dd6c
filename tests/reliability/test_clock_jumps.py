"""The clock of the machine is set, forwards and back, by minutes and by years: a run takes no notice."""

from __future__ import annotations

import os
import random
import time
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from tiny import difference, epochs_of, tiny

from gridmill.runs import listing, place, train
from gridmill.runs.report import page

pytestmark = pytest.mark.R10

YEAR = 365.25 * 86_400


def test_a_run_takes_no_notice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    quiet = train(tiny(6, run="quiet", checkpoint__seconds=1e-3), tmp_path, panel=False).folder
    draw, real = random.Random(1), time.time
    monkeypatch.setattr(time, "time", lambda: real() + draw.choice([0, 60, -60, YEAR, -YEAR, 30 * YEAR, -50 * YEAR]))
    monkeypatch.setattr(time, "time_ns", lambda: int(1e9 * time.time()))
    result = train(tiny(6, run="jumped", checkpoint__seconds=1e-3), tmp_path, panel=False)
    assert result.exit_code == 0
    assert 0 < result.seconds < 3600
    seconds = [record["seconds"] for record in epochs_of(result.folder)]
    assert seconds == sorted(seconds)
    assert all(0 <= record["eta"] < 3600 for record in epochs_of(result.folder))
    assert difference(quiet, result.folder) == 0
    assert len(list((result.folder / "checkpoints").iterdir())) == 3  # by seconds that did pass
    page.write(result.folder)


@pytest.mark.parametrize("years", [-50, 60])
def test_files_from_another_time_are_listed(tmp_path: Path, years: int) -> None:
    folder = train(tiny(1, run="x"), tmp_path, panel=False).folder
    then = time.time() + years * YEAR
    for name in ("log.txt", "metrics.jsonl"):
        os.utime(folder / name, (then, then))
    (row,) = listing.rows(tmp_path)
    assert (row.state, row.age >= 0) == ("finished", True)
    listing.text([row])


def test_names_of_a_second_that_comes_twice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Stopped(datetime):
        @classmethod
        def now(cls, tz: Any = None) -> Any:
            return datetime(2001, 2, 3, 4, 5, 6)

    monkeypatch.setattr(place, "datetime", Stopped)
    begun = [place.begin(tmp_path, "", "mine.py", False) for _ in range(3)]
    for _, lock in begun:
        lock.close()
    names = [folder.name for folder, _ in begun]
    assert names == ["mine-20010203-040506", "mine-20010203-040506-2", "mine-20010203-040506-3"]
