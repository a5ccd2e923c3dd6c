"""Others who play in training: their rows are acted in by them and never learned from."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from small_runs import hash_of, small_run
from tiny import difference, epochs_of

from gridmill import games, recipes
from gridmill.config import ConfigError
from gridmill.evaluate import evaluate
from gridmill.games.make import make
from gridmill.policy import load
from gridmill.run import Run
from gridmill.runs import dry_run, resume, train
from gridmill.sizing import players_of_agents, sizes
from gridmill.train.actors import OwnActor
from gridmill.train.rollout import hash_of as mixed
from gridmill.train.trainer import Trainer

WORLDS, AGENTS = 4, 6


def arena(max_steps: int = 40) -> Any:
    return games.arena_basic_easy_shaped(num_agents=AGENTS, max_steps=max_steps)


def shared_run(players: dict[str, float], learners: int, **more: Any) -> Run:
    """Two segments of eight steps for each learner."""
    rows = WORLDS * learners
    run = small_run(arena(), batch_size=16 * rows, minibatch_size=8 * rows, **more)
    changes = [("players", players), ("trainer.total_timesteps", 6 * 16 * rows), ("checkpoint.seconds", 0.0)]
    return run.replace_all(changes)


@pytest.fixture(scope="module")
def frozen(tmp_path_factory: pytest.TempPathFactory) -> str:
    run = small_run(arena(), {"core": "gru", "actor_gain": 5.0}, seed=4).replace_all(
        [("run", "frozen"), ("trainer.total_timesteps", 384)]
    )
    return str(train(run, tmp_path_factory.mktemp("frozen"), panel=False).folder)


def rows_of(run: Run, name: str) -> list[int]:
    cast = players_of_agents(run, AGENTS)
    return [world * AGENTS + agent for world in range(WORLDS) for agent in range(AGENTS) if cast[agent] == name]


@pytest.mark.parametrize("who", ["script", "frozen", "both"])
def test_steps_of_learning_rows_are_the_steps_trained_on(who: str, frozen: str) -> None:
    shares = {"script": {"arena": 0.5}, "frozen": {frozen: 0.5}, "both": {frozen: 1 / 6, "arena": 2 / 6}}[who]
    run = shared_run(shares, 3)
    trainer = Trainer(run)
    learning = rows_of(run, "")
    assert len(learning) == WORLDS * 3
    assert trainer.experience.rewards.shape == (16, len(learning))
    seen: list[np.ndarray[Any, Any]] = []
    send = trainer.env.send

    def spy(lane: int) -> None:
        seen.append(trainer.env.obs.copy())
        send(lane)

    trainer.env.send = spy  # type: ignore[method-assign]
    for _ in range(2):
        seen.clear()
        trainer.epoch()
        half = len(learning) // 2  # rows of the first lane are as they were when it was sent
        for t in range(16):
            assert np.array_equal(trainer.experience.obs[t, :half], seen[2 * t][learning[:half]])
            assert np.array_equal(trainer.experience.obs[t, half:], seen[2 * t + 1][learning[half:]])
    assert trainer.agent_steps == trainer.trained_steps == 2 * 16 * len(learning)
    assert trainer.env.player_rows.sum() == (0 if who == "frozen" else WORLDS * round(shares["arena"] * AGENTS))
    trainer.close()


def test_a_frozen_player_acts_as_its_policy_would(frozen: str) -> None:
    run = shared_run({frozen: 0.5}, 3)
    trainer = Trainer(run)
    theirs, player = np.array(rows_of(run, frozen)), load(frozen)
    player.bind(trainer.env, mixed(run.seed, 0))
    state, starts = np.zeros((len(theirs), player.policy.state_size), np.float32), np.ones(len(theirs), bool)
    sent: list[tuple[Any, Any, Any, Any]] = []
    send = trainer.env.send

    def spy(lane: int) -> None:
        env = trainer.env
        assert env.masks is not None
        ends = env.terminals | env.truncations
        sent.append((env.obs.copy(), env.masks.copy(), env.actions.copy(), ends.copy()))
        send(lane)

    trainer.env.send = spy  # type: ignore[method-assign]
    trainer._collect()
    half = len(theirs) // 2
    for t in range(16):
        parts = [
            tuple(a[theirs[own]] for a in sent[2 * t + i]) for i, own in enumerate((slice(0, half), slice(half, None)))
        ]
        obs, masks, actions, ends = (np.concatenate(pair) for pair in zip(*parts, strict=True))
        starts = starts if t == 0 else ends
        thought = player.think(obs, player.reset(state, starts), masks)
        state = thought.state
        assert np.array_equal(player.choose(thought, t), actions), t
    trainer.close()


def test_the_score_is_that_of_the_learners(frozen: str) -> None:
    run = shared_run({frozen: 1 / 3, "arena": 1 / 3}, 2).replace("trainer.desync_episodes", False)
    trainer = Trainer(run)
    take, taken = trainer.env.take_episodes, []

    def spy() -> Any:
        taken.append(take())
        return taken[-1]

    trainer.env.take_episodes = spy  # type: ignore[method-assign]
    for _ in range(3):
        metrics = trainer.epoch()
    trainer.close()
    episodes = taken[-1]
    cast = np.array(players_of_agents(run, AGENTS))[episodes["agent"]]
    assert len(cast) == WORLDS * AGENTS
    for name, prefix in (("", ""), (frozen, "player/frozen/"), ("arena", "player/arena/")):
        own = cast == name
        assert metrics[f"{prefix}episodes"] == own.sum() == WORLDS * 2
        assert metrics[f"{prefix}episode_return"] == pytest.approx(float(episodes["reward"][own].mean()))
        assert metrics[f"{prefix}score"] == pytest.approx(float(episodes["heart.get"][own].mean()))
    assert len(trainer.recent) == WORLDS * 2


def test_what_players_are_paid_moves_nothing() -> None:
    """Their rewards are seen nowhere: not by the scale, not by advantages, not by the metrics."""
    found = []
    for paid in (0.0, 1000.0):
        run = shared_run({"arena": 0.5}, 3, reward="scaled", shared_advantage=1.0)
        trainer = Trainer(run)
        theirs, recv = rows_of(run, "arena"), trainer.env.recv

        def pay(lane: int, trainer: Any = trainer, theirs: Any = theirs, recv: Any = recv, paid: float = paid) -> None:
            recv(lane)
            trainer.env.rewards[theirs] += np.float32(paid)

        trainer.env.recv = pay  # type: ignore[method-assign]
        metrics = [trainer.epoch() for _ in range(2)]
        trainer.close()
        found.append((hash_of(trainer.weights()), metrics[-1]["reward"], metrics[-1]["explained_variance"]))
    assert found[0] == found[1]


def test_threads_do_not_change_a_byte(frozen: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gridmill.train.rollout.MOST_ROWS", 3)
    found = set()
    for count in (1, 2):
        trainer = Trainer(shared_run({frozen: 1 / 3, "arena": 1 / 6}, 3, threads=count))
        trainer.epoch()
        trainer.close()
        found.add(hash_of(trainer.weights()))
    assert len(found) == 1


def test_a_resumed_run_is_equal_to_the_bit(frozen: str, tmp_path: Path) -> None:
    run = shared_run({frozen: 1 / 3, "arena": 1 / 6}, 3, window_env_steps=50).replace_all(
        [("checkpoint.epochs", 1), ("checkpoint.keep", 9)]
    )
    whole, again = (train(run.replace("run", name), tmp_path, panel=False).folder for name in ("whole", "again"))
    for path in sorted((again / "checkpoints").iterdir())[3:]:
        for part in path.iterdir():
            part.unlink()
        path.rmdir()
    assert resume(again, panel=False).exit_code == 0
    assert difference(whole, again) == 0
    assert [r.get("player/frozen/score") for r in epochs_of(whole)] == [
        r.get("player/frozen/score") for r in epochs_of(again)
    ]


REMEMBERS = """
import numpy as np


