"""A run that begins with the weights of another: what both have a word for is known from the first step on."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from small_runs import WORDS, hash_of, random_tokens
from tiny import epochs_of, tiny
from torch import Tensor

from gridmill import games
from gridmill.policy import checkpoint, usable
from gridmill.policy.network import Policy
from gridmill.policy.spec import Spec, slots_of
from gridmill.policy.transfer import transfer
from gridmill.run import PolicyConfig
from gridmill.runs import resume, train

WIDER = Spec(  # the same words in another order, and more of them, in a larger window
    kind="tokens",
    actions=("attack", "south", "noop", "use", "north"),
    num_tokens=20,
    window=(7, 9),
    features=("vibe", "inv:gem", "tag", "last_reward", "inv:ore", "facing", "last_action"),
    normalizers=(2.0, 255.0, 3.0, 255.0, 255.0, 3.0, 4.0),
    tags=("wall", "altar", "chest", "mine"),
    vibes=("wild", "odd", "calm"),
)
SAME_WINDOW = WIDER.replace("window", WORDS.window)


def config(encoder: str = "bag", **more: Any) -> PolicyConfig:
    return PolicyConfig.load({"encoder": encoder, "hidden": 32, "actor_gain": 1.0} | more)


def in_the_words_of(spec: Spec, obs: Any) -> Any:
    """Tokens of WORDS as another game would write them; windows share their centre."""
    down, right = (spec.window[k] // 2 - WORDS.window[k] // 2 for k in (0, 1))
    found = np.full((len(obs), spec.num_tokens, 3), 255, np.uint8)
    for row, k in np.argwhere(obs[..., 0] != 255):
        location, feature, value = (int(x) for x in obs[row, k])
        name = WORDS.features[feature]
        values = WORDS.values_of(name)
        if values is not None:
            value = (spec.values_of(name) or []).index(values[value])
        if location != 254:
            location = ((location >> 4) + down) << 4 | ((location & 15) + right)
        found[row, k] = location, spec.features.index(name), value
    return found


def seen(policy: Policy, obs: Any) -> tuple[Tensor, Tensor]:
    rows = torch.from_numpy(obs)[None]
    with torch.no_grad():
        out = policy(rows, torch.zeros(len(obs), policy.state_size), torch.zeros(1, len(obs), dtype=torch.uint8), None)
    return out.logits[0], out.values[0]


@pytest.mark.parametrize(
    ("encoder", "spec"),
    [("bag", WIDER), ("bag", SAME_WINDOW), ("attend", WIDER), ("cnn", SAME_WINDOW)],
)
def test_what_both_know_means_the_same(encoder: str, spec: Spec) -> None:
    old, new = Policy(config(encoder), WORDS, 1), Policy(config(encoder), spec, 2)
    with torch.no_grad():  # tables of rows and columns begin as zeros, which would prove nothing
        for parameter in old.parameters():
            parameter.add_(0.1 * torch.randn(parameter.shape, generator=torch.Generator().manual_seed(3)))
    obs = random_tokens(30, 4)
    assert not torch.allclose(seen(new, in_the_words_of(spec, obs))[1], seen(old, obs)[1], atol=1e-2)
    told = transfer(new, old.state_dict(), config(encoder), WORDS)
    (logits, values), (expected, expected_values) = seen(new, in_the_words_of(spec, obs)), seen(old, obs)
    torch.testing.assert_close(values, expected_values, rtol=1e-4, atol=1e-5)
    shared = [spec.actions.index(name) for name in WORDS.actions]
    torch.testing.assert_close(logits[:, shared], expected, rtol=1e-4, atol=1e-5)
    assert "words known; new: vibe=odd, inv:gem, tag=chest" in told
    assert "action attack" in told


def test_what_is_new_keeps_its_first_weights() -> None:
    old, new, untouched = (Policy(config(), spec, seed) for spec, seed in ((WORDS, 1), (WIDER, 2), (WIDER, 2)))
    transfer(new, old.state_dict(), config(), WORDS)
    attack = WIDER.actions.index("attack")
    assert torch.equal(new.actor.weight[attack], untouched.actor.weight[attack])
    slot, slots = slots_of(WIDER).index(("inv:gem", "")), len(slots_of(WIDER))
    tables = new.state_dict()["encoder.table"], untouched.state_dict()["encoder.table"]
    for place in (0, 31, 63):
        assert torch.equal(tables[0][place * slots + slot], tables[1][place * slots + slot])


def test_the_same_game_begins_with_all_of_it() -> None:
    for encoder in ("bag", "cnn", "attend"):
        old, new = Policy(config(encoder), WORDS, 1), Policy(config(encoder), WORDS, 2)
        told = transfer(new, old.state_dict(), config(encoder), WORDS)
        assert hash_of(new.state_dict()) == hash_of(old.state_dict())
        assert told == "19 of 19 words known"


@pytest.mark.parametrize(
    ("other", "spec", "expected"),
    [
        (config(hidden=48), WORDS, "policy.hidden = 48"),
        (config(core="lstm"), WORDS, "policy.core = 'lstm'"),
        (config("cnn"), WORDS, "policy.encoder = 'cnn'"),
        (config(), Spec(kind="vector", actions=("a",), obs_size=3), "other observations"),
    ],
)
def test_networks_that_are_not_alike_are_refused(other: PolicyConfig, spec: Spec, expected: str) -> None:
    with pytest.raises(ValueError, match=expected):
        transfer(Policy(config(), WORDS, 1), {}, other, spec)


def test_what_an_encoder_does_not_have_may_differ() -> None:
    """Latents and heads are those of `attend`."""
    old, new = Policy(config(latents=4, heads=2), WORDS, 1), Policy(config(), WORDS, 2)
    transfer(new, old.state_dict(), old.config, WORDS)
    assert hash_of(new.state_dict()) == hash_of(old.state_dict())


def test_a_convolution_needs_the_same_window() -> None:
    old, new = Policy(config("cnn"), WORDS, 1), Policy(config("cnn"), WIDER.replace("window", (13, 13)), 2)
    with pytest.raises(ValueError, match=r"expected the window \(5, 7\)"):
        transfer(new, old.state_dict(), config("cnn"), WORDS)


# ---- whole runs


def test_a_run_begins_where_another_ended_and_goes_on_without_it(tmp_path: Path) -> None:
    first = train(tiny(3), tmp_path, panel=False).folder
    second = train(
        tiny(2, policy__init_from=str(first), optimizer__learning_rate=1e-9, run="second", checkpoint__epochs=1),
        tmp_path,
        panel=False,
    ).folder
    weights = [checkpoint.load_policy(checkpoint.find(folder)).policy for folder in (first, second)]
    for name, tensor in weights[0].items():
        torch.testing.assert_close(weights[1][name], tensor, rtol=0, atol=1e-6)
    assert "starts with" in (second / "log.txt").read_text()
    shutil.rmtree(first)
    result = resume(second, ["trainer.total_timesteps=512"], panel=False)
    assert result.exit_code == 0
    assert len(epochs_of(second)) == 4


def test_a_run_of_another_game_begins_with_what_both_know(tmp_path: Path) -> None:
    first = train(tiny(2), tmp_path, panel=False).folder
    toy = games.toy(num_agents=2, map_size=9, max_steps=20)
    second = train(tiny(2, game=toy, score="reward", policy__init_from=str(first), run="second"), tmp_path, panel=False)
    assert second.exit_code == 0
    assert "words known; new: " in (second.folder / "log.txt").read_text()


def test_a_start_that_is_not_there_leaves_no_folder(tmp_path: Path) -> None:
    with pytest.raises(checkpoint.CheckpointError, match="nowhere"):
        train(tiny(2, policy__init_from=str(tmp_path / "nowhere"), run="x"), tmp_path, panel=False)
    assert not (tmp_path / "x").exists()


def test_a_start_of_another_shape_is_refused_with_its_name(tmp_path: Path) -> None:
    first = train(tiny(2), tmp_path, panel=False).folder
    with pytest.raises(ValueError, match=r"policy\.init_from = .*expected policy\.hidden = 16"):
        train(tiny(2, policy__init_from=str(first), policy__hidden=32, run="x"), tmp_path, panel=False)
    assert not (tmp_path / "x").exists()


def test_where_a_run_began_does_not_matter_to_its_resume(tmp_path: Path) -> None:
    """Neither does a record from before the setting existed."""
    run = tiny(2, run="mine")
    found = checkpoint.load(checkpoint.find(train(run, tmp_path, panel=False).folder))
    spec = Spec.load(found.record["spec"])
    del found.record["run"]["policy"]["init_from"]
    usable.refuse_mismatch(found.record, run, spec)
    with pytest.raises(checkpoint.CheckpointError, match=r"resume: policy\.hidden was"):
        usable.refuse_mismatch(found.record, run.replace("policy.hidden", 32), spec)
