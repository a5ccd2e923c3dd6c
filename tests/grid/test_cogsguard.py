"""CogsGuard: the start, a working life of every gear, junctions that change hands, death, weather and the clips.

Most scenes are the game itself on a small picture: `H` hub, `J` neutral junction, `K` the team's junction, stations
`a`, `s`, `m`, `t` (aligner, scrambler, miner, scout), extractors `C`, `O`, `G`, `S`.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest
from random_games import agents_of, quiet_make
from scenes import do, finish, held
from walker import is_type, towards

from gridmill import Env, Game, games
from gridmill.grid import Ascii

LEGEND = {
    "H": "c:hub", "J": "junction", "K": "c:junction", "a": "c:aligner", "s": "c:scrambler", "m": "c:miner",
    "t": "c:scout", "C": "carbon_extractor", "O": "oxygen_extractor", "G": "germanium_extractor",
    "S": "silicon_extractor",
}  # fmt: skip
ELEMENTS = ("carbon", "oxygen", "germanium", "silicon")
HOLD = (11, 26, 51, 76, 101)
AT = (1000, 2500, 5000, 7500, 10_000)


def small(text: str, start: dict[str, int] | None = None, **sizes: Any) -> Env:
    """The game on a picture, its rows filled up with floor; `start` changes what agents begin with."""
    rows = text.split("\n")
    text = "\n".join(row.ljust(max(map(len, rows)), ".") for row in rows)
    sizes = {"num_agents": sum(c == "@" for c in text), "clips": "no_clips"} | sizes
    game = games.cogsguard(**sizes).replace("map", Ascii(text=text, legend=LEGEND))
    if start is not None:
        game = game.replace("agent.inventory", dict(game.agent.inventory) | start)
    env = quiet_make(game, num_worlds=1, masks=True, validation=True)
    env.reset()
    return env


def bump(env: Env, direction: str, *others: str) -> bool:
    """One move of the first agent; the mask must have said how it ends."""
    action = env.action_names.index(f"move_{direction}")
    assert env.masks is not None
    allowed = bool(env.masks[0, action])
    worked = do(env, f"move_{direction}", *others, *["noop"] * (env.num_rows - 1 - len(others)))[0]
    assert worked == allowed
    return worked


def wait(env: Env, ticks: int) -> None:
    for _ in range(ticks):
        env.step(np.zeros(env.num_rows, np.int32))


def store(env: Env) -> dict[str, int]:
    return dict(env.inspect(0)["collectives"]["cogs"]["inventory"])


def found(env: Env, kind: str) -> list[dict[str, Any]]:
    return [o for o in env.inspect(0)["objects"] if o["type"] == kind]


def holders(env: Env, world: int = 0) -> Counter[str | None]:
    """Junctions by collective."""
    return Counter(o["collective"] for o in env.inspect(world)["objects"] if o["type"] == "junction")


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


# ---- a life on the real map


def neutral_junction(o: dict[str, Any]) -> bool:
    return bool(o["type"] == "junction" and o["collective"] is None)


def next_step(env: Env) -> str:
    """Gear first, then a heart, then the nearest neutral junction; home when hp runs low."""
    mine = held(env)
    if not mine.get("aligner"):
        return towards(env, 0, is_type("c:aligner"))
    if not mine.get("heart"):
        return towards(env, 0, is_type("c:hub"))
    if mine.get("influence", 0) < 1 or mine.get("hp", 0) < 40:
        return towards(env, 0, lambda o: o["collective"] == "cogs")
    return towards(env, 0, neutral_junction)


@pytest.mark.parametrize("name", ["cogsguard", "cogsguard_arena"])
def test_a_scripted_aligner_takes_junctions(name: str) -> None:
    game = games.build(name, clips="no_clips", max_steps=400)
    env = quiet_make(game, num_worlds=1, seed=3)
    env.reset()
    total = 0.0
    for _ in range(399):
        actions = np.zeros(env.num_rows, np.int32)
        actions[0] = env.action_names.index(next_step(env))
        env.step(actions)
        total += float(env.rewards[5])  # somebody who did nothing is paid the same
    assert holders(env)["cogs"] >= 4
    env.step(np.zeros(env.num_rows, np.int32))
    counted = env.take_episodes()
    taken = counted["junction.aligned_by_agent"]
    assert taken[0] >= 3
    assert not taken[1:].any()
    assert (counted["cogs/aligned.junction"] == 1 + taken[0]).all()
    assert total > 1.5  # more than the junction of the hub alone
    assert counted["reward"] == pytest.approx(counted["cogs/aligned.junction.held"] / 400)


# ---- the clips


def test_the_clips_come_at_their_ticks() -> None:
    """One junction at 10, one more at 100, 200, ...; the team's junction is lost at 50 if theirs is near."""
    env = quiet_make(games.cogsguard(), num_worlds=8, seed=2)
    env.reset()
    seen = []
    for tick in range(1, 301):
        wait(env, 1)
        if tick in (9, 10, 99, 100, 199, 200, 299, 300):
            seen.append([holders(env, world)["clips"] for world in range(8)])
    assert seen == [[n] * 8 for n in (0, 1, 1, 2, 2, 3, 3, 4)]


