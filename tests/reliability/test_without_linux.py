"""U2: everything a run needs works without what only Linux has, and in a folder behind a link, as macOS's /tmp is."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest
import without_linux
from warm import Start, warm

ROOT = Path(__file__).resolve().parents[2]
SUPPORT = ROOT / "tests" / "support"

PROGRAM = """
import os, sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
import without_linux
if hasattr(os, "sched_getaffinity"):
    without_linux.hide()
try:
    Path("/proc/cpuinfo").read_text()
except FileNotFoundError:
    print("hidden" if not hasattr(os, "sched_getaffinity") else "names are still there")

import gridmill
from gridmill.cli import main as command
from gridmill.evaluate.__main__ import main as evaluate
from gridmill.runs import resume, train
from tiny import EPOCH, tiny

with gridmill.make("toy", num_worlds=2) as env:
    env.reset()
    env.step()
run = Path(sys.argv[2]) / "elsewhere"
assert train(tiny(2, run=run.name), run.parent, panel=False).exit_code == 0
assert resume(run, [f"trainer.total_timesteps={4 * EPOCH}"], panel=False).exit_code == 0
evaluate([str(run), "--policy", str(run), "--episodes", "4"])
for words in (["report", str(run)], ["doctor"]):
    try:
        command(words)
    except SystemExit as end:
        assert not end.code, end.code
print("done")
"""


def fresh(words: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
    """In an interpreter that has been without from its start, and so have those it starts."""
    (folder / "sitecustomize.py").write_text("import without_linux\nwithout_linux.hide()\n")
    environment = os.environ | {"PYTHONPATH": f"{folder}{os.pathsep}{SUPPORT}"}
    return subprocess.run(words, cwd=folder, capture_output=True, text=True, env=environment)


@pytest.mark.U2
@pytest.mark.parametrize("start", [warm, pytest.param(fresh, marks=pytest.mark.long)])
def test_a_run_from_training_to_its_report_without_linux(start: Start, tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    done = start([sys.executable, "-c", PROGRAM, str(SUPPORT), str(tmp_path / "link")], tmp_path)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[0] == "hidden"
    assert lines[-1] == "done"
    assert sum(line.startswith("ok       base:") for line in lines) == 1
    epochs = sorted(path.name for path in (tmp_path / "real" / "elsewhere" / "checkpoints").iterdir())
    assert epochs[-1].endswith("4")
    assert (tmp_path / "real" / "elsewhere" / "report.html").exists()


@pytest.mark.U2
def test_names_that_only_linux_has_are_asked_for_in_the_same_line() -> None:
    """Also where no test comes by: `hasattr(os, "sched_getaffinity")` stands beside its use."""
    names = {module.__name__: set(names.split()) for module, names in without_linux.NAMES.items()}
    seen = []
    for path in sorted((ROOT / "src").rglob("*.py")):
        text = path.read_text()
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.ImportFrom):
                assert not names.get(node.module or "", set()) & {name.name for name in node.names}, path
            elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
                module, name = node.value.id, node.attr
                if name in names.get(module, ()):
                    assert f'hasattr({module}, "{name}")' in text.splitlines()[node.lineno - 1], (path, node.lineno)
                    seen.append(name)
    assert "sched_getaffinity" in seen
