"""X7: nothing reaches for the network, neither imports nor play nor training."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

PROGRAM = """
import socket, sys

def refuse(*_, **__):
    raise AssertionError("reached for the network")

socket.create_connection = socket.getaddrinfo = socket.socket.connect = socket.socket.connect_ex = refuse
import importlib, pkgutil, gridmill
for found in pkgutil.walk_packages(gridmill.__path__, "gridmill."):
    if not found.name.endswith(("__main__", "count_side")):
        try:
            importlib.import_module(found.name)
        except ModuleNotFoundError as missing:  # an adapter to a library that is not installed
            assert not missing.name.startswith("gridmill"), missing
sys.path.insert(0, sys.argv[1])
from tiny import tiny
from gridmill.runs import train
done = train(tiny(2, run="offline"), sys.argv[2], panel=False)
assert done.exit_code == 0
with gridmill.make("prospector", num_worlds=2) as env:
    env.reset()
    env.step()
print("modules", len([name for name in sys.modules if name.startswith("gridmill")]))
try:
    socket.create_connection(("localhost", 9))
except AssertionError:
    print("refused")
"""


@pytest.mark.X7
def test_import_play_and_training_reach_for_no_network(tmp_path: Path, record_property) -> None:
    support = str(ROOT / "tests" / "support")
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, support, str(tmp_path)], capture_output=True, text=True, cwd=tmp_path
    )
    assert done.returncode == 0, done.stderr
    *_, modules, last = done.stdout.splitlines()
    assert last == "refused"
    assert int(modules.split()[1]) > 100
    record_property("figure", f"{modules.split()[1]} modules, a run and two games without a connection")


@pytest.mark.X7
def test_what_builds_and_trains_is_pinned() -> None:
    """Versions that change results or binaries are exact; the rest has a lower bound."""
    told = tomllib.loads((ROOT / "pyproject.toml").read_text())
    assert all("==" in need for need in told["build-system"]["requires"])
    extras = told["project"]["optional-dependencies"]
    needs = [need for part in (told["project"]["dependencies"], *extras.values()) for need in part]
    assert all("==" in need or ">=" in need for need in needs if not need.startswith("gridmill["))
    assert any(need.startswith("torch==") for need in extras["train"])
