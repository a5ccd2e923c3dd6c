"""`gridmill artifacts`: every artefact of the workshop in a list, and all of them on one page with their pictures.

The page is one HTML file without scripts: a section for each artefact, with machine, commit, command, seed, switches
and samples as strips. It reads files and measures nothing.
"""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from gridmill.config.files import write_whole
from gridmill.config.text import count, short, table
from gridmill.workshop import artefact, drawing
from gridmill.workshop.statistics import median

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
        commit = str(made["commit"]["hash"] or "none")[:8]
        ended = str(record["exit_code"]) if record["finished"] else "stopped"
        rows.append((str(made["date"])[:16], str(record["kind"]), commit, ended, headline_of(record)[:34]))
    return rows


def lines_of(known: Sequence[tuple[Path, Mapping[str, Any]]]) -> list[str]:
    """The list for people."""
    return table(("date (UTC)", "tool", "commit", "exit", "first figure"), rows_of(known), left=5)


def page(known: Sequence[tuple[Path, Mapping[str, Any]]]) -> str:
    """All of them as one page."""
    cells = "".join(
        f'<tr><td>{row[0]}</td><td><a href="#a{n}">{html.escape(row[1])}</a></td><td>{row[2]}</td><td>{row[3]}</td>'
        f"<td>{html.escape(row[4])}</td></tr>"
        for n, row in enumerate(rows_of(known))
    )
    sections = "".join(_section(n, path, record) for n, (path, record) in enumerate(known))
    head = f'<!doctype html><meta charset="utf-8"><title>gridmill artifacts</title><style>{STYLE}</style>'
    top = "<tr><th>date (UTC)</th><th>tool</th><th>commit</th><th>exit</th><th>first figure</th></tr>"
    return f"{head}<h1>Artefacts</h1><table>{top}{cells}</table>{sections}"


def _section(number: int, path: Path, record: Mapping[str, Any]) -> str:
    made = record["machine"]
    switches = " ".join(f"{name}={value}" for name, value in made.get("switches", {}).items()) or "none"
    facts = {
        "file": path.name,
        "command": " ".join(made["command"]),
        "machine": f"{made['cpu']['model']}, {made['cpu']['usable_cores']} of {made['cpu']['cores']} cores",
        "commit": f"{made['commit']['hash']}{' with changes' if made['commit']['dirty'] else ''}",
        "seed": record["seed"],
        "switches": switches,
        "ended": record["exit_code"] if record["finished"] else f"stopped ({record['exit_code']})",
    }
    listed = "".join(f"<dt>{name}</dt><dd><code>{html.escape(str(value))}</code></dd>" for name, value in facts.items())
    title = html.escape(f"{record['kind']}, {str(made['date'])[:16]}")
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
        artefact.refuse_unwritable(out)
        write_whole(out, page(known).encode())
        print(f"wrote {out}")
    return 0
