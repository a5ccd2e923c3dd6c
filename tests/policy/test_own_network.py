"""A whole network of the user's own: trained, resumed to the bit, played, begun with and taught by; what is refused."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from small_runs import WORDS
from tiny import berries, difference, epochs_of, tiny

import gridmill
from gridmill import policy
from gridmill.config import ConfigError, user_code
from gridmill.evaluate import ReplayOptions, evaluate
from gridmill.losses.contrastive import Contrastive
from gridmill.losses.kickstart import Kickstart
from gridmill.policy import PolicyConfig, checkpoint
from gridmill.policy.build import build, headline, size
from gridmill.replay import read
from gridmill.run import Run
from gridmill.runs import overrides, resume, train
from gridmill.train.trainer import Trainer

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "own_network.py"
PLAIN = '''
import torch
from torch import nn


class Plain(nn.Module):
    """No memory: it gets rows."""

    def __init__(self, spec, config):
        super().__init__()
        inputs = spec.obs_size or 3 * spec.num_tokens
        self.body = nn.Sequential(nn.Flatten(), nn.Linear(inputs, config.hidden), nn.ReLU())
        self.heads = nn.Linear(config.hidden, len(spec.actions) + 1)

    def forward(self, obs):
        hidden = self.body(obs.float() / 255)
        return *torch.split(self.heads(hidden), [self.heads.out_features - 1, 1], -1), hidden
'''


@pytest.fixture
def plain(tmp_path: Path) -> str:
    (tmp_path / "mine.py").write_text(PLAIN)
    return f"{tmp_path}/mine.py:Plain"


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Four epochs of the network of the example, which remembers, with a checkpoint of each."""
    run = tiny(4, run="whole", checkpoint__epochs=1, checkpoint__keep=9, policy__network=f"{EXAMPLE}:Remembers")
    return train(run, tmp_path_factory.mktemp("own"), panel=False).folder


def test_a_resumed_run_is_equal_to_the_bit(trained: Path, tmp_path: Path) -> None:
    again = tmp_path / "again"
    shutil.copytree(trained, again)
    for path in sorted((again / "checkpoints").iterdir())[2:]:
        shutil.rmtree(path)
    assert resume(again, panel=False).exit_code == 0
    assert difference(trained, again) == 0


def test_the_heading_says_that_native_kernels_do_not_run(trained: Path, tmp_path: Path, plain: str) -> None:
    lines = (trained / "log.txt").read_text().splitlines()
    (at,) = [number for number, line in enumerate(lines) if line.startswith("network: ")]
    assert " ".join(part.strip() for part in lines[at : at + 2]) == (
        "network: own_network.py:Remembers, 14,022 parameters, in plain torch instead of the native kernels"
    )
    part = PolicyConfig(hidden=16)
    assert headline(build(part, WORDS), True) == "encoder bag, core scan, hidden 16, 13,973 parameters"
    assert headline(build(part, WORDS), False).endswith(
        "; in plain torch: native kernels are for fp32 on a CPU without compile"
    )
    file = tmp_path / "parts.py"
    file.write_text("from gridmill.policy.cores.gru import Gru\n\nclass Mine(Gru):\n    pass\n")
    mixed = headline(build(part.replace("core", f"{file}:Mine"), WORDS), True)
    assert mixed.endswith("parameters; your own core in plain torch, the rest in native kernels")
    assert "core parts.py:Mine, " in mixed


def test_it_is_played_as_it_was_trained(trained: Path) -> None:
    player = policy.load(trained)
    with gridmill.make(berries(), num_worlds=3, seed=1, masks=True) as env:
        player.bind(env)
        env.reset()
        state = None
        for _ in range(5):
            thought = player.think(env.obs, state, env.masks)
            assert thought.logits.shape == (env.num_rows, env.num_actions)
            actions, state = player.act(env.obs, state, env.masks)
            env.step(actions)
    assert np.any(state)
    assert evaluate(berries(), str(trained), 4, 0).episodes == 4


def test_no_replay_holds_it(trained: Path, tmp_path: Path) -> None:
    """Without its weights an episode can be saved; with them nobody could read the file."""
    file = tmp_path / "x.replay"
    evaluate(berries(), str(trained), 1, 0, replay=file)
    assert read(file).played_by.name == str(trained)
    with pytest.raises(ValueError, match=r"^replay: a file cannot contain `.*`, which uses custom code; do not store "):
        evaluate(berries(), str(trained), 1, 0, replay=ReplayOptions(file, weights=True))


