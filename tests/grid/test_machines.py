"""Machines: when they start and pay, what a bump moves, what they store and show, and what is conserved."""

from __future__ import annotations

import numpy as np
import pytest
from random_games import agents_of, quiet_make
from scenes import do, finish, held, play, stored, tokens_at

import gridmill
from gridmill import Env
from gridmill.grid import AgentType, Converter, Inventory, Limit, ObjectType, RewardTerm

CHAIN = ("ore", "battery", "heart")
MINE = Converter(outputs={"ore": 1}, cooldown=50)
GENERATOR = Converter(inputs={"ore": 1}, outputs={"battery": 1}, cooldown=25)
ALTAR = Converter(inputs={"battery": 1}, outputs={"heart": 1}, cooldown=10)


def beside(machine: Converter | ObjectType, resources: tuple[str, ...] = CHAIN, **fields: object) -> Env:
    """One agent with one machine `M` to the east of it."""
    return play("@M", {"M": machine}, resources=resources, **fields)


def wait(env: Env, ticks: int) -> None:
    for _ in range(ticks):
        do(env, "noop")


# ---- the clock


@pytest.mark.parametrize(("batteries", "ready"), [(1, 89), (3, 189)])
def test_the_first_heart_is_ready_at_89_or_189_and_paid_one_tick_later(batteries: int, ready: int) -> None:
    """One of each building; everything is taken in one tick and handed over in the next."""
    env = play(
        "MGA\n.@.",
        {"M": MINE, "G": GENERATOR, "A": ALTAR.replace("inputs.battery", batteries)},
        resources=CHAIN,
        rewards=[RewardTerm(weight=1.0, value=Inventory(resource="heart"))],
    )
    holds_at = paid_at = None
    for tick in range(1, 200):
        mine = held(env)
        if mine.get("battery"):
            action = "move_northeast"
        elif mine.get("ore"):
            action = "move_north"
        elif stored(env, "A").get("heart"):
            action = "move_northeast"
        elif stored(env, "G").get("battery"):
            action = "move_north"
        else:
            action = "move_northwest" if stored(env, "M") else "noop"
        assert do(env, action) == [True]
        if stored(env, "A").get("heart") and holds_at is None:
            holds_at = tick
        if env.rewards[0]:
            assert env.rewards[0] == 1.0
            paid_at = tick
            break
    assert (holds_at, paid_at) == (ready, ready + 1)


def test_a_mine_pays_every_50_ticks_from_the_reset_on() -> None:
    env = beside(MINE.replace("max_output", 3))
    paid = []
    for tick in range(1, 260):
        before = stored(env, "M").get("ore", 0)
        do(env, "noop")
        if stored(env, "M").get("ore", 0) != before:
            paid.append(tick)
    assert paid == [50, 100, 150]  # then three wait: it stands still


def test_a_full_machine_starts_again_in_the_tick_its_outputs_are_taken() -> None:
    env = beside(Converter(outputs={"ore": 1}, cooldown=4, max_output=2))
    wait(env, 20)
    assert stored(env, "M") == {"ore": 2}
    assert "converting" not in tokens_at(env, 0, 1)
    assert do(env, "move_east") == [True]  # tick 21
    assert tokens_at(env, 0, 1) == {"converting": 4}
    wait(env, 3)
    assert stored(env, "M") == {}
    wait(env, 1)  # tick 25
    assert stored(env, "M") == {"ore": 1}


@pytest.mark.parametrize("cooldown", [1, 2, 7])
def test_inputs_handed_over_in_a_tick_start_the_machine_in_it(cooldown: int) -> None:
    env = beside(GENERATOR.replace("cooldown", cooldown), agent=AgentType(inventory={"ore": 1}))
    wait(env, 3)
    assert do(env, "move_east") == [True]  # tick 4
    for left in range(cooldown, 0, -1):
        assert tokens_at(env, 0, 1) == {"converting": left}
        assert stored(env, "M") == {}  # consumed at the start
        do(env, "noop")
    assert tokens_at(env, 0, 1) == {"inv:battery": 1}


def test_a_running_machine_goes_on_by_itself_with_what_it_stores() -> None:
    env = beside(GENERATOR.replace("cooldown", 3), agent=AgentType(inventory={"ore": 3}))
    do(env, "move_east")  # tick 1
    seen = []
    for _ in range(9):
        seen.append((stored(env, "M").get("ore", 0), stored(env, "M").get("battery", 0)))
        do(env, "noop")
    assert seen == [(2, 0)] * 3 + [(1, 1)] * 3 + [(0, 2)] * 3
    assert stored(env, "M") == {"battery": 3}


# ---- what it stores


