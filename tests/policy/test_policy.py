"""Networks: shapes, memory that ends with its episode, masks, initial weights, and reading the bytes of other games."""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from small_runs import WORDS, hash_of, random_tokens, short_game, small_run, zeros
from torch import Tensor

from gridmill import games
from gridmill.env import GameConfig
from gridmill.games.make import make
from gridmill.policy import Layout, Spec, checkpoint, load
from gridmill.policy.initial import orthogonal
from gridmill.policy.network import Policy
from gridmill.policy.player import Player
from gridmill.run import PolicyConfig
from gridmill.train.trainer import Trainer

ENCODERS = ["bag", "cnn", "attend", "mlp"]
CORES = ["none", "scan", "lstm", "gru"]
STATE = {"none": 0, "scan": 32, "lstm": 64, "gru": 32}
VECTOR = Spec(kind="vector", actions=WORDS.actions, obs_size=9)


def policy_of(encoder: str = "bag", core: str = "scan", seed: int = 0, spec: Spec | None = None, **more: Any) -> Policy:
    usual: dict[str, Any] = {"encoder": encoder, "core": core, "hidden": 32, "actor_gain": 1.0}
    return Policy(PolicyConfig(**(usual | more)), spec or (VECTOR if encoder == "mlp" else WORDS), seed)


def seen_by(policy: Policy, steps: int, rows: int, seed: int = 1) -> Tensor:
    if policy.spec.kind == "vector":
        return torch.randn(steps, rows, policy.spec.obs_size, generator=torch.Generator().manual_seed(seed))
    flat = random_tokens(steps * rows, seed, policy.spec)
    return torch.from_numpy(flat.reshape(steps, rows, *flat.shape[1:]))


def state_for(policy: Policy, rows: int) -> Tensor:
    return torch.randn(rows, policy.state_size, generator=torch.Generator().manual_seed(8)).tanh()


def close(a: Tensor, b: Tensor) -> None:
    torch.testing.assert_close(a, b, rtol=1e-5, atol=1e-5)


# ---- one forward, however it is cut


@pytest.mark.parametrize(("encoder", "core"), [*product(ENCODERS, CORES)])
def test_shapes_and_gradients(encoder: str, core: str) -> None:
    policy = policy_of(encoder, core)
    out = policy(seen_by(policy, 4, 6), state_for(policy, 6), zeros(4, 6), None)
    assert policy.state_size == STATE[core]
    assert out.logits.shape == (4, 6, 4)
    assert out.values.shape == (4, 6)
    assert out.state.shape == (6, STATE[core])
    assert out.hidden.shape == (4, 6, 32)
    assert not out.state.requires_grad
    assert bool(torch.isfinite(out.logits).all())
    assert float(out.logits.detach().std(dim=(0, 1)).min()) > 1e-3  # it looks at what it is shown
    found = torch.autograd.grad((out.logits * torch.arange(4)).sum() + out.values.sum(), list(policy.parameters()))
    for (name, _), gradient in zip(policy.named_parameters(), found, strict=True):
        assert bool(gradient.any()), f"{name} would never be trained"


@pytest.mark.parametrize(("encoder", "core"), [*product(["bag"], CORES), *product(ENCODERS, ["scan"])])
def test_many_steps_at_once_are_single_steps_in_turn(encoder: str, core: str) -> None:
    policy = policy_of(encoder, core)
    obs, state = seen_by(policy, 7, 6), state_for(policy, 6)
    starts = zeros(7, 6)
    starts[3, 1] = starts[5, 2] = starts[0, 4] = starts[6, 1] = 1
    whole = policy(obs, state, starts, None)
    for t in range(7):
        one = policy(obs[t : t + 1], state, starts[t : t + 1], None)
        state = one.state
        close(one.logits[0], whole.logits[t])
        close(one.values[0], whole.values[t])
    close(state, whole.state)


