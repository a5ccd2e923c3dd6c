"""Policies for other programs: what onnxruntime and torch's programs give is what the policy gives, step by step."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tiny import berries, tiny
from typer.testing import CliRunner

import gridmill
from gridmill import games, policy
from gridmill.cli import app
from gridmill.config import user_code
from gridmill.policy import exporting
from gridmill.policy.network import FORBIDDEN
from gridmill.run import Run
from gridmill.runs import train

onnxruntime = pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "own_network.py"
PARTS = [("bag", "scan"), ("mlp", "none")]  # each takes seconds
CORES = ("none", "scan", "lstm", "gru")
EVERY = [(encoder, core) for encoder in ("bag", "cnn", "attend", "mlp") for core in CORES]
ALL = [*PARTS, *(pytest.param(*each, marks=pytest.mark.long) for each in EVERY if each not in PARTS)]


def short_run(encoder: str, core: str, **changes: Any) -> Run:
    run = tiny(1, core, run="x", policy__actor_gain=1.0, **changes)
    if encoder != "mlp":
        return run.replace("policy.encoder", encoder)
    return run.replace_all([("game", games.build("prospector")), ("score", "")])


def trained(folder: Path, run: Run) -> Path:
    return train(run, folder, panel=False).folder


class Onnx:
    """A file in onnxruntime, called like torch's programs."""

    def __init__(self, file: Path) -> None:
        self.session = onnxruntime.InferenceSession(str(file), providers=["CPUExecutionProvider"])
        self.known = json.loads(self.session.get_modelmeta().custom_metadata_map["gridmill"])
        self.outputs = [each.name for each in self.session.get_outputs()]

    def __call__(self, **inputs: torch.Tensor) -> dict[str, torch.Tensor]:
        assert set(inputs) == {each.name for each in self.session.get_inputs()}
        found = self.session.run(self.outputs, {name: tensor.numpy() for name, tensor in inputs.items()})
        return {name: torch.from_numpy(array) for name, array in zip(self.outputs, found, strict=True)}


class Program:
    """A program of torch.export."""

    def __init__(self, file: Path) -> None:
        inside = {"policy.json": ""}
        self.module = torch.export.load(file, extra_files=inside).module()
        self.known = json.loads(inside["policy.json"])

    def __call__(self, **inputs: torch.Tensor) -> dict[str, torch.Tensor]:
        return dict(self.module(**inputs))


def play(folder: Path, made: Any, game: Any, ticks: int = 25) -> None:
    """Both are shown the same worlds, with episodes that end; rows one by one are all rows."""
    player = policy.load(folder)
    with gridmill.make(game, num_worlds=3, seed=1, masks=True) as env:
        player.bind(env)
        env.reset()
        state, starts = None, np.zeros(env.num_rows, np.uint8)
        theirs = torch.zeros(env.num_rows, player.policy.state_size)
        for tick in range(ticks):
            inputs = {"obs": torch.from_numpy(env.obs.copy()), "masks": torch.from_numpy(env.masks.copy())}
            if player.policy.state_size:
                inputs |= {"state": theirs, "episode_starts": torch.from_numpy(starts)}
            thought, found = player.think(env.obs, state, env.masks), made(**inputs)
            ours = thought.logits.masked_fill(torch.from_numpy(env.masks) == 0, FORBIDDEN)
            torch.testing.assert_close(found["logits"], ours, rtol=1e-5, atol=1e-5)
            torch.testing.assert_close(found["value"], thought.values, rtol=1e-5, atol=1e-5)
            if tick == 3:
                one = made(**{name: tensor[1:2] for name, tensor in inputs.items()})
                torch.testing.assert_close(one["logits"], found["logits"][1:2], rtol=1e-5, atol=1e-5)
            theirs = found.get("next_state", theirs)
            env.step(player.choose(thought, tick))
            ended = env.terminals | env.truncations
            state, starts = player.reset(thought.state, ended), ended.astype(np.uint8)


@pytest.mark.parametrize(("encoder", "core"), ALL)
def test_onnxruntime_gives_the_same(encoder: str, core: str, tmp_path: Path) -> None:
    run = short_run(encoder, core)
    folder = trained(tmp_path, run)
    known = policy.export(folder, tmp_path / "policy.onnx")
    made = Onnx(tmp_path / "policy.onnx")
    assert made.known == known
    assert known["largest_difference"] < 1e-5
    play(folder, made, run.game)


