"""Attack, freeze, loot, swap, pushing and what a move costs."""

from __future__ import annotations

from typing import Any

import pytest
from scenes import STEPS, agent, do, finish, held, places, play, tokens_at, where

from gridmill import Env
from gridmill.grid import AgentType, Attack, Converter, Limit, ObjectType

STUFF = ("ore", "laser", "armor")
FACINGS = ["north", "south", "west", "east"]
LEFT = {"north": "west", "south": "east", "west": "south", "east": "north"}
LASER = Attack(cost={"laser": 1}, armor="armor", aim="both")


def cone(facing: str, k: int) -> tuple[int, int]:
    """Cell k relative to the attacker: 1 + k / 3 ahead, k % 3 - 1 to the side, left being -1."""
    ahead, left = STEPS[facing], STEPS[LEFT[facing]]
    far, side = 1 + k // 3, k % 3 - 1
    return far * ahead[0] - side * left[0], far * ahead[1] - side * left[1]


def duel(text: str = "1\n2", inventory: dict[str, int] | None = None, attack: Attack = LASER, **fields: Any) -> Env:
    """Agents facing south, each with some lasers."""
    fields.setdefault("agent", AgentType(inventory={"laser": 3} if inventory is None else inventory))
    fields.setdefault("resources", STUFF)
    return play(text, attack=attack, **fields)


def stage(facing: str, marks: dict[tuple[int, int], str]) -> tuple[Env, int]:
    """The attacker (group 1) in the middle of 9 x 9 facing so, marks relative to it; its index."""
    rows = [["."] * 9 for _ in range(9)]
    for (row, column), mark in ({(0, 0): "1"} | marks).items():
        rows[4 + row][4 + column] = mark
    back = STEPS[facing]
    blocked = (4 + back[0], 4 + back[1])
    if rows[blocked[0]][blocked[1]] == ".":
        rows[blocked[0]][blocked[1]] = "#"  # so that turning does not move
    env = duel("\n".join("".join(row) for row in rows))
    mine = next(i for i in range(env.num_agents) if agent(env, i)["group"] == 1)
    do(env, *(f"move_{facing}" if i == mine else "noop" for i in range(env.num_agents)))
    assert places(env)[mine] == (4, 4)
    assert agent(env, mine)["facing"] == facing
    return env, mine


def fire(env: Env, mine: int, name: str) -> bool:
    return do(env, *(name if i == mine else "noop" for i in range(env.num_agents)))[mine]


def frozen(env: Env, index: int) -> int:
    return tokens_at(env, 0, 0, index).get("agent:frozen", 0)


# ---- where it hits


@pytest.mark.parametrize("k", range(9))
@pytest.mark.parametrize("facing", FACINGS)
def test_attack_k_hits_its_cell_and_no_other(facing: str, k: int) -> None:
    env, mine = stage(facing, {cone(facing, k): "2"})
    saved = env.save()
    for other in range(9):
        env.restore(saved)
        assert fire(env, mine, f"attack_{other}") == (other == k)
        assert frozen(env, 1 - mine) == (9 if other == k else 0)
        assert held(env, mine) == {"laser": 5 if other == k else 3}  # one paid, three looted
    env.restore(saved)
    assert fire(env, mine, "attack_nearest")


@pytest.mark.parametrize("facing", FACINGS)
def test_outside_the_cone_nobody_is_hit(facing: str) -> None:
    inside = {cone(facing, k) for k in range(9)}
    around = [(r, c) for r in range(-4, 5) for c in range(-4, 5) if (r, c) != (0, 0) and (r, c) not in inside]
    env, mine = stage(facing, dict.fromkeys(around[::3], "2"))
    assert not fire(env, mine, "attack_nearest")
    assert held(env, mine) == {"laser": 3}


@pytest.mark.parametrize("facing", FACINGS)
@pytest.mark.parametrize("ks", [(0, 1), (1, 2), (2, 3), (4, 5, 8), (6, 7), (0, 8)])
def test_nearest_is_the_smallest_k(facing: str, ks: tuple[int, ...]) -> None:
    env, mine = stage(facing, {cone(facing, k): "2" for k in ks})
    assert fire(env, mine, "attack_nearest")
    at = places(env)
    hit = [at[i] for i in range(env.num_agents) if frozen(env, i)]
    row, column = cone(facing, min(ks))
    assert hit == [(4 + row, 4 + column)]
    assert not fire(env, mine, "attack_nearest")  # the nearest is frozen now; the next is not tried


