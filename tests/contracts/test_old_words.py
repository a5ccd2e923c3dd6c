"""The words of the first version are gone: one word per idea, the field's word where it has one (docs/glossary.md)."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
NATIVE = sorted((ROOT / "native").rglob("*.?pp"))
PYTHON = sorted((ROOT / "src").rglob("*.py"))

# Identifiers and file names, by side. Common words that were used for something of their own (`slot`, `flow`, `words`)
# are looked for in the forms they had.
OLD_NATIVE = (
    r"\bCrew\b", r"\bcrew\b", r"\bPurses\b", r"\bpurses\b", r"\bScene\b", r"\bEyes\b", r"\bTurn\b", r"\bAsk\b",
    r"\bMentions\b", r"\bmentions\b", r"places\.hpp", r"\bmarks_of\b", r"\bwords_text\b", r"emit\.cpp", r"\btally\b",
    r"\bshort_first\b", r"\brefuse\(", r"\bNamed<", r"\bChoice<", r"\bDescribed\b", r"outside\.hpp", r"rooms\.hpp",
    r"\bSight\b", r"\bturned\(", r"\bTurned\b", r"Called by",
)  # fmt: skip
OLD_PYTHON = (
    r"\bHands\(", r"\bdeeds\b", r"\bDeed\b", r"\bPlant\b", r"\bOutlook\b", r"\bfirst_pay\b", r"\bfirst_change\b",
    r"\bwording\b", r"\bshort_first\b", r"\bfaces\b", r"\bown_code\b(?!_in)", r"\bgridmill\.arithmetic\b",
    r"\bdifferences\.py\b", r"\bJudge\b", r"\bSight\b", r"\bsight_share\b", r"(\.|def )meet\(", r"class (Box|Vector)\b",
    r"\bHeld\b", r"\bround_\b", r"numbers that are none", r"go on with", r"asked for were", r"Called by",
)  # fmt: skip
# What is told or read of older versions must name them.
TELLS = {"policy/config.py", "run.py", "prospector/reference/env.py"}


@pytest.mark.parametrize("path", NATIVE, ids=lambda p: str(p.relative_to(ROOT)))
def test_native(path: Path) -> None:
    assert not [word for word in OLD_NATIVE if re.search(word, path.read_text()) or re.search(word, path.name)]


@pytest.mark.parametrize("path", PYTHON, ids=lambda p: str(p.relative_to(ROOT)))
def test_python(path: Path) -> None:
    text = path.read_text()
    if str(path.relative_to(ROOT / "src" / "gridmill")) in TELLS:
        text = re.sub(r"\brenamed\b.*|.*short_first.*", "", text)
    assert not [word for word in OLD_PYTHON if re.search(word, text)]
