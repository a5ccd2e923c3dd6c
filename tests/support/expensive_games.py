"""Games that are small and valid, and took minutes in `make`, a reset, a tick or `explain`."""

from __future__ import annotations

from typing import Any

from gridmill.grid import (
    AddStat,
    AgentType,
    AnyOf,
    Area,
    Ascii,
    Assembler,
    Buildings,
    Canvas,
    Caves,
    ClearTag,
    Clumps,
    Collective,
    Compound,
    Connect,
    Constant,
    Converter,
    Count,
    Event,
    Fill,
    Game,
    Give,
    HasTag,
    Holds,
    Instances,
    Inventory,
    Limit,
    Near,
    Objects,
    ObjectType,
    Observation,
    OneOf,
    Part,
    Recipe,
    Relocate,
    RewardTerm,
    Rule,
    Scatter,
    SetTag,
    Standing,
    Stat,
    Sum,
    Take,
    Zones,
)

DROP = Observation(overflow="drop")
BOXES = Scatter(height=80, width=80, objects={"box": 500})


def near(deep: int) -> Near:
    """Boxes near boxes near boxes, as far as the map is wide."""
    return Near(tag="type:box", radius=64, when=(near(deep - 1),) if deep > 1 else ())


def boxes(rules: dict[str, Any], map: Scatter = BOXES, **fields: Any) -> Game:
    return Game(
        name="boxes",
        num_agents=4,
        objects={"wall": ObjectType(), "box": ObjectType(**rules)},
        map=map,
        observation=DROP,
        **fields,
    )


def never(deep: int) -> tuple[Rule, ...]:
    return (Rule(when=(near(deep),), then=(SetTag(who="actor", tag="found"),)),)


def near_each_tick() -> Game:
    return boxes({"on_tick": never(3)})


def near_when_used() -> Game:
    return boxes({"on_use": never(3)})


def near_in_an_area() -> Game:
    return boxes({"areas": (Area(radius=64, affects="all", when=(near(3),)),)})


def near_in_an_event() -> Game:
    return boxes({}, events={"look": Event(every=1, targets="type:box", when=(near(3),), then=())})


def tags_that_set_off_tags() -> Game:
    """Each of twelve tags, set or cleared, changes all others, eight rules deep."""
    names = [f"t{i}" for i in range(12)]
    then = tuple(kind(who="actor", tag=name) for name in names for kind in (SetTag, ClearTag))
    rules = {name: (Rule(then=then),) for name in names}
    first = Rule(then=(SetTag(who="actor", tag="t0"),))
    return boxes({"on_tick": (first,)}, on_tag_added=rules, on_tag_removed=rules)


def crowded(apart: int, clear: int) -> Game:
    """Buildings, and more objects behind them than there is room for: a hundred draws, all in vain."""
    buildings = Buildings(draws=40_000, weights={"box": 1.0}, margin=0, apart=apart, clear=clear)
    layers = (buildings, Objects(counts={"box": 20_000}))
    drawn = Canvas(height=150, width=150, layers=layers)
    return Game(name="crowded", num_agents=2, objects={"wall": ObjectType(), "box": ObjectType()}, map=drawn)


def drawn(*layers: Any) -> Game:
    """A map of the largest size made of these."""
    objects = {"wall": ObjectType(), "box": ObjectType()}
    return Game(name="drawn", num_agents=2, objects=objects, map=Canvas(height=250, width=250, layers=layers))


FENCE = Compound(
    side=247,
    wall=0,
    gate=0,
    clear=0,
    things=tuple(Standing(type="box", row=row, column=0) for row in range(-123, 124)),
)
SCATTERED = (Caves(rounds=0, fill=0.85),)
WEST = Part(height=247, width=123, layers=SCATTERED)
EAST = Part(left=124, height=247, width=123, layers=SCATTERED)


def cut_off() -> Game:
    """Thousands of pieces of floor behind a fence of boxes, through which no tunnel leads to the largest floor."""
    return sized(249, FENCE, WEST, *(Connect(),) * 20)


def cut_off_by_turns(*last: Any) -> Game:
    """The same, with thousands of pieces on either side, drawn anew before they are joined once more."""
    return sized(249, FENCE, *(WEST, EAST, Connect()) * 18, *last)


def nothing_fits() -> Game:
    """Clumps that leave no floor, in every one of many attempts."""
    return drawn(Clumps(every=1, jitter=0, chance=1, smallest=8, largest=8, fill=1))


def sized(side: int, *layers: Any) -> Game:
    objects = {"wall": ObjectType(), "box": ObjectType()}
    return Game(name="sized", num_agents=2, objects=objects, map=Canvas(height=side, width=side, layers=layers))


