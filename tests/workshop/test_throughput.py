"""`gridmill throughput`: both implementations, the artefact, and the target."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner
from warm import FORKED

from gridmill.cli import app
from gridmill.workshop import machine, throughput
from gridmill.workshop.throughput import Settings

TRAINED = ["--worlds", "8", "--steps", "1024", "--repeats", "2", "--warmup", "512"]
QUICK = ["throughput", "--mode", "env_only", "--steps", "640", "--repeats", "3", "--warmup", "64"]


def artefact(folder: Path) -> dict:
    (path,) = folder.glob("*.json")
    record = json.loads(path.read_text())
    utc, commit, mode = path.stem.split("-")
    assert utc.endswith("Z")
    assert str(record["machine"]["commit"]["hash"]).startswith(commit)
    assert mode == "env_only"
    return record


@pytest.mark.parametrize("impl", ["native", "reference", "auto"])
def test_both_implementations_are_measured_and_saved(impl: str, tmp_path: Path) -> None:
    result = CliRunner().invoke(app, [*QUICK, "--env-impl", impl, "--worlds", "2", "--output", str(tmp_path)])
    assert result.exit_code == 0, result.output
    record = artefact(tmp_path)
    assert record["env_impl"] == ("reference" if impl == "reference" else "native")
    assert [r["agent_steps"] for r in record["rounds"]] == [640] * 3
    for rates in (record["steps_per_second"], record["steps_per_cpu_second"]):
        assert list(rates) == ["min", "mean", "p50", "p95", "p99"]
        assert 0 < rates["min"] <= rates["p50"] <= rates["p95"] <= rates["p99"]
    assert record["reached"] is None
    assert max(len(line) for line in result.stdout.splitlines() if not line.startswith("saved")) <= 80


@pytest.mark.parametrize(("target", "enforced", "code"), [(1, True, 0), (1e12, True, 1), (1e12, False, 0)])
def test_a_target_is_enforced_when_asked(target: float, enforced: bool, code: int, tmp_path: Path) -> None:
    options = ["--target-steps-per-sec", str(target), "--output", str(tmp_path)]
    result = CliRunner().invoke(app, [*QUICK, *options, *(["--enforce-target"] if enforced else [])])
    assert result.exit_code == code, result.output
    assert artefact(tmp_path)["reached"] is (target == 1)
    assert ("reached" if target == 1 else "missed") in result.stdout


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        (Settings(worlds=0), "--worlds must be at least 1, got 0"),
        (Settings(repeats=0), "--repeats must be at least 1, got 0"),
        (Settings(enforce=True), "--enforce-target needs --target-steps-per-sec"),
        (Settings(target=0.0), "--target-steps-per-sec must be above 0, got 0.0"),
        (Settings(env_impl="reference", threads=2), "--threads: the reference has one thread; use --env-impl native"),
    ],
)
def test_what_cannot_be_measured_is_refused(settings: Settings, expected: str) -> None:
    with pytest.raises(ValueError) as refused:
        settings.check()
    assert str(refused.value) == expected


@pytest.mark.parametrize(
    "mode", ["trainer", *(pytest.param(m, marks=pytest.mark.long) for m in ("rollout", "trainer_eval"))]
)
def test_modes_with_a_trainer(mode: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if mode == "trainer":
        monkeypatch.setattr(machine, "subprocess", FORKED)
    words = ["throughput", "--mode", mode, *TRAINED, "--output", str(tmp_path)]
    result = CliRunner().invoke(app, words)
    assert result.exit_code == 0, result.output
    (path,) = tmp_path.glob("*.json")
    record = json.loads(path.read_text())
    assert [r["agent_steps"] for r in record["rounds"]] == [1_024] * 2
    assert (record["steps_per_cpu_second"] is None) == (mode != "trainer")
    assert record["kind"] == "throughput"


def test_the_trend_by_commit_and_the_runs_before(tmp_path: Path) -> None:
    words = [*QUICK, "--worlds", "2", "--output", str(tmp_path)]
    assert "trend by commit" not in CliRunner().invoke(app, words).stdout
    first = next(tmp_path.glob("*.json"))
    record = json.loads(first.read_text())
    record["machine"]["commit"]["hash"] = "f" * 40
    record["steps_per_second"]["mean"] = 10.0
    first.unlink()
    (tmp_path / "20200101T000000Z-ffffffffff-env_only.json").write_text(json.dumps(record))
    record |= {"finished": False}  # and one that was stopped, which is compared with nothing
    (tmp_path / "20200102T000000Z-ffffffffff-env_only.json").write_text(json.dumps(record))
    said = CliRunner().invoke(app, words).stdout
    assert "trend by commit" in said
    assert "x of 10, the median of 1 earlier run; the lowest was 10" in " ".join(said.split())
    assert max(len(line) for line in said.splitlines() if not line.startswith("saved")) <= 80


def test_what_was_measured_is_saved_when_it_is_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def stopped(settings: object, done: list) -> None:
        done.append(throughput.Round(1, 640, 0.5, 1.0))
        raise KeyboardInterrupt

    monkeypatch.setattr(throughput, "measure", stopped)
    result = CliRunner().invoke(app, [*QUICK, "--output", str(tmp_path)])
    assert result.exit_code == 130, result.output
    record = artefact(tmp_path)
    assert (record["finished"], record["exit_code"], len(record["rounds"])) == (False, 130, 1)
    assert "stopped by SIGINT after 1 repeat" in result.stdout
