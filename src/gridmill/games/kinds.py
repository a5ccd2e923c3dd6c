"""The kinds of games, and a game from plain data. A new kind is one line here.

Files name the kind of their game (`Run.game`, replays, checkpoints); this table says which class reads it. Classes are
loaded when a game of their kind is.
"""

from __future__ import annotations

from importlib import import_module
from typing import Annotated, Any

from pydantic import PlainSerializer, PlainValidator

from gridmill.config import ConfigError, did_you_mean
from gridmill.config.describe import Takes
from gridmill.env.kind import GameConfig

KINDS = {
    "corridor": "gridmill.games.corridor:Corridor",
    "grid": "gridmill.grid.game:Game",
    "prospector": "gridmill.prospector.config:ProspectorConfig",
}


def class_of(kind: Any) -> type[GameConfig]:
    """The class of a kind."""
    if not isinstance(kind, str) or kind not in KINDS:
        hint = did_you_mean(kind, list(KINDS)) if isinstance(kind, str) else ""
        raise ConfigError(f"expected a kind among {', '.join(KINDS)}, got {str(kind)[:40]!r}{hint}", "$.kind")
    module, _, name = KINDS[kind].partition(":")
    found: type[GameConfig] = getattr(import_module(module), name)
    return found


def load(data: Any) -> GameConfig:
    """A game from plain data that names its kind."""
    if not isinstance(data, dict):
        raise ConfigError(f"expected a game, got {str(data)[:60]!r}")
    if "kind" not in data:
        raise ConfigError("expected a `kind`, got none")
    return class_of(data["kind"]).load(data)


def _game(value: Any) -> GameConfig:
    return value if isinstance(value, GameConfig) else load(value)


# A game of any kind as a field of a record.
AnyGame = Annotated[
    GameConfig, PlainValidator(_game), PlainSerializer(GameConfig.tree), Takes("a name, FILE.py:function or JSON")
]
