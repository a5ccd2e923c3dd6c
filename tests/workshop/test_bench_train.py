"""`gridmill bench train` and `bench rollout`: arithmetic by hand, turns with scripted workers, the pieces for real."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch
from typer.testing import CliRunner
from warm import FORKED

from gridmill.cli import app
from gridmill.run import Run
from gridmill.workshop import machine, throughput
from gridmill.workshop.bench import plain_network
from gridmill.workshop.bench import train as bench_train
from gridmill.workshop.bench import worker as train_worker
from gridmill.workshop.bench.train import Epochs, Settings


def epochs(wall: float, phases: dict[str, float] | None = None, cpu: dict[str, float] | None = None) -> Epochs:
    return Epochs(1, 1000, 2 * wall, wall, phases or {}, cpu or {})


def small(core: str = "lstm") -> Run:
    """Eight worlds, four steps, two minibatches of four segments."""
    run = bench_train.standard("prospector").replace("policy.core", core)
    sizes = {"num_worlds": 8, "batch_size": 32, "minibatch_size": 16, "bptt_horizon": 4, "threads": 1}
    for name, value in sizes.items():
        run = run.replace(f"trainer.{name}", value)
    return run.replace("policy.hidden", 16)


# ---- the arithmetic


def test_a_rate_is_steps_over_the_seconds_of_its_phases_and_clock() -> None:
    rounds = [epochs(4.0, {"act": 1.0, "learn": 2.0}, {"act": 0.5})]
    assert bench_train.rates(rounds, "wall") == [250.0]
    assert bench_train.rates(rounds, "cpu") == [125.0]
    assert bench_train.rates(rounds, "wall", ("act", "learn")) == [pytest.approx(1000 / 3)]
    assert bench_train.rates(rounds, "cpu", ("act",)) == [2000.0]
    assert bench_train.rates(rounds, "cpu", ("act", "learn")) is None
    assert bench_train.rates([], "wall") is None


def test_ours_is_compared_with_the_bound_and_the_peer() -> None:
    pieces = {"act": 1.0, "sample": 0.5, "forward": 1.0, "loss": 0.5, "backward": 1.5, "optimizer": 0.5}
    rounds = {
        "trainer": [epochs(5.0, {"rollout": 2.0})] * 3,
        "bound": [epochs(5.0, pieces, pieces)] * 3,
        "peer": [epochs(10.0, {"rollout": 3.0}, {"rollout": 3.0})] * 3,
    }
    found = {(one["name"], one["clock"]): one["ratio"] for one in bench_train.comparisons(rounds)}
    assert found == {
        ("train / torch's act + learn", "cpu"): pytest.approx(4.0 / 10.0),
        ("train / torch's act + learn", "wall"): pytest.approx(4.0 / 5.0),
        ("train / ... + sampling + loss", "cpu"): pytest.approx(5.0 / 10.0),
        ("train / ... + sampling + loss", "wall"): pytest.approx(1.0),
        ("train / peer", "cpu"): pytest.approx(2.0),
        ("train / peer", "wall"): pytest.approx(2.0),
        ("rollout / torch's act", "wall"): pytest.approx(0.5),
        ("rollout / ... + sampling", "wall"): pytest.approx(0.75),
        ("rollout / peer's rollout", "wall"): pytest.approx(1.5),
    }


def test_phases_are_means_per_epoch_and_the_rest_is_named() -> None:
    taken = [epochs(4.0, {"rollout": 2.0, "act": 1.0, "learn": 1.0}), epochs(6.0, {"rollout": 2.0, "learn": 2.0})]
    found = bench_train.shares(taken)
    assert list(found) == ["rollout", "act", "learn", "other", "epoch"]
    assert found == pytest.approx({"rollout": 2.0, "act": 0.5, "learn": 1.5, "other": 1.5, "epoch": 5.0})


@pytest.mark.parametrize("game", ["prospector", "arena"])
def test_the_standard_run_fits_together(game: str) -> None:
    run = bench_train.standard(game)
    rows, remainder = divmod(run.trainer.batch_size, run.trainer.bptt_horizon)
    assert remainder == 0
    assert rows % run.trainer.num_worlds == 0
    assert run.trainer.batch_size == 8 * run.trainer.minibatch_size
    assert run.trainer.minibatch_size % run.trainer.bptt_horizon == 0
    if game == "prospector":
        assert (run.trainer.num_worlds, run.trainer.batch_size, run.trainer.minibatch_size) == (1024, 65_536, 8_192)


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ({"rounds": 0}, "--rounds must be at least 1, got 0"),
        ({"epochs": 0}, "--epochs must be at least 1, got 0"),
        ({"threads": (0, 1)}, "--threads must be at least 1, got 0"),
        ({"warmup": -1}, "--warmup must be at least 0, got -1"),
    ],
)
def test_what_cannot_be_measured_is_refused(changed: dict[str, Any], expected: str) -> None:
    with pytest.raises(ValueError) as refused:
        Settings(small(), **changed).check()
    assert str(refused.value) == expected


def test_a_peer_needs_a_network_that_plain_torch_has() -> None:
    with pytest.raises(ValueError, match=r"--peers: torch has no core scan; it has lstm, gru"):
        Settings(small("scan"), peers=True).check()
    with pytest.raises(ValueError, match=r"--peers: the encoder bag reads tokens"):
        Settings(bench_train.standard("arena"), peers=True).check()


# ---- the network


@pytest.mark.parametrize("core", ["none", "lstm", "gru"])
def test_acting_step_by_step_is_what_learning_replays(core: str) -> None:
    torch.manual_seed(1)
    parts = plain_network.build(small(core), 5, 3)
    obs, state = torch.randn(6, 4, 5), plain_network.first_state(parts, 4)
    logits, values = plain_network.replay(parts, obs)
    for t in range(6):
        step_logits, step_values, state = plain_network.act(parts, obs[t], state)
        torch.testing.assert_close(step_logits, logits[t])
        torch.testing.assert_close(step_values, values[t])


def test_weights_are_counted_without_biases() -> None:
    parts = plain_network.build(small(), 5, 3)  # hidden 16, one dense layer after the first
    assert plain_network.num_weights(parts) == 5 * 16 + 16 * 16 + 2 * 4 * 16 * 16 + 16 * 3 + 16


def test_an_epoch_of_the_pieces_learns_and_times_every_phase() -> None:
    pieces = plain_network.Pieces(small(), 5, 3, rows=8)
    before = [p.detach().clone() for p in pieces.parts.parameters()]
    watch = pieces.epoch()
    assert set(watch.wall) == set(watch.cpu) == set(plain_network.PHASES)
    assert (pieces.steps, pieces.segments, pieces.minibatches) == (4, 4, 2)
    assert all(not torch.equal(p, old) for p, old in zip(pieces.parts.parameters(), before, strict=True))


def test_sizes_that_do_not_fit_are_refused() -> None:
    with pytest.raises(ValueError, match=r"expected batch_size to be a multiple of 7 rows"):
        plain_network.Pieces(small(), 5, 3, rows=7)


# ---- the workers


@pytest.mark.parametrize(
    ("kind", "how"),
    [("bound", FORKED), ("step", subprocess), pytest.param("bound", subprocess, marks=pytest.mark.long)],
    ids=["bound, forked", "step", "bound"],
)
def test_a_worker_answers_whole_epochs(kind: str, how: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "subprocess", how)
    worker = bench_train.start(kind, small())
    try:
        taken = bench_train.epochs_of(worker, 3)
    finally:
        worker.close()
    assert (taken.epochs, taken.agent_steps) == (3, 3 * 32)
    assert taken.wall_seconds > 0
    assert set(taken.phases) == (set(plain_network.PHASES) if kind == "bound" else set())
    assert sum(taken.phases.values()) <= taken.wall_seconds


def test_a_worker_that_cannot_start_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "subprocess", FORKED)
    run = small().replace("trainer.batch_size", 36)
    with pytest.raises(machine.WorkerError, match=r"bound with 1 thread: ValueError: expected batch_size"):
        bench_train.start("bound", run)


def test_the_trainer_is_asked_for_epochs_and_its_times(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Any] = []

    class Trainer:
        policy = torch.nn.Linear(3, 2)

        def __init__(self, run: Run, folder: Path | None) -> None:
            seen.append((run, folder))

        def epoch(self) -> dict[str, Any]:
            return {"epoch": 1, "sps": 5.0, "time/rollout": 0.25, "time/learn": 0.5, "last_checkpoint": "none"}

    module = ModuleType("gridmill.train.trainer")
    module.Trainer = Trainer  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "gridmill.train", ModuleType("gridmill.train"))
    monkeypatch.setitem(sys.modules, "gridmill.train.trainer", module)
    threads = torch.get_num_threads()
    monkeypatch.setattr(sys, "stdin", io.StringIO('{"epochs": 2}\n'))
    out = io.StringIO()
    try:
        train_worker.serve(["trainer", small().model_dump_json()], out)
    finally:
        torch.set_num_threads(threads)
    ready, answer = map(json.loads, out.getvalue().splitlines())
    assert ready["num_weights"] == 6
    assert seen == [(small(), None)]
    assert answer["agent_steps"] == 64
    assert answer["phases"] == {"rollout": 0.5, "learn": 1.0}


def test_another_python_finds_the_package_and_nothing_else() -> None:
    with bench_train.package_alone() as folder:
        assert [entry.name for entry in folder.iterdir()] == ["gridmill"]
        code = "import gridmill, gridmill._native as n; print(gridmill.__file__, n.__file__)"
        path = [str(folder), *(entry for entry in sys.path if entry.endswith("site-packages"))]
        # -S: without the hook of an editable install, which another environment does not have
        command = ["env", f"PYTHONPATH={':'.join(path)}", sys.executable, "-S", "-c", code]
        done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=folder)
        assert all(file.startswith(str(folder)) for file in done.stdout.split())


# ---- the command


class Scripted:
    """A worker that takes the seconds it is told, and writes down when it was asked."""

    asked: list[tuple[int, str, int]] = []  # noqa: RUF012
    seconds: dict[str, list[float]] = {}  # noqa: RUF012

    def __init__(self, kind: str, run: Run, command: Any = ()) -> None:
        self.kind, self.run, self.turn = kind, run, 0
        self.ready = {"name": "pufferlib-core 9" if kind == "peer" else kind, "num_weights": 7}

    def ask(self, question: dict[str, int], needed: tuple[str, ...]) -> dict[str, Any]:
        self.asked.append((self.run.trainer.threads, self.kind, question["epochs"]))
        costs = self.seconds[self.kind]
        wall = costs[self.turn % len(costs)] * question["epochs"]
        self.turn += 1
        names = plain_network.PHASES if self.kind == "bound" else ("rollout", "learn")
        phases = {name: wall / len(names) for name in names}
        steps = question["epochs"] * self.run.trainer.batch_size
        known = {} if self.kind == "trainer" else phases
        return dict(zip(needed, (question["epochs"], steps, wall, wall, phases, known), strict=True))

    def close(self) -> None:
        self.asked.append((self.run.trainer.threads, f"{self.kind} closed", 0))


@pytest.fixture
def scripted(monkeypatch: pytest.MonkeyPatch) -> type[Scripted]:
    monkeypatch.setattr(Scripted, "asked", [])
    monkeypatch.setattr(Scripted, "seconds", {"trainer": [1.0], "bound": [1.0], "step": [0.1], "peer": [2.0]})
    monkeypatch.setattr(bench_train, "start", Scripted)
    monkeypatch.setattr(bench_train, "peer_command", lambda package: ["peer"])
    return Scripted


def test_everybody_takes_turns_and_the_ratios_are_printed(scripted: type[Scripted], tmp_path: Path) -> None:
    file = tmp_path / "deep" / "run.json"
    options = ["--threads", "1,2", "--rounds", "3", "--peers", "--output", str(file)]
    result = CliRunner().invoke(app, ["bench", "train", *options])
    assert result.exit_code == 0, result.output
    turn = [(threads, kind, 1) for threads in (1, 2) for kind in ("trainer", "bound", "step", "peer")]
    assert scripted.asked[:32] == turn * 4  # a warm-up and three rounds
    assert len(scripted.asked) == 32 + 8
    assert "train / torch's act + learn    0.667x [0.667, 0.667]  0.667x [0.667, 0.667]" in result.stdout
    assert "train / peer                   2.000x [2.000, 2.000]  2.000x [2.000, 2.000]" in result.stdout
    assert "pufferlib-core 9 train" in result.stdout
    assert "result: stable" in result.stdout
    assert max(len(line) for line in result.stdout.splitlines() if not line.startswith("saved")) <= 80
    record = json.loads(file.read_text())
    assert record["kind"] == "bench train"
    assert [one["threads"] for one in record["runs"]] == [1, 2]
    assert record["runs"][0]["speeds"]["step"]["wall"]["median"] == pytest.approx(655_360)
    assert Run.load(record["run"]) == bench_train.standard("prospector")


def test_rollout_shows_the_same_from_its_side(scripted: type[Scripted]) -> None:
    result = CliRunner().invoke(app, ["bench", "rollout", "--rounds", "2"])
    assert result.exit_code == 0, result.output
    assert "gridmill bench rollout: prospector" in result.stdout
    for name in ("step ", "rollout ", "train ", "rollout / torch's act"):
        assert f"\n{name}" in result.stdout
    assert "train / torch's act + learn" not in result.stdout


def test_unsteady_rounds_end_with_1(scripted: type[Scripted]) -> None:
    scripted.seconds["trainer"] = [1.0, 1.0, 3.0]
    result = CliRunner().invoke(app, ["bench", "train", "--rounds", "4", "--warmup", "0"])
    assert result.exit_code == 1, result.output
    assert "result: unstable: a CV of train per CPU second is above 20 %" in result.stdout


def test_another_network_and_a_missing_bound_are_said(scripted: type[Scripted]) -> None:
    ready = {"trainer": {"num_weights": 10}, "bound": {"num_weights": 12}, "step": {}}
    notes = bench_train.notes_of(Settings(small("scan")), [{"subjects": ready}])
    assert notes == [
        "no act + learn bound: torch has no core scan; it has lstm, gru",
        "not the same network: the entries of all matrices are trainer 10, bound 12",
    ]
    result = CliRunner().invoke(app, ["bench", "train", "--game", "arena", "--rounds", "1"])
    assert result.exit_code == 0, result.output
    assert "bound" not in {kind for _, kind, _ in scripted.asked}
    assert "note: no act + learn bound: the encoder bag reads tokens" in result.stdout


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (["--threads", "1,x"], "--threads takes different numbers like 1,2, got `1,x`"),
        (["--threads", "2,2"], "--threads takes different numbers like 1,2, got `2,2`"),
        (["--game", "toy", "--recipe", "arena"], "--game and --recipe both name what to measure; give one of them"),
    ],
)
def test_bad_options_are_one_line(options: list[str], expected: str) -> None:
    result = CliRunner().invoke(app, ["bench", "train", *options])
    assert result.exit_code == 2
    assert result.stderr == f"gridmill: {expected}\n"


def test_a_missing_peer_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    script = Path("puffer_train.py")
    monkeypatch.setattr(machine, "beside", lambda name: script if name.endswith(".py") else None)
    with pytest.raises(ValueError, match=r"\.venv-peers-train is missing; make it with `make peers-train`"):
        bench_train.peer_command(Path())


# ---- throughput with the trainer


@pytest.mark.parametrize(("mode", "rate"), [("train", 1.0), ("rollout", 2.0)])
def test_throughput_measures_whole_epochs(scripted: type[Scripted], tmp_path: Path, mode: str, rate: float) -> None:
    settings = throughput.Settings(mode=mode, worlds=16, steps=5000, repeats=3, warmup=100, folder=tmp_path)
    assert throughput.run(settings) == 0
    (file,) = tmp_path.glob(f"*-{mode}.json")
    record = json.loads(file.read_text())
    assert record["steps_per_second"]["mean"] == pytest.approx(1024 * rate)
    assert (record["steps_per_cpu_second"] is None) == (mode == "rollout")
    assert scripted.asked == [(1, "trainer", 1), *[(1, "trainer", 4)] * 3, (1, "trainer closed", 0)]


def test_throughput_trains_two_dense_layers_without_a_core() -> None:
    run = throughput.trained_run(throughput.Settings(worlds=12, threads=2, seed=3, env_impl="native"))
    assert (run.policy.encoder, run.policy.core, run.policy.layers, run.policy.hidden) == ("mlp", "none", 1, 128)
    assert (run.trainer.batch_size, run.trainer.minibatch_size, run.trainer.threads) == (768, 768, 2)
    assert (run.seed, run.trainer.env_impl) == (3, "native")
