"""Several processes train one run: the same bits as one process that computes the same pieces."""

from __future__ import annotations

import json
import os
import signal
import socket
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from ranked import broken, ranked, resumed, rollouts, run_of, started, stopped_by_the_program, trained
from taught import taught
from tiny import difference, epochs_of, without_times
from warm import warm

from gridmill import recipes
from gridmill.config import ConfigError
from gridmill.run import PPO, PolicyConfig, Run, Schedule, SignalTerm
from gridmill.runs import resume, train
from gridmill.sizing import for_ranks, sizes
from gridmill.train import ranks
from gridmill.train.ranks import ALONE, Ranks, launched


def same(one: Path, other: Path) -> None:
    assert difference(one, other) == 0
    mine, theirs = ([without_times(record) for record in epochs_of(folder)] for folder in (one, other))
    assert mine == theirs


# ---- the same bits


def test_one_two_and_four_ranks_collect_the_same_rollouts() -> None:
    """Over three epochs of learning, with the same four pieces."""
    run = run_of(3, trainer__pieces=4, trainer__async_factor=2)
    (whole,) = ranked(1, rollouts, 3, run)
    for count in (2, 4):
        parts = ranked(count, rollouts, 3, run)
        for epoch, columns in enumerate(whole):
            for name, column in columns.items():
                joined = np.concatenate([part[epoch][name] for part in parts], 1)
                assert np.array_equal(column, joined), (count, epoch, name)


CURRICULUM = {
    "sets": {
        "short": {"vary": [{"kind": "range", "path": "max_steps", "low": 1, "high": 9}], "target": 0.5},
        "bushes": {"vary": [{"kind": "values", "path": "map.objects.bush", "values": [1, 5, 9]}], "target": 1.0},
    },
    "tasks": 5,
    "tries": 1,
    "patience": 2,
}


def prospector() -> Run:
    return recipes.build("prospector").replace_all(
        [
            ("policy", PolicyConfig(encoder="mlp", core="lstm", hidden=16)),
            ("trainer.num_worlds", 8),
            ("trainer.batch_size", 512),
            ("trainer.minibatch_size", 128),
            ("trainer.bptt_horizon", 32),
            ("trainer.total_timesteps", 4 * 512),
            ("trainer.threads", 1),
        ]
    )


SAME: dict[str, Run] = {
    "six epochs": run_of(6),
    "twenty epochs": run_of(20),
    "centered, prioritised, V-trace, two rounds": run_of(
        5, trainer__reward="centered", trainer__prio_alpha=0.6, trainer__advantage="vtrace", trainer__update_epochs=2
    ),
    "a schedule that follows a metric, updates stopped by KL": run_of(
        6,
        losses__ppo=PPO(entropy_weight=Schedule(start=0.05, end=0.0, over="metric:score_recent", until=3.0)),
        trainer__target_kl=1e-4,
        trainer__update_epochs=3,
    ),
    "a curriculum that turns over": run_of(12, curriculum=CURRICULUM),
    "windows of a signal, other agents' advantages, schedule-free": run_of(
        5,
        trainer__signal=(SignalTerm(value="berry.get", weight=1.0),),
        trainer__window_env_steps=50,
        trainer__shared_advantage=0.5,
        optimizer__kind="schedule_free",
    ),
    "a teacher who leads, and a player": taught(
        {"players": {"arena": 1 / 3}, "trainer.minibatch_size": 128, "trainer.batch_size": 256}, {"lead": 0.5}
    ),
    "prospector": prospector(),
}


