"""What a page does with files that mean harm, and with very large ones: a card, text, and a tab that lives."""

from __future__ import annotations

import json
import random
import statistics
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import chromium
import numpy as np
import pytest
import viewed

from gridmill import games, replay
from gridmill.games import kinds
from gridmill.grid import Scatter

pytestmark = pytest.mark.long

PAYLOADS = (
    "<script>alert(1)</script>", "<img src=x onerror=alert(1)>", "javascript:alert(1)", "\"><svg onload=alert(1)>",
    "</script><script>alert(1)</script>", "' onmouseover='alert(1)", "{{constructor.constructor('alert(1)')()}}",
    "<iframe srcdoc='<script>alert(1)</script>'>", "\u202ereversed\u202c", "x" * 10_000, "\u0000\u0007bell",
    "${alert(1)}", "`;alert(1);`", "<a href=javascript:alert(1)>x</a>", "&lt;script&gt;", "\ufeff\u200b\u2066x",
    "../../etc/passwd", "<b>bold</b>",
    "<style>*{display:none}</style>", "<base href=//example.com>",
    "constructor", "valueOf", "toString", "hasOwnProperty", "__proto__",
    "<math><mtext><table><mglyph><style><img src=x onerror=alert(1)>", "<svg><animate onbegin=alert(1)>",
    "<details open ontoggle=alert(1)>", "<meta http-equiv=refresh content=0;url=//example.com>",
    "<link rel=stylesheet href=//example.com/x.css>", "<object data=data:text/html,x>", "<form action=//example.com>",
    "data:text/html,<script>alert(1)</script>", "<!--", "]]><script>alert(1)</script>", "\u2028alert(1)\u2029",
    "\r\nSet-Cookie: a=b", "%3Cscript%3Ealert(1)%3C/script%3E", "\U0001f1ee\u0301\u0301\u0301" * 40, "",
)  # fmt: skip

assert len(set(PAYLOADS)) == 40
LARGE = {"kind": "scatter", "height": 1000, "width": 1000, "border": 0, "objects": {}, "groups": 1}
# From the question to the picture.
JUMP = """(tick) => { const began = performance.now(); gridmill.pause(); gridmill.seek(tick);
  do gridmill.frame(performance.now()); while (!gridmill.arrived); return performance.now() - began; }"""


def nested(levels: int) -> list[Any]:
    found: list[Any] = []
    for _ in range(levels):
        found = [found]
    return found


@pytest.fixture(scope="module")
def running() -> Iterator[Any]:
    chromium.require(fail=True)
    with chromium.browser() as found:
        yield found


@pytest.fixture(scope="module")
def small() -> replay.Replay:
    return viewed.tape_of(games.arena(num_agents=6), 60)


def parts_of(data: bytes) -> tuple[dict[str, Any], bytes]:
    _, head, body = data.split(b"\n", 2)
    return json.loads(head), body


def joined(head: dict[str, Any], body: bytes) -> bytes:
    return b"gridmill-replay 2\n" + json.dumps(head).encode() + b"\n" + body


@pytest.mark.F4
def test_mutated_files_become_cards(running: Any, small: replay.Replay, tmp_path: Path) -> None:
    good = replay.encode(small)
    head_size = good.index(b"\n", 18)
    rng = random.Random(4)
    with viewed.shown(running, small, tmp_path) as (page, faults):
        viewed.verified(page)
        refused = 0
        for _ in range(300):
            data = bytearray(good[: len(good) if rng.random() < 0.9 else rng.randrange(len(good))])
            for _ in range(rng.randint(1, 6)):
                at = rng.randrange(len(data)) if rng.random() < 0.4 else rng.randrange(min(len(data), head_size))
                data[at] = rng.choice((rng.randrange(256), ord("0") + rng.randrange(10), ord("-"), ord("9")))
            before = page.locator(".notice.error").count()
            viewed.open_bytes(page, bytes(data))
            refused += page.locator(".notice.error").count() != before or before == 4
            page.evaluate("() => new Promise(requestAnimationFrame)")
        assert refused > 100
        page.evaluate("() => document.querySelectorAll('.notice').forEach((node) => node.remove())")
        viewed.open_bytes(page, good)
        viewed.verified(page)
        assert [fault for fault in faults if fault.startswith(("error", "dialog"))] == []