def often_without_floor() -> Game:
    """It fits in one of four attempts."""
    parts = tuple(
        Part(top=25 * (k // 9), left=25 * (k % 9), height=24, width=24, border=1, layers=(Caves(), Connect()))
        for k in range(60)
    )
    return drawn(*parts, OneOf(layers=(Fill(what="floor"), Fill()), weights=(1.0, 3.0)))


def nested_zones(deep: int) -> Any:
    inside = Fill(what="floor") if deep == 1 else nested_zones(deep - 1)
    return Zones(count=64, smallest=1, largest=64, layers=(Part(layers=(inside,)),))


def in_places(*parts: Any) -> Game:
    """A map of 64 x 64 places with an agent each."""
    objects = {"wall": ObjectType(), "box": ObjectType(inventory={"ore": 1})}
    places = Instances(rows=64, columns=64, gap=0, border=0, maps=parts)
    return Game(name="places", num_agents=4096, resources=("ore",), objects=objects, map=places, observation=DROP)


def scatters_in_places() -> Game:
    """Every other place is full of boxes around an agent; in the last one the agent cannot reach them all."""
    box = Scatter(height=4, width=4, border=0, objects={"box": 1})
    full = Ascii(text="\n".join(["@XXX", *["XXXX"] * 3]), legend={"X": "box"})
    return in_places(*(box, full) * 2047, Scatter(height=4, width=4, border=0, objects={"box": 15}), full)


def many_layers_in_places() -> Game:
    return in_places(Canvas(height=1, width=1, border=0, layers=(Fill(what="floor"),) * 3000))


def fallbacks(count: int, every: int) -> Game:
    """Events that each run another if they happen to nobody."""
    events = {
        f"e{i}": Event(every=every, start=1 + i % 50, targets="", fallback=f"e{i + 1}" if i + 1 < count else "")
        for i in range(count)
    }
    return boxes({}, events=events)


def of_types(
    name: str,
    types: dict[str, ObjectType],
    resources: tuple[str, ...],
    rewarded: str,
    side: int = 60,
    each: int = 1,
    max_steps: int = 1000,
) -> Game:
    """Some of each type on a map, and a reward for one resource."""
    return Game(
        name=name,
        num_agents=4,
        max_steps=max_steps,
        resources=resources,
        objects={"wall": ObjectType(), **types},
        map=Scatter(height=side, width=side, objects=dict.fromkeys(types, each)),
        observation=DROP,
        rewards=(RewardTerm(value=Inventory(resource=rewarded)),),
    )


def layered(layers: int, width: int) -> Game:
    """Machines that each need one unit of all machines of the layer before."""
    machines = {}
    for layer in range(layers):
        for i in range(width):
            inputs = {f"r{layer - 1}_{k}": 1 for k in range(width)} if layer else {}
            machine = Converter(inputs=inputs, outputs={f"r{layer}_{i}": 1}, cooldown=5)
            machines[f"m{layer}_{i}"] = ObjectType(converter=machine)
    resources = tuple(f"r{layer}_{i}" for layer in range(layers) for i in range(width))
    return of_types("layers", machines, resources, f"r{layers - 1}_0", side=30, max_steps=500)


def relocated() -> Game:
    """A map with one empty cell, in which every box is put into another place a hundred times a tick."""
    rows = ["#" * 62, *["#" + "b" * 60 + "#"] * 59, "#@." + "b" * 58 + "#", "#" * 62]
    drawn = Ascii(text="\n".join(rows), legend={"b": "box"})
    return Game(
        name="relocated",
        num_agents=1,
        objects={"wall": ObjectType(), "box": ObjectType(on_tick=(Rule(then=(Relocate(),)),) * 1000)},
        map=drawn,
        observation=DROP,
    )


def areas_of_agents() -> Game:
    """Agents in the areas of all the others, which change what they hold."""
    areas = tuple(Area(radius=4096, changes={"ore": 1}) for _ in range(8))
    return Game(
        name="areas",
        num_agents=4096,
        resources=("ore",),
        agent=AgentType(areas=areas),
        objects={"wall": ObjectType()},
        map=Scatter(height=100, width=100),
        observation=DROP,
    )


def ring_of_machines(count: int) -> Game:
    """Each needs thousands of what the one before it makes: numbers of conversions with hundreds of digits."""
    machines = {
        f"m{i}": ObjectType(converter=Converter(inputs={f"r{i}": 65_535}, outputs={f"r{(i + 1) % count}": 1}))
        for i in range(count - 1)
    }
    machines["spring"] = ObjectType(converter=Converter(outputs={"r0": 1}))
    resources = tuple(f"r{i}" for i in range(count))
    return of_types("ring", machines, resources, resources[-1], max_steps=1_000_000_000)


def many_rules(types: int, rules: int) -> Game:
    """Types whose rules each give another resource than the one they take."""
    names = tuple(f"r{i}" for i in range(100))
    objects = {
        f"t{j}": ObjectType(
            on_use=tuple(
                Rule(
                    then=(
                        Take(amounts={names[(i + j) % 100]: 1}),
                        Give(amounts={names[(3 * i + 7 * j + 1) % 100]: 1}),
                    )
                )
                for i in range(rules)
            )
        )
        for j in range(types)
    }
    return of_types("rules", objects, names, names[-1])


def many_recipes(machines: int, recipes: int) -> Game:
    """Assemblers that make a hundred things each."""
    names = tuple(f"r{i}" for i in range(120))
    objects = {
        f"m{j}": ObjectType(
            assembler=Assembler(
                recipes=tuple(
                    Recipe(
                        inputs={names[(i * 3 + j) % 60]: i + 1, names[(i * 5 + 1 + j) % 60]: 3},
                        outputs={names[60 + (i + j) % 60]: 1},
                    )
                    for i in range(recipes)
                )
            )
        )
        for j in range(machines)
    }
    return of_types("recipes", objects, names, names[-1], side=80, each=3)


CROWD = Ascii(text="\n".join(["@" * 128] * 8 + [("ss." * 43)[:128]] * 120), legend={"s": "s"})
ORES = tuple(f"r{i}" for i in range(110))
ONE_ORE = ObjectType(inventory={"r0": 1})


def crowd(source: ObjectType = ONE_ORE, **fields: Any) -> Game:
    """A thousand agents and ten thousand objects that matter to all of them."""
    return Game(
        name="crowd",
        num_agents=1024,
        resources=ORES,
        objects={"wall": ObjectType(), "s": source},
        map=CROWD,
        **({"observation": DROP} | fields),
    )


def counts() -> Sum:
    return Sum(values=(Inventory(resource="r0"), *(Count(tag="type:s", resource="r0"),) * 8))


def amounts_under_one_limit() -> Game:
    limit = Limit(resources=ORES[:55], base=1, bonus=dict.fromkeys(ORES[55:], 2))
    change = dict.fromkeys(ORES, 1)
    rule = Rule(then=(Give(amounts=change), Take(amounts=change)))
    return crowd(ObjectType(), agent=AgentType(limits=(limit,), on_tick=(rule,) * 50))


def limits_in_a_circle() -> Game:
    limits = (Limit(resources=("r0",), base=0, bonus={"r1": 1}), Limit(resources=("r1",), base=0, bonus={"r0": 1}))
    return crowd(ObjectType(), agent=AgentType(limits=limits, on_tick=(Rule(then=(Take(amounts={"r0": 1}),)),)))


def recipes_in_vain() -> Game:
    """Hundreds of recipes whose inputs are there and whose output does not fit."""
    recipe = Recipe(inputs=dict.fromkeys(ORES[:-1], 60_000), outputs={ORES[-1]: 1})
    return Game(
        name="vain",
        num_agents=200,
        resources=ORES,
        agent=AgentType(inventory=dict.fromkeys(ORES, 65_535)),
        objects={"wall": ObjectType(), "a": ObjectType(assembler=Assembler(recipes=(recipe,) * 300))},
        map=Ascii(text="\n".join(["a@" * 20] * 10), legend={"a": "a"}),
        observation=DROP,
    )


CLUMPS = Clumps(every=1, smallest=64, largest=64)


def sums() -> dict[str, Any]:
    value: Any = Constant(value=1.0)
    for _ in range(6):
        value = Sum(values=(value,) * 32)
    return {"map": BOXES, "rewards": (RewardTerm(value=value),)}


def any_of() -> dict[str, Any]:
    found: Any = HasTag(tag="type:wall")
    for _ in range(8):
        found = AnyOf(conditions=(found,) * 10)
    rule = Rule(when=(found,), then=(AddStat(name="found"),))
    return {"map": BOXES, "agent": AgentType(on_tick=(rule,))}


def parts() -> dict[str, Any]:
    layers: tuple[Any, ...] = (Caves(rounds=1),) * 10
    for _ in range(6):
        layers = (Part(layers=layers),) * 10
    return {"map": Canvas(height=20, width=20, layers=layers)}


def units_lost_one_by_one() -> Game:
    limits = (Limit(resources=("c", "a"), base=0, bonus={"b": 1}), Limit(resources=("b",), base=0, bonus={"a": 1}))
    start = {"a": 65_535, "b": 65_535, "c": 1}
    agent = AgentType(inventory=start, limits=limits, on_tick=(Rule(then=(Take(amounts={"a": 1}),)),))
    return Game(
        name="lost",
        num_agents=1,
        resources=("c", "a", "b"),
        agent=agent,
        objects={"wall": ObjectType()},
        map=Scatter(height=9, width=9),
        observation=DROP,
    )


def statistics_in_rewards() -> Game:
    """Each of them looks for its name among those of 250 collectives."""
    return Game(
        name="statistics",
        num_agents=1,
        resources=ORES[:100],
        collectives={f"t{i}": Collective() for i in range(250)},
        objects={"wall": ObjectType()},
        rewards=(RewardTerm(value=Sum(values=(Stat(name="reward"),) * 32)),) * 250,
        map=Scatter(height=9, width=9),
        observation=DROP,
    )


def many_types() -> Game:
    objects = {"wall": ObjectType(), **dict.fromkeys((f"t{i}" for i in range(20_000)), ObjectType(counts_as="wall"))}
    map = Scatter(height=20, width=20, objects={"t1": 1})
    return Game(name="types", num_agents=1, objects=objects, map=map, observation=DROP)


def counts_in_rewards(types: int, terms: int) -> Game:
    """Each asks which of the types its tag may come to."""
    tags = [f"g{j}" for j in range(40)]
    rules = tuple(
        Rule(when=(HasTag(who="target", tag=tag),), then=(Give(amounts={ORES[j]: 1}),)) for j, tag in enumerate(tags)
    )
    kind = ObjectType(tags=tuple(tags), on_use=rules)
    objects = {"wall": ObjectType(), **{f"t{i}": kind for i in range(types)}}
    rewards = tuple(RewardTerm(value=Count(tag=tags[i % 40], resource=ORES[i % 30])) for i in range(terms))
    map = Scatter(height=90, width=90, objects=dict.fromkeys(list(objects)[1:], 3))
    fields: dict[str, Any] = {"resources": ORES, "objects": objects, "rewards": rewards, "map": map}
    return Game(name="counts", num_agents=2, max_steps=100, observation=DROP, **fields)


def machines_and_a_circle() -> Game:
    """A machine takes a unit of what others hang on, which hang on it."""
    limits = (Limit(resources=("x", "a"), base=0, bonus={"b": 1}), Limit(resources=("b",), base=0, bonus={"a": 1}))
    mill = ObjectType(converter=Converter(inputs={"b": 1}, outputs={"out": 1}))
    return Game(
        name="mills",
        num_agents=1024,
        resources=("x", "a", "b", "out"),
        agent=AgentType(inventory={"x": 1, "a": 65_534, "b": 65_535}, limits=limits),
        objects={"wall": ObjectType(), "mill": mill},
        map=Ascii(text="\n".join(["@M" * 32] * 32), legend={"M": "mill"}),
        observation=DROP,
    )


# Large, and quick


def shops(agents: int) -> Game:
    bag = Limit(resources=("ore", "wood", "bag"), base=10, bonus={"bag": 5})
    sell = Rule(when=(Holds(amounts={"ore": 3}),), then=(Take(amounts={"ore": 3}), Give(amounts={"bag": 1})))
    mine = ObjectType(on_use=(Rule(then=(Give(amounts={"ore": 1}),)),))
    return Game(
        name="shops",
        num_agents=agents,
        resources=("ore", "wood", "bag"),
        agent=AgentType(limits=(bag,)),
        objects={"wall": ObjectType(), "shop": ObjectType(on_use=(sell,)), "mine": mine},
        map=Scatter(height=60, width=60, objects={"shop": 20, "mine": 100}),
        observation=DROP,
    )


def many_uses() -> Game:
    names = ORES[:20]
    rules = tuple(
        Rule(
            when=(Holds(amounts={name: 1}), HasTag(who="target", tag="red")),
            then=(Take(amounts={name: 1}), Give(amounts={names[(i + 1) % 20]: 1})),
        )
        for i, name in enumerate(names)
    )
    types = {f"k{i}": ObjectType(on_use=rules, tags=("red",)) for i in range(30)}
    limits = tuple(Limit(resources=(name,), base=5, max=50, bonus={names[19]: 5}) for name in names[:19])
    return Game(
        name="uses",
        num_agents=1024,
        resources=names,
        agent=AgentType(inventory=dict.fromkeys(names, 1), limits=limits),
        objects={"wall": ObjectType(), **types},
        map=Scatter(height=200, width=200, objects=dict.fromkeys(types, 20)),
        observation=DROP,
    )


def workshops(agents: int) -> Game:
    names = ORES[:20]
    recipes = tuple(
        Recipe(
            inputs={names[i % 20]: 1, names[(i + 1) % 20]: 1, names[(i + 7) % 20]: 2},
            outputs={names[(i + 3) % 20]: 1},
        )
        for i in range(50)
    )
    return Game(
        name="workshops",
        num_agents=agents,
        resources=names,
        agent=AgentType(inventory=dict.fromkeys(names, 5)),
        objects={"wall": ObjectType(), "a": ObjectType(assembler=Assembler(recipes=recipes, cooldown=5))},
        map=Scatter(height=80, width=80, objects={"a": 600}),
        observation=DROP,
    )
