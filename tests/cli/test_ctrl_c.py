"""Ctrl-C before a command has begun: it ends with 130 and says nothing, as it does later."""

from __future__ import annotations

import signal
import subprocess
import sys

import pydantic_core
import pytest
from typer.testing import CliRunner

from gridmill.cli import app, inspect

# Imports its modules one after the other; a line on stderr says that one is there, so others are still to come.
IMPORTS = [sys.executable, "-X", "importtime", "-P", "-m", "gridmill", "games"]


def ended(after: str, heard: bool) -> tuple[int, str]:
    """A command that gets SIGINT when it has imported a module: its code and its stderr but for the imports."""
    how = signal.default_int_handler if heard else signal.SIG_IGN
    before = signal.signal(signal.SIGINT, how)  # a child begins with what is ignored here
    try:
        child = subprocess.Popen(IMPORTS, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    finally:
        signal.signal(signal.SIGINT, before)
    said = []
    with child:
        assert child.stderr is not None
        for line in child.stderr:
            if line.split("|")[-1].strip() == after:
                child.send_signal(signal.SIGINT)
            elif not line.startswith("import time:"):
                said.append(line)
    return child.returncode, "".join(said)


@pytest.mark.parametrize("after", ["typer.core", "gridmill.cli.groups"])
def test_while_modules_are_imported(after: str) -> None:
    assert ended(after, heard=True) == (130, "")


def test_it_stays_ignored_where_it_is() -> None:
    assert ended("typer.core", heard=False) == (0, "")


def test_the_installed_command_begins_there_too() -> None:
    from importlib.metadata import entry_points

    (found,) = entry_points(group="console_scripts", name="gridmill")
    assert found.value == "gridmill.__main__:main"


def test_while_pydantic_builds_a_class(monkeypatch: pytest.MonkeyPatch) -> None:
    """It wraps whatever is raised meanwhile; nobody had seen that it was a Ctrl-C."""

    def interrupted(*_: object, **__: object) -> None:
        raise pydantic_core.SchemaError('Error building "definitions" validator:\n  KeyboardInterrupt: ')

    monkeypatch.setattr(inspect, "say", interrupted)
    result = CliRunner().invoke(app, ["games"])
    assert (result.exit_code, result.output) == (130, "")
