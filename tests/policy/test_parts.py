"""Encoders and cores: found by file name or the user's own, sizes that are the real ones, `auto`, wrong ones."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import Any

import pytest
import torch
from small_runs import WORDS
from tiny import difference, tiny

from gridmill import policy
from gridmill.config import ConfigError, user_code
from gridmill.policy import PolicyConfig, Spec
from gridmill.policy.config import FOLDER
from gridmill.policy.encoders import Encoder, encoder_for, name_for
from gridmill.policy.network import Policy
from gridmill.runs import resume, train

VECTOR = Spec(kind="vector", actions=("a", "b"), obs_size=9)
ENCODERS, CORES = (user_code.names(FOLDER / folder) for folder in ("encoders", "cores"))
SPECS = {"tokens": WORDS, "vector": VECTOR}
OWN = '''
import torch
from torch import nn

from gridmill.policy.cores import Core, Size
from gridmill.policy.encoders import Encoder


class Counts(Encoder):
    """How many tokens there are, through a dense layer."""

    def __init__(self, config, spec, layout, rng):
        super().__init__(config, spec, layout, rng)
        self.first = nn.Linear(2, config.hidden)

    def forward(self, obs):
        there = (obs[..., 0] != 255).float().sum(-1)
        return self.first(torch.stack((there / 10, obs[:, 0, 2] / 255), -1)).relu()


class Last(Core):
    """Remembers what it was shown before."""

    @classmethod
    def size(cls, hidden):
        return Size(0, hidden, hidden)

    def forward(self, x, state, episode_starts):
        found = []
        for t in range(len(x)):
            state = state * (1 - episode_starts[t].float())[:, None]
            found.append(x[t] + 0.5 * state)
            state = x[t].detach()
        return torch.stack(found), state
'''


def spec_for(encoder: str) -> Spec:
    return SPECS[user_code.find(encoder, "gridmill.policy.encoders", Encoder, "encoder").reads]


def test_what_ships() -> None:
    assert {"attend", "bag", "cnn", "mlp"} <= set(ENCODERS)
    assert {"gru", "lstm", "none", "scan"} <= set(CORES)


@pytest.mark.parametrize(("encoder", "core"), [*product(ENCODERS, CORES)])
@pytest.mark.parametrize("layers", [0, 2])
def test_sizes_are_those_of_the_network(encoder: str, core: str, layers: int) -> None:
    config = PolicyConfig(encoder=encoder, core=core, hidden=32, layers=layers, latents=3, heads=2)
    network, size = Policy(config, spec_for(encoder)), Policy.size(config, spec_for(encoder))
    assert size.parameters == sum(parameter.numel() for parameter in network.parameters())
    assert size.state == network.state_size
    assert size.activations > 32


@pytest.mark.parametrize("window", [(1, 1), (3, 5), (11, 11), (15, 13)])
def test_the_size_of_convolutions_follows_the_window(window: tuple[int, int]) -> None:
    config, spec = PolicyConfig(encoder="cnn", hidden=32), WORDS.replace("window", window)
    assert Policy.size(config, spec).parameters == sum(p.numel() for p in Policy(config, spec).parameters())


def test_auto_follows_what_there_is_to_read() -> None:
    assert PolicyConfig().encoder == "auto"
    assert [name_for(PolicyConfig(), spec) for spec in (WORDS, VECTOR)] == ["bag", "mlp"]
    for spec, name in ((WORDS, "bag"), (VECTOR, "mlp")):
        settled, auto = (Policy(PolicyConfig(encoder=each, hidden=16), spec) for each in (name, "auto"))
        assert type(settled.encoder) is type(auto.encoder)
        for one, other in zip(settled.parameters(), auto.parameters(), strict=True):
            assert torch.equal(one, other)


@pytest.mark.parametrize(("encoder", "reads"), [("mlp", "vector"), ("bag", "tokens"), ("cnn", "tokens")])
def test_an_encoder_that_reads_something_else_is_refused(encoder: str, reads: str) -> None:
    spec = SPECS["tokens" if reads == "vector" else "vector"]
    said = f"expected an encoder that reads {spec.kind}, got {encoder}, which reads {reads} - at `$.policy.encoder`"
    for ask in (Policy, Policy.size, encoder_for):
        with pytest.raises(ConfigError) as caught:
            ask(PolicyConfig(encoder=encoder), spec)  # type: ignore[operator]
        assert str(caught.value) == said


def test_attend_needs_heads_that_divide() -> None:
    config = PolicyConfig(encoder="attend", hidden=32, heads=5)
    for ask in (Policy, Policy.size):
        with pytest.raises(ConfigError, match=r"multiple of heads = 5, got 32 - at `\$.policy.hidden`"):
            ask(config, WORDS)  # type: ignore[operator]


# ---- the user's own


def own(folder: Path) -> Path:
    file = folder / "parts.py"
    file.write_text(OWN)
    return file


def test_parts_of_the_users_own_are_trained_resumed_and_played(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "mine").mkdir()
    file = own(tmp_path / "mine")
    monkeypatch.chdir(tmp_path / "mine")
    parts: dict[str, Any] = {"policy__encoder": "parts.py:Counts", "policy__core": "parts.py:Last"}
    run = tiny(4, checkpoint__epochs=1, checkpoint__keep=9, **parts)
    assert (run.policy.encoder, run.policy.core) == (f"{file}:Counts", f"{file}:Last")
    whole, again = (train(run.replace("run", name), tmp_path, panel=False).folder for name in ("whole", "again"))
    for path in sorted((again / "checkpoints").iterdir())[2:]:
        path.rename(tmp_path / f"away-{path.name}")
    monkeypatch.chdir(tmp_path)
    assert resume(again, panel=False).exit_code == 0
    assert difference(whole, again) == 0
    player = policy.load(whole)
    assert type(player.policy.encoder).__name__ == "Counts"


def test_a_part_that_is_not_there_is_one_line(tmp_path: Path) -> None:
    for text, said in (
        (f"{own(tmp_path)}:Count", "no encoder `Count` (a Encoder) in"),
        (f"{tmp_path}/nowhere.py:Counts", "no encoder file"),
        (f"{own(tmp_path)}:Last", "no encoder `Last`"),
    ):
        with pytest.raises(ValueError) as caught:
            encoder_for(PolicyConfig(encoder=text), WORDS)
        assert str(caught.value).startswith(said)
        assert "\n" not in str(caught.value)
