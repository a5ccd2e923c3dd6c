"""What the documents tell people to type works.

Every `bash` block of README.md and docs/ is run line by line in an empty folder, every `python` block as a program: in
processes that are forked with torch imported; long: in fresh ones.
Commands in running text and tables, which may take minutes, are checked for existing options and make targets.
"""

from __future__ import annotations

import importlib.util
import re
import shlex
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner
from warm import Start, fresh, warm

from gridmill import cli

pytestmark = pytest.mark.U1

ROOT = Path(__file__).resolve().parents[2]
DOCUMENTS = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```", re.MULTILINE | re.DOTALL)


def blocks(language: str) -> list[tuple[str, str]]:
    found = []
    for path in DOCUMENTS:
        for tag, text in BLOCK.findall(path.read_text()):
            if tag == language:
                found.append((path.name, text))
    return found


def lines(block: str) -> list[str]:
    joined = block.replace("\\\n", " ").splitlines()
    return [command for line in joined if (command := line.split(" #")[0].strip())]


def mentioned(program: str) -> list[tuple[str, str]]:
    """Inline code and untagged blocks that begin with a program's name."""
    found = []
    for path in DOCUMENTS:
        text = path.read_text()
        inline = re.findall(r"`([^`\n]+)`", BLOCK.sub("", text))
        plain = [line.split(" #")[0] for tag, block in BLOCK.findall(text) if tag == "" for line in block.splitlines()]
        found += [(path.name, code.strip()) for code in inline + plain if code.startswith(program + " ")]
    return sorted(set(found))


# What starts a process.
STARTS = [warm, pytest.param(fresh, marks=pytest.mark.long)]


class Reader:
    """Somebody who types the commands of all documents, one after the other, in one folder; none of them twice."""

    def __init__(self, start: Start, folder: Path) -> None:
        self.start, self.folder, self.done = start, folder, set[str]()

    def type(self, command: str, document: str) -> None:
        if command in self.done:
            return
        done = self.start(shlex.split(command), self.folder)
        # 1 is how a benchmark says that the machine was too noisy; the command itself worked.
        fine = (0, 1) if command.startswith("gridmill bench") else (0,)
        assert done.returncode in fine, f"{document}: {command}\n{done.stdout}{done.stderr}"
        self.done.add(command)


@pytest.fixture(scope="module", params=STARTS)
def reader(request, tmp_path_factory):
    return Reader(request.param, tmp_path_factory.mktemp("reader"))


WITH_COMMANDS = [path for path in DOCUMENTS if any(tag == "bash" for tag, _ in BLOCK.findall(path.read_text()))]


@pytest.mark.parametrize("path", WITH_COMMANDS, ids=lambda path: str(path.relative_to(ROOT)))
def test_commands_in_documents_run(path, reader, record_property):
    """Every command in the bash blocks of a document ends well; each document makes what its commands use."""
    typed = [line for tag, block in BLOCK.findall(path.read_text()) if tag == "bash" for line in lines(block)]
    for command in typed:
        reader.type(command, path.name)
    record_property("figure", f"{len(typed)} commands of {path.name}")


@pytest.mark.parametrize("start", STARTS)
@pytest.mark.parametrize(("document", "program"), blocks("python"))
def test_programs_in_documents_run(document, program, start, tmp_path):
    """Every python block of the documents runs, with warnings as errors."""
    done = start([sys.executable, "-W", "error", "-c", program], tmp_path)
    assert done.returncode == 0, f"{document}:\n{program}\n{done.stderr}"


# Of those, own_game.py is run by tests/runs/test_own_game.py.
EXAMPLES = [path for path in sorted((ROOT / "examples").glob("*.py")) if path.name != "own_game.py"]


# Libraries that an example is about; without them it is not run.
NEEDED = {"stable_baselines.py": "stable_baselines3", "export_policy.py": "onnxruntime", "sweep.py": "optuna"}


@pytest.mark.parametrize("start", STARTS)
@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.name)
def test_examples_run(example, start, tmp_path):
    """Every program under examples/ runs, with warnings as errors."""
    library = NEEDED.get(example.name)
    if library is not None and importlib.util.find_spec(library) is None:
        pytest.skip(f"{library} is not installed")
    done = start([sys.executable, "-W", "error", str(example)], tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.name)
def test_examples_are_short(example):
    """A part of one's own, or a policy in another program, takes less than forty lines."""
    assert len(example.read_text().splitlines()) < 40


@pytest.mark.parametrize(("document", "command"), mentioned("gridmill"))
def test_mentioned_commands_exist(document, command):
    """Commands named in text and tables have existing options."""
    words = [word for word in shlex.split(command) if not re.fullmatch(r"[A-Z_]+(\.\.\.)?", word)]
    done = CliRunner().invoke(cli.app, [*words[1:], "--help"])
    assert done.exit_code == 0, f"{document}: {command}\n{done.output}"


def test_make_targets_exist():
    """Every make target the documents name exists."""
    makefile = (ROOT / "Makefile").read_text()
    targets = {name for line in re.findall(r"^([\w -]+):(?!=)", makefile, re.MULTILINE) for name in line.split()}
    named = {command.split()[1] for _, command in mentioned("make")}
    named = {name for name in named if not re.fullmatch(r"[A-Z_]+", name)}  # a placeholder
    assert {"demo", "test"} <= named
    assert named <= targets, named - targets


HELPED = ["", "bench", "bench step", "profile", "games", "show", "doctor", "policy", "policy info", "policy export"]


@pytest.mark.parametrize("command", [words.split() for words in HELPED])
def test_help_of_every_command(command):
    """`--help` of every command ends with 0 and fits 80 columns."""
    done = CliRunner(env={"COLUMNS": "200"}).invoke(cli.app, [*command, "--help"])
    assert done.exit_code == 0, done.output
    assert max(len(line) for line in done.stdout.splitlines()) <= 80
