"""Cron and some service managers start a command without stdin, stdout or stderr."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from tiny import SUPPORT


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_a_run_and_its_evaluation_without_a_stream(closed: str, tmp_path: Path) -> None:
    """Python has none then, and whoever asked it whether it is a terminal failed."""

    def call(*words: str) -> subprocess.CompletedProcess[str]:
        shell = ["sh", "-c", f'exec "$@" {closed}', "sh", sys.executable, "-P", "-m", "gridmill"]
        return subprocess.run([*shell, *words], cwd=tmp_path, capture_output=True, text=True, timeout=120)

    done = call("train", f"{SUPPORT / 'tiny.py'}:tiny", "run=c")
    assert (done.returncode, done.stderr) == (0, "")
    assert (tmp_path / "runs/c/log.txt").read_text().endswith("ended: finished\n")
    done = call("eval", "c", "--episodes", "1")
    assert (done.returncode, done.stderr) == (0, "")
    assert bool(done.stdout) == (">&-" not in closed.split())
