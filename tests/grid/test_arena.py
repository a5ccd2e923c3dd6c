"""The arena games: what stands where, who starts where, how the variants differ, and that a heart can be made."""

from __future__ import annotations

from collections import Counter, deque
from typing import Any

import numpy as np
import pytest
from random_games import agents_of, quiet_make
from scenes import STEPS

import gridmill
from gridmill import Env, Game
from gridmill.grid import Attack, Inventory, Limit, RewardTerm

ARENAS = ["arena", "arena_basic", "arena_basic_easy_shaped"]
HARD = {"wall": 10, "mine": 10, "generator": 5, "altar": 5, "lasery": 1, "armory": 1}
EASY = {"wall": 20, "block": 20, "mine": 10, "generator": 5, "altar": 5}
PER_QUARTER = {"arena": HARD, "arena_basic": HARD, "arena_basic_easy_shaped": EASY}


def start(game: Game, **options: Any) -> Env:
    env = quiet_make(game, **({"num_worlds": 1, "seed": 3} | options))
    env.reset()
    return env


def quarter_of(thing: dict[str, Any]) -> tuple[int, int]:
    return (thing["row"] - 6) // 25, (thing["column"] - 6) // 25


@pytest.mark.parametrize("name", ARENAS)
@pytest.mark.parametrize("seed", [0, 1, 77])
def test_every_quarter_has_its_objects_and_the_border_is_wall(name: str, seed: int) -> None:
    with start(gridmill.games.build(name), seed=seed) as env:
        world = env.inspect(0)
    assert (world["height"], world["width"]) == (62, 62)
    counted: dict[tuple[int, int], Counter[str]] = {}
    border = 0
    for thing in world["objects"]:
        if 6 <= thing["row"] < 56 and 6 <= thing["column"] < 56:
            counted.setdefault(quarter_of(thing), Counter())[thing["type"]] += 1
        else:
            assert thing["type"] == "wall"
            border += 1
    assert border == 62 * 62 - 50 * 50
    expected = Counter(PER_QUARTER[name] | {"agent": 6})
    assert counted == {(r, c): expected for r in (0, 1) for c in (0, 1)}


@pytest.mark.parametrize("name", ARENAS)
def test_agents_are_dealt_six_to_a_quarter_in_order(name: str) -> None:
    with start(gridmill.games.build(name), num_worlds=3) as env:
        for world in range(3):
            dealt = [quarter_of(a) for a in agents_of(env.inspect(world))]
            assert dealt == [(0, 0)] * 6 + [(0, 1)] * 6 + [(1, 0)] * 6 + [(1, 1)] * 6


@pytest.mark.parametrize(
    ("agents", "size"), [(1, (37, 37)), (3, (37, 37)), (6, (37, 37)), (12, (37, 62)), (24, (62, 62)), (36, (62, 87))]
)
def test_sizes_follow_the_number_of_agents(agents: int, size: tuple[int, int]) -> None:
    with start(gridmill.games.arena(num_agents=agents)) as env:
        world = env.inspect(0)
    assert (world["height"], world["width"]) == size


@pytest.mark.parametrize("agents", [0, -6, 7, 23])
def test_agents_come_in_sixes(agents: int) -> None:
    with pytest.raises(ValueError, match=f"^num_agents: expected 1 to 6 or a multiple of 6, got {agents}$"):
        gridmill.games.arena(num_agents=agents)


@pytest.mark.parametrize("name", ARENAS)
def test_what_all_arenas_share(name: str) -> None:
    game = gridmill.games.build(name)
    assert game.resources == ("ore", "battery", "heart", "laser", "armor", "blueprint")
    limits = {limit.resources: limit.base for limit in game.agent.limits}
    assert limits == {(r,): 255 if r == "heart" else 50 for r in game.resources}
    assert all(limit == Limit(resources=limit.resources, base=limit.base) for limit in game.agent.limits)
    assert game.max_steps == 1000
    assert game.attack == Attack(cost={"laser": 1 if name == "arena" else 100}, armor="armor")
    with start(game) as env:
        assert env.action_names == ["noop", *(f"move_{d}" for d in STEPS), "attack_nearest"]
        assert env.bytes_per_world > 0
        assert all(a["inventory"] == {} for a in agents_of(env.inspect(0)))
        assert all(o["inventory"] == {} for o in env.inspect(0)["objects"])


def test_recipes_of_the_arena() -> None:
    recipes = {}
    for name, kind in gridmill.games.arena().objects.items():
        if kind.converter is not None:
            c = kind.converter
            recipes[name] = (dict(c.inputs), dict(c.outputs), c.cooldown)
            assert (c.max_output, c.max_input, c.initial_resource_count, c.max_conversions) == (5, 5, 0, -1)
    assert recipes == {
        "mine": ({}, {"ore": 1}, 50),
        "generator": ({"ore": 1}, {"battery": 1}, 25),
        "altar": ({"battery": 3}, {"heart": 1}, 10),
        "lasery": ({"battery": 1, "ore": 2}, {"laser": 1}, 10),
        "armory": ({"ore": 3}, {"armor": 1}, 10),
    }


