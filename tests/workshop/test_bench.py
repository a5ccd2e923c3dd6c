"""`gridmill bench step`: every flag, every exit code really reached, comparisons, peers and counts.

Clocks are scripted where a figure is asserted, so no test depends on how fast this machine is.
"""

from __future__ import annotations

import itertools
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner, Result

import gridmill
from gridmill.cli import app
from gridmill.workshop import machine, profile
from gridmill.workshop.bench import step as bench
from gridmill.workshop.profile import Load, Runner, swept

TINY = ["--agents", "4", "--map-size", "12", "--iterations", "20", "--warmup", "10", "--rounds", "4"]
Bench = Callable[..., Result]


class Clock:
    """Stands in for the time module: each measured stretch costs what the script says."""

    def __init__(self, costs: list[float], wall: list[float] | None = None) -> None:
        self._ends = {"cpu": itertools.cycle(costs), "wall": itertools.cycle(wall or costs)}
        self._now = {"cpu": 0.0, "wall": 0.0}
        self._running = {"cpu": False, "wall": False}

    def _read(self, name: str) -> float:
        if self._running[name]:
            self._now[name] += next(self._ends[name])
        self._running[name] = not self._running[name]
        return self._now[name]

    def process_time(self) -> float:
        return self._read("cpu")

    def perf_counter(self) -> float:
        return self._read("wall")


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> Bench:
    """Call the command with a clock whose rounds cost the given seconds, warm-up first."""
    monkeypatch.setattr(profile, "MEMCPY_SECONDS", 0.01)
    monkeypatch.setattr(machine, "perf_works", lambda: False)

    def call(
        *arguments: str, costs: tuple[float, ...] = (1.0,), wall: tuple[float, ...] = (), tiny: bool = True
    ) -> Result:
        monkeypatch.setattr(profile, "time", Clock(list(costs), list(wall)))
        return CliRunner().invoke(app, ["bench", "step", *(TINY if tiny else ()), *arguments])

    return call


def saved(path: Path) -> dict[str, Any]:
    record = json.loads(path.read_text(encoding="utf-8"))
    assert isinstance(record, dict)
    return record


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


def test_two_runs_of_the_same_code_that_differ_by_chance_do_not_look_like_a_change(run: Bench, tmp_path: Path) -> None:
    """What was seen once: 1.55x between two runs, each steady in itself."""
    then, now = tmp_path / "then.json", tmp_path / "now.json"
    assert run("--output", str(then), costs=(1.55,)).exit_code == 0
    result = run("--baseline", str(then), "--output", str(now), costs=(1.0,))
    assert result.exit_code == 0, result.output
    ratio = saved(now)["baselines"][0]["per_cpu_second"]
    assert ratio["ratio"] == pytest.approx(1.55)
    assert ratio["low"] < 1 < ratio["high"]


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
    for runner in (one, same, other):
        runner.close()


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


# ---- comparisons


def test_baselines_are_compared_by_rate_and_phase(run: Bench, tmp_path: Path) -> None:
    files = [str(tmp_path / f"{name}.json") for name in ("a", "b")]
    assert run("--profile", "--phase", "before", "--output", files[0], costs=(2.0,)).exit_code == 0
    assert run("--profile", "--output", files[1], costs=(1.0,)).exit_code == 0
    out = tmp_path / "now.json"
    result = run("--profile", "--baseline", *files, "--output", str(out), costs=(1.0,))
    assert result.exit_code == 0, result.output
    first, second = saved(out)["baselines"]
    assert (first["file"], first["phase"], first["per_cpu_second"]["ratio"]) == ("a.json", "before", 2.0)
    assert (second["file"], second["per_cpu_second"]["ratio"]) == ("b.json", 1.0)
    assert first["differs_in"] == []
    assert first["phases"]["observations"]["low"] <= first["phases"]["observations"]["ratio"]
    assert "against a.json (before), rate now / then: 2.000x [1.225, 3.265]" in result.stdout  # e ** (1.96 / 4)


