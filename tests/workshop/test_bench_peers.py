"""`gridmill bench step --peers`: another engine in a process of its own, which here only answers."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from scripted_bench import Bench, saved, scripted_bench

from gridmill.workshop import machine

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
def run(monkeypatch: pytest.MonkeyPatch) -> Bench:
    return scripted_bench(monkeypatch)


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