@pytest.mark.parametrize("facing", FACINGS)
def test_walls_do_not_block(facing: str) -> None:
    walls = {cone(facing, k): "#" for k in range(6)}
    env, mine = stage(facing, walls | {cone(facing, 7): "2"})
    assert fire(env, mine, "attack_7")


@pytest.mark.parametrize("aim", ["nearest", "cells", "both"])
def test_the_actions_of_each_aim(aim: str) -> None:
    env = duel(attack=LASER.replace("aim", aim), moves=4, vibes=("calm", "angry"), swap=True)
    cells = [f"attack_{k}" for k in range(9)] if aim != "nearest" else []
    nearest = ["attack_nearest"] if aim != "cells" else []
    moves = [f"move_{d}" for d in FACINGS]
    assert env.action_names == ["noop", *moves, *cells, *nearest, "change_vibe_calm", "change_vibe_angry", "swap"]


def test_at_the_edge_of_the_map_a_cone_is_only_shorter() -> None:
    env = duel("2.\n.1", validation=True)
    for name in env.action_names:
        if name.startswith("attack_"):
            assert do(env, "noop", name) == [True, False]


# ---- what it costs and does


def test_a_hit_pays_freezes_and_loots() -> None:
    env = duel(inventory={"laser": 3, "ore": 7}, max_steps=30)
    assert do(env, "attack_nearest", "noop") == [True, True]
    assert held(env, 0) == {"laser": 5, "ore": 14}
    assert held(env, 1) == {}
    counted = finish(env)
    assert counted["attack.hit"] == [1, 0]
    assert counted["attack.received"] == [0, 1]
    assert counted["frozen.ticks"] == [0, 10]
    assert counted["laser.lost"] == [1, 3]
    assert counted["laser.gained"] == [3, 0]
    assert counted["ore.gained"] == [7, 0]
    assert counted["ore.lost"] == [0, 7]
    assert not {"attack.blocked", "ore.get", "ore.put", "laser.get", "laser.put"} & set(counted)


def test_armor_blocks_one_hit_at_a_time() -> None:
    env = duel(inventory={"laser": 3, "armor": 2, "ore": 1}, max_steps=9)
    for left in (1, 0):
        assert do(env, "attack_1", "noop") == [True, True]
        assert held(env, 1).get("armor", 0) == left
        assert held(env, 0)["laser"] == 1 + left
        assert frozen(env, 1) == 0
        assert held(env, 0)["ore"] == 1
    assert do(env, "attack_1", "noop") == [True, True]
    assert frozen(env, 1) == 9
    counted = finish(env)
    assert counted["attack.blocked"] == [2, 0]
    assert counted["attack.hit"] == [1, 0]
    assert counted["attack.received"] == [0, 3]


def test_without_armor_in_the_rules_nothing_blocks() -> None:
    env = duel(inventory={"laser": 1, "armor": 9}, attack=LASER.replace("armor", ""))
    do(env, "attack_1", "noop")
    assert frozen(env, 1) == 9
    assert held(env, 0) == {"armor": 18, "laser": 1}


@pytest.mark.parametrize("lasers", [0, 1, 2, 3])
def test_too_little_laser_fails_and_costs_nothing(lasers: int) -> None:
    env = duel(inventory={"laser": lasers, "ore": 1}, attack=LASER.replace("cost.laser", 2))
    assert do(env, "attack_1", "noop") == [lasers >= 2, True]
    assert held(env, 0).get("laser", 0) == (lasers if lasers < 2 else 2 * lasers - 2)


def test_a_frozen_target_is_left_alone() -> None:
    env = duel(max_steps=5)
    assert do(env, "attack_1", "noop") == [True, True]
    before = held(env, 0)
    for name in ("attack_1", "attack_nearest"):
        assert do(env, name, "noop") == [False, True]
    assert held(env, 0) == before
    counted = finish(env)
    assert counted["attack.hit"] == [1, 0]
    assert counted["action.attack_1.failed"] == [1, 0]


def test_loot_as_far_as_it_fits() -> None:
    limits = [Limit(resources=["ore"], base=10), Limit(resources=["laser", "armor"], base=4)]
    env = duel(agent=AgentType(inventory={"ore": 7, "laser": 3}, limits=limits))
    do(env, "attack_1", "noop")
    assert held(env, 0) == {"ore": 10, "laser": 4}
    assert held(env, 1) == {"ore": 4, "laser": 1}


