"""The words of the first version are gone: one word per idea, the field's word where it has one (docs/glossary.md).

Names that stood for several things have one meaning, or docs/why.md says why they have two.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
NATIVE = sorted(path for folder in ("native", "tests/native") for path in (ROOT / folder).rglob("*.?pp"))
PYTHON = sorted((ROOT / "src").rglob("*.py"))

# Identifiers and file names, by side. Common words that were used for something of their own (`slot`, `flow`, `words`)
# are looked for in the forms they had.
OLD_NATIVE = (
    r"\bCrew\b", r"\bcrew\b", r"\bPurses\b", r"\bpurses\b", r"\bEyes\b", r"\bTurn\b", r"\bAsk\b",
    r"\bMentions\b", r"\bmentions\b", r"places\.hpp", r"\bmarks_of\b", r"\bwords_text\b", r"emit\.cpp", r"\btally\b",
    r"\bshort_first\b", r"\brefuse\(", r"\bNamed\b", r"\bChoice<", r"\bDescribed\b", r"outside\.hpp", r"rooms\.hpp",
    r"\bSight\b", r"\bturned\(", r"\bTurned\b", r"Called by",
)  # fmt: skip
OLD_PYTHON = (
    r"\bHands\(", r"\bPlant\b", r"\bfirst_pay\b", r"\bfirst_change\b",
    r"\bwording\b", r"\bshort_first\b", r"\bfaces\b", r"\bown_code\b(?!_in)", r"\bgridmill\.arithmetic\b",
    r"\bdifferences\.py\b", r"\bJudge\b", r"\bSight\b", r"\bsight_share\b", r"(\.|def )meet\(", r"class (Box|Vector)\b",
    r"\bHeld\b", r"\bround_\b", r"numbers that are none", r"go on with", r"asked for were", r"Called by",
)  # fmt: skip
# Words as parts of names and in comments, on both sides, and the files where a word has its usual meaning: doors lead
# from room to room of a map; a panel is what products of matrices pack, and what a terminal or a page shows.
OLD_ANYWHERE = {
    "deed": r"$^",
    "scene": r"$^",
    "outlook": r"$^",
    "timeline": r"$^",
    "door": r"native/grid/(maps/|test_maps)|src/gridmill/grid/layers\.py|src/gridmill/games/navigation",
    "panel": r"native/(learn|wasm|bind)/|tests/native/learn/|src/gridmill/(runs|cli|viewer|workshop|env|prospector)/",
}
# What is told or read of older versions, or hashed as they did, must name them.
TELLS = {
    "src/gridmill/policy/config.py",
    "src/gridmill/run.py",
    "src/gridmill/prospector/reference/env.py",
    "tests/native/golden/test_golden.cpp",
}
# Names that stood for several things each, and the files that define them now; docs/why.md has the reasons for two.
DEFINED = {
    "Window": ["native/grid/observe/window.hpp"],
    "Layout": ["native/wasm/layout.hpp", "src/gridmill/policy/spec.py"],
    "Schedule": ["src/gridmill/config/schedule.py"],
    "Value": ["native/core/value.hpp", "src/gridmill/losses/value.py"],
    "Recipe": ["native/grid/config.hpp", "src/gridmill/grid/parts.py"],
    "Result": ["src/gridmill/runs/epoch.py"],
    "Player": ["src/gridmill/policy/player.py"],
}


def old_words(path: Path, of_its_side: tuple[str, ...]) -> list[str]:
    """The old words in a file or its name; words of both sides as `deed`, `_deeds`, `DeedKind`, not `indeed`."""
    name, text = str(path.relative_to(ROOT)), path.read_text()
    if name in TELLS:
        text = re.sub(r"\brenamed\b.*|.*short_first.*", "", text)
    patterns = [rf"(?<![a-zA-Z]){word}s?(?![a-z])|{word.title()}s?(?![a-z])" for word in OLD_ANYWHERE]
    usual = [pattern for pattern, files in zip(patterns, OLD_ANYWHERE.values(), strict=True) if re.search(files, name)]
    return [word for word in {*of_its_side, *patterns} - {*usual} if re.search(word, f"{text}\n{path.name}")]


@pytest.mark.parametrize("path", NATIVE, ids=lambda p: str(p.relative_to(ROOT)))
def test_native(path: Path) -> None:
    assert not old_words(path, OLD_NATIVE)


@pytest.mark.parametrize("path", PYTHON, ids=lambda p: str(p.relative_to(ROOT)))
def test_python(path: Path) -> None:
    assert not old_words(path, OLD_PYTHON)


@pytest.mark.parametrize("name", DEFINED)
def test_a_name_has_one_meaning(name: str) -> None:
    defines = re.compile(rf"^(class|struct)( alignas\(\d+\))? {name}\b(?!;)|^{name}(: \w+)? = ", re.MULTILINE)
    native = sorted((ROOT / "native").rglob("*.?pp"))
    found = [str(path.relative_to(ROOT)) for path in (*native, *PYTHON) if defines.search(path.read_text())]
    assert found == DEFINED[name]
