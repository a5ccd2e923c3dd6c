"""What the workshop's commands found and the lab shows: artefacts that can be read, named on the page, in bounds."""

from __future__ import annotations

import math
import re
import runpy
import sys
from pathlib import Path

import pytest

from gridmill.workshop import artefact, statistics

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "bench" / "results" / "workshop"
PAGE = (ROOT / "docs" / "lab" / "workshop.md").read_text()
KEPT = sorted(FOLDER.glob("*.json"))


@pytest.mark.parametrize("path", KEPT, ids=lambda path: path.stem)
def test_a_kept_artefact_is_whole_and_on_the_page(path: Path) -> None:
    record = artefact.read(path)
    assert record["finished"]
    assert path.with_suffix(".txt").exists(), "and what the command printed"
    assert path.stem in PAGE or path.stem.split("_")[0] in PAGE


def test_no_kept_file_says_where_it_was_made() -> None:
    for path in FOLDER.iterdir():
        found = re.findall(r"(?<![\w.])/(?:tmp|home|root|work|usr)/\S*", path.read_text())
        assert not found, f"{path.name}: {found[0]}"


def test_a_setting_against_itself_is_no_difference() -> None:
    """Of 20 repetitions at least 17 intervals have 1 inside, and the mean is within 1 %."""
    told = artefact.read(FOLDER / "ab_itself.json", "ab itself")
    assert told["settings"]["repetitions"] == 20
    ratios = [one["cpu"] for one in told["ratios"]]
    assert sum(one["low"] <= 1 <= one["high"] for one in ratios) == told["told"]["cpu"]["inside"] >= 17
    assert abs(statistics.mean(one["ratio"] for one in ratios) - 1) <= 0.01


def test_the_spread_between_runs_is_the_measured_one() -> None:
    found = artefact.read(FOLDER / "between_runs.json", "between runs")["found"]
    farthest = max(one["largest_ratio"] for one in found.values())
    assert round(math.log(farthest), 2) == statistics.BETWEEN_RUNS
    assert sum(one["pairs"] for one in found.values()) == 360


@pytest.mark.parametrize("option", ["repetitions", "blocks", "epochs"])
def test_ab_itself_refuses_to_do_nothing(
    option: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    words = [f"--{option}", "0", "--output", str(tmp_path / "x.json")]
    monkeypatch.setattr(sys, "argv", ["ab_itself.py", *words])
    with pytest.raises(SystemExit, match="2"):
        runpy.run_path(str(ROOT / "bench" / "ab_itself.py"), run_name="__main__")
    assert capsys.readouterr().err.splitlines()[-1] == f"ab_itself.py: error: --{option}: expected at least 1, got 0"
