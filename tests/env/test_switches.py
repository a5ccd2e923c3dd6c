"""Switches: ours and the older names, what is in force, and what nobody reads."""

from __future__ import annotations

import pytest

import gridmill
from gridmill.env import switches


@pytest.fixture(autouse=True)
def _clean(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (*switches.KNOWN, *(n.replace("GRIDMILL", "METTAGRID") for n in switches.KNOWN)):
        if name != switches.ISA:
            monkeypatch.delenv(name, raising=False)
    monkeypatch.delenv("GRIDMILL_PICTURES", raising=False)


@pytest.mark.parametrize("name", ["GRIDMILL_PROFILING", "METTAGRID_PROFILING"])
def test_both_names_switch(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(name, "1")
    with gridmill.make("toy", num_worlds=1) as env:
        assert env.profiling
    assert switches.in_force()["GRIDMILL_PROFILING"] == "1"


def test_ours_wins_and_that_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("METTAGRID_OBS_VALIDATION", "1")
    assert switches.switch(switches.VALIDATION, None, False)
    assert switches.notes() == ["METTAGRID_OBS_VALIDATION is GRIDMILL_OBS_VALIDATION here"]
    monkeypatch.setenv("GRIDMILL_OBS_VALIDATION", "0")
    assert not switches.switch(switches.VALIDATION, None, True)
    assert switches.in_force()["GRIDMILL_OBS_VALIDATION"] == "0"
    (note,) = switches.notes()
    assert note.endswith("ours is set too and wins")
    assert switches.switch(switches.VALIDATION, True, False)  # an argument wins over both


def test_names_that_nobody_reads_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GRIDMILL_OBS_VALIDATON", "1")
    monkeypatch.setenv("METTAGRID_SOMETHING", "1")
    assert switches.notes() == [
        "GRIDMILL_OBS_VALIDATON means nothing here; did you mean GRIDMILL_OBS_VALIDATION?",
        "METTAGRID_SOMETHING means nothing here",
    ]
    monkeypatch.setenv("METTAGRID_PROFILING", "yes")
    with pytest.raises(ValueError, match="METTAGRID_PROFILING: expected 0 or 1, got 'yes'"):
        switches.switch(switches.PROFILING, None, False)
