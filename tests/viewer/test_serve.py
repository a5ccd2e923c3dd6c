"""The server on loopback: what it gives and takes, and to whom; rows X3, X4 and L2 of the promises."""

from __future__ import annotations

import asyncio
import http.client
import json
import os
import socket
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast
from urllib.parse import urlsplit

import pytest
from typer.testing import CliRunner

from gridmill import cli
from gridmill.viewer import engine, files
from gridmill.viewer.files import REPLAY_MAGIC
from gridmill.viewer.serve import MOST_SAVED, Server, _Http, serve

PAGE = {"index.html": b"<!doctype html>page", "engine.wasm": b"\0asm", "app.js": b"export {}"}
SECRET = b"the secret outside"
REPLAY = REPLAY_MAGIC + b"2\n{}\n"


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    top = tmp_path_factory.mktemp("served")
    inside = top / "runs"
    (inside / "one" / "replays").mkdir(parents=True)
    (inside / "one" / "report.html").write_text("<p>report")
    (inside / "one" / "metrics.jsonl").write_text('{"epoch": 1}\n')
    (inside / "one" / "replays" / "a b.replay").write_bytes(REPLAY)
    (inside / "one" / "policy.safetensors").write_bytes(SECRET)
    (inside / "one" / ".hidden.json").write_bytes(SECRET)
    (inside / ".git").mkdir()
    (inside / ".git" / "config.json").write_bytes(SECRET)
    (top / "outside.json").write_bytes(SECRET)
    (top / "runs-beside").mkdir()  # its path begins with that of the root
    (top / "runs-beside" / "x.json").write_bytes(SECRET)
    (inside / "out.json").symlink_to(top / "outside.json")
    (inside / "up").symlink_to(top)
    (inside / "shown.json").symlink_to(inside / ".git" / "config.json")
    (inside / "shown").symlink_to(inside / ".git")
    (inside / "shadow.json").symlink_to("/etc/passwd")
    (inside / "loop.json").symlink_to(inside / "loop.json")
    (inside / "inner.jsonl").symlink_to(inside / "one" / "metrics.jsonl")
    (inside / "folder.json").mkdir()
    os.mkfifo(inside / "pipe.json")
    return inside


@pytest.fixture(scope="module")
def server(root: Path) -> Iterator[Server]:
    with serve(PAGE, root) as running:
        yield running


def ask(
    server: Server, path: str | bytes, method: str = "GET", body: bytes = b"", **headers: str | None
) -> tuple[int, dict[str, str], bytes]:
    """A request byte by byte, so that nothing tidies it up; `_` in a header is `-`, None leaves one out."""
    given: dict[str, str | None] = {"Host": f"127.0.0.1:{server.port}", "Connection": "close"}
    if body:
        given["Content-Length"] = str(len(body))
    given |= {name.replace("_", "-"): value for name, value in headers.items()}
    lines = [f"{name}: {value}" for name, value in given.items() if value is not None]
    raw = path if isinstance(path, bytes) else path.encode()
    with socket.create_connection(("127.0.0.1", server.port), timeout=10) as line:
        line.sendall(method.encode() + b" " + raw + b" HTTP/1.1\r\n" + "\r\n".join(lines).encode() + b"\r\n\r\n" + body)
        answer = http.client.HTTPResponse(line, method=method)
        answer.begin()
        return answer.status, dict(answer.getheaders()), answer.read()


