"""Collecting and learning see the same: every step once, the same numbers again, the same bytes for any threads."""

from __future__ import annotations

import contextlib
import warnings
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from small_runs import SHORT, Scripted, hash_of, short_game, small_run, zeros

from gridmill import games
from gridmill.env import GameConfig
from gridmill.policy.network import Policy
from gridmill.run import PolicyConfig, Run
from gridmill.sizing import sizes as sizes_of
from gridmill.train.experience import Experience, core_columns
from gridmill.train.rollout import MOST_ROWS, Rollout, _chunks
from gridmill.train.trainer import Trainer
from gridmill.train.workers import WorkerPool

CPU = torch.device("cpu")
CORES = ["none", "scan", "lstm", "gru"]


# ---- what is stored, against a walk row by row


def scripted_rollout(
    rows: int, lanes: int, core: Any, masks: bool, workers: int = 1
) -> tuple[Scripted, Policy, Rollout]:
    """Rows of one agent each, eleven steps and a segment as long."""
    env = Scripted(rows, lanes, masks)
    policy = Policy(PolicyConfig(encoder="mlp", core=core, hidden=16, actor_gain=1.0), env.spec, 3)
    run = small_run(
        short_game(1), num_worlds=rows, async_factor=lanes, bptt_horizon=11, batch_size=11 * rows,
        minibatch_size=11 * rows,
    )  # fmt: skip
    sizes = sizes_of(run)
    experience = Experience(sizes, core_columns(env.spec, masks), policy.state_size, CPU)
    acting: Any = env
    rollout = Rollout(
        acting, policy, sizes, experience, WorkerPool(workers), CPU, contextlib.nullcontext, 7, policy.state_size,
        policy.frozen,
    )  # fmt: skip
    return env, policy, rollout


@torch.no_grad()
def walk(env: Scripted, policy: Policy, rollout: Rollout, row: int, steps: int, skip: int) -> None:
    """One row alone, one step at a time, with a state that is made anew for every episode."""
    x = rollout.experience
    episode = tick = 0
    state = torch.zeros(1, policy.state_size)
    for step in range(steps):
        t = step - skip
        obs = torch.from_numpy(env.seen_at(row, episode, tick))
        out = policy(obs[None, None], state, zeros(1, 1), None)
        if t >= 0:
            assert torch.equal(x.obs[t, row], obs)
            assert int(x.episode_starts[t, row]) == (tick == 0)
            assert float(x.values[t, row]) == pytest.approx(float(out.values), abs=1e-5)
            logits = out.logits[0, 0]
            if x.masks is not None:
                allowed = torch.from_numpy(env.allowed_at(row, episode, tick))
                assert torch.equal(x.masks[t, row], allowed)
                assert allowed[int(x.actions[t, row])] == 1
                logits = logits.masked_fill(allowed == 0, -torch.inf)
            action = int(x.actions[t, row])
            assert float(x.log_probs[t, row]) == pytest.approx(float(logits.log_softmax(-1)[action]), abs=1e-5)
            assert float(x.rewards[t, row]) == env.reward_of(row, episode, tick, action)
        state = out.state
        tick += 1
        ends = env.end_of(row, episode) if tick == 3 + row % 4 else (False, False)
        if t >= 0:
            assert (bool(x.terminals[t, row]), bool(x.truncations[t, row])) == ends
            worth = 0.0
            if ends == (False, True):
                final = torch.from_numpy(env.seen_at(row, episode, tick))
                worth = float(policy(final[None, None], state, zeros(1, 1), None).values)
            assert float(x.bootstrap[t, row]) == pytest.approx(worth, abs=1e-5)
        if any(ends):
            episode, tick, state = episode + 1, 0, torch.zeros_like(state)
    last = torch.from_numpy(env.seen_at(row, episode, tick))
    expected = policy(last[None, None], state, zeros(1, 1), None).values
    assert float(x.last_value[row]) == pytest.approx(float(expected), abs=1e-5)


@pytest.mark.parametrize("core", CORES)
@pytest.mark.parametrize(("lanes", "masks", "workers"), [(1, True, 1), (3, False, 2)])
def test_a_rollout_is_what_each_row_went_through(core: str, lanes: int, masks: bool, workers: int) -> None:
    """In the first rollout and in the second, whose episodes and states began in the first."""
    env, policy, rollout = scripted_rollout(6, lanes, core, masks, workers)
    for skip in (0, 11):
        rollout.collect()
        assert not env.flying
        for row in range(6):
            walk(env, policy, rollout, row, skip + 11, skip)
    assert rollout.experience.bootstrap.any()
    rollout.workers.close()


