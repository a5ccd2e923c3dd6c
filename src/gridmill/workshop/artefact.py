"""Artefacts: the one form in which every tool of the workshop leaves what it found, and where.

    {"schema": 1, "kind": "ab", "machine": {date, command, commit, cpu, ..., switches}, "seed": 0, "settings": {...},
     "samples": {name: {"unit", "better": "higher" | "lower", "values": [...]}}, "finished": true, "exit_code": 0, ...}

What else a tool knows stands beside these keys. A tool that is interrupted leaves what it has, with finished = false.
Nothing here measures, prints or draws.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from gridmill.config.files import read_plain, refuse_unwritable, write_named
from gridmill.config.text import clipped
from gridmill.workshop import machine

SCHEMA = 1
FOLDER = Path("artifacts")
KEYS = ("schema", "kind", "machine", "seed", "settings", "samples", "finished", "exit_code")
MADE_WITH = {
    "date": str,
    "command": list,
    "commit.hash": str | None,
    "commit.dirty": bool | None,
    "cpu.model": str,
    "cpu.cores": int | None,
    "cpu.usable_cores": int,
}
MOST = 1 << 24  # bytes of a file that is looked into; an artefact has some 20 kB
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
    inside = _folder(str(found["kind"])) if folder is None else folder
    plain = re.sub(r"[^\w.-]", "-", name.split("/")[-1])
    return inside / f"{datetime.now(UTC):%Y%m%dT%H%M%SZ}-{commit}-{plain}.json"


def _folder(kind: str) -> Path:
    return FOLDER / kind.replace(" ", "-")


def write(found: Mapping[str, Any], path: Path) -> Path:
    """Whole or not at all; the path again."""
    write_named(path, (json.dumps(found, indent=1, default=str) + "\n").encode())
    return path


def refuse_unsaved(kind: str, output: Path | None) -> None:
    """ValueError if what a tool is going to find could not be saved, in the file that is asked for or in FOLDER."""
    refuse_unwritable(output or _folder(kind) / "x.json")


def plain_json(path: Path) -> Any:
    """What a plain file says; None if it is not JSON. OSError if it is not a plain file, or too large for one."""
    try:
        return json.loads(read_plain(path, MOST))
    except (ValueError, RecursionError):
        return None


def _part(tree: Any, path: str) -> Any:
    """A part of a tree; Ellipsis, which is of no kind that JSON has, if it is not there."""
    for name in path.split("."):
        if not isinstance(tree, dict) or name not in tree:
            return ...
        tree = tree[name]
    return tree


def _is_sample(one: Any) -> bool:
    if not isinstance(one, dict) or not isinstance(one.get("values"), list):
        return False
    return all(isinstance(one.get(key), str) for key in ("unit", "better")) and all(map(_is_number, one["values"]))


def _is_number(value: Any) -> bool:
    try:
        return isinstance(value, int | float) and math.isfinite(value)
    except OverflowError:  # a file may have a number of any length
        return False


def _is_name(value: Any) -> bool:
    return isinstance(value, str) and value[:1].isalnum() and Path(value).name == value


def read(path: Path, kind: str | None = None) -> dict[str, Any]:
    """An artefact; refused if it is none, or of another tool than asked for."""
    found = plain_json(path)
    missing = [key for key in KEYS if not isinstance(found, dict) or key not in found]
    if missing or not all(isinstance(found[key], dict) for key in ("machine", "settings", "samples")):
        raise ValueError(f"`{path}` is not an artifact of the workshop")
    for part, form in MADE_WITH.items():
        if not isinstance(_part(found["machine"], part), form):
            raise ValueError(f"`{path}` is not an artifact of the workshop: machine.{part} is missing or no such value")
    for name, one in found["samples"].items():
        if not _is_sample(one):
            what = f"samples.{clipped(name)} is not a list of values with a unit"
            raise ValueError(f"`{path}` is not an artifact of the workshop: {what}")
    if found["schema"] != SCHEMA:
        raise ValueError(f"`{path}`: expected an artifact of schema {SCHEMA}, got {found['schema']!r:.80}")
    if kind is not None and found["kind"] != kind:
        got = clipped(str(found["kind"]))
        raise ValueError(f"`{path}`: expected an artifact of `gridmill {kind}`, got one of `gridmill {got}`")
    return dict(found)


def continued(path: Path, kind: str, settings: Mapping[str, Any], *own: str) -> dict[str, Any]:
    """What a tool that was stopped has left, to go on from; refused if it measured something else, or other code.

    `own` are the keys that only this tool has, and needs; `run` is the name of a run, never a way to another folder.
    """
    found, now = read(path, kind), machine.describe()
    for key in own:
        if key not in found or (key == "run" and not _is_name(found[key])):
            got = f"{found[key]!r:.80}" if key in found else "none"
            raise ValueError(f"`{path}`: expected its `{key}`, got {got}; start over without --resume")
    if found["settings"] != json.loads(json.dumps(settings, default=str)):
        raise ValueError(f"`{path}` was measured with other settings; start over without --resume")
    for what, key in (("commit", "hash"), ("cpu", "model")):
        then, here = found["machine"][what][key], now[what][key]
        if then != here:
            raise ValueError(
                f"`{path}` was measured with the {what} {then}, this is {here}; start over without --resume"
            )
    return found
