"""Files and modules that the documents name exist."""

from __future__ import annotations

import importlib
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
DOCUMENTS = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
PATH = re.compile(r"(?:src|native|tests|scripts|bench|examples|docs)/[\w./-]+")
MODULE = re.compile(r"gridmill(?:\.[A-Za-z_]\w*)+")
TELLING = [path for path in DOCUMENTS if not path.name.startswith("add-a-")]  # those name files that the reader makes
LINK = re.compile(r"\]\(([^)#\s]+)")


def inline_code(path: Path) -> list[str]:
    text = re.sub(r"^```.*?^```", "", path.read_text(), flags=re.MULTILINE | re.DOTALL)
    return re.findall(r"`([^`\n]+)`", text)


def exists(name: str) -> bool:
    """Whether a dotted name can be imported, or is an attribute of what can."""
    module, _, rest = name.partition(".")
    found = importlib.import_module(module)
    for part in rest.split("."):
        try:
            found = getattr(found, part)
        except AttributeError:
            try:
                found = importlib.import_module(f"{found.__name__}.{part}")
            except ImportError:
                return False
    return True


@pytest.mark.parametrize("path", TELLING, ids=lambda path: path.name)
def test_named_files_exist(path):
    named = [code for code in inline_code(path) if PATH.fullmatch(code)]
    assert [name for name in named if not (ROOT / name).exists()] == []


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_named_modules_exist(path):
    named = {name for code in inline_code(path) for name in re.findall(rf"(?<![\w./-])({MODULE.pattern})", code)}
    assert [name for name in sorted(named) if not exists(name)] == []


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_links_lead_somewhere(path):
    links = [link for link in LINK.findall(path.read_text()) if "://" not in link]
    assert [link for link in links if not (path.parent / link).exists()] == []
