"""Extractor hub: four agents charge, gather four elements in caves around a hall, and make hearts together.

Everything works by assemblers; hearts count once they are in the chest. The table of figures is in `docs/games.md`.
"""

from __future__ import annotations

from gridmill.grid import (
    AgentType,
    Ascii,
    Assembler,
    Count,
    Game,
    Give,
    Limit,
    ObjectType,
    Observation,
    Recipe,
    RewardTerm,
    Rule,
)
from gridmill.grid.stations import chest

ELEMENTS = ("carbon", "oxygen", "germanium", "silicon")
VIBES = ("default", "heart", "deposit", "withdraw")
HEART_COST = {"carbon": 2, "oxygen": 2, "germanium": 1, "silicon": 3, "energy": 2}
LEGEND = {
    "A": "assembler", "T": "chest", "E": "charger",
    "C": "carbon_extractor", "O": "oxygen_extractor", "G": "germanium_extractor", "S": "silicon_extractor",
}  # fmt: skip
BORDER = 5
MOST_AGENTS = 8
# Digits are the places agents start from: the first four for four agents, and so on.
HALL = """
##C.###..#####.#.#..##.####S##
#...##....####......##.......#
#....##....#.....#...........#
#E..###.............##.......#
#...#####..########.#####...E#
#...#...................#....#
#...#...................#.#..#
....#...................#....#
##..#...#.....#.....#.........
##......................#....G
##..#...................#.....
##..#.........E.........#.....
##..#........6.1........#.....
##.##...................#....#
#.......#...3.A.4...#.........
....#...................#.....
#...#........2.5........#....O
....#.........T.........#.....
#..........7.....8......#.....
G.......................#.....
#...#...#.....#.....#.........
#...#...................######
#...#...................######
#...#...................######
#...####.#########..######C.##
#E............................
#......................####..#
##...................#.###..E#
##O#.......G.......###.#######
######S#######################
"""


def extractor_hub(num_agents: int = 4, max_steps: int = 1000, heart_limit: int = 1) -> Game:
    """Gather four elements and make hearts with an assembler; agents that show the heart vibe together make more."""
    if not 1 <= num_agents <= MOST_AGENTS:
        raise ValueError(f"num_agents: expected 1 to {MOST_AGENTS}, got {num_agents}")
    if not 1 <= heart_limit <= 255:
        raise ValueError(f"heart_limit: expected 1 to 255, got {heart_limit}")
    hearts = Count(tag="type:chest", resource="heart")
    return Game(
        name="extractor_hub",
        num_agents=num_agents,
        max_steps=max_steps,
        moves=4,
        resources=("energy", "heart", *ELEMENTS),
        vibes=VIBES,
        move_cost={"energy": 2},
        agent=AgentType(
            inventory={"energy": 100},
            limits=(
                Limit(resources=("energy",), base=200),
                Limit(resources=ELEMENTS, base=200),
                Limit(resources=("heart",), base=heart_limit),
            ),
            on_tick=(Rule(name="rest", then=(Give(amounts={"energy": 2}),)),),
        ),
        objects=_objects(num_agents),
        map=Ascii(text=_picture(num_agents), legend=LEGEND),
        # A crowd around an agent could show several hundred tokens; the nearest 200 are enough to play by.
        observation=Observation(overflow="drop"),
        rewards=(RewardTerm(weight=1.0 / num_agents, value=hearts),),
    )


def _objects(num_agents: int) -> dict[str, ObjectType]:
    most = {"heart": 255, **dict.fromkeys(ELEMENTS, 255)}
    return {
        "wall": ObjectType(),
        "assembler": ObjectType(assembler=Assembler(recipes=_heart_recipes(num_agents))),
        "chest": chest(deposits={"deposit": most}, withdrawals={"withdraw": most}),
        "charger": _source({"energy": 62}, cooldown=10, partial=True),
        "carbon_extractor": _source({"carbon": 2}, max_uses=50),
        "oxygen_extractor": _source({"oxygen": 10}, cooldown=90, partial=True, max_uses=10),
        "germanium_extractor": _source({"germanium": 2}),
        "silicon_extractor": _source({"silicon": 18}, {"energy": 20}, max_uses=20),
    }


def _heart_recipes(num_agents: int) -> tuple[Recipe, ...]:
    """As many hearts as agents around it show the vibe, for the price of one; the most that can be made is made."""
    return tuple(
        Recipe(vibes=("heart",) * k, min_agents=k, inputs=HEART_COST, outputs={"heart": k})
        for k in range(num_agents, 0, -1)
    )


def _source(
    outputs: dict[str, int],
    inputs: dict[str, int] | None = None,
    cooldown: int = 0,
    partial: bool = False,
    max_uses: int = -1,
) -> ObjectType:
    recipe = Recipe(inputs=inputs or {}, outputs=outputs)
    return ObjectType(assembler=Assembler(recipes=(recipe,), cooldown=cooldown, partial=partial, max_uses=max_uses))


def _picture(num_agents: int) -> str:
    """The hall inside its border, with a start for every agent and no more, so that each always begins at its own."""
    starts = {str(i): "@" if i <= num_agents else "." for i in range(1, MOST_AGENTS + 1)}
    rows = ["".join(starts.get(cell, cell) for cell in row) for row in HALL.strip().split("\n")]
    side = "#" * BORDER
    edge = ["#" * (len(rows[0]) + 2 * BORDER)] * BORDER
    return "\n".join([*edge, *(side + row + side for row in rows), *edge])