@pytest.mark.parametrize("core", CORES)
def test_an_episode_knows_nothing_of_the_one_before(core: str) -> None:
    policy = policy_of("bag", core)
    obs, state = seen_by(policy, 9, 3), state_for(policy, 3)
    starts = zeros(9, 3)
    starts[5] = 1
    joined = policy(obs, state, starts, None)
    first = policy(obs[:5], state, zeros(5, 3), None)
    second = policy(obs[5:], torch.zeros_like(state), zeros(4, 3), None)
    close(joined.logits, torch.cat((first.logits, second.logits)))
    close(joined.values, torch.cat((first.values, second.values)))
    close(joined.state, second.state)
    carried = policy(obs, state, zeros(9, 3), None)
    close(carried.logits[:5], joined.logits[:5])
    if core == "none":
        close(carried.logits, joined.logits)
    else:
        assert float((carried.logits[5:] - joined.logits[5:]).detach().abs().max()) > 1e-3


@pytest.mark.parametrize("core", ["scan", "lstm", "gru"])
def test_gradients_end_with_the_episode(core: str) -> None:
    policy = policy_of("mlp", core)
    obs = seen_by(policy, 6, 2).requires_grad_()
    starts = zeros(6, 2)
    starts[3, 0] = 1
    (found,) = torch.autograd.grad(policy(obs, state_for(policy, 2), starts, None).values[5].sum(), obs)
    assert not found[:3, 0].any()
    assert found[:3, 1].any()


def test_the_gru_is_torchs_own() -> None:
    policy = policy_of("mlp", "gru")
    core: Any = policy.core
    theirs = torch.nn.GRU(32, 32)
    with torch.no_grad():
        for name, part in (("ih", core.into), ("hh", core.back)):
            getattr(theirs, f"weight_{name}_l0").copy_(part.weight)
            part.bias.copy_(torch.randn(96, generator=torch.Generator().manual_seed(3)))
            getattr(theirs, f"bias_{name}_l0").copy_(part.bias)
    x, state = torch.randn(5, 3, 32), state_for(policy, 3)
    found, last = core(x, state, zeros(5, 3))
    expected, after = theirs(x, state[None])
    close(found, expected)
    close(last, after[0])


@pytest.mark.parametrize("encoder", ["bag", "attend"])
def test_the_order_of_tokens_does_not_matter(encoder: str) -> None:
    policy = policy_of(encoder, "none")
    obs = random_tokens(6, 4)
    turned = obs.copy()
    for row in range(6):
        there = int((obs[row, :, 0] != 255).sum())
        turned[row, :there] = obs[row, :there][::-1]
    assert not np.array_equal(obs, turned)
    a, b = (policy(torch.from_numpy(x)[None], torch.zeros(6, 0), zeros(1, 6), None).logits for x in (obs, turned))
    close(a, b)


def test_masked_actions_have_no_chance() -> None:
    policy = policy_of()
    obs, masks = seen_by(policy, 5, 6), torch.ones(5, 6, 4, dtype=torch.uint8)
    masks[:, :, 1] = 0
    masks[2, 3] = torch.tensor([0, 0, 0, 1])
    free = policy(obs, state_for(policy, 6), zeros(5, 6), None)
    bound = policy(obs, state_for(policy, 6), zeros(5, 6), masks)
    chance = bound.logits.softmax(-1)
    assert not chance[masks == 0].any()
    assert chance[2, 3, 3] == 1
    allowed = free.logits.softmax(-1) * masks
    close(chance, allowed / allowed.sum(-1, keepdim=True))
    assert torch.equal(free.values, bound.values)


# ---- initial weights


@pytest.mark.parametrize(("encoder", "core"), [*product(["bag"], CORES), *product(ENCODERS, ["none"])])
def test_a_seed_is_its_weights(encoder: str, core: str) -> None:
    first = hash_of(policy_of(encoder, core, seed=3).state_dict())
    torch.manual_seed(99)  # torch's own random numbers have no part in it
    np.random.default_rng(5).random()
    assert hash_of(policy_of(encoder, core, seed=3).state_dict()) == first
    assert hash_of(policy_of(encoder, core, seed=4).state_dict()) != first


def test_seed_0_gives_the_recorded_weights() -> None:
    """Numbers of one machine, to within what the last bits of a decomposition may differ on another."""
    policy = policy_of("mlp", "none", hidden=16, layers=0)
    encoder: Any = policy.encoder
    first, actor = encoder.first.weight.detach(), policy.actor.weight.detach()
    found = [float(first[0, 0]), float(first[7, 4]), float(actor[1, 2])]
    assert found == pytest.approx([-0.3524804, -0.2451233, -0.0989187], abs=1e-6)