def test_a_policy_of_ones_own_cannot_read_another_game(trained: Path) -> None:
    player = policy.load(trained)
    with gridmill.make("toy", num_worlds=1) as env, pytest.raises(ValueError) as caught:
        player.bind(env)
    assert str(caught.value).startswith(f"policy: `{EXAMPLE}:Remembers` reads the observations of the game it was")
    assert str(caught.value).endswith("in this one features, normalizers, num_tokens, tags differ")


def test_a_run_begins_with_it_and_is_taught_by_it(trained: Path, tmp_path: Path) -> None:
    begun = tiny(1, run="begun", policy__network=f"{EXAMPLE}:Remembers", policy__init_from=str(trained))
    begun = begun.replace("optimizer.learning_rate", 0.0)
    folder = train(begun, tmp_path, panel=False).folder
    theirs, ours = (checkpoint.newest(path)[0].policy for path in (trained, folder))
    assert theirs.keys() == ours.keys()
    assert all(torch.equal(theirs[name], ours[name]) for name in theirs)
    taught = tiny(1, run="taught").replace("losses.kickstart", Kickstart(teacher=str(trained)))
    assert epochs_of(train(taught, tmp_path, panel=False).folder)[0]["loss/kickstart"] > 0
    beside = tiny(1, run="beside", players={str(trained): 0.5})
    beside = beside.replace_all([("trainer.batch_size", 64), ("trainer.minibatch_size", 32)])
    assert train(beside, tmp_path, panel=False).exit_code == 0


def test_init_from_another_network_is_refused(trained: Path, plain: str, tmp_path: Path) -> None:
    for network, said in (
        ("", f"expected policy.network = '{EXAMPLE}:Remembers' as in the initial weights, got ''"),
        (plain, f"expected policy.network = '{EXAMPLE}:Remembers' as in the initial weights, got '{plain}'"),
    ):
        with pytest.raises(ValueError) as caught:
            train(tiny(1, policy__network=network, policy__init_from=str(trained)), tmp_path, panel=False)
        assert str(caught.value).endswith(said)
    wide = tiny(1, policy__network=f"{EXAMPLE}:Remembers", policy__hidden=32, policy__init_from=str(trained))
    with pytest.raises(ValueError, match=r"net.parts.0.weight: expected the shape \(256, 32\), got \(256, 16\)"):
        train(wide, tmp_path, panel=False)


def test_it_is_named_by_one_word(plain: str) -> None:
    file, _, _ = plain.partition(":")
    for run in (
        overrides.apply(tiny(1), [f"policy={plain}", "policy.hidden=32"]),
        tiny(1).replace_all([("policy", plain), ("policy", {"network": plain, "hidden": 32, "core": "scan"})]),
    ):
        assert (run.policy.network, run.policy.hidden) == (plain, 32)
        assert user_code.named_in(run.tree()) == [plain]
        assert Run.load(run.tree()) == run
    assert tiny(1).replace("policy", plain).policy.network == plain
    assert build(PolicyConfig(network=file), WORDS).config.network == file  # the one class of the file
    with pytest.raises(ConfigError) as caught:
        overrides.apply(tiny(1), ["policy=big"])
    assert str(caught.value) == "expected FILE.py:Class or package.module:Class, got 'big' - at `$.policy.network`"


def test_losses_that_read_what_it_does_not_give(plain: str) -> None:
    contrast = tiny(1, losses__contrastive=Contrastive())
    trainer = Trainer(contrast.replace("policy.network", plain))
    assert trainer.epoch()["loss/contrastive"] > 0
    trainer.close()
    with pytest.raises(ConfigError) as caught:
        Trainer(contrast.replace("policy.network", f"{EXAMPLE}:Remembers"))
    assert str(caught.value) == (
        "expected a network that also returns hidden [rows, 16], which this loss reads, got "
        f"`{EXAMPLE}:Remembers`, which does not - at `$.losses.contrastive`"
    )


def test_its_size_is_that_of_the_network(plain: str) -> None:
    config = PolicyConfig(network=plain, hidden=32)
    found, made = size(config, WORDS), build(config, WORDS)
    assert found.parameters == sum(parameter.numel() for parameter in made.parameters())
    assert (found.state, made.state_size) == (0, 0)
    inputs = 3 * WORDS.num_tokens
    assert inputs + 32 <= found.activations <= inputs + 4 * 32  # what Linear keeps, and a little


def test_a_seed_gives_the_same_weights(plain: str) -> None:
    config = PolicyConfig(network=plain)
    one, same, other = (build(config, WORDS, seed).state_dict()["net.heads.weight"] for seed in (1, 1, 2))
    assert torch.equal(one, same)
    assert not torch.equal(one, other)


