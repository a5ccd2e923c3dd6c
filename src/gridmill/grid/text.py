"""Short English for the parts of a game: who is meant, amounts, tags. Models say the rest about themselves."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

Names = Mapping[str, str]  # actor, target and their collectives in words


def names(actor: str, target: str) -> Names:
    """How the two sides of a rule are called."""
    its = "its team" if target == "it" else f"{target}'s team"
    return {"actor": actor, "target": target, "actor_collective": "team", "target_collective": its}


def amounts_text(amounts: Mapping[str, int], sign: str = "") -> str:
    """`1 ore, 2 heart`, or `10 each of a, b, c`."""
    if not amounts:
        return "nothing"
    if len(amounts) > 2 and len(set(amounts.values())) == 1:
        return f"{next(iter(amounts.values())):{sign}d} each of {', '.join(amounts)}"
    return ", ".join(f"{n:{sign}d} {r}" for r, n in amounts.items())


def tag_text(tag: str) -> str:
    """`chest` for the tag of a type, `tag red` for others."""
    return tag.removeprefix("type:") if tag.startswith("type:") else f"tag {tag}"


def plain_text(tree: Mapping[str, Any]) -> str:
    """A model that says nothing about itself, from its fields: `push, distance 2`."""
    return ", ".join([str(tree["kind"]), *(f"{name} {value}" for name, value in tree.items() if name != "kind")])
