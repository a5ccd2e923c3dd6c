"""`gridmill profile`: the phase table adds up, small phases are folded, a missing game is skipped aloud."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

import gridmill
from gridmill.cli import app
from gridmill.runs.core_report import NOT_PHASES, phase_lines
from gridmill.workshop import profile

QUICK = ["profile", "step", "--steps", "30", "--warmup", "5"]


def test_the_table_by_hand() -> None:
    phases = {"actions": 200_000, "aoe": 3_000, "observations": 790_000, "rewards": 7_000}
    lines = phase_lines({**phases, "total": 1_000_000, "wall": 1_100_000}, steps=100, wall_seconds=0.002)
    assert [" ".join(line.split()) for line in lines] == [
        "phase us per step of native of wall",
        "actions 2.000 20.0 % 10.0 %",
        "observations 7.900 79.0 % 39.5 %",
        "2 phases under 1 % 0.100 1.0 % 0.5 %",
        "native step 10.000 100.0 % 50.0 %",
        "around the phases 1.000 5.0 %",
        "Python and binding 9.000 45.0 %",
        "wall clock 20.000 100.0 %",
    ]


def test_threads_are_said_to_be_summed() -> None:
    lines = phase_lines({"actions": 2_000, "total": 2_000, "wall": 1_100}, steps=1, wall_seconds=2e-6)
    assert lines[-1] == "(phases are summed over threads, so they exceed the wall clock)"


def test_every_game_that_exists_is_profiled_and_the_rest_skipped_with_a_reason() -> None:
    result = CliRunner().invoke(app, QUICK)
    assert result.exit_code == 0, result.output
    for game in profile.PROFILED:
        if game in gridmill.games.names():
            assert f"\n{game}: " in result.stdout
        else:
            assert f"\n{game}: skipped: " in result.stdout
            assert f"`{game}`" in " ".join(result.stdout.split())
    assert "toy: 20 agents, 1 world, 1 thread, 30 steps" in result.stdout
    assert "observations" in result.stdout
    assert max(map(len, result.stdout.splitlines())) <= 80


def test_json_holds_the_phases_and_the_machine() -> None:
    result = CliRunner().invoke(app, [*QUICK, "--game", "toy", "--worlds", "3", "--threads", "2", "--json"])
    assert result.exit_code == 0, result.output
    record = json.loads(result.stdout)
    (toy,) = record["games"]
    assert (toy["game"], toy["agents"], toy["steps"], toy["warmup"]) == ("toy", 20, 30, 5)
    assert (toy["load"]["worlds"], toy["load"]["threads"]) == (3, 2)
    named = {name: ns for name, ns in toy["phases_ns"].items() if name not in NOT_PHASES}
    assert {"reset", "actions", "observations", "rewards", "truncation", "autoreset"} <= set(named)
    assert sum(named.values()) == toy["phases_ns"]["total"]
    assert named["observations"] > 0
    assert record["skipped"] == []
    assert record["machine"]["cpu"]["cores"] >= 1


def test_a_teacher_is_a_phase() -> None:
    command = [*QUICK, "--game", "arena", "--game", "toy", "--worlds", "2", "--teacher", "arena"]
    result = CliRunner().invoke(app, command)
    assert result.exit_code == 0, result.output
    assert "script arena: " in result.stdout
    assert "\nteacher  " in result.stdout
    assert "toy: skipped: --teacher: no script `arena` for toy - its scripts: none" in result.stdout
    (arena,) = json.loads(CliRunner().invoke(app, [*command, "--json"]).stdout)["games"]
    assert arena["load"]["teacher"] == "arena"
    assert 0 < arena["phases_ns"]["teacher"] < arena["phases_ns"]["total"]


def test_one_unknown_game_among_others_is_skipped() -> None:
    result = CliRunner().invoke(app, [*QUICK, "--game", "toy", "--game", "tyo"])
    assert result.exit_code == 0, result.output
    assert "tyo: skipped: " in result.stdout
    assert "`toy`" in result.stdout


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["--game", "tyo"], "did you mean `toy`?"),
        (["--game", "tyo", "--game", "tyoo"], "tyoo: "),
        (["--steps", "0"], "--steps must be at least 1, got 0"),
        (["--warmup", "-1"], "--warmup must be at least 0, got -1"),
    ],
)
def test_bad_input_is_one_line_and_2(arguments: list[str], text: str) -> None:
    result = CliRunner().invoke(app, ["profile", "step", *arguments])
    assert result.exit_code == 2
    assert text in result.stderr
    assert len(result.stderr.strip().splitlines()) == 1
