"""A replay, or a game to play, as one HTML file: engine, script, style and data inside. It opens from disk and from a mail,
asks nobody for anything, and its policy allows exactly its own script and style, by their hashes.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from gridmill.viewer.bundle import bundle

PAGE = Path(__file__).with_name("page")
SHEETS = ("style.css", "panels.css")
MOST_FILES = 2  # side by side


def page_files(start: Mapping[str, Any], engine: bytes | Path, files: Mapping[str, bytes | Path]) -> dict[str, Any]:
    """What a server gives by name: the page, the engine, what to begin with, and files that are not under its root."""
    own: dict[str, Any] = {path.name: path for path in sorted(PAGE.iterdir()) if path.suffix in (".js", ".css", ".html")}
    return own | {"engine.wasm": engine, "start.json": json.dumps(start).encode()} | dict(files)


def exported(start: Mapping[str, Any], engine: bytes, files: Sequence[tuple[str, bytes]] = ()) -> str:
    """The page as one file. `start` may name a game to play; `files` are replays by name, two at most."""
    if len(files) > MOST_FILES:
        raise ValueError(f"expected at most {MOST_FILES} replays in one page, got {len(files)}")
    script = _thin(bundle({path.name: path.read_text("utf-8") for path in PAGE.glob("*.js")}, "main.js"))
    style = "\n".join((PAGE / name).read_text("utf-8") for name in SHEETS)
    named = [{"name": name, "inside": f"data-file-{number}"} for number, (name, _) in enumerate(files)]
    islands = [
        _island("data-start", "application/json", _json(dict(start) | {"files": named})),
        _island("data-engine", "application/octet-stream", _text(gzip.compress(engine, 9, mtime=0))),
        *(
            _island(f"data-file-{number}", "application/octet-stream", _text(data))
            for number, (_, data) in enumerate(files)
        ),
    ]
    policy = (
        f"default-src 'none'; script-src '{_hash(script)}' 'wasm-unsafe-eval'; style-src '{_hash(style)}'; "
        "img-src data: blob:; base-uri 'none'; form-action 'none'"
    )
    text = (PAGE / "index.html").read_text("utf-8")
    text = re.sub(r'<link rel="stylesheet"[^>]*>\n', "", text)
    head = f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n<style>{style}</style>\n</head>'
    text = text.replace("</head>", head)
    tail = "\n".join([*islands, f"<script>{script}</script>"])
    return text.replace('<script type="module" src="main.js"></script>', tail)


def _island(name: str, kind: str, text: str) -> str:
    """Data that no browser runs: its type is no script's."""
    return f'<script type="{kind}" id="{name}">{text}</script>'


def _json(value: Any) -> str:
    """JSON that cannot end its element, whatever names are in it."""
    return json.dumps(value).replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


def _text(data: bytes) -> str:
    return base64.b64encode(data).decode()


def _hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _thin(script: str) -> str:
    """Without lines that are comments only, and without indentation; nothing else is touched."""
    lines = [line.strip() for line in script.splitlines()]
    kept, inside = [], False
    for line in lines:
        if inside or line.startswith("/*"):
            inside = "*/" not in line
            continue
        if line and not line.startswith("//"):
            kept.append(line)
    thin = "\n".join(kept) + "\n"
    if "</script" in thin.lower() or "<!--" in thin:
        raise ValueError("viewer: the script would end its own element")
    return thin
