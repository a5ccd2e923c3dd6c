"""A sweep's folder from anybody is text and numbers: looking at it opens no storage, no pickle, and runs no code."""

from __future__ import annotations

import json
import os
import pickle
import random
import sqlite3
import struct
from pathlib import Path
from typing import Any

import pytest
from tiny import SUPPORT, tiny
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


@pytest.fixture
def stored(theirs: Path) -> Path:
    """The SQLite file of a sweep without a trial."""
    opened = storage.open_storage("", theirs, "theirs")
    study.Study(SWEEP, space.read([RATE], tiny())[0], opened, "", seed=0)
    opened.close()
    return theirs / storage.SQLITE


def lay(kind: str, path: Path) -> str:
    """Something that is no plain file of the sweep's, and how it is called."""
    elsewhere = path.parents[1] / "elsewhere"
    data = path.read_bytes() if path.exists() else b""
    path.unlink(missing_ok=True)
    if kind == "a folder":
        path.mkdir()
    elif kind == "a pipe":
        os.mkfifo(path)
    else:
        elsewhere.write_bytes(data)
        path.symlink_to(elsewhere) if kind == "a link" else path.hardlink_to(elsewhere)
    return kind


@pytest.mark.X9
@pytest.mark.parametrize("end", ["", *storage.BESIDE])
@pytest.mark.parametrize("kind", ["a link", "a pipe", "a folder", "one with 2 names"])
def test_the_database_and_what_sqlite_looks_for_beside_it_are_the_sweeps_own(
    theirs: Path, stored: Path, end: str, kind: str
) -> None:
    """SQLite waited for a pipe that is called its journal, and wrote to a file that has another name elsewhere."""
    path = stored.with_name(f"{stored.name}{end}")
    lay(kind, path)
    with pytest.raises(ValueError) as caught:
        storage.open_storage("", theirs, "theirs")
    wanted = "file that belongs only to the sweep" if kind == "one with 2 names" else "plain file of the sweep itself"
    assert str(caught.value) == f"expected a {wanted}, got {kind}: `{path}`"


@pytest.mark.X9
@pytest.mark.parametrize("kind", ["a link", "a pipe", "a folder", "one with 2 names"])
def test_a_journal_of_optunas_is_the_sweeps_own(theirs: Path, kind: str) -> None:
    path = theirs / "shared.journal"
    lay(kind, path)
    with pytest.raises(ValueError, match=f"of the sweep itself, got {kind}|only to the sweep, got {kind}"):
        storage.open_storage(str(path), theirs, "theirs")


def hot_journal(database: Path, super_journal: Path | None) -> None:
    """A journal as one who was killed in the middle of a transaction leaves it: with the first page as it was."""
    data, nonce = database.read_bytes(), 1234
    size = int.from_bytes(data[16:18], "big")
    page = data[:size]
    check = (nonce + sum(page[place] for place in range(size - 200, 0, -200))) % 2**32
    head = storage.MAGIC + struct.pack(">5I", 1, nonce, len(data) // size, 512, size)
    journal = head.ljust(512, b"\0") + struct.pack(">I", 1) + page + struct.pack(">I", check)
    if super_journal is not None:
        name = os.fsencode(super_journal)
        journal += struct.pack(">I", (1 << 30) // size + 1) + name
        journal += struct.pack(">II", len(name), sum(name) % 2**32) + storage.MAGIC
    database.with_name(f"{database.name}-journal").write_bytes(journal)


@pytest.mark.X9
def test_a_journal_cannot_name_a_file_to_delete(theirs: Path, stored: Path) -> None:
    """SQLite rolls such a journal back and deletes what it calls its super-journal, wherever that lies."""
    victim = theirs.parent / "precious.txt"
    victim.write_text("of somebody")
    hot_journal(stored, victim)
    journal = theirs / "study.sqlite3-journal"
    with pytest.raises(ValueError) as caught:
        storage.open_storage("", theirs, "theirs")
    assert victim.read_text() == "of somebody"
    assert str(caught.value) == (
        "expected a journal of the sweep's own database, got one that names another file, which SQLite would delete: "
        f"`{journal}`; remove it if you trust `study.sqlite3` without it"
    )
    hot_journal(stored, None)  # of a worker of ours that was killed
    storage.open_storage("", theirs, "theirs").close()
    assert not journal.exists()


ENDLESS = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x FROM n)"


@pytest.mark.X9
@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("view", f"ALTER TABLE studies RENAME TO s; CREATE VIEW studies AS {ENDLESS} SELECT x study_id FROM n"),
        ("trigger", "CREATE TRIGGER studies AFTER INSERT ON trials BEGIN DELETE FROM trials; END"),
    ],
)
def test_a_database_computes_nothing_by_itself(theirs: Path, stored: Path, kind: str, text: str) -> None:
    """A view that never ends kept the command for ever."""
    with sqlite3.connect(stored) as database:
        database.executescript(text)
    database.close()
    with pytest.raises(ValueError) as caught:
        storage.open_storage("", theirs, "theirs")
    assert str(caught.value) == f"expected only tables of trials, got the {kind} `studies`: `{stored}`"


@pytest.mark.parametrize("name", ["a?b=c", "a#b", "a%3fb", "a{b}", "a b", "a:b@c", "\u00fc"])
def test_the_database_is_in_the_sweeps_folder_whatever_that_is_called(tmp_path: Path, name: str) -> None:
    """Behind a ? SQLAlchemy takes the rest for options: the trials were in a file beside the folder."""
    folder = tmp_path / name
    folder.mkdir()
    storage.open_storage("", folder, "mine").close()
    assert (folder / storage.SQLITE).stat().st_size > 0
    assert os.listdir(tmp_path) == [name]


@pytest.mark.X9
def test_locks_are_not_taken_in_somebodys_folder(theirs: Path) -> None:
    elsewhere, claims = theirs.parent / "elsewhere", theirs / "study.sqlite3.claims"
    elsewhere.mkdir()
    claims.symlink_to(elsewhere)
    with pytest.raises(ValueError) as caught:
        storage.open_storage("", theirs, "theirs")
    assert str(caught.value) == f"expected a folder of the sweep itself, got a link: `{claims}`"
    assert list(elsewhere.iterdir()) == []


def test_a_lock_of_optunas_that_was_left_behind_keeps_nobody_out(theirs: Path) -> None:
    """It is a link to the journal where that lay: after a kill and a move it leads nowhere, and was waited for."""
    journal = theirs / "shared.journal"
    (theirs / "shared.journal.lock").symlink_to(theirs.parent / "before" / journal.name)
    opened = storage.open_storage(str(journal), theirs, "theirs")
    study.Study(SWEEP, space.read([RATE], tiny())[0], opened, str(journal), seed=0)
    opened.close()


@pytest.mark.X9
def test_trials_are_not_trained_in_somebodys_folder(theirs: Path) -> None:
    """An empty folder elsewhere was taken for that of a new run."""
    elsewhere = theirs.parent / "elsewhere"
    elsewhere.mkdir()
    (theirs / "trial-0000").symlink_to(elsewhere)
    words = ["sweep", f"{SUPPORT / 'tiny.py'}:tiny", RATE, "run=theirs", "--trials", "1", "--runs-dir", "."]
    result = CliRunner().invoke(app, words)
    assert result.exit_code == 2
    assert result.stderr.endswith("expected a folder of the sweep itself, got a link: 'theirs/trial-0000'\n")
    assert list(elsewhere.iterdir()) == []


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