@pytest.mark.parametrize("shape", [(4, 9), (9, 4), (6, 6), (8, 3, 5, 5), (16, 1, 2, 2)])
def test_orthogonal(shape: tuple[int, ...]) -> None:
    x = orthogonal(shape, 1.5, np.random.default_rng(1)).double()
    assert x.shape == shape
    flat = x.flatten(1)
    square = flat @ flat.t() if flat.shape[0] <= flat.shape[1] else flat.t() @ flat
    torch.testing.assert_close(square, 2.25 * torch.eye(len(square), dtype=torch.float64), rtol=1e-5, atol=1e-5)


def test_gains_of_the_heads() -> None:
    policy = policy_of(actor_gain=0.01)
    norms = policy.actor.weight.norm(dim=1)
    torch.testing.assert_close(norms, torch.full((4,), 0.01), rtol=1e-4, atol=0)
    assert float(policy.critic.weight.detach().norm()) == pytest.approx(1.0, rel=1e-4)
    assert not policy.actor.bias.any()


# ---- the same words in another order


OTHER = Spec(
    kind="tokens",
    actions=("use", "dance", "noop", "south", "north"),
    num_tokens=14,
    window=(5, 7),
    features=("smell", "vibe", "tag", "inv:ore", "last_reward", "facing", "last_action"),
    normalizers=(255.0, 2.0, 4.0, 255.0, 255.0, 3.0, 4.0),
    tags=("wall", "robot", "mine", "altar", "moon"),
    vibes=("wild", "shy", "calm"),
)


def translated(obs: Any, own: Spec, seen: Spec, shift: tuple[int, int] = (0, 0)) -> Any:
    """The bytes that `seen` would have for what `own` saw, and between them tokens that `own` has no words for."""
    out = np.full((len(obs), 2 * own.num_tokens + 3, 3), 255, np.uint8)
    for row, tokens in enumerate(obs):
        k = 0
        for location, feature, value in tokens[tokens[:, 0] != 255]:
            name = own.features[feature]
            named = {"tag": (own.tags, seen.tags), "vibe": (own.vibes, seen.vibes)}
            named["last_action"] = (own.actions, seen.actions)
            if name in named:
                value = named[name][1].index(named[name][0][value])
            if location != 254:
                location = (int(location >> 4) + shift[0]) << 4 | (int(location & 15) + shift[1])
            out[row, k] = (location, seen.features.index(name), value)
            out[row, k + 1] = (location, *_strange(seen, k))
            k += 2
        out[row, k] = (254, *_strange(seen, row))
    return out


def _strange(seen: Spec, k: int) -> tuple[int, int]:
    """A feature or a value that only `seen` has."""
    words = [("smell", 7), ("tag", seen.tags.index("moon")), ("vibe", seen.vibes.index("shy"))]
    words.append(("last_action", seen.actions.index("dance")))
    name, value = words[k % 4]
    return seen.features.index(name), value


def logits_of(policy: Policy, obs: Any) -> Tensor:
    with torch.no_grad():
        out = policy(torch.from_numpy(obs)[None], torch.zeros(len(obs), 0), zeros(1, len(obs)), None)
    return out.logits[0]  # type: ignore[no-any-return]


@pytest.mark.parametrize("encoder", ["bag", "cnn", "attend"])
def test_another_games_bytes_have_the_same_meaning(encoder: str) -> None:
    policy, obs = policy_of(encoder, "none"), random_tokens(12, 6)
    expected, foreign = logits_of(policy, obs), translated(obs, WORDS, OTHER)
    assert float((logits_of(policy, foreign) - expected).abs().max()) > 0.01  # before it knows the words
    policy.read(OTHER)
    close(logits_of(policy, foreign), expected)


@pytest.mark.parametrize("encoder", ["bag", "cnn", "attend"])
def test_a_larger_window_is_read_around_its_centre(encoder: str) -> None:
    policy, obs = policy_of(encoder, "none"), random_tokens(12, 6)
    large = OTHER.model_copy(update={"window": (9, 9)})
    foreign = translated(obs, WORDS, large, shift=(2, 1))
    policy.read(large)
    close(logits_of(policy, foreign), logits_of(policy_of(encoder, "none"), obs))
    # What lies outside of the own window is not looked at.
    foreign[:, -1] = (0x88, large.features.index("inv:ore"), 9)
    close(logits_of(policy, foreign), logits_of(policy_of(encoder, "none"), obs))


