"""The engine of pages is built by a program that starts compilers: none of them outlives the command."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

BUILDER = """
import subprocess, sys
compiler = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
open(sys.argv[0] + ".pid", "w").write(f"{compiler.pid}\\n")
compiler.wait()
"""
COMMAND = """
import signal, sys
from pathlib import Path
signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored in a shell's background job
signal.signal(signal.SIGHUP, signal.SIG_DFL)  # and this one under nohup
from gridmill.viewer import engine
engine.BUILDER, engine.MODULE = Path(sys.argv[1]), Path(sys.argv[1]).with_name("no.wasm")
engine.importlib.util.find_spec = lambda name: True
engine.read()
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_its_compilers_end_with_the_command(number: signal.Signals, tmp_path: Path) -> None:
    """They went on for minutes, with a core each."""
    builder, told = tmp_path / "build.py", tmp_path / "build.py.pid"
    builder.write_text(BUILDER)
    command = subprocess.Popen([sys.executable, "-c", COMMAND, str(builder)], stderr=subprocess.PIPE, text=True)
    with command:
        while not told.exists() or not told.read_text().endswith("\n"):
            assert command.poll() is None
        compiler = psutil.Process(int(told.read_text()))
        try:
            command.send_signal(number)
            command.wait(timeout=30)
            assert psutil.wait_procs([compiler], timeout=30)[1] == []
        finally:
            if compiler.is_running():
                compiler.kill()
    assert command.returncode in (128 + number, -number)  # Python's own way for Ctrl-C
