"""examples/own_game.py, a game and a recipe outside the package: trained, evaluated and resumed by the commands."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "own_game.py"


def gridmill(folder: Path, *arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "gridmill", *arguments], cwd=folder, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def last_epoch(folder: Path) -> dict[str, Any]:
    lines = (folder / "runs" / "mine" / "metrics.jsonl").read_text().splitlines()
    return json.loads(lines[-1])  # type: ignore[no-any-return]


def test_own_game_is_trained_evaluated_and_resumed(tmp_path: Path) -> None:
    (tmp_path / "own_game.py").write_text(EXAMPLE.read_text())
    gridmill(tmp_path, "train", "own_game.py", "run=mine")
    run = tmp_path / "runs" / "mine"
    assert (run / "run.json").is_file()
    assert last_epoch(tmp_path)["agent_steps"] == 25 * 8_192

    policies = ["--policy", "runs/mine", "--policy", "random"]
    said = gridmill(tmp_path, "eval", "own_game.py:harvest", *policies, "--episodes", "64", "--json")
    trained, at_random = json.loads(said)["results"]
    assert trained["reward"]["mean"] > at_random["reward"]["mean"] + 4 * at_random["reward"]["se"]

    # The record holds the whole game, so going on does not need the file.
    (tmp_path / "own_game.py").unlink()
    gridmill(tmp_path, "resume", "runs/mine", "trainer.total_timesteps=220_000")
    assert last_epoch(tmp_path)["agent_steps"] == 27 * 8_192
