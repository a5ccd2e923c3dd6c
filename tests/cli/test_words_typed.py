"""What words on the command line mean: settings as options, runs by name, helps that are not cut."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer.main
from tiny import SUPPORT, tiny
from typer.testing import CliRunner, Result

from gridmill import cli
from gridmill.cli import named
from gridmill.cli.inspect import _apart, _Ticks
from gridmill.config import install
from gridmill.env import Env
from gridmill.runs import ending, train


def call(*arguments: str) -> Result:
    return CliRunner().invoke(cli.app, list(arguments))


# ---- settings as options


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        (["--trainer.gamma", "0.9"], "trainer.gamma=0.9"),
        (["--trainer.gamma=0.9"], "trainer.gamma=0.9"),
        (["--gamma", "0.9"], "trainer.gamma=0.9"),
        (["--seed", "3"], "seed=3"),
        (["--total-timesteps", "1e6"], "trainer.total_timesteps=1e6"),
        (["--learning_rate=3e-4"], "optimizer.learning_rate=3e-4"),
        (["--trainer.shared_advantage", "-1"], "trainer.shared_advantage=-1"),
        (["--trainer.gama", "0.9"], "trainer.gamma=0.9"),
        (["--trainer.masks", "--fresh"], "trainer.masks=VALUE"),
        (["--game.max_steps", "500"], "game.max_steps=500"),
        (["--players", '{"arena": 0.5}'], "players='{\"arena\": 0.5}'"),
    ],
    ids=" ".join,
)
def test_a_setting_that_is_typed_as_an_option(typed: list[str], meant: str) -> None:
    result = call("train", "ci", *typed)
    option = typed[0].partition("=")[0]
    said = f"gridmill: no option `{option}`; settings are written KEY=VALUE, without dashes: {meant}\n"
    assert (result.exit_code, result.stderr) == (2, said)


@pytest.mark.parametrize(
    ("command", "code"),
    [(["resume", "x"], 2), (["sweep", "ci"], 2), (["tune", "ci"], 2), (["bench", "train"], 2), (["validate"], 64)],
)
def test_every_command_with_settings_answers_so(command: list[str], code: int) -> None:
    result = call(*command, "--trainer.gamma", "0.9")
    assert result.exit_code == code
    assert result.stderr.endswith("settings are written KEY=VALUE, without dashes: trainer.gamma=0.9\n")


def test_an_option_that_is_like_no_setting_is_answered_with_options() -> None:
    result = call("train", "ci", "--fressh")
    assert result.exit_code == 2
    assert "--fressh" in result.stderr
    assert "--fresh" in result.stderr.replace("--fressh", "")
    assert "KEY=VALUE, without dashes" not in result.stderr


# ---- runs by name


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with two short runs."""
    place = tmp_path_factory.mktemp("place")
    for name, seed in (("one", 1), ("two", 2)):
        train(tiny(2, run=name, seed=seed), place / "runs", panel=False)
    return place


