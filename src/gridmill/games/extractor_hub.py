"""Extractor hub: four agents charge, gather four elements in caves around a hall, and make hearts together.

Everything works by assemblers; hearts count once they are in the chest. The table of figures is in `docs/games.md`.
"""

from __future__ import annotations

from gridmill.grid import (
    AddStat,
    AgentType,
    Ascii,
    Assembler,
    Constant,
    Count,
    Game,
    Give,
    HasVibe,
    Inventory,
    Limit,
    Max,
    Min,
    ObjectType,
    Observation,
    Recipe,
    RewardTerm,
    Rule,
    Stat,
    Sum,
    Transfer,
)
from gridmill.grid.stations import chest

ELEMENTS = ("carbon", "oxygen", "germanium", "silicon")
VIBES = ("default", "heart", "deposit", "withdraw")
RESOURCES = ("energy", "heart", *ELEMENTS)
HEART_COST = {"carbon": 2, "oxygen": 2, "germanium": 1, "silicon": 3, "energy": 2}
EASY_HEART_COST = dict.fromkeys(HEART_COST, 1)
DEPOSITED, WITHDRAWN = "chest.heart.deposited_by_agent", "chest.heart.withdrawn_by_agent"
KINDS_PAY = {2: 0.17, 3: 0.18, 4: 0.60, 5: 0.97}  # in easy mode, for so many different things in the inventory
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


def extractor_hub(num_agents: int = 4, max_steps: int = 1000, heart_limit: int = 1, easy_mode: bool = False) -> Game:
    """Gather four elements and make hearts with an assembler; agents that show the heart vibe together make more.

    `easy_mode`: a heart costs one of each, agents carry 255 of everything, and every stage on the way is paid.
    """
    if not 1 <= num_agents <= MOST_AGENTS:
        raise ValueError(f"num_agents: expected 1 to {MOST_AGENTS}, got {num_agents}")
    if not 1 <= heart_limit <= 255:
        raise ValueError(f"heart_limit: expected 1 to 255, got {heart_limit}")
    hearts = Count(tag="type:chest", resource="heart")
    objective = RewardTerm(weight=1.0 / num_agents, value=hearts)
    game = Game(
        name="extractor_hub",
        num_agents=num_agents,
        max_steps=max_steps,
        moves=4,
        resources=RESOURCES,
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
        objects=_objects(num_agents, EASY_HEART_COST if easy_mode else HEART_COST),
        map=Ascii(text=_picture(num_agents), legend=LEGEND),
        # A crowd around an agent could show several hundred tokens; the nearest 200 are enough to play by.
        observation=Observation(overflow="drop"),
        rewards=(objective,),
    )
    return _made_easy(game) if easy_mode else game


def _made_easy(game: Game) -> Game:
    """Room for everything, hearts that are counted, and rewards for the stages."""
    limits = [Limit(resources=(resource,), base=255) for resource in RESOURCES]
    rules = [*_counted_hearts(), *game.objects["chest"].on_use]
    game = game.replace("objects.chest.on_use", rules).replace("agent.limits", limits)
    return game.replace("rewards", [*game.rewards, *_stages()])


def _counted_hearts() -> list[Rule]:
    """Hearts go one by one, so that a statistic can count them; elements follow the chest's other rules."""
    into = Transfer(source="actor", to="target", amounts={"heart": 1})
    out = Transfer(source="target", to="actor", amounts={"heart": 1})
    return [
        Rule(name="deposit a heart", when=(HasVibe(vibe="deposit"),), then=(into, AddStat(name=DEPOSITED))),
        Rule(name="withdraw a heart", when=(HasVibe(vibe="withdraw"),), then=(out, AddStat(name=WITHDRAWN))),
    ]


def _stages() -> list[RewardTerm]:
    """Hearts made or fetched, hearts stored, and how many kinds of things are held, each step from one to five."""
    held = [Min(values=(Inventory(resource=resource), Constant(value=1.0))) for resource in RESOURCES]
    pays = [(1.0, "heart.gained"), (1.0, DEPOSITED), (-1.0, WITHDRAWN)]
    return [RewardTerm(weight=weight, value=Stat(name=name)) for weight, name in pays] + [
        RewardTerm(
            weight=weight, value=Max(values=(Sum(values=(*held, Constant(value=1.0 - kinds))), Constant())), cap=1
        )
        for kinds, weight in KINDS_PAY.items()
    ]


def _objects(num_agents: int, heart_cost: dict[str, int]) -> dict[str, ObjectType]:
    most = {"heart": 255, **dict.fromkeys(ELEMENTS, 255)}
    return {
        "wall": ObjectType(),
        "assembler": ObjectType(assembler=Assembler(recipes=_heart_recipes(num_agents, heart_cost))),
        "chest": chest(deposits={"deposit": most}, withdrawals={"withdraw": most}),
        "charger": _source({"energy": 62}, cooldown=10, partial=True),
        "carbon_extractor": _source({"carbon": 2}, max_uses=50),
        "oxygen_extractor": _source({"oxygen": 10}, cooldown=90, partial=True, max_uses=10),
        "germanium_extractor": _source({"germanium": 2}),
        "silicon_extractor": _source({"silicon": 18}, {"energy": 20}, max_uses=20),
    }


def _heart_recipes(num_agents: int, cost: dict[str, int]) -> tuple[Recipe, ...]:
    """As many hearts as agents around it show the vibe, for the price of one; the most that can be made is made."""
    return tuple(
        Recipe(vibes=("heart",) * k, min_agents=k, inputs=cost, outputs={"heart": k}) for k in range(num_agents, 0, -1)
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


GAMES = (extractor_hub,)
