"""No document has a dead link: the file that it names is there, and so is the heading."""

from __future__ import annotations

import functools
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
LINK = re.compile(r"!?\[[^\]]*\]\(([^()\s]+)\)")


@functools.cache
def text_of(page: Path) -> str:
    """What is neither a block of code nor code in a line."""
    return re.sub(r"```.*?```|`[^`\n]*`", "", page.read_text(), flags=re.DOTALL)


@functools.cache
def anchors(page: Path) -> set[str]:
    """Headings as the site's addresses write them."""
    titles = re.findall(r"^#+ +(.+?) *$", re.sub(r"```.*?```", "", page.read_text(), flags=re.DOTALL), re.MULTILINE)
    plain = [re.sub(r"[^\w\s-]", "", title).strip().lower() for title in titles]
    return {re.sub(r"[-\s]+", "-", title) for title in plain}


def dead(page: Path) -> list[str]:
    found = []
    for link in LINK.findall(text_of(page)):
        place, _, anchor = link.partition("#")
        target = (page.parent / place).resolve() if place else page
        if re.match(r"[a-z]+:", link):
            continue
        if not target.exists() or (anchor and target.suffix == ".md" and anchor not in anchors(target)):
            found.append(link)
    return found


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_links_lead_somewhere(page: Path) -> None:
    assert dead(page) == []


def test_a_dead_link_is_found(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("# A title\n\n[here](#a-title) [gone](gone.md) [no heading](#nothing) `[code](no.md)`\n")
    assert dead(page) == ["gone.md", "#nothing"]
