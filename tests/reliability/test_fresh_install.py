"""A machine that has nothing: install the package into a new venv, then train."""

from __future__ import annotations

import subprocess
import sys
import time
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


@pytest.mark.parametrize(("state", "made"), [("wheel", True), ("editable", False), ("sdist", False)])
def test_a_wheel_is_built_with_the_engine_of_pages(state: str, made: bool) -> None:
    """As the build reads its settings: with the compiler for it, and only there, for it takes minutes."""
    settings_of = pytest.importorskip("scikit_build_core.settings.skbuild_read_settings").SettingsReader.from_file
    found = settings_of(ROOT / "pyproject.toml", state=state).settings
    assert (str(found.cmake.define["GRIDMILL_PAGES"]) == "ON") == made
    assert [name.partition("==")[0] for name in found.build.requires] == ["ziglang"] * made
    told = settings_of(ROOT / "pyproject.toml", {"cmake.define.GRIDMILL_PAGES": "OFF"}, state=state).settings
    assert str(told.cmake.define["GRIDMILL_PAGES"]) == "OFF"
