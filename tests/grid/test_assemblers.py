"""Assemblers: which recipe is made, who gives what for it, who gets it, how it rests and how often it works."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scenes import bump, do, finish, held, play, tokens_at

from gridmill import Env
from gridmill.grid import (
    AgentType,
    Aligned,
    Assembler,
    Collective,
    Event,
    Give,
    Inventory,
    Limit,
    ObjectType,
    Recipe,
    RewardTerm,
)

STUFF = ("ore", "wood", "heart")
VIBES = ("calm", "angry", "sad")


def around(assembler: Assembler, text: str = "@A", **fields: Any) -> Env:
    fields = {"resources": STUFF, "vibes": VIBES, "masks": True, "max_steps": 200} | fields
    return play(text, {"A": ObjectType(assembler=assembler)}, **fields)


def makes(outputs: dict[str, int], inputs: dict[str, int] | None = None, **fields: Any) -> Recipe:
    return Recipe(outputs=outputs, inputs=inputs or {}, **fields)


def wait(env: Env, ticks: int) -> None:
    for _ in range(ticks):
        env.step(np.zeros(env.num_rows, np.int32))


# ---- one agent


def test_it_works_at_once_and_the_user_gets_it() -> None:
    env = around(Assembler(recipes=(makes({"heart": 2}, {"ore": 3}),)), agent=AgentType(inventory={"ore": 7}),
                 rewards=(RewardTerm(value=Inventory(resource="heart")),))  # fmt: skip
    assert bump(env)
    assert held(env) == {"ore": 4, "heart": 2}
    assert env.rewards.tolist() == [2.0]
    assert bump(env)
    assert not bump(env)
    assert held(env) == {"ore": 1, "heart": 4}
    counted = finish(env)
    assert (counted["heart.get"], counted["ore.put"]) == ([4], [6])


def test_the_first_recipe_that_can_be_made_is_made() -> None:
    recipes = (makes({"heart": 5}, {"ore": 4}), makes({"heart": 1}, {"ore": 1}), makes({"wood": 1}))
    env = around(Assembler(recipes=recipes), agent=AgentType(inventory={"ore": 6}))
    seen = []
    for _ in range(4):
        assert bump(env)
        seen.append((held(env).get("heart", 0), held(env).get("wood", 0)))
    assert seen == [(5, 0), (6, 0), (7, 0), (7, 1)]


@pytest.mark.parametrize(("limit", "hearts", "works"), [(9, 3, True), (2, 2, True), (0, 0, False)])
def test_outputs_as_far_as_they_fit_and_one_unit_must(limit: int, hearts: int, works: bool) -> None:
    me = AgentType(inventory={"ore": 1}, limits=(Limit(resources=("heart",), base=limit),))
    env = around(Assembler(recipes=(makes({"heart": 3}, {"ore": 1}),)), agent=me)
    assert bump(env) == works
    assert held(env).get("heart", 0) == hearts
    assert held(env).get("ore", 0) == (not works)


def test_what_is_given_makes_room() -> None:
    me = AgentType(inventory={"ore": 2}, limits=(Limit(resources=("ore", "heart"), base=2),))
    env = around(Assembler(recipes=(makes({"heart": 1}, {"ore": 1}),)), agent=me)
    assert bump(env)
    assert held(env) == {"ore": 1, "heart": 1}


# ---- several agents

RING = "@A@\n.@."


def test_vibes_choose_the_recipe() -> None:
    recipes = (
        makes({"heart": 3}, vibes=("angry", "angry")), makes({"heart": 2}, vibes=("angry", "sad")),
        makes({"heart": 1}, vibes=("angry",)),
    )  # fmt: skip
    env = around(Assembler(recipes=recipes), RING)
    assert not bump(env, "east", "change_vibe_sad")
    assert not bump(env)  # nobody is angry
    do(env, "noop", "noop", "change_vibe_angry")
    assert bump(env)
    assert held(env) == {"heart": 2}  # angry and sad are there
    do(env, "noop", "change_vibe_angry", "noop")
    assert bump(env)
    assert held(env) == {"heart": 5}
    do(env, "noop", "change_vibe_calm", "noop")
    assert bump(env)
    assert held(env) == {"heart": 6}


def test_who_stands_further_away_takes_no_part() -> None:
    env = around(Assembler(recipes=(makes({"heart": 1}, vibes=("angry",)),)), "@A.@", agent=AgentType())
    do(env, "noop", "change_vibe_angry")
    assert not bump(env)
    do(env, "noop", "move_west")
    assert bump(env)
    assert (held(env, 0), held(env, 1)) == ({"heart": 1}, {})


@pytest.mark.parametrize(("text", "works"), [("@A", False), ("@A@", False), (RING, True), ("@A@\n.@@", True)])
def test_enough_agents(text: str, works: bool) -> None:
    env = around(Assembler(recipes=(makes({"heart": 1}, min_agents=3),)), text)
    assert bump(env) == works


AGENTS = st.lists(st.integers(0, 12), min_size=1, max_size=5)


PLACES = [(0, 0), (0, 1), (0, 2), (1, 0), (1, 2)]  # around the assembler at (1, 1), in reading order


def crowd(amounts: list[int], needed: int) -> Env:
    """Agents 0, 1, ... around an assembler, each of a team of its own, to which the first tick gives its amount."""
    cells = [list("..."), list(".A.")]
    for (row, column), digit in zip(PLACES, range(len(amounts)), strict=False):
        cells[row][column] = str(digit)
    teams = [f"team {i}" for i in range(len(amounts))]
    events = {
        team: Event(at=(1,), targets="type:agent", when=(Aligned(to=team),),
                    then=(Give(who="target", amounts={"ore": amount}),))
        for team, amount in zip(teams, amounts, strict=True) if amount
    }  # fmt: skip
    env = around(
        Assembler(recipes=(makes({"heart": 1}, {"ore": needed}),)), "\n".join("".join(row) for row in cells),
        events=events, collectives={team: Collective() for team in teams}, agent=AgentType(collectives=tuple(teams)),
    )  # fmt: skip
    wait(env, 1)
    return env


@settings(max_examples=60)
@given(AGENTS, st.integers(1, 30))
def test_inputs_are_drawn_as_evenly_as_possible(amounts: list[int], needed: int) -> None:
    """Each gives as much as the others as long as it has it; odd units come from one each."""
    env = crowd(amounts, needed)
    assert [held(env, i).get("ore", 0) for i in range(len(amounts))] == amounts
    worked = do(env, "move_southeast", *["noop"] * (len(amounts) - 1))[0]
    after = [held(env, i).get("ore", 0) for i in range(len(amounts))]
    gave = [b - a for b, a in zip(amounts, after, strict=True)]
    assert worked == (sum(amounts) >= needed)
    assert sum(gave) == (needed if worked else 0)
    assert [held(env, i).get("heart", 0) for i in range(len(amounts))] == [int(worked)] + [0] * (len(amounts) - 1)
    for mine, left in zip(gave, after, strict=True):
        assert mine >= max(gave) - 1 or left == 0  # who gave less had no more
    env.close()


# ---- resting


def test_it_rests() -> None:
    env = around(Assembler(recipes=(makes({"heart": 1}),), cooldown=4))
    assert bump(env)  # tick 1
    assert tokens_at(env, 0, 1) == {"converting": 4}
    assert [bump(env) for _ in range(5)] == [False, False, False, False, True]
    assert held(env) == {"heart": 2}


def test_the_rest_is_shown_and_ends() -> None:
    env = around(Assembler(recipes=(makes({"heart": 1}),), cooldown=3))
    bump(env)
    seen = []
    for _ in range(4):
        seen.append(tokens_at(env, 0, 1).get("converting", 0))
        wait(env, 1)
    assert seen == [3, 2, 1, 0]


@pytest.mark.parametrize(("waited", "made", "paid"), [(0, 6, 1), (4, 31, 5), (8, 55, 9), (9, 62, 10), (20, 62, 10)])
def test_partial_use(waited: int, made: int, paid: int) -> None:
    """After a part of the rest: that part of the outputs, rounded down, for that part of the inputs, rounded up."""
    recipe = makes({"heart": 62}, {"ore": 10})
    env = around(Assembler(recipes=(recipe,), cooldown=10, partial=True), agent=AgentType(inventory={"ore": 20}))
    assert bump(env)
    assert held(env) == {"ore": 10, "heart": 62}
    wait(env, waited)
    assert bump(env)
    assert held(env) == {name: n for name, n in {"ore": 10 - paid, "heart": 62 + made}.items() if n}
    assert tokens_at(env, 0, 1)["converting"] == 10  # rests anew


def test_a_part_of_one_is_nothing() -> None:
    env = around(Assembler(recipes=(makes({"heart": 1}),), cooldown=5, partial=True))
    assert bump(env)
    assert [bump(env) for _ in range(5)] == [False, False, False, False, True]


# ---- how often


def test_uses_are_counted_and_shown() -> None:
    env = around(Assembler(recipes=(makes({"heart": 1}),), max_uses=3))
    seen = [tokens_at(env, 0, 1).get("uses", 0)]
    for _ in range(4):
        bump(env)
        seen.append(tokens_at(env, 0, 1).get("uses", 0))
    assert seen == [3, 2, 1, 0, 0]
    assert held(env) == {"heart": 3}


def test_many_uses_are_shown_as_255() -> None:
    env = around(Assembler(recipes=(makes({"heart": 1}),), max_uses=300))
    assert tokens_at(env, 0, 1) == {"uses": 255}
    env = around(Assembler(recipes=(makes({"heart": 1}),)))
    assert tokens_at(env, 0, 1) == {}


def test_a_failed_use_does_not_count() -> None:
    env = around(Assembler(recipes=(makes({"heart": 1}, vibes=("angry",)),), max_uses=1))
    assert not bump(env)
    assert tokens_at(env, 0, 1) == {"uses": 1}
    do(env, "change_vibe_angry")
    assert bump(env)
    assert not bump(env)


def test_uses_begin_anew_with_the_episode() -> None:
    env = around(Assembler(recipes=(makes({"heart": 1}),), max_uses=1, cooldown=50))
    assert bump(env)
    finish(env)
    assert tokens_at(env, 0, 1) == {"uses": 1}
    assert bump(env)
