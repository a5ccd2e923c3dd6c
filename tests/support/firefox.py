"""Firefox for tests, by the protocol it speaks itself (WebDriver BiDi): no driver is needed, only the program."""

from __future__ import annotations

import base64
import json
import os
import shutil
import socket
import struct
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

NAMES = ("firefox-esr", "firefox")
START = 90.0  # seconds until it must listen, on a busy machine
PREFERENCES = """user_pref("browser.shell.checkDefaultBrowser", false);
user_pref("datareporting.policy.dataSubmissionEnabled", false);
user_pref("toolkit.telemetry.reportingpolicy.firstRun", false);
user_pref("browser.startup.homepage_override.mstone", "ignore");
"""


def program() -> str | None:
    return next((found for name in NAMES if (found := shutil.which(name))), None)


class Socket:
    """As much of a web socket (RFC 6455) as a client of one local server needs: text both ways."""

    def __init__(self, port: int, path: str) -> None:
        self.stream = socket.create_connection(("127.0.0.1", port), timeout=120)
        key = base64.b64encode(os.urandom(16)).decode()
        asked = (
            f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            f"Sec-WebSocket-Key: {key}\r\nSec-WebSocket-Version: 13\r\n\r\n"
        )
        self.stream.sendall(asked.encode())
        answer = b""
        while not answer.endswith(b"\r\n\r\n"):
            answer += self._exactly(1)
        if b" 101 " not in answer:
            self.stream.close()
            raise ConnectionError(f"expected a web socket, got {answer[:80]!r}")

    def send(self, text: str) -> None:
        data, mask = text.encode(), os.urandom(4)
        masked = bytes(byte ^ mask[i % 4] for i, byte in enumerate(data))
        size = bytes([128 | len(data)]) if len(data) < 126 else b"\xfe" + struct.pack(">H", len(data))  # below 64 KiB
        self.stream.sendall(b"\x81" + size + mask + masked)

    def receive(self) -> str:
        parts = []
        while True:
            first, second = self._exactly(2)
            size = second & 127
            if size > 125:
                size = int.from_bytes(self._exactly(2 if size == 126 else 8), "big")
            data = self._exactly(size)
            if first & 15 in (0, 1):
                parts.append(data)
            if first & 15 == 8:
                raise ConnectionError("firefox has closed the connection")
            if first & 128 and first & 15 in (0, 1):
                return b"".join(parts).decode()

    def _exactly(self, size: int) -> bytes:
        found = b""
        while len(found) < size:
            part = self.stream.recv(size - len(found))
            if not part:
                raise ConnectionError("firefox is gone")
            found += part
        return found


class Page:
    """One tab."""

    def __init__(self, port: int) -> None:
        self.socket = Socket(port, "/session")
        self.asked = 0
        self.ask("session.new", {"capabilities": {}})
        self.context = self.ask("browsingContext.getTree", {})["contexts"][0]["context"]

    def ask(self, method: str, given: dict[str, Any]) -> Any:
        self.asked += 1
        self.socket.send(json.dumps({"id": self.asked, "method": method, "params": given}))
        while True:
            answer = json.loads(self.socket.receive())
            if answer.get("id") != self.asked:
                continue  # an event
            if answer["type"] == "error":
                raise RuntimeError(f"{method}: {answer['message']}")
            return answer["result"]

    def close(self) -> None:
        self.socket.stream.close()

    def goto(self, address: str) -> None:
        self.ask("browsingContext.navigate", {"context": self.context, "url": address, "wait": "complete"})

    def evaluate(self, expression: str) -> Any:
        """What an expression is, by way of JSON."""
        given = {"target": {"context": self.context}, "awaitPromise": True}
        found = self.ask("script.evaluate", given | {"expression": f"JSON.stringify({expression})"})
        if found["type"] != "success":
            raise RuntimeError(found["exceptionDetails"]["text"])
        text = found["result"].get("value")
        return None if text is None else json.loads(text)

    def wait_for(self, expression: str, seconds: float = 120.0) -> None:
        until = time.monotonic() + seconds
        while not self.evaluate(f"Boolean({expression})"):
            if time.monotonic() > until:
                raise TimeoutError(f"not within {seconds:.0f} s: {expression}")
            time.sleep(0.1)

    def picture(self, path: Path) -> None:
        data = self.ask("browsingContext.captureScreenshot", {"context": self.context})["data"]
        path.write_bytes(base64.b64decode(data))


@contextmanager
def page() -> Iterator[Page]:
    """A tab of a new Firefox, headless, with a profile of its own."""
    found = program()
    assert found is not None
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with tempfile.TemporaryDirectory() as profile:
        (Path(profile) / "user.js").write_text(PREFERENCES)
        words = [found, "--headless", "--no-remote", "--profile", profile, f"--remote-debugging-port={port}"]
        running = subprocess.Popen(
            [*words, "about:blank"],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env=os.environ | {"HOME": profile},
        )
        try:
            with closing(_connected(port)) as found_page:
                yield found_page
        finally:
            running.terminate()
            try:
                running.wait(60)
            finally:
                running.kill()


def _connected(port: int) -> Page:
    until = time.monotonic() + START
    while True:
        try:
            return Page(port)
        except ConnectionError:  # refused, or taken and dropped while it starts
            if time.monotonic() > until:
                raise
            time.sleep(0.2)
