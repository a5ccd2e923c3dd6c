"""docs/reference/ says what the code says."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts"))

import reference_pages  # noqa: E402


@pytest.mark.parametrize("page", reference_pages.PAGES)
def test_the_reference_is_in_step(page: str) -> None:
    assert (reference_pages.FOLDER / page).read_text() == reference_pages.PAGES[page](), "run `make docs`"
