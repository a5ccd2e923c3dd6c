"""Files that the performance tools are given: what is not a plain file is refused in one line, and never waited for."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from gridmill.cli import app
from gridmill.workshop import artefact

pytestmark = pytest.mark.X9

HONEST = Path("honest.json")
FILE = "theirs.json"


def endless(path: Path) -> None:
    path.touch()
    os.truncate(path, 1 << 36)


TRAPS: dict[str, tuple[Callable[[Path], None], str]] = {
    "pipe": (os.mkfifo, "expected a plain file, got a pipe"),
    "link": (lambda path: path.symlink_to(HONEST.absolute()), "expected a plain file, got a link"),
    "device": (lambda path: path.symlink_to("/dev/zero"), "expected a plain file, got a link"),
    "folder": (Path.mkdir, "expected a plain file, got a folder"),
    "endless": (endless, f"expected at most {artefact.MOST} bytes, got {1 << 36}"),
}
COMMANDS = {
    "ab": ["ab", "ci", "ci", "--resume", FILE],
    "bench step": ["bench", "step", "--resume", FILE],
    "bench step, baseline": ["bench", "step", "--baseline", FILE],
    "bench train": ["bench", "train", "--resume", FILE],
    "compare-presets": ["compare-presets", "--resume", FILE],
    "gate": ["gate", "--floors", "floors.json", "--game", "toy", "--record", "--resume", FILE],
    "gate, floors": ["gate", "--floors", FILE],
    "profile step": ["profile", "step", "--resume", FILE],
    "profile train": ["profile", "train", "ci", "--resume", FILE],
    "throughput": ["throughput", "--resume", FILE],
    "tune": ["tune", "ci", "--resume", FILE],
    "validate": ["validate", "3000", "--resume", FILE],
}


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    artefact.write(artefact.record("ab", 1, {}, {"rate": artefact.sample([1.0], "steps/s")}), HONEST)


def call(*words: str) -> Result:
    return CliRunner().invoke(app, list(words))


def refused(result: Result, said: str) -> None:
    assert result.exit_code in (2, 64), result.output
    assert said in result.stderr
    assert result.stderr.count("\n") == 1
    assert not Path("runs").exists()


@pytest.mark.parametrize("command", COMMANDS)
def test_a_pipe_is_not_waited_for(command: str) -> None:
    os.mkfifo(FILE)
    refused(call(*COMMANDS[command]), "expected a plain file, got a pipe: 'theirs.json'")


@pytest.mark.parametrize("trap", TRAPS)
def test_what_is_not_a_plain_file_is_left_out_of_a_list(trap: str) -> None:
    make, said = TRAPS[trap]
    make(Path(FILE))
    with pytest.raises(OSError, match=said):
        artefact.read(Path(FILE))
    result = call("artifacts", ".")
    assert result.exit_code == 0, result.output
    assert "1 other JSON file left out" in result.stdout
    bench = call("bench", "step", "--report", ".")
    assert bench.exit_code == 64
    assert said in bench.stdout


def test_a_picture_is_not_drawn_through_a_link() -> None:
    pytest.importorskip("matplotlib")
    rate, load = {"median": 9.0, "cv": 0.1}, {"game": "toy", "worlds": 1, "threads": 1, "lanes": 1}
    run = {"load": load, "num_agents": 2, "per_cpu_second": rate, "rounds": []}
    machine = {"date": "2026-01-02", "commit": {"hash": None}, "cpu": {"model": "x"}}
    Path(FILE).write_text(json.dumps({"kind": "bench step", "runs": [run], "machine": machine, "phase": None}))
    Path("report.png").symlink_to(Path("somebody's").absolute())
    Path("somebody's").write_text("mine")
    assert call("bench", "step", "--report", ".").exit_code == 0
    assert Path("somebody's").read_text() == "mine"
    assert Path("report.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("name", ["../other", "/etc", "a/b", "", "..", 3])
def test_an_artefact_does_not_choose_another_folder(name: object) -> None:
    shutil.copy(HONEST, FILE)
    record = artefact.read(Path(FILE)) | {"kind": "validate", "run": name, "validation": None}
    artefact.write(record, Path(FILE))
    with pytest.raises(ValueError, match=r"`theirs.json`: expected its `run`, got .*; start over without --resume"):
        artefact.continued(Path(FILE), "validate", record["settings"], "run", "validation")
    del record["run"]
    artefact.write(record, Path(FILE))
    with pytest.raises(ValueError, match=r"expected its `run`, got none; start over without --resume"):
        artefact.continued(Path(FILE), "validate", record["settings"], "run", "validation")