def test_a_baseline_of_another_load_is_marked(run: Bench, tmp_path: Path) -> None:
    assert run("--output", str(tmp_path / "a.json")).exit_code == 0
    result = run("--worlds", "2", "--baseline", str(tmp_path / "a.json"))
    assert result.exit_code == 0, result.output
    assert "careful, not the same load: worlds differ" in result.stdout


def test_a_sweep_takes_equal_agent_steps_and_gives_ratios(run: Bench, tmp_path: Path) -> None:
    out = tmp_path / "run.json"
    result = run("--sweep", "worlds=1,2,4", "--output", str(out), costs=(1.0,))
    assert result.exit_code == 0, result.output
    runs = saved(out)["runs"]
    assert [r["label"] for r in runs] == ["worlds=1", "worlds=2", "worlds=4"]
    assert [r["rounds"][0]["steps"] for r in runs] == [20, 10, 5]
    assert [r["ratio_per_cpu_second"]["ratio"] for r in runs[1:]] == [1.0, 1.0]
    assert "ratio to worlds=1" in result.stdout


def test_a_sweep_over_games_is_one_load_per_game(run: Bench) -> None:
    loads = swept(Load(worlds=3), "game=toy,arena")
    assert loads == {"game=toy": Load(worlds=3, game="toy"), "game=arena": Load(worlds=3, game="arena")}
    assert "takes two or more different games, got `toy`" in run("--sweep", "game=toy").output


def test_overhead_compares_profiling_off_and_on(run: Bench, tmp_path: Path) -> None:
    out = tmp_path / "run.json"
    # The two take turns, so the script's first figure is always the one that is off.
    result = run("--overhead", "--output", str(out), costs=(1.00, 1.04))
    assert result.exit_code == 0, result.output
    off, on = saved(out)["runs"]
    assert off["rounds"][0]["phases"] is None
    assert on["rounds"][0]["phases"]["total"] > 0
    assert on["ratio_per_cpu_second"]["ratio"] == pytest.approx(1 / 1.04)
    assert "profiling on costs 4.0 % [4.0, 4.0] of CPU time" in result.stdout


def test_a_report_has_table_trend_and_plot(run: Bench, tmp_path: Path) -> None:
    for name, cost in (("a", 2.0), ("b", 1.0)):
        assert run("--phase", f"step {name}", "--output", str(tmp_path / f"{name}.json"), costs=(cost,)).exit_code == 0
    result = run("--report", str(tmp_path), tiny=False)
    assert result.exit_code == 0, result.output
    assert "toy, 4 agents, 1 world, 1 thread, 1 lane" in result.stdout
    assert "step a" in result.stdout
    assert "2.000x" in result.stdout
    assert "trend by commit" in result.stdout
    pytest.importorskip("matplotlib")
    assert (tmp_path / "report.png").read_bytes().startswith(b"\x89PNG")


def test_a_report_without_matplotlib_says_what_adds_it(
    run: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run("--output", str(tmp_path / "a.json")).exit_code == 0
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    result = run("--report", str(tmp_path), tiny=False)
    assert result.exit_code == 0, result.output
    assert "no plot: matplotlib is missing;" in result.stdout
    assert "-m pip install 'matplotlib" in result.stdout


# ---- peers

PEER = """
import argparse, json, sys
p = argparse.ArgumentParser()
for name in ("agents", "map-size", "density", "seed", "window", "tokens", "view"):
    p.add_argument("--" + name)
o = p.parse_args()
print("a library says hello", flush=True)
if {broken!r} == "start":
    print(json.dumps({{"error": "no such wheel"}}), flush=True); sys.exit(2)
print(json.dumps({{"ready": True, "peer": "slowgrid", "version": "1.2", "window": "disc", "num_actions": 9,
                  "tokens_per_row": 17.5, "asked": vars(o)}}), flush=True)
for line in sys.stdin:
    q = json.loads(line)
    if {broken!r} == "middle":
        sys.exit("it fell over")
    if "steps" in q:
        a = {{"agent_steps": q["steps"] * int(o.agents), "cpu_seconds": 10.0, "wall_seconds": 5.0}}
    else:
        a = {{"rss_bytes_per_world": 555000}}
    print(json.dumps(a), flush=True)
"""


@pytest.fixture
def peers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Path]:
    """A current directory with a worker under bench/peers and a python beside it."""

    def make(broken: str = "") -> Path:
        python = tmp_path / ".venv-peers" / "bin" / "python"
        python.parent.mkdir(parents=True)
        python.write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
        python.chmod(0o755)
        script = tmp_path / "bench" / "peers" / "slowgrid_step.py"
        script.parent.mkdir(parents=True)
        script.write_text(PEER.format(broken=broken))
        monkeypatch.chdir(tmp_path)
        return tmp_path

    return make


