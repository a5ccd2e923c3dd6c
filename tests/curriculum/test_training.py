"""A curriculum in training: every reset brings the chosen task, threads change nothing, a resume goes on to the bit."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from small_runs import hash_of
from tiny import berries, epochs_of, tiny
from typer.testing import CliRunner

import gridmill
from gridmill import cli, recipes
from gridmill.curriculum import Curriculum, CurriculumConfig, Range, TaskSet, Values
from gridmill.policy import checkpoint
from gridmill.policy.kernels import native
from gridmill.run import Run
from gridmill.runs import resume, train
from gridmill.runs.report import page as report
from gridmill.train.trainer import Trainer

SHORT = CurriculumConfig(
    sets={
        "short": TaskSet(vary=(Range(path="max_steps", low=1, high=7),), target=0.5),
        "bushes": TaskSet(
            game=berries().replace("name", "bushes"),
            vary=(Values(path="map.objects.bush", values=(1, 9)), Range(path="rewards.0.weight", low=0.0, high=1.0)),
            weight=2.0,
            target=1.0,
        ),
    },
    tasks=6,
    tries=1,
    patience=2,
)


def short(epochs: int = 4, **changes: Any) -> Run:
    return tiny(epochs, curriculum=SHORT, **changes)


def test_every_reset_brings_a_task_of_its_own() -> None:
    """Episodes of a tick up to twenty in rollouts of sixteen: the env plays what the authority says, each time."""
    trainer = Trainer(short())
    curriculum, env = trainer.curriculum, trainer.env
    assert curriculum is not None
    begun: list[tuple[int, int]] = [(w, curriculum.playing[w]) for w in range(4)]
    plain = curriculum.hand_out

    def hand_out(worlds: Any) -> None:
        plain(worlds)
        begun.extend((w, curriculum.playing[w]) for w in worlds)

    trainer.rollout.begun = hand_out
    taken: list[tuple[int, int]] = []
    learn = curriculum.learn
    lengths: list[int] = []

    def watched(episodes: Any) -> Any:
        taken.extend(zip(episodes["world"][::2].tolist(), episodes["game"][::2].tolist(), strict=True))
        for number, length, desynced in zip(
            episodes["game"][::2], episodes["length"][::2], episodes["desynced"][::2], strict=True
        ):
            most = curriculum.programs[int(number)].game.max_steps  # type: ignore[attr-defined]
            assert length == most or desynced
            lengths.append(int(length))
        return learn(episodes)

    curriculum.learn = watched  # type: ignore[method-assign]
    for _ in range(24):
        trainer.epoch()
        assert env.game_of_world.tolist() == curriculum.playing
    for world in range(4):
        played = [number for w, number in begun if w == world]
        assert [number for w, number in taken if w == world] == played[: len(played) - 1]
    assert curriculum.choices == [4 + len(begun)]
    assert min(lengths) < 4
    assert len(taken) > 80
    assert curriculum.learned + curriculum.given_up > 5
    assert len(env.games) <= 2 + 6 + 2 * 4
    trainer.close()


def trained(choose: str, threads: int, lanes: int) -> tuple[dict[str, torch.Tensor], str]:
    """The weights after four epochs, and all that the curriculum knows."""
    trainer = Trainer(short(curriculum__choose=choose, trainer__threads=threads, trainer__async_factor=lanes))
    for _ in range(4):
        trainer.epoch()
    trainer.close()
    assert trainer.curriculum is not None
    return trainer.weights(), repr(trainer.curriculum.state())


@pytest.mark.parametrize("choose", ["uniform", "learning_progress"])
def test_threads_and_lanes_change_nothing(choose: str) -> None:
    """All is the same to the bit; but where products are torch's, the number of rows decides the weights' last bits."""
    weights, state = trained(choose, 1, 2)
    for threads, lanes in ((2, 2), (1, 4), (2, 1)):
        other, known = trained(choose, threads, lanes)
        assert known == state
        if native.fast_products() or lanes == 2:
            assert hash_of(other) == hash_of(weights)
        for name, weight in weights.items():
            torch.testing.assert_close(other[name], weight, rtol=0, atol=1e-5)


def test_metrics_score_every_task_by_its_own_game(tmp_path: Path) -> None:
    """The run's score is the mean of its sets', and every whole episode is counted once."""
    folder = train(short(8, score=""), tmp_path, panel=False).folder
    records = epochs_of(folder)
    counted = 0
    for record in records:
        known = {name for name in record if name.startswith("curriculum/score/")}
        shares = [record[f"curriculum/share/{name.rpartition('/')[2]}"] for name in known]
        assert not known or sum(shares) == pytest.approx(1.0)
        if known:
            weighed = [record[f"curriculum/share/{name.rpartition('/')[2]}"] * record[name] for name in known]
            assert record["score"] == pytest.approx(sum(weighed))
        counted += record["episodes"] // 2
        assert record["curriculum/episodes"] == counted
        assert record["curriculum/completed"] <= counted
    assert counted > 20


def test_the_supply_of_a_task_is_its_own() -> None:
    run = recipes.build("navigation")
    with gridmill.make(run.trained_games, num_worlds=6, desync_episodes=False) as env:
        curriculum = Curriculum(run.curriculum, run.game, env)
        curriculum.assign_first()
        env.reset()
        curriculum.assign_next()
        rng = np.random.default_rng(0)
        for _ in range(1_000):
            env.step(rng.integers(0, env.num_actions, env.num_rows))
        episodes = env.take_episodes()
        curriculum.hand_out(range(6))
        scores = curriculum.learn(episodes)
    for row, score in enumerate(scores):
        altars = curriculum.programs[int(episodes["game"][row])].task.values
        supply = altars[0] if len(altars) == 1 else (sum(altars) + 10) / 4  # of an agent, on average
        assert score == episodes["heart.get"][row] / supply
    assert scores.any()


def test_evaluation_plays_the_runs_game() -> None:
    run = recipes.build("navigation")
    assert run.played_game == run.game
    assert run.game.name == "navigation"


# ---- what people see


def test_the_dry_run_shows_the_sets_and_refuses_what_cannot_be() -> None:
    def call(*words: str) -> Any:
        return CliRunner().invoke(cli.app, ["train", "navigation", *words, "--dry-run"])

    told = call("curriculum.sets.maze.weight=2", "curriculum.sets.open.vary.0.high=9")
    assert told.exit_code == 0, told.output
    for line in (
        "* curriculum.sets.maze.weight = 2.0",
        "  curriculum.sets.maze.game = navigation_maze",
        "  curriculum.sets.maze.vary.0 = 3 to 50 for map.maps.0.layers.1.counts.altar",
        "* curriculum.sets.open.vary.0 = 3 to 9 for map.maps.0.layers.1.counts.altar",
        "  curriculum.choose = learning_progress",
        "  maze: 29% of new tasks, 48 tasks, completed from a score of 0.9",
        "  open: 14% of new tasks, 7 tasks, completed from a score of 0.9",
        "  all: 43% of new tasks, 5,832 tasks, completed from a score of 0.9",
    ):
        assert line in told.stdout.splitlines(), told.stdout
    refused = call("curriculum.sets.open.vary.0.high=5_000")
    assert refused.exit_code == 2
    (line,) = refused.stderr.splitlines()
    assert line.startswith("gridmill: `map.maps.0.layers.1.counts.altar` = 5000 cannot be played in one batch")
    assert line.endswith(" - at `$.curriculum.sets.open.vary[0]`")


def test_the_report_shows_tasks_choices_and_evictions(tmp_path: Path) -> None:
    sets = {"<b>": {"vary": [{"kind": "range", "path": "max_steps", "low": 1, "high": 9}], "target": 0.5}}
    run = tiny(12, run="told", curriculum={"sets": sets, "tasks": 4, "tries": 1, "patience": 2})
    folder = train(run, tmp_path, panel=False).folder
    seen = json.loads((folder / "curriculum.json").read_text())
    assert seen["epoch"] == 12
    assert len(seen["tasks"]) == 4
    assert sum(task["chance"] for task in seen["tasks"]) == pytest.approx(1.0)
    assert len(seen["evicted"]) == seen["learned"] + seen["given_up"] > 0
    text = (folder / "report.html").read_text()
    assert "<b>: max_steps" not in text  # names are escaped
    words = re.sub(r"<[^>]*>", " ", text)
    for said in ("Curriculum", "Current tasks", "Evicted tasks", "given up", "Tasks over time", "1 to 9"):
        assert said in words, said
    for task in seen["tasks"]:
        assert str(task["id"]) in words
    assert "curriculum/tasks" not in words.partition("The game")[2].partition("Machine")[0]
    heading = (folder / "log.txt").read_text()
    assert "curriculum: <b>: 100% of new tasks, 9 tasks, completed from a score of 0.5" in heading
    for broken in ("[]", "{", '{"tasks": 3, "sets": [1], "evicted": [2]}'):
        (folder / "curriculum.json").write_text(broken)
        assert report.write(folder).exists()


# ---- resume


def test_what_may_change_at_a_resume(tmp_path: Path) -> None:
    """How tasks are chosen may; which tasks an id names may not."""
    folder = train(short(3, checkpoint__epochs=1, run="a"), tmp_path, panel=False).folder
    with pytest.raises(checkpoint.CheckpointError, match=r"curriculum\.sets\.short\.vary\.0\.high was 7, is 9"):
        resume(folder, ["curriculum.sets.short.vary.0.high=9", "trainer.total_timesteps=640"], panel=False)
    with pytest.raises(checkpoint.CheckpointError, match=r"curriculum\.sets\.short\.game was None, is absent"):
        resume(folder, ["curriculum.sets={}", "trainer.total_timesteps=640"], panel=False)
    changes = ["curriculum.choose=uniform", "curriculum.tasks=9", "trainer.total_timesteps=640"]
    assert resume(folder, changes, panel=False).epochs == 5
    assert Counter(record["curriculum/tasks"] for record in epochs_of(folder))[9] > 0


def test_a_run_without_one_does_not_know_of_it(tmp_path: Path) -> None:
    folder = train(tiny(2, checkpoint__epochs=1, run="a"), tmp_path, panel=False).folder
    assert not any(name.startswith("curriculum") for record in epochs_of(folder) for name in record)
    assert "curriculum" not in checkpoint.newest(folder)[0].trainer
    assert not (folder / "curriculum.json").exists()
