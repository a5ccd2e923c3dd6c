"""The machine behind a figure: what it is, what it counts besides time, and the processes it runs beside us.

`describe()` is stored with every figure of bench and profile and shown by doctor: CPU, system, versions,
commit, native build, date and command. It holds no absolute path and no host name, so results can be
published as they are. `count_instructions()` counts what noise cannot touch; `Worker` is a child process that
is asked in JSON lines. Nothing here times anything or knows a game.
"""

from __future__ import annotations

import importlib.metadata
import json
import os
import platform
import re
import select
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from gridmill.config.install import pip_install
from gridmill.config.text import hang
from gridmill.env import switches
from gridmill.policy import onednn
from gridmill.sizing import usable_cores

FLAGS_OF_INTEREST = (
    "sse4_2",
    "avx2",
    "bmi2",
    "avx512f",
    "avx512bw",
    "avx512vl",
    "avx512vbmi",
    "avx512_vbmi2",
)
ANSWER_SECONDS = 900.0  # a worker that says nothing for so long is taken for dead
_ABSOLUTE = re.compile(r"(?:(?<![\w.~-])|(?<=-I)|(?<=-L)|(?<=-B))/(?:[^\s/:;,'\"=]+/)*([^\s/:;,'\"=]+)")


def without_paths(text: str) -> str:
    """The text with every absolute path cut to its last name."""
    return _ABSOLUTE.sub(r"\1", text)


def checkout_root() -> Path | None:
    """The source checkout this package runs from; None when it is installed elsewhere."""
    root = Path(__file__).resolve().parents[3]
    return root if (root / "pyproject.toml").is_file() and (root / "src" / "gridmill").is_dir() else None


def _output_of(*command: str, cwd: Path | None = None) -> str | None:
    """Standard output of a command, stripped; None if it is not there or fails."""
    try:
        done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=20, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip()


def commit() -> dict[str, Any]:
    """The commit of the checkout and whether tracked files differ from it; both None outside a checkout."""
    root = checkout_root()
    head = _output_of("git", "rev-parse", "HEAD", cwd=root) if root else None
    changed = _output_of("git", "status", "--porcelain", "--untracked-files=no", cwd=root) if head else None
    return {"hash": head, "dirty": None if changed is None else bool(changed)}


def cpu() -> dict[str, Any]:
    """Model, cores (all, and those this process may use) and the vector flags that matter here."""
    facts = onednn.cpu()
    flags = facts.get("flags", facts.get("Features", "")).split()
    return {
        "model": facts.get("model name") or _model_on_macos() or platform.processor() or platform.machine(),
        "architecture": platform.machine(),
        "cores": os.cpu_count(),
        "usable_cores": usable_cores(),
        "flags": [flag for flag in FLAGS_OF_INTEREST if flag in flags],
    }


def _model_on_macos() -> str | None:
    return _output_of("sysctl", "-n", "machdep.cpu.brand_string") if sys.platform == "darwin" else None


def system() -> str:
    """Name of the operating system, as people say it."""
    if found := platform.mac_ver()[0]:
        return f"macOS {found}, {platform.system()} {platform.release()}"
    try:
        name = platform.freedesktop_os_release().get("PRETTY_NAME", platform.system())
    except OSError:
        name = platform.system()
    return f"{name}, {platform.system()} {platform.release()}"


def version_of(distribution: str) -> str | None:
    """Version of an installed distribution; None if it is not installed."""
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return None


def name_of(requirement: str) -> str:
    """`torch` of `torch==2.13.0`."""
    found = re.match(r"[A-Za-z0-9._-]+", requirement)
    return found.group(0) if found else requirement


def extras() -> dict[str, dict[str, str | None]]:
    """Every extra of this package: its requirements and the version installed, None where missing."""
    found: dict[str, dict[str, str | None]] = {}
    for line in importlib.metadata.requires("gridmill") or ():
        requirement, _, condition = line.partition(";")
        extra = re.search(r"extra\s*==\s*['\"]([^'\"]+)['\"]", condition)
        if extra is not None and name_of(requirement) != "gridmill":
            found.setdefault(extra.group(1), {})[requirement.strip()] = version_of(name_of(requirement))
    return found


def beside(name: str) -> Path | None:
    """A file or folder under the current directory or the checkout."""
    roots = [Path.cwd(), *filter(None, [checkout_root()])]
    return next((root / name for root in roots if (root / name).exists()), None)


