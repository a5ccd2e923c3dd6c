"""A checkpoint of another format, architecture or environment is refused, naming both and the fields.

tests/golden/checkpoint holds a checkpoint of format 1: whoever changes how checkpoints are written must raise FORMAT
and store the new one beside it, with

    python tests/reliability/test_mismatched_checkpoints.py --write
"""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))
from checkpoints import FILES, assert_whole, save_epoch

import gridmill
from gridmill import __version__
from gridmill.config import Config
from gridmill.policy import checkpoint, usable
from gridmill.policy.checkpoint import CheckpointError
from gridmill.run import OptimizerConfig, PolicyConfig, Run

pytestmark = pytest.mark.R5

GOLDEN = Path(__file__).resolve().parents[1] / "golden" / "checkpoint"


class Shapes(Config):
    """What a network is built for, as an environment would say it."""

    num_tokens: int = 200
    features: tuple[str, ...] = ("agent:frozen", "inv:ore")
    action_names: tuple[str, ...] = ("noop", "north", "south")


RUN = Run(recipe="toy", game=gridmill.games.toy(num_agents=4))
RECORD = json.loads(json.dumps({"run": RUN.tree(), "spec": Shapes().tree(), "versions": {"gridmill": __version__}}))


def test_the_stored_checkpoint_loads_and_is_still_written_so(tmp_path: Path) -> None:
    """A stored checkpoint of this format loads, and saving the same state gives the same files."""
    found = checkpoint.load(GOLDEN / "epoch-00000041")
    assert_whole(found)
    again = save_epoch(tmp_path, 41, score=1.5)
    for name in FILES[:3]:
        assert (again / name).read_bytes() == (found.path / name).read_bytes(), name
    trees = [json.loads((path / "manifest.json").read_text()) for path in (again, found.path)]
    for tree in trees:
        del tree["gridmill"], tree["sha256"]
    assert trees[0] == trees[1]


@pytest.mark.parametrize(("number", "writer"), [(0, "0.0.9"), (2, "9.0.0"), (99, None)])
def test_another_format(tmp_path: Path, number: int, writer: str | None) -> None:
    """A checkpoint of another format is refused, naming both formats and who wrote it."""
    path = shutil.copytree(GOLDEN / "epoch-00000041", tmp_path / "epoch-00000041")
    tree = json.loads((path / "manifest.json").read_text()) | {"format": number, "gridmill": writer}
    (path / "manifest.json").write_text(json.dumps(tree))
    expected = f"expected checkpoint format 1 (gridmill '{__version__}'), got {number} (gridmill {writer!r})"
    for ask in (checkpoint.load, checkpoint.load_policy):
        with pytest.raises(CheckpointError) as caught:
            ask(path)
        assert str(caught.value) == f"{expected} - in `{path / 'manifest.json'}`"
    with pytest.raises(CheckpointError) as caught:
        checkpoint.newest(tmp_path)
    assert expected in str(caught.value)


MISMATCHES: dict[str, tuple[Run, Shapes, list[str]]] = {
    "hidden": (RUN.replace("policy.hidden", 64), Shapes(), ["policy.hidden was 128, is 64"]),
    "core": (RUN.replace("policy.core", "lstm"), Shapes(), ["policy.core was 'scan', is 'lstm'"]),
    "encoder and layers": (
        RUN.replace("policy", PolicyConfig(encoder="cnn", layers=2)),
        Shapes(),
        ["policy.encoder was 'auto', is 'cnn'", "policy.layers was 1, is 2"],
    ),
    "optimizer": (
        RUN.replace("optimizer", OptimizerConfig(kind="muon")),
        Shapes(),
        ["optimizer.kind was 'adam', is 'muon'"],
    ),
    "worlds": (RUN.replace("trainer.num_worlds", 3), Shapes(), ["trainer.num_worlds was 64, is 3"]),
    "seed": (RUN.replace("seed", 1), Shapes(), ["seed was 0, is 1"]),
    "name": (RUN.replace("run", "other"), Shapes(), ["run was '', is 'other'"]),
    "masks": (RUN.replace("trainer.masks", False), Shapes(), ["trainer.masks was True, is False"]),
    "initial weights": (
        RUN.replace("policy.init_from", "runs/other"),
        Shapes(),
        ["policy.init_from was '', is 'runs/other'"],
    ),
    "agents": (RUN.replace("game.num_agents", 5), Shapes(), ["game.num_agents was 4, is 5"]),
    "name of the game": (RUN.replace("game.name", "other"), Shapes(), ["game.name was 'toy', is 'other'"]),
    "tokens": (RUN, Shapes(num_tokens=64), ["spec.num_tokens was 200, is 64"]),
    "a feature renamed": (
        RUN,
        Shapes(features=("agent:frozen", "inv:gold")),
        ["spec.features.1 was 'inv:ore', is 'inv:gold'"],
    ),
    "an action more": (
        RUN,
        Shapes(action_names=("noop", "north", "south", "west")),
        ["spec.action_names.3 was absent, is 'west'"],
    ),
}


@pytest.mark.parametrize("name", MISMATCHES)
def test_mismatches_are_named(name: str) -> None:
    """Ways in which a run does not fit a checkpoint: refused, naming each field and both values."""
    run, shapes, said = MISMATCHES[name]
    with pytest.raises(CheckpointError) as caught:
        usable.refuse_mismatch(RECORD, run, shapes)
    assert str(caught.value) == (
        f"these settings cannot change at a resume: {'; '.join(said)}; leave them out, or start a new run "
        "- in `run.json`"
    )


def test_what_may_change_is_not_refused() -> None:
    usable.refuse_mismatch(RECORD, RUN, Shapes())
    allowed: dict[str, Any] = {
        "trainer.total_timesteps": 5,
        "optimizer.learning_rate": 0.5,
        "checkpoint.keep": 9,
        "losses.ppo.clip": 0.1,
    }
    for path, value in allowed.items():
        usable.refuse_mismatch(RECORD, RUN.replace(path, value), Shapes())


@pytest.mark.parametrize("record", [{}, {"run": None, "spec": 3}, {"run": [], "spec": {}}, {"spec": {"x": {}}}])
def test_a_record_that_says_something_else_entirely(record: dict[str, Any]) -> None:
    with pytest.raises(CheckpointError, match=r"^these settings cannot change at a resume: .*; and \d+ more"):
        usable.refuse_mismatch(record, RUN, Shapes())


if __name__ == "__main__" and sys.argv[1:] == ["--write"]:
    print(save_epoch(GOLDEN, 41, score=1.5))
