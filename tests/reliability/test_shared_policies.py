"""Policies that somebody else made, as a run, a checkpoint alone or inside of a replay: no network is asked, no code of
theirs runs, and with its hash behind the name it is that policy or none.
"""

from __future__ import annotations

import json
import re
import shutil
import socket
from pathlib import Path
from typing import Any, NoReturn

import pytest
from strangers import REPLAY, changed_record, honest
from tiny import SUPPORT, tiny
from typer.testing import CliRunner, Result

from gridmill import cli, policy
from gridmill.config import user_code
from gridmill.evaluate import evaluate
from gridmill.policy import checkpoint, pin
from gridmill.policy.checkpoint import CheckpointError
from gridmill.runs import train

pytestmark = pytest.mark.X6

GAME = f"{SUPPORT / 'tiny.py'}:berries"


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return honest(tmp_path_factory.mktemp("runs"))


@pytest.fixture(autouse=True)
def _no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any, **__: Any) -> NoReturn:
        raise AssertionError("the network was asked")

    for name in ("connect", "connect_ex", "bind"):
        monkeypatch.setattr(socket.socket, name, refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)


def call(*words: str) -> Result:
    return CliRunner().invoke(cli.app, list(words))


def hashes(run: Path) -> list[str]:
    """Of the policies, the oldest first."""
    return [checkpoint.load(path).sha256 for path in sorted((run / "checkpoints").iterdir())]


def test_a_run_of_somebody(run: Path) -> None:
    """Its hash is shown, in the table and in the record, and names the same policy again."""
    done = call("eval", GAME, "--policy", str(run), "--episodes", "2")
    assert done.exit_code == 0, done.output
    (shown,) = re.findall(r": sha256 ([0-9a-f]{12})$", done.stdout, re.MULTILINE)
    assert hashes(run)[-1].startswith(shown)
    answers = [
        json.loads(call("eval", GAME, "--policy", name, "--episodes", "2", "--json").stdout)["results"][0]
        for name in (str(run), f"{run}#{shown}", f"{run / 'checkpoints'}#{hashes(run)[-1]}")
    ]
    assert len({answer["sha256"] for answer in answers}) == 1
    assert len({answer["score"]["mean"] for answer in answers}) == 1


def test_a_checkpoint_alone(run: Path, tmp_path: Path) -> None:
    """One folder of four files is all it takes."""
    shutil.copytree(run / "checkpoints" / "epoch-00000002", tmp_path / "given")
    name = f"{tmp_path / 'given'}#{hashes(run)[-1][:8]}"
    assert policy.load(name).sha256 == hashes(run)[-1]
    assert evaluate("toy", name, 1, 0).sha256 == hashes(run)[-1]


def test_an_older_one_by_its_hash(run: Path, tmp_path: Path) -> None:
    old, new = hashes(run)
    assert old != new
    assert policy.load(f"{run}#{old[:10]}").sha256 == old
    assert json.loads(call("policy", "info", f"{run}#{old[:10]}", "--json").stdout)["sha256"] == old
    assert policy.export(f"{run}#{old[:10]}", tmp_path / "policy.pt2")["sha256"] == old
    for words in (["info"], ["export", str(tmp_path / "other.pt2")]):
        done = call("policy", words[0], f"{run}#{'0' * 8}", *words[1:])
        assert done.exit_code == 2
        assert "expected a policy with the sha256 00000000, got " in done.stderr
    assert not (tmp_path / "other.pt2").exists()
    assert policy.load(run).sha256 == new


def test_another_than_was_meant(run: Path, tmp_path: Path) -> None:
    """Changed on the way, with a manifest that fits: the hash is another."""
    with pytest.raises(CheckpointError) as caught:
        policy.load(f"{run}#{'0' * 64}")
    there = ", ".join(one[:12] for one in reversed(hashes(run)))
    assert str(caught.value) == f"expected a policy with the sha256 {'0' * 12}, got {there} - in `{run}`"
    copy = tmp_path / "mine"
    shutil.copytree(run, copy)
    weights = copy / "checkpoints" / "epoch-00000002" / "policy.safetensors"
    data = bytearray(weights.read_bytes())
    data[-1] ^= 1
    weights.write_bytes(data)
    with pytest.raises(CheckpointError, match=r"^expected sha256 .* as in the manifest, got .*: the file was changed"):
        policy.load(f"{copy}#{hashes(run)[-1][:12]}")  # never the one before in its place
    for wrong in ("#abc", "#XYZXYZXYZ", "#"):
        with pytest.raises(ValueError, match=r"^expected 8 to 64 hex digits of a sha256 after #, got `"):
            policy.load(f"{run}{wrong}")


def test_one_that_names_code(run: Path, tmp_path: Path) -> None:
    copy, canary = tmp_path / "mine", tmp_path / "canary"
    shutil.copytree(run, copy)
    (tmp_path / "evil.py").write_text(f"open({str(canary)!r}, 'w').close()\n")
    changed_record(copy, lambda record: record["run"]["policy"].update(encoder=f"{tmp_path / 'evil.py'}:Evil"))
    with pytest.raises(user_code.CodeNeeded):
        policy.load(copy)
    assert not canary.exists()


def test_the_same_weights_with_another_meaning(run: Path, tmp_path: Path) -> None:
    """Whoever changes the order of the actions changes what the policy does."""
    copy = tmp_path / "mine"
    shutil.copytree(run, copy)
    changed_record(copy, lambda record: record["spec"]["actions"].reverse())
    assert policy.load(copy).policy.spec.actions == policy.load(run).policy.spec.actions[::-1]
    with pytest.raises(CheckpointError, match=r"^expected a policy with the sha256 "):
        policy.load(f"{copy}#{hashes(run)[-1][:12]}")


def test_one_inside_of_a_replay(run: Path, tmp_path: Path) -> None:
    """A single file: its policy plays on, and `info` says whose it is."""
    file = tmp_path / "given.replay"
    shutil.copy(run / REPLAY, file)
    words = ["--tick", "1", "--agent", "0", "--rollouts", "2", "--horizon", "2", "--json"]
    done = call("whatif", str(file), *words)
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["policy"].endswith("(in the file)")
    pinned = call("whatif", str(file), *words, "--policy", f"{run}#{hashes(run)[-1][:12]}")
    assert pinned.exit_code == 0, pinned.output


def test_where_else_policies_are_named(run: Path, tmp_path: Path) -> None:
    """To begin with, to learn from, to play beside: the same names, the same refusals."""
    name, wrong = f"{run}#{hashes(run)[0][:12]}", f"{run}#{'0' * 12}"
    changes: list[Any] = [
        lambda name: {"policy__init_from": name},
        lambda name: {"losses__kickstart": {"kind": "kickstart", "teacher": name}},
        lambda name: {"players": {name: 0.5}, "trainer__batch_size": 64},
    ]
    for number, change in enumerate(changes):
        assert train(tiny(1, run=f"new-{number}", **change(name)), tmp_path, panel=False).exit_code == 0
        with pytest.raises(CheckpointError, match="expected a policy with the sha256 000000000000"):
            train(tiny(1, **change(wrong)), tmp_path / "refused", panel=False)


def test_a_folder_may_have_the_sign_in_its_name(run: Path, tmp_path: Path) -> None:
    shutil.copytree(run, tmp_path / "a#12345678")
    assert pin.split(str(tmp_path / "a#12345678")) == (tmp_path / "a#12345678", "")
    assert policy.load(tmp_path / "a#12345678").sha256 == hashes(run)[-1]