@pytest.mark.parametrize("max_input", [1, 2, 5])
def test_max_input_recipes_are_stored_beside_the_running_one(max_input: int) -> None:
    recipe = Converter(inputs={"ore": 2, "battery": 1}, outputs={"heart": 1}, cooldown=100, max_input=max_input)
    env = beside(recipe, agent=AgentType(inventory={"ore": 50, "battery": 50}))
    assert do(env, "move_east") == [True]
    full = {"ore": 2 * max_input, "battery": max_input}
    one_used = {name: n for name, n in {"ore": 2 * (max_input - 1), "battery": max_input - 1}.items() if n}
    assert stored(env, "M") == one_used
    assert do(env, "move_east") == [True]  # room for one more recipe beside the running one
    assert stored(env, "M") == full
    assert do(env, "move_east") == [False]
    assert held(env) == {"ore": 50 - 2 * (max_input + 1), "battery": 50 - (max_input + 1)}


def test_partial_inputs_are_kept_until_the_rest_comes() -> None:
    recipe = Converter(inputs={"ore": 2, "battery": 1}, outputs={"heart": 1}, cooldown=5)
    env = play("M@N", {"M": recipe, "N": Converter(outputs={"battery": 1}, cooldown=3)}, resources=CHAIN,
               agent=AgentType(inventory={"ore": 2}))  # fmt: skip
    assert do(env, "move_west") == [True]
    assert tokens_at(env, 0, -1) == {"inv:ore": 2}
    wait(env, 4)
    assert tokens_at(env, 0, -1) == {"inv:ore": 2}
    assert do(env, "move_east") == [True]
    assert do(env, "move_west") == [True]
    assert tokens_at(env, 0, -1) == {"converting": 5}


@pytest.mark.parametrize("count", [0, 1, 3])
def test_initial_resource_count_waits_at_the_start(count: int) -> None:
    env = beside(
        Converter(outputs={"ore": 2, "heart": 1}, cooldown=50, initial_resource_count=count, max_conversions=0)
    )
    assert stored(env, "M") == ({"ore": 2 * count, "heart": count} if count else {})
    assert do(env, "move_east") == [count > 0]
    assert held(env) == ({"ore": 2 * count, "heart": count} if count else {})
    wait(env, 60)
    assert stored(env, "M") == {}  # never refills


@pytest.mark.parametrize(("most", "made"), [(-1, 4), (0, 0), (2, 2)])
def test_max_conversions(most: int, made: int) -> None:
    env = beside(Converter(outputs={"ore": 1}, cooldown=3, max_output=4, max_conversions=most))
    wait(env, 40)
    assert stored(env, "M").get("ore", 0) == made
    do(env, "move_east")
    wait(env, 40)
    assert stored(env, "M").get("ore", 0) == (4 if most < 0 else 0)


def test_several_outputs_come_at_once_and_may_pass_max_output() -> None:
    """It starts while fewer than max_output units wait, whatever it then adds."""
    env = beside(Converter(outputs={"ore": 3, "heart": 1}, cooldown=2, max_output=5))
    wait(env, 2)
    assert stored(env, "M") == {"ore": 3, "heart": 1}
    wait(env, 2)
    assert stored(env, "M") == {"ore": 6, "heart": 2}
    assert "converting" not in tokens_at(env, 0, 1)
    wait(env, 10)
    assert stored(env, "M") == {"ore": 6, "heart": 2}


# ---- the bump


def test_a_bump_takes_all_that_fits_then_gives() -> None:
    machine = ObjectType(inventory={"battery": 7}, converter=GENERATOR)
    limits = [Limit(resources=["battery"], base=5)]
    env = beside(machine, agent=AgentType(inventory={"ore": 9, "battery": 1}, limits=limits))
    assert do(env, "move_east") == [True]
    assert held(env) == {"ore": 4, "battery": 5}
    assert stored(env, "M") == {"ore": 4, "battery": 3}  # 5 given, one of them already consumed
    assert do(env, "move_east") == [True]
    assert held(env) == {"ore": 3, "battery": 5}
    assert do(env, "move_east") == [False]


def test_a_bump_that_moves_nothing_fails_and_costs_nothing() -> None:
    env = beside(MINE, agent=AgentType(inventory={"battery": 3}), max_steps=4, move_cost={"battery": 1})
    assert do(env, "move_east") == [False]
    assert held(env) == {"battery": 3}
    counted = finish(env)
    assert counted["action.move_east.failed"] == [1]
    assert "battery.lost" not in counted


def test_flows_are_counted() -> None:
    env = beside(Converter(inputs={"ore": 1}, outputs={"battery": 2}, cooldown=1), max_steps=12,
                 agent=AgentType(inventory={"ore": 2}))  # fmt: skip
    do(env, "move_east")
    wait(env, 3)
    do(env, "move_east")
    counted = finish(env)
    flows = {name: n for name, [n] in counted.items() if name.split(".")[0] in CHAIN}
    assert flows == {"ore.put": 2, "ore.lost": 2, "battery.get": 4, "battery.gained": 4, "battery.amount": 4}


