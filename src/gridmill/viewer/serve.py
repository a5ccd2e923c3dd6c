"""A small server for one person on this machine: the page of the viewer, and files of runs and replays beside it.

Whoever has the address has the token in it; all else is refused: other Hosts (a foreign name that resolves to this
machine), other Origins, paths that lead out of the root. Reading changes nothing; what is saved is a new replay.

    /<token>/             index.html of the page, and its other files by name
    /<token>/files.json   what there is under the root: [{path, size, modified}]
    /<token>/files/PATH   one of them; a POST makes a new one
"""

from __future__ import annotations

import ipaddress
import json
import secrets
import socket
import threading
from collections.abc import Mapping
from contextlib import suppress
from email.message import Message
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from urllib.parse import quote

from gridmill.viewer.files import REPLAY_MAGIC, TYPES, Refused, listed, opened, save

MOST_CONNECTIONS = 128  # at a time
MOST_SAVED = 64 << 20  # bytes of a saved replay
MOST_DIGITS = 18  # of a length that is read as a number at all
IDLE = 30.0  # seconds after which a silent connection is closed
CHUNK = 1 << 16
PAGE_POLICY = (
    "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; style-src 'self'; img-src 'self' data: blob:; "
    "connect-src 'self'; worker-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
ALWAYS = {
    "Cache-Control": "no-store",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}
PageFiles = Mapping[str, bytes | Path]


class Server:
    """A server that runs in threads of its own until `close`. Give people `url`: the token is in it."""

    def __init__(self, page_files: PageFiles, root: Path, host: str, port: int) -> None:
        self.token = secrets.token_urlsafe(24)
        self._http = _Http(_family(host), host, port, self.token, dict(page_files), root.resolve(strict=True))
        self.port: int = self._http.server_address[1]
        shown = f"[{host}]" if ":" in host else host
        self.url = f"http://{shown}:{self.port}/{self.token}/"
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.05,), daemon=True, name="viewer")
        self._thread.start()

    def file_url(self, path: Path) -> str:
        """The address of a file under the root."""
        inside = path.resolve().relative_to(self._http.root)
        return f"{self.url}files/{quote(inside.as_posix())}"

    def wait(self) -> None:
        """Until somebody calls `close`, or Ctrl-C."""
        self._thread.join()

    def close(self) -> None:
        self._http.shutdown()
        self._thread.join()
        self._http.server_close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, fault: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def serve(
    page_files: PageFiles, root: Path, *, host: str = "127.0.0.1", port: int = 0, allow_remote: bool = False
) -> Server:
    """Serve a page by names of files, and the files under `root`; port 0 is any that is free.

    An address that others can reach is refused unless `allow_remote` says that this is meant.
    """
    host = address(host, allow_remote)
    if not root.is_dir():
        raise ValueError(f"expected a folder to serve files from, got `{root}`")
    return Server(page_files, root, host, port)


def address(host: str, allow_remote: bool) -> str:
    """A host as an address; ValueError if it is none, or one that others can reach and was not meant to be."""
    if host == "localhost":
        return "127.0.0.1"
    try:
        loopback = ipaddress.ip_address(host).is_loopback
    except ValueError:
        raise ValueError(f"--host: expected an IP address or localhost, got `{host}`") from None
    if not loopback and not allow_remote:
        raise ValueError(f"--host {host} can be reached from other machines: add --allow-remote if that is meant")
    return host


def _family(host: str) -> socket.AddressFamily:
    return socket.AF_INET6 if ":" in host else socket.AF_INET


def _split(host: str) -> tuple[str, str]:
    """Name and port of a Host header; browsers leave out the port of http itself."""
    name, colon, port = host.rpartition(":")
    if not colon or host.endswith("]"):
        return host, "80"
    return name, port


class _Http(ThreadingHTTPServer):
    """The listening socket and what all its connections share."""

    request_queue_size = 128

    def __init__(
        self,
        family: socket.AddressFamily,
        host: str,
        port: int,
        token: str,
        page_files: dict[str, bytes | Path],
        root: Path,
    ) -> None:
        self.address_family = family
        self.token, self.page_files, self.root = token, page_files, root
        self.room = threading.BoundedSemaphore(MOST_CONNECTIONS)
        super().__init__((host, port), _Handler)
        bound = ipaddress.ip_address(host)
        self.only_loopback = bound.is_loopback

    def process_request(self, request: Any, client_address: Any) -> None:
        if self.room.acquire(blocking=False):
            super().process_request(request, client_address)
        else:
            self.shutdown_request(request)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            self.room.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that went away in the middle is nobody's trouble."""

    def is_own(self, host: str) -> bool:
        """Whether a Host header names this server: a name of this machine, or an address, which nobody can redirect."""
        name, port = _split(host)
        if port != str(self.server_address[1]):
            return False
        if name == "localhost":
            return True
        try:
            address = ipaddress.ip_address(name.removeprefix("[").removesuffix("]"))
        except ValueError:
            return not self.only_loopback and name.lower() == socket.gethostname().lower()
        return address.is_loopback or not self.only_loopback


