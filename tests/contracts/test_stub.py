"""The stub of the extension is current, and so are the digits by which a stale extension is told: `make format`."""

from __future__ import annotations

import runpy
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "src" / "gridmill"


def test_stub_is_current(tmp_path: Path) -> None:
    tool = runpy.run_path(str(ROOT / "scripts" / "native_interface.py"))
    fresh = tool["stub"](tmp_path / "fresh.pyi")
    assert (PACKAGE / "_native.pyi").read_text() == fresh, "run `make format`"
    assert (PACKAGE / "_interface.py").read_text() == tool["interface"](fresh), "run `make format` and `make build`"


def test_an_extension_of_other_sources_says_so_in_one_line() -> None:
    code = "import gridmill._interface as i; i.INTERFACE = '0' * 12\nfrom gridmill.__main__ import main; main()"
    done = subprocess.run([sys.executable, "-c", code, "games"], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("gridmill: the compiled engine does not fit the Python sources: it was built for ")
    assert done.stderr.endswith(
        ", they expect 000000000000; run `make build` in a checkout, or install the package again\n"
    )
    assert len(done.stderr.splitlines()) == 1
