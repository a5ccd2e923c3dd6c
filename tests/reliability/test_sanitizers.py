"""The native tests built with ASan + UBSan and with TSan report nothing.

`make test` builds them first; here they are built only if something is missing or stale. The Python
tests of the engine under ASan are `make asan-python`, part of the long tier.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


SAVED = ["toy", "arena", "arena_basic_easy_shaped", "navigation", "extractor_hub", "cogsguard_arena", "cogsguard"]


def run_native_tests(preset, record_property, *chosen, at_least=10, **variables):
    cmake = shutil.which("cmake")
    assert cmake is not None, "cmake is missing; `make test` puts one into the venv"
    for step in (["--preset", preset], ["--build", "--preset", preset]):
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
    record_property("figure", f"{last}, 0 reports")


@pytest.mark.S1
def test_native_tests_under_asan_and_ubsan(record_property):
    """ASan + UBSan build of the native tests, without UBSan's checks of pointers: no report."""
    run_native_tests("asan", record_property)


@pytest.mark.long
@pytest.mark.S1
def test_native_tests_under_asan_and_all_of_ubsan(record_property):
    """The same with UBSan's checks of pointers: no report."""
    run_native_tests("asan-full", record_property)


@pytest.mark.long
@pytest.mark.S2
def test_native_tests_under_tsan(record_property):
    """TSan build of the native tests, 8 threads: no report."""
    run_native_tests("tsan", record_property)


@pytest.mark.long
@pytest.mark.S2
def test_hundred_thousand_steps_under_tsan(record_property):
    """The batch with 8 threads for 100 000 steps under TSan: no report."""
    run_native_tests("tsan", record_property, "long_", at_least=1)


@pytest.mark.long
@pytest.mark.F8
@pytest.mark.parametrize("game", [*SAVED, "corridor", "prospector"])
def test_hundred_thousand_changed_states(game, record_property):
    """100 000 mutations of saved worlds of each game, each accepted one played for 1 000 ticks: no report."""
    run_native_tests("asan-full", record_property, "long_saved", at_least=1, SAVED_GAME=game)
