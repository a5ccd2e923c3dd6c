"""Artefacts: the one form in which every tool of the workshop leaves what it found, and where.

    {"schema": 1, "kind": "ab", "machine": {date, command, commit, cpu, ..., switches}, "seed": 0, "settings": {...},
     "samples": {name: {"unit", "better": "higher" | "lower", "values": [...]}}, "finished": true, "exit_code": 0, ...}

What else a tool knows stands beside these keys. A tool that is interrupted leaves what it has, with finished = false.
Nothing here measures, prints or draws.
"""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from gridmill.config.files import kind_of, write_whole
from gridmill.workshop import machine

SCHEMA = 1
FOLDER = Path("artifacts")
KEYS = ("schema", "kind", "machine", "seed", "settings", "samples", "finished", "exit_code")
MADE_WITH = ("date", "command", "commit.hash", "commit.dirty", "cpu.model", "cpu.cores", "cpu.usable_cores")
INTERRUPTED = 130  # what a tool ends with that Ctrl-C stopped
STOPPED = (130, 143)  # what training ends with after Ctrl-C and SIGTERM


def sample(values: Sequence[float], unit: str, better: str = "higher") -> dict[str, Any]:
    """One list of measured values."""
    return {"unit": unit, "better": better, "values": [float(value) for value in values]}


def record(
    kind: str, seed: int, settings: Mapping[str, Any], samples: Mapping[str, Mapping[str, Any]], **own: Any
) -> dict[str, Any]:
    """The record of a run of a tool, made where it runs; `own` is what only this tool knows."""
    head = {"schema": SCHEMA, "kind": kind, "machine": machine.describe(), "seed": seed, "settings": dict(settings)}
    return head | {"samples": dict(samples), "finished": True, "exit_code": 0} | own


def place(found: Mapping[str, Any], name: str, folder: Path | None = None) -> Path:
    """Where a record belongs: `artifacts/<kind>/<utc>-<commit>-<name>.json`; of a path only its last name."""
    commit = str(found["machine"]["commit"]["hash"] or "none")[:10]
    inside = FOLDER / str(found["kind"]).replace(" ", "-") if folder is None else folder
    plain = re.sub(r"[^\w.-]", "-", name.split("/")[-1])
    return inside / f"{datetime.now(UTC):%Y%m%dT%H%M%SZ}-{commit}-{plain}.json"


def write(found: Mapping[str, Any], path: Path) -> Path:
    """Whole or not at all; the path again."""
    write_whole(path, (json.dumps(found, indent=1, default=str) + "\n").encode())
    return path


def refuse_unwritable(path: Path) -> None:
    """Refuse a file that could not be written, before anything is measured for it.

    A file is made beside it and removed: permissions alone say too little, root has them in /proc too.
    """
    if path.exists() and not path.is_file():
        raise ValueError(f"expected a file to write, got {kind_of(path)}: `{path}`")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=path.parent, prefix=f"{path.name}."):
            pass
    except OSError as error:
        raise ValueError(f"cannot write `{path}`: {error.strerror or error}") from None


def _has(tree: Any, path: str) -> bool:
    for name in path.split("."):
        if not isinstance(tree, dict) or name not in tree:
            return False
        tree = tree[name]
    return True


def _numbers(values: Any) -> bool:
    return isinstance(values, list) and all(isinstance(value, int | float) for value in values)


def read(path: Path, kind: str | None = None) -> dict[str, Any]:
    """An artefact; refused if it is none, or of another tool than asked for."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError):
        found = None
    missing = [key for key in KEYS if not isinstance(found, dict) or key not in found]
    if missing or not isinstance(found["samples"], dict) or not isinstance(found["machine"], dict):
        raise ValueError(f"`{path}` is not an artifact of the workshop")
    for part in MADE_WITH:
        if not _has(found["machine"], part):
            raise ValueError(f"`{path}` is not an artifact of the workshop: machine.{part} is missing")
    for name, one in found["samples"].items():
        if not all(_has(one, key) for key in ("unit", "better", "values")) or not _numbers(one["values"]):
            raise ValueError(
                f"`{path}` is not an artifact of the workshop: samples.{name} is not a list of values with a unit"
            )
    if found["schema"] != SCHEMA:
        raise ValueError(f"`{path}`: expected an artifact of schema {SCHEMA}, got {found['schema']!r}")
    if kind is not None and found["kind"] != kind:
        raise ValueError(f"`{path}`: expected an artifact of `gridmill {kind}`, got one of `gridmill {found['kind']}`")
    return dict(found)


def continued(path: Path, kind: str, settings: Mapping[str, Any]) -> dict[str, Any]:
    """What a tool that was stopped has left, to go on from; refused if it measured something else, or other code."""
    found, now = read(path, kind), machine.describe()
    if found["settings"] != json.loads(json.dumps(settings, default=str)):
        raise ValueError(f"`{path}` was measured with other settings; start over without --resume")
    for what, key in (("commit", "hash"), ("cpu", "model")):
        then, here = found["machine"][what][key], now[what][key]
        if then != here:
            raise ValueError(
                f"`{path}` was measured with the {what} {then}, this is {here}; start over without --resume"
            )
    return found
