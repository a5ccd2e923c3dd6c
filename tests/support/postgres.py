"""A real PostgreSQL server for tests: its own folder, a socket in it, gone afterwards. Debian's package is enough."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

USERS = ("postgres", "nobody")  # the server refuses to run as root


def programs() -> Path | None:
    """The newest server's folder of programs."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda path: int(path.parts[-3]))
    return found[-1].parent if found else None


@contextmanager
def server() -> Iterator[str]:
    """The URL of a server that runs while this lasts; skips the test where there is none."""
    pytest.importorskip("psycopg", reason="needs psycopg: pip install 'psycopg[binary]'")
    bin_ = programs()
    if bin_ is None:
        pytest.skip("needs a PostgreSQL server: apt-get install postgresql")
    known = {entry.pw_name for entry in pwd.getpwall()}
    user = next((name for name in USERS if name in known), None) if os.getuid() == 0 else None
    folder = Path(tempfile.mkdtemp(prefix="pg-"))
    if user is not None:
        os.chown(folder, pwd.getpwnam(user).pw_uid, -1)
        folder.chmod(0o755)

    def run(*words: str) -> None:
        done = subprocess.run([str(word) for word in words], user=user, cwd=folder, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr

    data, options = folder / "data", f"-c listen_addresses= -k {folder} -c fsync=off"
    try:
        run(str(bin_ / "initdb"), "-D", str(data), "-U", "tester", "-A", "trust", "--no-sync")
        run(str(bin_ / "pg_ctl"), "-D", str(data), "-l", str(folder / "log"), "-w", "-o", options, "start")
        try:
            yield f"postgresql://tester@/postgres?host={folder}"
        finally:
            run(str(bin_ / "pg_ctl"), "-D", str(data), "-m", "immediate", "stop")
    finally:
        shutil.rmtree(folder, ignore_errors=True)
