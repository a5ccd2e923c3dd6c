"""CogsGuard: the start, weather, a working life of every gear, hearts, junctions that change hands, and death."""

from __future__ import annotations

import numpy as np
import pytest
from cogs import ELEMENTS, LEGEND, found, holders, small, store, wait
from random_games import agents_of, quiet_make
from scenes import bump, do, finish, held

from gridmill import Env, games
from gridmill.grid import Ascii

FAR = "." * 10


# ---- the start


def test_after_the_first_tick() -> None:
    env = quiet_make(games.cogsguard(), num_worlds=2, seed=5)
    env.reset()
    assert held(env) == {"energy": 100, "hp": 50, "solar": 1}
    wait(env, 1)
    for agent in agents_of(env.inspect(0)):
        assert agent["inventory"] == {"energy": 20, "hp": 100, "solar": 3}
        assert agent["collective"] == "cogs"


def test_sizes_words_and_what_is_seen() -> None:
    game = games.cogsguard()
    assert (game.num_agents, game.max_steps, game.observation.num_tokens) == (8, 10_000, 200)
    assert (games.cogsguard_arena().num_agents, games.cogsguard_arena().max_steps) == (8, 1000)
    env = quiet_make(game, num_worlds=1, seed=1)
    env.reset()
    moves = ["noop", "move_north", "move_south", "move_west", "move_east"]
    vibes = ["default", "heart", "gear", "scrambler", "aligner", "miner", "scout"]
    assert env.action_names == moves + [f"change_vibe_{vibe}" for vibe in vibes]
    view = env.inspect(0)
    assert (view["height"], view["width"]) == (98, 98)
    shown = {t.feature: t.value for t in env.decode(0) if t.row is None}
    assert {name: shown[f"inv:collective:{name}"] for name in ELEMENTS} == dict.fromkeys(ELEMENTS, 24)
    assert shown["last_reward"] == 128


def test_what_was_configured_for_the_team_bears_its_tag() -> None:
    env = quiet_make(games.cogsguard(), num_worlds=1, seed=1)
    env.reset()
    elements, gear = sorted(ELEMENTS), sorted(("aligner", "scrambler", "miner", "scout"))
    types = ["agent", "c:hub", *(f"c:{name}" for name in gear), *(f"{name}_extractor" for name in elements)]
    assert env.tags == sorted(["collective:cogs", *(f"type:{name}" for name in (*types, "junction", "wall"))])
    assert len(env.tags) == 13
    for thing in env.inspect(0)["objects"]:
        assert ("collective:cogs" in thing["tags"]) == (thing["collective"] == "cogs")


def test_alignment_leaves_the_tag_as_it_was() -> None:
    env = small("@J", {"hp": 90, "heart": 2, "aligner": 1, "influence": 20})
    assert bump(env, "east")
    (junction,) = (o for o in env.inspect(0)["objects"] if o["type"] == "junction")
    assert (junction["collective"], junction["tags"]) == ("cogs", ["type:junction"])


def test_the_compound() -> None:
    env = quiet_make(games.cogsguard(), num_worlds=1, seed=3)
    env.reset()
    view = env.inspect(0)
    hub = next(o for o in view["objects"] if o["type"] == "c:hub")
    assert (hub["row"], hub["column"], hub["inventory"], hub["collective"]) == (48, 48, {"heart": 5}, "cogs")
    at = {(o["row"] - hub["row"], o["column"] - hub["column"]): o for o in view["objects"]}
    assert (at[-3, 0]["type"], at[-3, 0]["collective"]) == ("junction", "cogs")
    gear = ("aligner", "scrambler", "miner", "scout")
    assert [at[4, column]["type"] for column in (-3, -1, 1, 3)] == [f"c:{name}" for name in gear]
    corners = ((-8, -8), (-8, 8), (8, -8), (8, 8))
    for name, place in zip(ELEMENTS, corners, strict=True):
        assert (at[place]["type"], at[place]["inventory"]) == (f"{name}_extractor", {name: 100})
    assert holders(env)["cogs"] == 1
    assert all(max(abs(a["row"] - hub["row"]), abs(a["column"] - hub["column"])) <= 5 for a in agents_of(view))


@pytest.mark.parametrize(("agents", "wealth"), [(1, 1), (8, 1), (20, 2)])
def test_the_team_starts_with_what_its_agents_could_wear(agents: int, wealth: int) -> None:
    env = quiet_make(games.cogsguard(num_agents=agents, wealth=wealth), num_worlds=1)
    env.reset()
    assert store(env) == dict.fromkeys(ELEMENTS, 3 * agents * wealth)
    assert found(env, "c:hub")[0]["inventory"] == {"heart": 5 * wealth}