def tools() -> dict[str, tuple[str | None, str]]:
    """Programs some commands use: what is there, or how to get it."""
    compiler = next((tool for tool in ("g++", "c++", "clang++") if shutil.which(tool)), None)
    said = _output_of(compiler, "--version") if compiler else None
    valgrind = _output_of("valgrind", "--version")
    perf = "counts instructions" if perf_works() else None
    peers = "mettagrid and others in .venv-peers" if beside(".venv-peers/bin/python") else None
    trainers = "pufferlib-core in .venv-peers-train" if beside(".venv-peers-train/bin/python") else None
    torch = next((need for needs in extras().values() for need in needs if name_of(need) == "torch"), "torch")
    mac = sys.platform == "darwin"
    get_compiler = "xcode-select --install" if mac else "apt-get install g++"
    get_valgrind = "not available on macOS" if mac else "apt-get install valgrind"
    return {
        "torch": (version_of("torch"), f"{pip_install(torch)} (needed to train)"),
        "compiler": (said.splitlines()[0] if said else None, f"{get_compiler} (needed to build only)"),
        "perf": (perf, "no instruction counter here; `bench step --instructions` uses valgrind instead"),
        "valgrind": (valgrind, f"{get_valgrind} (needed by `bench step --instructions`)"),
        "peers": (peers, "make peers (needed by `bench step --peers`)"),
        "peer trainers": (trainers, "make peers-train (needed by `bench train --peers`)"),
    }


def native_build() -> dict[str, str]:
    """What the native core says of its own build."""
    from gridmill import _native

    return {str(key): without_paths(str(value)) for key, value in _native.build_info().items()}


def describe(command: Sequence[str] | None = None) -> dict[str, Any]:
    """The record stored with every figure. `command` defaults to the one that started this process."""
    words = list(sys.argv if command is None else command)
    words[:1] = [Path(words[0]).stem] if words else []
    return {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "command": [without_paths(word) for word in words],
        "cpu": cpu(),
        "system": system(),
        "python": f"{platform.python_implementation()} {platform.python_version()}",
        "numpy": version_of("numpy"),
        "gridmill": version_of("gridmill"),
        "commit": commit(),
        "native": native_build(),
        "onednn": onednn.settle().text,
        "switches": switches.in_force(),
    }


def headline(record: Mapping[str, Any]) -> list[str]:
    """The record in a few short lines for people."""
    chip, commit_ = record["cpu"], record["commit"]
    at = f"at {commit_['hash'][:10]}{' + changes' if commit_['dirty'] else ''}" if commit_["hash"] else "installed"
    hardware = f"{chip['model']}, {chip['usable_cores']} of {chip['cores']} cores"
    software = f"gridmill {record['gridmill']} {at}, {record['native'].get('isa', 'unknown')} path"
    versions = f"{record['python']}, numpy {record['numpy']}, {record['system']}"
    switched = (
        [f"switches: {', '.join(f'{k}={v}' for k, v in record['switches'].items())}"] if record["switches"] else []
    )
    told = (hardware, software, versions, record["date"], *switched)
    return [line for text in told for line in hang("", text)]


def resident_bytes() -> int:
    """Resident memory of this process."""
    import psutil

    return int(psutil.Process().memory_info().rss)


@dataclass(frozen=True)
class Counted:
    """Instructions counted for one step, by which tool, and what the child said on its last line."""

    per_step: float
    tool: str
    said: str


def perf_works() -> bool:
    """Whether `perf stat` can count instructions here (virtual machines often hide the counter)."""
    if shutil.which("perf") is None:
        return False
    with tempfile.TemporaryDirectory() as folder:
        try:
            _finish(_start_perf(["true"], Path(folder)), "perf")
        except (OSError, ValueError):
            return False
        return _perf_total(Path(folder)) is not None


def _start_perf(command: Sequence[str], folder: Path) -> subprocess.Popen[str]:
    counted = ["perf", "stat", "-x", ",", "-e", "instructions:u", "-o", str(folder / "perf.csv"), "--"]
    return _start([*counted, *command])


def _perf_total(folder: Path) -> int | None:
    file = folder / "perf.csv"
    for line in file.read_text(encoding="utf-8").splitlines() if file.is_file() else ():
        first, _, rest = line.partition(",")
        if "instructions" in rest and first.isdigit():
            return int(first)
    return None


def _start(command: Sequence[str]) -> subprocess.Popen[str]:
    # A fixed hash seed, so that two children differ only in the steps they take.
    environment = {**os.environ, "PYTHONHASHSEED": "0"}
    return subprocess.Popen(list(command), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment)


def _finish(child: subprocess.Popen[str], tool: str) -> tuple[str, str]:
    said, complaints = child.communicate()
    if child.returncode != 0:
        last = (complaints.strip().splitlines() or ["no message"])[-1]
        raise ValueError(f"counting with {tool} failed with code {child.returncode}: {without_paths(last)}")
    return said, complaints


