"""The native tests pass, also on aarch64, and report nothing when they are built with ASan + UBSan and with TSan.

On every change those of the grid, which take long to compile, are built beside the extension, without sanitizers, and
the others with ASan + UBSan; long: all of them with each. `make test` builds them first; here they are built only if
something is missing or stale. Long too: the Python tests of the engine (`make asan-python`) and the largest random ones
(`make asan-fuzz`) on an extension with ASan and UBSan.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


EXTENSION = "Release"  # the folder in which the extension is built
GRIDS = ["toy", "arena", "arena_basic", "arena_basic_easy_shaped", "navigation", "extractor_hub", "cogsguard_arena"]
SAVED = [*GRIDS, "cogsguard"]


def run_native_tests(preset, record_property, *chosen, at_least=10, **variables):
    """Those of a preset, or of the extension's own build."""
    cmake = shutil.which("cmake")
    assert cmake is not None, "cmake is missing; `make test` puts one into the venv"
    steps = [["--preset", preset], ["--build", "--preset", preset]]
    if preset == EXTENSION:
        steps = [["--build", str(ROOT / "build" / EXTENSION), "--target", "native_tests"]]
    for step in steps:
        built = subprocess.run([cmake, *step], cwd=ROOT, capture_output=True, text=True)
        assert built.returncode == 0, built.stdout + built.stderr
    ran = subprocess.run(
        [str(ROOT / "build" / preset / "native_tests"), *chosen],
        capture_output=True,
        text=True,
        env=os.environ | {"UBSAN_OPTIONS": "print_stacktrace=1"} | variables,
    )
    output = ran.stdout + ran.stderr
    assert ran.returncode == 0, output
    assert "Sanitizer" not in output, output
    last = ran.stdout.strip().splitlines()[-1]
    assert last.endswith(" passed, 0 failed"), output
    assert int(last.split()[0]) >= at_least, output
    states = re.findall(r"(\d+) refused, +(\d+) play on, (\d+) ticks", output)
    refused, accepted, ticks = (sum(map(int, column)) for column in zip(*states, strict=True)) if states else (0, 0, 0)
    told = f"{refused} states refused, {accepted} played on for {ticks} ticks" if states else last
    record_property("figure", f"{told}, 0 reports")


@pytest.mark.F8
def test_native_tests_of_the_grid(record_property):
    """The grid, golden hashes, saved states and the page's reader, as the extension is built."""
    if not (ROOT / "build" / EXTENSION / "CMakeCache.txt").exists():
        pytest.skip("the extension was not built in this checkout")
    run_native_tests(EXTENSION, record_property, at_least=30)


@pytest.mark.S1
def test_native_tests_under_asan_and_ubsan(record_property):
    """ASan + UBSan build of the native tests but the grid's, without UBSan's checks of pointers: no report."""
    run_native_tests("asan", record_property, at_least=50)


@pytest.mark.long
@pytest.mark.S1
def test_native_tests_under_asan_and_all_of_ubsan(record_property):
    """All of them, with UBSan's checks of pointers: no report."""
    run_native_tests("asan-full", record_property, at_least=80)


def run_python_tests(record_property, tmp_path, *chosen, at_least):
    """pytest on an extension with ASan and UBSan, which end the process at their first report."""
    report = tmp_path / "tests.xml"
    asked = [str(ROOT / "scripts" / "test_asan_python.sh"), *chosen]
    environment = os.environ | {"PYTEST_ADDOPTS": f"--junitxml={report}"}
    ran = subprocess.run(asked, cwd=ROOT, capture_output=True, text=True, errors="replace", env=environment)
    output = (ran.stdout + ran.stderr)[-20_000:]
    assert ran.returncode == 0, output
    counted = ElementTree.parse(report).getroot().find("testsuite").attrib
    passed = int(counted["tests"]) - int(counted["skipped"])
    assert passed >= at_least, output
    record_property("figure", f"{passed} passed, {counted['skipped']} skipped, 0 reports")


