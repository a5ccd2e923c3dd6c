"""Settings that were renamed: people are told the new name, saved records with the old one are read."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from checkpoints import reseal, rewrite
from tiny import difference, tiny

from gridmill import policy
from gridmill.config import ConfigError
from gridmill.policy import checkpoint
from gridmill.run import PolicyConfig, Run, TrainerConfig
from gridmill.runs import resume, train


def as_before(tree: dict[str, Any]) -> dict[str, Any]:
    """A run's record with the names that settings had, and losses that did not say their kind."""
    tree = json.loads(json.dumps(tree))
    tree["policy"]["start"] = tree["policy"].pop("init_from")
    tree["trainer"]["sight_share"] = tree["trainer"].pop("shared_advantage")
    for loss in tree["losses"].values():
        for name in ("kind", "begin", "until"):
            del loss[name]
    return tree


def test_a_saved_record_is_read() -> None:
    run = tiny(2, policy__init_from="runs/first", trainer__shared_advantage=0.5, losses__ppo__clip=0.1)
    old = as_before(run.tree())
    kept = json.dumps(old)
    assert Run.load(Run.upgraded(old)) == run
    assert json.dumps(old) == kept
    assert Run.upgraded(run.tree()) == run.tree()
    for other in (None, [], {"policy": 3}, {"trainer": []}):
        assert Run.upgraded(other) == other


def test_people_are_told_the_new_name() -> None:
    with pytest.raises(ConfigError) as caught:
        PolicyConfig(start="x")  # type: ignore[call-arg]
    assert str(caught.value) == "`start` is now `init_from` - at `$`"
    with pytest.raises(ConfigError) as caught:
        TrainerConfig(sight_share=1.0)  # type: ignore[call-arg]
    assert str(caught.value) == "`sight_share` is now `shared_advantage` - at `$`"
    with pytest.raises(ConfigError) as caught:
        Run.load(as_before(tiny(2).tree()))
    assert str(caught.value) == "`start` is now `init_from` - at `$.policy`"


def test_an_old_checkpoint_goes_on_to_the_bit(tmp_path: Path) -> None:
    run = tiny(4, checkpoint__epochs=1, checkpoint__keep=9, trainer__shared_advantage=0.5)
    whole, old = (train(run.replace("run", name), tmp_path, panel=False).folder for name in ("whole", "old"))
    for path in sorted((old / "checkpoints").iterdir())[2:]:
        path.rename(tmp_path / f"away-{path.name}")
    for path in (old / "checkpoints").iterdir():
        record = json.loads((path / "run.json").read_text())
        rewrite(path / "run.json", json.dumps(record | {"run": as_before(record["run"])}).encode())
        reseal(path)
    assert policy.load(old).policy.config == run.policy
    assert resume(old, panel=False).exit_code == 0
    assert checkpoint.newest(old)[0].record["run"]["trainer"]["shared_advantage"] == 0.5
    assert difference(whole, old) == 0