class Remembers:
    def act(self, obs, state, masks):
        state = np.zeros(len(obs), np.int64) if state is None else state
        return (state // 3) % masks.shape[1], state + 1


def remembers(env, seed):
    return Remembers()
"""


def test_a_resumed_run_has_what_a_player_of_ones_own_remembers(tmp_path: Path) -> None:
    file = tmp_path / "remembers.py"
    file.write_text(REMEMBERS)
    run = shared_run({f"{file}:remembers": 0.5}, 3)
    run = run.replace_all([("checkpoint.epochs", 1), ("trainer.total_timesteps", 2 * run.trainer.batch_size)])
    whole, again = (train(run.replace("run", name), tmp_path, panel=False).folder for name in ("whole", "again"))
    shutil.rmtree(again / "checkpoints" / "epoch-00000002")
    assert resume(again, panel=False, code=[str(file)]).exit_code == 0
    assert difference(whole, again) == 0
    with (
        make(arena()) as env,
        pytest.raises(ValueError, match=r"remembers: expected a state of 12 rows, got the shape \(3,\)"),
    ):
        OwnActor(f"{file}:remembers", env, 0, 12).restore(torch.zeros(3))


PREDICTS = """
import types

import numpy as np


class Model:
    def __init__(self, env, memory):
        self.observation_space = types.SimpleNamespace(shape=env.obs.shape[1:])
        self.memory = memory

    def predict(self, obs, state=None, episode_start=None, deterministic=False):
        return np.zeros(len(obs), np.int64), self.memory


def predicts(env, seed):
    return Model(env, None)


def recurrent(env, seed):
    return Model(env, (np.zeros(3),))
"""


def test_a_model_of_stable_baselines3_plays_beside_the_policy(tmp_path: Path) -> None:
    file = tmp_path / "predicts.py"
    file.write_text(PREDICTS)
    for who in (f"{file}:predicts", str(file)):  # without a name, the function that is called like the file
        run = shared_run({who: 0.5}, 3)
        trainer = Trainer(run)
        trainer.epoch()
        assert not trainer.env.actions[rows_of(run, who)].any()
        trainer.close()
    trainer = Trainer(shared_run({f"{file}:recurrent": 0.5}, 3))
    said = r"as the state, got tuple; a recurrent model of Stable-Baselines3 plays only in eval$"
    with pytest.raises(TypeError, match=said):
        trainer.epoch()
    trainer.close()


def test_a_file_without_the_function_is_one_line(tmp_path: Path) -> None:
    file = tmp_path / "other.py"
    file.write_text(PREDICTS)
    with pytest.raises(ValueError, match=r"^no function `other` in `other\.py`[^\n]*$"):
        Trainer(shared_run({str(file): 0.5}, 3))


def test_windows_count_learners() -> None:
    run = shared_run({"arena": 0.5}, 3, window_env_steps=16 * WORLDS)
    trainer = Trainer(run)
    trainer.epoch()
    (window,) = trainer.full_windows
    trainer.close()
    assert window.env_steps == 16 * WORLDS
    assert window.steps["reward"] == pytest.approx(float(trainer.experience.rewards.double().sum()))
    assert window.records == 3 * window.episodes


# ---- sizes


def test_sizes_are_those_of_the_learners() -> None:
    found = sizes(shared_run({"arena": 0.5}, 3))
    assert (found.rows, len(found.learners), found.num_agents, found.horizon) == (12, 3, 6, 16)
    assert "4 worlds x 3 of 6 agents = 12" in dry_run.page(*[shared_run({"arena": 0.5}, 3)] * 2, "none")


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        (
            {"trainer.batch_size": 384, "players": {"arena": 1 / 6}},
            "batch_size = 384 is not a multiple of 160 (num_worlds = 4 x 5 learning agents x bptt_horizon = 8); add: "
            "trainer.batch_size=320 trainer.minibatch_size=160 - at `$.trainer.batch_size`",
        ),
        ({"players": {"arena": 1.0}}, "expected at least one of 6 agents to learn from, got none - at `$.players`"),
        (
            {"players": {"arena": 0.01}},
            "0.01 of 6 agents is less than one agent for `arena`; expected at least 0.167 - at `$.players`",
        ),
        (
            {"players": {"arena": 1.5}},
            "expected a share in (0, 1], agents such as [0, 1] or a team, got 1.5 - at `$.players.arena`",
        ),
        ({"players": {"arena": 0.5, "x": 1.0}}, "expected shares of at most 1 in total, got 1.5 - at `$.players`"),
    ],
)
def test_what_does_not_fit(changes: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError) as caught:
        sizes(shared_run({}, 6).replace_all(changes.items()))
    assert str(caught.value) == said


def test_a_player_who_is_not_there_is_refused() -> None:
    known = "a script of arena_basic_easy_shaped (arena), the folder of a run or FILE.py:function"
    said = f"expected {known}, got `runs/nobody`"
    with pytest.raises(ConfigError) as caught:
        Trainer(shared_run({"runs/nobody": 0.5}, 3))
    assert str(caught.value) == f"{said} - at `$.players`"


def test_a_record_keeps_them() -> None:
    run = shared_run({"arena": 0.5}, 3)
    assert Run.load(run.tree()) == run


# ---- a game of two teams

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
WALKER = f"{EXAMPLES / 'own_policy.py'}:walker"


@pytest.mark.parametrize("team", ["red", "blue"])
def test_a_team_is_played_and_the_other_learns(team: str) -> None:
    run = recipes.build(str(EXAMPLES / "teams.py")).replace_all([("players", {WALKER: team}), ("trainer.threads", 1)])
    teams = run.game.teams()
    assert sorted(teams) == ["blue", "blue", "red", "red"]
    assert players_of_agents(run, 4) == [WALKER if each == team else "" for each in teams]
    trainer = Trainer(run)
    seen: list[Any] = []
    send = trainer.env.send

    def spy(lane: int) -> None:
        seen.append(trainer.env.obs.copy())
        send(lane)

    trainer.env.send = spy  # type: ignore[method-assign]
    trainer.epoch()
    trainer.close()
    own = [row for row in range(8 * 4) if teams[row % 4] != team]
    assert np.array_equal(trainer.experience.obs[0, :8], seen[0][own[:8]])  # the first lane: half of the worlds
    assert trainer.experience.obs.shape[1] == len(own)


@pytest.mark.parametrize("team", ["red", "blue"])
def test_a_team_is_played_in_evaluation(team: str) -> None:
    game = recipes.build(str(EXAMPLES / "teams.py")).game
    agents = tuple(agent for agent, each in enumerate(game.teams()) if each == team)
    by_name, by_number, alone = (
        evaluate(game, "random", episodes=2, seed=0, players=players)
        for players in ({WALKER: team}, {WALKER: agents}, {})
    )
    assert by_name.stats == by_number.stats
    assert by_name.stats != alone.stats
    with pytest.raises(ValueError, match=r"^players: expected a team for `.*` \((red, blue|blue, red)\), got 'green'$"):
        evaluate(game, "random", episodes=1, seed=0, players={WALKER: "green"})
