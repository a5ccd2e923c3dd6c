"""Bots and `gridmill eval`: the public bots score what they are known to score, the shuttle earns and comes home."""

from __future__ import annotations

import json

import numpy as np
import pytest

import gridmill
from gridmill import cli
from gridmill.evaluate import evaluate
from gridmill.prospector import ProspectorEnv
from gridmill.prospector.bots import BOTS, Bot

# mean return, mean and median net profit, survival, steps; seeds 7 to 206
KNOWN = {
    "greedy_miner": (-106.8, 195, 0, 0.0, 57),
    "cautious_scanner": (-89.6, -85, 0, 0.0, 63),
    "market_timer": (-112.7, 19, 0, 0.0, 53),
}


@pytest.mark.parametrize("name", KNOWN)
def test_public_bots_score_what_they_are_known_to(name: str) -> None:
    found = evaluate("prospector", f"bot:{name}", episodes=200, seed=7)
    reward, profit, median, survival, steps = KNOWN[name]
    assert round(found.reward.mean, 1) == reward
    assert (round(found.score.mean), round(found.score.median)) == (profit, median)
    assert found.stats["survival"].mean == survival
    assert round(found.stats["length"].mean) == steps
    assert found.reward.se > 0


def test_the_shuttle_earns_and_comes_home() -> None:
    found = evaluate("prospector", "bot:shuttle", episodes=200, seed=1_000_000)
    assert found.score.mean >= 3_000
    assert found.stats["survival"].mean >= 0.95


def test_a_bot_plays_single_envs_and_batches_alike() -> None:
    for name in BOTS:
        batch_bot, alone = Bot(name, 3), Bot(name, 1)
        single = ProspectorEnv(seed=21)
        obs, _ = single.reset(seed=21)
        with gridmill.make("prospector", num_worlds=3, seed=20) as env:
            env.reset()
            for _ in range(150):
                actions = batch_bot.act(env.obs, env.actions)
                action = int(alone.act(obs[None])[0])
                assert actions[1] == action
                obs, _, terminated, truncated, _ = single.step(action)
                env.step()
                batch_bot.reset(env.terminals | env.truncations)
                if terminated or truncated:
                    obs, _ = single.reset()
                    alone.reset()


def test_unknown_policies_get_one_clear_line() -> None:
    with pytest.raises(
        ValueError,
        match=r"^policy: no script `greedy` for prospector; did you mean `greedy_miner`\? - its scripts: ",
    ):
        evaluate("prospector", "bot:greedy", episodes=1, seed=0)
    with pytest.raises(ValueError, match=r"^policy: no script `shuttle` for toy - its scripts: none$"):
        evaluate("toy", "bot:shuttle", episodes=1, seed=0)
    with pytest.raises(ValueError, match=r"^--episodes must be at least 1, got 0$"):
        evaluate("prospector", "random", episodes=0, seed=0)
    with pytest.raises(
        ValueError, match=r"^no script `shutle`; did you mean `shuttle`\? - this game.s scripts: greedy_miner, "
    ):
        Bot("shutle", 1)
    with pytest.raises(ValueError, match=r"^obs: expected 2 rows, got 3$"):
        Bot("shuttle", 2).act(np.zeros((3, 260), np.float32))


def test_eval_prints_a_table_and_json(capsys: pytest.CaptureFixture[str]) -> None:
    command = ["eval", "prospector", "--policy", "bot:greedy_miner", "--episodes", "5", "--seed", "7"]
    with pytest.raises(SystemExit) as ended:
        cli.main(command)
    assert ended.value.code == 0
    printed = capsys.readouterr().out
    assert printed.splitlines()[0] == "5 episodes each from seed 7; standard errors over worlds"
    for title in ("reward", "net profit", "survival", "profit per tick", "overheat ticks", "pirate encounters"):
        assert title in printed
    assert max(map(len, printed.splitlines())) <= 80
    with pytest.raises(SystemExit):
        cli.main([*command, "--policy", "random", "--json"])
    record = json.loads(capsys.readouterr().out)
    assert (record["version"], record["seed"], len(record["results"])) == (1, 7, 2)
    first = record["results"][0]
    assert (first["game"], first["policy"], first["episodes"]) == ("prospector", "bot:greedy_miner", 5)
    assert set(first["score"]) == {"mean", "se"}
    assert first["score"] == first["stats"]["net_profit"]
    assert first["reward"] == first["stats"]["reward"]
