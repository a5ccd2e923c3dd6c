"""U2: a machine that has nothing: install the package into a new venv, then train."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.long
def test_U2_install_and_train(tmp_path: Path, record_property: Callable[[str, object], None]) -> None:
    """`pip install .[train]` in a new venv, then the smallest recipe: a report and a checkpoint are there."""
    subprocess.run([sys.executable, "-m", "venv", str(tmp_path / "venv")], check=True)
    began = time.monotonic()
    pip = [str(tmp_path / "venv" / "bin" / "pip"), "install", "--quiet", f"{ROOT}[train]"]
    subprocess.run(pip, check=True, cwd=tmp_path)
    installed = time.monotonic()
    command = [
        str(tmp_path / "venv" / "bin" / "gridmill"),
        "train",
        "ci",
        "run=first",
        "trainer.total_timesteps=92_160",
    ]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    folder = tmp_path / "runs" / "first"
    assert (folder / "report.html").is_file()
    assert list((folder / "checkpoints").iterdir())
    trained = time.monotonic()
    record_property("figure", f"install {installed - began:.0f} s, first training {trained - installed:.0f} s")
