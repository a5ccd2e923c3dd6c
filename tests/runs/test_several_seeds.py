"""`gridmill train RECIPE seeds=1,2,3`: a run each, then what came out and a page that compares them."""

from __future__ import annotations

from pathlib import Path

import pytest
from tiny import SUPPORT, tiny
from typer.testing import CliRunner, Result

from gridmill import cli
from gridmill.config import ConfigError
from gridmill.config.install import command
from gridmill.policy import checkpoint
from gridmill.runs import overrides, seeds, train

RECIPE = f"{SUPPORT / 'tiny.py'}:tiny"


def call(*arguments: str) -> Result:
    return CliRunner().invoke(cli.app, list(arguments))


def test_seeds_are_trained_and_compared(tmp_path: Path) -> None:
    result = call("train", RECIPE, "seeds=1,2", "run=x", "--runs-dir", str(tmp_path))
    assert result.exit_code == 0, result.output
    assert sorted(path.name for path in tmp_path.iterdir()) == ["x-seed-1", "x-seed-2", "x.html"]
    text = result.stdout
    assert "seed 1, 1 of 2\n" in text
    assert "seed 2, 2 of 2\n" in text
    assert [line.split()[0] for line in text.splitlines()[-5:]] == ["seed", "1", "2", "mean", "compared"]
    assert "over 2 seeds\n" in text
    assert text.endswith(f"compared    {tmp_path / 'x.html'}\n")
    # Each is what the seed alone gives.
    alone = train(tiny(2, run="alone", seed=2), tmp_path, panel=False).folder
    mine, theirs = (checkpoint.newest(folder)[0].policy for folder in (tmp_path / "x-seed-2", alone))
    assert all((mine[name] == theirs[name]).all() for name in mine)
    # Nothing is trained twice, or over another.
    again = call("train", RECIPE, "seeds=3,2", "run=x", "--runs-dir", str(tmp_path))
    assert again.exit_code == 2
    assert f"`{tmp_path / 'x-seed-2'}` exists; resume it: " in again.stderr
    assert not (tmp_path / "x-seed-3").exists()


def test_one_that_stops_ends_them(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = tiny(2, run="x", guard__stop=True, guard__max_kl=1e-12)
    assert seeds.train(run, (4, 5, 6), tmp_path) == 5
    assert capsys.readouterr().out.endswith("stopped with seed 4; not started: seeds=5,6 run=x\n")
    assert seeds.train(run.replace("run", "y"), (4, 5, 6), tmp_path, typed=["ci", "trainer.gamma=0.9"]) == 5
    told = command("train", "ci", "trainer.gamma=0.9", "seeds=5,6", "run=y")
    assert capsys.readouterr().out.endswith(f"stopped with seed 4; the others: {told}\n")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["x-seed-4", "y-seed-4"]


@pytest.mark.parametrize(
    ("texts", "said"),
    [
        (["seeds=1,x"], "expected whole numbers such as 1,2,3, got `1,x` - at `$.seeds`"),
        (["seeds="], "expected whole numbers such as 1,2,3, got `` - at `$.seeds`"),
        (["seeds=-1"], "expected whole numbers such as 1,2,3, got `-1` - at `$.seeds`"),
        (["seeds=1,2,1"], "expected different numbers, got `1,2,1` - at `$.seeds`"),
        (["seeds=1,2", "seed=3"], "expected seed or seeds, got both - at `$.seeds`"),
    ],
)
def test_seeds_that_are_none(texts: list[str], said: str) -> None:
    with pytest.raises(ConfigError) as error:
        overrides.without_seeds(texts)
    assert str(error.value) == said


def test_seeds_are_taken_out_of_the_settings() -> None:
    assert overrides.without_seeds(["run=x", "seeds=3, 1", "trainer.gamma=0.9"]) == (
        ["run=x", "trainer.gamma=0.9"],
        (3, 1),
    )
    assert overrides.without_seeds(["seed=1"]) == (["seed=1"], ())


def test_a_dry_run_with_seeds_trains_nothing(tmp_path: Path) -> None:
    result = call("train", "ci", "seeds=1,2", "--dry-run", "--runs-dir", str(tmp_path))
    assert result.exit_code == 0, result.output
    assert list(tmp_path.iterdir()) == []
