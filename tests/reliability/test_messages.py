"""What is said of input that cannot be used: where it is, what came, and never a wall of text."""

from __future__ import annotations

import functools
import math
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tiny import berries, tiny
from typer.testing import CliRunner

import gridmill
from gridmill import cli, recipes
from gridmill.cli.judging import in_one_line
from gridmill.config import ConfigError
from gridmill.evaluate import evaluate
from gridmill.grid import AddStat, Rule
from gridmill.run import Run, SignalTerm
from gridmill.runs import overrides, presets, session, train

pytestmark = pytest.mark.F1

LONG = "x" * 20_000_000


def game_with(**changes: Any) -> Any:
    return type(berries()).load(berries().tree() | changes)


NAMES: dict[str, Callable[[], object]] = {
    "a game": lambda: gridmill.games.build(LONG),
    "a file": lambda: gridmill.games.build(f"{LONG}.py"),
    "a recipe": lambda: recipes.build(LONG),
    "a preset": lambda: presets.load(LONG),
    "a setting": lambda: overrides.apply(tiny(1), [f"trainer.{LONG}=1"]),
    "a value": lambda: overrides.apply(tiny(1), [f"trainer.gamma={LONG}"]),
    "a loss": lambda: Run.load(tiny(1).tree() | {"losses": {LONG: {}}}),
    "a kind": lambda: Run.load(tiny(1).tree() | {"game": {"kind": LONG}}),
    "an entry": lambda: game_with(objects={LONG: {"bad": 1}}),
    "a resource": lambda: gridmill.make(game_with(agent={"inventory": {LONG: 1}}), num_worlds=1),
    "a script": lambda: gridmill.make("toy", num_worlds=1, teacher=LONG),
    "a statistic": lambda: gridmill.make(berries(), num_worlds=1, signal=[SignalTerm(value=LONG, weight=1)]),
    "a policy": lambda: evaluate("toy", LONG, 1, 0),
}


@pytest.mark.parametrize("what", NAMES)
def test_a_name_of_megabytes_is_not_echoed(what: str) -> None:
    began = time.process_time()
    with pytest.raises(ValueError) as caught:
        NAMES[what]()
    assert time.process_time() - began < 10.0
    assert len(str(caught.value)) < 2000
    assert "xxx" in str(caught.value)


@pytest.mark.parametrize(
    ("write", "hint"),
    [
        (lambda: overrides.apply(tiny(1), ["trainer.total_timesteps=1.5M"]), "got '1.5M'; write 1_500_000 - at"),
        (lambda: tiny(1, trainer__total_timesteps="20k"), "got '20k'; write 20_000 - at"),
        (
            lambda: overrides.apply(tiny(1), ["game.resources=ore"]),
            "got 'ore'; a list of one is written `[\"x\"]` - at",
        ),
        # what is no whole number above 0, or not written in these digits, is not guessed at
        (lambda: tiny(1, trainer__total_timesteps="1.0005k"), "got '1.0005k' - at"),
        (lambda: tiny(1, trainer__total_timesteps="0k"), "got '0k' - at"),
        (lambda: tiny(1, trainer__total_timesteps="\u0661k"), "got '\u0661k' - at"),
        (lambda: Rule(then=AddStat(name="a")), "one alone is written with a comma: `(x,)` - at"),
    ],
)
def test_how_a_value_is_written_is_said(write: Callable[[], object], hint: str) -> None:
    with pytest.raises(ConfigError) as caught:
        write()
    assert hint in str(caught.value)


def test_a_value_in_itself_is_refused() -> None:
    value: list[Any] = []
    value.append(value)
    for deep in (value, functools.reduce(lambda inside, _: [inside], range(5000), [])):
        with pytest.raises(
            ConfigError, match=r"^expected plain data of at most 200 levels, got more - at `\$\.game\.resources`$"
        ):
            tiny(1).replace("game.resources", deep)


def test_a_value_that_cannot_be_shown_is_named_by_its_kind() -> None:
    deep: Any = functools.reduce(lambda inside, _: [inside], range(5000), [])
    for value, kind in ((10**5000, "an int"), (deep, "a list")):
        with pytest.raises(ConfigError, match=f"got {kind} - at"):
            Rule(then=value)
        with pytest.raises(ConfigError, match=f"cannot be changed; use .replace\\('then', {kind}\\)"):
            Rule().then = value


def test_a_command_says_one_line_of_any_error() -> None:
    assert in_one_line(ValueError("a\nb")) == "a b"
    assert in_one_line(MemoryError("std::bad_alloc")) == in_one_line(MemoryError()) == "out of memory"
    assert in_one_line(KeyError()) == "KeyError"
    assert len(in_one_line(ValueError(LONG))) <= 8000
    done = CliRunner().invoke(cli.app, ["explain", LONG])
    assert (done.exit_code, len(done.stderr.splitlines())) == (2, 1)


@pytest.mark.parametrize(
    ("change", "path"),
    [
        (lambda: berries().replace("agent.inventory", {"berry": math.nan}), "$.agent.inventory.berry"),
        (lambda: game_with(move_cost={"berry": -math.inf}), "$.move_cost.berry"),
        (lambda: tiny(1).replace("players", {"x": math.inf}), "$.players.x"),
        (lambda: tiny(1).replace("optimizer.eps", {"start": 1, "end": math.nan}), "$.optimizer.eps.end"),
        (lambda: game_with(rewards=[{"weight": math.nan}]), "$.rewards.0.weight"),
    ],
)
def test_what_is_no_number_is_named(change: Callable[[], object], path: str) -> None:
    with pytest.raises(ConfigError) as caught:
        change()
    assert caught.value.path == path
    assert caught.value.what.startswith("expected plain data (text, finite numbers, lists, dicts), got ")
    assert caught.value.what.rsplit(" ", 1)[-1] in ("nan", "inf", "-inf")


def test_other_things_that_are_no_data_are_named() -> None:
    deep: Any = []
    for _ in range(10_000):
        deep = [deep]
    values = {"{1, 2}": {1, 2}, "(1,) as a key": {(1,): 2}, "more levels than can be read": deep}
    for said, value in values.items():
        with pytest.raises(ConfigError) as caught:
            game_with(move_cost=value)
        assert caught.value.what.endswith(f", got {said}")
        assert caught.value.path.startswith("$.move_cost")


@pytest.mark.parametrize("name", ["num_worlds", "threads", "lanes", "min_first_episode"])
def test_numbers_of_any_size_are_refused_by_name(name: str) -> None:
    with pytest.raises(ValueError) as caught:
        gridmill.make("toy", **{"num_worlds": 1, "desync_episodes": True} | {name: 10**20})
    assert str(caught.value) == f"{name}: expected an int below 2**31, got {10**20}"


def test_no_memory_is_said_so() -> None:
    """Where the system gives none, although the machine has enough."""
    code = (
        "import resource, gridmill\n"
        "resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30))\n"
        "try: gridmill.make('arena', num_worlds=60_000)\n"
        "except MemoryError as error: print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout == "not enough memory for 60000 worlds of arena; lower num_worlds\n", done.stderr


def test_a_wide_network_is_told_of_before_it_is_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of 2 048 it took 32 s, in silence."""

    def made(*_: object) -> None:
        raise MemoryError("enough")

    monkeypatch.setattr(session, "Trainer", made)
    with pytest.raises(MemoryError, match="enough"):
        train(tiny(1, policy__hidden=2048), tmp_path, panel=False)
    told = "policy.hidden = 2048: drawing the initial weights may take 32 s, the first epoch longer\n"
    assert capsys.readouterr().out == told
