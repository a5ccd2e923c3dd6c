"""Settings: frozen records with one-line errors (`base`), and what of text every room needs (`text`)."""

from gridmill.config.base import (
    Config,
    ConfigError,
    Frozen,
    FrozenDict,
    did_you_mean,
    explain_error,
    flatten,
    place,
    refuse_endless,
)

__all__ = [
    "Config",
    "ConfigError",
    "Frozen",
    "FrozenDict",
    "did_you_mean",
    "explain_error",
    "flatten",
    "place",
    "refuse_endless",
]