def test_a_smaller_window_is_the_middle_of_the_own() -> None:
    small = WORDS.model_copy(update={"window": (3, 3)})
    place = Layout.of(WORDS, small).place
    assert [int(place[r << 4 | c]) for r in range(3) for c in range(3)] == [
        (r + 1) * 7 + c + 2 for r in range(3) for c in range(3)
    ]
    assert place[254] == 35
    assert sorted(set(place.tolist())) == [-1, 9, 10, 11, 16, 17, 18, 23, 24, 25, 35]


def test_every_word_has_its_own_rows() -> None:
    layout = Layout.of(WORDS)
    counts = [4, 2, 4, 2, 3, 2]  # values, or an amount's two
    assert layout.slots == sum(counts)
    assert layout.places == 36
    found = [sorted(set(layout.slot[i].tolist()) - {-1}) for i in range(6)]
    assert found == [[0, 1, 2, 3], [4], [6, 7, 8, 9], [10], [12, 13, 14], [15, 16]]
    assert layout.amount[1, :4].tolist() == pytest.approx([0, 0.25, np.log2(3) / 4, 0.5])
    assert layout.amount[3, [96, 128, 160]].tolist() == [-1, 0, 1]
    assert not layout.amount[[0, 2, 4, 5]].any()


def test_amounts_are_the_same_bits_on_every_cpu() -> None:
    """NumPy's float32 logarithm is not: on a CPU with AVX-512 five of these numbers had another last bit."""
    amounts = Layout.of(WORDS).amount[1].astype("<f4").tobytes()
    assert hashlib.sha256(amounts).hexdigest().startswith("2a774e48d74f444a")


@pytest.mark.parametrize(("here", "there"), [(3.0, 255.0), (255.0, 3.0), (3.0, 9.0)])
def test_a_feature_is_known_whatever_its_range_elsewhere(here: float, there: float) -> None:
    """The policy says whether a number is an amount: another game's normaliser does not make it a stranger."""
    own = WORDS.model_copy(update={"normalizers": (here, *WORDS.normalizers[1:])})
    seen = WORDS.model_copy(update={"normalizers": (there, *WORDS.normalizers[1:])})
    alone, met = Layout.of(own), Layout.of(own, seen)
    assert np.array_equal(alone.slot[0, :4], met.slot[0, :4])
    assert np.array_equal(alone.amount, met.amount)
    assert (met.slot[0, :4] >= 0).all()


@pytest.mark.parametrize(("agents", "words"), [(2, 2), (8, 8), (16, 16), (17, None)])
def test_agents_of_a_small_world_have_words_of_their_own(agents: int, words: int | None) -> None:
    """Which of them an agent is decides its role in some games; as an amount, a number hardly tells."""
    with make(games.cogsguard_arena(num_agents=agents), num_worlds=1) as env:
        values = Spec.of(env, name_agents=True).values_of("agent:id")
        plain = Spec.of(env)
    assert (None if values is None else len(values)) == words
    assert plain.values_of("agent:id") is None


# ---- players


def trained(tmp_path: Path, game: GameConfig | None = None, **trainer: Any) -> tuple[Player, Trainer]:
    """A policy of one epoch, through a checkpoint."""
    run = small_run(game, **trainer)
    source = Trainer(run)
    try:
        source.epoch()
    finally:
        source.close()
    record = {"run": run.tree(), "spec": source.spec.tree()}
    checkpoint.save(tmp_path / "checkpoints", 1, source.weights(), {}, record, 3, None)
    return load(tmp_path), source


@contextlib.contextmanager
def changed(player: Player) -> Iterator[Tensor]:
    """The bias of the actor, to write into: a player's weights are packed once, so they are unpacked for it."""
    player.policy.freeze(False)
    with torch.no_grad():
        yield player.policy.actor.bias
    player.policy.freeze(True)


def test_a_loaded_player_plays_as_the_trainer_does(tmp_path: Path) -> None:
    player, trainer = trained(tmp_path)
    assert player.masks
    assert hash_of(player.policy.state_dict()) == hash_of(trainer.weights())
    with make(short_game(), num_worlds=2, masks=True) as env:
        env.reset(seed=3)
        player.bind(env, seed=5)
        state: Any = None
        ours = torch.zeros(6, trainer.policy.state_size)
        for _ in range(5):
            expected = trainer.policy(torch.from_numpy(env.obs)[None], ours, zeros(1, 6), None)
            actions, state = player.act(env.obs, state, env.masks)
            ours = expected.state.detach()
            np.testing.assert_allclose(state, ours, atol=1e-6)
            assert env.masks is not None
            assert env.masks[np.arange(6), actions].all()
            env.step(actions)


