"""Extractor hub: what stands in the hall, what each source gives, hearts made alone and together, and the chest."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest
from random_games import agents_of, quiet_make
from scenes import bump, do, held, tokens_at
from walker import towards

from gridmill import Env, Game, games
from gridmill.games.extractor_hub import LEGEND
from gridmill.grid import Ascii

PARTS = {"carbon": 2, "oxygen": 2, "germanium": 1, "silicon": 3}


def start(game: Game) -> Env:
    env = quiet_make(game, num_worlds=1, seed=2, masks=True, validation=True)
    env.reset()
    return env


def small(text: str, begin: dict[str, int] | None = None, **sizes: Any) -> Env:
    """The game on a picture; `begin` changes what agents have."""
    game = games.extractor_hub(num_agents=sum(c == "@" for c in text), **sizes)
    game = game.replace("map", Ascii(text=text, legend=LEGEND))
    return start(game.replace("agent.inventory", {"energy": 100} | (begin or {})))


def test_the_hall() -> None:
    game = games.extractor_hub()
    env = start(game)
    view = env.inspect(0)
    assert (view["height"], view["width"], game.num_agents, game.max_steps) == (40, 40, 4, 1000)
    kinds = Counter(o["type"] for o in view["objects"] if o["type"] != "wall")
    assert kinds == {
        "agent": 4, "assembler": 1, "chest": 1, "charger": 5, "germanium_extractor": 3, "carbon_extractor": 2,
        "oxygen_extractor": 2, "silicon_extractor": 2,
    }  # fmt: skip
    at = {o["type"]: (o["row"], o["column"]) for o in view["objects"]}
    assert at["assembler"] == (19, 19)
    assert at["chest"] == (22, 19)
    walls = {(o["row"], o["column"]) for o in view["objects"] if o["type"] == "wall"}
    assert {(r, c) for r in range(40) for c in range(40) if not (5 <= r < 35 and 5 <= c < 35)} <= walls


def test_agents_always_start_at_their_own_place() -> None:
    env = start(games.extractor_hub(num_agents=8, max_steps=2))
    places = [(a["row"], a["column"]) for a in agents_of(env.inspect(0))]
    env.step()
    env.step()
    assert [(a["row"], a["column"]) for a in agents_of(env.inspect(0))] == places


@pytest.mark.parametrize("kind", sorted(set(LEGEND.values())))
def test_everything_can_be_reached(kind: str) -> None:
    """Walks to one of each, for as long as it takes, with energy to spare."""
    game = games.extractor_hub(num_agents=1).replace("move_cost", {})
    env = start(game)
    for _ in range(120):
        action = towards(env, 0, lambda o: o["type"] == kind)
        before = (held(env), [(a["row"], a["column"]) for a in agents_of(env.inspect(0))])
        env.step(np.array([env.action_names.index(action)], np.int32))
        after = (held(env), [(a["row"], a["column"]) for a in agents_of(env.inspect(0))])
        if before[1] == after[1]:
            break
    else:
        pytest.fail(f"no {kind} in 120 ticks")
    nearest = [o for o in env.inspect(0)["objects"] if o["type"] == kind]
    (me,) = agents_of(env.inspect(0))
    assert min(abs(o["row"] - me["row"]) + abs(o["column"] - me["column"]) for o in nearest) == 1


def test_energy() -> None:
    env = small("@.")
    assert bump(env, "east")
    assert held(env)["energy"] == 100  # 2 for the move, 2 come back
    do(env, "noop")
    assert held(env)["energy"] == 102
    env = small("@.", {"energy": 199})
    do(env, "noop")
    assert held(env)["energy"] == 200
    do(env, "noop")
    assert held(env)["energy"] == 200


@pytest.mark.parametrize(
    ("letter", "gives", "uses"),
    [("C", {"carbon": 2}, 50), ("O", {"oxygen": 10}, 10), ("G", {"germanium": 2}, None), ("S", {"silicon": 18}, 20)],
)
def test_extractors(letter: str, gives: dict[str, int], uses: int | None) -> None:
    env = small(f"@{letter}")
    assert bump(env, "east")
    (name, amount) = next(iter(gives.items()))
    assert held(env)[name] == amount
    assert held(env)["energy"] == (80 if letter == "S" else 100)
    assert tokens_at(env, 0, 1).get("uses") == (None if uses is None else uses - 1)


def test_silicon_costs_energy() -> None:
    env = small("@S", {"energy": 19})
    assert not bump(env, "east")
    do(env, "noop")
    assert bump(env, "east")


def test_carbon_comes_to_an_end_and_germanium_does_not() -> None:
    env = small("C@G", {"energy": 200})
    for _ in range(50):
        assert bump(env, "west")
    assert not bump(env, "west")
    assert held(env)["carbon"] == 100
    for _ in range(50):
        assert bump(env, "east")
    assert not bump(env, "east")  # cargo is full: 200 of all elements together
    assert held(env)["germanium"] == 100


def test_oxygen_and_chargers_come_back_with_time() -> None:
    env = small("@O")
    assert bump(env, "east")
    for _ in range(44):
        do(env, "noop")
    assert bump(env, "east")  # after 45 of 90 ticks: the half
    assert held(env)["oxygen"] == 15
    env = small("@E", {"energy": 20})
    assert bump(env, "east")
    assert held(env)["energy"] == 20 - 2 + 62 + 2
    for _ in range(4):
        do(env, "noop")
    assert bump(env, "east")
    assert held(env)["energy"] == 82 + 8 - 2 + 31 + 2


def test_a_heart_alone_into_the_chest() -> None:
    env = small("A@T", PARTS)
    assert not bump(env, "west")  # the vibe is missing
    do(env, "change_vibe_heart")
    assert bump(env, "west")
    assert held(env) == {"heart": 1, "energy": 102}
    assert not bump(env, "east")
    do(env, "change_vibe_deposit")
    assert env.rewards.tolist() == [0.0]
    assert bump(env, "east")
    assert env.rewards.tolist() == [1.0]
    assert "heart" not in held(env)
    do(env, "change_vibe_withdraw")
    assert bump(env, "east")
    assert env.rewards.tolist() == [-1.0]


@pytest.mark.parametrize(("limit", "hearts"), [(1, 1), (9, 3)])
def test_together_they_make_more_for_the_same_price(limit: int, hearts: int) -> None:
    """Three show the vibe; parts come from all of them; the hearts go to who bumped, as far as they fit."""
    env = small("@A@\n.@.\n...", {"carbon": 1, "oxygen": 1, "germanium": 1, "silicon": 1}, heart_limit=limit)
    do(env, *["change_vibe_heart"] * 3)
    assert bump(env, "east")
    assert [held(env, i).get("heart", 0) for i in range(3)] == [hearts, 0, 0]
    left = Counter()
    for i in range(3):
        left.update({name: n for name, n in held(env, i).items() if name in PARTS})
    assert left == {"carbon": 1, "oxygen": 1, "germanium": 2}


def test_every_agent_is_paid_its_share() -> None:
    env = small("@T\n@.", {"heart": 1})
    do(env, "change_vibe_deposit", "noop")
    assert bump(env, "east")
    assert env.rewards.tolist() == [0.5, 0.5]


def test_easy_mode_costs_one_of_each_and_carries_more() -> None:
    one_of_each = dict.fromkeys(PARTS, 1)
    env = small("A@T", one_of_each, easy_mode=True)
    do(env, "change_vibe_heart")
    assert bump(env, "west")
    assert held(env) == {"heart": 1, "energy": 100 + 2 - 2 + 2 - 1}
    env = small("G@", {"germanium": 254}, easy_mode=True)
    assert bump(env, "west")
    assert held(env)["germanium"] == 255
    easy, plain = games.extractor_hub(easy_mode=True), games.extractor_hub()
    assert easy.map == plain.map
    assert easy.rewards[0] == plain.rewards[0]


def test_easy_mode_pays_for_every_kind_that_is_held() -> None:
    """Energy is the first kind; what is held no more is paid back."""
    env = small("A@G\n.C.", easy_mode=True)
    paid = []
    for direction in ("east", "east", "south"):
        assert bump(env, direction)
        paid.append(round(float(env.rewards[0]), 4))
    assert paid == [0.17, 0.0, 0.18]
    env = small("A@", dict.fromkeys(PARTS, 1), easy_mode=True)
    do(env, "change_vibe_heart")
    assert env.rewards.tolist() == [0.0]  # what it starts with pays nothing
    assert bump(env, "west")
    assert env.rewards[0] == pytest.approx(1 - 0.18 - 0.60 - 0.97)  # a heart for four elements: five kinds, then two


def test_easy_mode_pays_for_hearts_one_by_one() -> None:
    """Stored: the objective and 1 of shaping. Fetched: both back, and 1 for a heart gained: any heart counts."""
    env = small("@T", {"heart": 2, "carbon": 1, "oxygen": 1, "germanium": 1}, easy_mode=True)
    do(env, "change_vibe_deposit")
    assert bump(env, "east")
    assert env.rewards.tolist() == [2.0]
    assert held(env)["heart"] == 1
    do(env, "change_vibe_withdraw")
    assert bump(env, "east")
    assert env.rewards.tolist() == [-1.0]
    do(env, "change_vibe_deposit")
    assert bump(env, "east")
    assert bump(env, "east")
    assert env.rewards[0] == pytest.approx(2.0 - 0.97)  # the last heart was the fifth kind
    assert bump(env, "east")  # no heart left: elements follow
    assert "carbon" not in held(env)


def test_sizes_are_checked() -> None:
    with pytest.raises(ValueError, match=r"^num_agents: expected 1 to 8, got 9$"):
        games.extractor_hub(num_agents=9)
    with pytest.raises(ValueError, match=r"^heart_limit: expected 1 to 255, got 0$"):
        games.extractor_hub(heart_limit=0)


class Maker:
    """Fetches what a heart still needs, makes it, and puts it into the chest."""

    def __init__(self, env: Env) -> None:
        self.env = env

    def act(self) -> str:
        mine = held(self.env)
        (me,) = agents_of(self.env.inspect(0))
        if mine.get("energy", 0) < 60:
            return towards(self.env, 0, lambda o: o["type"] == "charger")
        if mine.get("heart"):
            wants = "deposit"
            place = "chest"
        elif all(mine.get(name, 0) >= n for name, n in PARTS.items()):
            wants, place = "heart", "assembler"
        else:
            missing = next(name for name, n in PARTS.items() if mine.get(name, 0) < n)
            wants, place = me["vibe"], f"{missing}_extractor"
        if me["vibe"] != wants:
            return f"change_vibe_{wants}"
        return towards(self.env, 0, lambda o: o["type"] == place)


def test_a_scripted_agent_brings_hearts_home() -> None:
    env = start(games.extractor_hub(num_agents=1))
    maker = Maker(env)
    total = 0.0
    for _ in range(600):
        env.step(np.array([env.action_names.index(maker.act())], np.int32))
        total += float(env.rewards[0])
    assert total >= 3.0
