"""Builds of other commits of the checkout, to be measured beside this one; each is built once, into build/against/."""

from __future__ import annotations

import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

from gridmill.workshop import machine


def site_of(commit: str) -> Path:
    """The folder to import the package of a commit from, built there if it is not; a folder is taken as it is."""
    if Path(commit).is_dir():
        return Path(commit)
    root = machine.checkout_root()
    if root is None:
        raise ValueError(f"`{commit}`: revisions are built from git, and this is not a checkout of gridmill")
    found = subprocess.run(["git", "rev-parse", "--verify", f"{commit}^{{commit}}"], cwd=root, capture_output=True)
    if found.returncode:
        raise ValueError(f"`{commit}` is not a commit of this checkout")
    out = root / "build" / "against" / found.stdout.decode().strip()[:10]
    tree, site, make = out / "tree", out / "site", out / "make"
    if list(site.glob("gridmill/_native*.so")):
        return site
    print(f"building {commit} into {out.relative_to(root)} (minutes, once)", file=sys.stderr, flush=True)
    tree.mkdir(parents=True, exist_ok=True)
    archive = subprocess.run(["git", "archive", commit], cwd=root, check=True, capture_output=True).stdout
    subprocess.run(["tar", "x", "-C", tree], input=archive, check=True)
    options = ["-DCMAKE_BUILD_TYPE=Release", "-DGRIDMILL_PYTHON=ON", "-DGRIDMILL_NATIVE_TESTS=OFF"]
    _quietly(["cmake", "-S", tree, "-B", make, "-G", "Ninja", *options, f"-DPython_EXECUTABLE={sys.executable}"])
    _quietly(["cmake", "--build", make])
    shutil.copytree(tree / "src" / "gridmill", site / "gridmill", dirs_exist_ok=True)
    for extension in make.glob("_native*.so"):
        extension.rename(site / "gridmill" / extension.name)
    return site


def _quietly(command: list[str | Path]) -> None:
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode:
        last = (done.stdout.strip().splitlines() or ["no message"])[-1]
        raise ValueError(f"`{command[0]} {command[1]}` failed: {machine.without_paths(last)}")


def python_of(site: Path | None) -> list[str]:
    """The words that start a Python with the package of that folder, or with this one."""
    if site is None:
        return [sys.executable, "-P"]
    # The base interpreter sees the packages of the venv, but not its editable install of this tree.
    base = str(getattr(sys, "_base_executable", sys.executable))
    return ["env", f"PYTHONPATH={site}:{sysconfig.get_paths()['purelib']}", base, "-P"]
