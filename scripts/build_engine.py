"""The engine as a WebAssembly module: src/gridmill/viewer/page/engine.wasm, with the compiler of `pip install ziglang`.

    python scripts/build_engine.py [--jobs 2]

What is compiled is every .cpp of native/ but Python's bindings and the kernels for one kind of CPU, in two units, one
for each core (headers take longer to read than most files), and of zig's own C++ library only what the module needs:
the library as zig builds it cannot throw on this target. Objects are kept in build/wasm/ and compiled again when what
they were made of changes.
"""

from __future__ import annotations

import argparse
import fcntl
import gzip
import importlib.util
import os
import re
import resource
import subprocess
import sys
import time
import tomllib
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
NATIVE = ROOT / "native"
BUILD = ROOT / "build" / "wasm"
VERSION = NATIVE / "wasm" / "version.cpp"
MODULE = ROOT / "src" / "gridmill" / "viewer" / "page" / "engine.wasm"

# Exceptions need these features named, or the backend breaks off. All browsers have had them since 2021.
TARGET = [
    "-target",
    "wasm32-wasi",
    "-mcpu=generic+exception_handling+multivalue+reference_types+bulk_memory+simd128",
    "-fwasm-exceptions",
]
# Nothing for debuggers, which would take a third of the time, and sections of their own for what the linker may drop.
SMALL = ["-g0", "-ffunction-sections", "-fdata-sections"]
ENGINE = [
    "-std=c++20",
    "-DNDEBUG",
    f"-I{NATIVE}",
    "-ffp-contract=off",
    "-Wall",
    "-Wextra",
    "-Wshadow",
    "-Werror",
    *SMALL,
]

# The kernels of policies are compiled for speed. Everything else is compiled small: it plays as fast, and a page with
# the engine inside opens sooner. (The driver knows -O2 and -Os only: -O1 and -O3 become -O2.)
ALONE = re.compile(r"_portable\.cpp$")

# Of the library: what the linker asks for.
LIBCXX = (
    *("algorithm", "chrono", "error_category", "exception", "functional", "hash", "memory", "new", "new_handler"),
    *("new_helpers", "optional", "stdexcept", "string", "system_error", "typeinfo", "variant", "vector"),
    "verbose_abort",
)
LIBCXXABI = (
    *("abort_message", "cxa_aux_runtime", "cxa_default_handlers", "cxa_exception", "cxa_exception_storage"),
    *("cxa_guard", "cxa_handlers", "cxa_personality", "cxa_vector", "cxa_virtual", "fallback_malloc"),
    *("private_typeinfo", "stdlib_exception", "stdlib_new_delete", "stdlib_stdexcept", "stdlib_typeinfo"),
)
TAG = "\t.globl\t__cpp_exception\n\t.tagtype\t__cpp_exception i32\n__cpp_exception:\n"


@dataclass(frozen=True)
class Unit:
    """One object file: a name, what is compiled, and how."""

    name: str
    source: Path
    flags: tuple[str, ...]


def zig() -> Path:
    found = importlib.util.find_spec("ziglang")
    if found is None or found.origin is None:
        sys.exit("build_engine: expected the compiler of the package ziglang, got none; pip install ziglang==0.17.0")
    return Path(found.origin).parent / "zig"


def written(path: Path, text: str) -> Path:
    """A file with this text, left alone if it has it."""
    if not path.exists() or path.read_text() != text:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return path


def joined(name: str, files: Iterable[Path]) -> Path:
    return written(BUILD / f"{name}.cpp", "".join(f'#include "{file}"\n' for file in files))


def engine_units(version: str) -> list[Unit]:
    sources = [path for path in sorted(NATIVE.rglob("*.cpp")) if path.relative_to(NATIVE).parts[0] != "bind"]
    sources = [path for path in sources if "_avx" not in path.name and path != VERSION]
    units = [
        Unit(f"{path.parent.name}-{path.stem}", path, (*ENGINE, "-O2", "-fno-math-errno", "-fno-trapping-math"))
        for path in sources
        if ALONE.search(str(path))
    ]
    halves: dict[str, list[Path]] = {"grid": [], "others": []}
    for path in sources:
        if not ALONE.search(str(path)):
            halves["grid" if path.is_relative_to(NATIVE / "grid") else "others"].append(path)
    units = [*(Unit(name, joined(name, files), (*ENGINE, "-Os")) for name, files in halves.items()), *units]
    return [*units, Unit("version", VERSION, (*ENGINE, "-O2", f'-DGRIDMILL_VERSION="{version}"'))]