def test_a_player_draws_the_same_from_the_same_seed(tmp_path: Path) -> None:
    player, _ = trained(tmp_path)
    with make(short_game(20), num_worlds=4, masks=True) as env:
        drawn = []
        for seed in (1, 1, 2):
            player.bind(env, seed)
            drawn.append(np.stack([player.act(env.obs, None)[0] for _ in range(3)]))
    assert np.array_equal(drawn[0], drawn[1])
    assert not np.array_equal(drawn[0], drawn[2])
    assert not np.array_equal(drawn[0][0], drawn[0][1])


def test_a_player_forgets_the_rows_that_ended(tmp_path: Path) -> None:
    player, _ = trained(tmp_path)
    state = np.ones((3, 32), np.float32)
    after = player.reset(state, np.array([False, True, False]))
    assert after is not None
    assert after.any(1).tolist() == [True, False, True]
    assert player.reset(None, np.array([True])) is None


def test_a_player_meets_another_game(tmp_path: Path) -> None:
    """Trained in the toy world, playing the arena: only actions that both have, moves by their names."""
    player, trainer = trained(tmp_path)
    own = trainer.spec.actions
    with make(games.arena(num_agents=6), num_worlds=40, masks=True) as env:
        env.reset(seed=1)
        player.bind(env, seed=1)
        # A strong wish for one action of the own, by name.
        wish = own.index("move_north") if "move_north" in own else 1
        with changed(player) as bias:
            bias[wish] = 50.0
        actions, _ = player.act(env.obs, None)
        assert {env.action_names[a] for a in actions} == {own[wish]}
        with changed(player) as bias:
            bias.zero_()
        both = {name for name in env.action_names if name in own}
        assert both < set(env.action_names)
        played = {env.action_names[a] for _ in range(5) for a in player.act(env.obs, None)[0]}
        assert played == both


@pytest.mark.parametrize("masks", [True, False])
def test_a_strange_action_is_never_drawn_not_even_by_rounding(tmp_path: Path, masks: bool) -> None:
    """The uniform number of row 1 from this seed rounds to 1: after the one likely action, nothing of it is left."""
    player, _ = trained(tmp_path, masks=masks)
    with make(games.arena(num_agents=6), num_worlds=1) as env:
        player.bind(env, seed=7_558_859)
        *known, strange = env.action_names
        assert strange not in player.policy.spec.actions
        likely = player.policy.spec.actions.index(known[-1])  # the strange one is next in turn
        with changed(player) as bias:
            bias[likely] = 200.0
        actions, _ = player.act(env.obs, None, np.ones((6, env.num_actions), np.uint8) if masks else None)
        assert {env.action_names[a] for a in actions} == {known[-1]}


def test_what_cannot_be_read_is_refused(tmp_path: Path) -> None:
    player, _ = trained(tmp_path)
    message = "trained on token observations and cannot read vectors of"
    with make("prospector", num_worlds=1) as env, pytest.raises(ValueError, match=message):
        player.bind(env)


def test_the_bags_tables_are_joined_as_written() -> None:
    """Against the sum in plain torch, forward and backward, places outside of the window included."""
    policy = Policy(PolicyConfig(encoder="bag", core="none", hidden=16), WORDS, seed=1)
    bag: Any = policy.encoder
    height, width = bag.window
    with torch.no_grad():
        for table in (bag.rows, bag.columns):
            table.copy_(torch.randn(table.shape, generator=torch.Generator().manual_seed(2)))
    leaves = [bag.table, bag.rows, bag.columns]
    plain = bag.plain_joined()
    assert len(plain) > height * width * bag.slots
    push = torch.randn(plain.shape, generator=torch.Generator().manual_seed(3))
    torch.testing.assert_close(bag.joined(), plain)
    ours, theirs = (torch.autograd.grad((x * push).sum(), leaves) for x in (bag.joined(), plain))
    for one, other in zip(ours, theirs, strict=True):
        torch.testing.assert_close(one, other)