# ---- frozen


@pytest.mark.parametrize("duration", [1, 2, 10, 300])
def test_freeze_counts_from_the_tick_of_the_hit(duration: int) -> None:
    env = duel("1\n2\n.", attack=LASER.replace("freeze_duration", duration), max_steps=1_000)
    assert do(env, "attack_1", "move_south") == [True, False]  # the first frozen tick: attacks come first
    for left in range(duration - 1, 0, -1):
        assert tokens_at(env, 1, 0, 0)["agent:frozen"] == min(255, left)
        assert do(env, "noop", "move_south") == [True, False]
    assert "agent:frozen" not in tokens_at(env, 1, 0, 0)
    assert do(env, "noop", "move_south") == [True, True]
    assert finish(env)["frozen.ticks"] == [0, duration]


def test_a_frozen_agent_can_do_nothing_but_noop() -> None:
    env = duel("1\n2\n3", vibes=("calm", "angry"), swap=True, masks=True)
    do(env, "attack_1", "noop", "noop")
    saved = env.save()
    assert env.masks is not None
    assert env.masks[1].tolist() == [1] + [0] * (env.num_actions - 1)
    for name in env.action_names:
        env.restore(saved)
        assert do(env, "noop", name, "noop") == [True, name == "noop", True]
        assert places(env) == [(0, 0), (1, 0), (2, 0)]
        assert agent(env, 1)["facing"] == "south"
        assert agent(env, 1)["vibe"] == "calm"


def test_attacks_come_before_moves_whatever_the_shuffle() -> None:
    for seed in range(20):
        env = duel("1\n2\n.", seed=seed)
        assert do(env, "attack_1", "move_south") == [True, False]


def test_of_two_who_shoot_each_other_one_is_frozen() -> None:
    winners = set()
    for seed in range(20):
        env = duel("1\n2", seed=seed)
        do(env, "noop", "move_north")  # turns
        done = do(env, "attack_1", "attack_1")
        assert sorted(done) == [False, True]
        assert frozen(env, done.index(False)) == 9
        assert frozen(env, done.index(True)) == 0
        winners.add(done.index(True))
    assert winners == {0, 1}


def test_a_move_into_a_frozen_agent_swaps_places() -> None:
    env = duel("1\n2\n.", max_steps=20)
    assert do(env, "move_south", "noop") == [False, True]
    do(env, "attack_1", "noop")
    assert do(env, "move_south", "noop") == [True, True]
    assert places(env) == [(1, 0), (0, 0)]
    assert frozen(env, 1) == 8
    assert finish(env)["cell.visited"] == [2, 2]


def test_a_new_episode_thaws_everyone() -> None:
    env = duel(max_steps=2)
    do(env, "attack_1", "noop")
    do(env, "noop", "noop")
    assert frozen(env, 1) == 0
    assert do(env, "noop", "move_north") == [True, False]
    assert agent(env, 1)["facing"] == "north"  # it could turn


# ---- facing


@pytest.mark.parametrize(("fields", "shown"), [({}, False), ({"swap": True}, True), ({"attack": Attack()}, True)])
def test_facing_is_shown_only_with_attack_or_swap(fields: dict[str, Any], shown: bool) -> None:
    env = play("@.\n..", **fields)
    assert ("agent:facing" in [f.name for f in env.features]) == shown
    for name, value in (("noop", 1), ("move_north", 0), ("move_east", 3), ("move_west", 2), ("move_southeast", 1)):
        do(env, name)
        assert tokens_at(env, 0, 0).get("agent:facing") == (value if shown else None)


# ---- swap, push


@pytest.mark.parametrize("direction", FACINGS)
@pytest.mark.parametrize("terrain", [True, False])
def test_swap_with_a_block(direction: str, terrain: bool) -> None:
    block = ObjectType(swappable=True, inventory={} if terrain else {"ore": 300})
    row, column = STEPS[direction]
    rows = [["."] * 3 for _ in range(3)]
    rows[1][1], rows[1 + row][1 + column] = "@", "B"
    env = play("\n".join("".join(r) for r in rows), {"B": block}, swap=True, resources=STUFF)
    assert do(env, f"move_{direction}") == [False]
    for _ in range(2):
        before = places(env)[0], where(env, "B")
        assert do(env, "swap") == [before[1] == (before[0][0] + row, before[0][1] + column)]
    assert places(env) == [(1 + row, 1 + column)]
    assert where(env, "B") == (1, 1)
    assert agent(env)["facing"] == direction