def test_muon_knows_only_our_parts(plain: str) -> None:
    with pytest.raises(ConfigError) as caught:
        tiny(1, policy__network=plain, optimizer__kind="muon")
    assert str(caught.value) == "expected another optimizer with your own network, got muon - at `$.optimizer.kind`"


# ---- the trial: what is wrong with a network is said when it is made

FORWARD = "    def forward(self, obs):\n        hidden"
BAD: dict[str, tuple[str, str, str]] = {
    "arguments": ("(self, spec, config)", "(self, spec)", "expected a class that is called with (spec, config), got "),
    "error when made": ("super().__init__()", "super().__init__(); None + 1", "failed in line 10: TypeError: "),
    "state_size": ("super().__init__()", "super().__init__(); self.state_size = -1",
                   "expected state_size to be a whole number of floats per row, got -1"),
    "one value": ("return *torch.split(self.heads(hidden), [self.heads.out_features - 1, 1], -1), hidden",
                  "return hidden", "expected forward to return logits, values and maybe hidden, got Tensor"),
    "logits": ("+ 1)", "+ 2)", "expected logits of shape (6, 4) for 6 rows, got (6, 5)"),
    "hidden": (", -1), hidden", ", -1), hidden[:, 1:]", "expected hidden of shape (6, 16) for 6 rows, got (6, 15)"),
    "numbers": ("obs.float() / 255", "obs.float() * float('inf')", "expected logits to be finite, got NaN or infinity"),
    "dropout": ("nn.ReLU()", "nn.Dropout(0.5)", "outputs differ between two calls with the same inputs (dropout?)"),
    "batch norm": ("nn.ReLU()", "nn.LayerNorm(config.hidden), nn.BatchNorm1d(config.hidden, track_running_stats=False)",
                   "expected a row's outputs not to depend on other rows (batch norm?)"),
    "no gradient": ("split(self.heads(hidden)", "split(self.heads(hidden).detach()",
                    "expected logits that depend on parameters, got some without a gradient (detach, no_grad, or"),
    "writes": ("hidden = self", "obs[:, 0] = 0; hidden = self",
               "expected forward not to change its inputs, but it did"),
    "error": ("obs.float() / 255", "obs.float()[:, 5000]", "failed in line 16: IndexError: "),
}  # fmt: skip
LONG = """
import torch
from torch import nn


class Long(nn.Module):
    state_size = 4

    def __init__(self, spec, config):
        super().__init__()
        self.heads = nn.Linear(4, len(spec.actions) + 1)

    def forward(self, obs, state, episode_starts):
        found = []
        for t in range(len(obs)):
            state = state * (1 - episode_starts[t, :, None]) + obs[t].float().mean((-2, -1))[:, None] / 255
            found.append(state)
        both = self.heads(torch.stack(found))
        return both[..., :-1], both[..., -1], state
"""
BAD_MEMORY = {
    "forgets": ("state * (1 - episode_starts[t, :, None])", "state",
                "expected the state to be reset where episode_starts is 1"),
    "order": ("range(len(obs))", "reversed(range(len(obs)))",
              "expected two steps in one call to give the same result as two calls"),
    "state": ("both[..., -1], state", "both[..., -1], state[:, 1:]",
              "expected state of shape (3, 4) for 2 steps of 3 rows, got (3, 3)"),
    "two values": (", both[..., -1], state", ", both[..., -1]",
                   "expected forward to return logits, values, state and maybe hidden, got 2 values"),
}  # fmt: skip


@pytest.mark.parametrize(("text", "name", "case"), [
    *[(PLAIN, "Plain", case) for case in BAD.values()], *[(LONG, "Long", case) for case in BAD_MEMORY.values()],
], ids=[*BAD, *BAD_MEMORY])  # fmt: skip
def test_what_cannot_work_is_refused_when_it_is_made(text: str, name: str, case: Any, tmp_path: Path) -> None:
    old, new, said = case
    assert old in text
    file = tmp_path / "net.py"
    file.write_text(text)
    build(PolicyConfig(network=f"{file}:{name}", hidden=16), WORDS)
    (tmp_path / "bad").mkdir()
    bad = tmp_path / "bad" / "net.py"
    bad.write_text(text.replace(old, new))
    with pytest.raises(ValueError) as caught:
        build(PolicyConfig(network=f"{bad}:{name}", hidden=16), WORDS)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)
    where = f"`{bad}:{name}` " if said.startswith("failed") else said
    assert str(caught.value).startswith(where)
