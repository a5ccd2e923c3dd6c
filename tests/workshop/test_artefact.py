"""Artefacts have one form; what is none is refused; what could not be written is refused first."""

from __future__ import annotations

import io
import itertools
import json
import os
import signal
from pathlib import Path
from types import SimpleNamespace

import pytest
from typer.testing import CliRunner

from gridmill.cli import app
from gridmill.workshop import artefact
from gridmill.workshop import progress as progress_module
from gridmill.workshop.progress import Progress, clock, stoppable


def made(**own: object) -> dict:
    return artefact.record("ab", 7, {"blocks": 2}, {"rate": artefact.sample([1, 2], "steps/s")}, **own)


def test_an_artefact_says_what_it_was_made_with(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("GRIDMILL_OBS_VALIDATION", "1")
    record = made(ratio=2.0)
    assert set(artefact.KEYS) < set(record)
    assert {"date", "command", "commit", "cpu", "switches"} <= set(record["machine"])
    kernels = {"GRIDMILL_ISA": os.environ["GRIDMILL_ISA"]} if "GRIDMILL_ISA" in os.environ else {}  # make test-portable
    assert record["machine"]["switches"] == kernels | {"GRIDMILL_OBS_VALIDATION": "1"}
    assert record["samples"] == {"rate": {"unit": "steps/s", "better": "higher", "values": [1.0, 2.0]}}
    path = artefact.place(record, "two", tmp_path / "deep")
    assert artefact.read(artefact.write(record, path), "ab") == json.loads(json.dumps(record))
    assert path.name.endswith("-two.json")
    assert path.name.split("-")[1] == str(record["machine"]["commit"]["hash"] or "none")[:10]
    assert artefact.place(record, "x").parent == Path("artifacts/ab")


def test_what_is_no_artefact_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    for text in ("", "[]", "{}", "{" * 5_000, '{"kind": "ab"}'):
        path.write_text(text)
        with pytest.raises(ValueError, match="is not an artifact of the workshop"):
            artefact.read(path)
    path.write_text(json.dumps(made()))
    with pytest.raises(ValueError, match="expected an artifact of `gridmill tune`, got one of `gridmill ab`"):
        artefact.read(path, "tune")
    path.write_text(json.dumps(made() | {"schema": 9}))
    with pytest.raises(ValueError, match="expected an artifact of schema 1, got 9"):
        artefact.read(path)
    for lacking in ("date", "commit", "cpu"):
        whole = made()
        del whole["machine"][lacking]
        path.write_text(json.dumps(whole))
        with pytest.raises(ValueError, match=rf"is not an artifact of the workshop: machine\.{lacking}.* is missing"):
            artefact.read(path)
    for sample in ({}, {"unit": "s", "better": "lower", "values": ["a"]}, 3):
        path.write_text(json.dumps(made() | {"samples": {"rate": sample}}))
        with pytest.raises(ValueError, match=r"samples\.rate is not a list of values with a unit"):
            artefact.read(path)


@pytest.mark.parametrize(
    "words",
    [
        ["ab", "ci", "ci"],
        ["tune", "ci"],
        ["gate", "--game", "toy"],
        ["compare-presets", "ci", "--preset", "laptop", "--preset", "baseline"],
        ["profile", "step", "--game", "toy"],
        ["profile", "train", "ci"],
        ["validate"],
    ],
    ids=lambda words: "-".join(words[:2]),
)
def test_nothing_is_measured_that_cannot_be_saved(
    words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a folder that cannot be written an hour of measuring was lost at its end."""
    (tmp_path / "file").write_text("")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(artefact, "FOLDER", tmp_path / "file" / "artifacts")
    result = CliRunner().invoke(app, words)
    kind = "-".join(words[:2] if words[0] == "profile" else words[:1])
    assert result.exit_code in (2, 64), result.output
    said = f"gridmill: cannot write `{tmp_path}/file/artifacts/{kind}/x.json`: Not a directory\n"
    assert (result.stdout, result.stderr) == ("", said)
    assert os.listdir(tmp_path) == ["file"]


def test_progress_says_what_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    now = itertools.count(0.0, 30.0)  # half a minute between looks at the clock
    monkeypatch.setattr(progress_module, "time", SimpleNamespace(monotonic=lambda: next(now)))
    assert [clock(0), clock(61), clock(3_725)] == ["0:00", "1:01", "1:02:05"]
    stream = io.StringIO()
    stream.isatty = lambda: True  # type: ignore[method-assign]
    progress = Progress(3, "blocks", stream)
    progress.step("seed 0")
    assert "blocks: 1 of 3, 1:00 left, seed 0" in stream.getvalue()
    progress.step()
    progress.step()
    progress.close()
    assert "3 of 3" not in stream.getvalue()
    silent = io.StringIO()
    Progress(3, "blocks", silent).step()
    assert silent.getvalue() == "blocks: 1 of 3, 1:00 left\n"  # nobody watches: a line every half minute
    monkeypatch.setattr(progress_module, "time", SimpleNamespace(monotonic=lambda: 0.0))
    Progress(3, "blocks", silent).step()
    assert silent.getvalue().count("\n") == 1


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_work_that_is_stopped_says_why(number: signal.Signals) -> None:
    inherited = signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored in a shell's background job
    try:
        before = signal.getsignal(signal.SIGTERM)
        with stoppable() as stopped:
            signal.raise_signal(number)
            raise AssertionError("went on")
        assert stopped == [f"stopped by {number.name}"]
        assert signal.getsignal(signal.SIGTERM) == before
    finally:
        signal.signal(signal.SIGINT, inherited)