@pytest.mark.parametrize(("first", "last"), [(0, 1), (0, MOST_ROWS), (10, 11 + MOST_ROWS), (5, 5000)])
def test_chunks_are_all_rows_once(first: int, last: int) -> None:
    chunks = _chunks(slice(first, last))
    assert all(chunk.env == chunk.own for chunk in chunks)
    assert [row for chunk in chunks for row in range(chunk.own.start, chunk.own.stop)] == list(range(first, last))
    lengths = [chunk.own.stop - chunk.own.start for chunk in chunks]
    assert max(lengths) <= MOST_ROWS
    assert max(lengths) - min(lengths) <= 1


# ---- the same numbers again


def replay(run: Run, rollouts: int = 2) -> int:
    """Collect, and learn nothing: a forward over every segment gives what was collected. The episodes that began."""
    trainer = Trainer(run)
    try:
        for _ in range(rollouts):
            trainer.rollout.collect()
        x = trainer.experience
        segments = torch.arange(trainer.sizes.segments)
        batch = x.minibatch(segments, ("actions", "log_probs", "values"), {}, torch.ones(len(segments)), CPU)
        with torch.no_grad():
            out = trainer.policy(batch.obs, batch.state, batch.episode_starts, batch.masks)
        log_probs = out.logits.log_softmax(-1).gather(-1, batch.actions.long().unsqueeze(-1)).squeeze(-1)
        torch.testing.assert_close(log_probs, batch.log_probs, rtol=0, atol=1e-5)
        torch.testing.assert_close(out.values, batch.values, rtol=0, atol=1e-5)
        assert float(batch.log_probs.std()) > 1e-3
        assert (x.masks is not None) == run.trainer.masks
        return int(x.episode_starts[1:].sum())
    finally:
        trainer.close()


@pytest.mark.parametrize("core", CORES)
@pytest.mark.parametrize("masks", [True, False])
def test_a_replay_gives_what_was_collected(core: str, masks: bool) -> None:
    run = small_run(policy={"core": core, "actor_gain": 1.0}, masks=masks, seed=2)
    assert replay(run) >= run.trainer.num_worlds * 3  # every row began an episode in the middle


@pytest.mark.parametrize("encoder", ["cnn", "attend"])
def test_a_replay_by_the_other_encoders(encoder: str) -> None:
    game = games.arena(num_agents=6, max_steps=SHORT)
    assert replay(small_run(game, policy={"encoder": encoder, "core": "lstm", "actor_gain": 1.0})) > 0


@pytest.mark.parametrize("core", ["none", "lstm"])
def test_a_replay_of_vectors(core: str) -> None:
    game = games.prospector(time_max=300.0)
    replay(small_run(game, policy={"encoder": "mlp", "core": core, "actor_gain": 1.0}, num_worlds=8), rollouts=6)


def test_before_the_first_update_the_ratio_is_one() -> None:
    trainer = Trainer(small_run(minibatch_size=192))
    metrics = trainer.epoch()
    trainer.close()
    assert metrics["kl"] == pytest.approx(0, abs=1e-6)
    assert metrics["clip_fraction"] == 0


# ---- every step, once


@st.composite
def odd_sizes(draw: st.DrawFn) -> dict[str, Any]:
    worlds, agents, segment = draw(st.integers(1, 6)), draw(st.integers(1, 5)), draw(st.integers(1, 7))
    rows, parts = worlds * agents, draw(st.integers(1, 3))
    segments = rows * parts

    def divisor(number: int) -> int:
        return draw(st.sampled_from([d for d in range(1, number + 1) if number % d == 0]))

    minibatch = segments // divisor(segments)
    return {
        "agents": agents,
        "num_worlds": worlds,
        "async_factor": divisor(worlds),
        "bptt_horizon": segment,
        "batch_size": segments * segment,
        "minibatch_size": minibatch * segment,
        "max_microbatch": draw(st.integers(0, minibatch)) * segment,
        "update_epochs": draw(st.integers(1, 3)),
        "threads": draw(st.integers(1, 2)),
    }


@settings(max_examples=12)
@given(odd_sizes(), st.sampled_from(CORES))
def test_steps_collected_are_steps_trained_on(chosen: dict[str, Any], core: str) -> None:
    train_on_all(chosen, core)


@pytest.mark.long
@settings(max_examples=300)
@given(odd_sizes(), st.sampled_from(CORES))
def test_steps_collected_are_steps_trained_on_300_times(chosen: dict[str, Any], core: str) -> None:
    train_on_all(chosen, core)


