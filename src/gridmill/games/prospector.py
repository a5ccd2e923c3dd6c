"""Prospector: one ship among asteroids."""

from __future__ import annotations

from typing import Any

from gridmill.prospector.config import ProspectorConfig


def prospector(**settings: Any) -> ProspectorConfig:
    """One ship among asteroids: mine, sell, and return in time."""
    return ProspectorConfig(**settings)


GAMES = (prospector,)
