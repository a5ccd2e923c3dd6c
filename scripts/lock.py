"""Writes requirements.lock: every package that `make test` and `make check` install, with version and sha256.

    python scripts/lock.py [--list]
    pip install --no-deps --require-hashes -r requirements.lock

The second line installs exactly these files on Linux x86-64 with Python 3.11, or nothing. Torch is not in it: whether
its build is for CPUs or for CUDA is the user's choice, and each has another hash. `--list` only says what
pyproject.toml asks for; `make test` installs that before the package itself is built.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
LOCK = ROOT / "requirements.lock"
LEFT_OUT = {"torch"}
OWN = re.compile(r"gridmill\[(.*)\]")


def wanted(extra: str) -> list[str]:
    """What pyproject.toml asks for, extras of our own unfolded."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras: dict[str, list[str]] = project["optional-dependencies"]

    def unfolded(name: str) -> list[str]:
        found = []
        for text in extras[name]:
            own = OWN.fullmatch(text)
            found += [each for part in own[1].split(",") for each in unfolded(part)] if own else [text]
        return found

    return sorted({*project["dependencies"], *unfolded(extra)})


def name_of(requirement: str) -> str:
    """As package indexes write it: `Foo_bar[x]>=3` is foo-bar."""
    return re.sub(r"[-_.]+", "-", re.match(r"[\w.-]+", requirement)[0]).lower()  # type: ignore[index]


def main() -> None:
    if sys.argv[1:] == ["--list"]:
        print("\n".join(wanted("dev")))
        return
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.json"
        asked = [sys.executable, "-m", "pip", "install", "--quiet", "--dry-run", "--ignore-installed"]
        subprocess.run([*asked, "--report", str(report), *wanted("check")], check=True)
        found = json.loads(report.read_text())["install"]
    lines = []
    for one in found:
        name, version = name_of(one["metadata"]["name"]), one["metadata"]["version"]
        if name not in LEFT_OUT:
            lines.append(f"{name}=={version} --hash=sha256:{one['download_info']['archive_info']['hashes']['sha256']}")
    LOCK.write_text("# Written by scripts/lock.py, which says what it is for.\n" + "\n".join(sorted(lines)) + "\n")
    print(f"{LOCK.name}: {len(lines)} packages")


if __name__ == "__main__":
    main()
