"""How quick the viewer is, in headless Chromium: opening, the first frame, jumps, memory.

    chrt -r 10 python bench/viewer.py [all | big | arena | export]... [--rounds 5] [--jumps 40]

`big` is a thousand agents on 200 x 200 cells for ten thousand ticks, `arena` an arena of ten thousand, `export` an
arena episode as one file, opened from disk, beside an empty page: what the browser itself takes. A jump goes from the
question to the picture with its panels: wall time, and beside it the time that the page's main thread was running.
`chrt` lets no other work on the machine come before the browser. Needs playwright and chromium.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from playwright.sync_api import sync_playwright

from gridmill import games, replay
from gridmill.evaluate import evaluate
from gridmill.grid import Scatter
from gridmill.viewer import engine
from gridmill.viewer.export import exported, page_files
from gridmill.viewer.serve import serve

TICKS = 10_000
QUIET = 1_500  # ms in which a page starts undisturbed
FIRST = "() => performance.getEntriesByName('first-frame')[0]?.startTime"
JUMP = """(tick) => { const began = performance.now(); gridmill.pause(); gridmill.seek(tick);
  do gridmill.frame(performance.now()); while (!gridmill.arrived); return performance.now() - began; }"""
EMPTY = "<!doctype html><script>requestAnimationFrame(() => performance.mark('first-frame'))</script>"
MEMORY = "() => (performance.memory.usedJSHeapSize + gridmill.engine._calls.memory.byteLength) / 1e6"


def big() -> bytes:
    size, agents = 200, 1000
    land = Scatter(height=size, width=size, objects={"wall": 2000, "mine": 300, "generator": 150, "altar": 150})
    game = games.arena().replace("num_agents", agents).replace("max_steps", TICKS).replace("map", land)
    actions = np.repeat(np.random.default_rng(1).integers(0, 5, (TICKS // 10, agents)), 10, axis=0)
    return replay.encode(replay.record(game, 1, actions, {"*": "random"}))


def arena() -> bytes:
    game = games.arena().replace("max_steps", TICKS)
    actions = np.random.default_rng(1).integers(0, 9, (TICKS, game.num_agents))
    return replay.encode(replay.record(game, 1, actions, {"*": "random"}))


@contextmanager
def opened(browser: Any, address: str) -> Iterator[tuple[Any, float]]:
    """A page at some time after its first frame, and when that was. Nobody asks the page anything while it starts."""
    context = browser.new_context(viewport={"width": 1280, "height": 800})
    page = context.new_page()
    page.set_default_timeout(600_000)
    try:
        page.goto(address, wait_until="commit")
        first = None
        while first is None:
            page.wait_for_timeout(QUIET)
            first = page.evaluate(FIRST)
        yield page, float(first)
    finally:
        context.close()


def clock(page: Any) -> Callable[[], float]:
    """How to ask for the milliseconds that the page's main thread has been running."""
    session = page.context.new_cdp_session(page)
    session.send("Performance.enable")

    def running() -> float:
        listed = session.send("Performance.getMetrics")["metrics"]
        return 1000 * float(next(one["value"] for one in listed if one["name"] == "ThreadTime"))

    return running


def first_frames(browser: Any, address: str, rounds: int) -> None:
    times = []
    for _ in range(rounds):
        with opened(browser, address) as (_, first):
            times.append(first)
    print(f"  first frame: {shown(times)}", flush=True)


def jumps(browser: Any, address: str, count: int) -> None:
    """To far ticks and their pictures, when the engine has played all of the file."""
    walls, runs = [], []
    with opened(browser, address) as (page, _):
        running = clock(page)
        before = running()
        page.wait_for_selector("#badge.verified, #badge.differs")
        print(f"  {page.inner_text('#badge')} after {(running() - before) / 1000:.1f} s of the main thread")
        end = page.evaluate("() => gridmill.end")
        for i in range(count):
            before = running()
            walls.append(float(page.evaluate(JUMP, (i * 7919 + 1234) % end)))
            runs.append(running() - before)
            page.evaluate("() => new Promise(requestAnimationFrame)")
        print(f"  a jump: {shown(walls)}; main thread {shown(runs)}")
        print(f"  memory: {page.evaluate(MEMORY):.0f} MB", flush=True)


def shown(times: list[float]) -> str:
    return f"best {min(times):.0f}, median {statistics.median(times):.0f}, worst {max(times):.0f} ms"


def main() -> None:
    parser = argparse.ArgumentParser(description="how quick the viewer is")
    parser.add_argument("what", nargs="*", default="all", choices=["big", "arena", "export", "all"])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--jumps", type=int, default=40)
    asked = parser.parse_args()
    wanted = ["big", "arena", "export"] if "all" in asked.what else asked.what
    program = shutil.which("chromium") or shutil.which("google-chrome")
    with sync_playwright() as play, tempfile.TemporaryDirectory() as folder:
        browser = play.chromium.launch(executable_path=program, args=["--no-sandbox", "--disable-gpu"])
        for name, make in {"big": big, "arena": arena}.items():
            if name not in wanted:
                continue
            data = make()
            print(f"{name}: {len(data)} bytes", flush=True)
            start = {"files": [{"name": f"{name}.replay", "url": "x.replay"}]}
            with serve(page_files(start, engine.read(), {"x.replay": data}), Path(folder)) as server:
                first_frames(browser, server.url, asked.rounds)
                jumps(browser, server.url, asked.jumps)
        if "export" in wanted:
            evaluate(games.arena(), "script:arena", 1, 0, replay=Path(folder) / "a.replay")
            text = exported({}, engine.read(), [("a.replay", (Path(folder) / "a.replay").read_bytes())])
            for name, page in {"an empty page": EMPTY, "export": text}.items():
                (Path(folder) / "a.html").write_text(page, "utf-8")
                print(f"{name}: {len(page.encode())} bytes")
                first_frames(browser, (Path(folder) / "a.html").as_uri(), asked.rounds)
        browser.close()


if __name__ == "__main__":
    main()
