"""Python words for the grid engine: games, what stands in them, what agents see, what pays, and maps."""

from gridmill.grid.game import (
    AgentType,
    Attack,
    Converter,
    Game,
    Limit,
    ObjectType,
    Observation,
    ObservedValue,
    RewardTerm,
)
from gridmill.grid.maps import Ascii, Instances, Map, Scatter
from gridmill.grid.values import Constant, GameValue, Inventory, Log, Max, Min, Ratio, Stat, Sum

__all__ = [
    "AgentType",
    "Ascii",
    "Attack",
    "Constant",
    "Converter",
    "Game",
    "GameValue",
    "Instances",
    "Inventory",
    "Limit",
    "Log",
    "Map",
    "Max",
    "Min",
    "ObjectType",
    "Observation",
    "ObservedValue",
    "Ratio",
    "RewardTerm",
    "Scatter",
    "Stat",
    "Sum",
]
