"""Masks against outcomes, exhaustively: every (agent, action) stepped on a copy with all others at noop."""

from __future__ import annotations

from typing import Any

import cogs
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from random_games import games, quiet_make, random_actions
from scenes import play

from gridmill import Env, Game
from gridmill import games as shipped
from gridmill.games.extractor_hub import LEGEND
from gridmill.grid import AgentType, Ascii, Attack, Converter, Limit, ObjectType


def check_masks(env: Env) -> np.ndarray:
    """Mask 1 exactly where the action succeeds; the masks that were checked."""
    assert env.masks is not None
    saved, masks = env.save(), env.masks.copy()
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
            worked = shown[:, 2] == action
            assert (masks[rows, action] == worked).all(), (agent, env.action_names[action])
    env.restore(saved)
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
