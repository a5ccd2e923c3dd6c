"""The page of a run in a real browser: its own script runs under its own policy, and names stay text (row X2)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import chromium
import pytest

from gridmill import games
from gridmill.run import Run
from gridmill.runs.log import RunLog
from gridmill.viewer.serve import serve

RUN = Run(recipe="toy", game=games.toy())
EVIL = '"><img src=x onerror="window.hit=1"><script>window.hit=1</script>'


@pytest.fixture(scope="module")
def running() -> Iterator[Any]:
    chromium.require(fail=True)
    with chromium.browser() as found:
        yield found


@pytest.mark.X2
@pytest.mark.long
@pytest.mark.parametrize("served", [False, True])
def test_values_under_the_pointer_and_hostile_names(running: Any, served: bool, tmp_path: Path) -> None:
    folder = tmp_path / "a<b onclick=alert(1)>run"
    with RunLog(folder, RUN, [EVIL], panel=False) as log:
        (folder / "run.json").write_text(json.dumps({"run": RUN.tree() | {"recipe": EVIL}}))
        for epoch in range(1, 21):
            log.epoch({"epoch": epoch, "agent_steps": 1000 * epoch, "score": 0.5 * epoch, EVIL: float(epoch)})
    with serve({}, tmp_path) as server:
        page = running.new_page()
        faults: list[str] = []
        page.on("console", lambda said: faults.append(said.text) if said.type == "error" else None)
        page.on("pageerror", lambda error: faults.append(str(error)))
        page.on("dialog", lambda dialog: faults.append(dialog.message))
        report = folder / "report.html"
        page.goto(server.file_url(report) if served else report.as_uri())
        box = page.locator("svg").first.bounding_box()
        left, right, width = 50, 1106, 1120  # of the frame in the wide chart
        at = box["x"] + box["width"] * (left + (right - left) * 0.5) / width
        page.mouse.move(at, box["y"] + box["height"] / 2)
        said = page.locator(".tip").first.text_content()
        assert "10 k steps" in said
        assert "5.00" in said
        shown = page.locator("figcaption", has_text="onerror").locator("span").text_content()
        assert shown == "10.0"  # the other charts follow
        page.mouse.move(5, 5)
        assert page.locator(".tip").count() == 0
        assert page.evaluate("() => window.hit") is None
        assert page.locator("img").count() == 0
        assert faults == []
        page.close()
