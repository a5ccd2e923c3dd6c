"""Python programs and `gridmill` commands in processes that need not import torch: each is forked from one that has.

An interpreter of its own spends most of a short command on imports. The process they are forked from never does
anything else, so each begins as a fresh one that has just imported the package. `fresh` is the same without a fork.
"""

from __future__ import annotations

import io
import multiprocessing
import os
import runpy
import subprocess
import sys
import tempfile
import traceback
import types
import warnings
from collections.abc import Callable, Mapping, Sequence
from multiprocessing import reduction
from pathlib import Path
from typing import IO, Any

Done = subprocess.CompletedProcess[str]
Start = Callable[[Sequence[str], Path], Done]

FORKS = multiprocessing.get_context("forkserver")
# The second has torch, the third is what torch loads when something is first optimized.
FORKS.set_forkserver_preload(["gridmill.cli", "gridmill.runs.session", "torch._dynamo"])


def fresh(words: Sequence[str], folder: Path) -> Done:
    """A program in an interpreter of its own: `gridmill ...` or `python [-W error] (-c code | -m module | file)`."""
    environment = os.environ | {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    return subprocess.run(words, cwd=folder, capture_output=True, text=True, env=environment)


def warm(words: Sequence[str], folder: Path, env: Mapping[str, str] | None = None) -> Done:
    """The same, forked."""
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
        with Popen(words, cwd=folder, stdout=out, stderr=err, env=env) as child:
            code = child.wait()
        out.seek(0)
        err.seek(0)
        return subprocess.CompletedProcess(words, code, out.read(), err.read())


def started(words: Sequence[str], folder: Path, said: Path) -> Popen:
    """The same without waiting for it; what it says, also of errors, is in a file."""
    with said.open("a") as out:
        return Popen(words, cwd=folder, stdout=out, stderr=subprocess.STDOUT)


class Popen:
    """What tests and the package use of `subprocess.Popen`, forked. Put in its place, it makes their children cheap."""

    def __init__(
        self,
        words: Sequence[str],
        *,
        stdin: IO[Any] | int | None = None,  # a file, or one of the numbers of `subprocess`
        stdout: IO[Any] | int | None = None,
        stderr: IO[Any] | int | None = None,
        cwd: Path | str | None = None,
        env: Mapping[str, str] | None = None,
        text: bool = False,
        bufsize: int = -1,
        start_new_session: bool = False,
    ) -> None:
        self.args = list(words)
        ours: dict[int, int] = {}
        given: dict[int, int] = {}
        for number, stream in enumerate((stdin, stdout, stderr)):
            if stream == subprocess.PIPE:
                ends = os.pipe()
                given[number], ours[number] = ends if number == 0 else ends[::-1]
            elif stream == subprocess.STDOUT:
                given[number] = os.dup(given[1])
            elif stream == subprocess.DEVNULL:
                given[number] = os.open(os.devnull, os.O_RDWR)
            else:
                given[number] = os.dup(number if stream is None or isinstance(stream, int) else stream.fileno())
        streams = [_Handed(given[number]) for number in range(3)]
        environment = dict(os.environ if env is None else env)
        place = str(Path.cwd() if cwd is None else cwd)
        self._process = FORKS.Process(target=_begin, args=(self.args, place, environment, streams, start_new_session))
        try:
            self._process.start()
        finally:
            for end in given.values():
                os.close(end)
        opened = {
            number: open(end, ("w" if number == 0 else "r") + ("" if text else "b"), buffering=bufsize)  # noqa: SIM115
            for number, end in ours.items()
        }
        self.stdin, self.stdout, self.stderr = (opened.get(number) for number in range(3))
        assert self._process.pid is not None
        self.pid = self._process.pid

    @property
    def returncode(self) -> int | None:
        return self._process.exitcode

    def poll(self) -> int | None:
        return self._process.exitcode

    def wait(self, timeout: float | None = None) -> int:
        self._process.join(timeout)
        if self._process.exitcode is None:
            assert timeout is not None
            raise subprocess.TimeoutExpired(self.args, timeout)
        return self._process.exitcode

    def communicate(self, timeout: float | None = None) -> tuple[Any, None]:
        """What it has said to a pipe; errors have none of their own."""
        assert self.stderr is None
        said = None if self.stdout is None else self.stdout.read()
        self.wait(timeout)
        self._close()
        return said, None

    def send_signal(self, number: int) -> None:
        if self._process.exitcode is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        self._process.kill()

    def terminate(self) -> None:
        self._process.terminate()

    def __enter__(self) -> Popen:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not None:
            self.kill()  # a test that ran out of time leaves nobody behind
        self._close()
        self.wait()

    def _close(self) -> None:
        for stream in (self.stdin, self.stdout, self.stderr):
            if stream is not None:
                stream.close()


# Stands in for the module `subprocess` where the package starts a process.
FORKED: Any = types.SimpleNamespace(**(vars(subprocess) | {"Popen": Popen}))


def process(
    code: str, *arguments: str, popen: Callable[..., Any] = Popen, **changes: str
) -> Popen | subprocess.Popen[str]:
    """Python code in a process of its own, forked or fresh, which sees this package and `tests/support/`."""
    paths = os.pathsep.join([str(Path(__file__).resolve().parent), *filter(None, sys.path)])
    found: Popen | subprocess.Popen[str] = popen(
        [sys.executable, "-c", code, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env=os.environ | {"PYTHONPATH": paths, "PYTHONUNBUFFERED": "1"} | changes,
    )
    return found


class _Handed:
    """An open file on its way to a child, where it arrives as a number."""

    def __init__(self, number: int) -> None:
        self.number = number

    def __reduce__(self) -> tuple[Callable[[Any], int], tuple[Any]]:
        return _arrived, (reduction.DupFd(self.number),)


def _arrived(handed: Any) -> int:
    return int(handed.detach())


def _begin(words: list[str], folder: str, environment: dict[str, str], streams: list[int], session: bool) -> None:
    """In the child: what the system does before a program begins."""
    if session:
        os.setsid()
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    # New ones, for the old know what kind of file they were. Nothing waits in them, as with PYTHONUNBUFFERED: what
    # nobody reads any more must not fail once more at the end.
    sys.stdin = open(0, closefd=False)  # noqa: SIM115
    sys.stdout = _unbuffered(1, "strict")
    sys.stderr = _unbuffered(2, "backslashreplace")
    try:
        _become(words)
    except Exception:  # as an interpreter says it, not with the lines of a process of multiprocessing
        traceback.print_exc()
        sys.exit(1)


def _unbuffered(number: int, errors: str) -> io.TextIOWrapper:
    raw = open(number, "wb", buffering=0, closefd=False)  # noqa: SIM115
    encoding, _, asked = os.environ.get("PYTHONIOENCODING", "").partition(":")
    return io.TextIOWrapper(raw, encoding or None, asked if asked and number == 1 else errors, write_through=True)


def _become(words: list[str]) -> None:
    """What the interpreter would do with these words."""
    program, *rest = words
    if program == "env":
        while "=" in rest[0]:
            name, _, value = rest.pop(0).partition("=")
            os.environ[name] = value
        program, *rest = rest
    if Path(program).name == "gridmill":
        from gridmill.cli import main

        sys.argv = [program, *rest]
        sys.exit(main())
    assert program in (sys.executable, "python"), program
    if rest[:2] == ["-W", "error"]:
        warnings.simplefilter("error")
        rest = rest[2:]
    alone = rest[0] == "-P"  # nothing is imported from the folder
    first, *rest = rest[1:] if alone else rest
    if first == "-c":
        sys.argv = ["-c", *rest[1:]]
        sys.path[:0] = [] if alone else [""]
        exec(compile(rest[0], "<string>", "exec"), {"__name__": "__main__"})
    elif first == "-m":
        sys.argv = rest
        runpy.run_module(rest[0], run_name="__main__", alter_sys=True)
    else:
        sys.argv = [first, *rest]
        sys.path[:0] = [] if alone else [str(Path(first).parent)]
        runpy.run_path(first, run_name="__main__")
