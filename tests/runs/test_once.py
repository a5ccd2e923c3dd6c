"""A run compiles its game once and executes its recipe once before its first step."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from gridmill import cli
from gridmill.env import Env

RECIPE = """
from pathlib import Path

from tiny import berries

from gridmill.run import Run, TrainerConfig


def mine():
    with (Path(__file__).parent / "executed").open("a") as file:
        file.write("x")
    trainer = TrainerConfig(
        total_timesteps=1, num_worlds=2, async_factor=1, batch_size=64, minibatch_size=64, bptt_horizon=16
    )
    return Run(recipe=str(Path(__file__)), game=berries(), trainer=trainer)
"""


def test_one_compile_and_one_call_of_the_recipe(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    compiled: list[str] = []
    plain = Env.__init__

    def counted(self: Env, batch: Any, games: Any, options: Any) -> None:
        compiled.append(games[0].name)
        plain(self, batch, games, options)

    monkeypatch.setattr(Env, "__init__", counted)
    file = tmp_path / "mine.py"
    file.write_text(RECIPE)
    done = CliRunner().invoke(cli.app, ["train", f"{file}:mine", "run=once", "--runs-dir", str(tmp_path / "runs")])
    assert done.exit_code == 0, done.output
    assert compiled == ["berries"]
    assert (tmp_path / "executed").read_text() == "x"
    done = CliRunner().invoke(cli.app, ["resume", str(tmp_path / "runs" / "once"), "trainer.total_timesteps=100"])
    assert done.exit_code == 0, done.output
    assert compiled == ["berries"] * 2
    assert (tmp_path / "executed").read_text() == "x"  # code of a run's folder is not run to print a heading
