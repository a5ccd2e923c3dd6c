"""`gridmill tune`, `compare-presets` and `artifacts`: with sides that answer as scripted, and once for real."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from gridmill import recipes
from gridmill.cli import app
from gridmill.config import ConfigError
from gridmill.runs import overrides, presets
from gridmill.workshop import ab, artefact, compare_presets, gallery, tune
from gridmill.workshop.machine import WorkerError

SMALL = ["trainer.batch_size=768", "trainer.minibatch_size=384", "trainer.bptt_horizon=16", "policy.hidden=16"]


class Scripted:
    """A side whose speed is known: two threads are twice as fast; an async factor of 2 scatters; scores as told."""

    scores = (2.0, 2.0)

    def __init__(self, side: ab.Side, seed: int, phases: bool) -> None:
        self.side, self.calls = side, 0
        self.ready = {"batch_size": 1_000, "threads": 1}

    def ask(self, order: dict, needed: Any) -> dict[str, Any]:
        self.calls += 1
        fast = "trainer.threads=2" in self.side.changes
        wall = order["epochs"] / (2.0 if fast else 1.0)
        if "trainer.async_factor=2" in self.side.changes:
            wall *= 1 + 3 * (self.calls % 2)
        found = {"agent_steps": 1_000 * order["epochs"], "cpu_seconds": wall, "wall_seconds": wall, "core_ns": {}}
        score = self.scores[fast] * (0.5 if self.calls == 1 else 1.0)  # it gets better
        return found | {"phases": {"rollout": wall / 2, "learn": wall / 2}, "score": score, "rss": 2**20}

    def close(self) -> None:
        pass


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


GRID = ["tune", "ci", "--try", "trainer.threads=1,2", "--try", "trainer.async_factor=1,2"]


def test_the_fastest_stable_candidate_wins_and_is_a_preset(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ab, "start", Scripted)
    result = CliRunner().invoke(app, [*GRID, "--output", "mine.toml"])
    assert result.exit_code == 0, result.output
    assert "threads=2 async_factor=1" in result.stdout.splitlines()[1]  # the fastest first
    assert result.stdout.count("unstable") == 2
    text = " ".join(result.stdout.split())
    assert "result: trainer.threads=2 is 2.000x [2.000, 2.000] of the reference; score 2.000" in text
    assert "it still learns" in text
    assert "largest batch that fits into free memory" in text
    run = presets.apply(recipes.build("ci"), "mine.toml")
    assert run == presets.fill(recipes.build("ci")).replace("trainer.threads", 2)
    (path,) = (tmp_path / "artifacts" / "tune").glob("*.json")
    record = artefact.read(path, "tune")
    assert record["finished"]
    assert len(record["tried"]) == 4
    again = CliRunner().invoke(app, [*GRID, "--resume", str(path)])
    assert again.exit_code == 0, again.output


def test_a_search_that_was_stopped_goes_on_where_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Four candidates, the turns and two of five seeds are done; what is left are three seeds of both."""
    monkeypatch.setattr(ab, "start", Scripted)
    started: list[int] = []

    def start(side: ab.Side, seed: int, phases: bool) -> Scripted:
        started.append(seed)
        if started.count(2) == 1 and seed == 2:
            raise KeyboardInterrupt
        return Scripted(side, seed, phases)

    monkeypatch.setattr(ab, "start", start)
    first = CliRunner().invoke(app, GRID)
    assert first.exit_code == 130, first.output
    (path,) = (tmp_path / "artifacts" / "tune").glob("*.json")
    half = artefact.read(path, "tune")
    (finalist,) = half["compared"]["finalists"]
    assert (half["finished"], len(half["tried"]), len(finalist["scores"])) == (False, 4, 2)
    started.clear()
    started.append(2)
    result = CliRunner().invoke(app, [*GRID, "--resume", str(path)])
    assert result.exit_code == 0, result.output
    assert started[1:] == [2, 2, 3, 3, 4, 4]
    assert "it still learns" in " ".join(result.stdout.split())


def test_who_learns_worse_does_not_win(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ab, "start", Scripted)
    monkeypatch.setattr(Scripted, "scores", (2.0, 1.0))
    result = CliRunner().invoke(app, [*GRID, "--finalists", "1"])
    assert result.exit_code == 0
    assert "it learns worse; the reference stays" in " ".join(result.stdout.split())
    assert "preset:" not in result.stdout


