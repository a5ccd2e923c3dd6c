"""Writes docs/words.md: every word a grid game can be made of, from the native descriptions (`fields()`).

Headings and their texts come from the Python models, whose names and defaults a test holds equal to the native side.
"""

from __future__ import annotations

import inspect
import typing
from pathlib import Path
from typing import Any

from gridmill import _native, grid
from gridmill.config import Config

PAGE = Path(__file__).resolve().parents[1] / "docs" / "words.md"
INTRO = """# Words

All words that a grid game can use. This page is written by `make docs` from the descriptions in the core
(`fields()` in `native/grid/`), the same that decode and check a game. The models are in `src/gridmill/grid/`.
"""
PARTS = ("Limit", "Converter", "Assembler", "Recipe", "ObjectType", "AgentType", "Collective", "Attack", "Rule", "Area")
MORE_PARTS = ("Event", "Observation", "ObservedValue", "RewardTerm")
UNIONS = {
    "Conditions": grid.Condition,
    "Effects": grid.Effect,
    "Game values": grid.GameValue,
    "Maps": grid.Map,
}


def page() -> str:
    """The whole page as text."""
    schemas = {"Game": _native.GridBatch.schema(), **_native.grid_parts()}
    schemas["AgentType"] = schemas["Game"]["agent"][1]
    schemas["Attack"] = schemas["Game"]["attack"][1]
    schemas["Observation"] = schemas["Game"]["observation"][1]
    schemas["Converter"] = schemas["ObjectType"]["converter"][1]
    schemas["Assembler"] = schemas["ObjectType"]["assembler"][1]
    text = INTRO + "\n## The game and its parts\n"
    for name in ("Game", *PARTS, *MORE_PARTS):
        text += section(getattr(grid, name), schemas[name])
    kinds = _native.grid_kinds()
    for heading, union in UNIONS.items():
        text += f"\n## {heading}\n"
        for model in typing.get_args(typing.get_args(union)[0]):
            text += section(model, kinds[model.model_fields["kind"].default])
    return text


def section(model: type[Config], schema: dict[str, list[Any]]) -> str:
    """One model: what it is, and a line per field."""
    about = " ".join(inspect.getdoc(model).split())  # type: ignore[union-attr]
    lines = [f"\n### {model.__name__}\n\n{about}\n"]
    if schema:
        lines.append("\n| field | type | default | meaning |\n|---|---|---|---|\n")
    lines += [
        f"| `{name}` | {kind} | {shown(kind, default)} | {meaning} |\n"
        for name, (kind, default, meaning) in schema.items()
    ]
    return "".join(lines)


def shown(kind: str, default: Any) -> str:
    if kind in ("struct", "optional", "list", "dict", "tree", "choice"):
        return {"optional": "none", "list": "none", "dict": "none"}.get(kind, "")
    return f"`{default!r}`"


if __name__ == "__main__":
    PAGE.write_text(page())
