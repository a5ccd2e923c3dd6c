"""CogsGuard: a team mines, buys gear, makes hearts and spends them on junctions, against clips moved by the clock.

Both games differ in map and length alone. Figures and rules are explained in `docs/cogsguard.md`; the rewards are in
`cogsguard_rewards`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from gridmill.env.kind import Score
from gridmill.games.cogsguard_rewards import ELEMENTS, VIBES, rewards_of
from gridmill.grid import (
    Add,
    AgentType,
    Align,
    Aligned,
    Area,
    Clear,
    Collective,
    Compound,
    Empty,
    Event,
    Game,
    Give,
    Holds,
    Inventory,
    Limit,
    Map,
    Near,
    Not,
    ObjectType,
    Observation,
    ObservedValue,
    OtherCollective,
    Rule,
    SameCollective,
    Take,
    Transfer,
    Unalign,
)
from gridmill.grid.machina import hub_compound, machina_1, machina_arena
from gridmill.grid.stations import hub, team_deposit

# The order decides which item of a group is lost first when a limit falls: the last.
RESOURCES = (
    "energy", "heart", "hp", "influence", "solar", "oxygen", "carbon", "germanium", "silicon",
    "aligner", "scrambler", "miner", "scout",
)  # fmt: skip
GEAR_COSTS = {
    "aligner": {"carbon": 3, "oxygen": 1, "germanium": 1, "silicon": 1},
    "scrambler": {"carbon": 1, "oxygen": 3, "germanium": 1, "silicon": 1},
    "miner": {"carbon": 1, "oxygen": 1, "germanium": 3, "silicon": 1},
    "scout": {"carbon": 1, "oxygen": 1, "germanium": 1, "silicon": 3},
}
GEAR = tuple(GEAR_COSTS)
HEART_COST = dict.fromkeys(ELEMENTS, 10)
CARGO = dict.fromkeys(ELEMENTS, 100)  # the most of each that one bump hands over
REACH = 10  # how far hub and junctions act, in cells of the larger of the two distances
TEAM_TAG = "collective:cogs"  # of everything that is the team's from the start, and stays when alignment changes
MOST_AGENTS = 20  # as many pads stand around the hub


@dataclass(frozen=True)
class Clips:
    """When the clips come, and how fast and far they spread: (first tick, period, radius), or never."""

    first: int
    spots: int
    scramble: tuple[int, int, int] | None
    align: tuple[int, int, int] | None
    until: int = 1_000_000_000


CLIPS = {
    "clips_medium": Clips(10, 1, (50, 100, 25), (100, 100, 25)),
    "clips_easy": Clips(50, 1, (250, 250, 15), (300, 250, 15)),
    "clips_hard": Clips(5, 2, (25, 50, 35), (50, 50, 35)),
    "clips_wave_only": Clips(10, 3, None, None),
    "clips_until_300": Clips(10, 1, (50, 100, 25), (100, 100, 25), until=300),
    "no_clips": None,
}


def cogsguard(
    num_agents: int = 8,
    max_steps: int = 10_000,
    clips: str = "clips_medium",
    rewards: Sequence[str] = ("objective",),
    wealth: int = 1,
) -> Game:
    """Hold junctions on a large map: mine, make hearts, align; clips spread from one junction."""
    return _game("cogsguard", machina_1(compound=_home()), num_agents, max_steps, clips, rewards, wealth)


def cogsguard_arena(
    num_agents: int = 8,
    max_steps: int = 1000,
    clips: str = "clips_medium",
    rewards: Sequence[str] = ("objective",),
    wealth: int = 1,
) -> Game:
    """CogsGuard for training: a smaller map, denser buildings, a tenth of the time."""
    return _game("cogsguard_arena", machina_arena(compound=_home()), num_agents, max_steps, clips, rewards, wealth)


def _game(
    name: str, picture: Map, num_agents: int, max_steps: int, clips: str, rewards: Sequence[str], wealth: int
) -> Game:
    if not 1 <= num_agents <= MOST_AGENTS:
        raise ValueError(f"num_agents: expected 1 to {MOST_AGENTS}, got {num_agents}")
    if not 0 <= wealth <= 100:
        raise ValueError(f"wealth: expected 0 to 100, got {wealth}")
    if clips not in CLIPS:
        raise ValueError(f"clips: expected one of {', '.join(CLIPS)}, got {clips!r}")
    dearest = max(max(cost.values()) for cost in GEAR_COSTS.values())
    store = dict.fromkeys(ELEMENTS, num_agents * dearest * wealth)
    return Game(
        name=name,
        score=Score(stat="cogs/aligned.junction.held", per="tick", title="junctions held"),
        beside=("cogs/aligned.junction.gained", "cogs/aligned.junction.lost", "heart.get"),
        num_agents=num_agents,
        max_steps=max_steps,
        moves=4,
        resources=RESOURCES,
        vibes=VIBES,
        move_cost={"energy": 4},
        agent=_agent(),
        collectives={
            "clips": Collective(),
            "cogs": Collective(inventory=store, limits=(Limit(resources=ELEMENTS, base=10_000),)),
        },
        objects=_objects(hearts=5 * wealth),
        events=_weather() | _clips_events(CLIPS[clips]),
        map=picture,
        observation=Observation(
            local_position=True,
            reward_scale=float(max_steps),
            # A crowd around an agent could show several hundred tokens; the nearest 200 are enough to play by.
            overflow="drop",
            values=tuple(_team_store(element) for element in ELEMENTS),
        ),
        rewards=rewards_of(rewards, max_steps),
    )


def _home() -> Compound:
    """The compound in the middle; its junction is the team's from the start."""
    home = hub_compound(MOST_AGENTS)
    own = [thing.replace("type", "c:junction") if thing.type == "junction" else thing for thing in home.things]
    return home.replace("things", own)