def test_the_next_one_wins_if_the_fastest_learns_worse(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two threads with large minibatches are fastest and learn nothing; with small ones they learn."""

    class Greedy(Scripted):
        def ask(self, order: dict, needed: Any) -> dict[str, Any]:
            found = super().ask(order, needed)
            large = "trainer.minibatch_size=4608" in self.side.changes
            return found | {
                "wall_seconds": found["wall_seconds"] / (1.5 if large else 1.0),
                "score": (2.0 - large) * self.calls,
            }

    monkeypatch.setattr(ab, "start", Greedy)
    words = ["tune", "ci", "--try", "trainer.threads=1,2", "--try", "trainer.minibatch_size=2304,4608"]
    result = CliRunner().invoke(app, words)
    assert result.exit_code == 0, result.output
    said = " ".join(result.stdout.split()).partition("result: ")[2]
    assert "trainer.minibatch_size=4608 is 3.000x [3.000, 3.000] of the reference; score 2.000" in said
    assert "it learns worse; trainer.threads=2 is 2.000x [2.000, 2.000] of the reference; score 4.000" in said
    assert "it still learns" in said
    only = CliRunner().invoke(app, [*words, "--finalists", "1"])
    assert "it learns worse; the reference stays" in " ".join(only.stdout.split())


@pytest.mark.parametrize(
    ("reference", "own", "holds", "said"),
    [
        ([(1, 4), (2, 6)], [(0, 5), (0, 5)], True, "reference 5.000 [-7.706, 17.706], 1.500 after a quarter"),
        (
            [(1, 5), (2, 5)],
            [(0, 4), (0, 4)],
            False,
            "[5.000, 5.000], 1.500 after a quarter of the steps: it learns",
        ),
        ([(0, 0), (0, 0)], [(0, 1), (0, 1)], None, "the reference itself learned nothing; raise --check-epochs"),
        ([(None, 5), (2, 5)], [(0, 5), (0, 5)], None, "too few episodes ended; raise --check-epochs"),
        ([(1, 5), (2, 5)], [(0, 5), (0, None)], None, "too few episodes ended; raise --check-epochs"),
    ],
)
def test_whether_it_learns_by_hand(reference: list, own: list, holds: bool | None, said: str) -> None:
    found = tune.judged(reference, own)
    assert found["holds"] is holds
    assert said in found["said"]


def test_with_one_seed_nobody_knows_and_the_reference_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ab, "start", Scripted)
    result = CliRunner().invoke(app, [*GRID, "--seeds", "0"])
    assert result.exit_code == 0
    said = "not known whether it learns: give more --seeds; the reference stays"
    assert said in " ".join(result.stdout.split())
    assert "preset:" not in result.stdout


class Measured(Scripted):
    """Reads its changes as a real side does; a policy of 32 is faster, of 64 does not fit."""

    def __init__(self, side: ab.Side, seed: int, phases: bool) -> None:
        super().__init__(side, seed, phases)
        self.run = overrides.apply(presets.fill(recipes.build(side.recipe)), side.changes)
        seen.append(self.run)

    def ask(self, order: dict, needed: Any) -> dict[str, Any]:
        if self.run.policy.hidden == 64:
            raise WorkerError("`ci`: out of memory")
        found = super().ask(order, needed)
        return found | {"wall_seconds": found["wall_seconds"] / (2.0 if self.run.policy.hidden == 32 else 1.0)}


seen: list[Any] = []


def test_the_preset_is_the_run_that_was_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ab, "start", Measured)
    changed = ["optimizer.learning_rate=1e-3", "trainer.threads=1", "trainer.masks=false"]
    words = ["tune", "ci", *changed, "--try", "policy.hidden=16,32,64", "--output", "mine.toml"]
    result = CliRunner().invoke(app, words)
    assert result.exit_code == 0, result.output
    assert "failed: policy.hidden=64: `ci`: out of memory" in result.stdout
    measured = next(run for run in seen if run.policy.hidden == 32)
    assert presets.apply(recipes.build("ci"), "mine.toml") == measured
    assert "policy.hidden = 32\n" in Path("mine.toml").read_text()
    assert "optimizer.learning_rate = 0.001\n" in Path("mine.toml").read_text()
    assert "use it: gridmill train ci --preset mine.toml\n" in result.stdout


def test_a_preset_holds_lists_negative_numbers_and_names_what_it_cannot() -> None:
    plain = recipes.build("prospector")
    run = overrides.apply(plain, ["trainer.signal.5.weight=-1", "optimizer.learning_rate=1e-5", "run=a.b"])
    text, left = presets.written(run, plain)
    Path("p.toml").write_text(text)
    assert left == []
    assert presets.merged(plain, "p.toml") == run
    with pytest.raises(ConfigError, match="a preset cannot make this run of `prospector`"):
        presets.written(recipes.build("ci"), plain)


def test_a_search_with_optuna_finds_it_too(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("optuna")
    monkeypatch.setattr(ab, "start", Scripted)
    result = CliRunner().invoke(app, [*GRID, "--trials", "12"])
    assert result.exit_code == 0, result.output
    assert "trainer.threads=2 is 2.000x" in " ".join(result.stdout.split())


def test_the_largest_batch_fits_and_twice_as_much_does_not() -> None:
    run = recipes.build("ci")
    batch, need = tune.largest_batch(run)
    assert batch % (48 * run.trainer.bptt_horizon) == 0
    assert batch > run.trainer.batch_size
    assert need.endswith("MiB")
    result = CliRunner().invoke(app, ["tune", "ci", "--largest-batch"])
    assert result.exit_code == 0
    assert "of the memory that is free now" in result.stdout


@pytest.mark.long  # eleven processes with torch; on every change the sides are scripted
def test_tune_for_real(tmp_path: Path) -> None:
    words = ["tune", "ci", *SMALL, "trainer.threads=1", "--try", "trainer.minibatch_size=384,768", "--blocks", "2"]
    result = CliRunner().invoke(app, [*words, "--check-epochs", "2", "--seeds", "0"])
    assert result.exit_code in (0, 1), result.output  # 1: the machine was too noisy for any of them
    (path,) = (tmp_path / "artifacts" / "tune").glob("*.json")
    assert len(json.loads(path.read_text())["tried"]) == 2


def test_presets_are_compared_in_turns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ab, "start", Scripted)
    words = ["compare-presets", "prospector", "--seconds", "3", "--output", "c.json"]
    result = CliRunner().invoke(app, words)
    assert result.exit_code == 0, result.output
    record = artefact.read(Path("c.json"), "compare-presets")
    assert set(record["summary"]) == {"baseline", "ultra_fast"}
    assert [list(map(len, seeds)) for seeds in record["epochs"].values()] == [[3, 3, 3]] * 2
    assert record["summary"]["baseline"]["balance"] == 1.0
    assert record["ratios"]["wall"] == {"ratio": 1.0, "low": 1.0, "high": 1.0, "count": 3, "paired": True}
    for text in ("steps per wall second", "cores busy", "memory", "rollout / learning", "score after equal steps"):
        assert text in result.stdout
    assert max(len(line) for line in result.stdout.splitlines() if not line.startswith("saved")) <= 80


def test_scores_after_equal_time_and_steps_by_hand() -> None:
    epochs = [{"wall_seconds": 1.0, "agent_steps": 10, "score": s} for s in (None, 1.0, 2.0, 3.0)]
    assert compare_presets.score_after(epochs, "wall_seconds", 3.0) == 2.0
    assert compare_presets.score_after(epochs, "agent_steps", 20) == 1.0
    assert compare_presets.score_after(epochs, "wall_seconds", 99.0) == 3.0


def test_artefacts_are_listed_and_drawn_on_one_page(tmp_path: Path) -> None:
    for kind in ("ab", "gate"):
        record = artefact.record(kind, 1, {}, {"A <rate>": artefact.sample([1.0, 2.0, 4.0], "steps/s")})
        artefact.write(record, artefact.place(record, "x"))
    (tmp_path / "artifacts" / "other.json").write_text("{}")
    del record["machine"]["commit"]
    artefact.write(record, tmp_path / "artifacts" / "lacking.json")
    result = CliRunner().invoke(app, ["artifacts", "--page", "page.html"])
    assert result.exit_code == 0, result.output
    assert "2 other JSON files left out" in result.stdout
    assert max(map(len, result.stdout.splitlines())) <= 80
    page = Path("page.html").read_text()
    assert page.count("<svg") == 2
    assert "A &lt;rate&gt;" in page
    assert "<script" not in page
    assert gallery.headline_of({"samples": {}}) == ""


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["tune", "ci", "--blocks", "1"], "--blocks must be at least 2, got 1"),
        (["tune", "ci", "--finalists", "0"], "--finalists must be at least 1, got 0"),
        (["tune", "ci", "--output", "x.json"], "--output is a preset, FILE.toml, got `x.json`"),
        (["compare-presets", "--seconds", "0"], "--seconds must be above 0, got 0.0"),
        (["tune", "ci", "--seeds", "1,1"], "--seeds takes different numbers like 0,1,2, got 1,1"),
        (
            ["compare-presets", "--preset", "baseline", "--preset", "baseline"],
            "two different ones, got `baseline` twice",
        ),
        (["compare-presets", "--preset", "baseline"], "--preset must be given twice, got 1"),
        (["compare-presets", "--seeds", "1,1"], "--seeds takes different numbers like 0,1,2, got 1,1"),
        (["artifacts", "nowhere"], "expected a folder of artifacts, got `nowhere`"),
        (["artifacts", "."], "no artifacts under ."),
    ],
)
def test_bad_input_is_one_line_and_2(words: list[str], text: str) -> None:
    result = CliRunner().invoke(app, words)
    assert result.exit_code == 2
    assert text in result.stderr
