"""Prospector, the second game: a ship that mines asteroids, sells at one station, and should come home in time.

`gridmill.make("prospector", ...)` is the batch; `ProspectorEnv` is one ship for Gymnasium, native or in plain Python.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from gridmill.prospector.config import Commodities, Commodity, ProspectorConfig

if TYPE_CHECKING:
    from gridmill.prospector.single import ProspectorEnv as ProspectorEnv

__all__ = ["Commodities", "Commodity", "ProspectorConfig", "ProspectorEnv"]


def __getattr__(name: str) -> Any:
    if name == "ProspectorEnv":  # on first use: it brings Gymnasium along
        return import_module("gridmill.prospector.single").ProspectorEnv
    raise AttributeError(f"module 'gridmill.prospector' has no attribute {name!r}")
