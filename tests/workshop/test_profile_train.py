"""`gridmill profile`: the group, the tree, the trace and what is advised."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace

import pytest
from typer.testing import CliRunner

from gridmill.cli import app
from gridmill.runs import session
from gridmill.workshop import profile_train as tool

EVEN = dict.fromkeys(("copy", "store", "teacher", "players"), 0.0) | {"rollout": 0.6, "sps": 1_000.0}


def test_what_profile_alone_was_is_answered_with_the_new_form() -> None:
    result = CliRunner().invoke(app, ["profile", "--game", "toy"])
    assert result.exit_code == 2
    said = "gridmill: `gridmill profile` has two parts now: gridmill profile step --game toy\n"
    assert result.stderr == said
    assert "step" in CliRunner().invoke(app, ["profile", "--help"]).stdout


def test_operators_by_their_own_time() -> None:
    def op(name: str, ts: float, dur: float, tid: int = 1) -> dict:
        return {"cat": "cpu_op", "ph": "X", "name": name, "ts": ts, "dur": dur, "tid": tid}

    events = [op("outer", 0, 1_000), op("inner", 100, 300), op("inner", 500, 200), op("inner", 0, 2_000, tid=2)]
    assert tool.operators(events) == [("inner", 3, 2.5), ("outer", 1, 0.5)]


@pytest.mark.parametrize(
    ("found", "expected", "words"),
    [
        ({"env": 0.5, "act": 0.1, "learn": 0.4}, None, ["env-bound: env is 50 % of the time, at most 2.00x"]),
        ({"env": 0.1, "act": 0.5, "learn": 0.4}, None, ["forward-bound: act is 50 %"]),
        ({"env": 0.1, "act": 0.1, "learn": 0.8, "rollout": 0.2}, None, ["learn-bound", "out of balance: rollout to"]),
        ({"env": 0.1, "act": 0.5, "learn": 0.4, "gpu/util": 0.4}, None, ["the GPU is busy 40 % of the time"]),
        ({"env": 0.1, "act": 0.5, "learn": 0.4}, 3_000.0, ["below half of the expected 3.00 k"]),
        ({"env": 0.1, "act": 0.2, "learn": 0.3, "copy": 0.4}, None, ["copy-bound: copy is 40 %"]),
    ],
)
def test_advice_is_drawn_from_the_figures(found: dict, expected: float | None, words: list[str]) -> None:
    said = tool.advice(EVEN | found, expected)
    for text in words:
        assert any(text in line for line in said), said


def test_a_run_is_profiled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    small = ["trainer.batch_size=1536", "trainer.minibatch_size=384", "trainer.bptt_horizon=16", "policy.hidden=16"]
    words = ["profile", "train", "ci", *small, "--steps", "3000", "--rollout-timing", "1", "--active", "2"]
    result = CliRunner().invoke(app, words)
    assert result.exit_code == 0, result.output
    for text in ("rollout timing, epoch 2", "share of the time", "backward passes: 4", "operator", "advice"):
        assert text in result.stdout
    (trace,) = tmp_path.glob("runs/profile-ci-*/traces/profiler_trace_*.json")
    assert {e.get("cat") for e in tool.read_trace(trace)} >= {"cpu_op", "gridmill", "core"}
    (path,) = (tmp_path / "artifacts" / "profile-train").glob("*.json")
    record = json.loads(path.read_text())
    assert record["traces"] == [trace.name]
    assert record["shares"]["rollout"] + record["shares"]["learn"] == pytest.approx(1)


def test_there_are_two_epochs_and_a_tree_at_least() -> None:
    run = tool.planned(tool.Settings("ci", ("trainer.batch_size=768",), steps=100))
    assert (run.trainer.total_timesteps, run.profiler.rollout_timing) == (2 * 768, 2)
    run = tool.planned(tool.Settings("ci", ("trainer.batch_size=768", "profiler.rollout_timing=3"), steps=76_800))
    assert (run.trainer.total_timesteps, run.profiler.rollout_timing) == (76_800, 3)


def test_a_run_without_a_whole_epoch_is_one_line_and_1(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "metrics.jsonl").write_text("")
    monkeypatch.setattr(session, "train", lambda *_: SimpleNamespace(folder=tmp_path, exit_code=0))
    result = CliRunner().invoke(app, ["profile", "train", "ci"])
    assert result.exit_code == 1
    assert result.stderr == "gridmill: no epoch was finished, so there are no times to show\n"


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["--steps", "0"], "--steps must be at least 1, got 0"),
        (["--active", "0"], "--active must be at least 1, got 0"),
    ],
)
def test_bad_input_is_one_line_and_2(words: list[str], text: str) -> None:
    result = CliRunner().invoke(app, ["profile", "train", "ci", *words])
    assert (result.exit_code, result.stderr) == (2, f"gridmill: {text}\n")
