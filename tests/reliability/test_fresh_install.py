"""A machine that has nothing: install the package into a new venv, then train."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

pytestmark = pytest.mark.U2

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.long
@pytest.mark.timeout(7_200)
def test_install_and_train(tmp_path: Path, record_property: Callable[[str, object], None]) -> None:
    """Compile a wheel, install it with what the trainer needs into a new venv, train the smallest recipe."""
    subprocess.run([sys.executable, "-m", "venv", str(tmp_path / "venv")], check=True)
    seconds = []

    def run(program: str, *arguments: str) -> None:
        began = time.monotonic()
        command = [str(tmp_path / "venv" / "bin" / program), *arguments]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
        seconds.append(f"{time.monotonic() - began:.0f} s")

    run("pip", "wheel", "--no-deps", "--wheel-dir", str(tmp_path), str(ROOT))  # what `pip install .` does first
    [wheel] = tmp_path.glob("gridmill-*.whl")
    run("pip", "install", f"gridmill[train] @ {wheel.as_uri()}")
    run("gridmill", "train", "ci", "run=first", "trainer.total_timesteps=92_160")
    folder = tmp_path / "runs" / "first"
    assert (folder / "report.html").is_file()
    assert list((folder / "checkpoints").iterdir())
    record_property("figure", "build {}, install with PyTorch {}, first training {}".format(*seconds))
