"""D5: a fast path that writes one wrong byte is found by `gridmill validate`, in a build of its own with that fault."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from gridmill.workshop.revisions import python_of

ROOT = Path(__file__).resolve().parents[2]
OBSERVE = Path("native") / "grid" / "observe" / "observe.cpp"
BEFORE = "  worker.validation.reference_ns += middle - start;\n"
PLANTED = "  if (fast_first && tick.header.tick == 7 && tick.header.key.world == 0) tick.rows.obs[2] ^= 1;\n"
SMALL = "trainer.batch_size=768 trainer.minibatch_size=384 trainer.bptt_horizon=16 policy.hidden=16"


def build(folder: Path) -> Path:
    """A package whose fast observations have one bit wrong in one tick of one world; what is built already is kept."""
    for name in ("native", "src"):
        shutil.rmtree(folder / name, ignore_errors=True)
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("*.so", "*.wasm", "__pycache__"))
    shutil.copy2(ROOT / "CMakeLists.txt", folder)
    text = (ROOT / OBSERVE).read_text()
    assert text.count(BEFORE) == 1
    (folder / OBSERVE).write_text(text.replace(BEFORE, PLANTED + BEFORE))
    changed = max(path.stat().st_mtime for path in (ROOT / OBSERVE, Path(__file__)))
    os.utime(folder / OBSERVE, (changed, changed))  # as old as what it is made of, so that it is compiled once
    # No build type: -O0, which compiles in a fraction of the time; how fast it runs is of no matter here.
    options = ["-DCMAKE_BUILD_TYPE=", "-DGRIDMILL_PYTHON=ON", "-DGRIDMILL_NATIVE_TESTS=OFF"]
    made = folder / "build"
    tools = Path(sys.executable).parent
    cmake = str(tools / "cmake") if (tools / "cmake").exists() else "cmake"
    configure = [cmake, "-S", folder, "-B", made, "-G", "Ninja", *options, f"-DPython_EXECUTABLE={sys.executable}"]
    subprocess.run(configure, check=True, capture_output=True)
    subprocess.run([cmake, "--build", made], check=True, capture_output=True)
    for extension in made.glob("_native*.so"):
        shutil.copy(extension, folder / "src" / "gridmill")
    return folder / "src"


@pytest.mark.long
@pytest.mark.timeout(3600)  # it builds the extension once: 3 minutes of CPU time, many more on a machine that is busy
@pytest.mark.D5
def test_one_wrong_byte_ends_with_2_and_both_rows_by_name(tmp_path: Path) -> None:
    python = python_of(build(ROOT / "build" / "planted-fault"))
    command = [*python, "-m", "gridmill", "validate", "1500", "run=v", *SMALL.split()]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 2, done.stdout + done.stderr
    log = (tmp_path / "runs" / "v" / "log.txt").read_text()
    assert "1 mismatch," in " ".join(log.split())
    assert "first mismatch: world 0, episode 0, tick 7, agent 0" in log
    for side in ("fast", "reference"):
        row = log.partition(f"  {side} (* not in the other):\n")[2].partition("  reference")[0]
        assert row.count("*") == 1
        assert "=" in row
    off = ["env", "GRIDMILL_OBS_VALIDATION=0", *command]
    done = subprocess.run(off, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 64, done.stdout + done.stderr
    said = "gridmill: GRIDMILL_OBS_VALIDATION=0 switches off the comparison that this command makes; unset it\n"
    assert done.stderr == said
