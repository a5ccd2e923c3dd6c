"""`gridmill policy info`: what a policy is, read from its checkpoint alone; no code that it names is run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tiny import berries, tiny
from typer.testing import CliRunner

from gridmill import policy
from gridmill.cli import app
from gridmill.config import install, user_code
from gridmill.policy import about, checkpoint
from gridmill.runs import train

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "own_network.py"


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """runs/first with a score, and runs/own with a network of its own."""
    folder = tmp_path_factory.mktemp("info") / "runs"
    train(tiny(3, "lstm", run="first"), folder, panel=False)
    train(tiny(1, run="own", policy__network=f"{EXAMPLE}:Remembers"), folder, panel=False)
    return folder


def said(runs: Path, monkeypatch: pytest.MonkeyPatch, *words: str) -> Any:
    monkeypatch.chdir(runs.parent)
    monkeypatch.setattr(install.shutil, "which", lambda name: f"/bin/{name}")
    return CliRunner().invoke(app, ["policy", "info", *words])


def test_what_it_is(runs: Path) -> None:
    player, found = policy.load(runs / "first"), policy.info(runs / "first")
    assert found["sha256"] == player.sha256
    assert sum(found["parameters"].values()) == sum(p.numel() for p in player.policy.parameters())
    assert list(found["parameters"]) == ["encoder", "dense", "core", "actor", "critic"]
    assert found["parameters"]["critic"] == 17
    assert (found["network"]["encoder"], found["network"]["core"]) == ("bag", "lstm")
    assert (found["game"], found["fingerprint"]) == ("berries", berries().fingerprint())
    assert (found["epoch"], found["agent_steps"], found["seed"], found["recipe"]) == (3, 384, 0, "tiny")
    saved = checkpoint.load_policy(checkpoint.find(runs / "first"))
    assert found["score"] == saved.score is not None
    assert found["actions"] == list(player.policy.spec.actions)
    assert found["features"] == list(player.policy.spec.features)
    assert found["observation"] == {"kind": "tokens", "tokens": 64, "window": [11, 11]}
    assert found["masks"] is True
    assert set(found["versions"]) == {"gridmill", "torch", "numpy"}
    assert found["code"] == []


def test_the_command(runs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    done = said(runs, monkeypatch, "first")
    assert done.exit_code == 0, done.output
    lines = done.output.splitlines()
    assert max(map(len, lines)) <= 80
    named = {line[:13].strip(): line[13:] for line in lines if line[:1].strip()}
    digits = policy.info(runs / "first")["sha256"][:12]
    assert named["hash"] == f"sha256 {digits}; runs/first#{digits} is exactly this one"
    assert named["network"] == "encoder bag, core lstm, hidden 16, layers 1"
    assert named["trained"].startswith("384 agent-steps, epoch 3, score ")
    assert named["sees"] == "at most 64 tokens in a window of 11 x 11"
    assert named["actions"].startswith("5: noop, ")
    assert {name: words for name, words in named.items() if words.startswith("gridmill ") and name != "versions"} == {
        "evaluate": "gridmill eval runs/first",
        "watch": "gridmill watch runs/first",
        "export": "gridmill policy export runs/first policy.onnx",
        "start from": "gridmill train tiny policy.init_from=runs/first",
        "resume": "gridmill resume runs/first",
    }


def test_as_json_and_by_hash(runs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = json.loads(said(runs, monkeypatch, "first@3", "--json").output)
    assert found.pop("next")["evaluate"].endswith("gridmill eval runs/first --policy runs/first@3")
    assert found == policy.info("runs/first")
    assert json.loads(said(runs, monkeypatch, f"first#{found['sha256'][:8]}", "--json").output)["epoch"] == 3
    missing = said(runs, monkeypatch, "first#00000000")
    assert "expected a policy with the sha256 00000000, got" in missing.stderr


def test_code_is_told_and_not_run(runs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(user_code, "_taken", [])
    monkeypatch.setattr(user_code, "module_of", None)
    done = said(runs, monkeypatch, "own")
    assert done.exit_code == 0, done.output
    assert max(map(len, [line for line in done.output.splitlines() if "--code" not in line])) <= 80
    assert "network      own_network.py:Remembers, in plain torch" in done.output
    assert "it runs only if you name it: --code FILE" in " ".join(done.output.split())
    for command in ("eval", "watch"):
        assert f"gridmill {command} runs/own --code {EXAMPLE}" in done.output
    found = policy.info(runs / "own")
    assert found["code"] == [f"{EXAMPLE}:Remembers"]
    assert found["parameters"] == {"net.actor": 85, "net.critic": 17, "net.memory": 1_632, "net.parts": 12_288}


def test_words_of_a_stranger_move_no_cursor(runs: Path) -> None:
    found = about.of(runs / "first") | {"game": "evil\x1b[2J\n\u202egame", "features": ["\x07"] * 100}
    told = about.text(found, "x")
    assert told.isprintable() or {c for c in told if not c.isprintable()} == {"\n"}
    assert "100: " in told
    assert "and 40 more" in told


def test_a_record_that_is_none_is_one_line(runs: Path) -> None:
    found = checkpoint.load_policy(checkpoint.find(runs / "first"))
    for change in ({"run": 3}, {"run": {"policy": None}}, {"spec": {}}, {"run": {"policy": {"hidden": -1}}}):
        broken = checkpoint.Checkpoint(found.path, 1, {}, {}, {**found.record, **change})
        with pytest.raises(checkpoint.CheckpointError, match=r"^expected the record of a policy, got .*run\.json`$"):
            about.describe(broken)