def library_units(lib: Path) -> list[Unit]:
    """The C++ library, with exceptions."""
    folders = [lib / "libcxx" / "src", lib / "libcxx" / "src" / "include", lib / "libcxxabi" / "include"]
    folders += [lib / "libcxxabi" / "src", lib / "libunwind" / "include", lib / "libc" / "include"]
    flags = (
        "-std=c++23",
        "-O2",
        *SMALL,
        "-DNDEBUG",
        "-w",
        "-D_LIBCPP_BUILDING_LIBRARY",
        "-DLIBCXX_BUILDING_LIBCXXABI",
        "-D_LIBCXXABI_BUILDING_LIBRARY",
        "-D_LIBCXXABI_HAS_NO_THREADS",
        "-DLIBCXXABI_USE_LLVM_UNWINDER",
        *(f"-I{folder}" for folder in folders[:5]),
    )
    units = [Unit(f"libcxx-{name}", lib / "libcxx" / "src" / f"{name}.cpp", flags) for name in LIBCXX]
    for name in LIBCXXABI:
        silent = (
            ("-DLIBCXXABI_SILENT_TERMINATE",) if name == "cxa_default_handlers" else ()
        )  # no names of types to print
        units.append(Unit(f"libcxxabi-{name}", lib / "libcxxabi" / "src" / f"{name}.cpp", (*flags, *silent)))
    unwind = ("-std=c23", "-O2", *SMALL, "-w", "-D_LIBUNWIND_HIDE_SYMBOLS", f"-I{lib / 'libunwind' / 'include'}")
    units.append(Unit("unwind", lib / "libunwind" / "src" / "Unwind-wasm.c", unwind))
    return [*units, Unit("tag", written(BUILD / "tag.s", TAG), ())]


def stale(unit: Unit, command: Sequence[str]) -> bool:
    """Whether the object, its command or anything it read has changed."""
    target, note = BUILD / f"{unit.name}.o", BUILD / f"{unit.name}.cmd"
    depends = BUILD / f"{unit.name}.d"
    if not target.exists() or not note.exists() or note.read_text() != " ".join(command):
        return True
    made = target.stat().st_mtime
    read = [unit.source]
    if depends.exists():
        read += [Path(name) for name in depends.read_text().replace("\\\n", " ").partition(":")[2].split()]
    return any(not path.exists() or path.stat().st_mtime > made for path in read)


def compile_unit(compiler: Path, unit: Unit) -> str:
    """The object of a unit; what the compiler said if it failed."""
    kind = "cc" if unit.source.suffix in (".c", ".s") else "c++"
    out = BUILD / f"{unit.name}.o"
    depends = [] if unit.source.suffix == ".s" else ["-MMD", "-MF", str(BUILD / f"{unit.name}.d")]
    command = [str(compiler), kind, *TARGET, *unit.flags, *depends, "-c", str(unit.source), "-o", str(out)]
    if not stale(unit, command):
        return ""
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        return f"{unit.name}: {done.stderr[-4000:]}"
    (BUILD / f"{unit.name}.cmd").write_text(" ".join(command))
    return ""


def link(compiler: Path, units: Sequence[Unit]) -> None:
    """As C, so that zig's own C++ library stays out."""
    objects = [str(BUILD / f"{unit.name}.o") for unit in units]
    flags = ["-O2", "-s", "-mexec-model=reactor", "-Wl,--no-entry", "-Wl,-z,stack-size=1048576"]
    made = BUILD / "engine.wasm"
    command = [str(compiler), "cc", *TARGET, *flags, *objects, "-o", str(made)]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"build_engine: linking failed: {done.stderr[-6000:]}")
    MODULE.parent.mkdir(parents=True, exist_ok=True)
    os.replace(made, MODULE)


def version_text() -> str:
    """Of the package, and the commit if this is a checkout."""
    package = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    asked = ["git", "-C", str(ROOT), "describe", "--always", "--dirty", "--abbrev=12", "--exclude=*"]
    found = subprocess.run(asked, capture_output=True, text=True)
    return f"{package} {found.stdout.strip()}" if found.returncode == 0 else str(package)


def main() -> None:
    parser = argparse.ArgumentParser(description="build the engine as a WebAssembly module")
    parser.add_argument("--jobs", type=int, default=2)
    jobs = parser.parse_args().jobs
    began = time.monotonic()
    compiler = zig()
    BUILD.mkdir(parents=True, exist_ok=True)
    with open(BUILD / ".lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # tests in two processes may both find that it is missing
        build(compiler, jobs)
    data = MODULE.read_bytes()
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    print(
        f"{MODULE.relative_to(ROOT)}: {len(data)} bytes, {len(gzip.compress(data, 9))} gzipped; "
        f"{time.monotonic() - began:.0f} s, {used.ru_utime + used.ru_stime:.0f} CPU-s"
    )


def build(compiler: Path, jobs: int) -> None:
    units = [*engine_units(version_text()), *library_units(compiler.parent / "lib")]
    with ThreadPoolExecutor(jobs) as pool:
        failures = [text for text in pool.map(lambda unit: compile_unit(compiler, unit), units) if text]
    if failures:
        sys.exit("build_engine: " + "\n".join(failures))
    link(compiler, units)


if __name__ == "__main__":
    main()