def train_on_all(chosen: dict[str, Any], core: str) -> None:
    agents = chosen.pop("agents")
    trainer = Trainer(small_run(short_game(agents), policy={"core": core, "hidden": 16}, **chosen))
    x, used = trainer.experience, torch.zeros(chosen["batch_size"], dtype=torch.int64)
    take, chunks = x.minibatch, []

    def spy(segments: torch.Tensor, *others: Any) -> Any:
        chunks.append(x.segment_steps(segments).flatten())
        return take(segments, *others)

    x.minibatch = spy  # type: ignore[method-assign, assignment]
    before = trainer.env.state_hash()
    try:
        for epoch in (1, 2):
            chunks.clear()
            trainer.epoch()
            rounds = chosen["update_epochs"]
            used.zero_().scatter_add_(0, torch.cat(chunks), torch.ones(rounds * len(used), dtype=torch.int64))
            assert (used == rounds).all()
            assert max(map(len, chunks)) <= (chosen["max_microbatch"] or chosen["minibatch_size"])
            assert trainer.agent_steps == epoch * chosen["batch_size"]
            assert trainer.trained_steps == epoch * rounds * chosen["batch_size"]
            assert trainer.skipped == 0
            assert trainer.learned is not None
            assert trainer.learned.updates == rounds * chosen["batch_size"] // chosen["minibatch_size"]
        assert (trainer.env.state_hash() != before).all()
    finally:
        trainer.close()


# ---- the same bytes


def trained(epochs: int, game: GameConfig | None = None, **settings_: Any) -> Trainer:
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "threads=")  # more than this machine has cores
        trainer = Trainer(small_run(game, **settings_))
    for _ in range(epochs):
        trainer.epoch()
    trainer.close()
    return trainer


@pytest.mark.parametrize(
    "more",
    [
        {"policy": {"core": "scan"}},
        {"policy": {"core": "lstm"}},
        pytest.param({"policy": {"core": "gru", "encoder": "cnn"}}, marks=pytest.mark.long),
        {"advantage": "vtrace", "prio_alpha": 0.8, "reward": "scaled"},
    ],
    ids=["scan", "lstm", "gru-cnn", "vtrace-prio"],
)
def test_threads_do_not_change_a_byte(more: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gridmill.train.rollout.MOST_ROWS", 5)  # several chunks in each lane
    game = games.arena_basic_easy_shaped(num_agents=6, max_steps=40)
    usual = {"max_microbatch": 32, "update_epochs": 2, "minibatch_size": 192}
    found = {hash_of(trained(2, game, **usual, threads=threads, **more).weights()) for threads in (1, 2, 4)}
    assert len(found) == 1
    assert hash_of(trained(2, game, **usual, seed=1, **more).weights()) not in found


def test_lanes_do_not_change_what_happens() -> None:
    """Actions, worlds and rewards are the same; numbers of the network to the last bits, which its shapes decide."""
    kept = []
    for lanes in (1, 2, 4):
        trainer = Trainer(small_run(async_factor=lanes))
        trainer.rollout.collect()
        trainer.close()
        kept.append(trainer.experience)
    for other in kept[1:]:
        for name in ("obs", "actions", "episode_starts", "masks", "rewards", "truncations"):
            assert torch.equal(getattr(other, name), getattr(kept[0], name)), name
        for name in ("values", "log_probs", "bootstrap", "last_value", "states"):
            torch.testing.assert_close(getattr(other, name), getattr(kept[0], name), rtol=0, atol=1e-5)


@pytest.mark.parametrize("core", ["scan", "lstm"])
def test_microbatches_do_not_change_the_result(core: str) -> None:
    game = games.arena_basic_easy_shaped(num_agents=6, max_steps=40)
    whole, cut = (
        trained(1, game, policy={"core": core}, minibatch_size=192, max_microbatch=most) for most in (192, 56)
    )
    assert whole.sizes.microbatches == 1
    assert cut.sizes.microbatches == 4
    start = Policy(whole.run.policy, whole.spec, whole.run.seed).state_dict()
    for name, weight in whole.weights().items():
        assert not torch.equal(weight, start[name])
        torch.testing.assert_close(cut.weights()[name], weight, rtol=0, atol=1e-5)


def test_a_trainer_goes_on_from_its_tensors() -> None:
    run = small_run(policy={"core": "lstm"}, reward="scaled")
    first = Trainer(run)
    for _ in range(2):
        first.epoch()
    weights, tensors, last = first.weights(), first.tensors(), dict(first.last)
    first.epoch()
    second = Trainer(run)
    second.restore(weights, tensors, last)
    second.epoch()
    assert hash_of(first.weights()) == hash_of(second.weights())
    again = second.tensors()
    for name, tensor in first.tensors().items():
        assert torch.equal(tensor, again[name]), name
    first.close()
    second.close()