# ---- energy and weather


def outside(env: Env, moves: int) -> int:
    """Walks to and fro; how many of the steps succeeded."""
    return sum(bump(env, ("east", "west")[i % 2]) for i in range(moves))


def test_a_move_costs_four_and_nothing_else_does() -> None:
    env = small("#@.#", {"energy": 20, "hp": 90})
    wait(env, 1)
    assert held(env)["energy"] == 20
    seen = []
    for action in ("move_west", "noop", "change_vibe_gear", "move_east"):
        do(env, action)
        seen.append(held(env)["energy"])
    assert seen == [20, 20, 20, 19]  # 3 of the 4 come back by day


def test_walking_by_day_and_by_night() -> None:
    """From 20 energy 17 moves by day, then 3 in 4 ticks; by night 6 moves, then 1 in 4."""
    env = small("@..", {"energy": 20, "hp": 90})
    wait(env, 1)
    assert outside(env, 17) == 17
    assert not bump(env, "east")
    assert outside(env, 40) in (29, 30, 31)
    env = small("@..", {"energy": 20, "hp": 90})
    wait(env, 100)
    assert held(env)["solar"] == 1
    assert outside(env, 6) == 6
    assert not bump(env, "east")
    assert outside(env, 40) in (9, 10, 11)


def test_day_and_night() -> None:
    env = small("@", {"hp": 90})
    seen = {}
    for tick in range(1, 402):
        wait(env, 1)
        seen[tick] = held(env)["solar"]
    day = {tick for tick, solar in seen.items() if solar == 3}
    assert day == {*range(1, 100), *range(200, 300), *range(400, 402)}
    assert set(seen.values()) == {1, 3}


def test_hp_falls_outside_and_is_full_at_home() -> None:
    env = small(f"@{FAR}K", {"hp": 90})
    wait(env, 5)
    assert held(env)["hp"] == 85
    assert bump(env, "east")
    assert held(env)["hp"] == 100


# ---- gear


@pytest.mark.parametrize(
    ("letter", "gear", "dear"),
    [("a", "aligner", "carbon"), ("s", "scrambler", "oxygen"), ("m", "miner", "germanium"), ("t", "scout", "silicon")],
)
def test_gear_is_paid_by_the_team(letter: str, gear: str, dear: str) -> None:
    env = small(f"@{letter}K", num_agents=1)
    before = store(env)
    assert bump(env, "east")
    assert held(env)[gear] == 1
    assert {name: before[name] - n for name, n in (dict.fromkeys(ELEMENTS, 0) | store(env)).items()} == {
        name: 3 if name == dear else 1 for name in ELEMENTS
    }


def test_limits_of_gear() -> None:
    most = {"a": (100, 20, 20), "s": (200, 20, 0), "m": (100, 20, 0), "t": (400, 100, 0)}
    for letter, (hp, energy, influence) in most.items():
        env = small(f"@{letter}K", wealth=5)
        bump(env, "east")
        wait(env, 4)
        mine = held(env)
        assert (mine["hp"], mine["energy"], mine.get("influence", 0)) == (hp, energy, influence)


def test_changing_gear_destroys_the_old_and_wearing_it_again_costs_nothing() -> None:
    env = small("m@aK", wealth=5)
    assert bump(env, "east")
    paid = store(env)
    assert not bump(env, "east")
    assert store(env) == paid
    assert bump(env, "west")
    assert (held(env)["miner"], held(env).get("aligner", 0), held(env).get("influence", 0)) == (1, 0, 0)
    assert paid["germanium"] - store(env)["germanium"] == 3


def test_no_gear_without_the_price_and_nothing_is_paid() -> None:
    env = small("@mK", wealth=0)
    wait(env, 1)
    before = held(env)
    assert not bump(env, "east")
    assert (store(env), held(env)) == ({}, before)


def test_no_gear_without_hp() -> None:
    env = small("@m", {"hp": 1})
    wait(env, 1)
    assert "hp" not in held(env)
    assert not bump(env, "east")
    assert store(env) == dict.fromkeys(ELEMENTS, 3)


# ---- mining


