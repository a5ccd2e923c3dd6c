"""Who may import whom, in Python and in C++. There is no list of exceptions: change the code, not this test."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "gridmill"
NATIVE = ROOT / "native"

# From the ground up; a room may import rooms below it and itself, never its own floor or above.
FLOORS = [
    {"_native", "onednn"},
    {"config"},
    {"own_code", "schedule", "checkpoint"},
    {"env"},
    {"grid", "prospector"},
    {"games"},
    {"differences", "policy", "replay"},
    {"losses"},
    {"run"},
    {"adapters", "overrides", "arithmetic"},
    {"recipes", "presets"},
    {"evaluate", "dry_run"},
    {"train"},
    {"workshop"},
    {"cli_speed", "cli_train"},
    {"cli"},
    {"__main__"},
]
FLOOR = {room: floor for floor, rooms in enumerate(FLOORS) for room in rooms}


def room_of(path: Path) -> str:
    inside = path.relative_to(PACKAGE)
    return inside.parts[0].removesuffix(".py")


def sources() -> list[Path]:
    return sorted(p for p in PACKAGE.rglob("*.py") if p != PACKAGE / "__init__.py")


def imported_modules(path: Path) -> set[str]:
    """Absolute names of everything imported anywhere in a file, functions and TYPE_CHECKING blocks included."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path.name}: relative import"
            found.add(str(node.module))
            if node.module == "gridmill":
                found |= {f"gridmill.{alias.name}" for alias in node.names}
    return found


PUBLIC = {"Config": "config", "ConfigError": "config", "Env": "env", "Game": "grid", "make": "games"} | dict.fromkeys(
    ["Feature", "Token", "TokenBudgetWarning"], "grid"
)


def imported_rooms(path: Path) -> set[str]:
    rooms = set()
    for module in imported_modules(path):
        head, _, rest = module.partition(".")
        if head == "gridmill" and rest:
            name = rest.split(".")[0]
            rooms.add(PUBLIC.get(name, name))
    return rooms - {"__version__"}


def test_every_room_has_a_floor() -> None:
    assert {room_of(path) for path in sources()} <= set(FLOOR)


@pytest.mark.parametrize("path", sources(), ids=lambda p: str(p.relative_to(PACKAGE)))
def test_python_imports_point_down(path: Path) -> None:
    room = room_of(path)
    for other in imported_rooms(path) - {room}:
        assert other in FLOOR, f"{path.name} imports gridmill.{other}, which has no floor"
        assert FLOOR[other] < FLOOR[room], f"{path.name} ({room}) may not import {other}"


LEARNING = {"checkpoint", "policy", "losses", "train", "workshop"}  # rooms that may import torch


def test_torch_stays_in_its_rooms() -> None:
    for path in sources():
        if room_of(path) not in LEARNING:
            assert not {m for m in imported_modules(path) if m.split(".")[0] == "torch"}, path.name


def test_importing_gridmill_is_light() -> None:
    """No torch, Gymnasium, PettingZoo, typer or rich comes along with the names a script needs."""
    script = (
        "import sys, gridmill; gridmill.games.make, gridmill.Game, gridmill.games\n"
        "print([m for m in ('torch', 'gymnasium', 'pettingzoo', 'typer', 'rich', 'matplotlib') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


# ---- C++

FOLDERS = {path.name for path in NATIVE.iterdir()}
GAMES = FOLDERS - {"core", "learn", "bind"}
ROOMS = {game: {"core", game} for game in GAMES} | {"core": {"core"}, "learn": {"core", "learn"}, "bind": FOLDERS}
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]', re.MULTILINE)


def native_sources() -> list[Path]:
    return sorted([*NATIVE.rglob("*.hpp"), *NATIVE.rglob("*.cpp")])


def includes(path: Path) -> list[tuple[str, str]]:
    return INCLUDE.findall(path.read_text())


@pytest.mark.parametrize("path", native_sources(), ids=lambda p: str(p.relative_to(NATIVE)))
def test_native_includes_point_down(path: Path) -> None:
    room = path.relative_to(NATIVE).parts[0]
    for quote, name in includes(path):
        if quote == '"':
            assert name.split("/")[0] in ROOMS[room], f"{path.name} ({room}) may not include {name}"
            assert (NATIVE / name).exists(), f"{path.name} includes {name}, which is not in native/"
        else:
            is_python = name.startswith(("nanobind/", "Python", "pybind11/", "numpy/"))
            assert room == "bind" or not is_python, f"{path.name}: only bind/ may include Python"


@pytest.mark.parametrize("room", sorted(FOLDERS - {"bind"}))
def test_the_core_never_prints_exits_or_reads_the_environment(room: str) -> None:
    banned = re.compile(
        r"\b(printf|fprintf|puts|std::cout|std::cerr|getenv|std::exit|abort|_exit|std::random_device|rand)\b\s*[(<]?"
    )
    for path in sorted([*(NATIVE / room).rglob("*.hpp"), *(NATIVE / room).rglob("*.cpp")]):
        code = re.sub(r"//.*", "", path.read_text())
        found = {m.group(1) for m in banned.finditer(code)}
        assert not found, f"{path.name} uses {found}"


def test_the_core_knows_no_game() -> None:
    for path in sorted((NATIVE / "core").rglob("*.?pp")):
        code = re.sub(r"//.*", "", path.read_text())
        assert not re.search(rf"\b({'|'.join(GAMES)})::|namespace gridmill::", code), path.name