@pytest.mark.parametrize("kind", [ObjectType(), ObjectType(pushable=True), Converter(outputs={"ore": 1})])
def test_swap_with_anything_else_fails(kind: ObjectType | Converter) -> None:
    for text in ("@\nB", "@\n#\nB", "B@"):
        env = play(text, {"B": kind}, swap=True, resources=STUFF)
        before = places(env), where(env, "B")
        assert do(env, "swap") == [False]
        assert (places(env), where(env, "B")) == before


def test_swap_with_an_agent() -> None:
    env = play("1\n2", swap=True, max_steps=3)
    assert do(env, "swap", "noop") == [True, True]
    assert places(env) == [(1, 0), (0, 0)]
    assert finish(env)["cell.visited"] == [2, 2]


def test_a_running_machine_can_be_swapped_and_goes_on() -> None:
    machine = ObjectType(swappable=True, converter=Converter(outputs={"ore": 1}, cooldown=6))
    env = play("@\nB", {"B": machine}, swap=True, resources=STUFF)
    assert do(env, "swap") == [True]
    for left in range(5, 0, -1):
        assert tokens_at(env, -1, 0) == {"converting": left}
        do(env, "noop")
    assert tokens_at(env, -1, 0)["inv:ore"] == 1
    assert do(env, "move_north") == [True]
    assert held(env) == {"ore": 1}


@pytest.mark.parametrize("direction", STEPS)
@pytest.mark.parametrize("terrain", [True, False])
def test_a_pushed_block_moves_on_until_something_stops_it(direction: str, terrain: bool) -> None:
    block = ObjectType(pushable=True, inventory={} if terrain else {"ore": 5})
    row, column = STEPS[direction]
    for stop in (".", "#", "C", "2"):
        rows = [["."] * 9 for _ in range(9)]
        for far, mark in enumerate("1B." + stop):
            rows[4 + far * row][4 + far * column] = mark
        env = play("\n".join("".join(r) for r in rows), {"B": block, "C": ObjectType(pushable=True)}, resources=STUFF)
        mine = next(i for i in range(env.num_agents) if agent(env, i)["group"] == 1)
        for far in (1, 2, 3, 4):
            could = far == 1 or (stop == "." and far <= 3)  # the edge is 4 cells away
            assert fire(env, mine, f"move_{direction}") == could
            assert agent(env, mine)["facing"] in direction
        pushed = 3 if stop == "." else 1
        assert places(env)[mine] == (4 + pushed * row, 4 + pushed * column)
        assert where(env, "B") == (4 + (pushed + 1) * row, 4 + (pushed + 1) * column)


# ---- what a move costs


def test_moves_uses_and_pushes_cost_when_they_succeed() -> None:
    kinds: dict[str, ObjectType | Converter] = {}
    kinds["B"] = ObjectType(pushable=True)
    kinds["M"] = Converter(outputs={"laser": 1}, initial_resource_count=1, max_conversions=0)
    env = play("#@B..\n.M...", kinds, resources=STUFF, move_cost={"ore": 2, "armor": 1}, masks=True, moves=4,
               agent=AgentType(inventory={"ore": 7, "armor": 9}))  # fmt: skip
    for name, works, ore in (
        ("move_west", False, 7), ("noop", True, 7), ("move_south", True, 5), ("move_south", False, 5),
        ("move_east", True, 3), ("move_west", True, 1), ("move_east", False, 1),
    ):  # fmt: skip
        assert do(env, name) == [works]
        assert held(env)["ore"] == ore
    assert held(env) == {"ore": 1, "armor": 6, "laser": 1}
    assert env.masks is not None
    assert env.masks.tolist() == [[1, 0, 0, 0, 0]]
    assert agent(env)["facing"] == "east"  # an attempt turns, paid for or not


def test_what_a_use_costs_is_not_given_away_first() -> None:
    """The cost is paid in full also where the machine would take the same resource."""
    env = play("@M", {"M": Converter(inputs={"ore": 1}, outputs={"laser": 1}, cooldown=50)}, resources=STUFF,
               move_cost={"ore": 1}, agent=AgentType(inventory={"ore": 3}), max_steps=2)  # fmt: skip
    assert do(env, "move_east") == [True]
    assert held(env) == {}
    counted = finish(env)
    assert counted["ore.lost"] == [3]
    assert counted["ore.put"] == [2]
