"""A replay, or a game to play, as one HTML file: engine, script, style and data inside. It opens from disk or from a
mail, asks nobody for anything, and its policy allows exactly its own scripts and style, by their hashes.
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

import numpy as np

from gridmill.viewer.bundle import bundle

PAGE = Path(__file__).with_name("page")
SHEETS = ("style.css", "panels.css")
MOST_FILES = 2  # side by side
# The script is packed too. Unpacked it is an inline script like others: it runs because its hash is named. It comes
# first, to be unpacked while the rest of the page is read.
UNPACK = """(async () => {
  const text = document.getElementById("data-script").textContent;
  const bytes = Uint8Array.fromBase64?.(text) ?? Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
  const stream = new Response(bytes).body.pipeThrough(new DecompressionStream("gzip"));
  const script = document.createElement("script");
  script.textContent = await new Response(stream).text();
  if (document.readyState === "loading") await new Promise((go) => addEventListener("DOMContentLoaded", go));
  document.body.append(script);
})();"""


def page_files(start: Mapping[str, Any], engine: bytes | Path, files: Mapping[str, bytes | Path]) -> dict[str, Any]:
    """What a server gives by name: the page, the engine, what to begin with, and files that are not under its root."""
    own: dict[str, Any] = {
        path.name: path for path in sorted(PAGE.iterdir()) if path.suffix in (".js", ".css", ".html")
    }
    return own | {"engine.wasm": engine, "start.json": json.dumps(start).encode()} | dict(files)


def exported(start: Mapping[str, Any], engine: bytes, files: Sequence[tuple[str, bytes]] = ()) -> str:
    """The page as one file. `start` may name a game to play; `files` are replays by name, two at most."""
    if len(files) > MOST_FILES:
        raise ValueError(f"expected at most {MOST_FILES} replays in one page, got {len(files)}")
    modules = {path.name: path.read_text("utf-8") for path in PAGE.glob("*.js")}
    script, early = bundle(modules, "main.js"), bundle(modules, "early.js")
    style = "\n".join((PAGE / name).read_text("utf-8") for name in SHEETS)
    named = [{"name": name, "inside": f"data-file-{number}"} for number, (name, _) in enumerate(files)]
    islands = [
        _island("data-script", "application/octet-stream", base64.b64encode(_packed(script.encode())).decode()),
        f"<script>{UNPACK}</script>",
        _island("data-start", "application/json", _json(dict(start) | {"files": named})),
        _island("data-engine", "application/octet-stream", _seven_bits(_packed(engine))),
        f"<script>{early}</script>",
        *(
            _island(f"data-file-{number}", "application/octet-stream", _seven_bits(data))
            for number, (_, data) in enumerate(files)
        ),
    ]
    policy = (
        f"default-src 'none'; script-src '{_hash(UNPACK)}' '{_hash(early)}' '{_hash(script)}' 'wasm-unsafe-eval'; "
        f"style-src '{_hash(style)}'; img-src data: blob:; base-uri 'none'; form-action 'none'"
    )
    text = (PAGE / "index.html").read_text("utf-8")
    text = re.sub(r'<link rel="stylesheet"[^>]*>\n', "", text)
    head = f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n<style>{style}</style>\n</head>'
    text = text.replace("</head>", head)
    return text.replace('<script type="module" src="main.js"></script>', "\n".join(islands))


def _island(name: str, kind: str, text: str) -> str:
    """Data that no browser runs: its type is no script's."""
    return f'<script type="{kind}" id="{name}">{text}</script>'


def _json(value: Any) -> str:
    """JSON that cannot end its element, whatever names are in it."""
    return json.dumps(value).replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


def _packed(data: bytes) -> bytes:
    return gzip.compress(data, 9, mtime=0)


# Characters that would not come back as they were written, or could end the element, stand 256 places higher.
MOVED = {code: 256 + code for code in (0, ord("\n"), ord("\r"), ord("<"))}


def _seven_bits(data: bytes) -> str:
    """Seven bits a character, as page/seven_bits.js reads them: a seventh longer than the bytes (base64: a third)."""
    bits = np.unpackbits(np.frombuffer(data, np.uint8))
    whole = np.concatenate((bits, np.zeros(-len(bits) % 7, np.uint8))).reshape(-1, 7)
    return (np.packbits(whole, axis=1) >> 1).tobytes().decode("ascii").translate(MOVED)


def _hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
