"""`gridmill bench step` beside something else: saved runs, a sweep, profiling, the summary of a folder."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from scripted_bench import Bench, saved, scripted_bench

from gridmill.workshop.runner import Load, swept


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> Bench:
    return scripted_bench(monkeypatch)


def test_two_runs_of_the_same_code_that_differ_by_chance_do_not_look_like_a_change(run: Bench, tmp_path: Path) -> None:
    """What was seen once: 1.55x between two runs, each steady in itself."""
    then, now = tmp_path / "then.json", tmp_path / "now.json"
    assert run("--output", str(then), costs=(1.55,)).exit_code == 0
    result = run("--baseline", str(then), "--output", str(now), costs=(1.0,))
    assert result.exit_code == 0, result.output
    ratio = saved(now)["baselines"][0]["per_cpu_second"]
    assert ratio["ratio"] == pytest.approx(1.55)
    assert ratio["low"] < 1 < ratio["high"]


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
    assert "against a.json (before), rate now / then: 2.000x [1.275, 3.137]" in result.stdout  # e ** 0.45


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


@pytest.mark.parametrize("text", ["not json", "[]", '{"kind": "something else", "runs": [1]}'])
def test_a_file_that_is_no_saved_run_is_refused(run: Bench, tmp_path: Path, text: str) -> None:
    (tmp_path / "a.json").write_text(text)
    result = run("--baseline", str(tmp_path / "a.json"))
    assert result.exit_code == 64
    assert result.stderr.strip() == "gridmill: `a.json` is not a run saved by `gridmill bench step --output`"
