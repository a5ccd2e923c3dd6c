"""Batch arithmetic: what is accepted fits to the last step, what is refused names numbers that fit."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from taught import taught
from tiny import tiny

from gridmill import games, losses, recipes, sizing
from gridmill.config import ConfigError, memory
from gridmill.games import toy
from gridmill.losses import Column, Loss, Minibatch
from gridmill.policy.network import Policy
from gridmill.run import Run, TrainerConfig
from gridmill.runs import overrides, train
from gridmill.train.trainer import Trainer

GAME = toy(1, 8, 0.0)


def run_of(**trainer: int) -> Run:
    return Run(recipe="test", game=GAME, trainer=TrainerConfig(**trainer))


def test_sizes_by_hand() -> None:
    run = run_of(
        num_worlds=6, async_factor=3, batch_size=1_920, minibatch_size=640, bptt_horizon=16,
        max_microbatch=256, update_epochs=2, total_timesteps=5_000, threads=5,
    )  # fmt: skip
    assert asdict(sizing.sizes(run, 4)) == {
        "num_worlds": 6,
        "num_agents": 4,
        "learners": (0, 1, 2, 3),
        "lanes": 3,
        "rows": 24,
        "lane_rows": 8,
        "horizon": 80,
        "bptt_horizon": 16,
        "segments_per_row": 5,
        "segments": 120,
        "batch_size": 1_920,
        "minibatch_size": 640,
        "minibatch_segments": 40,
        "minibatches": 3,
        "microbatch_size": 256,
        "microbatches": 3,
        "pieces": 1,
        "updates": 6,
        "epochs": 3,
        "agent_steps": 5_760,
        "threads": 5,
    }


small = st.integers(1, 40)
sizes = st.fixed_dictionaries(
    {
        "num_worlds": st.integers(1, 64),
        "async_factor": st.integers(1, 6),
        "batch_size": st.one_of(st.integers(1, 100_000), st.tuples(small, small, small).map(math.prod)),
        "minibatch_size": st.one_of(st.integers(1, 20_000), st.tuples(small, small).map(math.prod)),
        "bptt_horizon": st.sampled_from([1, 2, 3, 4, 8, 16, 64, 100, 5_000, 10**9]),
        "max_microbatch": st.sampled_from([0, 0, 1, 64, 100, 1_000]),
        "total_timesteps": st.integers(1, 10**7),
    }
)  # fmt: skip


DRAWN = given(sizes, st.sampled_from([1, 2, 3, 4, 8, 20, 24]))


@settings(max_examples=300)
@DRAWN
def test_what_is_collected_is_what_is_trained_on(trainer: dict[str, int], agents: int) -> None:
    check_sizes(trainer, agents)


@pytest.mark.long
@settings(max_examples=10_000)
@DRAWN
def test_what_is_collected_is_what_is_trained_on_10000_times(trainer: dict[str, int], agents: int) -> None:
    check_sizes(trainer, agents)


def check_sizes(trainer: dict[str, int], agents: int) -> None:
    run = run_of(**trainer)
    try:
        fits = sizing.sizes(run, agents)
    except ConfigError as refusal:
        # One line whose overrides can be pasted after what was typed.
        offer = re.fullmatch(r".+; add: (.+) - at `\$\.trainer\.\w+`", str(refusal))
        assert offer is not None
        run = overrides.apply(run, offer[1].split())
        assert run.trainer.num_worlds == trainer["num_worlds"]
        fits = sizing.sizes(run, agents)
    collected = fits.rows * fits.horizon
    assert collected == fits.batch_size == run.trainer.batch_size
    assert collected == fits.segments * fits.bptt_horizon == fits.rows * fits.segments_per_row * fits.bptt_horizon
    assert collected == fits.minibatches * fits.minibatch_segments * fits.bptt_horizon
    assert fits.minibatch_size == fits.minibatch_segments * fits.bptt_horizon
    assert fits.lanes * fits.lane_rows == fits.rows
    assert fits.lane_rows % agents == 0
    pieces = range(0, fits.minibatch_size, fits.microbatch_size)
    assert len(pieces) == fits.microbatches
    assert fits.microbatch_size % fits.bptt_horizon == 0
    assert (fits.epochs - 1) * collected < run.trainer.total_timesteps <= fits.epochs * collected == fits.agent_steps
    assert fits.threads >= 1


@pytest.mark.parametrize(
    ("texts", "said"),
    [
        (
            ["trainer.num_worlds=32"],
            "batch_size = 52800 is not a multiple of 76800 (num_worlds = 32 x 24 agents x bptt_horizon = 100); "
            "add: trainer.batch_size=76800 trainer.minibatch_size=4800 - at `$.trainer.batch_size`",
        ),
        (
            ["trainer.num_worlds=21"],
            "num_worlds = 21 is not a multiple of async_factor = 2; add: trainer.async_factor=3 "
            "trainer.batch_size=50400 trainer.minibatch_size=4200 - at `$.trainer.num_worlds`",
        ),
        (
            ["trainer.minibatch_size=5000"],
            "batch_size = 52800 is not a multiple of minibatch_size = 5000; add: trainer.minibatch_size=4800 "
            "- at `$.trainer.minibatch_size`",
        ),
        (
            ["trainer.minibatch_size=4444"],
            "minibatch_size = 4444 is not a multiple of bptt_horizon = 100; add: trainer.minibatch_size=4400 "
            "- at `$.trainer.minibatch_size`",
        ),
        (
            ["trainer.max_microbatch=150"],
            "max_microbatch = 150 is not a multiple of bptt_horizon = 100; add: trainer.max_microbatch=100 "
            "- at `$.trainer.max_microbatch`",
        ),
    ],
)
def test_a_refusal_names_what_does_not_fit_and_what_would(texts: list[str], said: str) -> None:
    sizes = ["num_worlds=22", "batch_size=52_800", "minibatch_size=4_400", "bptt_horizon=100"]
    run = overrides.apply(recipes.build("arena_basic_easy_shaped"), [f"trainer.{size}" for size in sizes])
    run = overrides.apply(run, texts)
    with pytest.raises(ConfigError, match=f"^{re.escape(said)}$"):
        sizing.plan(run)


def test_threads_come_from_the_cores_but_no_more_than_a_lane_has_worlds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sizing, "cores", lambda: 6)
    chosen = [
        sizing.sizes(run_of(num_worlds=worlds, batch_size=64 * worlds, minibatch_size=64)).threads
        for worlds in (2, 8, 64)
    ]
    assert chosen == [1, 4, 6]
    monkeypatch.setattr(sizing, "cores", lambda: 128)
    assert sizing.sizes(run_of(num_worlds=64, batch_size=4_096, minibatch_size=64)).threads == 16
    assert sizing.cores() >= 1


def test_memory_grows_with_what_it_is_made_of() -> None:
    plain = recipes.build("ci")
    base = sizing.memory(plain)
    assert base.experience >= 9_216 * 600  # the tokens alone
    assert base.total == base.experience + base.policy + base.worlds
    twice = sizing.memory(plain.replace("trainer.num_worlds", 4))
    assert (twice.worlds, twice.experience) == (2 * base.worlds, base.experience + 4 * 2 * plain.game.num_agents)
    rows = 4 * 2 * plain.game.num_agents  # bytes of the last values
    assert sizing.memory(plain.replace("trainer.batch_size", 18_432)).experience == 2 * base.experience - rows
    # Every microbatch has activations and a gradient: of a small network smaller ones take less, of a large one more.
    small = plain.replace("policy.encoder", "cnn")
    assert sizing.memory(small.replace("trainer.max_microbatch", 576)).policy < sizing.memory(small).policy
    assert sizing.memory(plain.replace("trainer.max_microbatch", 96)).policy > base.policy
    assert sizing.memory(plain.replace("policy.core", "lstm")).policy > base.policy


class Columns(Loss):
    """Needs one of each kind of column."""

    teacher: str

    def needs(self) -> Mapping[str, Column]:
        return {
            "next_obs": Column(env="obs", after=True),
            "done": Column(env="terminals", after=True),
            "old_logits": Column(output="logits"),
            "old_hidden": Column(output="hidden"),
            "old_values": Column(output="values"),
            "shown": Column(actor=self.teacher),
        }

    def __call__(self, batch: Minibatch, out: Any, now: Any, heads: Any = None) -> Any:
        return out.values.mean(), {}


def bytes_of(tensors: Iterable[Any]) -> int:
    """Of memory, whoever shows it; what two of them show counts once."""
    found = {tensor.data_ptr(): tensor.numel() * tensor.element_size() for tensor in tensors}
    return sum(found.values())


def compare_with_the_tensors(run: Run) -> None:
    """The estimate of a run with what its trainer has: experience, arrays and recurrent state, weights."""
    need = sizing.memory(run)
    trainer = Trainer(run)
    trainer.epoch()
    x, env = trainer.experience, trainer.env
    kept = [torch.as_tensor(array) for array in trainer.rollout.kept.values()]  # what the rollout writes into
    assert bytes_of([*x.columns.values(), *kept, x.states, x.last_value]) == need.experience
    arrays = (env.obs, env.final_obs, env.actions, env.rewards, env.terminals, env.truncations)
    if run.teacher:
        arrays = (*arrays, env.teacher_actions)
    rows = sum(array.nbytes for array in arrays) + (0 if env.masks is None else env.masks.nbytes)
    rows += bytes_of((trainer.rollout.state, trainer.rollout.episode_starts))
    assert rows + env.num_worlds * env.bytes_per_world == need.worlds
    weights = bytes_of(trainer.policy.parameters())
    assert 4 * Policy.size(run.policy, trainer.spec).parameters == weights
    weights += bytes_of(parameter for head in trainer.learner.heads.values() for parameter in head.parameters())
    moments = [t for name, t in trainer.learner.tensors().items() if "exp_avg" in name]
    assert bytes_of(moments) == (sizing.COPIES - 1) * weights
    assert need.policy >= bytes_of(moments) + weights
    trainer.close()


@pytest.mark.parametrize("encoder", ["bag", "cnn", "attend"])
@pytest.mark.parametrize("core", ["none", "scan", "gru", "lstm"])
def test_the_estimate_is_what_a_run_takes(encoder: str, core: str) -> None:
    run = tiny(1, core, policy__encoder=encoder, trainer__masks=core != "gru")
    compare_with_the_tensors(run)


def test_the_estimate_of_vectors() -> None:
    run = tiny(1, game=games.prospector(), score="", policy__encoder="mlp", trainer__minibatch_size=16)
    compare_with_the_tensors(run.replace_all([("trainer.batch_size", 64), ("trainer.total_timesteps", 64)]))


@pytest.mark.parametrize("name", losses.names())
def test_the_estimate_with_the_columns_of_a_loss_that_ships(name: str, tmp_path: Path) -> None:
    run, settings = tiny(1), {}
    if name == "kickstart":
        settings = {"teacher": str(train(tiny(1, run="teacher"), tmp_path, panel=False).folder)}
    if name == "clone":
        run = taught()
    compare_with_the_tensors(run.replace("losses", losses.read({**run.losses, name: settings})))


def test_the_estimate_of_rows_that_others_play() -> None:
    changes = {"players": {"arena": 0.5}, "teacher": "", "losses": tiny(1).losses}
    run = taught(changes | {"trainer.batch_size": 192, "trainer.minibatch_size": 96})
    need, trainer = sizing.memory(run), Trainer(run)
    x = trainer.experience
    assert bytes_of([*x.columns.values(), x.states, x.last_value, x.advantages, x.returns]) == need.experience
    trainer.close()


def test_the_estimate_with_every_kind_of_column(tmp_path: Path) -> None:
    teacher = train(tiny(1, core="lstm", run="teacher"), tmp_path, panel=False).folder
    run = tiny(1)
    compare_with_the_tensors(run.replace("losses", {**run.losses, "columns": Columns(teacher=str(teacher))}))


def test_more_than_this_machine_has_is_refused_with_the_sum() -> None:
    run = recipes.build("arena").replace("trainer.batch_size", 10**11)
    with pytest.raises(ConfigError) as caught:
        sizing.plan(run)
    have = memory.limit_in_words()
    assert "(batch_size = 100000000000 steps x " in str(caught.value)
    assert f"{have}; lower one of batch_size, num_worlds, max_microbatch" in str(caught.value)
    assert caught.value.path == "$.trainer.batch_size"