@pytest.mark.long
@pytest.mark.S1
@pytest.mark.timeout(20_000)
def test_python_tests_under_asan(record_property, tmp_path):
    """The Python tests of the engine: no report."""
    run_python_tests(record_property, tmp_path, at_least=1000)


@pytest.mark.long
@pytest.mark.S1
@pytest.mark.timeout(20_000)
def test_five_thousand_random_games_under_asan(record_property, tmp_path):
    """Random games, as many as in the long tier: no report. Seventy minutes of CPU."""
    chosen = ["-m", "long", "tests/grid/test_fuzz.py", "-k", "five_thousand_random_games"]
    run_python_tests(record_property, tmp_path, *chosen, at_least=1)


@pytest.mark.long
@pytest.mark.S1
@pytest.mark.timeout(20_000)
def test_pairs_of_random_games_and_their_masks_under_asan(record_property, tmp_path):
    """Two games in a batch, and what masks say against what comes: no report."""
    chosen = ["-m", "long", "tests/grid/test_fuzz.py", "-k", "pairs or masks"]
    run_python_tests(record_property, tmp_path, *chosen, at_least=2)


@pytest.mark.long
@pytest.mark.S1
@pytest.mark.timeout(20_000)
def test_five_thousand_random_canvases_under_asan(record_property, tmp_path):
    """Random maps: no report."""
    chosen = ["-m", "long", "tests/grid/test_fuzz.py", "-k", "canvases"]
    run_python_tests(record_property, tmp_path, *chosen, at_least=1)


@pytest.mark.long
@pytest.mark.D4
def test_golden_episodes_in_the_core(record_property):
    """The hashes of whole episodes, without Python."""
    run_native_tests(EXTENSION, record_property, "long_golden", at_least=1)


@pytest.mark.long
@pytest.mark.D4
@pytest.mark.U4
def test_native_tests_on_aarch64(record_property):
    """Compiled for another kind of CPU and run under qemu, with the same hashes."""
    ran = subprocess.run([str(ROOT / "scripts" / "test_aarch64.sh")], cwd=ROOT, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr[-2000:] + ran.stdout[-2000:]
    ended = [line for line in ran.stdout.splitlines() if line.endswith(" passed, 0 failed")]
    assert len(ended) == 2, ran.stdout[-2000:]
    record_property("figure", f"aarch64: {ended[0]}; whole episodes: {ended[1]}")


@pytest.mark.long
@pytest.mark.S2
def test_native_tests_under_tsan(record_property):
    """TSan build of the native tests, 8 threads: no report."""
    run_native_tests("tsan", record_property)


@pytest.mark.long
@pytest.mark.S2
def test_hundred_thousand_steps_under_tsan(record_property):
    """The batch with 8 threads for 100 000 steps under TSan: no report."""
    run_native_tests("tsan", record_property, "long_batch", at_least=1)


@pytest.mark.long
@pytest.mark.F8
@pytest.mark.parametrize("game", [*SAVED, "corridor", "prospector"])
def test_hundred_thousand_changed_states(game, record_property):
    """100 000 mutations of saved worlds of each game, one in eight of the accepted ones played for 1 000 ticks and the
    others for 100: no report.
    """
    run_native_tests("asan-full", record_property, "long_saved", at_least=1, SAVED_GAME=game)


@pytest.mark.long
@pytest.mark.F8
@pytest.mark.parametrize("game", [*SAVED, "corridor", "prospector"])
def test_ten_thousand_changed_states_play_a_thousand_ticks(game, record_property):
    """Others, as the extension is built, and every accepted one played for 1 000 ticks: no crash."""
    chosen = {"SAVED_GAME": game, "SAVED_COUNT": "10000", "SAVED_SHARE": "1", "SAVED_SEED": "2"}
    run_native_tests(EXTENSION, record_property, "long_saved", at_least=1, **chosen)
