"""GRIDMILL_ISA: the same bytes with every set of kernels this CPU can run, and one line for a word it cannot."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from pathlib import Path

import pytest
from random_games import Digest, scripted_actions

import gridmill
from gridmill import _native

pytestmark = pytest.mark.U4

SCALE = ("portable", "avx2", "avx512_base", "avx512")
HERE = SCALE[: SCALE.index(_native.build_info()["isa_of_cpu"]) + 1]


def played() -> str:
    """A hash of what agents see, of a grid game and of Prospector."""
    digest = Digest()
    for name in ("arena_basic", "prospector"):
        with gridmill.make(name, num_worlds=4, seed=5) as env:
            env.reset()
            for step in range(60):
                env.step(scripted_actions(step, env.num_rows, env.num_actions))
                digest.add_arrays(env)
    return digest.hex()


def child(word: str, *command: str) -> subprocess.CompletedProcess[str]:
    environment = {
        **os.environ,
        "GRIDMILL_ISA": word,
        "PYTHONPATH": os.pathsep.join([str(Path(__file__).parent), *filter(None, sys.path)]),
    }
    return subprocess.run([sys.executable, *command], env=environment, capture_output=True, text=True, timeout=300)


@pytest.mark.parametrize("word", HERE)
def test_every_set_of_kernels_gives_the_same_bytes(word: str) -> None:
    code = "import test_isa; print(test_isa._native.build_info()['isa'], test_isa.played())"
    done = child(word, "-c", code)
    assert done.stdout.split() == [word, played()], done.stderr


@pytest.mark.skipif(platform.machine() != "x86_64", reason="the kernels for one kind of CPU are for x86-64")
def test_the_cpu_is_asked_right() -> None:
    """What the core finds out by itself is what the system says."""
    flags = set(next(line for line in Path("/proc/cpuinfo").read_text().splitlines() if line[:5] == "flags").split())
    wanted = "portable"
    for name, needed in {
        "avx2": {"avx2", "fma", "bmi1", "bmi2", "popcnt", "abm"},
        "avx512_base": {"avx512f", "avx512dq", "avx512bw", "avx512vl"},
        "avx512": {"avx512vbmi", "avx512_vbmi2"},
    }.items():
        if not needed <= flags:
            break
        wanted = name
    assert _native.build_info()["isa_of_cpu"] == wanted


def refusal(word: str) -> str:
    names = ", ".join(HERE)
    return f"GRIDMILL_ISA: expected one of {names} on this CPU, got `{word}`; unset it to use the best one"


@pytest.mark.parametrize("word", ["sse9", "Portable", *SCALE[len(HERE) :]])
def test_a_word_that_is_none_is_one_line(word: str) -> None:
    done = child(word, "-c", "import gridmill; gridmill.make('toy')")
    assert done.stderr.splitlines()[-1] == f"ImportError: {refusal(word)}"


@pytest.mark.parametrize("command", [["doctor"], ["games"], ["train", "ci"]], ids=lambda words: words[0])
def test_commands_say_it_in_one_line(command: list[str]) -> None:
    done = child("sse9", "-m", "gridmill", *command)
    assert (done.returncode, done.stderr) == (2, f"gridmill: {refusal('sse9')}\n")


def test_an_empty_word_is_none() -> None:
    done = child("", "-c", "from gridmill import _native; print(_native.build_info()['isa'])")
    assert done.stdout.strip() == HERE[-1], done.stderr


def test_doctor_shows_what_is_in_force() -> None:
    said = child("portable", "-m", "gridmill", "doctor").stdout.splitlines()
    assert "isa: portable" in said
    assert f"isa_of_cpu: {HERE[-1]}" in said
    assert any(line.endswith("portable path") for line in said)
