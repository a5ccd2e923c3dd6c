"""`gridmill gate`: floors only rise, a planted slowdown fails, and the tree's floors are honest."""

from __future__ import annotations

import functools
import io
import json
import shutil
import subprocess
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from typer.testing import CliRunner

from gridmill.cli import app
from gridmill.workshop import gate

ROOT = Path(__file__).resolve().parents[2]
WHEN = {"date": "2026-11-17T00:00:00", "commit": "abc"}
QUIET: Any = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
SAME = {"cpu": True, "isa": True, "compiler": True}


def found(instructions: float, ratio: float) -> dict:
    return {"instructions": instructions, "ratio": ratio, "low": ratio, "high": ratio, "ratios": [ratio]}


def test_a_floor_only_rises_unless_there_is_a_reason() -> None:
    first = gate.raised(None, found(1000, 10), "", WHEN)
    assert (first["instructions"], first["ratio"]) == (1000, 10)
    better = gate.raised(first, found(900, 9), "", WHEN)
    assert (better["instructions"], better["ratio"]) == (900, 10)
    assert gate.raised(better, found(1200, 8), "", WHEN) == better
    lower = gate.raised(better, found(1200, 8), "rules see more", WHEN)
    assert (lower["instructions"], lower["ratio"]) == (1200, 8)
    assert lower["history"][-1]["reason"] == "rules see more"
    assert gate.lowered_without_reason({"games": {"toy": lower}}) == []
    del lower["history"][-1]["reason"]
    assert gate.lowered_without_reason({"games": {"toy": lower}}) == ["toy"]


@pytest.mark.parametrize(
    ("instructions", "ratio", "said"),
    [
        (1_049, 9.1, []),
        (1_051, 10.0, ["1051 instructions per agent-step, 1.051x of the floor"]),
        (1_000, 8.9, ["time ratio 8.90, 0.890x of the floor"]),
    ],
)
def test_the_verdict_by_hand(instructions: float, ratio: float, said: list[str]) -> None:
    floor = {"instructions": 1_000, "ratio": 10.0}
    assert gate.judge(found(instructions, ratio), floor, SAME) == said
    assert gate.judge(found(instructions, ratio), floor, dict.fromkeys(SAME, False)) == []


@pytest.mark.parametrize(("differs", "judged"), [("cpu", "instructions"), ("isa", "time"), ("compiler", "time")])
def test_what_depends_on_what_differs_is_not_judged(differs: str, judged: str) -> None:
    floor = {"instructions": 1_000, "ratio": 10.0}
    (said,) = gate.judge(found(2_000, 5.0), floor, SAME | {differs: False})
    assert judged in said


def test_time_is_tried_again_before_it_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    tries = iter([[5.0] * 5, [9.5] * 5, [1.0] * 5])
    monkeypatch.setattr(gate, "count", lambda game, planted: 100.0)
    monkeypatch.setattr(gate, "time_ratios", lambda game, rounds, planted: next(tries))
    assert gate.measure("toy", gate.Settings(), {"ratio": 10.0})["ratio"] == 9.5
    assert len(list(tries)) == 1


