"""Python words for the grid engine: games, what stands in them, what agents see, what is rewarded, and maps.

Conditions, effects and values are all of their files, so that a new one is a class there.
"""

from gridmill.grid import conditions, effects, values
from gridmill.grid.conditions import *  # noqa: F403
from gridmill.grid.effects import *  # noqa: F403
from gridmill.grid.game import Game
from gridmill.grid.layers import (
    Blocks,
    Bsp,
    Buildings,
    Caves,
    Clumps,
    Compound,
    Connect,
    Dunes,
    Fill,
    Layer,
    Maze,
    Mirror,
    Objects,
    OneOf,
    Part,
    Radial,
    Rim,
    Rooms,
    Standing,
    Zones,
)
from gridmill.grid.machina import (
    city,
    desert,
    forest,
    machina_1,
    machina_arena,
    plains,
)
from gridmill.grid.maps import (
    Ascii,
    Canvas,
    Instances,
    Map,
    Scatter,
)
from gridmill.grid.parts import (
    AgentType,
    Assembler,
    Attack,
    Collective,
    Converter,
    Limit,
    ObjectType,
    Observation,
    ObservedValue,
    Recipe,
    RewardTerm,
)
from gridmill.grid.rules import Area, Event, Rule
from gridmill.grid.values import *  # noqa: F403

__all__ = [
    "AgentType",
    "Area",
    "Ascii",
    "Assembler",
    "Attack",
    "Blocks",
    "Bsp",
    "Buildings",
    "Canvas",
    "Caves",
    "Clumps",
    "Collective",
    "Compound",
    "Connect",
    "Converter",
    "Dunes",
    "Event",
    "Fill",
    "Game",
    "Instances",
    "Layer",
    "Limit",
    "Map",
    "Maze",
    "Mirror",
    "ObjectType",
    "Objects",
    "Observation",
    "ObservedValue",
    "OneOf",
    "Part",
    "Radial",
    "Recipe",
    "RewardTerm",
    "Rim",
    "Rooms",
    "Rule",
    "Scatter",
    "Standing",
    "Zones",
    "city",
    "desert",
    "forest",
    "machina_1",
    "machina_arena",
    "plains",
]
__all__ += conditions.__all__
__all__ += effects.__all__
__all__ += values.__all__
