"""Random games and maps, played by chance: what must hold in every one of them.

Fast observations equal the reference; two threads make the same bytes as one; a world saved in the middle and played
again is the same; nobody stands outside, twice or on another; nobody holds more than fits; masks say what succeeds. The
long tier plays 5 000 games of 50 ticks; `make asan-fuzz` plays them on an extension built with ASan and UBSan.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from random_games import LAND, Digest, agents_of, attempt, games, quiet_make, random_actions
from test_masks import check_masks

import gridmill
from gridmill import Env, Game
from gridmill.grid import (
    AgentType,
    Buildings,
    Canvas,
    Caves,
    Collective,
    Compound,
    Connect,
    Fill,
    Layer,
    Limit,
    Mirror,
    Objects,
    ObjectType,
    OneOf,
    Part,
    Radial,
    Rim,
    Rule,
    Scatter,
    Standing,
    Transfer,
    Zones,
)  # fmt: skip

SEEDS = st.integers(0, 2**32 - 1)
TICKS = 50


def fits(limits: Iterable[Limit], held: Mapping[str, int], start: Mapping[str, int]) -> bool:
    """Every group within its limit, or not above what it began with."""
    for limit in limits:
        bonus = sum(each * held.get(name, 0) for name, each in limit.bonus.items())
        most = min(limit.max, max(limit.base, bonus))
        total, first = (sum(whose.get(name, 0) for name in limit.resources) for whose in (held, start))
        if total > max(most, first):
            return False
    return True


def check_world(game: Game, world: dict[str, Any]) -> None:
    objects, height, width = world["objects"], world["height"], world["width"]
    cells = [(o["row"], o["column"]) for o in objects]
    assert len(set(cells)) == len(cells)
    assert all(0 <= row < height and 0 <= column < width for row, column in cells)
    agents = agents_of(world)
    assert [a["agent"] for a in agents] == list(range(game.num_agents))
    assert all(fits(game.agent.limits, a["inventory"], game.agent.inventory) for a in agents)
    for name, team in world["collectives"].items():
        assert fits(game.collectives[name].limits, team["inventory"], game.collectives[name].inventory)


def play_by_chance(games: list[Game], seed: int) -> None:
    with (
        quiet_make(games, num_worlds=2, seed=seed, validation=True, masks=True) as one,
        quiet_make(games, num_worlds=2, seed=seed, threads=2, masks=True) as two,
    ):
        digests = Digest(), Digest()
        actions = random_actions(one, seed)
        one.reset(), two.reset()
        for tick in range(TICKS):
            chosen = actions()
            for env, digest in zip((one, two), digests, strict=True):
                env.step(chosen)
                digest.add_arrays(env)
                digest.add_episodes(env)
            if tick % 10 == 3:
                for place, world in enumerate(one.game_of_world):
                    check_world(games[world], one.inspect(place))
                check_replay(two, [chosen, actions(), actions()])
        assert (one.state_hash() == two.state_hash()).all()
        assert digests[0].hex() == digests[1].hex()
        report = one.observation_validation
        assert report is not None
        assert report.comparisons >= one.num_rows * (TICKS + 1)
        assert report.mismatches == 0, report.first_mismatch


def check_replay(env: Env, actions: list[np.ndarray]) -> None:
    """The same future twice from one saved state, after which the env is as it was."""
    saved, before = env.save(), env.state_hash()
    futures = []
    for _ in range(2):
        env.restore(saved)
        digest = Digest()
        for chosen in actions:
            env.step(chosen)
            digest.add_arrays(env)
            digest.add_episodes(env)
        futures.append((digest.hex(), env.state_hash().tobytes()))
    assert futures[0] == futures[1]
    env.restore(saved)
    assert (env.state_hash() == before).all()


def side_by_side(first: Game, second: Game) -> Game:
    """The second game, named so, with rows of the same shape as the first's."""
    for name in ("window", "height", "width", "num_tokens"):
        second = second.replace(f"observation.{name}", getattr(first.observation, name))
    return second.replace("name", "second")