# ---- what it shows


def test_converting_counts_down_and_is_capped_at_255() -> None:
    env = beside(Converter(outputs={"ore": 1}, cooldown=260, max_output=2), max_steps=2_000)
    assert tokens_at(env, 0, 1) == {"converting": 255}
    for tick in range(1, 261):
        do(env, "noop")
        if tick < 260:
            assert tokens_at(env, 0, 1) == {"converting": min(255, 260 - tick)}
    assert tokens_at(env, 0, 1) == {"converting": 255, "inv:ore": 1}


def test_stored_inputs_and_waiting_outputs_are_shown_beside_the_clock() -> None:
    env = beside(GENERATOR, agent=AgentType(inventory={"ore": 9}))
    do(env, "move_east")
    wait(env, 25)
    assert tokens_at(env, 0, 1) == {"converting": 25, "inv:ore": 3, "inv:battery": 1}


def test_amounts_of_two_digits_in_a_machine() -> None:
    """What stood there at the start and the initial count add up, also where agents can hold few."""
    machine = ObjectType(inventory={"ore": 200}, converter=Converter(outputs={"ore": 1}, initial_resource_count=100))
    limits = [Limit(resources=["ore"], base=50)]
    env = beside(machine, agent=AgentType(limits=limits))
    assert stored(env, "M") == {"ore": 300}
    assert tokens_at(env, 0, 1) == {"inv:ore": 300 - 256, "inv:ore:p1": 1}
    assert do(env, "move_east") == [True]
    assert stored(env, "M") == {"ore": 250}
    assert tokens_at(env, 0, 1) == {"inv:ore": 250}


def test_machines_begin_anew_in_every_episode() -> None:
    env = beside(Converter(outputs={"ore": 1}, cooldown=4, max_conversions=1), max_steps=6)
    for _ in range(3):
        assert tokens_at(env, 0, 1) == {"converting": 4}
        wait(env, 5)
        assert tokens_at(env, 0, 1) == {"inv:ore": 1}
        wait(env, 1)


def test_a_restored_world_goes_on_converting() -> None:
    env = beside(GENERATOR, agent=AgentType(inventory={"ore": 2}))
    do(env, "move_east")
    wait(env, 7)
    saved = env.save()
    wait(env, 30)
    after = (env.obs.copy(), env.state_hash().copy())
    env.restore(saved)
    assert tokens_at(env, 0, 1)["converting"] == 18
    wait(env, 30)
    np.testing.assert_array_equal(env.obs, after[0])
    assert env.state_hash().tolist() == after[1].tolist()


# ---- nothing comes from nothing


@pytest.mark.parametrize("name", ["arena", "arena_basic_easy_shaped"])
def test_resources_are_conserved_over_long_random_play(name: str) -> None:
    """Per world: what agents got and put, what they hold, and what machines hold agree with each other."""
    game = gridmill.games.build(name, max_steps=700)
    with quiet_make(game, num_worlds=2, seed=5, masks=True) as env:
        env.reset()
        rng = np.random.default_rng(5)
        assert env.masks is not None
        for _ in range(699):
            chances = rng.random(env.masks.shape) * env.masks
            env.step(chances.argmax(1).astype(np.int32))
        worlds = [env.inspect(world) for world in range(2)]
        env.step(np.zeros(env.num_rows, np.int32))
        taken = env.take_episodes()
    assert taken["ore.get"].sum() > 50
    assert taken["battery.get"].sum() > 5
    for index, world in enumerate(worlds):
        rows = taken["world"] == index
        total = {stat: int(taken[stat][rows].sum()) for stat in taken if "." in stat and stat.split(".")[1] != "noop"}
        agents = agents_of(world)
        for resource in game.resources:
            in_hand = [a["inventory"].get(resource, 0) for a in agents]
            assert taken[f"{resource}.amount"][rows].tolist() == in_hand  # the last tick was a noop for all
            gained, lost = total[f"{resource}.gained"], total[f"{resource}.lost"]
            assert sum(in_hand) == gained - lost
            assert gained >= total[f"{resource}.get"]
            assert lost >= total[f"{resource}.put"]
        for kind, made, used in (("generator", "battery", "ore"), ("altar", "heart", "battery")):
            recipe = game.objects[kind].converter
            assert recipe is not None
            machines = [o["inventory"] for o in world["objects"] if o["type"] == kind]
            waiting = sum(m.get(made, 0) for m in machines)
            made_of = (total[f"{made}.get"] + waiting) * recipe.inputs[used]
            still_there = sum(m.get(used, 0) for m in machines)
            assert made_of + still_there <= total[f"{used}.put"]
            if name != "arena":  # there ore and battery go nowhere else: the rest is being converted
                running = total[f"{used}.put"] - made_of - still_there
                assert 0 <= running <= len(machines) * recipe.inputs[used]
