"""D5: a fast path that writes one wrong byte is found by `gridmill validate`, in a build of its own with that fault."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from gridmill.workshop.revisions import python_of

ROOT = Path(__file__).resolve().parents[2]
BEFORE = "  worker.validation.reference_ns += middle - start;\n"
PLANTED = "  if (fast_first && tick.header.tick == 7 && tick.header.key.world == 0) tick.rows.obs[2] ^= 1;\n"
SMALL = "trainer.batch_size=768 trainer.minibatch_size=384 trainer.bptt_horizon=16 policy.hidden=16"


def build(folder: Path) -> Path:
    """A package whose fast observations have one bit wrong in one tick of one world."""
    for name in ("native", "src"):
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("*.so", "__pycache__"))
    shutil.copy(ROOT / "CMakeLists.txt", folder)
    source = folder / "native" / "grid" / "observe" / "observe.cpp"
    text = source.read_text()
    assert text.count(BEFORE) == 1
    source.write_text(text.replace(BEFORE, PLANTED + BEFORE))
    options = ["-DCMAKE_BUILD_TYPE=Release", "-DGRIDMILL_PYTHON=ON", "-DGRIDMILL_NATIVE_TESTS=OFF"]
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
@pytest.mark.D5
def test_one_wrong_byte_ends_with_2_and_both_rows_by_name(tmp_path: Path) -> None:
    site = build(tmp_path / "planted")
    command = [*python_of(site), "-m", "gridmill", "validate", "1500", "run=v", *SMALL.split()]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 2, done.stdout + done.stderr
    log = (tmp_path / "runs" / "v" / "log.txt").read_text()
    assert "1 mismatch," in " ".join(log.split())
    assert "first mismatch: world 0, episode 0, tick 7, agent 0" in log
    for side in ("fast", "reference"):
        row = log.partition(f"  {side} (* not in the other):\n")[2].partition("  reference")[0]
        assert row.count("*") == 1
        assert "=" in row
