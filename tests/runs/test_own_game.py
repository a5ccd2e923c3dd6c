"""examples/own_game.py, a game and a recipe outside the package: trained as a program, then evaluated and resumed."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from warm import Start, fresh, warm

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "own_game.py"


def last_epoch(run: Path) -> dict[str, Any]:
    lines = (run / "metrics.jsonl").read_text().splitlines()
    return json.loads(lines[-1])  # type: ignore[no-any-return]


@pytest.mark.parametrize("start", [warm, pytest.param(fresh, marks=pytest.mark.long)])
def test_own_game_is_trained_evaluated_and_resumed(start: Start, tmp_path: Path) -> None:
    def said(*words: str) -> str:
        done = start(words, tmp_path)
        assert done.returncode == 0, done.stderr
        return done.stdout

    (tmp_path / "own_game.py").write_text(EXAMPLE.read_text())
    told = said(sys.executable, "-W", "error", "own_game.py").splitlines()[-1]
    (run,) = (tmp_path / "runs").iterdir()
    assert told.endswith(f"in runs/{run.name}")
    assert (run / "run.json").is_file()
    assert last_epoch(run)["agent_steps"] == 25 * 8_192

    policies = ["--policy", f"runs/{run.name}", "--policy", "random"]
    table = said("gridmill", "eval", "own_game.py:harvest", *policies, "--episodes", "64", "--json")
    trained, at_random = json.loads(table)["results"]
    assert trained["reward"]["mean"] > at_random["reward"]["mean"] + 4 * at_random["reward"]["se"]

    # The record holds the whole game, so going on does not need the file.
    (tmp_path / "own_game.py").unlink()
    said("gridmill", "resume", f"runs/{run.name}", "trainer.total_timesteps=220_000")
    assert last_epoch(run)["agent_steps"] == 27 * 8_192