def test_the_easy_arena_differs_in_these_fields_and_nothing_else() -> None:
    hard, easy = gridmill.games.arena(), gridmill.games.arena_basic_easy_shaped()
    assert {path.split(".")[0].split("[")[0] for path in hard.diff(easy)} <= {
        "name",
        "attack",
        "objects",
        "map",
        "rewards",
    }
    assert gridmill.games.arena_basic().diff(hard).keys() == {"name", "attack.cost.laser"}
    assert (hard.attack.cost["laser"], easy.attack.cost["laser"]) == (1, 100)  # type: ignore[union-attr]
    back = easy.replace("name", "arena").replace("attack.cost.laser", 1)
    assert set(easy.objects) == set(EASY)
    for name in set(HARD) & set(EASY) - {"altar"}:
        assert easy.objects[name] == hard.objects[name]
    assert easy.objects["altar"].replace("converter.inputs.battery", 3) == hard.objects["altar"]
    assert easy.map.maps[0].objects == EASY  # type: ignore[union-attr]
    weights = {"ore": 0.1, "battery": 0.8, "laser": 0.5, "armor": 0.5, "blueprint": 0.5}
    terms = [RewardTerm(weight=w, value=Inventory(resource=r), cap=1.0) for r, w in weights.items()]
    heart = RewardTerm(weight=1.0, value=Inventory(resource="heart"), cap=100.0)
    assert easy.rewards == (*terms, heart)
    assert hard.rewards == (heart,)
    back = back.replace("objects", dict(hard.objects)).replace("rewards", list(hard.rewards))
    assert back.replace("map.maps.0.objects", HARD) == hard
    assert back.replace("map.maps.0.objects", HARD).fingerprint() == hard.fingerprint()


# ---- playing


class Producer:
    """Walks to what it needs next: ore from a mine, into a generator, battery into an altar, heart out of it."""

    def __init__(self, env: Env, index: int) -> None:
        self.env, self.index = env, index

    def act(self) -> str:
        world = self.env.inspect(0)
        me = agents_of(world)[self.index]
        inventory = me["inventory"]
        full = [o for o in world["objects"] if o["type"] == "altar" and o["inventory"].get("heart")]
        if not full and inventory.get("battery"):
            full = [o for o in world["objects"] if o["type"] == "altar"]
        if not full:
            full = [o for o in world["objects"] if o["type"] == "generator" and o["inventory"].get("battery")]
        if not full and inventory.get("ore"):
            full = [o for o in world["objects"] if o["type"] == "generator"]
        if not full:
            full = [o for o in world["objects"] if o["type"] == "mine" and o["inventory"].get("ore")]
        return self.towards(world, me, {(o["row"], o["column"]) for o in full})

    def towards(self, world: dict[str, Any], me: dict[str, Any], goals: set[tuple[int, int]]) -> str:
        taken = {(o["row"], o["column"]) for o in world["objects"]}
        queue = deque([((me["row"], me["column"]), "noop")])
        seen = {(me["row"], me["column"])}
        while queue:
            (row, column), first = queue.popleft()
            for name, (dr, dc) in STEPS.items():
                cell = (row + dr, column + dc)
                step = f"move_{name}" if first == "noop" else first
                if cell in goals:
                    return step
                if cell not in seen and cell not in taken:
                    seen.add(cell)
                    queue.append((cell, step))
        return "noop"


@pytest.mark.parametrize(("name", "pays"), [("arena", 1.0), ("arena_basic", 1.0), ("arena_basic_easy_shaped", 1.0)])
def test_a_scripted_agent_makes_a_heart(name: str, pays: float) -> None:
    game = gridmill.games.build(name, num_agents=6, max_steps=500)
    with start(game) as env:
        producer = Producer(env, 0)
        total = 0.0
        for _ in range(499):
            actions = np.zeros(env.num_rows, np.int32)
            actions[0] = env.action_names.index(producer.act())
            env.step(actions)
            total += float(env.rewards[0])
            me = agents_of(env.inspect(0))[0]["inventory"]
            if me.get("heart"):
                break
        else:
            pytest.fail(f"{name}: no heart in 499 ticks")
        shaped = 0.1 * bool(me.get("ore")) + 0.8 * bool(me.get("battery")) if name.endswith("shaped") else 0.0
        assert total == pytest.approx(pays + shaped, abs=1e-6)
        while not (taken := env.take_episodes())["world"].size:
            env.step(np.zeros(env.num_rows, np.int32))
        assert taken["heart.get"].tolist() == [1, 0, 0, 0, 0, 0]
        assert taken["heart.amount"].tolist() == [1, 0, 0, 0, 0, 0]


def test_a_shot_lands_in_the_arena_and_never_in_basic() -> None:
    for name, lands in (("arena", True), ("arena_basic", False)):
        text = "1\n2"
        game = gridmill.games.build(name).replace("num_agents", 2).replace("agent.inventory", {"laser": 50})
        game = game.replace("map", {"kind": "ascii", "text": text})
        with start(game) as env:
            env.step(np.array([env.action_names.index("attack_nearest"), 0], np.int32))
            frozen = [t.value for t in env.decode(1) if t.feature == "agent:frozen" and (t.row, t.column) == (0, 0)]
            assert frozen == ([9] if lands else [])


@pytest.mark.parametrize("name", ARENAS)
def test_a_masked_random_policy_alone_in_the_world_never_fails(name: str) -> None:
    """One agent acts, the others stand still: what the mask allows works."""
    game = gridmill.games.build(name, num_agents=6, max_steps=600)
    with start(game, num_worlds=4, masks=True) as env:
        assert env.masks is not None
        rng = np.random.default_rng(1)
        for _ in range(600):
            actions = (rng.random(env.masks.shape) * env.masks).argmax(1)
            actions[np.arange(env.num_rows) % 6 != 0] = 0
            env.step(actions.astype(np.int32))
        taken = env.take_episodes()
    assert taken["world"].size == env.num_rows
    for stat, column in taken.items():
        if stat.endswith(".failed") or stat == "action.invalid":
            assert not column.any(), stat
    assert taken["ore.get"].sum() > 0
