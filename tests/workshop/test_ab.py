"""`gridmill ab`: how a side is read, what two known sides give, and two real ones."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner
from warm import FORKED

from gridmill.cli import app
from gridmill.workshop import ab, artefact, machine

SMALL = "trainer.batch_size=768 trainer.minibatch_size=384 trainer.bptt_horizon=16 trainer.threads=1 policy.hidden=16"


def test_a_side_is_read_as_people_write_it() -> None:
    side = ab.side_of("toy trainer.threads=1 GRIDMILL_PROFILING=0 trainer.gamma=0.9 @HEAD~1")
    assert side == ab.Side("toy", ("trainer.threads=1", "trainer.gamma=0.9"), ("GRIDMILL_PROFILING=0",), "HEAD~1")
    assert side.text == "toy trainer.threads=1 trainer.gamma=0.9 GRIDMILL_PROFILING=0 @HEAD~1"
    assert ab.side_of("trainer.threads=2").recipe == "ci"
    assert ab.side_of("ci@abc") == ab.Side("ci", revision="abc")
    with pytest.raises(ValueError, match="expected one recipe in `ci toy`, got ci and toy"):
        ab.side_of("ci toy")


def test_a_switch_that_nobody_reads_is_refused() -> None:
    """It was measured, printed and saved as if it had been on."""
    with pytest.raises(ValueError) as caught:
        ab.side_of("ci GRIDMILL_OBS_USE_OPTIMISED=0")
    assert str(caught.value) == (
        "GRIDMILL_OBS_USE_OPTIMISED means nothing here; did you mean GRIDMILL_OBS_USE_OPTIMIZED? (in "
        "`ci GRIDMILL_OBS_USE_OPTIMISED=0`); the switches are GRIDMILL_PROFILING, GRIDMILL_OBS_VALIDATION, "
        "GRIDMILL_OBS_USE_OPTIMIZED, GRIDMILL_ISA"
    )
    with pytest.raises(ValueError, match=r"^METTAGRID_X means nothing here \(in "):
        ab.side_of("METTAGRID_X=1")
    for text in ("METTAGRID_PROFILING=1", "OMP_NUM_THREADS=1", "GRIDMILL_OF_THEN=1 @HEAD~9"):
        assert len(ab.side_of(text).environment) == 1


def block(observations: float, rest: float = 9.0, score: float | None = 2.0) -> dict[str, Any]:
    """A block of 1000 agent-steps: so many seconds of observations in the env, one of actions, the rest learning."""
    wall = observations + 1 + rest
    core = {"observations": int(2e9 * observations), "actions": int(2e9), "total": int(2e9 * (observations + 1))}
    phases = {"rollout": observations + 1, "env": observations + 1, "learn": rest, "act": 0.0}
    return {"agent_steps": 1_000, "cpu_seconds": wall, "wall_seconds": wall, "phases": phases, "core_ns": core,
            "score": score, "rss": 1}  # fmt: skip


def test_known_sides_give_what_amdahl_says() -> None:
    a, b = [[block(10.0)] * 3] * 3, [[block(2.0)] * 3] * 3
    settings = ab.Settings(ab.side_of("ci"), ab.side_of("ci trainer.threads=1"), blocks=3)
    record = ab.record_of(settings, a, b)
    assert record["finished"]
    assert record["phase_costs"]["a"]["env/observations"] == pytest.approx(1e7)
    foreseen = {"phase": "observations", "share": 0.5, "speedup": 5.0, "low": 5.0, "high": 5.0, "gain": 5 / 3}
    assert record["predicted"] == pytest.approx(foreseen)
    assert record["ratios"]["wall"]["ratio"] == pytest.approx(20 / 12)
    text = "\n".join(ab.lines_of(record))
    said = "observations, 50.0 % of A's time, is 5.00x [5.00, 5.00] as fast in B: that alone gives 1.667x"
    assert said in " ".join(text.split())
    assert "score" in text
    assert max(map(len, text.splitlines())) <= 80
    without = ab.record_of(settings, [[block(10.0, score=None)]], [[block(10.0)]])
    assert without["score"] == "no episode ended yet"
    assert without["ratios"]["wall"] == {"ratio": 1.0, "low": None, "high": None, "count": 1, "paired": True}
    assert "Infinity" not in json.dumps(without)
    assert "1.000x\n" in "\n".join(ab.lines_of(without))  # one pair has no interval
    assert not without["finished"]


def test_a_phase_that_only_scatters_is_no_reason() -> None:
    """Observations take 10, 2, 10 seconds here and 2, 10, 4 there: a difference, but none that would come again."""
    a, b = [[block(x) for x in (10.0, 2.0, 10.0)]] * 3, [[block(x) for x in (2.0, 10.0, 4.0)]] * 3
    record = ab.record_of(ab.Settings(ab.side_of("ci"), ab.side_of("ci"), blocks=3), a, b)
    assert record["predicted"] is None
    assert "Amdahl: no phase differs significantly between A and B; measured" in "\n".join(ab.lines_of(record))


def test_two_real_sides(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "subprocess", FORKED)
    out = tmp_path / "ab.json"
    words = ["ab", f"ci {SMALL} GRIDMILL_OBS_USE_OPTIMIZED=0", f"ci {SMALL}", "--seeds", "0", "--blocks", "1"]
    result = CliRunner().invoke(app, [*words, "--output", str(out)])
    assert result.exit_code == 0, result.output
    record = artefact.read(out, "ab")
    assert record["finished"]
    assert all(one["core_ns"]["observations"] > 0 for side in "ab" for seed in record["blocks"][side] for one in seed)


@pytest.mark.long
def test_two_real_sides_and_going_on_after_a_stop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out = tmp_path / "ab.json"
    words = ["ab", f"ci {SMALL} GRIDMILL_OBS_USE_OPTIMIZED=0", f"ci {SMALL}", "--seeds", "0,1", "--blocks", "1"]
    words += ["--output", str(out)]
    real, seen = ab.measure_seed, []

    def stopped_at_the_second(settings: Any, seed: int, taken: Any, progress: Any) -> None:
        if seed == 1 and not seen:
            seen.append(seed)
            raise KeyboardInterrupt
        real(settings, seed, taken, progress)

    monkeypatch.setattr(ab, "measure_seed", stopped_at_the_second)
    first = CliRunner().invoke(app, words)
    assert first.exit_code == artefact.INTERRUPTED, first.output
    assert f"stopped by SIGINT after 1 of 2 seeds, 1 pair of blocks; continue with --resume {out}" in first.stdout
    half = artefact.read(out, "ab")
    assert (half["finished"], half["exit_code"], half["done_seeds"]) == (False, 130, 1)
    second = CliRunner().invoke(app, [*words, "--resume", str(out)])
    assert second.exit_code == 0, second.output
    record = json.loads(out.read_text())
    assert record["finished"]
    assert record["blocks"]["a"][0] == half["blocks"]["a"][0]
    assert len(record["blocks"]["b"]) == 2
    assert all(one["core_ns"]["observations"] > 0 for side in "ab" for seed in record["blocks"][side] for one in seed)
    assert out.with_suffix(".svg").read_text().startswith("<svg")
    other = CliRunner().invoke(app, [*words, "--blocks", "2", "--resume", str(out)])
    assert other.exit_code == 2
    assert "was measured with other settings" in other.stderr


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["ci", "ci", "--blocks", "0"], "--blocks must be at least 1, got 0"),
        (["ci", "ci", "--seeds", "1,1"], "--seeds takes different numbers like 0,1,2, got 1,1"),
        (["ci", "ci", "--seeds", "a"], "--seeds takes numbers like 0,1,2, got `a`"),
        (["ci seed=3", "ci"], "seeds are given by --seeds, got `seed=3` in `ci seed=3`"),
        (["ci@nothing", "ci"], "`nothing` is not a commit of this checkout"),
        (["cii", "ci"], "did you mean `ci`?"),
    ],
)
def test_bad_input_is_one_line_and_2(words: list[str], text: str, tmp_path: Path) -> None:
    result = CliRunner().invoke(app, ["ab", *words, "--output", str(tmp_path / "x.json")])
    assert result.exit_code == 2
    assert text in result.stderr
    assert len(result.stderr.strip().splitlines()) == 1