def test_by_hand_one_unit_to_four_and_with_gear_ten_to_forty() -> None:
    env = small("K\n@C\nm.", wealth=5)
    assert [bump(env, "east") for _ in range(5)] == [True] * 4 + [False]
    assert held(env)["carbon"] == 4
    assert bump(env, "south")
    assert [bump(env, "east") for _ in range(5)] == [True] * 4 + [False]
    assert held(env)["carbon"] == 40
    assert found(env, "carbon_extractor")[0]["inventory"] == {"carbon": 60}


def test_an_empty_extractor_is_gone() -> None:
    env = small("K\n@C\nm.", wealth=5)
    bump(env, "south")
    taken = 0
    while found(env, "carbon_extractor"):
        assert bump(env, "east")
        if held(env)["carbon"] == 40:
            taken += 40
            assert bump(env, "north")  # into the junction: handed over
    assert taken + held(env).get("carbon", 0) == 100
    assert bump(env, "east")  # the cell is free


def test_cargo_is_shared_by_the_elements() -> None:
    env = small("K..\nC@O")
    assert [bump(env, side) for side in ("west", "east", "west", "east")] == [True] * 4
    assert (held(env)["carbon"], held(env)["oxygen"]) == (2, 2)
    assert [bump(env, side) for side in ("west", "east")] == [False, False]


@pytest.mark.parametrize("place", ["H", "K"])
def test_deposit_at_hub_and_own_junction(place: str) -> None:
    env = small(f"C@{place}", wealth=0, max_steps=20)
    assert bump(env, "west")
    assert bump(env, "east")
    assert store(env) == {"carbon": 1}
    assert "carbon" not in held(env)
    assert not bump(env, "east")  # nothing to hand over, no heart to have
    assert finish(env)["cogs/carbon.deposited"] == [1]


# ---- hearts


def test_hearts_of_the_hub() -> None:
    """Five are there; the last stays as long as the store can make one instead; then they are made."""
    env = small("@H", wealth=1, num_agents=1)
    for n in range(1, 5):
        assert bump(env, "east")
        assert held(env)["heart"] == n
    assert found(env, "c:hub")[0]["inventory"] == {"heart": 1}
    assert store(env) == dict.fromkeys(ELEMENTS, 3)
    assert bump(env, "east")  # the last one: the store cannot make another
    assert (held(env)["heart"], found(env, "c:hub")[0]["inventory"]) == (5, {})
    assert not bump(env, "east")


def test_hearts_made_of_the_store() -> None:
    env = small("@H@@@@@@@", wealth=1)  # 24 of each element: two hearts
    seen = []
    for _ in range(8):
        worked = bump(env, "east")
        seen.append((worked, held(env).get("heart", 0), found(env, "c:hub")[0]["inventory"].get("heart", 0),
                     store(env)["carbon"]))  # fmt: skip
    assert seen == [
        (True, 1, 4, 24), (True, 2, 3, 24), (True, 3, 2, 24), (True, 4, 1, 24), (True, 5, 1, 14), (True, 6, 1, 4),
        (True, 7, 0, 4), (False, 7, 0, 4),
    ]  # fmt: skip


def test_a_heart_is_made_for_an_empty_hub_and_fetched_by_a_second_bump() -> None:
    game = games.cogsguard(num_agents=8, clips="no_clips").replace("objects.c:hub.inventory", {})
    env = quiet_make(game.replace("map", Ascii(text="@H@@@@@@@", legend=LEGEND)), num_worlds=1, masks=True)
    env.reset()
    assert bump(env, "east")
    assert "heart" not in held(env)
    assert (found(env, "c:hub")[0]["inventory"], store(env)["carbon"]) == ({"heart": 1}, 14)
    assert bump(env, "east")  # the store can make another: the one in the hub stays
    assert (held(env)["heart"], found(env, "c:hub")[0]["inventory"], store(env)["carbon"]) == (1, {"heart": 1}, 4)


def test_ten_hearts_are_the_most_and_nothing_is_paid_beyond() -> None:
    env = small("@H", wealth=20)
    for _ in range(10):
        assert bump(env, "east")
    before = (store(env), found(env, "c:hub")[0]["inventory"])
    assert not bump(env, "east")
    assert (store(env), found(env, "c:hub")[0]["inventory"]) == before


# ---- junctions