@pytest.mark.X2
def test_hostile_names_are_text(running: Any, small: replay.Replay, tmp_path: Path) -> None:
    head, body = parts_of(replay.encode(small))
    with viewed.shown(running, small, tmp_path) as (page, faults):
        for payload in PAYLOADS:
            for place in ("names", "branch"):
                mine = json.loads(json.dumps(head))
                mine["policy"] = {"name": payload, "hash": payload}
                mine["gridmill"] = mine["commit"] = payload
                if place == "names":
                    mine["names"] = {"game": payload}
                    mine["action_names"] = [payload] * len(mine["action_names"])
                branch = mine["branches"][0]
                branch["name"], branch["tags"], branch["who"] = payload, [payload], {"*": payload, payload: payload}
                viewed.open_bytes(page, joined(mine, body), f"{payload[:40]}.replay")
                page.evaluate("() => gridmill.select(1)")
                for tab in range(5):
                    page.evaluate("(tab) => gridmill.commands.tab(tab)", tab)
                    page.wait_for_timeout(20)
        added = page.evaluate(
            "() => [...document.querySelectorAll("
            "'img, iframe, base, style, object, embed, a, script, meta[http-equiv], form, math')]"
            ".filter((node) => !(node.tagName === 'SCRIPT' && node.src.endsWith('/main.js')))"
            ".map((node) => node.tagName)"
        )
        assert added == []
        assert page.evaluate("() => document.documentElement.scrollWidth <= innerWidth")
        chromium.picture(page, "hostile")
        assert [fault for fault in faults if fault.startswith(("error", "dialog")) or "Content Security" in fault] == []


def test_names_of_every_javascript_object_are_names(running: Any, tmp_path: Path) -> None:
    text = json.dumps(games.arena(num_agents=6).tree())
    for old, new in {"altar": "constructor", "mine": "valueOf", "ore": "__proto__", "battery": "toString"}.items():
        text = text.replace(f'"{old}"', f'"{new}"')
    tape = viewed.tape_of(kinds.load(json.loads(text)), 60)
    with viewed.shown(running, tape, tmp_path) as (page, faults):
        viewed.verified(page)
        page.evaluate("() => gridmill.select(1)")
        for tab in range(5):
            page.evaluate("(tab) => gridmill.commands.tab(tab)", tab)
            viewed.seek(page, 10 * tab + 10)
        assert page.locator(".notice.error").count() == 0
        assert not faults


@pytest.mark.parametrize(
    ("path", "value", "said"),
    [
        (("format",), 3, "expected format 2"),
        (("agents",), 10**15, "$.agents"),
        (("agents",), -1, "$.agents"),
        (("seed",), "9" * 40, "$.seed"),
        (("branches", 0, "ticks"), 10**9, "$.branches[0].ticks"),
        (("branches", 0, "actions", "raw"), 2**40, "raw"),
        (("branches", 0, "hashes", "last"), "zz", "16 hex digits"),
        (("core", "map"), {"kind": "none"}, "$.map"),
        (("core",), [], "$.core"),
        (("kind",), "chess", "chess"),
        (("names",), nested(70), "expected a head of at most 64 levels, got more"),
        (("names",), [[]] * 100_001, "expected at most 100000 parts in a head, got more"),
        (("core", "map"), LARGE, "expected a map of at most 524288 cells in a page, got 1000 x 1000"),
        (("agents",), 3, "expected 180 bytes, got 360 - at `$.branches[0].actions.raw`"),
    ],
)
def test_what_cannot_be_is_refused_with_its_place(
    running: Any, small: replay.Replay, path: tuple[Any, ...], value: Any, said: str, tmp_path: Path
) -> None:
    head, body = parts_of(replay.encode(small))
    inner: Any = head
    for part in path[:-1]:
        inner = inner[part]
    inner[path[-1]] = value
    with viewed.shown(running, small, tmp_path) as (page, faults):
        viewed.open_bytes(page, joined(head, body))
        assert said in page.inner_text(".notice.error")
        viewed.open_bytes(page, replay.encode(small))
        viewed.verified(page)
        assert [fault for fault in faults if fault.startswith("error")] == []


