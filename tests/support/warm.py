"""Python programs and `gridmill` commands in processes that need not import torch: each is forked from one that has.

An interpreter of its own spends most of a short command on imports. The process they are forked from never does
anything else, so each begins as a fresh one that has just imported the package. `fresh` is the same without a fork.
"""

from __future__ import annotations

import multiprocessing
import multiprocessing.context
import os
import runpy
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path

Done = subprocess.CompletedProcess[str]
Start = Callable[[Sequence[str], Path], Done]

FORKS = multiprocessing.get_context("forkserver")
# The second has torch, the third is what torch loads when something is first optimized.
FORKS.set_forkserver_preload(["gridmill.cli", "gridmill.runs.session", "torch._dynamo"])


def fresh(words: Sequence[str], folder: Path) -> Done:
    """A program in an interpreter of its own: `gridmill ...` or `python [-W error] (-c code | file)`."""
    environment = os.environ | {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    return subprocess.run(words, cwd=folder, capture_output=True, text=True, env=environment)


def warm(words: Sequence[str], folder: Path) -> Done:
    """The same, forked."""
    with tempfile.TemporaryDirectory() as said:
        files = [Path(said) / "out", Path(said) / "err"]
        child = FORKS.Process(target=_become, args=(list(words), str(folder), *map(str, files)))
        child.start()
        try:
            child.join()
        finally:
            child.kill()  # a test that ran out of time leaves nobody behind
        assert child.exitcode is not None
        return subprocess.CompletedProcess(words, child.exitcode, *(file.read_text() for file in files))


def started(words: Sequence[str], folder: Path, said: Path) -> multiprocessing.context.ForkServerProcess:
    """The same without waiting for it; what it says, also of errors, is in a file."""
    said.touch()
    child = FORKS.Process(target=_become, args=(list(words), str(folder), str(said), str(said)))
    child.start()
    return child


def _become(words: list[str], folder: str, out: str, err: str) -> None:
    """In the child: what the interpreter would do with these words."""
    os.chdir(folder)
    for number, name in ((1, out), (2, err)):
        os.dup2(os.open(name, os.O_WRONLY | os.O_CREAT | os.O_APPEND), number)
    program, *rest = words
    if Path(program).name == "gridmill":
        from gridmill.cli import main

        sys.argv = words
        sys.exit(main())
    assert program == sys.executable
    if rest[:2] == ["-W", "error"]:
        warnings.simplefilter("error")
        rest = rest[2:]
    if rest[0] == "-c":
        sys.argv = ["-c", *rest[2:]]
        sys.path.insert(0, "")
        exec(compile(rest[1], "<string>", "exec"), {"__name__": "__main__"})
        return
    sys.argv = rest
    sys.path.insert(0, str(Path(rest[0]).parent))
    runpy.run_path(rest[0], run_name="__main__")