def _team_store(element: str) -> ObservedValue:
    return ObservedValue(name=f"inv:collective:{element}", value=Inventory(resource=element, of="collective"), digits=2)


# ---- who acts


def _agent() -> AgentType:
    """Gear raises limits; without hp neither gear nor hearts can be held."""
    return AgentType(
        inventory={"energy": 100, "hp": 50, "solar": 1},
        limits=(
            Limit(resources=("hp",), base=100, bonus={"scrambler": 200, "scout": 400}),
            Limit(resources=("energy",), base=20, bonus={"scout": 100}),
            Limit(resources=ELEMENTS, base=4, bonus={"miner": 40}),
            Limit(resources=("influence",), base=0, bonus={"aligner": 20}),
            Limit(resources=GEAR, base=0, max=1, bonus={"hp": 100}),
            Limit(resources=("heart",), base=0, max=10, bonus={"hp": 100}),
        ),
        collectives=("cogs",),
        tags=(TEAM_TAG,),
        on_tick=(
            Rule(name="wear", then=(Take(amounts={"hp": 1, "influence": 1}),)),
            Rule(name="sun", then=(Add(resource="energy", value=Inventory(resource="solar")),)),
        ),
    )


# ---- what stands around


def _objects(hearts: int) -> dict[str, ObjectType]:
    friend = Area(radius=REACH, affects="friend", changes={"hp": 100, "energy": 100, "influence": 10})
    enemy = Area(radius=REACH, affects="enemy", changes={"hp": -1, "influence": -100})
    junction = ObjectType(on_use=_junction_rules(), areas=(friend, enemy))
    objects = {
        "wall": ObjectType(),
        "junction": junction,
        "c:junction": junction.replace("collective", "cogs").replace("counts_as", "junction"),
        "c:hub": hub("cogs", CARGO, on_use=_heart_rules(), areas=(friend,), inventory={"heart": hearts}),
    }
    objects |= {f"c:{gear}": ObjectType(collective="cogs", on_use=(_change_gear(gear),)) for gear in GEAR}
    for name, kind in objects.items():
        if kind.collective == "cogs":
            objects[name] = kind.replace("tags", (TEAM_TAG,))
    return objects | {f"{element}_extractor": _extractor(element) for element in ELEMENTS}


def _extractor(element: str) -> ObjectType:
    """A stock of 100 that does not grow again; the empty extractor leaves the map."""
    many = Transfer(amounts={element: 10}, remove_empty=True)
    one = Transfer(amounts={element: 1}, remove_empty=True)
    return ObjectType(
        inventory={element: 100},
        on_use=(
            Rule(name="mine", when=(Holds(amounts={"miner": 1}),), then=(many,)),
            Rule(name="extract", then=(one,)),
        ),
    )


