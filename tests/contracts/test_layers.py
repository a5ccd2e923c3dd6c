"""Who may import whom, in Python and in C++. There is no list of exceptions: change the code, not this test."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "gridmill"
NATIVE = ROOT / "native"

# From the ground up; a room imports rooms of the floors below it and itself, never its own floor or above. A room is a
# folder of the package, or a module beside the folders.
FLOORS = [
    {"_interface"},
    {"_native"},
    {"config"},
    {"env"},
    {"grid", "prospector"},
    {"games"},
    {"adapters", "curriculum", "policy", "replay"},
    {"losses"},
    {"run"},
    {"recipes", "sizing"},
    {"train", "evaluate"},
    {"runs", "whatif"},
    {"workshop", "viewer"},
    {"cli"},
    {"__main__"},
]
FLOOR = {room: floor for floor, rooms in enumerate(FLOORS) for room in rooms}


def room_of(path: Path) -> str:
    inside = path.relative_to(PACKAGE)
    return inside.parts[0].removesuffix(".py")


def sources() -> list[Path]:
    return sorted(p for p in PACKAGE.rglob("*.py") if p != PACKAGE / "__init__.py")


def module_of(path: Path) -> str:
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def for_types_only(tree: ast.AST) -> set[int]:
    """The lines under `if TYPE_CHECKING`: they name types and import nothing when the program runs."""
    blocks = [n for n in ast.walk(tree) if isinstance(n, ast.If) and getattr(n.test, "id", "") == "TYPE_CHECKING"]
    return {
        node.lineno for block in blocks for inner in block.body for node in ast.walk(inner) if hasattr(node, "lineno")
    }


def imported_modules(path: Path) -> set[str]:
    """Absolute names of everything imported anywhere in a file, functions included."""
    found: set[str] = set()
    tree = ast.parse(path.read_text())
    typed = for_types_only(tree)
    for node in ast.walk(tree):
        if getattr(node, "lineno", 0) in typed:
            continue
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path.name}: relative import"
            found.add(str(node.module))
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
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


def test_no_module_imports_itself_over_others() -> None:
    """No cycle between modules, imports inside functions counted."""
    modules = {module_of(path): path for path in sources()}
    graph = {
        name: {other for other in imported_modules(path) if other in modules and other != name}
        for name, path in modules.items()
    }
    # A package's own file is loaded with any of its modules; what it imports of them is its list of names.
    for name in graph:
        graph[name] = {other for other in graph[name] if not other.startswith(f"{name}.")}
    try:
        list(TopologicalSorter(graph).static_order())
    except CycleError as error:
        pytest.fail(" -> ".join(error.args[1]))


def test_the_hallway_is_short() -> None:
    assert len(list(PACKAGE.glob("*.py"))) <= 8


LEARNING = {"losses", "policy", "train", "runs", "workshop"}  # rooms that may import torch


def test_torch_stays_in_its_rooms() -> None:
    for path in sources():
        if room_of(path) not in LEARNING:
            assert not {m for m in imported_modules(path) if m.split(".")[0] == "torch"}, path.name


NAMED = re.compile(r"isinstance\(.*\b(Prospector\w*|GridEnv|Game)\b")


def test_nobody_asks_which_game_it_is() -> None:
    """A game brings its own: outside of the games' rooms no code looks for their classes."""
    for path in sources():
        if room_of(path) not in {"grid", "prospector"}:
            assert not NAMED.search(path.read_text()), path.name


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
GAMES = FOLDERS - {"core", "learn", "bind", "wasm"}
ROOMS = {game: {"core", game} for game in GAMES} | {
    "core": {"core"},
    "learn": {"core", "learn"},
    "bind": FOLDERS - {"wasm"},
    "wasm": FOLDERS - {"bind"},
}
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
