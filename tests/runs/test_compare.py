"""`gridmill report`: runs side by side, seeds as a mean with its interval."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from typer.testing import CliRunner

from gridmill import cli, games
from gridmill.run import Run
from gridmill.runs.log import RunLog
from gridmill.runs.report import compare
from gridmill.runs.report.folder import read

RUN = Run(recipe="toy", game=games.toy())


def trained(folder: Path, run: Run, scores: list[float | None]) -> Path:
    with RunLog(folder, run, panel=False) as log:
        (folder / "run.json").write_text(json.dumps({"run": run.tree()}))
        for epoch, score in enumerate(scores, 1):
            scored = {} if score is None else {"score": score}
            log.epoch({"epoch": epoch, "agent_steps": 1000 * epoch, "sps": 10.0, "kl": 0.1 * epoch, **scored})
    return folder


@pytest.fixture
def folders(tmp_path: Path) -> list[Path]:
    slow = RUN.replace("trainer.gamma", 0.9)
    return [
        trained(tmp_path / "plain-0", RUN.replace("seed", 0), [1.0, 2.0, 3.0]),
        trained(tmp_path / "plain-1", RUN.replace("seed", 1).replace("evaluation.episodes", 3), [3.0, 4.0, 5.0]),
        trained(tmp_path / "plain-2", RUN.replace("seed", 2), [2.0, 3.0, 4.0, 9.0]),
        trained(tmp_path / "<b>slow", slow, [0.5, 0.6, 0.7]),
    ]


def test_seeds_are_a_group(folders: list[Path]) -> None:
    found = compare.groups([read(folder) for folder in folders])
    assert [group.name for group in found] == ["plain (3 seeds)", "<b>slow"]
    line = compare.mean_line(found[0], "score")
    assert line is not None
    assert (line.xs[0], line.xs[-1]) == (1000.0, 3000.0)  # as far as the shortest goes
    assert (line.ys[0], line.ys[-1]) == pytest.approx((2.0, 4.0))
    half = 4.303 * 1.0 / 3**0.5  # Student's t with two degrees of freedom; the deviation is 1
    assert line.high[-1] - line.ys[-1] == pytest.approx(half)
    assert line.ys[-1] - line.low[-1] == pytest.approx(half)
    assert line.low[0] == 0.0 > line.ys[0] - half  # no score was below zero, so none is said to lie there


def test_the_runs_of_one_command_are_named_after_it(tmp_path: Path) -> None:
    """`seeds=1,2` calls them easy-seed-1 and easy-seed-2."""
    runs = [trained(tmp_path / f"easy-seed-{seed}", RUN.replace("seed", seed), [1.0]) for seed in (1, 2)]
    assert [group.name for group in compare.groups([read(run) for run in runs])] == ["easy (2 seeds)"]


def test_copies_of_a_run_are_no_seeds(folders: list[Path], tmp_path: Path) -> None:
    first, second, third, _ = folders
    copy = shutil.copytree(first, tmp_path / "plain-3")
    (alone,) = compare.groups([read(first), read(copy)])
    assert alone.name == "plain (2 runs, 1 seed)"
    line = compare.mean_line(alone, "score")
    assert line is not None
    assert (line.ys[-1], list(line.low), list(line.high)) == (3.0, [], [])
    text = compare.write([first, copy], tmp_path / "compare.html").read_text()
    assert " ± " not in text.partition("<h2>Scores")[2]
    (more,) = compare.groups([read(folder) for folder in (first, second, third, copy)])
    assert more.name == "plain (4 runs, 3 seeds)"
    with_copy = compare.mean_line(more, "score")
    without = compare.mean_line(compare.groups([read(folder) for folder in (first, second, third)])[0], "score")
    assert with_copy is not None
    assert without is not None
    assert (with_copy.ys, with_copy.low, with_copy.high) == (without.ys, without.low, without.high)


def test_a_score_of_one_seed_has_no_interval(tmp_path: Path) -> None:
    runs = [trained(tmp_path / "a-0", RUN, [1.0, 2.0]), trained(tmp_path / "a-1", RUN.replace("seed", 1), [None])]
    text = compare.write(runs, tmp_path / "compare.html").read_text()
    assert "<td>2.00 (1 of 2)</td>" in text


def test_the_page(folders: list[Path], tmp_path: Path) -> None:
    told = CliRunner().invoke(cli.app, ["report", "--no-baselines", *map(str, folders)])
    assert told.exit_code == 0, told.output
    assert told.stdout == f"wrote {tmp_path / 'compare.html'}\n"
    text = (tmp_path / "compare.html").read_text()
    assert "plain (3 seeds)" in text
    assert "<b>slow" not in text  # names are text
    assert "&lt;b&gt;slow" in text
    assert "What differs" in text
    assert "trainer.gamma" in text
    assert 'class="range c0"' in text
    assert "5.67 ± " in text  # 3, 5 and 9 at the end
    assert text.count("<script>") == 1


def test_one_run_is_written_anew_with_what_others_get(folders: list[Path]) -> None:
    told = CliRunner().invoke(cli.app, ["report", str(folders[0])])
    assert told.exit_code == 0, told.output
    assert (folders[0] / "baselines.json").is_file()
    assert "random" in (folders[0] / "report.html").read_text()
    again = CliRunner().invoke(cli.app, ["report", str(folders[0]), "--out", str(folders[0] / "x.html")])
    assert again.stdout == f"wrote {folders[0] / 'x.html'}\n"  # nothing is played twice


def test_refusals(folders: list[Path], tmp_path: Path) -> None:
    for words, said in (
        ([str(tmp_path / "none")], "expected a run's name, or the folder of a run or checkpoint"),
        (["--no-baselines", str(folders[0]), str(folders[0])], "got one twice"),
        (["--no-baselines", str(folders[0]), str(trained(tmp_path / "young", RUN, []))], "an epoch has ended"),
    ):
        told = CliRunner().invoke(cli.app, ["report", *words])
        assert told.exit_code == 2
        assert said in told.stderr
