"""Masks against outcomes, exhaustively: every (agent, action) stepped on a copy with all others at noop."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import cogs
import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from random_games import games, quiet_make, random_actions
from scenes import play

from gridmill import Env, Game
from gridmill import games as shipped
from gridmill.games.extractor_hub import LEGEND
from gridmill.grid import (
    AgentType,
    Ascii,
    AtLeast,
    Attack,
    Chance,
    Constant,
    Converter,
    Event,
    Give,
    Inventory,
    Limit,
    Not,
    ObjectType,
    Periodic,
    Ratio,
    Remove,
    RewardTerm,
    Rule,
    Stat,
)


def reward(resource: str, **fields: Any) -> RewardTerm:
    return RewardTerm(value=Inventory(resource=resource), **fields)


def outcomes(env: Env) -> np.ndarray:
    """Whether each action of each row would succeed, with all others at noop: every one is tried, on a copy."""
    assert env.masks is not None
    saved, worked = env.save(), np.zeros(env.masks.shape, np.bool_)
    for agent in range(env.num_agents):
        rows = np.arange(env.num_worlds) * env.num_agents + agent
        for action in range(env.num_actions):
            env.restore(saved)
            actions = np.zeros((env.num_worlds, env.num_agents), np.int32)
            actions[:, agent] = action
            env.step(actions.reshape(-1))
            ended = (env.terminals | env.truncations)[rows]
            shown = np.where(ended[:, None], env.final_obs[rows, 1], env.obs[rows, 1])
            assert {env.features[f].name for f in shown[:, 1]} == {"last_action"}
            worked[rows, action] = shown[:, 2] == action
    env.restore(saved)
    return worked


def check_masks(env: Env) -> np.ndarray:
    """Mask 1 exactly where the action succeeds; the masks that were checked."""
    assert env.masks is not None
    masks, worked = env.masks.copy(), outcomes(env)
    wrong = [(int(row), env.action_names[action]) for row, action in np.argwhere(masks != worked)]
    assert not wrong, wrong
    return masks


@settings(max_examples=100)
@given(games(most_agents=4, by_chance=False), st.integers(0, 1_000))
def test_masks_equal_outcomes_in_random_games(game: Game, seed: int) -> None:
    game = game.replace("observation.num_tokens", max(2, game.observation.num_tokens))
    with quiet_make(game, num_worlds=2, seed=seed, masks=True) as env:
        actions = random_actions(env, seed)
        env.reset()
        for _ in range(4):
            assert check_masks(env)[:, 0].all()  # noop always works
            env.step(actions())


STUFF = ("ore", "battery", "laser", "armor")
CROWD = """
M1G.B
.2S3.
A.4#X
.P.5.
"""
KINDS: dict[str, ObjectType | Converter] = {
    "M": Converter(outputs={"ore": 1}, cooldown=2),
    "G": Converter(inputs={"ore": 1}, outputs={"battery": 1}, cooldown=3, max_input=1, max_output=1),
    "A": Converter(inputs={"battery": 1, "ore": 2}, outputs={"laser": 1, "armor": 1}, cooldown=2, max_conversions=2),
    "B": ObjectType(pushable=True),
    "P": ObjectType(pushable=True, inventory={"ore": 1}),
    "S": ObjectType(swappable=True),
    "X": ObjectType(swappable=True, converter=Converter(outputs={"ore": 2}, cooldown=1)),
}
LIMITS = [Limit(resources=["ore"], base=3, bonus={"battery": 4}), Limit(resources=["laser", "armor"], base=3)]
VARIANTS: list[dict[str, Any]] = [
    {},
    {"move_cost": {"ore": 1}},
    {"vibes": ("calm", "angry"), "moves": 4},
    {"attack": Attack(cost={"laser": 1, "ore": 1}, armor="armor", aim="cells", freeze_duration=3)},
    {"swap": False},
]


@pytest.mark.parametrize("variant", VARIANTS, ids=lambda v: "+".join(v) or "plain")
@pytest.mark.parametrize("seed", [0, 1])
def test_masks_equal_outcomes_in_a_crowd(variant: dict[str, Any], seed: int) -> None:
    """Machines, frozen agents, blocks, lasers and limits in a small world, over a played episode."""
    fields: dict[str, Any] = {
        "resources": STUFF,
        "attack": Attack(cost={"laser": 1}, armor="armor", aim="both", freeze_duration=4),
        "swap": True,
        "agent": AgentType(inventory={"laser": 2, "ore": 2}, limits=LIMITS),
        "max_steps": 60,
    }
    env = play(CROWD, KINDS, **(fields | variant), masks=True, num_worlds=3, seed=seed)
    rng = np.random.default_rng(seed)
    seen = np.zeros((2, env.num_actions), int)
    assert env.masks is not None
    for tick in range(90):
        if tick % 3 == 0:
            masks = check_masks(env)
            seen += np.array([(masks == 0).sum(0), (masks == 1).sum(0)])
        weighted = rng.random(env.masks.shape) * (env.masks + 0.2)
        env.step(weighted.argmax(1).astype(np.int32))
    assert seen[1, 0] == 30 * env.num_rows
    moves = [i for i, name in enumerate(env.action_names) if name.startswith(("move_", "attack_n", "swap"))]
    assert (seen[:, moves] > 0).all(), "the play never showed an action both possible and impossible"


STATIONS = {
    "cogsguard": ("aH@m\n@K@C\nsJ@t\nG.O.", cogs.LEGEND),
    "extractor_hub": ("@A@T\nE@C@\nO.GS", LEGEND),
}


@pytest.mark.parametrize("name", STATIONS)
def test_masks_equal_outcomes_among_stations(name: str) -> None:
    """Four agents in a narrow place. Masks do not know what the clock will bring, so it brings nothing here."""
    text, legend = STATIONS[name]
    game = shipped.build(name, num_agents=4, max_steps=400).replace("events", {})
    seen = np.zeros((2, 5), int)
    with quiet_make(game.replace("map", Ascii(text=text, legend=legend)), num_worlds=2, masks=True, seed=6) as env:
        env.reset()
        assert env.masks is not None
        rng = np.random.default_rng(2)
        for tick in range(240):
            if tick % 10 == 9:
                masks = check_masks(env)[:, :5]
                seen += np.array([(masks == 0).sum(0), (masks == 1).sum(0)])
            env.step((rng.random(env.masks.shape) * (env.masks + 0.1)).argmax(1).astype(np.int32))
    assert (seen[:, 1:] > 0).all(), seen


# ---- what masks cannot know


def test_a_mask_allows_what_hangs_on_chance() -> None:
    """It tells no dice: 1 where the action may succeed, 0 only where it cannot."""
    for probability, exact in ((0.5, False), (0.0, True), (1.0, True)):
        rule = Rule(when=(Chance(probability=probability),), then=(Give(amounts={"ore": 1}),))
        kinds = {"X": ObjectType(on_use=(rule,))}
        env = play("@X", kinds, resources=("ore",), masks=True, num_worlds=64)
        assert env.masks is not None
        use = env.action_names.index("move_east")
        masks, worked = env.masks[:, use] != 0, outcomes(env)[:, use]
        assert masks.all() == (probability > 0)
        assert 10 < worked.sum() < 54 if not exact else (masks == worked).all()
        assert env.games[0].unforeseen() == ("" if exact else "1 condition of chance")


@settings(max_examples=50)
@given(games(most_agents=3, by_chance=True), st.integers(0, 1_000))
def test_what_a_mask_forbids_fails(game: Game, seed: int) -> None:
    """Also in games of chance, as long as no event changes the world in between."""
    assume(not game.events)
    game = game.replace("observation.num_tokens", max(2, game.observation.num_tokens))
    with quiet_make(game, num_worlds=2, seed=seed, masks=True) as env:
        actions = random_actions(env, seed)
        env.reset()
        for _ in range(3):
            assert env.masks is not None
            worked = outcomes(env)
            assert (env.masks != 0)[worked].all()
            if not game.unforeseen():
                assert ((env.masks != 0) == worked).all()
            env.step(actions())


def test_a_mask_knows_the_clock_but_not_what_it_brings() -> None:
    """A condition on the tick is asked about the tick to come; an event of that tick has not happened yet."""
    rule = Rule(when=(Periodic(every=3),), then=(Give(amounts={"ore": 1}),))
    closing = Event(at=(5,), targets="X", then=(Remove(),))
    kinds = {"X": ObjectType(on_use=(rule,), tags=("X",))}
    env = play("@X", kinds, resources=("ore",), masks=True, events={"closing": closing})
    assert env.masks is not None
    use = env.action_names.index("move_east")
    said, worked = [], []
    for _ in range(6):
        said.append(bool(env.masks[0, use]))
        worked.append(bool(outcomes(env)[0, use]))
        env.step()
    assert said[:4] == worked[:4] == [False, False, True, False]
    assert (said[4], worked[4]) == (False, True)  # the event of tick 5 makes room
    assert env.games[0].unforeseen() == "1 event"


ORE = AgentType(inventory={"ore": 5})
HEARTS = (Give(amounts={"heart": 1}),)
ASKS = {
    "more reward than so much": (
        Rule(when=(AtLeast(value=Stat(name="reward"), number=3),), then=HEARTS),
        {"agent": AgentType(on_tick=(Rule(then=(Give(amounts={"ore": 1}),)),)), "rewards": (reward("ore"),)},
    ),
    "less reward than so much": (
        Rule(when=(AtLeast(value=Stat(name="reward"), number=-2),), then=HEARTS),
        {"agent": AgentType(on_tick=(Rule(then=(Give(amounts={"ore": 1}),)),)), "rewards": (reward("ore", weight=-1),)},
    ),
    "a part of the reward": (
        Rule(when=(AtLeast(value=Ratio(values=(Stat(name="reward"), Constant(value=3.0))), number=1),), then=HEARTS),
        {"agent": ORE, "rewards": (reward("ore", mode="per_tick"),)},
    ),
    "nothing lost, after the move is paid": (
        Rule(when=(Not(conditions=(AtLeast(value=Stat(name="ore.lost"), number=1),)),), then=HEARTS),
        {"agent": ORE, "move_cost": {"ore": 1}},
    ),
    "something lost, after the move is paid": (
        Rule(when=(AtLeast(value=Stat(name="ore.lost"), number=1),), then=HEARTS),
        {"agent": ORE, "move_cost": {"ore": 1}},
    ),
    "what is lost with the bonus that the move costs": (
        Rule(when=(AtLeast(value=Stat(name="gear.lost"), number=1),), then=HEARTS),
        {
            "agent": AgentType(
                inventory={"ore": 2, "gear": 2}, limits=(Limit(resources=("gear",), base=0, bonus={"ore": 1}),)
            ),
            "move_cost": {"ore": 1},
        },
    ),
}


@pytest.mark.parametrize("name", ASKS)
def test_masks_know_rewards_and_what_is_paid_for_the_move(name: str) -> None:
    rule, fields = ASKS[name]
    kinds = {"X": ObjectType(on_use=(rule,))}
    env = play("@X", kinds, resources=("ore", "heart", "gear"), masks=True, **fields)
    assert env.masks is not None
    use = env.action_names.index("move_east")
    said = []
    for _ in range(6):
        said.append(int(check_masks(env)[0, use]))
        env.step()
    assert env.games[0].unforeseen() == ""
    assert (1 in said) == (name != "nothing lost, after the move is paid")
    if "rewards" in fields:
        assert 0 in said


def wrong_masks(name: str, ticks: int) -> tuple[int, int]:
    """How many masks of a shipped game were asked, and are wrong, in play that respects them."""
    asked = wrong = 0
    with quiet_make(shipped.build(name), num_worlds=2, seed=3, masks=True) as env:
        env.reset()
        rng = np.random.default_rng(1)
        for _ in range(ticks):
            assert env.masks is not None
            asked += env.masks.size
            wrong += int(((env.masks != 0) != outcomes(env)).sum())
            env.step((rng.random(env.masks.shape) * (env.masks + 1e-9)).argmax(1).astype(np.int32))
    return asked, wrong


@pytest.mark.long
@pytest.mark.parametrize("name", shipped.names("grid"))
def test_wrong_masks_are_counted(name: str, record_property: Callable[[str, object], None]) -> None:
    """None, but where events come between a mask and its action."""
    asked, wrong = wrong_masks(name, 300)
    assert wrong == 0 or shipped.build(name).events
    assert wrong < 1e-4 * asked
    record_property("figure", f"{wrong} of {asked} masks of {name} wrong")