@pytest.fixture(autouse=True)
def here(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if "place" in request.fixturenames:
        monkeypatch.chdir(request.getfixturevalue("place"))


def test_eval_takes_names_and_plays_the_runs_own_policy(place: Path) -> None:
    said = {
        tuple(words): json.loads(call("eval", *words, "--episodes", "2", "--json").stdout)["results"]
        for words in (["one"], ["runs/one"], ["one", "--policy", "one"], ["one", "--policy", "random"])
    }
    by_name, by_folder, twice, at_random = said.values()
    assert [result["policy"] for result in by_name] == ["runs/one"]
    assert by_name[0]["score"] == by_folder[0]["score"] == twice[0]["score"]
    assert at_random[0]["policy"] == "random"


@pytest.mark.parametrize("typed", ["one@best", "one@last", "runs/one@2", "runs/one/checkpoints/epoch-00000002"])
def test_eval_of_a_checkpoint_plays_the_game_of_its_run_with_it(typed: str, place: Path) -> None:
    (result,) = json.loads(call("eval", typed, "--episodes", "2", "--json").stdout)["results"]
    assert result["policy"] == typed.replace("one", "runs/one", not typed.startswith("runs/"))
    (whole,) = json.loads(call("eval", "one", "--episodes", "2", "--json").stdout)["results"]
    assert (result["sha256"], result["score"]) == (whole["sha256"], whole["score"])


def test_two_checkpoints_of_a_run_are_two_policies_of_one_game(place: Path) -> None:
    results = json.loads(call("eval", "one@2", "one@best", "--episodes", "1", "--json").stdout)["results"]
    assert [(result["game"], result["policy"]) for result in results] == [
        ("one", "runs/one@2"),
        ("one", "runs/one@best"),
    ]
    assert call("watch", "one@2", "--to", "3").stdout == call("watch", "one", "--to", "3").stdout


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        (["one@7"], "expected a checkpoint of epoch 7, got none - in `runs/one`"),
        (["one@worst"], "expected @last, @best or @EPOCH after a run's folder, got `runs/one@worst`"),
        (["one", "nosuch"], "unknown game or run `nosuch`"),
        (["toy", "--policy", "random", "--policy", "nosuch"], "policy: expected random, "),
        (["toy", "--policy", "random", "--policy", "script:arena"], "policy: no script `arena` for toy"),
        (["toy", "--players", "arena=0.5"], "players: no script `arena` for toy"),
        (["toy", "--players", "random=1"], "players: expected shares that leave an agent for the policy, got all"),
        (["toy", "--policy", "nowhere.py:act"], "nowhere.py"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_eval_refuses_before_it_prints_or_plays(
    typed: list[str], said: str, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Env, "step", lambda *_: pytest.fail("it was played"))
    result = call("eval", *typed, "--episodes", "1")
    assert (result.exit_code, result.stdout) == (2, "")
    assert len(result.stderr.splitlines()) == 1
    assert said in result.stderr


def test_show_explain_and_diff_take_runs(place: Path) -> None:
    first = call("show", "one", "--steps", "19")
    assert first.exit_code == 0, first.output
    assert first.stdout.startswith("world 0, tick 19, ")
    assert first.stdout == call("show", "runs/one", "--steps", "19").stdout
    at_random = call("show", f"{SUPPORT / 'tiny.py'}:berries", "--steps", "19")
    assert at_random.stdout.splitlines()[0] == first.stdout.splitlines()[0]
    assert first.stdout != at_random.stdout
    assert call("explain", "one").stdout.startswith("berries: ")
    differ = call("diff", "one", "two")
    assert (differ.exit_code, differ.stdout) == (0, "seed: 1 -> 2\n")
    assert call("diff", "one", "one").stdout == "one and one do not differ\n"
    assert "num_agents: 2 -> 20" in " ".join(call("diff", "one", "toy").stdout.split())  # beside a game: its game


def test_watch_prints_what_the_policy_does(place: Path) -> None:
    watched = call("watch", "one", "--from", "3", "--to", "5")
    assert watched.exit_code == 0, watched.output
    assert "tick 3" in watched.stdout
    assert "tick 4" in watched.stdout


def test_report_takes_names(place: Path) -> None:
    result = call("report", "one", "two", "--no-baselines")
    assert (result.exit_code, result.stdout) == (0, "wrote runs/compare.html\n")


def test_a_run_that_is_not_there(place: Path) -> None:
    result = call("resume", "onee")
    expected = (
        "gridmill: expected a run's name, or the folder of a run or checkpoint, got `onee`; did you mean `one`?\n"
    )
    assert (result.exit_code, result.stderr) == (2, expected)
    said = call("resume", "zzz", "--runs-dir", "nowhere").stderr
    assert said.endswith(f"got `zzz`; `{install.command('runs')}` lists the existing runs\n")
    expected = "gridmill: policy: expected a run's name, random, script:NAME or FILE.py:function, got `onee@best`"
    for words in (["eval", "toy", "--policy", "onee@best"], ["policy", "info", "onee@best"]):
        result = call(*words)
        assert (result.exit_code, result.stderr) == (2, f"{expected}; did you mean `one`?\n")
    result = call("report", "onee")
    assert (result.exit_code, result.stderr.endswith("got `onee`; did you mean `one`?\n")) == (2, True)
    (place / "empty").mkdir()
    said = call("report", "empty").stderr
    assert said == "gridmill: expected the folder of a run, got `empty`, which has no metrics.jsonl\n"


def test_a_game_is_meant_where_a_run_has_its_name(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (place / "runs" / "toy").mkdir(exist_ok=True)
    (place / "runs" / "toy" / "run.json").write_text((place / "runs" / "one" / "run.json").read_text())
    assert named.game_of("toy").name == "toy"
    (place / "runs" / "toy" / "checkpoints").mkdir(exist_ok=True)
    assert json.loads(call("eval", "toy", "--episodes", "1", "--json").stdout)["results"][0]["policy"] == "random"
    assert ending.word(Path("runs/toy")) == "runs/toy"
    assert ending.word(Path("runs/one")) == "one"
    (place / "one").mkdir()  # a copy, which commands would take
    assert ending.word(Path("runs/one")) == "runs/one"
    (place / "one").rmdir()
    (place / "runs" / "random").mkdir(exist_ok=True)
    (place / "runs" / "random" / "run.json").touch()
    assert [named.policy_name(name) for name in ("random", "script:one")] == ["random", "script:one"]
    assert [named.policy_name(f"one{more}") for more in ("", "@best", "#01234567")] == [
        "runs/one",
        "runs/one@best",
        "runs/one#01234567",
    ]
    assert named.game_of("runs/toy").name == "berries"


@pytest.mark.parametrize(
    ("text", "meant"),
    [("one", "runs/one"), ("one@best", "runs/one@best"), ("runs/one", "runs/one"), ("random", "random")],
)
def test_policies_by_name(text: str, meant: str, place: Path) -> None:
    assert named.policy_name(text) == meant


# ---- eval on a terminal


def test_policies_stay_apart_in_a_narrow_column() -> None:
    long = [f"somewhere/{'deep/' * 8}run-{n}/checkpoints/epoch-00000010" for n in "ab"]
    shown = _apart([*long, "random"], 24)
    assert len(set(shown.values())) == 3
    assert shown["random"] == "random"
    apart = _apart(["a" * 40, "b" * 40], 20)
    assert {len(name) for name in apart.values()} == {20}


class Terminal:
    def __init__(self) -> None:
        self.text = ""

    def isatty(self) -> bool:
        return True

    def write(self, text: str) -> int:
        self.text += text
        return len(text)

    def flush(self) -> None:
        pass


def test_a_terminal_sees_how_far_an_evaluation_is(monkeypatch: pytest.MonkeyPatch) -> None:
    out = Terminal()
    monkeypatch.setattr(sys, "stderr", out)
    monkeypatch.setattr(_Ticks, "PAUSE", 0.0)
    with _Ticks("script:arena, 2 of 3 policies", 100) as ticks:
        ticks(350, 7)
    assert out.text.startswith("\rscript:arena, 2 of 3 policies: tick 350, 7 of 100 episodes ")
    assert out.text.endswith(f"\r{' ' * 79}\r")  # nothing stays


def test_a_pipe_sees_nothing_of_it(capsys: pytest.CaptureFixture[str]) -> None:
    result = call("eval", "toy", "--episodes", "1")
    assert result.exit_code == 0
    assert result.stderr == ""


# ---- texts that are not cut


def commands(group: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    for name, command in group.commands.items():
        yield (*path, name)
        if hasattr(command, "commands"):
            yield from commands(command, (*path, name))


ALL = [(), *commands(typer.main.get_command(cli.app))]


@pytest.mark.parametrize("path", ALL, ids=lambda path: " ".join(path) or "gridmill")
def test_no_help_is_cut(path: tuple[str, ...]) -> None:
    text = call(*path, "--help").stdout
    assert not re.search(r"\w\.\.\.$", text, re.MULTILINE), text
    assert max(map(len, text.splitlines())) <= 80


def test_every_command_is_listed_with_its_whole_sentence() -> None:
    text = " ".join(call("--help").stdout.split())
    assert (
        "explain Explain a game before training: production chains, earliest rewards, upper bounds, warnings. diff"
        in text
    )


@pytest.mark.parametrize("command", ["games", "recipes"])
def test_no_list_is_cut(command: str) -> None:
    text = call(command).stdout
    assert "..." not in text
    assert max(map(len, text.splitlines())) <= 80
