"""Timelines, first pays and ceilings are true: schedules are replayed in the core, bounds are reached."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gridmill
from gridmill import Game
from gridmill.games.arena import MACHINES
from gridmill.grid import (
    AgentType,
    Ascii,
    Attack,
    Constant,
    Converter,
    GameValue,
    Instances,
    Inventory,
    Limit,
    Log,
    Max,
    Min,
    ObjectType,
    Observation,
    Ratio,
    RewardTerm,
    Scatter,
    Stat,
    Sum,
)
from gridmill.grid.analysis.ceiling import ceiling
from gridmill.grid.analysis.converter_schedule import Clock, all_buildings, one_of_each
from gridmill.grid.analysis.converters import Converters, counts_on
from gridmill.grid.analysis.earliest import Earliest
from gridmill.grid.analysis.earliest_reward import first_rewards
from gridmill.grid.analysis.explain import explain

EASY = MACHINES | {"altar": MACHINES["altar"].replace("converter.inputs.battery", 1)}
RING = ((-1, 0), (0, 1), (1, 0), (0, -1), (-1, -1), (-1, 1), (1, 1), (1, -1))  # cells around the agent
MOVES = {
    (-1, 0): "north",
    (1, 0): "south",
    (0, -1): "west",
    (0, 1): "east",
    (-1, -1): "northwest",
    (-1, 1): "northeast",
    (1, -1): "southwest",
    (1, 1): "southeast",
}


def bench(machines: dict[str, ObjectType], product: str = "heart", **fields: Any) -> Game:
    """One agent with up to eight machines around it; a unit of the product pays 1."""
    cells = [["."] * 3 for _ in range(3)]
    cells[1][1] = "@"
    for letter, (row, column) in zip("ABCDEFGH"[: len(machines)], RING, strict=False):
        cells[1 + row][1 + column] = letter
    named = {
        name
        for kind in machines.values()
        if kind.converter
        for name in (*kind.converter.inputs, *kind.converter.outputs)
    }
    given: dict[str, Any] = {
        "name": "bench",
        "resources": sorted(named | {product}),
        "objects": machines,
        "map": Ascii(
            text="\n".join("".join(row) for row in cells), legend=dict(zip("ABCDEFGH", machines, strict=False))
        ),
        "rewards": [RewardTerm(value=Stat(name=f"{product}.get"))],
        "observation": Observation(overflow="drop"),
        "max_steps": 5000,
    }
    return Game(**(given | fields))


# ---- the core agrees


def replay(game: Game, product: str) -> None:
    """Play a schedule in the core: the product lies ready and is paid exactly when the schedule says so."""
    schedule = one_of_each(Converters.of(game), product, 1, game.max_steps - 1)
    if schedule is None:
        return
    moves = {name: f"move_{MOVES[cell]}" for name, cell in zip(game.objects, RING, strict=False)}
    bumps = dict(schedule.bumps)
    with gridmill.make(game, num_worlds=1) as env:
        env.reset()
        waits = [] if schedule.ready else [0]
        for tick in range(1, schedule.paid + 1):
            env.step([env.action_names.index(moves[bumps[tick]]) if tick in bumps else 0])
            makers = [o for o in env.inspect(0)["objects"] if o["type"] in Converters.of(game).makers(product)]
            if any(o["inventory"].get(product) for o in makers) and not waits:
                waits.append(tick)
            assert (env.rewards[0] > 0) == (tick == schedule.paid), tick
        assert waits == [schedule.ready]


@pytest.mark.parametrize("machines", [MACHINES, EASY], ids=["arena", "easy"])
@pytest.mark.parametrize("product", ["ore", "battery", "heart", "laser", "armor"])
def test_a_scripted_agent_is_paid_when_explain_says(machines: dict[str, ObjectType], product: str) -> None:
    replay(bench(machines, product), product)


RESOURCES = ["a", "b", "c", "d"]


@st.composite
def works(draw: st.DrawFn) -> dict[str, ObjectType]:
    """A machine for each of a, b, c, d, made of earlier letters, and perhaps a second maker; quirks now and then."""
    found = {}
    rarely = st.integers(0, 7).map(lambda n: n == 0)
    amounts = st.sampled_from([1, 1, 2, 3])
    for index, made in enumerate(draw(st.sampled_from([[0, 1, 2], [0, 1, 2, 3], [0, 1, 2, 3, 1], [0, 1, 2, 2, 3]]))):
        inputs = {r: draw(amounts) for r in RESOURCES[:made] if r == RESOURCES[made - 1] or draw(st.booleans())}
        converter = Converter(
            inputs=inputs,
            outputs={RESOURCES[made]: draw(amounts)},
            cooldown=draw(st.integers(1, 9)),
            max_output=draw(st.sampled_from([5, 5, 1, 2])),
            max_input=draw(st.sampled_from([5, 5, 1, 2])),
            initial_resource_count=draw(amounts) if draw(rarely) else 0,
            max_conversions=draw(st.sampled_from([0, 3, 9])) if draw(rarely) else -1,
        )
        inside = {r: draw(amounts) for r in inputs if draw(rarely)}
        found[f"m{index}"] = ObjectType(converter=converter, inventory=inside)
    return found


@settings(max_examples=150)
@given(machines=works(), product=st.sampled_from("bcd"), start=st.integers(0, 1), limit=st.sampled_from([3, 50]))
def test_schedules_of_random_works_are_true(
    machines: dict[str, ObjectType], product: str, start: int, limit: int
) -> None:
    agent = AgentType(
        inventory={"a": start},
        limits=tuple(Limit(resources=(r,), base=limit) for r in RESOURCES),
    )
    replay(bench(machines, product, resources=RESOURCES, agent=agent), product)


@settings(max_examples=100)
@given(machines=works(), product=st.sampled_from("bcd"))
def test_more_hands_and_machines_are_never_later(machines: dict[str, ObjectType], product: str) -> None:
    converters = Converters.of(bench(machines, product, resources=RESOURCES))
    one, every = one_of_each(converters, product), all_buildings(converters, product)
    if one is not None:
        assert every is not None
        assert every.ready <= one.ready


def hearts_taken(game: Game) -> int:
    """Play a whole episode with an agent for every hand-over: the most hearts there can be."""
    converters = Converters.of(game)
    clocks = [Clock(converters.machines[name]) for name in converters.machines for _ in range(converters.counts[name])]
    hands: dict[str, int] = dict.fromkeys(game.resources, 0)
    for clock in clocks:
        clock.start(0)
    for tick in range(1, game.max_steps + 1):
        taken = dict.fromkeys(game.resources, 0)
        for clock in clocks:
            for resource in clock.converter.outputs:
                taken[resource] += clock.held[resource]
                clock.held[resource] = 0
            for resource in clock.converter.inputs:
                put = min(hands[resource], clock.accepts(resource))
                clock.held[resource] += put
                hands[resource] -= put
            clock.start(tick)
        for resource, n in taken.items():
            hands[resource] += n
        for clock in clocks:
            clock.advance(tick)
    return hands["heart"]


def test_the_ceiling_can_be_reached_and_not_passed() -> None:
    """With max_input 1 nobody hoards, and the machines really make what the bound says."""
    game = gridmill.games.arena_basic_easy_shaped()
    for name in ("generator", "altar"):
        game = game.replace(f"objects.{name}.converter.max_input", 1)
    assert hearts_taken(game) == ceiling(Converters.of(game), "heart", 1000).units == 740


@settings(max_examples=60)
@given(machines=works(), product=st.sampled_from("bcd"), max_steps=st.integers(1, 60))
def test_ceilings_are_never_below_the_first_unit(machines: dict[str, ObjectType], product: str, max_steps: int) -> None:
    converters = Converters.of(bench(machines, product, resources=RESOURCES))
    one = one_of_each(converters, product, 1, max_steps)
    if one is not None and one.paid <= max_steps:
        assert ceiling(converters, product, max_steps).units >= 1


# ---- plants and plans


def test_counts_on_every_kind_of_map() -> None:
    ascii = Ascii(text="#mm\n@.#\n", legend={"m": "mine"})
    assert counts_on(ascii) == {"wall": 2, "mine": 2}
    scatter = Scatter(height=9, width=9, objects={"mine": 3})
    assert counts_on(scatter) == {"mine": 3}
    assert counts_on(Instances(maps=(ascii, scatter), rows=1, columns=3)) == {"wall": 4, "mine": 7}
    assert counts_on(Instances(maps=(ascii, scatter, scatter), rows=1, columns=1)) == {"wall": 2, "mine": 2}


def test_what_lies_ready_at_the_start() -> None:
    altar = ObjectType(converter=Converter(outputs={"heart": 1}, initial_resource_count=1, max_conversions=0))
    game = bench({"altar": altar})
    heart = next(p for p in explain(game).products if p.name == "heart")
    assert (heart.one_ready, heart.one_paid, heart.sequence, heart.chain) == (0, 1, 0, "available from the start")
    assert heart.ceiling.units == 1
    assert Converters.of(game).plan("heart", 2) is None


def test_the_quicker_of_two_makers_is_planned() -> None:
    slow = ObjectType(converter=Converter(outputs={"heart": 1}, cooldown=40))
    quick = ObjectType(converter=Converter(outputs={"heart": 1}, cooldown=7))
    plan = Converters.of(bench({"slow": slow, "quick": quick})).plan("heart")
    assert plan is not None
    assert (dict(plan.runs), plan.sequence) == ({"quick": 1}, 7)


def test_machines_that_feed_each_other() -> None:
    """Nothing starts a circle, unless something lies in it."""
    first = Converter(inputs={"b": 1}, outputs={"a": 1}, cooldown=3)
    second = Converter(inputs={"a": 1}, outputs={"b": 2}, cooldown=4)
    circle = {"first": ObjectType(converter=first), "second": ObjectType(converter=second)}
    assert Converters.of(bench(circle, "a")).plan("a") is None
    lit = bench(circle, "a", agent=AgentType(inventory={"b": 1}))
    found = one_of_each(Converters.of(lit), "a")
    assert found is not None
    assert (found.ready, found.paid) == (4, 5)
    replay(lit, "a")


def test_steps_that_cost_something() -> None:
    """A bump that cannot be paid for does not happen."""
    game = bench(EASY, "heart", resources=["armor", "battery", "energy", "heart", "laser", "ore"])
    for energy, paid in ((5, 90), (4, None)):
        agent = AgentType(inventory={"energy": energy})
        found = one_of_each(Converters.of(Game(**(dict(game) | {"agent": agent, "move_cost": {"energy": 1}}))), "heart")
        assert (found.paid if found else None) == paid


# ---- first pay


@pytest.mark.parametrize(
    ("value", "mode", "tick"),
    [
        (Inventory(resource="heart"), "change", 90),
        (Inventory(resource="wood"), "change", None),
        (Inventory(resource="coin"), "change", None),  # held from the start, nothing makes more
        (Inventory(resource="coin"), "per_tick", 1),
        (Constant(value=1.0), "change", None),
        (Constant(value=1.0), "per_tick", 1),
        (Stat(name="battery.put"), "change", 79),
        (Stat(name="heart.put"), "change", None),
        (Stat(name="heart.amount"), "gained", 90),
        (Stat(name="coin.lost"), "change", 1),
        (Stat(name="cell.visited"), "change", 1),
        (Stat(name="action.noop.success"), "change", 1),
        (Stat(name="attack.hit"), "change", 52),  # costs an ore
        (Stat(name="action.attack_nearest.success"), "change", 52),
        (Stat(name="attack.blocked"), "change", None),
        (Stat(name="reward"), "change", None),
        (Sum(values=[Inventory(resource="ore"), Inventory(resource="heart")]), "change", 51),
        (Max(values=[Inventory(resource="wood"), Inventory(resource="battery")]), "change", 78),
        (Min(values=[Inventory(resource="ore"), Inventory(resource="heart")]), "change", 90),
        (Min(values=[Inventory(resource="ore"), Inventory(resource="wood")]), "change", None),
        (Ratio(values=[Inventory(resource="battery"), Constant(value=2.0)]), "change", 78),
        (Log(values=[Inventory(resource="battery")]), "gained", 78),
        (Sum(values=[Constant(value=2.0), Inventory(resource="ore")]), "change", 51),
        (Sum(values=[Constant(value=-2.0), Inventory(resource="coin")]), "change", None),
        (Log(values=[Constant(value=-3.0)]), "change", None),
    ],
)
def test_the_first_pay_of_every_kind_of_value(value: GameValue, mode: Any, tick: int | None) -> None:
    game = bench(
        EASY,
        resources=["armor", "battery", "coin", "heart", "laser", "ore", "wood"],
        rewards=[RewardTerm(value=value, mode=mode)],
        agent=AgentType(inventory={"coin": 2}),
        attack=Attack(cost={"ore": 1}, armor="wood"),
        num_agents=2,
    )
    assert first_rewards(Earliest(game), "one") == [tick]
    assert game.min_first_episode() == (tick or 1)


def test_terms_that_pay_nothing() -> None:
    terms = [
        RewardTerm(weight=0.0, value=Inventory(resource="heart")),
        RewardTerm(value=Inventory(resource="heart"), cap=0.0),
    ]
    assert bench(EASY, rewards=terms).min_first_episode() == 1
    full = RewardTerm(value=Inventory(resource="heart"), cap=1.0)
    assert bench(EASY, rewards=[full], agent=AgentType(inventory={"heart": 1})).min_first_episode() == 1


def test_the_reward_statistic_moves_a_tick_after_the_first_pay() -> None:
    terms = [RewardTerm(value=Inventory(resource="ore")), RewardTerm(value=Stat(name="reward"))]
    assert bench(EASY, rewards=terms).min_first_episode() == 52


@pytest.mark.parametrize(
    ("game", "sizes", "tick"),
    [
        ("toy", {}, 1),
        ("arena_basic_easy_shaped", {}, 90),
        ("arena", {}, 190),
        ("arena_basic", {}, 190),
        ("arena", {"max_steps": 150}, 150),
    ],
)
def test_min_first_episode(game: str, sizes: dict[str, int], tick: int) -> None:
    assert gridmill.games.build(game, **sizes).min_first_episode() == tick


def test_make_desynchronises_no_shorter_than_the_first_rewards() -> None:
    for name, m in (("arena_basic_easy_shaped", 90), ("arena", 190)):
        with gridmill.make(name, num_worlds=5, desync_episodes=True) as env:
            env.reset()
            lengths = [env.inspect(world)["max_steps"] for world in range(5)]
            assert lengths == [m + round((1000 - m) * (i + 1) / 5) for i in range(5)]
    both = [gridmill.games.arena_basic_easy_shaped(6), gridmill.games.arena(6)]
    with gridmill.make(both, num_worlds=2, desync_episodes=True) as env:
        env.reset()
        assert env.inspect(0)["max_steps"] == 190 + (1000 - 190) // 2
    with gridmill.make("arena", num_worlds=5, desync_episodes=True, min_first_episode=10) as env:
        env.reset()
        assert env.inspect(0)["max_steps"] == 10 + round(990 / 5)