def test_they_free_one_junction_of_the_team_in_a_hundred_ticks() -> None:
    row = "KKK" + "." * 5 + "J@"
    env = small(row, clips="clips_medium", max_steps=400)
    seen = {}
    for tick in range(1, 261):
        wait(env, 1)
        seen[tick] = (holders(env)["cogs"], holders(env)[None], holders(env)["clips"])
    assert sum(seen[49]) == 4
    assert seen[49][2] == 1
    assert seen[50][0] == seen[49][0] - 1
    assert seen[150][0] == seen[149][0] - 1
    assert seen[100][2] == seen[99][2] + 1


def test_they_come_again_when_all_are_scrambled() -> None:
    env = small("@J", {"hp": 200, "heart": 1, "scrambler": 1}, clips="clips_wave_only", max_steps=500)
    wait(env, 10)
    assert holders(env) == {"clips": 1}
    assert bump(env, "east")
    assert holders(env) == {None: 1}
    wait(env, 198)  # tick 209
    assert holders(env) == {None: 1}
    wait(env, 1)
    assert holders(env) == {"clips": 1}


@pytest.mark.parametrize(
    ("clips", "expected"),
    [
        ("clips_medium", [1, 1, 2, 6]), ("clips_easy", [0, 1, 1, 2]), ("clips_hard", [2, 3, 4, 12]),
        ("clips_wave_only", [3, 3, 3, 3]), ("clips_until_300", [1, 1, 2, 4]), ("no_clips", [0, 0, 0, 0]),
    ],
)  # fmt: skip
def test_how_hard_they_press(clips: str, expected: list[int]) -> None:
    """Their junctions after 10, 50, 100 and 500 ticks, unopposed."""
    env = quiet_make(games.cogsguard(clips=clips), num_worlds=1, seed=4)
    env.reset()
    seen = []
    for tick in range(1, 501):
        wait(env, 1)
        if tick in (10, 50, 100, 500):
            seen.append(holders(env)["clips"])
    assert seen == expected


def test_unopposed_they_hold_one_more_every_hundred_ticks() -> None:
    env = quiet_make(games.cogsguard(), num_worlds=16, seed=11)
    env.reset()
    seen = []
    for tick in range(1, 10_000):
        wait(env, 1)
        if tick in AT:
            seen.append([holders(env, world)["clips"] for world in range(env.num_worlds)])
    wait(env, 1)
    counted = env.take_episodes()["clips/aligned.junction"]
    seen.append(counted.reshape(env.num_worlds, -1)[:, 0].tolist())
    assert seen == [[n] * env.num_worlds for n in HOLD]


# ---- rewards


def test_presets_add_up() -> None:
    plain, both = games.cogsguard(), games.cogsguard(rewards=("objective", "milestones", "penalize_vibe_change"))
    assert both.rewards[:1] == plain.rewards
    assert [term.weight for term in both.rewards] == [1 / 10_000, 1.0, 0.5, -0.01]
    assert games.cogsguard(rewards=()).rewards == ()


