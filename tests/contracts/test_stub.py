"""The checked-in stub of the extension is current: `make format` regenerates it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import gridmill

SOURCE = Path(__file__).resolve().parents[2] / "src" / "gridmill" / "_native.pyi"


def test_stub_is_current(tmp_path):
    fresh = tmp_path / "fresh.pyi"
    command = [
        sys.executable,
        "-m",
        "nanobind.stubgen",
        "-q",
        "-m",
        gridmill._native.__name__,
        "-o",
        str(fresh),
    ]
    subprocess.run(command, check=True)
    assert SOURCE.read_text() == fresh.read_text(), "run `make format`"
