"""Records and states that somebody changed, behind a manifest that fits: one line that says what is wrong, or none.

Every entry of a run's record is taken away or made something else, and so is every tensor of a trainer's state. What is
opened then: the policy, the game, the report, the run itself. What is believed goes to torch's kernels, which check no
sizes: a moment of the optimizer that was one number too short ended the process.
"""

from __future__ import annotations

import json
import random
import shutil
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from strangers import changed_record, honest, resave
from torch import Tensor

from gridmill import policy
from gridmill.evaluate import run_of
from gridmill.policy import checkpoint
from gridmill.policy.checkpoint import CheckpointError
from gridmill.runs import resume
from gridmill.runs.report import page

pytestmark = pytest.mark.F7

GONE = "taken away"
VALUES: tuple[Any, ...] = (GONE, None, [], {}, "x", -1, 1e30, True, [1, 2, 3], {"a": {"b": 1}})
Path_ = tuple[str, ...]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return honest(tmp_path_factory.mktemp("runs"))


def entries(tree: dict[str, Any], above: Path_ = ()) -> Iterator[Path_]:
    """The paths of a record, but for the parts of its game, which are tested elsewhere."""
    for name, value in tree.items():
        yield (*above, name)
        if isinstance(value, dict) and len(above) < 2 and name not in ("game", "versions", "switches"):
            yield from entries(value, (*above, name))


def put(tree: dict[str, Any], path: Path_, value: Any) -> None:
    for name in path[:-1]:
        tree = tree[name]
    tree.pop(path[-1]) if value == GONE else tree.__setitem__(path[-1], value)


USES: dict[str, Callable[[Path], object]] = {
    "policy": policy.load,
    "game": run_of,
    "report": page.write,
    "resume": lambda folder: resume(folder, ["trainer.total_timesteps=384"], panel=False),
}


def one_line(use: Callable[[Path], object], folder: Path, what: object) -> bool:
    """Whether it was refused; anything but one line fails the test."""
    said = None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what is skipped is said
            use(folder)
    except (ValueError, OSError, RuntimeError) as error:
        said = str(error)
    except Exception as error:
        raise AssertionError(f"{what}: {type(error).__name__}: {error}") from error
    assert said is None or (0 < len(said) < 4500 and "\n" not in said), what
    return said is not None


@pytest.mark.parametrize("draws", [25, pytest.param(10_000, marks=pytest.mark.long)])
def test_records(run: Path, tmp_path: Path, draws: int, record_property: Callable[[str, object], None]) -> None:
    known = list(entries(json.loads((run / "run.json").read_bytes())))
    cases = [(path, value) for path in known for value in VALUES]
    random.Random(1).shuffle(cases)
    refused = 0
    for number, (path, value) in enumerate(cases[:draws]):
        folder = tmp_path / str(number)
        shutil.copytree(run, folder)
        changed_record(folder, lambda record: put(record, path, value))  # noqa: B023
        refused += sum([one_line(use, folder, (name, path, value)) for name, use in USES.items()])
        shutil.rmtree(folder)
    count = min(draws, len(cases))
    record_property("figure", f"{count} records, {len(USES) * count} times opened, {refused} refused")


STATES: dict[str, Callable[[Tensor], Tensor | None]] = {
    "taken away": lambda tensor: None,
    "one number less": lambda tensor: tensor.reshape(-1)[:-1].clone() if tensor.numel() else torch.zeros(3),
    "another type": lambda tensor: tensor.to(torch.int16),
    "empty": lambda tensor: torch.zeros(0, dtype=tensor.dtype),
    "larger": lambda tensor: torch.zeros((100, 100), dtype=tensor.dtype),
    "not finite": lambda tensor: torch.full_like(tensor, float("inf")) if tensor.is_floating_point() else None,
}


@pytest.mark.parametrize("draws", [25, pytest.param(10_000, marks=pytest.mark.long)])
def test_states(run: Path, tmp_path: Path, draws: int, record_property: Callable[[str, object], None]) -> None:
    names = list(checkpoint.newest(run)[0].trainer)
    cases = [(name, change) for name in names for change in STATES]
    random.Random(2).shuffle(cases)
    refused = 0
    for number, (name, change) in enumerate(cases[:draws]):
        folder = tmp_path / str(number)
        shutil.copytree(run, folder)
        for path in sorted((folder / "checkpoints").iterdir()):
            found = checkpoint.load(path)
            tensors = dict(found.trainer)
            changed = STATES[change](tensors.pop(name))
            resave(found, found.policy, tensors if changed is None else tensors | {name: changed})
        refused += one_line(
            lambda folder: resume(folder, ["trainer.total_timesteps=384"], panel=False), folder, (name, change)
        )
        shutil.rmtree(folder)
    record_property("figure", f"{min(draws, len(cases))} states, {refused} refused")


@pytest.mark.parametrize(
    ("path", "value", "said", "file"),
    [
        (("seconds",), GONE, "expected a value, got nothing - at `$.seconds`", "run.json"),
        (("last",), [], "expected a mapping", "run.json"),
        (("run",), GONE, "expected the settings of a run, got NoneType - at `$.run`", "run.json"),
    ],
)
def test_what_is_said_of_a_record(run: Path, tmp_path: Path, path: Path_, value: Any, said: str, file: str) -> None:
    folder = tmp_path / "mine"
    shutil.copytree(run, folder)
    changed_record(folder, lambda record: put(record, path, value))
    with pytest.raises(CheckpointError) as caught:
        resume(folder, ["trainer.total_timesteps=384"], panel=False)
    newest = folder / "checkpoints" / "epoch-00000002" / file
    assert str(caught.value).startswith(said) or said == "expected a mapping"
    assert str(caught.value).endswith(f" - in `{newest}`")


@pytest.mark.parametrize(
    ("name", "change", "said"),
    [
        ("optimizer.0.0.exp_avg", "one number less", "optimizer.0.0.exp_avg: expected the shape "),
        ("optimizer.0.0.exp_avg", "taken away", "optimizer.0.0.exp_avg: expected a tensor of this name, got none"),
        ("optimizer.0.0.step", "larger", "optimizer.0.0.step: expected the shape (), got (100, 100)"),
        ("worlds", "taken away", "worlds: expected a tensor of this name, got none"),
        ("state", "another type", "state: expected torch.float32, got torch.int16"),
        ("counters", "empty", "counters: expected six or seven numbers, each at least 0"),
        ("reward.sums", "taken away", "reward.sums: expected a tensor of this name, got none"),
        ("recent", "larger", "recent: expected a list of numbers, got the shape (100, 100)"),
        ("reward.sums", "not finite", "reward.sums: expected finite numbers, got NaN or infinity"),
    ],
)
def test_what_is_said_of_a_state(run: Path, tmp_path: Path, name: str, change: str, said: str) -> None:
    folder = tmp_path / "mine"
    shutil.copytree(run, folder)
    found = checkpoint.newest(folder)[0]
    changed = STATES[change](found.trainer.pop(name))
    resave(found, found.policy, found.trainer if changed is None else found.trainer | {name: changed})
    with pytest.raises(CheckpointError) as caught:
        resume(folder, ["trainer.total_timesteps=384"], panel=False)
    assert str(caught.value).startswith(said)
    assert f" - in `{found.path}" in str(caught.value)
