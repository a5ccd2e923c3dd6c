"""Whether a wheel for macOS can be loaded there, read from its bytes: what auditwheel is for Linux.

    python scripts/check_macos_wheel.py dist/gridmill-*-macosx_11_0_arm64.whl

The extension must be a signed Mach-O library for the processor and the system in the wheel's name, need no library but
the system's, take each symbol from that library or from Python, and give away none but its own entry: an `operator new`
that it gave away could be used by all other libraries of the process. Nothing is run: that takes a Mac.
"""

from __future__ import annotations

import argparse
import base64
import csv
import ctypes
import hashlib
import io
import re
import struct
import sys
import zipfile
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from build_engine import zig

EXTENSION = "gridmill/_native.abi3.so"
ENTRY = "_PyInit__native"
SYSTEM = "/usr/lib/libSystem.B.dylib"
PROCESSORS = {0x0100000C: "arm64", 0x01000007: "x86_64"}

LINKERS = {"___dso_handle", "__mh_dylib_header"}  # symbols that the linker gives every library

# Of Apple's <mach-o/loader.h> and <mach-o/nlist.h>.
MAGIC, HEADER = 0xFEEDFACF, 32
KINDS = {2: "a program", 6: "a library", 8: "a bundle"}
SYMBOLS, LIBRARY, SIGNATURE, VERSION = 0x2, 0xC, 0x1D, 0x32
OTHER_LIBRARIES = (0x80000018, 0x8000001F, 0x80000023)  # weak, re-exported and upward ones
DEBUGGING, PRIVATE, KIND, EXTERNAL, UNDEFINED, WEAK = 0xE0, 0x10, 0x0E, 0x01, 0x00, 0x40


class WheelError(ValueError):
    """One line: what was expected, what is there."""


@dataclass
class Extension:
    """What a Mach-O file says of itself."""

    processor: str
    kind: str
    system: str = ""  # the oldest macOS it runs on
    signed: bool = False
    libraries: list[str] = field(default_factory=list)
    taken: set[str] = field(default_factory=set)  # symbols that others have to have
    optional: set[str] = field(default_factory=set)  # of these, those that may be missing
    given: set[str] = field(default_factory=set)


def extension(data: bytes) -> Extension:
    """Read a Mach-O file of 64 bits."""
    if len(data) < HEADER or struct.unpack_from("<I", data)[0] != MAGIC:
        raise WheelError(f"expected a Mach-O file of 64 bits, got one that begins with {data[:4].hex(' ')}")
    _, processor, _, kind, commands, _, _, _ = struct.unpack_from("<8I", data)
    found = Extension(PROCESSORS.get(processor, hex(processor)), KINDS.get(kind, f"kind {kind}"))
    at = HEADER
    for _ in range(commands):
        command, size = struct.unpack_from("<2I", data, at)
        if command == VERSION:
            _, least = struct.unpack_from("<2I", data, at + 8)
            found.system = f"{least >> 16}.{least >> 8 & 255}"
        elif command == SIGNATURE:
            found.signed = True
        elif command == LIBRARY or command in OTHER_LIBRARIES:
            (name,) = struct.unpack_from("<I", data, at + 8)
            found.libraries.append(_text(data, at + name))
        elif command == SYMBOLS:
            _read_symbols(found, data, *struct.unpack_from("<4I", data, at + 8))
        at += size
    return found


def _read_symbols(found: Extension, data: bytes, table: int, count: int, names: int, _size: int) -> None:
    for number in range(count):
        name, kind, _, details, _ = struct.unpack_from("<IBBHQ", data, table + 16 * number)
        if kind & DEBUGGING or not kind & EXTERNAL:
            continue
        text = _text(data, names + name)
        if kind & KIND != UNDEFINED:
            if not kind & PRIVATE:
                found.given.add(text)
            continue
        found.taken.add(text)
        if details & WEAK:
            found.optional.add(text)


def _text(data: bytes, at: int) -> str:
    return data[at : data.index(b"\0", at)].decode()