@st.composite
def traders(draw: st.DrawFn) -> Game:
    """A game in which all that rules do is hand things over, and nothing is lost by a bonus."""
    resources = ["ore", "wood"]
    holders = st.permutations(["actor", "target", "actor_collective", "target_collective"])
    amounts = st.dictionaries(st.sampled_from(resources), st.sampled_from([0, 1, 2, 300, 65_535]), max_size=2)

    def rules() -> list[Rule]:
        sides = [draw(holders)[:2] for _ in range(draw(st.integers(1, 3)))]
        return [Rule(then=(Transfer(source=a, to=b, amounts=draw(amounts)),)) for a, b in sides]  # type: ignore[arg-type]

    def limits() -> list[Limit]:
        together = draw(st.booleans())
        groups = [resources] if together else [[name] for name in resources]
        return [Limit(resources=group, base=draw(st.sampled_from([600, 1_000, 65_535]))) for group in groups]

    stock = st.dictionaries(st.sampled_from(resources), st.sampled_from([0, 1, 255, 300]), max_size=2)
    teams = ["blues", "reds"]
    chests = {
        name: ObjectType(inventory=draw(stock), limits=limits(), collective=draw(st.sampled_from(["", *teams])),
                         use=draw(st.sampled_from(["first", "all"])), on_use=rules())
        for name in ("chest", "safe")
    }  # fmt: skip
    return Game(
        name="traders", num_agents=4, max_steps=1000, resources=resources,
        agent=AgentType(inventory=draw(stock), limits=limits(), collectives=teams, on_use=rules()),
        collectives={name: Collective(inventory=draw(stock), limits=limits()) for name in teams},
        objects={"wall": ObjectType(), **chests},
        map=Scatter(height=5, width=5, border=0, objects={"chest": 2, "safe": 2}, groups=2),
    )  # fmt: skip


@st.composite
def layers(draw: st.DrawFn, depth: int = 0) -> Layer:
    """Any layer, things among them in any order, with others inside."""
    plain = [*LAND, Fill(), Fill(what="floor"), Caves(rounds=0), Rim(deepest=3, widest=3), Radial(wall=1), Connect()]
    kinds = ["plain", "objects", "buildings", "compound"]
    kind = draw(st.sampled_from(kinds if depth == 2 else [*kinds, "part", "zones", "one of", "mirror", "mirror"]))
    if kind == "plain":
        return draw(st.sampled_from(plain))
    if kind == "objects":
        names = st.sampled_from(["mine", "crate", "wall", "agent"])
        return Objects(counts=draw(st.dictionaries(names, st.integers(0, 5), max_size=3)))
    if kind == "buildings":
        return Buildings(draws=draw(st.integers(0, 20)), weights={"mine": 1.0, "crate": 0.5, "wall": 0.1})
    if kind == "compound":
        spots = draw(st.lists(st.tuples(st.integers(-2, 2), st.integers(-2, 2)), max_size=6, unique=True))
        types = [draw(st.sampled_from(["mine", "agent", "wall"])) for _ in spots]
        things = tuple(Standing(type=t, row=r, column=c) for t, (r, c) in zip(types, spots, strict=True))
        return Compound(side=5, gate=draw(st.sampled_from([0, 1, 3])), clear=1, things=things)
    inner = tuple(draw(st.lists(layers(depth + 1), min_size=1, max_size=3)))
    if kind == "part":
        return Part(top=draw(st.integers(0, 3)), left=draw(st.integers(0, 3)), layers=inner)
    if kind == "zones":
        return Zones(count=draw(st.integers(1, 5)), smallest=6, largest=9, share=draw(st.floats(0, 1)), layers=inner)
    if kind == "one of":
        return OneOf(layers=inner)
    return Mirror(axis=draw(st.sampled_from(["horizontal", "vertical", "both"])), layers=inner)


@st.composite
def canvases(draw: st.DrawFn) -> Game:
    """A game on a canvas of any layers, which may be refused or found impossible to draw."""
    stuff = st.sampled_from([{}, {"ore": 1}])  # without a state of its own, or with
    objects = {name: ObjectType(inventory=draw(stuff)) for name in ("wall", "crate")}
    return Game(
        name="canvas", num_agents=2, resources=("ore",),
        objects={**objects, "mine": ObjectType(inventory={"ore": 2})},
        map=Canvas(
            height=draw(st.integers(12, 24)), width=draw(st.integers(12, 40)), border=draw(st.integers(0, 1)),
            layers=tuple(draw(st.lists(layers(), min_size=1, max_size=4))),
        ),
    )  # fmt: skip