def count_instructions(command: Callable[[int], Sequence[str]], few: int, many: int) -> Counted:
    """Instructions per step: the difference between a child of `many` steps and one of `few`.

    perf counts where the machine allows it, else callgrind; start-up and warm-up fall out of the difference.
    """
    if not few < many:
        raise ValueError(f"the second count must take more steps than the first, got {few} and {many}")
    if perf_works():
        return _with_perf(command, few, many)
    if shutil.which("valgrind") is None:
        raise ValueError("neither perf nor valgrind can count instructions here; install valgrind")
    return _with_callgrind(command, few, many)


def _with_perf(command: Callable[[int], Sequence[str]], few: int, many: int) -> Counted:
    totals, said = [], ""
    for steps in (few, many):
        with tempfile.TemporaryDirectory() as folder:
            said, _ = _finish(_start_perf(command(steps), Path(folder)), "perf")
            total = _perf_total(Path(folder))
        if total is None:
            raise ValueError("perf counted no instructions")
        totals.append(total)
    return Counted((totals[1] - totals[0]) / (many - few), "perf", _last_line(said))


def _with_callgrind(command: Callable[[int], Sequence[str]], few: int, many: int) -> Counted:
    counted = ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null"]
    # Counts cannot disturb each other, so both children run at once.
    children = [_start([*counted, *command(steps)]) for steps in (few, many)]
    ended = [_finish(child, "callgrind") for child in children]
    totals = []
    for _, complaints in ended:
        found = re.search(r"Collected\s*:\s*(\d+)", complaints)
        if found is None:
            raise ValueError("callgrind counted no instructions")
        totals.append(int(found.group(1)))
    return Counted((totals[1] - totals[0]) / (many - few), "callgrind", _last_line(ended[-1][0]))


def _last_line(text: str) -> str:
    return (text.strip().splitlines() or [""])[-1]


class WorkerError(ValueError):
    """A worker that cannot start or answer."""


class Worker:
    """A child process that says it is ready, then answers one JSON line with another."""

    def __init__(self, name: str, command: Sequence[str], needed: Sequence[str] = ()) -> None:
        self.name = name
        self._buffer = b""
        self._busy = False
        self._noise = tempfile.TemporaryFile()  # noqa: SIM115 - close() closes it
        # A session of its own: Ctrl-C is for the tool, which ends its workers when it is done with what they said.
        self._process = subprocess.Popen(
            list(command),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._noise,
            bufsize=0,
            start_new_session=True,
        )
        try:
            self.ready = self._answer(needed=("ready", *needed))
        except WorkerError:
            self.close()
            raise

    def ask(self, question: Mapping[str, Any], needed: Sequence[str]) -> dict[str, Any]:
        """Send a question and wait for its answer, which must have the fields that are needed."""
        stdin = self._process.stdin
        assert stdin is not None
        try:
            stdin.write(json.dumps(question).encode() + b"\n")
        except OSError as gone:
            raise WorkerError(f"{self.name} has ended: {self._last_words()}") from gone
        self._busy = True
        answer = self._answer(needed)
        self._busy = False
        return answer

    def _answer(self, needed: Sequence[str]) -> dict[str, Any]:
        while True:
            line = self._line()
            if not line.startswith(b"{"):
                continue  # other people's libraries greet on standard output
            try:
                answer: dict[str, Any] = json.loads(line)
            except ValueError:
                raise WorkerError(f"{self.name} gave an answer that is not JSON: {line[:60]!r}") from None
            if "error" in answer:
                raise WorkerError(f"{self.name}: {answer['error']}")
            missing = [field for field in needed if field not in answer]
            if missing:
                raise WorkerError(f"{self.name} answered without {', '.join(missing)}")
            return answer

    def _line(self) -> bytes:
        stdout = self._process.stdout
        assert stdout is not None
        while b"\n" not in self._buffer:
            if not select.select([stdout], [], [], ANSWER_SECONDS)[0]:
                raise WorkerError(f"{self.name} did not answer within {ANSWER_SECONDS:.0f} s")
            chunk = os.read(stdout.fileno(), 65536)
            if not chunk:
                raise WorkerError(f"{self.name} has ended: {self._last_words()}")
            self._buffer += chunk
        line, _, self._buffer = self._buffer.partition(b"\n")
        return line

    def _last_words(self) -> str:
        code = self._process.wait(timeout=30)
        self._noise.seek(0)
        lines = self._noise.read().decode(errors="replace").strip().splitlines()
        return f"code {code}, {without_paths(lines[-1]) if lines else 'no message'}"

    def close(self) -> None:
        """End the process: closing its input is the sign; one that is still at work, or does not hear, is killed."""
        if self._busy:
            self._process.kill()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()
        try:
            self._process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._noise.close()
