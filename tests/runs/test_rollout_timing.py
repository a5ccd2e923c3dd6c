"""The timing tree: its rows, what is marked, and that every K-th rollout has one, teachers included."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from taught import EPOCH, taught
from tiny import epochs_of

from gridmill.runs import train
from gridmill.runs.rollout_timing import ROWS, SUMS, remedies, timing_tree

TIMES = {"rollout": 1.0, "env": 0.1, "copy": 0.05, "act": 0.3, "store": 0.05}


def tree(**times: float) -> list[str]:
    return timing_tree({"epoch": 7, "agent_steps": 5_120} | {f"time/{k}": v for k, v in (TIMES | times).items()})


def test_rows_add_up_to_the_rollout() -> None:
    lines = tree(teacher=0.2, teacher_forward=0.15, teacher_store=0.05)
    assert lines[:2] == ["rollout timing, epoch 7 (agent steps 5_120)", "rollout total        1000.00 ms  100.0 %"]
    rows = {m[1].strip(): float(m[2]) for line in lines if (m := re.match(r"(.{18,20}) +([\d.]+) ms", line))}
    assert rows["teacher"] == rows["forward"] + 50.0 == 200.0
    parts = ("env wait", "copy", "student forward", "teacher", "store", "rest")
    # The teacher's store and the rollout's share a name; the last is the rollout's.
    assert sum(rows[name] for name in parts) == pytest.approx(1000.0)
    assert [line for line in lines if "<- most" in line] == [line for line in lines if "student forward" in line]


@pytest.mark.parametrize(
    ("part", "label"), [("env", "env wait"), ("act", "student forward"), ("teacher_forward", "forward")]
)
def test_the_largest_row_is_marked(part: str, label: str) -> None:
    found: dict[str, Any] = {"teacher_forward": 0.01, "teacher_store": 0.01} | {part: 5.0}
    lines = tree(rollout=6.0, teacher=found["teacher_forward"] + 0.01, **found)
    (marked,) = [k for k, line in enumerate(lines) if line.endswith("<- most")]
    assert lines[marked].strip().startswith(label)
    said = " ".join(line.strip() for line in lines[marked + 1 : marked + 4])
    assert said.startswith(f"try {remedies()[part]}")
    assert max(map(len, lines)) <= 80


def test_every_row_has_a_remedy() -> None:
    assert {name for name, _ in ROWS} | {*SUMS, "rest"} == set(remedies())


def test_what_a_run_does_not_have_has_no_row() -> None:
    assert not any("teacher" in line or "players" in line or "core" in line for line in tree())


def test_every_second_rollout_is_timed_and_in_the_metrics(tmp_path: Path) -> None:
    """Until the teacher's phase ends its calls cost the core time; after it only the clock is read."""
    changes = {"run": "timed", "profiler.rollout_timing": 2, "trainer.total_timesteps": 4 * EPOCH}
    folder = train(taught(changes, clone={"until": 2.0 * EPOCH}), tmp_path, panel=False).folder
    log = (folder / "log.txt").read_text()
    assert re.findall(r"rollout timing, epoch (\d+)", log) == ["2", "4"]
    assert log.count("<- most") == 2
    for words in ("env wait", "copy", "student forward", "teacher", "  store", "core threads", "teacher calls"):
        assert words in log, words
    records = epochs_of(folder)
    calls = [record["time/teacher_calls"] for record in records]
    assert min(calls[:2]) > 2 * max(calls[2:])
    for record in records:
        assert record["time/core"] >= record["time/teacher_calls"]
        parts = ("env", "copy", "act", "teacher", "store")
        assert 0 < sum(record[f"time/{part}"] for part in parts) <= record["time/rollout"]
        assert record["time/teacher"] == pytest.approx(record["time/teacher_forward"] + record["time/teacher_store"])
