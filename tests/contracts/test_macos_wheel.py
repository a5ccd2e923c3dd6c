"""What is read from a wheel for macOS: a whole one passes, and each thing a Mac would refuse is found."""

from __future__ import annotations

import base64
import hashlib
import re
import struct
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "scripts"))

import build_wheel
import check_macos_wheel as checker

NAME = "gridmill-0.1.0-cp312-abi3-macosx_11_0_arm64"
ARM, INTEL = 0x0100000C, 0x01000007
DEFINED, UNDEFINED, WEAK = 0x0F, 0x01, 0x40


def library(
    processor: int = ARM,
    kind: int = 6,
    system: int = 11 << 16,
    signed: bool = True,
    libraries: tuple[str, ...] = (checker.SYSTEM,),
    given: tuple[str, ...] = (checker.ENTRY, "___dso_handle", "__mh_dylib_header"),
    taken: tuple[str, ...] = ("_malloc", "_PyLong_FromLong"),
    newer: tuple[str, ...] = (),
) -> bytes:
    """The smallest Mach-O file that says these things of itself."""
    commands = [struct.pack("<6I", 0x32, 24, 1, system, system, 0)]
    for name in libraries:
        text = name.encode() + b"\0" * (8 - len(name) % 8)
        commands.append(struct.pack("<6I", 0xC, 24 + len(text), 24, 2, 0, 0) + text)
    if signed:
        commands.append(struct.pack("<4I", 0x1D, 16, 0, 0))
    table, names = b"", b"\0"
    for name, type_, details in (
        *((name, DEFINED, 0) for name in given),
        *((name, UNDEFINED, 0) for name in taken),
        *((name, UNDEFINED, WEAK) for name in newer),
        ("_local", 0x0E, 0),
        ("_hidden", DEFINED | 0x10, 0),
    ):
        table += struct.pack("<IBBHQ", len(names), type_, 0, details, 0)
        names += name.encode() + b"\0"
    at = 32 + sum(map(len, commands)) + 24
    commands.append(struct.pack("<6I", 2, 24, at, len(table) // 16, at + len(table), len(names)))
    header = struct.pack("<8I", 0xFEEDFACF, processor, 0, kind, len(commands), sum(map(len, commands)), 0, 0)
    return header + b"".join(commands) + table + names


def wheel(folder: Path, extension: bytes, name: str = NAME, tag: str = "", recorded: bytes = b"") -> Path:
    """A wheel with that extension; RECORD says `recorded` instead if it is given."""
    info = "gridmill-0.1.0.dist-info"
    files = {
        checker.EXTENSION: extension,
        f"{info}/WHEEL": f"Wheel-Version: 1.0\nTag: {tag or name.split('-', 2)[2]}\n".encode(),
    }
    rows = []
    for file, data in files.items():
        shown = recorded if recorded and file == checker.EXTENSION else data
        digest = base64.urlsafe_b64encode(hashlib.sha256(shown).digest()).decode().rstrip("=")
        rows.append(f"{file},sha256={digest},{len(data)}")
    path = folder / f"{name}.whl"
    with zipfile.ZipFile(path, "w") as archive:
        for file, data in files.items():
            archive.writestr(file, data)
        archive.writestr(f"{info}/RECORD", "\n".join([*rows, f"{info}/RECORD,,"]))
    return path


def test_a_whole_wheel_passes(tmp_path: Path) -> None:
    said = checker.check(wheel(tmp_path, library()))
    assert said == (
        f"{NAME}.whl: arm64, macOS 11.0 or newer, signed; takes 1 symbols of Python and 1 of "
        "/usr/lib/libSystem.B.dylib, gives _PyInit__native"
    )


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"processor": INTEL}, "processor: expected arm64, got x86_64"),
        ({"kind": 2}, "kind of file: expected a library, got a program"),
        ({"system": 13 << 16 | 3 << 8}, "oldest macOS: expected 11.0, got 13.3"),
        ({"signed": False}, "signature, without which Apple silicon loads nothing: expected one, got none"),
        (
            {"libraries": (checker.SYSTEM, "/usr/lib/libc++.1.dylib")},
            "libraries: expected /usr/lib/libSystem.B.dylib, got /usr/lib/libSystem.B.dylib, /usr/lib/libc++.1.dylib",
        ),
        ({"given": ()}, "symbols given away: expected _PyInit__native, got none"),
        (
            {"given": (checker.ENTRY, "__Znwm")},
            "symbols given away: expected _PyInit__native, got _PyInit__native, __Znwm",
        ),
        (
            {"given": (checker.ENTRY, *(f"_a{number}" for number in range(10)))},
            "symbols given away: expected _PyInit__native, "
            "got _PyInit__native, _a0, _a1, _a2, _a3, _a4, _a5, _a6 and 3 more",
        ),
        ({"newer": ("_strchrnul",)}, "symbols newer than the oldest macOS: expected none, got _strchrnul"),
        (
            {"taken": ("_malloc", "_mallopt", "_PyNobody_Knows")},
            "symbols: expected those of /usr/lib/libSystem.B.dylib and of Python's stable ABI, "
            "got _PyNobody_Knows, _mallopt",
        ),
    ],
)
def test_what_a_mac_would_refuse_is_found(change: dict[str, Any], said: str, tmp_path: Path) -> None:
    with pytest.raises(checker.WheelError, match=f"^{re.escape(said)}$"):
        checker.check(wheel(tmp_path, library(**change)))


