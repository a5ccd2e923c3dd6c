"""Describe the compiled engine for Python: `_native.pyi`, its stub, and `_interface.py`, digits of the stub's hash.

    python scripts/native_interface.py            # `make format` runs it; then `make build`, if the digits changed

The digits are compiled into the engine, which compares them with those of the Python files when it is loaded. So a
checkout whose engine was built before an argument was added says so, instead of a TypeError somewhere.
"""

from __future__ import annotations

import hashlib
import subprocess
import sys
from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[1] / "src" / "gridmill"
TEXT = '''"""The interface of the compiled engine that these sources need: scripts/native_interface.py writes it."""

INTERFACE = "{digits}"
'''


def stub(file: Path) -> str:
    """The stub of the extension that is installed, written to a file."""
    command = [sys.executable, "-m", "nanobind.stubgen", "-q", "-m", "gridmill._native", "-o", str(file)]
    subprocess.run(command, check=True)
    return file.read_text()


def interface(stub: str) -> str:
    """The text of `_interface.py` for a stub."""
    return TEXT.format(digits=hashlib.sha256(stub.encode()).hexdigest()[:12])


def main() -> None:
    text = interface(stub(PACKAGE / "_native.pyi"))
    file = PACKAGE / "_interface.py"
    if file.read_text() != text:
        file.write_text(text)
        print(f"wrote {file}: the interface changed; `make build` compiles it in")


if __name__ == "__main__":
    main()
