"""An exported page in Firefox, from disk: it opens, the engine verifies it, and it scrubs."""

from __future__ import annotations

import os
from pathlib import Path

import firefox
import pytest
import viewed

from gridmill import games, replay
from gridmill.viewer import engine, export

pytestmark = pytest.mark.long


@pytest.mark.skipif(firefox.program() is None, reason="needs firefox: apt-get install firefox-esr")
@pytest.mark.parametrize("name", ["arena", "prospector"])
def test_an_exported_page_plays_in_firefox(name: str, tmp_path: Path) -> None:
    tape = viewed.tape_of(games.build(name), 300)
    end = len(tape.actions)
    file = tmp_path / f"{name}.html"
    file.write_text(export.exported({}, engine.read(), [("a.replay", replay.encode(tape))]), "utf-8")
    with firefox.page() as page:
        page.goto(file.as_uri())
        page.wait_for("document.querySelector('#badge.verified, #badge.differs, .notice.error')")
        assert page.evaluate("document.querySelector('#badge').textContent.trim()") == "✓ verified"
        for tick in (end, end // 2, 1):
            page.evaluate(f"gridmill.seek({tick})")
            page.wait_for(f"gridmill.arrived && gridmill.pane.drawnTick === {tick}")
            hashed = viewed.hash_at(tape, tick)
            assert hashed is None or page.evaluate("gridmill.track.world.hash()") == hashed
        assert page.evaluate("document.querySelectorAll('.notice.error').length") == 0
        if os.environ.get("GRIDMILL_PICTURES"):
            page.picture(Path(os.environ["GRIDMILL_PICTURES"]) / f"firefox-{name}.png")
