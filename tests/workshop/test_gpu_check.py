"""`make gpu-check` without a GPU: refused in one line, and its steps on a CPU in the device's place."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from small_runs import short_game, small_run

from gridmill.workshop import gpu_check
from gridmill.workshop.gpu_check import Check, Failed, main, report

SMALL = small_run(short_game())


def test_it_is_refused_without_a_gpu(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert not torch.cuda.is_available()
    assert main(["--out", str(tmp_path / "report.md")]) == 64
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert said.startswith("gpu-check: expected a GPU that torch can use, found none with torch ")
    assert not (tmp_path / "report.md").exists()


def test_the_steps_on_a_cpu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every step but the compiler's, which takes a minute, with small runs."""
    monkeypatch.setattr(gpu_check, "PARTS", (("bag", "scan"), ("attend", "gru")))
    path = tmp_path / "report.md"
    steps = ["machine", "numbers", "looks", "precision", "speed"]
    assert report(Check("cpu", SMALL, SMALL), steps, path) == []
    text = path.read_text()
    assert [line[3:] for line in text.splitlines() if line.startswith("## ")] == steps
    assert text.count("\nok, ") == len(steps)
    assert "| bag | scan | 0.00% | 0 | 0 | " in text  # a CPU gives the numbers of a CPU
    assert "got fp16, which is for GPUs" in text


@pytest.mark.long
@pytest.mark.filterwarnings("ignore")  # of the compiler's own doing
def test_the_compiled_step_on_a_cpu(tmp_path: Path) -> None:
    small = small_run(short_game(), num_worlds=24, batch_size=1152, minibatch_size=1152, async_factor=1)
    path = tmp_path / "report.md"
    assert report(Check("cpu", small, small), ["compile"], path) == [], path.read_text()


def test_a_step_that_fails_is_in_the_report_and_the_others_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def wrong(check: Check) -> Any:
        yield "- one line"
        raise Failed("results differ from the CPU's: bag with scan")

    def broken(check: Check) -> Any:
        yield str(1 // 0)

    monkeypatch.setattr(gpu_check, "STEPS", {"wrong": wrong, "broken": broken, "machine": gpu_check.machine_step})
    path = tmp_path / "report.md"
    assert report(Check("cpu", SMALL, SMALL), ["wrong", "broken", "machine"], path) == ["wrong", "broken"]
    text = path.read_text()
    assert "FAILED: results differ from the CPU's: bag with scan" in text
    assert "- one line" in text
    assert "ZeroDivisionError" in text
    assert str(Path.cwd()) not in text
    assert text.count("\nok, ") == 1
