"""What the documents tell people to type works.

Documents are followed in an empty folder, each in its own: a block after `<!-- file NAME -->` is saved, a `bash` block
is typed line by line, a `python` block is a program. What would train for minutes trains for one epoch. On every change
README.md and the first tutorial are followed, in processes that are forked with torch imported; of all others a
training is planned (`--dry-run`) and options are read. Long: every document, in fresh processes.
`sh` blocks need more than a test has (a GPU, other machines, an index of packages, somebody who looks): planned only.
"""

from __future__ import annotations

import ast
import importlib.util
import json
import re
import shlex
import shutil
import sys
from pathlib import Path

import pytest
from typer.main import get_command
from typer.testing import CliRunner
from warm import Start, fresh, warm

from gridmill import cli

pytestmark = pytest.mark.U1

ROOT = Path(__file__).resolve().parents[2]
DOCUMENTS = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(r"^(?:<!-- file (\S+) -->\n)?```(\w*)\n(.*?)^```", re.MULTILINE | re.DOTALL)
FOLLOWED = [ROOT / "README.md", ROOT / "docs" / "tutorials" / "train.md"]
# One epoch of any recipe.
SMALL = {
    "trainer.total_timesteps": "9_216",
    "trainer.num_worlds": "2",
    "trainer.batch_size": "9_216",
    "trainer.minibatch_size": "2_304",
    "trainer.bptt_horizon": "64",
}
# Recipes whose episodes would not end in so few steps, and so would have no score.
LONG_EPISODES = ("ci", "arena_easy_moves")


