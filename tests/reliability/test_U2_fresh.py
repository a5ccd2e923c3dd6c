"""U2: a machine that has nothing: install the package into a new venv, then train."""

from __future__ import annotations

import subprocess
import sys
import time
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.long
@pytest.mark.timeout(1_800)
def test_U2_install_and_train(tmp_path: Path, record_property: Callable[[str, object], None]) -> None:
    """`pip install .` in a new venv, the trainer's packages, then the smallest recipe: a report and a checkpoint."""
    subprocess.run([sys.executable, "-m", "venv", str(tmp_path / "venv")], check=True)
    seconds = []

    def run(program: str, *arguments: str) -> None:
        began = time.monotonic()
        command = [str(tmp_path / "venv" / "bin" / program), *arguments]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
        seconds.append(f"{time.monotonic() - began:.0f} s")

    run("pip", "install", str(ROOT))  # fetches the build's tools and NumPy, compiles
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    run("pip", "install", *project["optional-dependencies"]["train"])  # alone, or pip compiles once more
    run("gridmill", "train", "ci", "run=first", "trainer.total_timesteps=92_160")
    folder = tmp_path / "runs" / "first"
    assert (folder / "report.html").is_file()
    assert list((folder / "checkpoints").iterdir())
    record_property("figure", "pip install . {}, PyTorch {}, first training {}".format(*seconds))
