"""Players of the user's own in evaluations and beside a policy that learns: a file, an object, a function, a model."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tiny import berries, tiny
from typer.testing import CliRunner

from gridmill.cli import app
from gridmill.config import user_code
from gridmill.evaluate import evaluate
from gridmill.train.trainer import Trainer

WALKER = f"{Path(__file__).resolve().parents[2]}/examples/own_policy.py:walker"


def test_a_factory_of_a_file_is_evaluated() -> None:
    """The command of examples/own_policy.py on a small game; a seed gives the same figures again."""
    words = ["eval", f"{Path(__file__).parents[1]}/support/tiny.py:berries", "--policy", WALKER, "--episodes", "4"]
    done = [CliRunner().invoke(app, [*words, "--json"]) for _ in range(2)]
    assert done[0].exit_code == 0, done[0].output
    assert done[0].output == done[1].output
    (result,) = json.loads(done[0].output)["results"]
    assert result["policy"] == WALKER
    assert result["stats"]["cell.visited"]["mean"] > 5


class Stands:
    """Counts how long each of its rows has played; never asks for masks."""

    masks = False

    def __init__(self) -> None:
        self.ended: list[int] = []

    def act(self, obs: Any, state: Any, masks: Any) -> tuple[Any, Any]:
        assert masks is None
        return np.zeros(len(obs), int), np.ones(len(obs)) if state is None else state + 1

    def reset(self, state: Any, ended: Any) -> Any:
        self.ended += state[ended].astype(int).tolist()
        return np.where(ended, 0, state)


def test_an_object_and_a_function() -> None:
    stands = Stands()
    result = evaluate(berries(), stands, episodes=3)
    assert result.policy == "Stands"
    assert result.stats["cell.visited"].mean == 1
    assert stands.ended == [20] * 6  # three worlds of two agents, 20 ticks each
    moves = evaluate(berries(), lambda obs: np.full(len(obs), 1), episodes=3)
    assert moves.stats["cell.visited"].mean > 1


def test_past_checkpoints_scripts_and_files_in_one_world(tmp_path: Path) -> None:
    """What examples/self_play.py does, by files: who plays which rows is the figures' business too."""
    run = tiny(1).replace_all([("players", {WALKER: 0.5}), ("trainer.batch_size", 64), ("trainer.minibatch_size", 32)])
    trainer = Trainer(run)
    found = [trainer.epoch() for _ in range(3)][-1]
    trainer.close()
    assert found["player/own_policy.py:walker/episodes"] > 0
    beside = evaluate(berries(), Stands(), episodes=3, players={WALKER: [1]})
    assert beside.stats["cell.visited"].mean == 1  # of the policy's agents alone


BAD = {
    "float": (lambda obs: np.zeros(len(obs)), r"expected integer actions \[4\], got float64 \[4\]"),
    "short": (lambda obs: np.zeros(1, int), r"expected integer actions \[4\], got int64 \[1\]"),
}


@pytest.mark.parametrize("name", BAD)
def test_what_it_returns_is_looked_at(name: str) -> None:
    found, said = BAD[name]
    with pytest.raises(ValueError, match=said):
        evaluate(berries(), found, episodes=2)


def test_a_file_whose_function_fails_is_one_line(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text("def three(env, seed):\n    return 3\n\n\ndef fails(env, seed):\n    return 1 / 0\n")
    with pytest.raises(ValueError, match="expected an object with act") as caught:
        evaluate(berries(), f"{file}:three", episodes=1)
    assert "\n" not in str(caught.value)
    with pytest.raises(ValueError, match=r"mine\.py:fails` failed in line 6: ZeroDivisionError: division by zero$"):
        evaluate(berries(), f"{file}:fails", episodes=1)
    with pytest.raises(ValueError, match=r"no function `walks` in `mine\.py`"):
        evaluate(berries(), f"{file}:walks", episodes=1)


@pytest.mark.parametrize("fault", ["ValueError", "KeyError"])
@pytest.mark.parametrize("option", ["--policy", "--players"])
def test_a_command_names_the_file_whose_player_fails_later(option: str, fault: str, tmp_path: Path) -> None:
    """It said what was wrong without saying where, or showed a traceback."""
    file = tmp_path / "late.py"
    file.write_text(f"def fails(env, seed):\n    def act(obs):\n        raise {fault}('mine')\n\n    return act\n")
    named = f"{file}:fails" if option == "--policy" else f"{file}:fails=0.5"
    done = CliRunner().invoke(app, ["eval", "toy", "--episodes", "1", option, named])
    assert done.exit_code == 2
    mine = "'mine'" if fault == "KeyError" else "mine"
    assert done.stderr.splitlines()[-1] == f"gridmill: `{file}` failed in line 3: {fault}: {mine}"


def test_a_command_that_judges_names_it_too(tmp_path: Path) -> None:
    """Whose exit code 2 is a finding."""
    user_code.module_of("gridmill.games:build", "game")  # ours, by such a name: no fault of theirs
    file = tmp_path / "mine.py"
    file.write_text("import gridmill\n\n\ndef mine():\n    return {}['nothing']\n")
    done = CliRunner().invoke(app, ["bench", "step", "--game", f"{file}:mine"])
    assert done.exit_code == 64
    assert done.stderr == f"gridmill: `{file}:mine` failed in line 5: KeyError: 'nothing'\n"