def named(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def followed_to_the_letter(path: Path) -> bool:
    """Pages about the package itself, which tests/howto/test_howto.py follows in a copy of it."""
    return path.name.startswith("add-a-")


def lines(block: str) -> list[str]:
    joined = block.replace("\\\n", " ").splitlines()
    return [command for line in joined if (command := line.split(" #")[0].strip())]


def in_blocks(*tags: str) -> list[tuple[str, str]]:
    """The lines of the blocks with one of these tags, and the documents they are in."""
    found = []
    for path in DOCUMENTS:
        for _, tag, block in BLOCK.findall(path.read_text()):
            if tag in tags:
                found += [(named(path), line) for line in lines(block)]
    return found


def mentioned(program: str) -> list[tuple[str, str]]:
    """Commands that begin with a program's name, in running text and in blocks."""
    found = in_blocks("", "sh", "bash")
    for path in DOCUMENTS:
        inline = re.findall(r"`([^`\n]+)`", BLOCK.sub("", path.read_text()))
        found += [(named(path), code.strip()) for code in inline]
    return sorted({(document, code) for document, code in found if code.startswith(program + " ")})


def short(words: list[str]) -> list[str]:
    """The same command with little to do; what it is about stays."""
    if words[:2] == ["gridmill", "resume"]:  # it goes on for one epoch
        return [re.sub(r"(?<=^trainer\.total_timesteps=).*", "18_432", word) for word in words]
    if words[:2] in (["gridmill", "train"], ["gridmill", "sweep"]) and any("=" in word for word in words[2:]):
        kept = [word for word in words if word.split("=")[0] not in SMALL]
        kept = [re.sub(r"(?<=^supervised_steps=).*", "9_216", word) for word in kept]
        kept += [f"{key}={value}" for key, value in SMALL.items()]
        return [*kept, *(["game.max_steps=96"] if words[2] in LONG_EPISODES else [])]
    return words


def reader(folder: Path) -> Path:
    """A folder with nothing but the examples."""
    shutil.copytree(ROOT / "examples", folder / "examples", ignore=shutil.ignore_patterns("__pycache__"))
    return folder


def follow(path: Path, folder: Path, start: Start) -> int:
    """Does what a document says; how many commands it has."""
    typed = 0
    for name, tag, block in BLOCK.findall(path.read_text()):
        if name:
            (folder / name).write_text(block)
        for command in lines(block) if tag == "bash" else ():
            done = start(short(shlex.split(command)), folder)
            # 1 is how a benchmark says that the machine was too noisy; the command itself worked.
            fine = (0, 1) if command.startswith("gridmill bench") else (0,)
            assert done.returncode in fine, f"{path.name}: {command}\n{done.stdout}{done.stderr}"
            typed += 1
    return typed


WITH_COMMANDS = [path for path in DOCUMENTS if any(tag == "bash" for _, tag, _ in BLOCK.findall(path.read_text()))]


@pytest.mark.parametrize(
    ("path", "start"),
    [pytest.param(path, warm, id=named(path)) for path in FOLLOWED]
    + [pytest.param(path, fresh, id=f"fresh-{named(path)}", marks=pytest.mark.long) for path in WITH_COMMANDS],
)
def test_commands_in_documents_run(path, start, tmp_path, record_property):
    """Every command in the bash blocks of a document ends well; each document makes what its commands use."""
    typed = follow(path, reader(tmp_path), start)
    record_property("figure", f"{typed} commands of {path.name}")


# Of each folder one command after the other, up to the first that fails.
PLANS = """
import json, os, sys
from gridmill.cli import main
for folder, words in json.loads(sys.argv[1]):
    os.chdir(folder)
    try:
        main([*words, "--dry-run"])
    except SystemExit as ended:
        if ended.code:
            sys.exit(f"{folder}: {words}")
"""


def test_trainings_in_documents_are_planned(tmp_path):
    """Every `gridmill train` in a block, however long it would take, has a plan."""
    asked = []
    for path in DOCUMENTS:
        if followed_to_the_letter(path):
            continue
        folder = reader(tmp_path / named(path))
        for name, tag, block in BLOCK.findall(path.read_text()):
            if name:
                (folder / name).write_text(block)
            for command in lines(block) if tag in ("bash", "sh") else ():
                _, found, rest = command.partition("gridmill train ")
                if found and "$" not in rest:  # not what a script of Slurm fills in
                    asked.append((str(folder), ["train", *shlex.split(rest)]))
    done = warm([sys.executable, "-c", PLANS, json.dumps(asked)], tmp_path)
    assert done.returncode == 0, done.stderr
    assert len(asked) > 40


PROGRAMS = [
    (path, code) for path in DOCUMENTS for name, tag, code in BLOCK.findall(path.read_text()) if tag == "python"
]
# Programs that train; on every change only that of the first tutorial does.
TRAINING = [(path, code) for path, code in PROGRAMS if "gridmill.runs" in code and path not in FOLLOWED]


@pytest.mark.parametrize(
    ("program", "start"),
    [pytest.param(code, warm, id=path.name) for path, code in PROGRAMS if (path, code) not in TRAINING]
    + [pytest.param(code, fresh, id=f"fresh-{path.name}", marks=pytest.mark.long) for path, code in PROGRAMS],
)
def test_programs_in_documents_run(program, start, tmp_path):
    """Every python block of the documents runs, with warnings as errors."""
    if "pufferlib" in program and importlib.util.find_spec("pufferlib") is None:
        pytest.skip("pufferlib is not installed")
    done = start([sys.executable, "-W", "error", "-c", program], tmp_path)
    assert done.returncode == 0, f"{program}\n{done.stderr}"


@pytest.mark.parametrize("program", [pytest.param(code, id=path.name) for path, code in TRAINING])
def test_programs_in_documents_import_what_exists(program, tmp_path):
    """What a program imports exists; the rest of it is left to the long tier."""
    imports = [ast.unparse(node) for node in ast.parse(program).body if isinstance(node, ast.Import | ast.ImportFrom)]
    done = warm([sys.executable, "-c", "\n".join(imports)], tmp_path)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_blocks_say_what_they_are(path):
    """A block with commands is `bash` or `sh`, and a program `python` or a file: nothing escapes these tests."""
    for name, tag, block in BLOCK.findall(path.read_text()):
        starts = tuple(line.split()[0] for line in lines(block))
        assert tag or not {"gridmill", "torchrun", "python", "pip", "import", "from"} & set(starts), block
        assert name or tag != "py" or followed_to_the_letter(path), block


# Of those, own_game.py is run by tests/runs/test_own_game.py.
EXAMPLES = [path for path in sorted((ROOT / "examples").glob("*.py")) if path.name != "own_game.py"]
# They train or export more than once: on every change they are only imported.
LARGE = {"export_policy.py", "own_callback.py", "self_play.py"}
# Libraries that an example is about; without them it is not run.
NEEDED = {"stable_baselines.py": "stable_baselines3", "export_policy.py": "onnxruntime", "jax_policy.py": "jax"}


@pytest.mark.parametrize(
    ("example", "start"),
    [pytest.param(path, warm, id=path.name) for path in EXAMPLES if path.name not in LARGE]
    + [pytest.param(path, fresh, id=f"fresh-{path.name}", marks=pytest.mark.long) for path in EXAMPLES],
)
def test_examples_run(example, start, tmp_path):
    """Every program under examples/ runs, with warnings as errors."""
    library = NEEDED.get(example.name)
    if library is not None and importlib.util.find_spec(library) is None:
        pytest.skip(f"{library} is not installed")
    done = start([sys.executable, "-W", "error", str(example)], tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout


@pytest.mark.parametrize("name", sorted(LARGE))
def test_large_examples_are_imported(name, tmp_path):
    program = f"import runpy; runpy.run_path({str(ROOT / 'examples' / name)!r}, run_name='imported')"
    done = warm([sys.executable, "-W", "error", "-c", program], tmp_path)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.name)
def test_examples_are_short(example):
    """A part of one's own, or a policy in another program, takes less than forty lines."""
    assert len(example.read_text().splitlines()) < 40


@pytest.mark.parametrize(("document", "command"), mentioned("gridmill"))
def test_mentioned_commands_exist(document, command):
    """Commands named in text, tables and blocks have existing options."""
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


def commands(command, *words: str):
    """Every command and group of commands, as the words that are typed."""
    yield words
    for name, inner in getattr(command, "commands", {}).items():
        yield from commands(inner, *words, name)


@pytest.mark.parametrize("words", list(commands(get_command(cli.app))), ids=lambda words: " ".join(words) or "gridmill")
def test_help_of_every_command(words):
    """`--help` of every command ends with 0 and fits 80 columns."""
    done = CliRunner(env={"COLUMNS": "200"}).invoke(cli.app, [*words, "--help"])
    assert done.exit_code == 0, done.output
    assert max(len(line) for line in done.stdout.splitlines()) <= 80
