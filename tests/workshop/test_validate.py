"""`gridmill validate`: exit 0 only after comparisons without a mismatch; of a mismatch both rows by name."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from gridmill.cli import app
from gridmill.grid.env import GridEnv, Token, Validation
from gridmill.runs import session
from gridmill.workshop import validate
from gridmill.workshop.runner import validation_of

SMALL = ["trainer.batch_size=768", "trainer.minibatch_size=384", "trainer.bptt_horizon=16", "policy.hidden=16"]


@pytest.fixture(autouse=True)
def _own_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.chdir(tmp_path)
    before = dict(os.environ)
    yield
    os.environ.clear()
    os.environ.update(before)


def test_how_long() -> None:
    assert validate.steps_of("smoke", 2) == 20_000
    assert validate.steps_of("soak", 2) == 100_000
    assert validate.steps_of("soak", 64) / 64 > 10_000
    assert validate.steps_of("50_000", 2) == 50_000
    for text in ("sm", "0", "-3", "1.5", "true"):
        with pytest.raises(ValueError, match="expected smoke, soak or a number of agent-steps"):
            validate.steps_of(text, 2)


def test_a_short_one_compares_every_row(tmp_path: Path) -> None:
    result = CliRunner().invoke(app, ["validate", "1500", *SMALL, "run=v"])
    assert result.exit_code == 0, result.output
    assert "result: equal to the byte" in result.stdout
    log = (tmp_path / "runs" / "v" / "log.txt").read_text()
    assert "GRIDMILL_OBS_VALIDATION=1" in log
    assert "observation validation: 1,584 comparisons (792 per world), 0 mismatches" in log  # 2 x 24 x 33: a reset too
    assert json.loads((tmp_path / "runs" / "v" / "run.json").read_text())["switches"]["GRIDMILL_OBS_VALIDATION"] == "1"
    (path,) = (tmp_path / "artifacts" / "validate").glob("*.json")
    record = json.loads(path.read_text())
    found = record["validation"]
    assert (found["comparisons"], found["mismatches"], record["exit_code"]) == (1_584, 0, 0)


def test_a_mismatch_is_2_and_both_rows_by_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The planted fault in a build of its own is in tests/reliability/test_planted_fault.py."""
    wall, mine = Token(0, 1, "tag", 3, "wall"), Token(0, 1, "tag", 4, "mine")
    alike = Token(None, None, "episode_completion_pct", 7, "")
    first = {"world": 1, "episode": 0, "tick": 5, "agent": 3, "fast": [alike, mine], "reference": [alike, wall]}
    found = Validation(100, 1, 10, 30, 3.0, first)
    monkeypatch.setattr(GridEnv, "observation_validation", property(lambda self: found))
    result = CliRunner().invoke(app, ["validate", "700", *SMALL, "run=v"])
    assert result.exit_code == validate.MISMATCH, result.output
    log = (tmp_path / "runs" / "v" / "log.txt").read_text()
    assert "100 comparisons (50 per world), 1 mismatch, reference takes 3.0x" in " ".join(log.split())
    assert "  first mismatch: world 1, episode 0, tick 5, agent 3\n" in log
    assert "  fast (* not in the other):\n    episode_completion_pct=7, *(0,1) tag=mine\n" in log
    assert "  reference (* not in the other):\n    episode_completion_pct=7, *(0,1) tag=wall\n" in log
    (path,) = (tmp_path / "artifacts" / "validate").glob("*.json")
    assert json.loads(path.read_text())["exit_code"] == 2


def test_nothing_compared_is_not_0(monkeypatch: pytest.MonkeyPatch) -> None:
    assert validate.verdict(None, 2, "smoke") == (1, "nothing was compared")
    for comparisons, length, code in ((0, "smoke", 1), (19_000, "soak", 1), (20_000, "soak", 0)):
        counted = validation_of(Validation(comparisons, 0, 1, 1, 1.0, None))
        assert validate.verdict(counted, 2, length)[0] == code
    for name in ("GRIDMILL_OBS_VALIDATION", "METTAGRID_OBS_VALIDATION"):
        monkeypatch.setenv(name, "0")
        result = CliRunner().invoke(app, ["validate", "smoke"])
        assert result.exit_code == 64
        assert "=0 switches off the comparison that this command makes; unset it" in result.stderr
        monkeypatch.delenv(name)


@pytest.mark.parametrize("error", [RuntimeError("no threads left"), MemoryError()])
def test_what_kept_it_from_judging_is_no_mismatch(error: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise error

    monkeypatch.setattr(session, "train", fail)
    result = CliRunner().invoke(app, ["validate", "700", *SMALL])
    assert result.exit_code == 64
    assert result.stderr == f"gridmill: {str(error) or 'out of memory'}\n"


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["768", "trainer.total_timesteps=768"], "trainer.total_timesteps: give the length instead"),
        (["sm"], "expected smoke, soak or a number of agent-steps, got `sm`"),
        (["smoke", "--recipe", "prospector"], "prospector has only one observation path"),
        (["smoke", "--foo"], "No such option"),
        (["smoke", "trainer.treads=1"], "did you mean"),
    ],
)
def test_bad_input_is_64(words: list[str], text: str) -> None:
    result = CliRunner().invoke(app, ["validate", *words])
    assert result.exit_code == 64
    assert text in result.stderr
