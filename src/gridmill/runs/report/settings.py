"""The settings of a run as tables; those of its game, which are many, behind a click."""

from __future__ import annotations

import json
from collections.abc import Mapping
from html import escape
from typing import Any

from gridmill.config import flatten
from gridmill.curriculum import short_settings


def setting_tables(settings: Mapping[str, Any]) -> str:
    if not settings:
        return ""
    groups: dict[str, dict[str, Any]] = {"": {}}
    for name, value in settings.items():
        if isinstance(value, dict) and value:
            groups[name] = flatten(short_settings(value) if name == "curriculum" else value)
        else:
            groups[""][name] = value
    game = groups.pop("game", {})
    tables = "".join(_table(name or "run", rows) for name, rows in groups.items() if rows)
    whole = f"<details><summary>the game, {len(game)} settings</summary>{_table('game', game)}</details>"
    return f'<section><h2>Settings</h2><div class="settings">{tables}</div>{whole if game else ""}</section>'


def _table(title: str, rows: Mapping[str, Any]) -> str:
    cells = "".join(
        f"<tr><th>{escape(name)}</th><td>{escape(value_text(value))}</td></tr>" for name, value in rows.items()
    )
    return f"<table><caption>{escape(title)}</caption>{cells}</table>"


def value_text(value: Any) -> str:
    """A setting as people write it."""
    if isinstance(value, bool) or value is None:
        return json.dumps(value)
    return f"{value:,}".replace(",", " ") if isinstance(value, int) else str(value)