def _change_gear(gear: str) -> Rule:
    """The team pays; what the agent wore is gone. Whoever wears it already keeps it, and nobody pays."""
    return Rule(
        name="change gear",
        when=(
            SameCollective(),
            Not(conditions=(Holds(amounts={gear: 1}),)),
            Holds(who="actor_collective", amounts=GEAR_COSTS[gear]),
        ),
        then=(
            Clear(resources=GEAR),
            Take(who="actor_collective", amounts=GEAR_COSTS[gear]),
            Give(amounts={gear: 1}),
        ),
    )


def _heart_rules() -> tuple[Rule, ...]:
    """Hearts of the hub, after its deposit: the last one stays as long as the store can make another instead."""
    enough = Holds(who="actor_collective", amounts=HEART_COST)
    pay = Take(who="actor_collective", amounts=HEART_COST)
    fetch = Transfer(amounts={"heart": 1})
    return (
        Rule(name="get heart", when=(SameCollective(), Holds(who="target", amounts={"heart": 2})), then=(fetch,)),
        Rule(
            name="get and make heart",
            when=(SameCollective(), Holds(who="target", amounts={"heart": 1}), enough),
            then=(pay, Give(amounts={"heart": 1})),
        ),
        Rule(name="get last heart", when=(SameCollective(),), then=(fetch,)),
        Rule(
            name="make heart",
            when=(SameCollective(), Empty(who="target", resources=("heart",)), enough),
            then=(pay, Give(who="target", amounts={"heart": 1})),
        ),
    )


def _junction_rules() -> tuple[Rule, ...]:
    spend = Take(amounts={"heart": 1})
    return (
        team_deposit(CARGO),
        Rule(
            name="align",
            when=(Not(conditions=(Aligned(),)), Holds(amounts={"aligner": 1, "influence": 1, "heart": 1})),
            then=(spend, Align()),
        ),
        Rule(
            name="scramble",
            when=(OtherCollective(), Holds(amounts={"scrambler": 1, "heart": 1})),
            then=(Unalign(), spend),
        ),
    )


# ---- what the clock does


def _weather() -> dict[str, Event]:
    """A day of 100 ticks with 3 solar, a night of 100 with 1."""
    day, night = Give(who="target", amounts={"solar": 2}), Take(who="target", amounts={"solar": 2})
    return {
        "weather_day": Event(every=200, start=0, targets="type:agent", then=(day,)),
        "weather_night": Event(every=200, start=100, targets="type:agent", then=(night,)),
    }


def _clips_events(clips: Clips | None) -> dict[str, Event]:
    """Declared in the order in which they happen within a tick."""
    if clips is None:
        return {}
    take, drop = Align(to="clips"), Unalign()
    theirs = Aligned(to="clips")
    events = {
        "initial_clips": Event(at=(clips.first,), targets="type:junction", then=(take,), max_targets=clips.spots),
        # Nothing to do while a junction is theirs; without one they come again.
        "presence_check": Event(
            every=200,
            start=clips.first,
            until=clips.until,
            targets="type:junction",
            when=(theirs,),
            max_targets=1,
            fallback="initial_clips",
        ),
    }
    if clips.scramble:
        events["cogs_to_neutral"] = _spread(clips.scramble, clips.until, (Aligned(), Not(conditions=(theirs,))), drop)
    if clips.align:
        events["neutral_to_clips"] = _spread(clips.align, clips.until, (Not(conditions=(Aligned(),)),), take)
    return events


def _spread(clock: tuple[int, int, int], until: int, when: tuple[Aligned | Not, ...], effect: Align | Unalign) -> Event:
    start, period, radius = clock
    from_theirs = Near(tag="type:junction", radius=radius, when=(Aligned(to="clips"),))
    return Event(
        every=period,
        start=start,
        until=until,
        targets="type:junction",
        when=(*when, from_theirs),
        then=(effect,),
        max_targets=1,
    )


GAMES = (cogsguard, cogsguard_arena)