@pytest.mark.parametrize(
    ("extension", "change", "said"),
    [
        (
            library(),
            {"name": NAME.replace("macosx_11_0", "linux")},
            "name: expected gridmill-VERSION-cp312-abi3-macosx_11_0_PROCESSOR.whl, "
            "got gridmill-0.1.0-cp312-abi3-linux_arm64.whl",
        ),
        (
            library(),
            {"tag": "cp312-abi3-linux_x86_64"},
            "WHEEL: expected `Tag: cp312-abi3-macosx_11_0_arm64`, got Tag: cp312-abi3-linux_x86_64",
        ),
        (
            b"",
            {"recorded": b"another"},
            "RECORD: expected sha256=47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU for gridmill/_native.abi3.so, "
            "got sha256=rkSKyGxOjk3sZFcpcI70GHOuecbf-E7_czYJiUh_COU",
        ),
        (
            b"\x7fELF" + bytes(64),
            {},
            "expected a Mach-O file of 64 bits, got one that begins with 7f 45 4c 46",
        ),
    ],
)
def test_a_wheel_that_is_not_what_its_name_says_is_found(
    extension: bytes, change: dict[str, Any], said: str, tmp_path: Path
) -> None:
    with pytest.raises(checker.WheelError, match=f"^{re.escape(said)}$"):
        checker.check(wheel(tmp_path, extension, **change))


def test_what_cannot_be_built_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["build_wheel.py", "--platform", "macos", "--arch", "x86_64"])
    said = "build_wheel: expected one of linux on x86_64, linux on aarch64, macos on arm64, got macos on x86_64"
    with pytest.raises(SystemExit, match=f"^{said}$"):
        build_wheel.main()
    monkeypatch.setattr(sys, "argv", ["build_wheel.py", "--platform", "macos", "--arch", "arm64"])
    monkeypatch.setattr(sys, "version_info", (3, 11, 7))
    said = r"build_wheel: expected Python 3.12 or later to build for macosx-11.0-arm64, got 3\.\d+"
    with pytest.raises(SystemExit, match=f"^{said}$"):
        build_wheel.main()


def test_the_compiler_for_macos_gets_words_that_it_knows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """CMake's and nanobind's words for a Mac's own compiler become zig's; all others stay, also with spaces."""
    echo = tmp_path / "zig"
    echo.write_text("#!/bin/sh\nprintf '%s\\n' \"$@\"\n")
    echo.chmod(0o755)
    monkeypatch.setattr(build_wheel, "zig", lambda: echo)
    compiler = build_wheel.tools(tmp_path / "bin", build_wheel.TARGETS["macos", "arm64"])["CMAKE_CXX_COMPILER"]
    words = ["-O3", "-bundle", "-Wl,@a b/darwin-ld-cpython.sym", "-DA=b c", "CMakeCXXCompilerId.cpp"]
    said = subprocess.run([compiler, *words], capture_output=True, text=True, check=True).stdout.splitlines()
    first = ["c++", "-target", "aarch64-macos.11.0", "-D_DARWIN_C_SOURCE=1"]
    changed = ["-O3", "-shared", "-Wl,-undefined,dynamic_lookup", "-DA=b c", "-c", "CMakeCXXCompilerId.cpp"]
    assert said == first + changed