def draw_maps(game: Game, seed: int) -> None:
    """Three maps, if the layers can be drawn at all; what cannot is said, never done."""
    env = attempt(lambda: quiet_make(game, num_worlds=3, seed=seed, validation=True), ValueError)
    if isinstance(env, ValueError):
        return
    with env:
        if isinstance(attempt(env.reset, RuntimeError), Exception):
            return
        for world in range(3):
            check_world(game, env.inspect(world))
        env.step(np.ones(env.num_rows, np.int32))
        assert env.observation_validation.mismatches == 0


def owned(env: Env) -> dict[str, int]:
    world = env.inspect(0)
    holders = [*world["objects"], *world["collectives"].values()]
    return {name: sum(h["inventory"].get(name, 0) for h in holders) for name in ("ore", "wood")}


@settings(max_examples=16)
@given(games(), SEEDS)
def test_random_games_hold_together(game: Game, seed: int) -> None:
    play_by_chance([game], seed)


TWO = given(games(most_agents=1), games(most_agents=1), SEEDS)


@settings(max_examples=8)
@TWO
def test_two_random_games_hold_together(first: Game, second: Game, seed: int) -> None:
    play_side_by_side(first, second, seed)


def test_hardly_a_random_game_is_refused_for_what_its_rules_could_take() -> None:
    """Small games take little; who refuses them has counted wrong, and other tests draw another in their place."""
    refused = []

    @settings(max_examples=400, database=None)
    @given(games())
    def look_at(game: Game) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", gridmill.TokenBudgetWarning)
            try:
                gridmill.make(game, num_worlds=1).close()
            except ValueError as error:
                refused.append(str(error))

    look_at()
    assert len(refused) <= 3, refused


@pytest.mark.long
@pytest.mark.timeout(20_000)
@settings(max_examples=200)
@TWO
def test_two_hundred_pairs_of_random_games_hold_together(first: Game, second: Game, seed: int) -> None:
    play_side_by_side(first, second, seed)


def play_side_by_side(first: Game, second: Game, seed: int) -> None:
    """Games with other words side by side in one batch; they must share their first vibe."""
    assume(not first.vibes or not second.vibes or first.vibes[0] == second.vibes[0])
    play_by_chance([first, side_by_side(first, second)], seed)


@settings(max_examples=50)
@given(traders(), SEEDS)
def test_transfers_neither_make_nor_lose_anything(game: Game, seed: int) -> None:
    with quiet_make(game, num_worlds=1, seed=seed, validation=True) as env:
        actions = random_actions(env, seed)
        env.reset()
        before = owned(env)
        for _ in range(TICKS):
            env.step(actions())
            assert owned(env) == before


@pytest.mark.long
@pytest.mark.timeout(20_000)
@settings(max_examples=5_000)
@given(games(), SEEDS)
def test_five_thousand_random_games_hold_together(game: Game, seed: int) -> None:
    play_by_chance([game], seed)


@pytest.mark.long
@pytest.mark.timeout(20_000)
@settings(max_examples=1_000)
@given(games(most_agents=3, by_chance=False), SEEDS)
def test_masks_equal_outcomes_in_a_thousand_random_games(game: Game, seed: int) -> None:
    game = game.replace("observation.num_tokens", max(2, game.observation.num_tokens))
    with quiet_make(game, num_worlds=2, seed=seed, masks=True) as env:
        actions = random_actions(env, seed)
        env.reset()
        for tick in range(16):
            if tick % 5 == 0:
                check_masks(env)
            env.step(actions())


@settings(max_examples=60)
@given(canvases(), SEEDS)
def test_random_canvases_hold_together(game: Game, seed: int) -> None:
    draw_maps(game, seed)


@pytest.mark.long
@pytest.mark.timeout(20_000)
@settings(max_examples=5_000)
@given(canvases(), SEEDS)
def test_five_thousand_random_canvases_hold_together(game: Game, seed: int) -> None:
    draw_maps(game, seed)
