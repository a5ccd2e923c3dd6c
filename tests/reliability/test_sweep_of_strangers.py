"""A sweep's folder from anybody is text and numbers: looking at it opens no storage, no pickle, and runs no code."""

from __future__ import annotations

import json
import os
import pickle
import random
from pathlib import Path
from typing import Any

import pytest
from tiny import tiny
from typer.testing import CliRunner, Result

from gridmill.cli import app
from gridmill.workshop.sweep import record, space, storage, study

optuna = pytest.importorskip("optuna")

RATE = "optimizer.learning_rate=log(1e-4,1e-2)"
SWEEP = record.Sweep("theirs", "ci", ("seed=1",), (RATE,), (1, 2), False)
TRIALS = [
    record.Trial(
        0, "done", {"optimizer.learning_rate": "0.001"}, 2.0, (1.5, 2.5), 3.0, 1_000, ((500.0, 1.0),), "", "a"
    ),
    record.Trial(1, "failed", {}, None, (), 0.0, 0, (), "too large", "b"),
    record.Trial(2, "running", {}, None),
]


@pytest.fixture
def theirs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "theirs"
    folder.mkdir()
    state = record.State(SWEEP, 3, "", TRIALS, {"optimizer.learning_rate": 1.0})
    record.write(folder, state)
    return folder


def shown(folder: Path) -> Result:
    return CliRunner().invoke(app, ["sweep", str(folder)])


def test_it_is_shown_from_its_own_file(theirs: Path) -> None:
    assert record.read(theirs).trials == TRIALS
    result = shown(theirs)
    assert result.exit_code == 0, result.output
    for text in (
        "3 of 3 trials: 1 done, 1 failed, 1 under way",
        "failed: too large",
        "train ci seed=1 optimizer.learning_rate=0.001",
    ):
        assert text in result.stdout


@pytest.mark.X8
@pytest.mark.X9
def test_no_storage_is_opened(theirs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not the SQLite file beside it, which is a pipe here, and none that the file names."""
    os.mkfifo(theirs / storage.SQLITE)
    tree = json.loads((theirs / record.FILE).read_text())
    tree["storage"] = "postgresql+evil://somebody@example.org/x"
    (theirs / record.FILE).write_text(json.dumps(tree))

    def refuse(*_: object) -> None:
        raise AssertionError

    monkeypatch.setattr(storage, "open_storage", refuse)
    assert shown(theirs).exit_code == 0


@pytest.mark.X9
@pytest.mark.parametrize("kind", ["link", "pipe", "folder"])
def test_a_file_that_is_none_is_not_a_sweep(theirs: Path, kind: str) -> None:
    file = theirs / record.FILE
    elsewhere = theirs.parent / "secret.json"
    file.rename(elsewhere)
    {"link": lambda: file.symlink_to(elsewhere), "pipe": lambda: os.mkfifo(file), "folder": file.mkdir}[kind]()
    result = shown(theirs)
    assert result.exit_code == 2
    assert result.stderr.count("\n") == 1


@pytest.mark.X9
def test_trials_are_not_read_through_a_link(theirs: Path) -> None:
    (theirs / storage.SQLITE).symlink_to(theirs.parent / "elsewhere")
    with pytest.raises(ValueError, match="expected a plain file for the trials of a sweep, got a link"):
        storage.open_storage("", theirs, "theirs")


@pytest.mark.X2
def test_names_cannot_move_the_cursor(theirs: Path) -> None:
    text = (
        (theirs / record.FILE)
        .read_text()
        .replace("too large", "\\u001b[2J")
        .replace('"ci"', '"\\u001b]0;x\\u0007\\u202e"')
    )
    (theirs / record.FILE).write_text(text)
    result = shown(theirs)
    assert result.exit_code == 0
    assert all(letter == "\n" or " " <= letter <= "~" for letter in result.output)


def mutated(tree: Any, draw: random.Random) -> Any:
    """The tree with one part that is something else."""
    strange = [None, True, -1, 1e308, "x" * 99, [], {}, [[]], {"a": 1}, 10**400, "NaN"]
    keys = list(tree) if isinstance(tree, dict) else list(range(len(tree))) if isinstance(tree, list) else []
    if not keys or draw.random() < 0.2:
        return draw.choice(strange)
    key = draw.choice(keys)
    inner = mutated(tree[key], draw)
    return {**tree, key: inner} if isinstance(tree, dict) else [*tree[:key], inner, *tree[key + 1 :]]


@pytest.mark.X5
def test_mutated_files_are_shown_or_refused_in_one_line(theirs: Path) -> None:
    honest, draw, refused = json.loads((theirs / record.FILE).read_text()), random.Random(0), 0
    for _ in range(100):
        (theirs / record.FILE).write_text(json.dumps(mutated(honest, draw)))
        result = shown(theirs)
        assert result.exit_code in (0, 2), result.output
        if result.exit_code:
            refused += 1
            assert result.stderr.count("\n") == 1
    assert 30 < refused < 100
    (theirs / record.FILE).write_text("[" * 200_000)
    assert shown(theirs).exit_code == 2


@pytest.fixture
def _no_pickles(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("something was unpickled")

    monkeypatch.setattr(pickle, "loads", refuse)
    monkeypatch.setattr(pickle, "load", refuse)


@pytest.mark.X1
@pytest.mark.parametrize("url", ["", "shared.journal"], ids=["SQLite", "journal"])
@pytest.mark.usefixtures("_no_pickles")
def test_storages_unpickle_nothing(url: str, theirs: Path) -> None:
    """Neither while trials are made nor when the storage is opened again. The journal in a file has no snapshots."""
    assert not hasattr(optuna.storages.journal.JournalFileBackend, "load_snapshot")
    found, _ = space.read([RATE], tiny())
    for wanted in (14, 15):
        mine = study.Study(SWEEP, found, storage.open_storage(url, theirs, "theirs"), url, seed=0)
        while (trial := mine.next(wanted)) is not None:
            mine.tell(trial, "done", float(trial.number))
        assert len(mine.state(wanted).trials) == wanted
        mine.storage.close()


@pytest.mark.X8
def test_what_a_storage_holds_cannot_name_code(theirs: Path) -> None:
    """A trial with a value that the space does not have is refused, not tried."""
    texts = ["policy.core=choice(none,scan)"]
    found, _ = space.read(texts, tiny())
    sweep = record.Sweep("theirs", "tiny", (), tuple(texts), (0,), False)
    opened = storage.open_storage("", theirs, "theirs")
    planted = optuna.create_study(storage=opened.optuna, study_name="theirs", direction="maximize")
    planted.set_user_attr(study.IDENTITY, sweep.identity())
    planted.ask({"policy.core": optuna.distributions.CategoricalDistribution(["evil.py:Core", "worse.py:Core"])})
    mine = study.Study(sweep, found, opened, "", seed=0)
    with pytest.raises(ValueError, match=r"trial 0 in the storage belongs to another search space"):
        mine.next(1)


def test_the_command_does_not_look_like_a_recipe(theirs: Path) -> None:
    """A folder beside words to search is a recipe that is not there, not a sweep."""
    result = CliRunner().invoke(app, ["sweep", str(theirs), RATE])
    assert result.exit_code == 2
