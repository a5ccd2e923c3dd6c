"""A machine that has nothing: install the package into a new venv, then train."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import time
import tomllib
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

pytestmark = pytest.mark.U2

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.long
@pytest.mark.timeout(7_200)
def test_install_and_train(tmp_path: Path, record_property: Callable[[str, object], None]) -> None:
    """Compile a wheel, install it with what the trainer needs into a new venv, train the smallest recipe."""
    subprocess.run([sys.executable, "-m", "venv", str(tmp_path / "venv")], check=True)
    seconds = []

    def run(program: str, *arguments: str) -> None:
        began = time.monotonic()
        command = [str(tmp_path / "venv" / "bin" / program), *arguments]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
        seconds.append(f"{time.monotonic() - began:.0f} s")

    run("pip", "wheel", "--no-deps", "--wheel-dir", str(tmp_path), str(ROOT))  # what `pip install .` does first
    [wheel] = tmp_path.glob("gridmill-*.whl")
    assert zipfile.ZipFile(wheel).getinfo("gridmill/viewer/page/engine.wasm").file_size > 100_000
    run("pip", "install", f"gridmill[train] @ {wheel.as_uri()}")
    run("gridmill", "train", "ci", "run=first", "trainer.total_timesteps=92_160")
    folder = tmp_path / "runs" / "first"
    assert (folder / "report.html").is_file()
    assert list((folder / "checkpoints").iterdir())
    record_property("figure", "build {}, install with PyTorch {}, first training {}".format(*seconds))


@pytest.mark.long
@pytest.mark.timeout(7_200)
def test_a_wheel_needs_no_compiler(tmp_path: Path, record_property: Callable[[str, object], None]) -> None:
    """`make wheel`, then a new venv that sees nothing but itself: first without torch, then with it."""
    dist = ROOT / "dist"
    subprocess.run(["make", "wheel", f"PYTHON={sys.executable}"], cwd=ROOT, check=True)
    wheel = max(dist.glob("gridmill-*manylinux*.whl"), key=lambda path: path.stat().st_mtime)
    subprocess.run([sys.executable, "-m", "venv", str(tmp_path / "venv")], check=True)
    tools = tmp_path / "venv" / "bin"
    alone = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}
    alone |= {"PATH": str(tools), "CC": "/nowhere/cc", "CXX": "/nowhere/c++"}

    def run(*command: str, code: int = 0, **changes: str) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            [str(tools / command[0]), *command[1:]], cwd=tmp_path, capture_output=True, text=True, env=alone | changes
        )
        assert done.returncode == code, done.stdout + done.stderr
        return done

    began = time.monotonic()
    run("pip", "install", "--only-binary", ":all:", str(wheel))
    seconds = time.monotonic() - began
    assert "missing  compiler" in run("gridmill", "doctor").stdout
    played = ("eval", "arena", "--policy", "script:arena", "--episodes", "2", "--json")
    figures = [run("gridmill", *played, GRIDMILL_ISA=isa).stdout for isa in ("", "portable")]
    assert figures[0] == figures[1]  # the same worlds from the plainest kernels
    run("gridmill", "show", "prospector", "--steps", "20", "--png", "world.png")
    run("gridmill", "eval", "arena", "--policy", "script:arena", "--episodes", "1", "--replay", "one.replay")
    run("gridmill", "view", "one.replay", "--export", "one.html")
    refused = run("gridmill", "train", "ci", code=2).stderr
    assert re.fullmatch(r"gridmill: training needs torch: \S*python\S* -m pip install 'gridmill\[train\]'\n", refused)
    python, *words = shlex.split(refused.partition(": training needs torch: ")[2])
    run(Path(python).name, *words)  # what it says helps
    run("gridmill", "train", "ci", "run=first", "trainer.total_timesteps=92_160")
    assert (tmp_path / "runs" / "first" / "report.html").is_file()
    record_property("figure", f"{wheel.name}: {wheel.stat().st_size / 1e6:.1f} MB, installed in {seconds:.0f} s")


def test_the_version_stands_in_one_place() -> None:
    """pyproject.toml has it; the newest section of CHANGELOG is about it."""
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    newest = re.search(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert newest is not None
    assert newest[1] == version
    sources = [
        *(ROOT / "src").rglob("*.py"),
        *(ROOT / "native").rglob("*.?pp"),
        ROOT / "CMakeLists.txt",
        ROOT / "Makefile",
    ]
    assert [path.name for path in sources if f'"{version}"' in path.read_text()] == []


@pytest.mark.parametrize(("state", "made"), [("wheel", True), ("editable", False), ("sdist", False)])
def test_a_wheel_is_built_with_the_engine_of_pages(state: str, made: bool) -> None:
    """As the build reads its settings: with the compiler for it, and only there, for it takes minutes."""
    settings_of = pytest.importorskip("scikit_build_core.settings.skbuild_read_settings").SettingsReader.from_file
    found = settings_of(ROOT / "pyproject.toml", state=state).settings
    assert (str(found.cmake.define["GRIDMILL_PAGES"]) == "ON") == made
    assert [name.partition("==")[0] for name in found.build.requires] == ["ziglang"] * made
    told = settings_of(ROOT / "pyproject.toml", {"cmake.define.GRIDMILL_PAGES": "OFF"}, state=state).settings
    assert str(told.cmake.define["GRIDMILL_PAGES"]) == "OFF"
    for each in (found, told):
        assert str(each.cmake.define["GRIDMILL_PYTHON"]) == "ON"  # without it there is no extension in the wheel
        assert (str(each.cmake.define["GRIDMILL_NATIVE_TESTS"]) == "ON") == (state == "editable")
