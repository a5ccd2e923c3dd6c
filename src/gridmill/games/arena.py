"""The arena: ore from mines becomes batteries in generators and hearts in altars, among agents who may shoot.

Three variants that differ only in the values below; `gridmill diff arena arena_basic_easy_shaped` lists them.
"""

from __future__ import annotations

from gridmill.env.kind import Score
from gridmill.grid import (
    AgentType,
    Attack,
    Converter,
    Game,
    Instances,
    Inventory,
    Limit,
    ObjectType,
    Observation,
    RewardTerm,
    Scatter,
)

RESOURCES = ("ore", "battery", "heart", "laser", "armor", "blueprint")
MACHINES = {
    "mine": ObjectType(converter=Converter(outputs={"ore": 1}, cooldown=50)),
    "generator": ObjectType(converter=Converter(inputs={"ore": 1}, outputs={"battery": 1}, cooldown=25)),
    "altar": ObjectType(converter=Converter(inputs={"battery": 3}, outputs={"heart": 1}, cooldown=10)),
    "lasery": ObjectType(converter=Converter(inputs={"battery": 1, "ore": 2}, outputs={"laser": 1}, cooldown=10)),
    "armory": ObjectType(converter=Converter(inputs={"ore": 3}, outputs={"armor": 1}, cooldown=10)),
}
QUARTER = 25  # cells on each side of one of the four quarters
OFF = 100  # a laser cost nobody can pay: the limit is 50


def arena(num_agents: int = 24, max_steps: int = 1000) -> Game:
    """Four quarters of machines and agents with lasers; only hearts are rewarded, and each takes three batteries."""
    if num_agents < 1 or (num_agents > 6 and num_agents % 6 != 0):
        raise ValueError(f"num_agents: expected 1 to 6 or a multiple of 6, got {num_agents}")
    quarter = Scatter(
        height=QUARTER,
        width=QUARTER,
        border=0,
        objects={"wall": 10, "mine": 10, "generator": 5, "altar": 5, "lasery": 1, "armory": 1},
    )
    rows, columns = _places(max(1, num_agents // 6))
    return Game(
        name="arena",
        num_agents=num_agents,
        score=Score(stat="heart.get"),
        beside=("battery.get", "ore.get"),
        max_steps=max_steps,
        moves=8,
        resources=RESOURCES,
        attack=Attack(cost={"laser": 1}, armor="armor"),
        agent=AgentType(limits=tuple(Limit(resources=(r,), base=255 if r == "heart" else 50) for r in RESOURCES)),
        objects={"wall": ObjectType(), **MACHINES},
        map=Instances(maps=(quarter,), rows=rows, columns=columns, border=6),
        # A crowd around an agent could show about 600 tokens; the nearest 200 are enough to play by.
        observation=Observation(num_tokens=200, overflow="drop"),
        rewards=(_pays("heart", 1.0, 100.0),),
    )


def arena_basic(num_agents: int = 24, max_steps: int = 1000) -> Game:
    """The arena with lasers that no agent can afford to fire."""
    game = arena(num_agents, max_steps).replace("attack.cost.laser", OFF)
    return game.replace("name", "arena_basic")


def arena_basic_easy_shaped(num_agents: int = 24, max_steps: int = 1000) -> Game:
    """An easier arena for learning: blocks and more walls, no weapons, cheap hearts, a reward for every stage."""
    game = arena_basic(num_agents, max_steps).replace("name", "arena_basic_easy_shaped")
    objects = {"wall": ObjectType(), "block": ObjectType()}
    objects |= {name: MACHINES[name] for name in ("mine", "generator")}
    objects["altar"] = MACHINES["altar"].replace("converter.inputs.battery", 1)
    counts = {"wall": 20, "block": 20, "mine": 10, "generator": 5, "altar": 5}
    shaped = (("ore", 0.1), ("battery", 0.8), ("laser", 0.5), ("armor", 0.5), ("blueprint", 0.5))
    rewards = [_pays(resource, weight, 1.0) for resource, weight in shaped] + [_pays("heart", 1.0, 100.0)]
    game = game.replace("objects", objects).replace("map.maps.0.objects", counts)
    return game.replace("rewards", rewards)


def _pays(resource: str, weight: float, cap: float) -> RewardTerm:
    return RewardTerm(weight=weight, value=Inventory(resource=resource), cap=cap)


def _places(count: int) -> tuple[int, int]:
    """As square as possible: 4 quarters are 2 x 2."""
    rows = max(r for r in range(1, count + 1) if count % r == 0 and r * r <= count)
    return rows, count // rows


GAMES = (arena, arena_basic, arena_basic_easy_shaped)
