"""docs/words.md says what the core's descriptions say."""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_the_page_of_words_is_in_step() -> None:
    sys.path.insert(0, str(ROOT / "scripts"))
    import words_table

    assert words_table.PAGE.read_text() == words_table.page(), "run `make docs`"
