"""`gridmill runs`: states, figures and the table, from files alone."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from gridmill import cli, games
from gridmill.run import Run
from gridmill.runs.listing import rows, text
from gridmill.runs.log import RunLog

RUN = Run(recipe="toy", game=games.toy())


def started(folder: Path, steps: int) -> RunLog:
    log = RunLog(folder, RUN, ["recipe: toy"], panel=False)
    if steps:
        log.epoch({"epoch": 1, "agent_steps": steps, "total_timesteps": 1000, "score": 2.5})
        log.epoch({"epoch": 2, "agent_steps": steps, "total_timesteps": 1000, "score": None})
    return log


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    started(tmp_path / "done", 1000).close()
    started(tmp_path / "broken_off", 400).close("interrupted")
    started(tmp_path / "lost", 400)._log.close()  # as a killed process leaves it: no last word, no lock
    started(tmp_path / "young", 0)._log.close()
    (tmp_path / "something else").mkdir()
    for epoch, whole in ((1, True), (12, True), (13, False)):
        checkpoint = tmp_path / "done" / "checkpoints" / f"epoch-{epoch:08}"
        checkpoint.mkdir(parents=True)
        if whole:
            (checkpoint / "manifest.json").write_text("{}")
    return tmp_path


def test_states_and_figures(folder: Path) -> None:
    log = started(folder / "busy", 100)
    found = {row.name: row for row in rows(folder)}
    log.close()
    states = {name: row.state for name, row in found.items()}
    assert states == {"done": "finished", "broken_off": "stopped", "lost": "died", "young": "empty", "busy": "running"}
    done = found["done"]
    assert (done.agent_steps, done.total_timesteps, done.score) == (1000, 1000, 2.5)
    assert done.checkpoint == "epoch-00000012"
    assert 0 <= done.age < 60
    assert found["young"].score is None


def test_the_table_fits_80_columns(folder: Path) -> None:
    started(folder / ("long-" * 20), 10).close()
    lines = text(rows(folder)).splitlines()
    assert lines[0].split() == ["run", "state", "steps", "done", "score", "checkpoint", "age"]
    assert max(map(len, lines)) <= 80
    [done] = [line.split() for line in lines if line.startswith("done")]
    assert done[:7] == ["done", "finished", "1", "k", "100", "%", "2.50"]
    assert done[7] == "12"


def test_the_command(folder: Path) -> None:
    result = CliRunner().invoke(cli.app, ["runs", "--runs-dir", str(folder), "--json"])
    assert result.exit_code == 0, result.output
    assert {row["name"] for row in json.loads(result.stdout)["runs"]} == {"done", "broken_off", "lost", "young"}
    missing = CliRunner().invoke(cli.app, ["runs", "--runs-dir", str(folder / "none")])
    assert missing.exit_code == 2
    assert missing.stderr == f"gridmill: expected a folder of runs, got `{folder / 'none'}`; --runs-dir names another\n"


def test_a_folder_without_runs(tmp_path: Path) -> None:
    assert text(rows(tmp_path)).splitlines()[1:] == []
