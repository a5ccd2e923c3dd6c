"""How a run ends and begins: what it says last, what a finished one says, and that a refused one leaves nothing."""

from __future__ import annotations

import io
import shlex
import sys
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console
from tiny import epochs_of, tiny
from typer.testing import CliRunner
from warm import warm

from gridmill import cli, games
from gridmill.config import ConfigError, user_code
from gridmill.config.install import command, pip_install, python
from gridmill.run import Run
from gridmill.runs import ending, resume, train
from gridmill.runs.console import Panel
from gridmill.runs.heading import heading
from gridmill.runs.log_lines import TITLES, epoch_line


def last_lines(folder: Path) -> list[str]:
    return (folder / "log.txt").read_text().splitlines()[-5:]


def test_the_end_says_where_to_look(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The report that is there; commands for what is not, which work as they are printed."""
    monkeypatch.chdir(tmp_path)
    train(tiny(2, run="mine"), panel=False)
    lines = last_lines(Path("runs/mine"))
    assert [line.split()[0] for line in lines] == ["report", "evaluation", "video", "watch", "ended:"]
    assert lines[0].split()[1] == "runs/mine/report.html"
    assert Path("runs/mine/report.html").is_file()
    assert lines[1].split(maxsplit=1)[1] == command("eval", "mine")
    assert lines[2].split(maxsplit=1)[1] == command("show", "mine", "--gif", "mine.gif")
    told = shlex.split(lines[3].split(maxsplit=1)[1])
    done = warm([*told, "--to", "2"], tmp_path)
    assert done.returncode == 0, done.stderr
    assert "tick 1" in done.stdout


def test_the_end_of_a_run_with_a_network_of_ones_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The commands name its file, and what looks at the game alone needs none."""
    monkeypatch.chdir(tmp_path)
    Path("mine.py").write_text("from gridmill.policy.encoders.bag import Bag\n\n\nclass Mine(Bag): ...\n")
    train(tiny(2, run="own", policy__encoder="mine.py:Mine"), panel=False)
    code = ["--code", str(tmp_path / "mine.py")]
    lines = [line.split(maxsplit=1)[1] for line in last_lines(Path("runs/own"))]
    assert lines[1:3] == [command("eval", "own", *code), command("show", "own", *code, "--gif", "own.gif")]
    monkeypatch.setattr(user_code, "_taken", [])
    for words in (["watch", "own", "--to", "2", *code], ["explain", "own"], ["diff", "own", "own"]):
        done = CliRunner().invoke(cli.app, words)
        assert done.exit_code == 0, done.output
        user_code._taken.clear()
    done = CliRunner().invoke(cli.app, ["show", "own"])
    assert done.exit_code == 2
    assert done.stderr.endswith("add --code mine.py\n")


def test_the_end_names_what_is_there_already(tmp_path: Path) -> None:
    (tmp_path / "replays").mkdir()
    (tmp_path / "replays" / "epoch-00000002.replay").write_bytes(b"")
    (tmp_path / "replays" / "epoch-00000003.replay").symlink_to("nowhere")  # in a folder of somebody
    judged = {"epoch": 2, "score": {"mean": 1.25, "se": 0.5}}
    found = ending.lines(tmp_path, True, judged)
    folder = shlex.quote(str(tmp_path))
    assert (
        found[1] == f"evaluation  score 1.25 +- 0.500, epoch 2; against random play: {command('eval', str(tmp_path))}"
    )
    assert found[3].endswith(f"watch {folder}/replays/epoch-00000002.replay")
    assert ending.lines(tmp_path, False, None)[0] == f"report      {command('report', str(tmp_path))}"


def test_the_last_picture_tells_the_truth() -> None:
    """The last checkpoint is written after the last epoch; and nothing is left to wait for."""
    panel = Panel("a run", "toy", Console(width=80, file=io.StringIO(), force_terminal=True))
    panel.epoch({"agent_steps": 100, "total_timesteps": 100, "eta": 0.0, "score_recent": 2.0, "score": 9.0})
    panel.saved("epoch-00000007")
    panel.close("finished")
    page = Console(width=80, record=True, file=io.StringIO())
    page.print(panel.picture())
    text = page.export_text()
    assert "100 of 100  finished" in text
    assert "eta" not in text
    assert "saved    epoch-00000007  " in text
    assert "ago" not in text
    assert "score    2.00" in text


def test_a_score_in_every_line_once_an_episode_has_ended(tmp_path: Path) -> None:
    """Of epochs in which no episode ended, too: the mean of the newest."""
    result = train(tiny(6, trainer__desync_episodes=False), tmp_path, panel=False)
    records = epochs_of(result.folder)
    assert any(record["episodes"] == 0 for record in records[2:])
    column = TITLES.index("score") + len("score")
    scores = [epoch_line(record)[:column].split()[-1] for record in records]
    first = next(n for n, record in enumerate(records) if record["episodes"])
    assert "-" not in scores[first:]
    assert scores[:first] == ["-"] * first


def test_a_finished_run_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = train(tiny(2, run="mine"), tmp_path, panel=False).folder
    before = {path: path.stat().st_mtime_ns for path in folder.rglob("*")}
    capsys.readouterr()
    result = resume(folder, panel=False)
    said = capsys.readouterr().out
    score = f"{epochs_of(folder)[-1]['score_recent']:.3g}"[:3]
    assert said.startswith(f"{folder} is finished: 256 of 256 steps, score {score}")
    assert said.endswith(f"; to continue training: {command('resume', str(folder), 'trainer.total_timesteps=512')}\n")
    assert (result.exit_code, result.agent_steps, result.epochs) == (0, 256, 2)
    assert {path: path.stat().st_mtime_ns for path in folder.rglob("*")} == before  # nothing was touched
    same = ["optimizer.kind=adam", "seed=0", "trainer.total_timesteps=128"]  # as a job's command says it every time
    assert resume(folder, same, panel=False).agent_steps == 256
    assert resume(folder, ["trainer.total_timesteps=512"], panel=False).agent_steps == 512


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        (["seed=5"], "these settings cannot change at a resume: seed was 0, is 5; leave them out, or start a new run"),
        (["policy.hidden=64"], "these settings cannot change at a resume: policy.hidden was 16, is 64; "),
        (["trainer.batch_size=100"], "batch_size = 100 is not a multiple of 64"),
        (["trainer.gamma=0.5"], "expected no settings, or more steps, such as trainer.total_timesteps=512, got "),
        (
            ["trainer.total_timesteps=128", "checkpoint.keep=9"],
            "such as trainer.total_timesteps=512, got checkpoint.keep",
        ),
    ],
)
def test_a_finished_run_ignores_no_setting(changes: list[str], said: str, tmp_path: Path) -> None:
    """They were taken without a word, also those that are refused while steps are left."""
    folder = train(tiny(2, run="mine"), tmp_path, panel=False).folder
    before = {path: path.stat().st_mtime_ns for path in folder.rglob("*")}
    with pytest.raises(ValueError) as caught:
        resume(folder, changes, panel=False)
    assert said in str(caught.value)
    assert {path: path.stat().st_mtime_ns for path in folder.rglob("*")} == before


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"track__wandb": "offline"}, "expected the package `wandb`"),
        ({"trainer__batch_size": 100}, "trainer"),
        ({"policy__init_from": "nowhere"}, "nowhere"),
    ],
)
def test_a_run_that_is_refused_leaves_no_folder(
    changes: dict[str, Any], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "wandb", None)
    runs = tmp_path / "runs"
    with pytest.raises((ConfigError, ValueError), match=said):
        train(tiny(2, run="mine", **changes), runs, panel=False)
    assert not runs.exists()


