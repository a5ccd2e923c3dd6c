"""`gridmill bench step`: every exit code really reached, what is measured and counted, and bad input."""

from __future__ import annotations

import itertools
import json
import sys
from pathlib import Path

import numpy as np
import pytest
from scripted_bench import TINY, Bench, Clock, saved, scripted_bench
from typer.testing import CliRunner

import gridmill
from gridmill import recipes
from gridmill.cli import app
from gridmill.workshop import machine, runner
from gridmill.workshop.bench import step as bench
from gridmill.workshop.runner import Load, Runner


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> Bench:
    return scripted_bench(monkeypatch)


# ---- exit codes


def test_steady_rounds_end_with_0(run: Bench) -> None:
    result = run()
    assert result.exit_code == 0, result.output
    assert "result: stable" in result.stdout


def test_a_cv_above_20_percent_ends_with_1(run: Bench) -> None:
    result = run(costs=(1.0, 1.0, 2.0))
    assert result.exit_code == 1
    assert "result: unstable: a CV is above 20 %" in result.stdout


def test_a_cv_of_the_wall_clock_alone_ends_with_1(run: Bench) -> None:
    result = run(costs=(1.0,), wall=(1.0, 1.0, 2.0))
    assert result.exit_code == 1
    assert "result: unstable: a CV is above 20 %" in result.stdout


