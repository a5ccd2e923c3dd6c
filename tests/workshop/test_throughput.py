"""`gridmill throughput`: both implementations, the artefact, and the target."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from gridmill.cli import app
from gridmill.workshop.throughput import Settings

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