def test_a_refused_run_leaves_the_old_one_in_its_place(tmp_path: Path) -> None:
    """Weights of another network are refused when the new one has been made; --fresh has moved nothing by then."""
    other = train(tiny(1, run="other", policy__layers=2), tmp_path, panel=False).folder
    mine = train(tiny(1, run="mine"), tmp_path, panel=False).folder
    with pytest.raises(ValueError, match=r"policy\.init_from"):
        train(tiny(1, run="mine", policy__init_from=str(other)), tmp_path, panel=False, fresh=True)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["mine", "other"]
    assert (mine / "checkpoints").is_dir()
    train(tiny(1, run="mine"), tmp_path, panel=False, fresh=True)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["mine", "mine.before-1", "other"]


def test_an_existing_run_names_the_command_that_resumes_it(tmp_path: Path) -> None:
    folder = train(tiny(1, run="mine"), tmp_path, panel=False).folder
    with pytest.raises(ValueError) as error:
        train(tiny(1, run="mine"), tmp_path, panel=False)
    resumed = command("resume", str(folder))
    assert str(error.value) == f"`{folder}` exists; resume it: {resumed} - or start over: --fresh"


def test_shipped_games_have_no_warnings_in_the_heading() -> None:
    """They are known and `explain` has them; a game that somebody changed is warned about."""
    import gridmill

    game = games.arena_basic_easy_shaped()
    for played, warned in ((game, False), (game.replace("attack.cost.laser", 99), True)):
        run = Run(recipe="r", game=played)
        with gridmill.make(played, num_worlds=1) as env:
            assert any(line.startswith("warning:") for line in heading(run, env)) is warned


# ---- commands inside messages


def test_commands_are_the_ones_that_work_here(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    bin_folder = tmp_path / "bin"
    bin_folder.mkdir()
    for name in ("python", "gridmill"):
        (bin_folder / name).write_text("#!/bin/sh\n")
        (bin_folder / name).chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(bin_folder / "python"))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", "/nowhere")
    assert pip_install("gridmill[train]") == "bin/python -m pip install 'gridmill[train]'"
    assert command("resume", "a run") == "bin/python -P -m gridmill resume 'a run'"
    monkeypatch.setenv("PATH", str(bin_folder))
    assert pip_install("torch==2") == "python -m pip install torch==2"
    assert command("resume", "first") == "gridmill resume first"
    monkeypatch.setenv("PATH", "/nowhere")
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir("elsewhere")
    assert list(python()) == [str(bin_folder / "python")]
    monkeypatch.setattr(sys, "executable", "")
    assert list(python()) == ["python"]