def test_peers_take_turns_and_the_ratio_is_printed(run: Bench, peers: Callable[..., Path]) -> None:
    folder = peers()
    result = run("--peers", "--output", "run.json", costs=(0.1,))
    assert result.exit_code == 0, result.output
    disc, peer, square = saved(folder / "run.json")["runs"]
    assert [r["label"] for r in (disc, peer, square)] == [
        "gridmill disc",
        "slowgrid 1.2 disc",
        "gridmill square",
    ]
    asked = peer["peer"]["asked"]
    assert (asked["agents"], asked["map_size"], asked["density"], asked["seed"]) == ("4", "12", "0.04", "42")
    assert (asked["window"], asked["tokens"], asked["view"]) == ("disc", "200", "11")
    assert peer["ratio_per_cpu_second"]["ratio"] == pytest.approx(100.0)
    assert peer["ratio_per_wall_second"]["ratio"] == pytest.approx(50.0)
    assert peer["resident_per_world"] == 555000
    assert disc["resident_per_world"] > 0
    assert "100.000x" in result.stdout
    assert "17.5" in result.stdout
    assert "555,000" in result.stdout


def test_a_peer_with_another_window_is_noted(run: Bench, peers: Callable[..., Path]) -> None:
    peers()
    result = run("--peers", "--window", "square")
    assert result.exit_code == 0, result.output
    assert "slowgrid has a disc window, ours is square: not the same work" in " ".join(result.stdout.split())


@pytest.mark.parametrize(
    ("broken", "text"),
    [
        ("start", "gridmill: no peer could start: peer slowgrid_step: no such wheel"),
        ("middle", "gridmill: peer slowgrid_step has ended: code 1, it fell over"),
    ],
)
def test_a_broken_peer_is_one_line(run: Bench, peers: Callable[..., Path], broken: str, text: str) -> None:
    peers(broken)
    result = run("--peers")
    assert result.exit_code == 64
    assert result.stderr.strip() == text


def test_without_the_peers_venv_one_line_says_the_command(
    run: Bench, peers: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = peers()
    (folder / ".venv-peers" / "bin" / "python").unlink()
    monkeypatch.setattr(machine, "checkout_root", lambda: None)
    result = run("--peers")
    assert result.exit_code == 64
    assert "`make peers`" in result.stderr
    assert len(result.stderr.strip().splitlines()) == 1


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
    monkeypatch.setattr(profile, "MEMCPY_SECONDS", 0.01)
    monkeypatch.setattr(profile, "COUNTED_STEPS", (2, 6))
    monkeypatch.setattr(profile, "time", Clock([1.0]))
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
        (["--report", "nowhere"], "--report takes a folder of saved runs, and `nowhere` is none"),
        (["--report", ".", "--peers"], "--report measures nothing, so it goes with no option but itself"),
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


@pytest.mark.parametrize("text", ["not json", "[]", '{"kind": "something else", "runs": [1]}'])
def test_a_file_that_is_no_saved_run_is_refused(run: Bench, tmp_path: Path, text: str) -> None:
    (tmp_path / "a.json").write_text(text)
    result = run("--baseline", str(tmp_path / "a.json"))
    assert result.exit_code == 64
    assert result.stderr.strip() == "gridmill: `a.json` is not a run saved by `gridmill bench step --output`"