def test_an_aligner_takes_a_neutral_junction() -> None:
    env = small(f"a\n@H\nJ{FAR}.J", wealth=4, max_steps=50)
    assert bump(env, "north")
    assert not bump(env, "south")  # no heart
    assert bump(env, "east")
    assert bump(env, "south")
    mine = held(env)
    assert (mine.get("heart", 0), mine["influence"]) == (0, 20)  # the heart is spent, influence is not
    assert holders(env) == {"cogs": 1, None: 1}
    assert env.rewards[0] == np.float32(1 / 50)
    counted = finish(env)
    assert counted["junction.aligned_by_agent"] == [1]
    assert counted["cogs/aligned.junction.held"] == [50 - 3]
    assert counted["reward"] == pytest.approx([47 / 50])


@pytest.mark.parametrize("lacks", ["heart", "influence", "aligner"])
def test_what_an_aligner_needs(lacks: str) -> None:
    """Far from home, so that nothing is filled up."""
    start = {"hp": 90, "heart": 1, "influence": 9, "aligner": 1}
    start[lacks] = 0
    env = small("@J", start)
    assert not bump(env, "east")
    assert holders(env) == {None: 1}
    env = small("@J", {"hp": 90, "heart": 1, "influence": 9, "aligner": 1})
    assert bump(env, "east")


def clipped(text: str, start: dict[str, int]) -> Env:
    """The junctions `J` belong to the clips from the first tick on."""
    game = games.cogsguard(num_agents=sum(c == "@" for c in text), max_steps=60)
    game = game.replace("agent.inventory", dict(game.agent.inventory) | start)
    game = game.replace("objects.junction.collective", "clips").replace("events", {})
    env = quiet_make(game.replace("map", Ascii(text=text, legend=LEGEND)), num_worlds=1, masks=True)
    env.reset()
    return env


def test_a_scrambler_frees_a_junction_of_the_clips() -> None:
    env = clipped("@J", {"hp": 90, "heart": 2, "scrambler": 1})
    assert bump(env, "east")
    assert (holders(env), held(env)["heart"]) == ({None: 1}, 1)
    assert not bump(env, "east")  # neutral: nothing to scramble
    counted = finish(env)
    assert counted["junction.scrambled_by_agent"] == [1]
    assert counted["clips/aligned.junction.lost"] == [1]
    assert "clips/aligned.junction.held" not in counted


def test_an_aligner_cannot_take_what_is_theirs() -> None:
    env = clipped("@J", {"hp": 90, "heart": 2, "aligner": 1, "influence": 20})
    assert not bump(env, "east")


def test_their_junctions_hurt_and_drain() -> None:
    env = clipped(f"@{FAR}J", {"hp": 90, "aligner": 1, "influence": 20})
    do(env, "noop")
    assert held(env)["hp"] == 90 - 1
    assert held(env)["influence"] == 19
    assert bump(env, "east")
    assert held(env)["hp"] == 89 - 2
    assert "influence" not in held(env)


@pytest.mark.parametrize("text", ["K@J", "J@K", "K\n@\nJ", "J\n@\nK"])
def test_between_two_junctions_it_does_not_matter_where_they_are(text: str) -> None:
    env = clipped(text, {"hp": 50, "aligner": 1, "influence": 5})
    do(env, "noop")
    assert held(env) == {"hp": 100, "energy": 20, "solar": 1, "aligner": 1}


def test_held_counts_a_tick_in_which_a_junction_is_taken_and_not_one_in_which_it_is_lost() -> None:
    env = small("@J", {"hp": 90, "heart": 2, "influence": 9, "aligner": 1}, max_steps=10)
    paid = []
    for action in ("noop", "move_east", "noop"):
        do(env, action)
        paid.append(round(float(env.rewards[0]) * 10, 4))
    assert paid == [0.0, 1.0, 1.0]


# ---- death


def test_without_hp_gear_and_hearts_are_gone_but_the_agent_goes_on() -> None:
    env = small("@C", {"hp": 3, "miner": 1, "heart": 4, "carbon": 30, "energy": 20})
    wait(env, 2)
    assert held(env) == {"hp": 1, "miner": 1, "heart": 4, "carbon": 30, "energy": 20, "solar": 3}
    wait(env, 1)
    assert held(env) == {"carbon": 4, "energy": 20, "solar": 3}
    do(env, "move_east")
    assert held(env)["carbon"] == 4  # full by hand
    wait(env, 5)
    assert agents_of(env.inspect(0))[0]["type"] == "agent"


def test_the_dead_come_back_to_life_at_home() -> None:
    env = small(f"@{FAR}Km", {"hp": 1})
    wait(env, 2)
    assert "hp" not in held(env)
    assert bump(env, "east")
    assert held(env)["hp"] == 100
