"""`gridmill runs`: states, figures and the table, from files alone."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from typer.testing import CliRunner

from gridmill import cli, games
from gridmill.run import Run
from gridmill.runs import listing
from gridmill.runs.listing import SORTS, matching, ordered, rows, text
from gridmill.runs.log import RunLog

RUN = Run(recipe="toy", game=games.toy())


def started(folder: Path, steps: int) -> RunLog:
    log = RunLog(folder, RUN, ["recipe: toy"], panel=False)
    if steps:
        log.epoch({"epoch": 1, "agent_steps": steps, "total_timesteps": 1000, "score": 2.5, "sps_mean": 5e4})
        log.epoch({"epoch": 2, "agent_steps": steps, "total_timesteps": 1000, "score": None})
    return log


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    started(tmp_path / "done", 1000).close()
    (tmp_path / "done" / "run.json").write_text(json.dumps({"run": RUN.replace("seed", 7).tree()}))
    started(tmp_path / "broken_off", 400).close("interrupted")
    started(tmp_path / "lost", 400)._lock.close()  # as a killed process leaves it: no last word, no lock
    started(tmp_path / "young", 0)._lock.close()
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


@pytest.mark.parametrize(
    ("said", "state"),
    [
        ("finished", "finished"),
        ("finished; the last evaluation was stopped by SIGINT", "finished"),
        ("checkpoints cannot be written", "stopped"),
    ],
)
def test_a_run_without_its_last_checkpoint_is_not_finished(tmp_path: Path, said: str, state: str) -> None:
    """All its steps were taken, and yet there may be nothing to play with."""
    started(tmp_path / "mine", 1000).close(said)
    assert [row.state for row in rows(tmp_path)] == [state]


def test_the_score_is_that_of_the_log(tmp_path: Path) -> None:
    """The mean over the newest episodes, not that of the few that ended in the last epoch."""
    log = RunLog(tmp_path / "a", RUN, ["recipe: toy"], panel=False)
    log.epoch({"epoch": 1, "agent_steps": 10, "total_timesteps": 10, "score": 2.875, "score_recent": 2.4})
    log.close()
    assert [row.score for row in rows(tmp_path)] == [2.4]


def test_the_table_fits_80_columns(folder: Path) -> None:
    started(folder / ("long-" * 20), 10).close()
    lines = text(rows(folder)).splitlines()
    assert lines[0].split() == ["run", "recipe", "seed", "state", "steps", "speed", "score", "age"]
    assert max(map(len, lines)) <= 80
    [done] = [line.split() for line in lines if line.startswith("done")]
    assert done[:8] == ["done", "toy", "7", "finished", "1", "k", "50", "k/s"]
    assert done[8] == "2.50"
    assert any("died 40%" in line for line in lines)


def test_the_command(folder: Path) -> None:
    result = CliRunner().invoke(cli.app, ["runs", "--runs-dir", str(folder), "--json"])
    assert result.exit_code == 0, result.output
    assert {row["name"] for row in json.loads(result.stdout)["runs"]} == {"done", "broken_off", "lost", "young"}
    missing = CliRunner().invoke(cli.app, ["runs", "--runs-dir", str(folder / "none")])
    assert missing.exit_code == 2
    assert missing.stderr == f"gridmill: expected a folder of runs, got `{folder / 'none'}`; --runs-dir names another\n"


def test_a_folder_without_runs(tmp_path: Path) -> None:
    assert text(rows(tmp_path)).splitlines()[1:] == []


def test_filter_and_sort(folder: Path) -> None:
    found = rows(folder)
    assert [row.name for row in matching(found, ["finished"])] == ["done"]
    assert [row.name for row in matching(found, ["TOY", "seed=7"])] == ["done"]
    assert matching(found, ["toy", "died"]) == []  # all words count
    assert [row.name for row in ordered(found, "steps")][:1] == ["done"]
    assert [row.name for row in ordered(found, "name")] == ["broken_off", "done", "lost", "young"]
    assert ordered(found, "score")[-1].name == "young"  # without a score comes last
    for key in SORTS:
        ordered(found, key)
    told = CliRunner().invoke(cli.app, ["runs", "died", "--runs-dir", str(folder), "--sort", "speed"])
    assert [line.split()[0] for line in told.stdout.splitlines()] == ["run", "lost"]
    wrong = CliRunner().invoke(cli.app, ["runs", "--runs-dir", str(folder), "--sort", "luck"])
    assert "expected one of age, name" in wrong.stderr


def test_unreadable_runs_do_not_end_the_list(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "lost" / "metrics.jsonl").write_bytes(b"\xff\xfe\n" + b"[" * 100_000 + b'\n{"agent_steps": "x"}\n')
    (folder / "young" / "run.json").write_text("[" * 100_000)
    (folder / "done" / "run.json").unlink()
    (folder / "done" / "run.json").symlink_to("run.json")
    real = listing._state

    def state(log: Path, *rest: object) -> str:
        if log.parent.name == "broken_off":
            raise PermissionError(13, "Permission denied", str(log))
        return real(log, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(listing, "_state", state)
    found = {row.name: row for row in rows(folder)}
    assert found.keys() == {"done", "broken_off", "lost", "young"}
    assert found["broken_off"].state == "unreadable"
    assert (found["lost"].agent_steps, found["done"].recipe) == (0, None)
    assert "broken_off: [Errno 13] Permission denied" in text(list(found.values()))


def test_a_run_without_its_log_is_listed(folder: Path) -> None:
    """It was not: its log is only for reading."""
    for name in ("done", "broken_off"):
        (folder / name / "log.txt").unlink()
    (folder / "lost" / "metrics.jsonl").unlink()
    states = {row.name: row.state for row in rows(folder)}
    assert states == {"done": "finished", "broken_off": "died", "lost": "empty", "young": "empty"}


def test_a_checkpoint_alone_is_no_run(tmp_path: Path) -> None:
    (tmp_path / "kept").mkdir()
    for name in ("run.json", "manifest.json", "policy.safetensors"):
        (tmp_path / "kept" / name).write_text("{}")
    assert rows(tmp_path) == []


def test_a_word_that_no_run_has_is_said(folder: Path) -> None:
    done = CliRunner().invoke(cli.app, ["runs", "dome", "--runs-dir", str(folder)])
    assert (done.exit_code, done.stderr) == (0, "no run matches `dome`; did you mean `done`?\n")
    done = CliRunner().invoke(cli.app, ["runs", "seed=9", "--runs-dir", str(folder)])
    assert done.stderr == "no run matches `seed=9`; there are 4 runs\n"
    for row in rows(folder)[1:]:
        shutil.rmtree(folder / row.name)
    done = CliRunner().invoke(cli.app, ["runs", "seed=9", "--runs-dir", str(folder)])
    assert done.stderr == "no run matches `seed=9`; there is 1 run\n"
