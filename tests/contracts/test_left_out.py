"""What wheels and the sdist leave out is named from the root of the tree: a bare name leaves out packages too."""

from __future__ import annotations

import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_patterns_begin_at_the_root() -> None:
    """`runs` once left out gridmill/runs, and an installed wheel could not train."""
    patterns = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["scikit-build"]["sdist"]["exclude"]
    assert patterns
    assert [one for one in patterns if not one.startswith("/")] == []


def test_no_folder_of_the_package_is_ignored_by_name() -> None:
    """Builds read .gitignore too."""
    ignored = {line.strip("/") for line in (ROOT / ".gitignore").read_text().splitlines() if not line.startswith("/")}
    folders = {path.name for path in (ROOT / "src" / "gridmill").rglob("*") if path.is_dir()} - {"__pycache__"}
    assert folders & ignored == set()