class _Handler(BaseHTTPRequestHandler):
    """One connection."""

    server: _Http
    protocol_version = "HTTP/1.1"
    server_version, sys_version = "gridmill", ""
    timeout = IDLE
    disable_nagle_algorithm = True
    wbufsize = CHUNK  # head and body in one packet
    head_sent = False

    def do_GET(self) -> None:
        self._answer(self._get)

    def do_HEAD(self) -> None:
        self._answer(self._get)

    def do_POST(self) -> None:
        self._answer(self._post)

    def log_message(self, *words: Any) -> None:
        """Nothing is printed: the terminal belongs to the command that serves."""

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """Also what the base class refuses: one line of plain text, then the connection ends."""
        self.close_connection = True
        if not hasattr(self, "headers"):
            self.headers = Message()
        known = message or HTTPStatus(code).phrase
        self._send(405 if code == 501 else code, "text/plain; charset=utf-8", f"gridmill: {known}\n".encode())

    def _answer(self, do: Any) -> None:
        self.head_sent = False
        try:
            self._check_sender()
            do(self._inside())
        except Refused as refused:
            self.send_error(refused.status, str(refused))
        except OSError as reason:
            self.close_connection = True
            if self.head_sent:  # what follows would be taken for the rest of the file
                return
            self.send_error(500, reason.strerror or "the file could not be read or written")

    # ---- who asks

    def _check_sender(self) -> None:
        hosts = self.headers.get_all("Host", [])
        if len(hosts) != 1 or not self.server.is_own(hosts[0]):
            raise Refused(403, "this server answers to its own address only")
        origins = self.headers.get_all("Origin", [])
        if origins and origins != [f"http://{hosts[0]}"]:
            raise Refused(403, "another site may not ask here")
        if self.command == "POST" and not origins:
            raise Refused(403, "expected the header Origin of the page itself")
        if self.headers.get("Sec-Fetch-Site") == "cross-site" and self.headers.get("Sec-Fetch-Mode") != "navigate":
            raise Refused(403, "another site may not ask here")

    def _inside(self) -> str:
        """The path behind the token."""
        path = self.path.partition("?")[0].partition("#")[0]
        given, _, inside = path.removeprefix("/").partition("/")
        if not path.startswith("/") or not secrets.compare_digest(given.encode(), self.server.token.encode()):
            raise Refused(403, "expected the token in the address, as the command printed it")
        if path.count("/") < 2:
            raise Refused(404, "expected a slash after the token")
        return inside

    # ---- what is given

    def _get(self, inside: str) -> None:
        if inside.startswith("files/"):
            self._send_file(inside.removeprefix("files/"))
        elif inside == "files.json":
            self._send(200, TYPES[".json"], json.dumps(listed(self.server.root)).encode())
        else:
            self._send_page(inside or "index.html")

    def _send_page(self, name: str) -> None:
        found = self.server.page_files.get(name)
        if found is None:
            raise Refused(404, "not found")
        body = found if isinstance(found, bytes) else found.read_bytes()
        kind = TYPES.get(Path(name).suffix, "application/octet-stream")
        self._send(200, kind, body, PAGE_POLICY)

    def _send_file(self, path: str) -> None:
        with opened(self.server.root, path) as (file, size, kind, policy):
            self._head(200, kind, size, policy)
            left = 0 if self.command == "HEAD" else size
            while left and (part := file.read(min(left, CHUNK))):  # one that grows is sent as it was when opened
                self.wfile.write(part)
                left -= len(part)
        if left and self.command != "HEAD":
            self.close_connection = True  # it became shorter: the length that was said is not reached
        self.wfile.flush()

    def _send(self, code: int, kind: str, body: bytes, policy: str = "default-src 'none'") -> None:
        self._head(code, kind, len(body), policy)
        with suppress(ConnectionError):
            if self.command != "HEAD":
                self.wfile.write(body)
            self.wfile.flush()

    def _head(self, code: int, kind: str, size: int, policy: str) -> None:
        self.head_sent = True
        self.send_response(code)
        said = {"Content-Type": kind, "Content-Length": str(size), "Content-Security-Policy": policy} | ALWAYS
        if self.close_connection:
            said["Connection"] = "close"
        for name, value in said.items():
            self.send_header(name, value)
        self.end_headers()

    # ---- what is taken

    def _post(self, inside: str) -> None:
        if not inside.startswith("files/"):
            raise Refused(405, "only files under files/ can be saved")
        if self.headers.get("Content-Type") != "application/octet-stream":
            raise Refused(415, "expected Content-Type: application/octet-stream")
        length = self.headers.get("Content-Length", "")
        if not length.isascii() or not length.isdigit() or "Transfer-Encoding" in self.headers:
            raise Refused(411, "expected the header Content-Length")
        if len(length) > MOST_DIGITS or not len(REPLAY_MAGIC) < int(length) <= MOST_SAVED:
            raise Refused(413, f"expected a replay of at most {MOST_SAVED} bytes, got {length[:MOST_DIGITS]}")
        body = self.rfile.read(int(length))
        if len(body) != int(length):
            raise Refused(400, f"expected {length} bytes, got {len(body)}")
        saved = save(self.server.root, inside.removeprefix("files/"), body)
        self._send(201, TYPES[".json"], json.dumps({"path": saved, "size": len(body)}).encode())
