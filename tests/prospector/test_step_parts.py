"""Prospector's signal: parts of its reward, the same in the batch and in the reference, and in other weights."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

import gridmill
from gridmill import _native, games, recipes
from gridmill.prospector import ProspectorConfig
from gridmill.run import SignalTerm
from gridmill.runs import overrides
from gridmill.train.trainer import Trainer

# The weights of the game's reward by the part that each weighs, with their signs.
PARTS = {
    "alpha_extract": ("step.extracted", 1.0),
    "beta_fuel": ("step.fuel", -1.0),
    "gamma_time": ("step.ticks", -1.0),
    "delta_wear": ("step.wear", -1.0),
    "epsilon_heat": ("step.heat", -1.0),
    "zeta_damage": ("step.damage", -1.0),
    "scan_cost": ("step.scan", -1.0),
    "invalid_pen": ("step.invalid", -1.0),
    "kappa_pirate": ("step.stolen", -1.0),
    "spend_again": ("step.spent", -1.0),
    "stranded_pen": ("step.stranded", -1.0),
    "destroyed_pen": ("step.destroyed", -1.0),
    "terminal_bonus": ("step.brought_home", 1.0),
}


def reward_as_signal(game: ProspectorConfig) -> list[SignalTerm]:
    """The reward of a game, term by term."""
    terms = [SignalTerm(value="step.credits", weight=1.0)]
    return terms + [SignalTerm(value=part, weight=sign * getattr(game, name)) for name, (part, sign) in PARTS.items()]


def played(game: ProspectorConfig, signal: Any = (), steps: int = 600, **options: Any) -> tuple[Any, Any, Any, Any]:
    """Rewards and signals of ships that trade, blunder and run dry, in worlds of short episodes."""
    env = gridmill.make(game, num_worlds=8, seed=4, signal=signal, **options)
    env.reset()
    rewards, signals, hashes = [], [], []
    bot = _native.ProspectorScript([game.core_tree()], "shuttle", 8, 0)
    for step in range(steps):
        random = np.random.default_rng(step).integers(-1, 69, 8)
        bot.act(env.obs, env.actions)
        env.actions[4:6] = random[4:6]  # invalid actions, lost ships
        env.actions[6:] = 7 if step % 60 else 0  # leaves the station and burns its fuel
        env.step()
        bot.reset(env.terminals | env.truncations)
        rewards.append(env.rewards.copy())
        signals.append(None if env.signal is None else env.signal.copy())
        hashes.append(env.obs.tobytes())
    return np.array(rewards), np.array(signals), hashes, env.take_episodes()


HARD = {
    "time_max": 900.0,
    "hazard_damage_per_tick": 6.0,
    "pirate_bias": -2.0,
    "hazard_heat_per_tick": 30.0,
    "heat_safe_frac": 0.0,
}


def test_the_parts_are_those_of_the_reward() -> None:
    """The game's own weights over the parts give its own reward; every part happens."""
    game = games.prospector().replace_all(list(HARD.items()))
    rewards, signals, _, episodes = played(game, reward_as_signal(game))
    assert len(episodes["world"]) > 20
    assert np.allclose(signals, rewards, rtol=1e-5, atol=1e-5)
    for part, _ in PARTS.values():
        assert played(game, [SignalTerm(value=part, weight=1.0)])[1].any(), part


def for_profit() -> ProspectorConfig:
    """The game that the recipe trained in before there were signals; saved runs still have it."""
    return games.prospector(
        alpha_extract=0.005,
        beta_fuel=0.0,
        gamma_time=0.00005,
        delta_wear=0.0,
        epsilon_heat=0.0,
        zeta_damage=0.0,
        kappa_pirate=0.0,
        scan_cost=0.0,
        invalid_pen=0.01,
        stranded_pen=4.0,
        destroyed_pen=4.0,
        terminal_bonus=0.0,
        spend_again=1.0,
    )


def test_the_recipe_learns_from_what_the_changed_game_paid() -> None:
    """To the bit, over whole episodes, while the worlds are those of the public game."""
    signal = recipes.build("prospector").trainer.signal
    changed = for_profit().replace_all(list(HARD.items()))
    public = games.prospector().replace_all(list(HARD.items()))
    paid, _, seen, episodes = played(changed)
    rewards, signals, seen_now, episodes_now = played(public, signal)
    assert seen == seen_now
    assert np.array_equal(signals, paid)
    assert not np.array_equal(rewards, paid)
    assert np.array_equal(episodes["net_profit"], episodes_now["net_profit"])
    ends = episodes["survival"]
    assert 0 < ends.mean() < 1  # ships are lost and come home


def test_the_recipe_learns_what_it_learned_in_the_changed_game() -> None:
    """The same weights after some epochs, to the bit."""
    sizes = ["trainer.num_worlds=8", "trainer.batch_size=512", "trainer.minibatch_size=256", "trainer.threads=1"]
    run = overrides.apply(recipes.build("prospector"), [*sizes, "policy.hidden=16"])
    learned = []
    for each in (run, run.replace_all([("game", for_profit()), ("trainer.signal", ())])):
        trainer = Trainer(each)
        for _ in range(3):
            trainer.epoch()
        learned.append(trainer.weights())
        trainer.close()
    assert all(torch.equal(tensor, learned[1][name]) for name, tensor in learned[0].items())


def test_the_recipe_plays_the_public_game() -> None:
    run = recipes.build("prospector")
    assert run.game == games.prospector()
    assert run.evaluation_game is None


FACTS = ("action", "dt", "invalid_action")  # of the last step, which the batch remembers over the end of an episode


@pytest.mark.parametrize("lanes", [1, 2])
def test_the_reference_has_the_same_signal(lanes: int) -> None:
    """Parts and statistics, through ends of episodes, desynced ones too."""
    game = games.prospector().replace_all([*HARD.items(), ("time_max", 60.0)])
    with gridmill.make(game, num_worlds=1) as env:
        names = [name for name in env.stat_names if name not in FACTS]
    signal = [*reward_as_signal(game), *(SignalTerm(value=name, weight=0.01 * i) for i, name in enumerate(names))]
    native = played(game, signal, 150, desync_episodes=True, lanes=lanes)
    slow = played(game, signal, 150, desync_episodes=True, lanes=lanes, implementation="reference")
    assert native[2] == slow[2]
    assert np.array_equal(native[1], slow[1])


def test_the_reference_refuses_an_unknown_name_and_continues_a_saved_state() -> None:
    with pytest.raises(ValueError, match=r"unknown statistic `step.spend`; did you mean `step.spent`\?"):
        gridmill.make(
            "prospector", num_worlds=1, implementation="reference", signal=[SignalTerm(value="step.spend", weight=1.0)]
        )
    signal = [SignalTerm(value="net_profit", weight=1.0), SignalTerm(value="fuel_used", weight=1.0)]
    envs = [gridmill.make("prospector", num_worlds=2, implementation="reference", signal=signal) for _ in range(2)]
    actions = np.random.default_rng(1).integers(0, 69, (40, 2))
    envs[0].reset()
    for action in actions[:20]:
        envs[0].step(action)
    envs[1].restore(envs[0].save())
    for action in actions[20:]:
        for env in envs:
            env.step(action)
        assert envs[0].signal is not None
        assert envs[1].signal is not None
        assert np.array_equal(envs[0].signal, envs[1].signal)