def test_it_gives_the_page_and_files(server: Server, root: Path) -> None:
    token = f"/{server.token}/"
    assert server.url == f"http://127.0.0.1:{server.port}{token}"
    status, headers, body = ask(server, token)
    assert (status, body) == (200, PAGE["index.html"])
    assert headers["Content-Type"] == "text/html; charset=utf-8"
    assert "default-src 'none'" in headers["Content-Security-Policy"]
    assert "unsafe-inline" not in headers["Content-Security-Policy"]
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert headers["Referrer-Policy"] == "no-referrer"
    assert not [name for name in headers if name.lower().startswith("access-control")]
    assert ask(server, token + "engine.wasm")[1]["Content-Type"] == "application/wasm"
    assert ask(server, token + "app.js?v=1")[2] == b"export {}"
    assert ask(server, token + "files/one/replays/a%20b.replay")[2] == REPLAY
    assert server.file_url(root / "one" / "replays" / "a b.replay") == f"{server.url}files/one/replays/a%20b.replay"
    assert ask(server, token + "files/inner.jsonl")[2] == b'{"epoch": 1}\n'  # a link that stays inside
    status, headers, body = ask(server, token + "files/one/report.html", "HEAD")
    assert (status, headers["Content-Length"], body) == (200, "9", b"")
    assert "sandbox" in headers["Content-Security-Policy"]  # a page from a run's folder has no rights here


def test_it_lists_what_it_would_give(server: Server) -> None:
    found = json.loads(ask(server, f"/{server.token}/files.json")[2])
    assert [one["path"] for one in found] == ["one/metrics.jsonl", "one/report.html", "one/replays/a b.replay"]


def test_a_page_file_may_be_a_path(tmp_path: Path) -> None:
    (tmp_path / "x.css").write_text("p{}")
    with serve({"x.css": tmp_path / "x.css"}, tmp_path) as running:
        assert ask(running, f"/{running.token}/x.css")[2] == b"p{}"


WAYS_OUT = [
    "../outside.json", "..%2foutside.json", "%2e%2e/outside.json", "%2e%2e%2foutside.json", ".%2e/outside.json",
    "%2E%2E/outside.json", "%252e%252e/outside.json", "%252e%252e%252foutside.json", "one/../../outside.json",
    "one/%2e%2e/%2e%2e/outside.json", "one/./report.html", "./one/report.html", "one//report.html", "/one/report.html",
    "one/../one/report.html", "..\\outside.json", "..%5coutside.json", "%2e%2e%5coutside.json", "one\\report.html",
    "one%5creport.html", "..;/outside.json", "..%00/outside.json", "....//outside.json", "..../outside.json",
    "/etc/passwd", "//etc/passwd", "%2fetc%2fpasswd", "///etc/passwd", "file:///etc/passwd", "/etc/hostname.json",
    "C:/outside.json", "C:%5coutside.json", "c:outside.json", "%5c%5chost%5cshare%5cx.json", "~/x.json", "~root/x.json",
    "one/report.html%00.json", "one/policy.safetensors%00.json", "one/policy.safetensors", "one/policy.safetensors/",
    "one/.hidden.json", ".git/config.json", "%2egit/config.json", "one/report.html/", "one/report.html/..", "one",
    "one/", "",
    "out.json", "shadow.json", "loop.json", "up/outside.json", "up/runs-beside/x.json", "../runs-beside/x.json",
    "folder.json", "pipe.json", "one/nothing.json", "one/report.HTML", "one/%ff%fe.json", "one/%c0%ae%c0%ae/x.json",
    "one/" + "a" * 300 + ".json", "a/" * 2000 + "x.json", "one/report.html%0d%0aX:y", "one/report.html%0a",
    "one/%7f.json",
    "%2e%2e/" * 20 + "etc/passwd", "..%c0%af..%c0%afetc/passwd", "..%e0%80%af/outside.json",
    "\uff0e\uff0e/outside.json",
    "/proc/self/environ", "one/replays/../../../outside.json", "shown.json", "shown/config.json",
]  # fmt: skip


@pytest.mark.X3
def test_no_path_leads_out(server: Server) -> None:
    assert len(WAYS_OUT) >= 60
    for path in WAYS_OUT:
        for target in (f"/{server.token}/files/{path}", f"/{server.token}/{path}"):
            status, _, body = ask(server, target)
            if target.endswith(f"{server.token}/"):
                continue  # the page itself
            assert status == 404, (target, status)
            assert SECRET not in body
            assert b"root:" not in body


