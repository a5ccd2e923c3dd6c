"""`gridmill artifacts`: every artefact of the workshop in a list, and all of them on one page with their pictures.

The page is one HTML file without scripts: a section for each artefact, with machine, commit, command, seed, switches
and samples as strips. Artefacts may be anybody's: whatever they say is escaped, and the page's policy allows no script.
It reads files and measures nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

from gridmill.config.files import refuse_unwritable, write_named
from gridmill.config.text import ascii_only, count, printable, short, table
from gridmill.workshop import artefact, drawing
from gridmill.workshop.statistics import median

TITLES = ("date (UTC)", "tool", "commit", "exit", "first figure")
POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
MOST_SHOWN = 2_000  # characters of a fact
STYLE = (
    "body{font:14px sans-serif;max-width:60em;margin:2em auto;padding:0 1em;color:#222}code{background:#f3f3f3}"
    "section{border-top:1px solid #ccc;margin-top:1.5em}dl{display:grid;grid-template-columns:8em auto;gap:.2em}"
    "dd{margin:0}svg{max-width:100%;height:auto}table{border-collapse:collapse}"
    "td,th{padding:.2em .8em .2em 0;text-align:left}"
)


def found(folders: Sequence[Path]) -> tuple[list[tuple[Path, dict[str, Any]]], list[str]]:
    """Artefacts under the folders, oldest first, and JSON files there that are none."""
    known, others = [], []
    for folder in folders:
        if not folder.is_dir():
            raise ValueError(f"expected a folder of artifacts, got `{folder}`")
        for path in sorted(folder.rglob("*.json")):
            try:
                known.append((path, artefact.read(path)))
            except (ValueError, OSError) as reason:
                others.append(str(reason))
    return sorted(known, key=lambda one: str(one[1]["machine"].get("date", ""))), others


def headline_of(record: Mapping[str, Any]) -> str:
    """The first sample's median with its unit."""
    for name, sample in record["samples"].items():
        if sample["values"]:
            return f"{short(median(sample['values']))} {sample['unit']} ({name})"
    return ""


def rows_of(known: Sequence[tuple[Path, Mapping[str, Any]]]) -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = []
    for _, record in known:
        made = record["machine"]
        ended = record["exit_code"] if record["finished"] else "stopped"
        cells = ((made["date"], 16), (record["kind"], 16), (made["commit"]["hash"] or "none", 8), (ended, 8))
        rows.append((*(printable(cell, most) for cell, most in cells), printable(headline_of(record), 34)))
    return rows


def lines_of(known: Sequence[tuple[Path, Mapping[str, Any]]]) -> list[str]:
    """The list for people."""
    return [ascii_only(line) for line in table(TITLES, rows_of(known), left=5)]


def page(known: Sequence[tuple[Path, Mapping[str, Any]]]) -> str:
    """All of them as one page."""
    rows = "".join(_row(n, cells) for n, cells in enumerate(rows_of(known)))
    sections = "".join(_section(n, path, record) for n, (path, record) in enumerate(known))
    policy = f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">'
    head = f'<!doctype html><meta charset="utf-8">{policy}<title>gridmill artifacts</title><style>{STYLE}</style>'
    top = "".join(f"<th>{title}</th>" for title in TITLES)
    return f"{head}<h1>Artefacts</h1><table><tr>{top}</tr>{rows}</table>{sections}"


def _row(number: int, cells: Sequence[str]) -> str:
    date, tool, *others = map(escape, cells)
    rest = "".join(f"<td>{cell}</td>" for cell in others)
    return f'<tr><td>{date}</td><td><a href="#a{number}">{tool}</a></td>{rest}</tr>'


def _section(number: int, path: Path, record: Mapping[str, Any]) -> str:
    made = record["machine"]
    switched = made.get("switches")
    switches = " ".join(f"{name}={value}" for name, value in switched.items()) if isinstance(switched, dict) else ""
    facts = {
        "file": path.name,
        "command": " ".join(map(str, made["command"])),
        "machine": f"{made['cpu']['model']}, {made['cpu']['usable_cores']} of {made['cpu']['cores']} cores",
        "commit": f"{made['commit']['hash']}{' with changes' if made['commit']['dirty'] else ''}",
        "seed": record["seed"],
        "switches": switches or "none",
        "ended": record["exit_code"] if record["finished"] else f"stopped ({record['exit_code']})",
    }
    listed = "".join(
        f"<dt>{name}</dt><dd><code>{escape(printable(value, MOST_SHOWN))}</code></dd>" for name, value in facts.items()
    )
    title = escape(printable(f"{record['kind']}, {made['date'][:16]}"))
    return f'<section id="a{number}"><h2>{title}</h2><dl>{listed}</dl>{drawing.strips(record["samples"])}</section>'


def run(folders: Sequence[Path], out: Path | None) -> int:
    """Print the list; with `out` write the page."""
    known, others = found(folders or [artefact.FOLDER])
    if not known:
        raise ValueError(f"no artifacts under {', '.join(map(str, folders or [artefact.FOLDER]))}")
    print("\n".join(lines_of(known)))
    if others:
        print(f"{count(len(others), 'other JSON file')} left out")
    if out is not None:
        refuse_unwritable(out)
        write_named(out, page(known).encode("utf-8", "backslashreplace"))
        print(f"wrote {out}")
    return 0
