"""`gridmill settings`: every setting has a default, what it takes and a meaning of its own."""

from __future__ import annotations

import json
import re
import subprocess
import sys

import pytest
from typer.testing import CliRunner, Result

from gridmill import cli, games, losses
from gridmill.config import flatten
from gridmill.config.describe import Setting
from gridmill.run import Run, settings

EVERY = settings()


def call(*arguments: str) -> Result:
    return CliRunner().invoke(cli.app, ["settings", *arguments])


@pytest.mark.parametrize("setting", EVERY, ids=lambda setting: setting.path)
def test_every_setting_has_a_meaning(setting: Setting) -> None:
    """One line under the field: a sentence that ends, not the name again."""
    assert setting.takes, setting.path
    assert re.fullmatch(r"[A-Z].{8,110}\.", setting.meaning), f"write what `{setting.path}` means under its field"


def test_no_two_settings_have_one_meaning() -> None:
    said: dict[str, str] = {}
    for setting in EVERY:
        name = setting.path.rpartition(".")[2]
        if setting.path.startswith("losses.") and name in ("weight", "begin", "until"):
            continue  # those that all losses have
        assert setting.meaning not in said, f"{setting.path} and {said[setting.meaning]}"
        said[setting.meaning] = setting.path


def test_every_setting_of_a_run_is_listed() -> None:
    """All of them, by the paths that overrides take, with the defaults that a run has."""
    listed = {setting.path: setting.default for setting in EVERY}
    run = Run(recipe="r", game=games.toy()).tree()
    del run["game"]
    for path, value in flatten(run).items():
        if path in ("recipe", "losses.ppo.kind", "losses.value.kind"):
            continue
        assert path in listed, path
        assert listed[path] == value or (not listed[path] and not value), path
    assert {f"losses.{name}.weight" for name in losses.names()} <= listed.keys()


@pytest.mark.parametrize(
    ("path", "takes"),
    [
        ("trainer.gamma", "number, 0 to 1, or a schedule"),
        ("optimizer.kind", "adam, adamw, muon, schedule_free, FILE.py:Class"),
        ("optimizer.eps", "number above 0, or a schedule"),
        ("trainer.masks", "true or false"),
        ("trainer.update_epochs", "whole number, 1 to 100"),
        ("trainer.batch_size", "whole number from 1"),
        ("policy.hidden", "whole number, 16 to 4_096, in steps of 16"),
        ("policy.core", "gru, lstm, none, scan, FILE.py:Class"),
        ("players", "NAME: share, agents or team"),
        ("trainer.signal", "a list of {value, weight}"),
        ("evaluation_game", "a name, FILE.py:function or JSON, or none"),
    ],
)
def test_what_a_setting_takes(path: str, takes: str) -> None:
    (found,) = (setting for setting in EVERY if setting.path == path)
    assert found.takes == takes


def test_a_part_of_a_name_or_meaning_finds_it() -> None:
    text = call("gae").stdout
    assert text.startswith("trainer.gae_lambda = 0.95  (number, 0 to 1, or a schedule)\n    How far advantages look")
    assert "trainer.gamma = 0.99" in call("discount").stdout  # by its meaning
    paths = [line.split()[0] for line in call("track.*").stdout.splitlines() if not line.startswith(" ")]
    assert paths == ["track.tensorboard", "track.wandb", "track.project"]


def test_all_of_them_fit_80_columns() -> None:
    result = call()
    assert result.exit_code == 0, result.output
    assert max(map(len, result.stdout.splitlines())) <= 80
    assert all(f"\n{setting.path} = " in f"\n{result.stdout}" for setting in EVERY)


def test_as_json() -> None:
    (found,) = json.loads(call("trainer.gamma", "--json").stdout)["settings"]
    assert found["default"] == 0.99
    assert found["meaning"] == "Discount: the weight of the next tick's value."
    assert len(json.loads(call("--json").stdout)["settings"]) == len(EVERY)


def test_one_that_is_not_there() -> None:
    result = call("gama")
    assert (result.exit_code, result.stderr) == (2, "gridmill: no setting matches `gama`; did you mean `gamma`?\n")


def test_it_needs_no_torch() -> None:
    code = "import sys; sys.modules['torch'] = None\nfrom gridmill.cli import main\nmain(['settings', 'gamma'])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stderr) == (0, "")
