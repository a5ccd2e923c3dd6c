"""Weights that would give a score, or a run, that means nothing: refused by name; damaged ones are passed over."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from tiny import tiny

import gridmill
from gridmill.policy import checkpoint, player
from gridmill.runs import resume, train
from gridmill.runs.epoch import Epoch
from gridmill.runs.evaluator import Evaluator
from gridmill.runs.lines import read_records

pytestmark = pytest.mark.N4


def changed(folder: Path, change: Callable[[torch.Tensor], torch.Tensor]) -> str:
    """The newest checkpoint of a run with one tensor changed and a manifest that fits; the tensor's name."""
    found, _ = checkpoint.newest(folder)
    name = max(found.policy, key=lambda each: found.policy[each].numel())
    found.policy[name] = change(found.policy[name])
    checkpoint.save(folder / "checkpoints", found.epoch, found.policy, found.trainer, found.record, 5, None)
    return name


def with_one(value: float) -> Callable[[torch.Tensor], torch.Tensor]:
    def change(tensor: torch.Tensor) -> torch.Tensor:
        other = tensor.clone()
        other.view(-1)[0] = value
        return other

    return change


WEIGHTS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "nan": with_one(float("nan")),
    "infinity": with_one(float("inf")),
    "int8": lambda tensor: tensor.to(torch.int8),
    "bool": lambda tensor: tensor.to(torch.bool),
}
USES: dict[str, Callable[[Path], object]] = {
    "eval": player.load,
    "resume": lambda folder: resume(folder, ["trainer.total_timesteps=1_000_000"], panel=False),
    "init_from": lambda folder: train(
        tiny(1, run="next", policy__init_from=str(folder)), folder.parent / "other", panel=False
    ),
}


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return train(tiny(2, run="mine", checkpoint__epochs=1), tmp_path_factory.mktemp("runs"), panel=False).folder


@pytest.fixture
def folder(trained: Path, tmp_path: Path) -> Path:
    copy = tmp_path / "mine"
    shutil.copytree(trained, copy)
    return copy


@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("weights", WEIGHTS)
def test_weights_that_mean_nothing_are_refused_by_name(folder: Path, weights: str, use: str) -> None:
    name = changed(folder, WEIGHTS[weights])
    said = rf"^{name}: expected (finite numbers, got NaN or infinity|torch.float32, got torch.{weights}) - in `"
    with pytest.raises(checkpoint.CheckpointError, match=said):
        USES[use](folder)


@pytest.mark.parametrize("use", ["eval", "init_from"])
def test_a_flipped_byte_is_passed_over(folder: Path, use: str) -> None:
    """As `resume` does it: the one before is taken, and why is said."""
    newest, before = sorted((folder / "checkpoints").iterdir(), reverse=True)[:2]
    weights = newest / "policy.safetensors"
    data = bytearray(weights.read_bytes())
    data[-1] ^= 1
    weights.write_bytes(data)
    with pytest.warns(UserWarning, match=r"^skipped: expected sha256 "):
        USES[use](folder)
    with pytest.raises(checkpoint.CheckpointError, match=r"the file was changed"):
        player.load(newest)  # named itself, it is meant
    assert before.exists()


def test_what_is_being_evaluated_stays(tmp_path: Path) -> None:
    one = checkpoint.save(tmp_path, 1, {}, {}, {}, 1, None)
    for epoch in range(2, 6):
        checkpoint.save(tmp_path, epoch, {}, {}, {}, 1, None, in_use=one)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["epoch-00000001", "epoch-00000005"]
    checkpoint.save(tmp_path, 6, {}, {}, {}, 1, None)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["epoch-00000006"]


def test_no_evaluation_fails_for_a_checkpoint_that_is_gone(tmp_path: Path) -> None:
    """Dozens of checkpoints are saved while one is evaluated, and two are kept beside it and the best."""
    evaluations: list[dict[str, Any]] = []

    def look(epoch: Epoch) -> None:
        evaluations[:] = [one for one in read_records(epoch.folder / "metrics.jsonl") if "evaluation" in one]
        if len(evaluations) >= 2:
            epoch.stop("enough")

    run = tiny(100_000, run="mine", checkpoint__epochs=1, checkpoint__keep=2, evaluation__enabled=True)
    run = run.replace_all([("evaluation.episodes", 1), ("evaluation.final_seconds", 0.0)])
    done = train(run, tmp_path, panel=False, callbacks=[look])
    assert done.exit_code == 0
    assert done.epochs > 20
    assert [sorted(one["evaluation"]) for one in evaluations if "error" in one["evaluation"]] == []
    assert evaluations[1]["epoch"] > evaluations[0]["epoch"] + 2
    assert len(list((done.folder / "checkpoints").glob("epoch-*"))) <= 4


def test_an_evaluation_takes_no_module_from_the_current_folder(
    trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "numpy.py").write_text(f"open({str(tmp_path / 'canary')!r}, 'w')\n")
    monkeypatch.chdir(tmp_path)
    with Evaluator(tiny(2, evaluation__enabled=True), trained) as evaluator:
        assert evaluator.under_way is None
        assert evaluator.start_when_due(1, 1.0, tmp_path / "nothing")
        assert evaluator.under_way == tmp_path / "nothing"
        while not (results := evaluator.poll()):
            time.sleep(0.05)
    assert not (tmp_path / "canary").exists()
    assert "expected random, script:NAME, FILE.py:function or the folder" in results[0]["error"]


def test_a_weight_that_pays_infinity_is_refused() -> None:
    game = gridmill.games.build("arena").tree()
    game["rewards"][0]["weight"] = 1e39
    with pytest.raises(
        ValueError, match=r"^expected a weight within \+-1e12, got 1e\+39 - at `\$\.rewards\[0\]\.weight`$"
    ):
        gridmill.make(type(gridmill.games.build("arena")).load(game), num_worlds=1)