@pytest.fixture
def _callgrind() -> None:
    """Skip where callgrind cannot be told to begin counting: it is missing, or ptrace is forbidden (containers)."""
    if shutil.which("valgrind") is None or shutil.which("callgrind_control") is None:
        pytest.skip("no valgrind here")
    command = ["valgrind", "--tool=callgrind", "--instr-atstart=no", "--callgrind-out-file=/dev/null", "cat"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as child:
        try:
            assert child.stdin is not None
            assert child.stdout is not None
            child.stdin.write(b"x\n")
            child.stdin.flush()
            if child.stdout.readline() != b"x\n":
                pytest.skip("valgrind does not run here")
            subprocess.run(["callgrind_control", "--instr=on", str(child.pid)], check=True, timeout=60, **QUIET)
        except (subprocess.SubprocessError, OSError) as error:
            pytest.skip(f"callgrind_control does not work here: {error}")
        finally:
            child.kill()


@pytest.mark.L3
@pytest.mark.usefixtures("_callgrind")
def test_a_planted_slowdown_of_a_fifth_fails_and_none_passes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, record_property
) -> None:
    """Counts are the same in every run, so once each is enough here; times are taken as if the machine were idle."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(gate, "count", functools.cache(gate.count))
    monkeypatch.setattr(gate, "time_ratios", lambda game, rounds, planted: [10.0 / (1 + planted)] * rounds)
    words = ["gate", "--game", "toy", "--rounds", "3", "--floors", str(tmp_path / "floors.json")]
    assert CliRunner().invoke(app, [*words, "--record"]).exit_code == 0
    fine = CliRunner().invoke(app, words)
    assert fine.exit_code == 0, fine.output
    assert "result: not slower" in fine.stdout
    slower = CliRunner().invoke(app, [*words, "--planted", "0.2"])
    assert slower.exit_code == gate.FAILED, slower.output
    assert "x of the floor" in slower.stdout
    assert max(len(line) for line in slower.stdout.splitlines() if not line.startswith("saved")) <= 80
    record = json.loads(max((tmp_path / "artifacts" / "gate").glob("*.json")).read_text())
    counted = record["samples"]["toy instructions"]["values"][0] / record["floors"]["games"]["toy"]["instructions"]
    assert counted == pytest.approx(1.2, abs=0.02)
    record_property("figure", f"{counted:.3f}x of the floor with a fifth more work")


EVERY_CHANGE = ("cogsguard", "prospector")  # the most rules, and the other engine; toy is counted in the test above
COUNTED = [pytest.param(game, marks=[] if game in EVERY_CHANGE else pytest.mark.long) for game in gate.GAMES]


def floors_of_here() -> dict[str, Any]:
    """The floors of the tree, for a machine like the one they were recorded on."""
    floors = gate.of_here(gate.read_floors(ROOT / "bench" / "floors.json"))
    if floors["machine"] != gate.here():
        pytest.skip(f"the floors are of {floors['machine']}, this is {gate.here()}")
    return dict(floors["games"])


@pytest.mark.L3
@pytest.mark.usefixtures("_callgrind")
@pytest.mark.parametrize("game", COUNTED)
def test_no_game_takes_more_instructions_than_its_floor(game: str, record_property) -> None:
    floor = floors_of_here()[game]["instructions"]
    counted = gate.count(game, 0.0)
    assert counted <= gate.MOST_INSTRUCTIONS * floor
    record_property("figure", f"{game}: {counted:.0f} instructions per agent-step, {counted / floor:.3f}x of the floor")


@pytest.mark.long
@pytest.mark.L3
@pytest.mark.parametrize("game", gate.GAMES)
def test_no_game_is_slower_than_its_floor(game: str, record_property, monkeypatch: pytest.MonkeyPatch) -> None:
    """Time beside a fixed load; counted instructions are the test above."""
    floor = floors_of_here()[game]
    monkeypatch.setattr(gate, "count", lambda game, planted: 0.0)
    ratio = gate.measure(game, gate.Settings(), floor)["ratio"]
    assert ratio >= gate.LEAST_RATIO * floor["ratio"]
    record_property("figure", f"{game}: {ratio / floor['ratio']:.3f}x of the floor's time ratio")


@pytest.mark.L3
def test_the_floors_of_the_tree_are_never_lowered_without_a_reason() -> None:
    machines = gate.read_floors(ROOT / "bench" / "floors.json")
    assert machines
    for floors in machines:
        assert set(floors["games"]) == set(gate.GAMES)
        assert gate.lowered_without_reason(floors) == []


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["--rounds", "2"], "--rounds must be at least 3, got 2"),
        (["--reason", "x"], "--reason is for --record"),
        (["--record", "--planted", "0.2"], "so it cannot be combined with --planted"),
        (["--game", "tyo"], "unknown game `tyo`"),
        (["--game", "corridor", "--floors", "{}"], "corridor: no floor yet; record one with --record"),
    ],
)
def test_bad_input_is_one_line_and_2(words: list[str], text: str, tmp_path: Path) -> None:
    words = [str(tmp_path / "none.json") if word == "{}" else word for word in words]
    result = CliRunner().invoke(app, ["gate", *words])
    assert result.exit_code == 2
    assert text in result.stderr


def test_floors_of_another_machine_stay_beside_those_of_this_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(gate, "measure", lambda game, settings, floor: found(900, 8))
    file = tmp_path / "floors.json"
    theirs = {
        "machine": {"cpu": "another", "isa": "other"},
        "games": {"arena": gate.raised(None, found(1, 9), "", WHEN)},
    }
    file.write_text(json.dumps({"machines": [theirs]}))
    words = ["gate", "--game", "toy", "--record", "--floors", str(file)]
    assert CliRunner().invoke(app, words).exit_code == 0
    assert CliRunner().invoke(app, words).exit_code == 0
    first, ours = gate.read_floors(file)
    assert first == theirs
    assert ours["machine"] == gate.here()
    assert set(ours["games"]) == {"toy"}
    assert gate.of_here([first, ours]) == ours


def test_without_floors_of_its_own_a_machine_takes_those_of_the_most_similar() -> None:
    now = gate.here()
    nothing, compiler = ({"machine": {}, "games": {}}, {"machine": {"compiler": now["compiler"]}, "games": {}})
    assert gate.of_here([]) == nothing
    assert gate.of_here([nothing, compiler]) == compiler


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (subprocess.CalledProcessError(1, ["callgrind_control"], stderr=b"x\nno ptrace\n"), "needs ptrace: no ptrace"),
        (subprocess.TimeoutExpired(["callgrind_control"], 120), "callgrind_control did not answer within 120 s"),
    ],
)
def test_a_callgrind_that_cannot_be_told_to_count_is_one_line(
    error: Exception, text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise error

    child = SimpleNamespace(stdout=io.StringIO("ready\n"), pid=0, kill=lambda: None)
    tools = SimpleNamespace(which=lambda tool: tool)
    fake = SimpleNamespace(
        Popen=lambda *_, **__: child,
        run=fail,
        PIPE=0,
        CalledProcessError=subprocess.CalledProcessError,
        TimeoutExpired=subprocess.TimeoutExpired,
    )
    monkeypatch.setattr(gate, "subprocess", fake)
    monkeypatch.setattr(gate, "shutil", tools)
    with pytest.raises(ValueError, match=text):
        gate.count("toy", 0.0)


def test_floors_that_are_none_are_refused(tmp_path: Path) -> None:
    (tmp_path / "floors.json").write_text("[]")
    with pytest.raises(ValueError, match="is not a file of floors"):
        gate.read_floors(tmp_path / "floors.json")