def symbols_of_system(stub: str, processor: str) -> set[str]:
    """What the system's library has, by the text file (.tbd) that stands for it where there is no Mac.

    The system's own files are for arm64e, a kind of arm64; programs for arm64 are linked with them too.
    """
    kinds = {f"{processor}-macos"} | ({"arm64e-macos"} if processor == "arm64" else set())
    found: set[str] = set()
    for part in stub.split("- targets:")[1:]:
        targets, _, rest = part.partition("]")
        if kinds & set(re.findall(r"[\w.-]+", targets)):
            for listed in re.findall(r"symbols:\s*\[([^\]]*)\]", rest):
                found |= set(re.findall(r"[\w$.]+", listed))
    return found


def in_python(symbol: str) -> bool:
    """Whether the Python that runs this has it: the stable ABI is the same on all systems."""
    return re.match(r"__?Py", symbol) is not None and hasattr(ctypes.pythonapi, symbol.removeprefix("_"))


def _some(names: Iterable[str]) -> str:
    listed = sorted(names)
    return ", ".join(listed[:8]) + (f" and {len(listed) - 8} more" if len(listed) > 8 else "") or "none"


def check_extension(found: Extension, processor: str, system: str, of_system: set[str]) -> None:
    """WheelError if a Mac with this processor and system could not load it."""
    for what, expected, got in (
        ("processor", processor, found.processor),
        ("kind of file", "a library", found.kind),
        ("oldest macOS", system, found.system or "none"),
        ("signature, without which Apple silicon loads nothing", "one", "one" if found.signed else "none"),
        ("libraries", SYSTEM, _some(found.libraries)),
        ("symbols given away", ENTRY, _some(found.given - LINKERS)),
        ("symbols newer than the oldest macOS", "none", _some(found.optional)),
    ):
        if expected != got:
            raise WheelError(f"{what}: expected {expected}, got {got}")
    unknown = sorted(name for name in found.taken - of_system if not in_python(name))
    if unknown:
        raise WheelError(f"symbols: expected those of {SYSTEM} and of Python's stable ABI, got {_some(unknown)}")


def check_record(wheel: zipfile.ZipFile) -> None:
    """WheelError if a file differs from what RECORD says of it, or is not in it."""
    (record,) = (name for name in wheel.namelist() if name.endswith(".dist-info/RECORD"))
    rows = {row[0]: row[1] for row in csv.reader(io.StringIO(wheel.read(record).decode()))}
    for name in wheel.namelist():
        digest = base64.urlsafe_b64encode(hashlib.sha256(wheel.read(name)).digest()).decode().rstrip("=")
        if name != record and rows.get(name) != f"sha256={digest}":
            raise WheelError(f"RECORD: expected sha256={digest} for {name}, got {rows.get(name)}")


def check(path: Path) -> str:
    """One line on the wheel at a path; WheelError if it is not what its name says."""
    name = re.fullmatch(r"gridmill-[^-]+-cp312-abi3-macosx_(\d+)_(\d+)_(\w+)\.whl", path.name)
    if name is None:
        raise WheelError(f"name: expected gridmill-VERSION-cp312-abi3-macosx_11_0_PROCESSOR.whl, got {path.name}")
    with zipfile.ZipFile(path) as wheel:
        (facts,) = (wheel.read(file).decode() for file in wheel.namelist() if file.endswith(".dist-info/WHEEL"))
        tag = f"Tag: {path.stem.split('-', 2)[2]}"
        if tag not in facts.splitlines():
            raise WheelError(f"WHEEL: expected `{tag}`, got {', '.join(re.findall('Tag: .*', facts)) or 'none'}")
        check_record(wheel)
        if EXTENSION not in wheel.namelist():
            raise WheelError(f"files: expected {EXTENSION}, got none of that name")
        found = extension(wheel.read(EXTENSION))
    stub = (zig().parent / "lib" / "libc" / "darwin" / "libSystem.tbd").read_text()
    check_extension(found, name[3], f"{name[1]}.{name[2]}", symbols_of_system(stub, name[3]))
    python = sum(map(in_python, found.taken))
    return (
        f"{path.name}: {found.processor}, macOS {found.system} or newer, signed; takes {python} symbols of Python and "
        f"{len(found.taken) - python} of {SYSTEM}, gives {ENTRY}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description="read a wheel for macOS")
    parser.add_argument("wheel", type=Path)
    asked = parser.parse_args()
    try:
        print(check(asked.wheel))
    except WheelError as error:
        sys.exit(f"check_macos_wheel: {asked.wheel.name}: {error}")


if __name__ == "__main__":
    main()
