"""Whether torch's bf16 products live on this CPU, and a cap on oneDNN's instructions where they do not.

Some virtual machines show AMX in CPUID and end whoever uses it with SIGILL, as oneDNN then does in torch's bf16
products (`trainer.precision=bf16`, Muon). `settle()` finds out in a child process, once per machine and version of
torch, remembers the answer in a small file, and caps oneDNN through its own variable. oneDNN reads that once, at its
first use in a process, so `gridmill.policy.kernels`, which all networks need, `gridmill.train` and `gridmill.runs`
settle it when they are imported. Imports no torch itself; a CPU without such units costs one look at /proc/cpuinfo.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import json
import os
import platform
import signal
import subprocess
import sys
from collections.abc import Mapping, MutableMapping, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Literal

from gridmill.config.files import read_plain, write_whole

VARIABLE, OLD_VARIABLE = "ONEDNN_MAX_CPU_ISA", "DNNL_MAX_CPU_ISA"

CAP = "AVX512_CORE_FP16"  # all but AMX
# oneDNN asks CPUID, which shows AMX also where an old kernel or a sandbox does not name it; all that have it have FP16.
SUSPECT = frozenset(("amx_tile", "amx_bf16", "avx512_fp16"))
SECONDS = 120.0  # importing torch from a cold disk takes long
SAYS = "64.0"
TRIAL = """
import resource
resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
import torch
a = torch.ones(64, 64).bfloat16()
print(float((a @ a)[0, 0]))
"""
# Sent by somebody from outside: they say nothing about the CPU.
FROM_OUTSIDE = frozenset((signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGHUP))

State = Literal["unconcerned", "set", "works", "capped", "broken", "unknown"]
REMEMBERED = ("works", "capped", "broken")
MOST_RECORD = 1 << 16  # bytes of what was found before


@dataclass(frozen=True)
class Finding:
    """What is known about bf16 products here, as a word and as a line for people."""

    state: State
    text: str


@dataclass(frozen=True)
class Trial:
    """How a child with one product ended: it lived, it died of the product, or it says nothing about the CPU."""

    ending: Literal["lived", "died", "unclear"]
    why: str


@functools.cache
def settle() -> Finding:
    """Find out, and cap oneDNN if it must be; the first call of a process does the work."""
    return find(cpu(), torch_version(), os.environ, cache_folder(), [sys.executable, "-P", "-c", TRIAL])


def find(
    facts: Mapping[str, str],
    torch: str | None,
    environment: MutableMapping[str, str],
    folder: Path | None,
    command: Sequence[str],
    seconds: float = SECONDS,
) -> Finding:
    """What holds for a CPU with these facts; sets the cap in `environment` if that is what it takes."""
    for name in (VARIABLE, OLD_VARIABLE):
        if environment.get(name):
            return Finding("set", f"{name}={environment[name]} was set by the user and is not changed")
    if torch is None:
        return Finding("unconcerned", "torch is not installed")
    if not SUSPECT.intersection(facts.get("flags", "").split()):
        return Finding("unconcerned", "this CPU shows no AMX")
    file = None if folder is None else folder / _file_name(facts, torch)
    finding = _remembered(file)
    if finding is None:
        finding = _tried(environment, command, seconds)
        _remember(file, finding, facts, torch)
    if finding.state == "capped":
        environment[VARIABLE] = CAP
    return finding


def _tried(environment: Mapping[str, str], command: Sequence[str], seconds: float) -> Finding:
    plain = trial(environment, command, seconds)
    if plain.ending == "unclear":
        return _unknown(plain)
    if plain.ending == "lived":
        return Finding("works", "bf16 products with AMX work")
    capped = trial({**environment, VARIABLE: CAP}, command, seconds)
    if capped.ending == "unclear":
        return _unknown(capped)
    if capped.ending == "lived":
        return Finding("capped", f"{VARIABLE}={CAP}, because a bf16 product with AMX {plain.why}")
    return Finding("broken", f"bf16 is refused: a product {plain.why}, with {VARIABLE}={CAP} too")


def _unknown(trial: Trial) -> Finding:
    # A guess would give one seed other weights from day to day; what was not found out stays as torch has it.
    return Finding("unknown", f"nothing is capped: the trial of a bf16 product {trial.why}")


def trial(environment: Mapping[str, str], command: Sequence[str], seconds: float) -> Trial:
    """Run the child that multiplies."""
    try:
        done = subprocess.run(
            list(command), env=dict(environment), stdin=subprocess.DEVNULL, capture_output=True, timeout=seconds
        )
    except subprocess.TimeoutExpired:
        return Trial("unclear", f"did not end within {seconds:g} s")
    except OSError as error:
        return Trial("unclear", f"could not be started ({error.strerror})")
    if done.returncode < 0:
        name = _signal_name(-done.returncode)
        if -done.returncode in FROM_OUTSIDE:
            return Trial("unclear", f"was ended by {name}")
        return Trial("died", f"ends a process with {name} here")
    if done.returncode:
        return Trial("unclear", f"ended with code {done.returncode}")
    if done.stdout.decode(errors="replace").strip() != SAYS:
        return Trial("unclear", "printed something other than its result")
    return Trial("lived", "lived")


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:  # real-time signals have no names
        return f"signal {number}"


# ---- this machine


def cpu() -> dict[str, str]:
    """The first processor of /proc/cpuinfo without what changes by the second; empty where there is no such file."""
    found: dict[str, str] = {}
    wanted = ("vendor_id", "cpu family", "model", "model name", "stepping", "microcode", "flags", "Features")
    # Large machines need long for the whole list, so it is read no further than the first processor.
    with contextlib.suppress(OSError), Path("/proc/cpuinfo").open(encoding="utf-8", errors="replace") as lines:
        for line in lines:
            key, _, value = line.partition(":")
            if not key.strip():
                break
            if key.strip() in wanted:
                found[key.strip()] = value.strip()
    return found


def torch_version() -> str | None:
    """The version of torch that would be imported; None without one."""
    try:
        return version("torch")
    except PackageNotFoundError:
        return None


def cache_folder() -> Path | None:
    """Where answers are remembered; None for whoever has no home."""
    given = os.environ.get("XDG_CACHE_HOME", "")
    if os.path.isabs(given):
        return Path(given) / "gridmill"
    try:
        return Path.home() / ".cache" / "gridmill"
    except RuntimeError:
        return None


# ---- what was found before


def _file_name(facts: Mapping[str, str], torch: str) -> str:
    """One file for each machine and version, so that homes can be shared and nobody has to merge."""
    key = json.dumps([sorted(facts.items()), platform.release(), torch, CAP, TRIAL])
    return f"onednn-{hashlib.sha256(key.encode()).hexdigest()[:16]}.json"


def _remembered(file: Path | None) -> Finding | None:
    try:
        record = json.loads(read_plain(file, MOST_RECORD)) if file is not None else {}
        state, text = record["state"], record["text"]
    except (OSError, ValueError, TypeError, KeyError):  # not there, or damaged: it is asked again
        return None
    return Finding(state, text) if state in REMEMBERED and isinstance(text, str) else None


def _remember(file: Path | None, finding: Finding, facts: Mapping[str, str], torch: str) -> None:
    if file is None or finding.state not in REMEMBERED:
        return
    about = {"cpu": facts.get("model name", ""), "kernel": platform.release(), "torch": torch}
    record = {"state": finding.state, "text": finding.text, **about}
    with contextlib.suppress(OSError):  # a cache that cannot be written is no error: it is asked again
        write_whole(file, json.dumps(record).encode())
