"""The shell of a report: one self-contained document whose policy allows its own style and its own script, by hash."""

from __future__ import annotations

import base64
import hashlib
from html import escape

from gridmill.runs.report.script import SCRIPT
from gridmill.runs.report.style import STYLE


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


# Bars have widths of their own, hence style attributes. Nothing is fetched, whatever a name contains.
POLICY = (
    f"default-src 'none'; script-src {_hash(SCRIPT)}; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
)


def document(title: str, body: str, refresh: int = 0) -> str:
    """A whole page around the elements of a body; with `refresh` it loads itself again after so many seconds."""
    again = f'<meta http-equiv="refresh" content="{refresh}">' if refresh else ""
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">'
        f'{again}<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<meta name="color-scheme" content="light dark">'
        f"<title>{escape(title)}</title><style>{STYLE}</style></head>\n<body><main>\n"
        f"{body}\n</main><script>{SCRIPT}</script></body></html>\n"
    )