HOSTILE_HOSTS = [
    "evil.example", "evil.example:{port}", "127.0.0.1", "127.0.0.1:1", "localhost", "localhost.evil.example:{port}",
    "127.0.0.1.evil.example:{port}", "evil.example:{port}@127.0.0.1:{port}", "192.168.0.7:{port}", "0.0.0.0:{port}",
    "169.254.169.254:{port}", "", "[::]:{port}", "2130706433:{port}",
]  # fmt: skip
HOSTILE_ORIGINS = [
    "http://evil.example", "https://127.0.0.1:{port}", "http://127.0.0.1", "http://127.0.0.1:1", "null", "",
    "http://localhost:{port}", "http://127.0.0.1:{port}.evil.example", "http://127.0.0.1:{port}/",
    "http://[::1]:{port}", "file://", "chrome-extension://abc", "HTTP://127.0.0.1:{port}",
]  # fmt: skip


@pytest.mark.X4
@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--host", "nonsense"], "--host: expected an IP address or localhost, got `nonsense`"),
        (
            ["--host", "0.0.0.0"],
            "--host 0.0.0.0 can be reached from other machines: add --allow-remote if that is meant",
        ),
        (["--export", "/proc/x.html"], "cannot write `/proc/x.html`: "),
    ],
)
def test_what_would_be_refused_is_refused_before_the_engine_is_built(
    words: list[str], said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a checkout that takes minutes."""

    def never() -> bytes:
        raise AssertionError

    monkeypatch.setattr(engine, "read", never)
    done = CliRunner().invoke(cli.app, ["view", "toy", *words])
    assert (done.exit_code, done.stdout) == (2, "")
    assert done.stderr.startswith(f"gridmill: {said}")


def test_other_hosts_and_origins_are_refused(server: Server, root: Path) -> None:
    assert len(HOSTILE_HOSTS) >= 12
    assert len(HOSTILE_ORIGINS) >= 12
    page, port = f"/{server.token}/", server.port
    for host in HOSTILE_HOSTS:
        assert ask(server, page, Host=host.format(port=port))[0] == 403, host
    assert ask(server, page, Host=None)[0] in (400, 403)
    assert ask(server, page, Host=f"127.0.0.1:{port}\r\nHost: evil.example")[0] == 403
    for good in (f"localhost:{port}", f"127.0.0.1:{port}", f"[::1]:{port}"):
        assert ask(server, page, Host=good)[0] == 200
    save = f"{page}files/one/hostile.replay"
    kind = {"Content_Type": "application/octet-stream"}
    for origin in HOSTILE_ORIGINS:
        status, headers, _ = ask(server, page, Origin=origin.format(port=port))
        assert status == 403, origin
        assert not [name for name in headers if name.lower().startswith("access-control")]
        assert ask(server, save, "POST", REPLAY, Origin=origin.format(port=port), **kind)[0] == 403, origin
    assert ask(server, save, "POST", REPLAY, **kind)[0] == 403  # no Origin at all
    assert ask(server, page, Sec_Fetch_Site="cross-site", Sec_Fetch_Mode="cors")[0] == 403
    assert not (root / "one" / "hostile.replay").exists()


@pytest.mark.X4
def test_without_the_token_nothing_is_given(server: Server) -> None:
    token = server.token
    for path in ("/", "/index.html", "/files.json", "/files/one/report.html", f"/{token[:-1]}/", f"/{token}x/",
                 f"/{token.swapcase()}/", "//", f"/x/{token}/", f"/?{token}", "*", f"http://127.0.0.1/{token}/",
                 "/\u00e9/"):  # fmt: skip
        status, _, body = ask(server, path)
        assert status == 403, path
        assert token.encode() not in body
    assert ask(server, f"/{token}")[0] == 404


@pytest.mark.X4
def test_it_listens_on_loopback_unless_told(tmp_path: Path) -> None:
    with serve(PAGE, tmp_path, host="localhost") as running:
        assert running.url.startswith("http://127.0.0.1:")
    for host in ("0.0.0.0", "192.168.1.5", "::"):
        with pytest.raises(ValueError, match="--allow-remote"):
            serve(PAGE, tmp_path, host=host)
    with pytest.raises(ValueError, match=r"expected an IP address or localhost, got `example\.org`"):
        serve(PAGE, tmp_path, host="example.org")
    with serve(PAGE, tmp_path, host="0.0.0.0", allow_remote=True) as running:
        page = f"/{running.token}/"
        assert ask(running, page, Host=f"192.168.1.5:{running.port}")[0] == 200  # an address cannot be redirected
        assert ask(running, page, Host=f"evil.example:{running.port}")[0] == 403


def test_the_port_of_http_may_be_left_out() -> None:
    """As browsers do: a server at port 80 is asked for by its name alone."""

    def is_own(host: str, port: int) -> bool:
        return _Http.is_own(cast(Any, SimpleNamespace(server_address=("127.0.0.1", port), only_loopback=True)), host)

    for host in ("127.0.0.1", "localhost", "[::1]"):
        assert is_own(host, 80)
        assert is_own(f"{host}:80", 80)
        assert not is_own(host, 8080)
    for host in ("evil.example", "", "192.168.0.7", "127.0.0.1:", ":80", "[::]", "127.0.0.1:8080"):
        assert not is_own(host, 80), host


def test_a_file_that_fails_while_it_is_sent_ends_the_answer(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """A second head in the middle would be taken for the file's own bytes."""

    class Failing:
        def read(self, size: int) -> bytes:
            raise OSError(5, "Input/output error")

    @contextmanager
    def opened(*where: Any) -> Iterator[tuple[Any, int, str, str]]:
        yield Failing(), 1_000, "text/plain", "default-src 'none'"

    monkeypatch.setattr("gridmill.viewer.serve.opened", opened)
    with socket.create_connection(("127.0.0.1", server.port), timeout=10) as line:
        head = f"GET /{server.token}/files/one/report.html HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\n\r\n"
        line.sendall(head.encode())
        answer = b""
        while part := line.recv(65536):  # the server ends it, though nobody asked for `Connection: close`
            answer += part
    assert answer.count(b"HTTP/1.1 ") == 1
    assert answer.endswith(b"\r\n\r\n")


def test_a_large_tree_is_not_walked_to_its_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(20):
        folder = tmp_path / f"{number:02}"
        folder.mkdir()
        (folder / "a.json").touch()
        (folder / "code.py").touch()
    assert len(files.listed(tmp_path)) == 20
    monkeypatch.setattr(files, "MOST_VISITED", 30)  # 20 folders, then two files in each
    assert [one["path"] for one in files.listed(tmp_path)] == [f"{number:02}/a.json" for number in range(5)]


def test_a_fork_is_saved_as_a_new_file_only(server: Server, root: Path) -> None:
    base = f"/{server.token}/files/"
    own = {"Origin": f"http://127.0.0.1:{server.port}", "Content_Type": "application/octet-stream"}

    def post(path: str, body: bytes = REPLAY, **more: str | None) -> int:
        return ask(server, base + path, "POST", body, **(own | more))[0]

    try:
        assert post("one/replays/fork%201.replay") == 201
        assert (root / "one" / "replays" / "fork 1.replay").read_bytes() == REPLAY
        before = (root / "one" / "metrics.jsonl").read_bytes()
        refused = {
            "one/replays/fork%201.replay": 409,  # there is one
            "one/report.html": 403,
            "one/metrics.jsonl": 403,
            "one/x.replay.html": 403,
            "nowhere/x.replay": 404,
            "../x.replay": 404,
            "%2e%2e/x.replay": 404,
            "up/x.replay": 404,
            "one/.x.replay": 404,
            "one/report.html/x.replay": 403,
        }
        for path, status in refused.items():
            assert post(path) == status, path
        assert post("one/y.replay", b"<script>" * 4) == 415
        assert post("one/y.replay", Content_Type="text/plain") == 415
        assert post("one/y.replay", Content_Length=None) == 411
        assert post("one/y.replay", Content_Length="-1") == 411
        assert post("one/y.replay", Content_Length=str(MOST_SAVED + 1)) == 413
        assert post("one/y.replay", Content_Length="9" * 5_000) == 413  # more digits than Python reads as a number
        assert post("one/y.replay", Transfer_Encoding="chunked") == 411
        assert ask(server, f"/{server.token}/index.html", "POST", REPLAY, **own)[0] == 405
        for method in ("PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "CONNECT"):
            assert ask(server, base + "one/report.html", method, **own)[0] == 405
        assert (root / "one" / "metrics.jsonl").read_bytes() == before
        assert sorted(path.name for path in root.rglob("*.replay")) == ["a b.replay", "fork 1.replay"]
    finally:
        (root / "one" / "replays" / "fork 1.replay").unlink(missing_ok=True)


def test_broken_requests_do_not_hurt(server: Server) -> None:
    for raw in (
        b"",
        b"\r\n\r\n",
        b"GET\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"\xff" * 70_000,
        b"GET / HTTP/1.1\r\n" * 200,
    ):
        with socket.create_connection(("127.0.0.1", server.port), timeout=10) as line:
            line.sendall(raw)
            line.shutdown(socket.SHUT_WR)
            while line.recv(65536):
                pass
    assert ask(server, f"/{server.token}/")[0] == 200


@pytest.mark.L2
def test_many_clients_at_once(server: Server) -> None:
    """The every-change part: 50 connections that stay open get all their answers."""
    times, errors = asyncio.run(_load(server.url, clients=50, rate=1e9, requests=10))
    assert (len(times), errors) == (500, 0)


ALONE = """
import sys
from pathlib import Path
from gridmill.viewer.serve import serve
with serve({"": b"", "index.html": b"page", "engine.wasm": bytes(300_000)}, Path(sys.argv[1])) as running:
    print(running.url, flush=True)
    sys.stdin.read()
"""


@pytest.mark.L2
@pytest.mark.long
def test_load(root: Path, record_property: Callable[[str, object], None]) -> None:
    """50 clients x 20 requests a second for a minute: p99 within 50 ms, no errors. The server has its own process."""
    with subprocess.Popen(
        [sys.executable, "-c", ALONE, str(root)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        url = process.stdout.readline().strip()
        times, errors = asyncio.run(_load(url, clients=50, rate=20.0, requests=20 * 60))
        assert process.stdin is not None
        process.stdin.close()
    p99 = statistics.quantiles(times, n=100)[98]
    middle = 1e3 * statistics.median(times)
    told = f"{len(times)} requests, p50 {middle:.1f} ms, p99 {1e3 * p99:.1f} ms, {errors} errors"
    record_property("figure", told)
    assert (len(times), errors) == (60_000, 0)
    assert p99 <= 0.050


async def _load(url: str, clients: int, rate: float, requests: int) -> tuple[list[float], int]:
    address = urlsplit(url)
    paths = ["", "engine.wasm", "files/one/report.html", "files/one/replays/a%20b.replay"]
    times: list[float] = []
    errors = 0

    async def one(number: int) -> None:
        nonlocal errors
        reader, writer = await asyncio.open_connection(address.hostname, address.port)
        due = time.perf_counter() + number / clients / rate
        for turn in range(requests):
            await asyncio.sleep(max(0.0, due - time.perf_counter()))
            due += 1 / rate
            began = time.perf_counter()
            path = paths[turn % len(paths)]
            writer.write(f"GET {address.path}{path} HTTP/1.1\r\nHost: {address.netloc}\r\n\r\n".encode())
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
            length = next(line for line in head.splitlines() if line.startswith("Content-Length"))
            await reader.readexactly(int(length.split()[1]))
            times.append(time.perf_counter() - began)
            errors += " 200 " not in head.splitlines()[0]
        writer.close()
        await writer.wait_closed()

    await asyncio.gather(*(one(number) for number in range(clients)))
    return times, errors