@pytest.mark.parametrize(
    ("preset", "text", "start", "actions", "paid"),
    [
        ("miner", "K\n@C\nm.", {}, ["move_south", "move_east", "move_north"], [2.0, 0.5, 2.0]),
        ("aligner", "a\n@H", {}, ["move_north", "move_east"], [2.0, 0.5]),
        ("scrambler", "s\n@H", {}, ["move_north", "noop"], [10.0, 0.0]),
        ("scout", "t\n@.H", {}, ["move_north", "move_east"], [2.0, 0.0001]),
        ("credit", "C@H", {}, ["move_west", "move_east", "move_east"], [0.001, 0.002, 0.05]),
        ("milestones", "@J", {"hp": 90, "heart": 1, "influence": 9, "aligner": 1}, ["move_east", "noop"], [1.0, 0.0]),
        ("penalize_vibe_change", "@", {"hp": 90}, ["change_vibe_gear", "noop", "change_vibe_scout"], [-0.01, 0, -0.01]),
    ],
)
def test_what_presets_pay(preset: str, text: str, start: dict[str, int], actions: list[str], paid: list[float]) -> None:
    env = small(text, start, rewards=(preset,), wealth=5)
    got = []
    for action in actions:
        assert do(env, action) == [True]
        got.append(float(env.rewards[0]))
    assert got == pytest.approx(paid, abs=1e-6)


def test_roles_in_turn() -> None:
    """Four agents do the same: each is paid for what its role is paid for, and for nothing else."""
    env = small("@@@@@\nmmmmm\nK....", rewards=("role_conditional",), wealth=5)
    assert do(env, *["move_south"] * 5) == [True] * 5
    assert env.rewards.tolist() == [2.0, 0.0, 0.0, 0.0, 2.0]
    env = small("@@@@@\ntttss\nK....", rewards=("role_conditional",), wealth=5)
    assert do(env, *["move_south"] * 5) == [True] * 5
    assert env.rewards.tolist() == [0.0, 0.0, 0.0, 0.0, 0.0]
    env = small("@@@@\ntsst\nK...", rewards=("role_conditional",), wealth=5)
    assert do(env, *["move_south"] * 4) == [True] * 4
    assert env.rewards.tolist() == [0.0, 0.0, 10.0, 2.0]


def test_bad_choices_are_refused() -> None:
    with pytest.raises(ValueError, match=r"^num_agents: expected 1 to 20, got 21$"):
        games.cogsguard(num_agents=21)
    with pytest.raises(ValueError, match=r"^clips: expected one of clips_medium, .*, no_clips, got 'hard'$"):
        games.cogsguard(clips="hard")
    with pytest.raises(ValueError, match=r"^rewards: expected a list of objective, .*, got 'objective'$"):
        games.cogsguard(rewards="objective")
    with pytest.raises(ValueError, match=r"^wealth: expected 0 to 100, got -1$"):
        games.cogsguard(wealth=-1)


def test_the_arena_is_the_same_game_on_another_map() -> None:
    differs = {path.split(".")[0] for path in games.cogsguard(max_steps=1000).diff(games.cogsguard_arena())}
    assert differs == {"name", "map"}


def test_every_junction_can_be_reached() -> None:
    game: Game = games.cogsguard()
    env = quiet_make(game, num_worlds=3, seed=8)
    env.reset()
    for world in range(3):
        view = env.inspect(world)
        taken = {(o["row"], o["column"]) for o in view["objects"] if o["agent"] is None}
        start = agents_of(view)[0]
        queue = [(start["row"], start["column"])]
        seen = set(queue)
        while queue:
            row, column = queue.pop()
            for cell in ((row - 1, column), (row + 1, column), (row, column - 1), (row, column + 1)):
                if cell not in seen:
                    seen.add(cell)
                    queue += [cell] if cell not in taken else []
        assert all((o["row"], o["column"]) in seen for o in view["objects"] if o["type"] == "junction")
