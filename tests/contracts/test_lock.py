"""requirements.lock has a hash for everything that pyproject.toml asks for, at a version that it allows."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts"))
import lock  # noqa: E402

LINE = re.compile(r"([a-z0-9-]+)==(\S+) --hash=sha256:([0-9a-f]{64})")

pytestmark = pytest.mark.X7


def locked() -> dict[str, str]:
    lines = [line for line in lock.LOCK.read_text().splitlines() if not line.startswith("#")]
    found = [LINE.fullmatch(line) for line in lines]
    assert all(found), [line for line, one in zip(lines, found, strict=True) if not one]
    return {one[1]: one[2] for one in found if one}


def test_everything_that_is_asked_for_has_a_version_and_a_hash() -> None:
    versions = locked()
    for text in lock.wanted("check"):
        name = lock.name_of(text)
        if name not in lock.LEFT_OUT:
            assert name in versions, f"run: python scripts/lock.py ({text})"
            assert Requirement(text).specifier.contains(versions[name]), f"run: python scripts/lock.py ({text})"


def test_what_is_left_out_is_not_in_it() -> None:
    assert not lock.LEFT_OUT & set(locked())