def test_what_cannot_be_written_is_refused_before_anything_is_measured(run: Bench, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for path in (tmp_path, tmp_path / "file" / "run.json"):
        result = run("--output", str(path))
        assert result.exit_code == 64
        assert result.stdout == ""
        assert len(result.stderr.strip().splitlines()) == 1


class Disagreeing:
    """What an env reports whose two observation paths differ."""

    comparisons, mismatches, fast_ns, reference_ns, ratio = 80, 3, 10, 45, 4.5
    first_mismatch = {"world": 0, "tick": 7, "agent": 2, "fast": ["tag wall"], "reference": ["tag agent"]}  # noqa: RUF012


@pytest.mark.parametrize("costs", [(1.0,), (1.0, 1.0, 2.0)])
def test_mismatches_end_with_2_and_win_over_1(
    run: Bench, monkeypatch: pytest.MonkeyPatch, costs: tuple[float, ...]
) -> None:
    monkeypatch.setattr(type(gridmill.make("toy", num_worlds=1)), "observation_validation", Disagreeing())
    result = run(costs=costs)
    assert result.exit_code == 2
    assert "80, 3 differ" in result.stdout
    assert "tag agent" in result.stdout
    assert "result: the fast observations differ from the reference" in result.stdout


def test_validation_is_reported_and_clean(run: Bench, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("GRIDMILL_OBS_VALIDATION", "1")
    result = run("--output", str(tmp_path / "run.json"))
    assert result.exit_code == 0, result.output
    found = saved(tmp_path / "run.json")["runs"][0]["validation"]
    assert found["mismatches"] == 0
    assert found["comparisons"] >= 4 * (10 + 4 * 20)
    assert f"{found['comparisons']:,}, 0 differ" in result.stdout
    assert "reference / fast time" in result.stdout


# ---- what is measured


def test_defaults_are_the_documented_ones() -> None:
    settings = bench.Settings()
    assert (settings.iterations, settings.rounds, settings.warmup) == (20_000, 20, 150_000)
    load = settings.load
    assert (load.game, load.seed, load.worlds, load.threads, load.lanes) == ("toy", 42, 1, 1, 1)
    by_default, spelled_out = (
        gridmill.games.build("toy"),
        gridmill.games.build("toy", num_agents=20, map_size=40, density=0.04),
    )
    assert by_default == spelled_out


def test_rates_are_agent_steps_over_time(run: Bench, tmp_path: Path) -> None:
    result = run("--output", str(tmp_path / "run.json"), "--worlds", "3", costs=(0.5,))
    assert result.exit_code == 0, result.output
    record = saved(tmp_path / "run.json")
    one = record["runs"][0]
    assert [r["agent_steps"] for r in one["rounds"]] == [20 * 3 * 4] * 4
    assert one["per_cpu_second"]["median"] == 20 * 3 * 4 / 0.5
    assert one["per_wall_second"]["median"] == 20 * 3 * 4 / 0.5
    assert one["bytes_written_per_agent_step"] == 3 * one["tokens_per_row"]
    assert one["allocations_per_tick"] == 0
    assert one["memcpy"]["row"]["bytes"] == 3 * one["num_tokens"]
    assert one["memcpy"]["row"]["share"] == pytest.approx(480 / one["memcpy"]["row"]["rows_per_second"])
    assert one["memory"]["world"] > 0
    assert one["memory"]["rows"] >= 4 * 2 * 3 * one["num_tokens"]
    assert record["exit_code"] == 0


def test_the_file_names_machine_commit_and_command_but_no_place(run: Bench, tmp_path: Path) -> None:
    assert run("--output", str(tmp_path / "deep" / "run.json"), "--phase", "first").exit_code == 0
    text = (tmp_path / "deep" / "run.json").read_text(encoding="utf-8")
    record = json.loads(text)
    assert record["phase"] == "first"
    assert record["machine"]["cpu"]["model"]
    assert record["machine"]["native"]["isa"]
    assert record["runs"][0]["load"]["seed"] == 42
    import socket

    assert str(Path.home()) + "/" not in text
    assert str(tmp_path) not in text
    assert f'"{socket.gethostname()}"' not in text


def test_paths_are_cut_to_their_names() -> None:
    text = "/usr/bin/g++ -I/opt/x/include -O3 results/a.json --output=/tmp/r/b.json 3/4"
    assert machine.without_paths(text) == "g++ -Iinclude -O3 results/a.json --output=b.json 3/4"


def test_lanes_take_the_same_steps(run: Bench) -> None:
    hashes = []
    for lanes in (1, 2):
        runner = Runner(Load(agents=4, map_size=12, worlds=4, lanes=lanes))
        runner.run(50)
        hashes.append(runner.env.state_hash().tolist())
        runner.close()
    assert hashes[0] == hashes[1]
    assert run("--worlds", "4", "--lanes", "2").exit_code == 0


def test_the_pool_of_actions_is_seeded_and_leads_nobody_astray() -> None:
    one, same, other = (Runner(Load(agents=4, map_size=12, seed=seed)) for seed in (1, 1, 2))
    drawn = [np.array(list(itertools.islice(r.pool, 4000))) for r in (one, same, other)]
    assert (drawn[0] == drawn[1]).all()
    assert (drawn[0] != drawn[2]).any()
    shares = np.bincount(drawn[0].ravel(), minlength=one.env.num_actions) / drawn[0].size
    assert shares.size == one.env.num_actions
    assert np.abs(shares - 1 / one.env.num_actions).max() < 0.02
    for each in (one, same, other):
        each.close()


def test_profile_prints_every_phase_or_folds_it(run: Bench, tmp_path: Path) -> None:
    result = run("--profile", "--output", str(tmp_path / "run.json"))
    assert result.exit_code == 0, result.output
    phases = saved(tmp_path / "run.json")["runs"][0]["rounds"][0]["phases"]
    assert {"reset", "events", "actions", "on_tick", "aoe", "collectives", "observations"} <= set(phases)
    assert "observations" in result.stdout
    assert "Python and binding" in result.stdout


def test_the_window_can_be_chosen(run: Bench, tmp_path: Path) -> None:
    tokens = {}
    for window in ("square", "disc"):
        assert run("--window", window, "--output", str(tmp_path / "run.json")).exit_code == 0
        tokens[window] = saved(tmp_path / "run.json")["runs"][0]["tokens_per_row"]
    assert tokens["disc"] < tokens["square"]


def test_a_game_from_a_file(run: Bench, tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text(
        "import gridmill\n"
        "def mine(num_agents=3): return gridmill.games.toy(num_agents=num_agents, map_size=9)\n"
        "def bigger(): return gridmill.games.toy(num_agents=6, map_size=9)\n"
    )
    few = ["--iterations", "5", "--warmup", "0", "--rounds", "2"]
    for game, agents in ((f"{file}", 3), (f"{file}:bigger", 6)):
        result = run("--game", game, "--output", str(tmp_path / "run.json"), *few, tiny=False)
        assert result.exit_code == 0, result.output
        assert saved(tmp_path / "run.json")["runs"][0]["num_agents"] == agents
    result = run("--game", f"{file}:biger", *few, tiny=False)
    assert result.exit_code == 64
    assert result.stderr.strip() == "gridmill: no function `biger` in `mine.py`; did you mean `bigger`?"


def test_the_game_of_a_recipe(run: Bench, tmp_path: Path) -> None:
    few = ["--iterations", "5", "--warmup", "0", "--rounds", "2"]
    result = run("--game", "ci", "--output", str(tmp_path / "run.json"), *few, tiny=False)
    assert result.exit_code == 0, result.output
    assert saved(tmp_path / "run.json")["runs"][0]["num_agents"] == recipes.build("ci").game.num_agents == 24
    result = run("--game", "ci", "--agents", "3", *few, tiny=False)
    assert result.exit_code == 64
    expected = "gridmill: --agents: expected a game with this size, got the recipe `ci`; give its game"
    assert result.stderr.strip() == expected


# ---- instructions

COUNTER = """#!{python}
import subprocess, sys
words = sys.argv[1:]
command = words[words.index("--") + 1 :] if "--" in words else words[2:]
code = subprocess.run(command).returncode
steps = int(command[-1]) if command[-1].isdigit() else 0
{report}
sys.exit(code)
"""
PERF = 'print(f"{5_000_000 + 4000 * steps},,instructions:u,1,,", file=open(words[words.index("-o") + 1], "w"))'
NO_PERF = 'print("<not supported>,,instructions:u,0,,", file=open(words[words.index("-o") + 1], "w"))'
CALLGRIND = 'print(f"==1== Collected : {7_000_000 + 6000 * steps}", file=sys.stderr)'


@pytest.mark.parametrize(
    ("tools", "asked", "tool", "per_agent_step"),
    [
        ({"perf": PERF}, [], "perf", 1000.0),
        ({"perf": NO_PERF, "valgrind": CALLGRIND}, ["--instructions"], "callgrind", 1500.0),
        ({"perf": NO_PERF, "valgrind": CALLGRIND}, [], None, None),
    ],
)
def test_instructions_are_the_difference_of_two_children(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    tools: dict[str, str],
    asked: list[str],
    tool: str | None,
    per_agent_step: float | None,
) -> None:
    for name, report in tools.items():
        script = tmp_path / name
        script.write_text(COUNTER.format(python=sys.executable, report=report))
        script.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.setattr(runner, "MEMCPY_SECONDS", 0.01)
    monkeypatch.setattr(runner, "COUNTED_STEPS", (2, 6))
    monkeypatch.setattr(runner, "time", Clock([1.0]))
    result = CliRunner().invoke(app, ["bench", "step", *TINY, *asked, "--output", str(tmp_path / "run.json")])
    assert result.exit_code == 0, result.output
    found = saved(tmp_path / "run.json")["runs"][0]["instructions"]
    if tool is None:
        assert found == {"reason": "perf cannot count here; --instructions counts with valgrind"}
        assert "instructions per agent-step   not counted" in result.stdout
    else:
        assert (found["tool"], found["per_agent_step"]) == (tool, per_agent_step)
        assert found["path"] == gridmill._native.build_info()["isa"]
        assert f"{per_agent_step:.0f} ({tool}, {found['path']} path)" in result.stdout


# ---- bad input


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["--rounds", "0"], "--rounds must be at least 1, got 0"),
        (["--warmup", "-1"], "--warmup must be at least 0, got -1"),
        (["--worlds", "0"], "--worlds must be at least 1, got 0"),
        (
            ["--peers", "--overhead"],
            "--peers, --sweep and --overhead are different comparisons; give one of them",
        ),
        (["--peers", "--game", "arena"], "--peers compares the game toy alone, got --game arena"),
        (
            ["--sweep", "wrlds=1,2"],
            "--sweep takes one of worlds, agents, threads, lanes, map_size, game as NAME=N,N,...,",
        ),
        (
            ["--sweep", "worlds=4"],
            "--sweep worlds takes two or more different numbers of at least 1, got `4`",
        ),
        (["--report", "nowhere"], "--report takes a folder of saved runs, got `nowhere`"),
        (["--report", ".", "--peers"], "--report measures nothing, so it cannot be combined with other options"),
        (["stray.json"], "unexpected argument `stray.json`; only --baseline takes several files"),
        (["--baseline", "nowhere.json"], "No such file"),
        (["--game", "no/such/file.py"], "no game file `no/such/file.py`"),
    ],
)
def test_bad_input_is_one_line_and_64(
    run: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], text: str
) -> None:
    monkeypatch.chdir(tmp_path)
    result = run(*arguments)
    assert result.exit_code == 64
    assert text in result.stderr
    assert len(result.stderr.strip().splitlines()) == 1
    assert "Traceback" not in result.output