@pytest.mark.parametrize(
    ("encoder", "core"),
    [PARTS[0], *(pytest.param(*each, marks=pytest.mark.long) for each in EVERY if each != PARTS[0])],
)
def test_a_program_of_torch_gives_the_same(encoder: str, core: str, tmp_path: Path) -> None:
    run = short_run(encoder, core)
    folder = trained(tmp_path, run)
    known = policy.export(folder, tmp_path / "deep" / "policy.pt2")
    made = Program(tmp_path / "deep" / "policy.pt2")
    assert made.known == known
    play(folder, made, run.game)


def test_a_network_of_ones_own_and_what_the_file_says(tmp_path: Path) -> None:
    run = tiny(1, run="x", policy__network=f"{EXAMPLE}:Remembers")
    folder = trained(tmp_path, run)
    policy.export(folder, tmp_path / "policy.onnx")
    made = Onnx(tmp_path / "policy.onnx")
    play(folder, made, berries())
    known = made.known
    player = policy.load(folder)
    assert known["sha256"] == player.sha256
    assert known["actions"] == list(player.policy.spec.actions)
    assert known["features"] == list(player.policy.spec.features)
    assert (known["game"], known["fingerprint"]) == ("berries", berries().fingerprint())
    assert known["network"]["network"] == "own_network.py:Remembers"
    assert known["inputs"]["obs"] == ["uint8", ["rows", 64, 3]]
    assert list(known["inputs"]) == ["obs", "state", "episode_starts", "masks"]
    assert known["outputs"]["next_state"] == ["float32", ["rows", 16]]
    assert str(tmp_path) not in json.dumps(known)  # nothing of this machine


def test_without_masks_there_are_none(tmp_path: Path) -> None:
    folder = trained(tmp_path, tiny(1, "none", run="x", trainer__masks=False))
    assert list(policy.export(folder, tmp_path / "policy.pt2")["inputs"]) == ["obs"]


def test_what_cannot_be_exported_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "net.py"
    file.write_text(
        "import torch\nfrom torch import nn\n\n\nclass Looks(nn.Module):\n    def __init__(self, spec, config):\n"
        "        super().__init__()\n        self.heads = nn.Linear(3, len(spec.actions) + 1)\n\n"
        "    def forward(self, obs):\n        x = obs.float().mean(1) / 255\n"
        "        both = self.heads(x if float(x.sum()) > 0 else 2 * x)\n        return both[:, :-1], both[:, -1]\n"
    )
    folder = trained(tmp_path, tiny(1, run="x", policy__network=f"{file}:Looks"))
    with pytest.raises(ValueError, match=r"^policy: torch\.export cannot export this network: ") as caught:
        policy.export(folder, tmp_path / "policy.onnx")
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "policy.onnx").exists()
    with pytest.raises(ValueError) as caught:
        policy.export(folder, tmp_path / "policy.txt")
    assert str(caught.value) == f"expected a file that ends in .onnx or .pt2, got `{tmp_path}/policy.txt`"
    monkeypatch.setattr(user_code, "_taken", [])
    with pytest.raises(user_code.CodeNeeded, match=r"net\.py:Looks; add --code /.*/net\.py$"):
        policy.export(folder, tmp_path / "policy.onnx")
    monkeypatch.setattr(exporting.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ValueError, match=r"^ONNX needs onnx, which is not installed: .*'gridmill\[export\]'$"):
        policy.export(folder, tmp_path / "policy.onnx")


def test_outputs_that_differ_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = trained(tmp_path, tiny(1, "none", run="x"))
    monkeypatch.setattr(exporting, "CLOSE", -1.0)
    with pytest.raises(ValueError, match=r"^policy: the exported outputs differ from the policy's by .*, more than -1"):
        policy.export(folder, tmp_path / "policy.pt2")
    assert not (tmp_path / "policy.pt2").exists()


def test_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    trained(tmp_path / "runs", tiny(1, "none", run="x"))
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(app, ["policy", "export", "x@last", "out/policy.pt2"])
    assert done.exit_code == 0, done.output
    lines = done.output.splitlines()
    assert lines[0].startswith("wrote out/policy.pt2: 0.")
    assert lines[1:3] == [
        "inputs   obs uint8 [rows, 64, 3], masks uint8 [rows, 5]",
        "outputs  logits float32 [rows, 5], value float32 [rows]",
    ]
    assert lines[3].startswith("checked  outputs differ from the policy's own by at most ")
    assert max(map(len, lines)) <= 80