ALSO = ("twenty epochs", "a schedule that follows a metric, updates stopped by KL", "prospector")  # in the long tier


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.long) if name in ALSO else name for name in SAME]
)
def test_two_ranks_equal_one_process(name: str, tmp_path: Path) -> None:
    """All of a checkpoint, and every metric but times."""
    run = SAME[name]
    codes = ranked(2, trained, tmp_path, run.replace("run", "two"))
    assert codes == [(0, run.trainer.total_timesteps // run.trainer.batch_size)] * 2
    assert train(run.replace_all([("run", "one"), ("trainer.pieces", 2)]), tmp_path, panel=False).exit_code == 0
    same(tmp_path / "one", tmp_path / "two")
    if name.startswith("a curriculum"):  # the pool turned over, or this tells nothing
        assert json.loads((tmp_path / "two" / "curriculum.json").read_text())["learned"] > 0


def test_a_run_goes_on_with_another_number_of_ranks(tmp_path: Path) -> None:
    """Two ranks, then one, then two again equal one process that was never stopped."""
    run = run_of(9, trainer__pieces=2, curriculum=CURRICULUM, trainer__window_env_steps=50)
    first = run.replace_all([("run", "moved"), ("trainer.total_timesteps", 3 * 256)])
    assert ranked(2, trained, tmp_path, first) == [(0, 3)] * 2
    assert resume(tmp_path / "moved", ["trainer.total_timesteps=1536"], panel=False).epochs == 6
    assert ranked(2, resumed, tmp_path / "moved", ["trainer.total_timesteps=2304"]) == [(0, 9)] * 2
    assert train(run.replace("run", "still"), tmp_path, panel=False).epochs == 9
    assert difference(tmp_path / "still", tmp_path / "moved") == 0


def test_weights_that_a_run_begins_with_reach_every_rank(tmp_path: Path) -> None:
    train(run_of(2, run="before", seed=3), tmp_path, panel=False)
    run = run_of(2, policy__init_from=str(tmp_path / "before"), ranks__compare_epochs=1)
    assert ranked(2, trained, tmp_path, run.replace("run", "two")) == [(0, 2)] * 2
    train(run.replace_all([("run", "one"), ("trainer.pieces", 2)]), tmp_path, panel=False)
    same(tmp_path / "one", tmp_path / "two")


def test_only_rank_0_writes(tmp_path: Path) -> None:
    assert ranked(2, trained, tmp_path, run_of(2, run="two")) == [(0, 2)] * 2
    assert [path.name for path in tmp_path.iterdir()] == ["two"]
    log = (tmp_path / "two" / "log.txt").read_text()
    assert "ranks: 2 (gloo), 4 of 8 worlds and 1 thread each, trainer.pieces = 2\n" in log
    assert log.count("recipe: ") == 1
    assert "game: berries" in log
    assert ", 8 worlds x 2 agents" in log


# ---- refused


@pytest.mark.parametrize(
    ("changes", "ranks", "said"),
    [
        (
            {"trainer__pieces": 3},
            2,
            "expected a multiple of the number of processes, 2, got 3; add: trainer.pieces=4 - at `$.trainer.pieces`",
        ),
        (
            {"trainer__env_impl": "reference"},
            2,
            "expected auto or native with 2 processes, got reference - at `$.trainer.env_impl`",
        ),
        (
            {},
            3,
            "num_worlds = 8 is not a multiple of 6 (async_factor = 2 x pieces = 3); add: trainer.num_worlds=9 "
            "trainer.async_factor=3 trainer.batch_size=288 trainer.minibatch_size=72 - at `$.trainer.num_worlds`",
        ),
        (
            {"trainer__minibatch_size": 32, "trainer__num_worlds": 16},
            8,
            "minibatch_size = 32 is not a multiple of 64 (bptt_horizon = 8 x pieces = 8); add: "
            "trainer.minibatch_size=64 - at `$.trainer.minibatch_size`",
        ),
    ],
)
def test_sizes_that_do_not_go_with_so_many_ranks_are_refused(changes: dict[str, Any], ranks: int, said: str) -> None:
    run = run_of(1, **{key: value for key, value in changes.items() if key != "trainer__env_impl"})
    if "trainer__env_impl" in changes:
        run = prospector().replace("trainer.env_impl", "reference")
    with pytest.raises(ConfigError) as refused:
        sizes(for_ranks(run, ranks))
    assert str(refused.value) == said


def test_what_is_proposed_instead_fits() -> None:
    for pieces in (2, 3, 5, 7):
        for worlds in (1, 6, 8, 11):
            run = run_of(1, trainer__pieces=pieces, trainer__num_worlds=worlds)
            with pytest.raises(ConfigError) as refused:
                sizes(run.replace("trainer.minibatch_size", 40))
            line = str(refused.value).partition("; add: ")[2].partition(" - at ")[0]
            changes = [(path, int(value)) for path, _, value in (word.partition("=") for word in line.split())]
            assert sizes(run.replace_all([("trainer.minibatch_size", 40), *changes])).pieces == pieces


def test_a_launcher_that_says_nonsense_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"RANK": "2", "WORLD_SIZE": "2", "MASTER_ADDR": "x", "MASTER_PORT": "1"}.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(ValueError, match=r"^RANK, WORLD_SIZE: expected 0 <= RANK < WORLD_SIZE, got '2', '2'$"):
        launched()


@pytest.mark.parametrize("size", ["1", "", None])
def test_without_a_launcher_there_is_one_rank(size: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RANK", "7")
    monkeypatch.delenv("WORLD_SIZE", raising=False)
    if size is not None:
        monkeypatch.setenv("WORLD_SIZE", size)
    assert launched() == (0, 1)
    assert not torch.distributed.is_initialized()


@pytest.mark.parametrize("name", ["RANK", "MASTER_ADDR", "MASTER_PORT"])
def test_a_launcher_that_says_half_is_refused(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each of the processes that srun or mpirun had started trained a run alone, without a word."""
    for each, value in {"RANK": "0", "WORLD_SIZE": "2", "MASTER_ADDR": "x", "MASTER_PORT": "1"}.items():
        monkeypatch.setenv(each, value)
    monkeypatch.delenv(name)
    with pytest.raises(ValueError) as caught:
        launched()
    assert str(caught.value) == (
        f"{name}: expected a value, for WORLD_SIZE is '2', got none; start the processes with torchrun, "
        "or unset WORLD_SIZE to train in one"
    )


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("WORLD_SIZE", "abc", "WORLD_SIZE: expected a whole number from 1 to 1000000, got 'abc'"),
        ("RANK", "abc", "RANK, WORLD_SIZE: expected 0 <= RANK < WORLD_SIZE, got 'abc', '2'"),
        ("RANK", "9" * 5000, f"RANK, WORLD_SIZE: expected 0 <= RANK < WORLD_SIZE, got '{'9' * 19}, '2'"),
        ("MASTER_PORT", "99999999", "MASTER_PORT: expected a whole number from 1 to 65535, got '99999999'"),
        ("MASTER_PORT", "http", "MASTER_PORT: expected a whole number from 1 to 65535, got 'http'"),
        ("LOCAL_WORLD_SIZE", "x", "LOCAL_WORLD_SIZE: expected a whole number from 1 to 1000000, got 'x'"),
        ("LOCAL_RANK", "-1", "LOCAL_RANK: expected a whole number from 0 to 1000000, got '-1'"),
    ],
)
def test_what_a_launcher_says_is_named(name: str, value: str, said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    told = {"RANK": "0", "WORLD_SIZE": "2", "MASTER_ADDR": "x", "MASTER_PORT": "1"} | {name: value}
    for each, text in told.items():
        monkeypatch.setenv(each, text)
    with pytest.raises(ValueError) as caught:
        launched()
    assert str(caught.value) == said


def test_who_waits_for_the_others_says_so(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Of two processes only the first was started: nothing was said for ten minutes."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    told = {"RANK": "0", "WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
    for each, text in told.items():
        monkeypatch.setenv(each, text)
    monkeypatch.setattr(ranks, "QUIET", 0.1)
    with pytest.raises(RuntimeError):
        ranks.join(lambda: ({}, 2.0))
    assert capsys.readouterr().out == f"rank 0 waits for rank 1 at 127.0.0.1:{port}, for 2 s at most\n"


# ---- arithmetic


def test_pieces_are_added_in_their_order() -> None:
    """((a + b) + c), which is not a + (b + c) in floats."""
    pieces = [[torch.tensor([number]), torch.tensor([[1.0, 2.0]])] for number in (1.0, 1e8, -1e8)]
    total, counts = ALONE.add_up(pieces)
    assert total.tolist() == [float(torch.tensor(1.0) + 1e8 - 1e8)] == [0.0]
    assert counts.tolist() == [[3.0, 6.0]]


def test_moments_over_pieces_are_those_of_all_numbers() -> None:
    numbers = torch.randn(60, generator=torch.Generator().manual_seed(1))
    ((count, mean, std),) = ALONE.moments([[numbers[:7]], [numbers[7:7]], [numbers[7:]]])
    assert int(count) == 60
    torch.testing.assert_close(mean, numbers.mean())
    torch.testing.assert_close(std, numbers.std(correction=0))
    ((_, mean, std),) = ALONE.moments([[numbers]])
    assert (float(mean), float(std)) == (float(numbers.mean()), float(numbers.std(correction=0)))


class Two(Ranks):
    """As if another rank had said something else."""

    count = 3

    def all_bytes(self, mine: bytes) -> list[bytes]:
        return [mine, b"\1" * 32, mine]


def test_different_weights_are_an_error_with_the_ranks() -> None:
    with pytest.raises(RuntimeError) as refused:
        Two().compare(lambda: {"x": torch.zeros(2)}, 10)
    words = str(refused.value).split()
    assert " ".join(words[:8]) == "weights differ after epoch 10: ranks 0, 2"
    assert " ".join(words[9:]) == "rank 1 010101010101; expected the same on all ranks"


# ---- ends


def wait_for(path: Path, words: str, ranks: list[Any]) -> None:
    until = time.monotonic() + 120
    while not (path.exists() and words in path.read_text()):
        assert time.monotonic() < until, path
        assert all(each.process.is_alive() for each in ranks), [each.answer() for each in ranks]
        time.sleep(0.02)


def test_a_signal_to_one_rank_ends_all_with_a_checkpoint(tmp_path: Path) -> None:
    with started(2, trained, tmp_path, run_of(100_000, run="two")) as ranks:
        wait_for(tmp_path / "two" / "metrics.jsonl", '"epoch": 2', ranks)
        os.kill(ranks[1].process.pid, signal.SIGTERM)
        os.kill(ranks[1].process.pid, signal.SIGTERM)  # the scheduler's and torchrun's
        (code, epochs), other = (each.answer() for each in ranks)
    assert (code, epochs) == other
    assert code == 128 + signal.SIGTERM
    assert [path.name for path in (tmp_path / "two" / "checkpoints").iterdir()] == [f"epoch-{epochs:08d}"]
    assert "ended: stopped by SIGTERM" in (tmp_path / "two" / "log.txt").read_text()


@pytest.mark.parametrize(("how", "shown"), [("stop", 3), ("break", 2)])
def test_a_program_that_wants_no_more_ends_all_after_the_next_epoch(how: str, shown: int, tmp_path: Path) -> None:
    found = ranked(2, stopped_by_the_program, tmp_path, run_of(5, run="x"), how)
    assert found == [(0, 3, shown), (0, 3, 0)]  # the others learn of it when all agree, an epoch later
    assert resume(tmp_path / "x", panel=False).epochs == 5


def test_what_breaks_in_one_rank_ends_all(tmp_path: Path) -> None:
    with started(2, broken, tmp_path, run_of(9, run="two")) as ranks:
        assert [each.answer() for each in ranks] == [(4, 2)] * 2
    log = (tmp_path / "two" / "log.txt").read_text()
    assert "stopped: rank 1: reward of row 11 (world 5) is nan at step 33 of the run; expected finite numbers" in log


@pytest.mark.R8
@pytest.mark.parametrize("who", [0, 1])
def test_a_rank_that_hangs_is_named_with_what_it_did(who: int, tmp_path: Path) -> None:
    """SIGSTOP; the timeout is the shortest there is."""
    with started(2, trained, tmp_path, run_of(100_000, run="two", ranks__timeout=10.0)) as ranks:
        wait_for(tmp_path / "two" / "metrics.jsonl", '"epoch": 2', ranks)
        os.kill(ranks[who].process.pid, signal.SIGSTOP)
        said = ranks[1 - who].answer().splitlines()[-1]
    # Rank 0 keeps the store here, as it does where there is no torchrun.
    how = "has stopped (no sign of life) while " if who else "does not answer, nor does the store, which it may host ("
    assert said.startswith(f"gridmill.train.ranks.RankLost: rank {who} {how}")


@pytest.mark.R7
def test_a_rank_that_is_killed_is_named_and_nobody_waits(tmp_path: Path) -> None:
    with started(2, trained, tmp_path, run_of(100_000, run="two")) as ranks:
        wait_for(tmp_path / "two" / "metrics.jsonl", '"epoch": 2', ranks)
        os.kill(ranks[1].process.pid, signal.SIGKILL)
        said = ranks[0].answer().splitlines()[-1]
    assert said.startswith("gridmill.train.ranks.RankLost: rank 1 has stopped (no sign of life) while ")
    assert "ended: RankLost: rank 1 has stopped" in (tmp_path / "two" / "log.txt").read_text()


# ---- begin or go on


def test_or_resume_begins_and_goes_on(tmp_path: Path) -> None:
    """By command, in one process: a job that is started again and again ends with the run as if never stopped."""
    (tmp_path / "recipe.py").write_text("from ranked import run_of\ndef made(): return run_of(4, run='job')\n")
    words = ["gridmill", "train", "recipe.py:made", "--or-resume"]
    refused = warm([*words, "run="], tmp_path)
    assert (refused.returncode, refused.stderr) == (
        2, "gridmill: --or-resume: expected run=NAME, by which the run is found again, got none\n",
    )  # fmt: skip
    (tmp_path / "runs" / "job").mkdir(parents=True)
    (tmp_path / "runs" / "job" / "log.txt").write_text("killed before anything was saved\n")
    first = warm([*words, "trainer.total_timesteps=512", "run=job"], tmp_path)
    assert first.returncode == 0, first.stderr
    assert (tmp_path / "runs" / "job.before-1" / "log.txt").exists()
    assert warm([*words, "run=job"], tmp_path).returncode == 0
    folder = tmp_path / "runs" / "job"
    assert [record["epoch"] for record in epochs_of(folder)] == [1, 2]  # the first command said how long
    assert warm([*words, "run=job", "trainer.total_timesteps=1024"], tmp_path).returncode == 0
    assert [record["epoch"] for record in epochs_of(folder)] == [1, 2, 3, 4]
    train(run_of(4, run="whole"), tmp_path, panel=False)
    assert difference(folder, tmp_path / "whole") == 0