def attempts(measure: Callable[[], float], most: float, count: int = 5) -> float:
    """The best of a few measurements by the clock, as few as are needed: other work on the machine only adds to one."""
    best = float("inf")
    for _ in range(count):
        best = min(best, measure())
        if best <= most:
            break
    return best


@pytest.mark.L1
def test_a_thousand_agents_and_ten_thousand_ticks(
    running: Any, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    """Row L1, by the clock; actions are moves by chance, as fast to write as to read."""
    size, agents, ticks = 200, 1000, 10_000
    land = Scatter(height=size, width=size, objects={"wall": 2000, "mine": 300, "generator": 150, "altar": 150})
    game = games.arena().replace("num_agents", agents).replace("max_steps", ticks).replace("map", land)
    rng = np.random.default_rng(1)
    actions = np.repeat(rng.integers(0, 5, (ticks // 10, agents)), 10, axis=0)
    tape = replay.record(game, 1, actions, {"*": "random"})
    data = replay.encode(tape)
    start = {"files": [{"name": "big.replay", "url": "big.replay"}]}
    with viewed.served(start, {"big.replay": data}, tmp_path) as url, chromium.page_of(running, url) as (page, faults):

        def opening() -> float:
            page.reload()
            page.wait_for_function("() => performance.getEntriesByName('first-frame').length")
            return float(page.evaluate("() => performance.getEntriesByName('first-frame')[0].startTime"))

        opened = attempts(opening, 3000)
        chromium.picture(page, "thousand")
        page.wait_for_selector("#badge.verified", timeout=600_000)
        asked = [(number * 7919 + 1234) % ticks for number in range(40)]
        jump = attempts(lambda: statistics.median(page.evaluate(JUMP, tick) for tick in asked), 50)
        page.evaluate("() => { gridmill.commands.follow(); }")
        page.wait_for_timeout(1500)
        chromium.picture(page, "thousand-close")
        used = page.evaluate("() => performance.memory.usedJSHeapSize / 1e6")
        wasm = page.evaluate("() => gridmill.engine._calls.memory.byteLength / 1e6")
        record_property("figure", f"open in {opened:.0f} ms, a jump in {jump:.0f} ms, {used + wasm:.0f} MB")
        assert not faults
    assert opened <= 3000
    assert jump <= 50
    assert used + wasm <= 500


@pytest.mark.F4
def test_a_thousand_forks_one_out_of_the_other(running: Any, small: replay.Replay, tmp_path: Path) -> None:
    """A file of a few kilobytes: the page opens worlds for what is looked at, and its list stays short."""
    head, body = parts_of(replay.encode(small))
    first = head["branches"][0]
    for number in range(1, 1024):
        name = f"{number} " + "long " * 200
        who = {str(agent): name for agent in range(6)}
        fork = {"name": name, "parent": number - 1, "fork_tick": min(number, 30), "who": who}
        fork["hashes"] = first["hashes"] | {"values": []}  # there is no hundredth tick among its own
        head["branches"].append(first | fork)
    for branch in head["branches"]:
        branch["name"] = branch["name"][:300]
        branch["who"] = {key: text[:40] for key, text in branch["who"].items()}
    with viewed.shown(running, small, tmp_path) as (page, faults):
        viewed.open_bytes(page, joined(head, body))
        assert page.locator(".notice.error").count() == 0
        page.evaluate("() => gridmill.commands.tab(4)")
        page.evaluate("() => gridmill.showBranch(gridmill.recording.branches[1023])")
        viewed.seek(page, 30)
        page.wait_for_function("() => gridmill.track.done")
        assert page.locator("#branches > li").count() == 202  # 200, the one that is shown, how many are left
        worlds = page.evaluate(
            "() => [...gridmill.pane.tracks.values()].filter((track) => track.own || track.scout).length"
        )
        assert worlds < 10
        assert page.evaluate("() => gridmill.engine._calls.memory.byteLength") < 200e6
        assert not faults
