"""In-training evaluation: when it is due, what it says, and that its process never outlives anybody."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tiny import tiny
from warm import FORKED

from gridmill import games, replay
from gridmill.run import EvaluationConfig, Run
from gridmill.runs import evaluator as tool
from gridmill.runs import loop, session
from gridmill.runs.evaluator import Evaluator

# A policy for the child alone: noop, after `PAUSE` seconds a step.
POLICY = """
import time
import numpy as np
import gridmill.policy
class Still:
    masks = False
    def bind(self, env, seed):
        pass
    def act(self, obs, state, masks=None):
        time.sleep(PAUSE)
        return np.zeros(len(obs), np.int32), None
    def reset(self, state, ended):
        return state
gridmill.policy.load = lambda path, greedy, temperature: Still()
"""


def a_run(**evaluation: Any) -> Run:
    game = games.toy(num_agents=2).replace("max_steps", 20)
    return Run(recipe="mine", game=game, evaluation=EvaluationConfig(enabled=True, episodes=3, **evaluation))


def a_folder(folder: Path, run: Run, *epochs: int) -> list[Path]:
    folder.mkdir(exist_ok=True)
    (folder / "run.json").write_text(json.dumps({"run": run.tree()}))
    checkpoints = [folder / "checkpoints" / f"epoch-{epoch:08d}" for epoch in epochs]
    for checkpoint in checkpoints:
        checkpoint.mkdir(parents=True)
    return checkpoints


def with_policy(monkeypatch: pytest.MonkeyPatch, pause: float = 0.0) -> None:
    monkeypatch.setattr(tool, "WATCHED", POLICY.replace("PAUSE", str(pause)) + tool.WATCHED)


def wait_for(what: Callable[[], Any], seconds: float = 600.0) -> Any:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        found = what()
        if found:
            return found
        time.sleep(0.02)
    pytest.fail(f"nothing came within {seconds} s")


def lives(pid: int) -> bool:
    """Whether a process runs; one that nobody has waited for does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def pid_of(judge: Evaluator) -> int:
    assert judge._trial is not None
    return judge._trial.process.pid


def test_a_result_has_epoch_score_and_reward(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with_policy(monkeypatch)
    run = a_run(epochs=5)
    (checkpoint,) = a_folder(tmp_path, run, 9)
    with Evaluator(run, tmp_path) as judge:
        assert judge.poll() == []
        assert judge.start_when_due(10, 1.0, checkpoint)
        pid = pid_of(judge)
        (result,) = wait_for(judge.poll)
        nothing = {"mean": 0.0, "se": 0.0}
        assert result.pop("stats").keys() >= {"reward", "length"}
        assert result == {"epoch": 9, "episodes": 3, "score": nothing, "reward": nothing}
        found = json.loads((tmp_path / "baselines.json").read_text())  # played once, beside the first evaluation
        assert found["policies"].keys() >= {"random"}
        assert not Path(f"/proc/{pid}").exists()  # waited for: no zombie
        assert judge.poll() == []


def test_replays_now_and_then(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With every second epoch: of three evaluations the second saves an episode, which plays again."""
    run = a_run(replays_every_epochs=2)
    monkeypatch.setattr(tool, "subprocess", FORKED)
    checkpoints = a_folder(tmp_path / "run", run, 1, 2, 3)
    with_policy(monkeypatch)
    with Evaluator(run, tmp_path / "run") as judge:
        for epoch, checkpoint in enumerate(checkpoints, 1):
            assert judge.start_when_due(epoch, 0.0, checkpoint)
            (found,) = wait_for(judge.poll)
            assert "error" not in found
    (file,) = (tmp_path / "run" / "replays").iterdir()
    assert file.name == "epoch-00000002.replay"
    assert len(list(replay.read(file).play())) == 20


def test_it_is_due_by_epochs_by_seconds_or_with_every_checkpoint(tmp_path: Path) -> None:
    def starts(run: Run, calls: list[tuple[int, float, Path | None]]) -> list[bool]:
        judge, found = Evaluator(run, tmp_path), []
        for call in calls:
            found.append(judge.start_when_due(*call))
            judge.close()  # done at once, so that only the clocks decide
        return found

    a, b, c = a_folder(tmp_path, a_run(), 1, 2, 3)
    assert starts(a_run(epochs=5), [(4, 9, a), (5, 9, a), (9, 9, b), (10, 9, b), (15, 9, b), (16, 9, c)]) == [
        False, True, False, True, False, True,
    ]  # fmt: skip
    assert starts(a_run(seconds=60), [(1, 59, a), (2, 60, a), (3, 119, b), (4, 121, b)]) == [False, True, False, True]
    assert starts(a_run(epochs=100, seconds=60), [(1, 60, a), (101, 61, b)]) == [True, True]
    assert starts(a_run(), [(1, 1, None), (1, 1, a), (2, 2, a), (3, 3, b)]) == [False, True, False, True]
    off = a_run(epochs=1).replace("evaluation.enabled", False)
    assert starts(off, [(50, 50, a)]) == [False]


def test_one_at_a_time_and_close_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with_policy(monkeypatch, pause=100)
    run = a_run(epochs=1)
    first, second = a_folder(tmp_path, run, 1, 2)
    judge = Evaluator(run, tmp_path)
    assert judge.start_when_due(1, 0.0, first)
    pid = pid_of(judge)
    assert not judge.start_when_due(2, 0.0, second)
    assert pid_of(judge) == pid
    mine = os.getpriority(os.PRIO_PROCESS, 0)
    wait_for(lambda: os.getpriority(os.PRIO_PROCESS, pid) == min(19, mine + 10))
    assert os.getpgid(pid) == pid  # Ctrl-C in the terminal does not reach it
    judge.close()
    assert not Path(f"/proc/{pid}").exists()
    judge.close()
    assert judge.poll() == []


def test_it_goes_when_the_trainer_is_killed(tmp_path: Path) -> None:
    run = a_run(epochs=1)
    a_folder(tmp_path, run, 1)
    code = f"""
import json, time
from pathlib import Path
from gridmill.run import Run
from gridmill.runs import evaluator as tool
tool.WATCHED = {POLICY.replace("PAUSE", "100")!r} + tool.WATCHED
folder = Path({str(tmp_path)!r})
judge = tool.Evaluator(Run.load(json.loads((folder / "run.json").read_text())["run"]), folder)
judge.start_when_due(1, 0.0, folder / "checkpoints" / "epoch-00000001")
print(judge._trial.process.pid, flush=True)
time.sleep(600)
"""
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as trainer:
        assert trainer.stdout is not None
        pid = int(trainer.stdout.readline())
        assert lives(pid)
        trainer.send_signal(signal.SIGKILL)
    wait_for(lambda: not lives(pid))


def test_failures_are_lines_of_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = a_run(epochs=1)
    (checkpoint,) = a_folder(tmp_path, run, 4)

    def outcome(script: str) -> str:
        monkeypatch.setattr(tool, "WATCHED", script)
        with Evaluator(run, tmp_path) as judge:
            judge.start_when_due(7, 0.0, checkpoint)
            (result,) = wait_for(judge.poll)
        assert list(result) == ["epoch", "error"]
        assert result["epoch"] == 4
        assert "\n" not in result["error"]
        return str(result["error"])

    assert outcome("import sys; sys.exit('out of luck')") == "evaluation: out of luck (exit code 1)"
    assert outcome("import os; os.kill(os.getpid(), 9)") == "evaluation: no output (exit code -9)"
    assert outcome("print('no JSON')").startswith("evaluation: its answer cannot be read: JSONDecodeError: ")
    assert outcome("print('[]')").startswith("evaluation: its answer cannot be read: TypeError: ")


def test_a_checkpoint_that_cannot_be_loaded_is_a_line_of_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tool, "subprocess", FORKED)
    run = a_run(epochs=1)
    (checkpoint,) = a_folder(tmp_path, run, 4)
    with Evaluator(run, tmp_path) as judge:
        judge.start_when_due(4, 0.0, checkpoint)
        (result,) = wait_for(judge.poll)
    assert result["error"].startswith("evaluation: gridmill: ")
    assert result["error"].endswith("(exit code 2)")


def test_one_that_takes_too_long_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with_policy(monkeypatch, pause=100)
    monkeypatch.setattr(tool, "LIMIT", 0.05)
    run = a_run(epochs=1)
    (checkpoint,) = a_folder(tmp_path, run, 4)
    with Evaluator(run, tmp_path) as judge:
        judge.start_when_due(4, 0.0, checkpoint)
        pid = pid_of(judge)
        assert wait_for(judge.poll) == [{"epoch": 4, "error": "evaluation: not finished after 0 s"}]
        assert not Path(f"/proc/{pid}").exists()


def test_a_process_that_cannot_start_is_a_line_of_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = a_run(epochs=1)
    (checkpoint,) = a_folder(tmp_path, run, 4)
    monkeypatch.setattr(sys, "executable", str(tmp_path / "no_python"))
    judge = Evaluator(run, tmp_path)
    assert not judge.start_when_due(4, 0.0, checkpoint)
    (result,) = judge.poll()
    assert result["error"].startswith("evaluation: [Errno 2] ")


class AtOnce:
    """A judge that has always just judged the checkpoint of the epoch before."""

    under_way: Path | None = None

    def __init__(self, *_: Any) -> None:
        self.epoch: int | None = None

    def start_when_due(self, epoch: int, seconds: float, checkpoint: Path | None) -> bool:
        self.epoch = epoch - 1 if checkpoint is not None and epoch > 1 else None
        return True

    def has_evaluated(self, checkpoint: Path) -> bool:
        return True

    def poll(self) -> list[dict[str, Any]]:
        figures = {"score": {"mean": 1.0, "se": 0.0}, "reward": {"mean": 1.0, "se": 0.0}, "episodes": 1}
        return [] if self.epoch is None else [{"epoch": self.epoch, **figures}]

    def close(self) -> None:
        pass


def test_steps_of_an_evaluation_are_those_of_its_epoch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also after a resume with batches of another size."""
    monkeypatch.setattr(loop, "Evaluator", AtOnce)
    folder = session.train(tiny(3, evaluation__enabled=True, checkpoint__epochs=1), tmp_path, panel=False).folder
    session.resume(folder, ["trainer.batch_size=256", "trainer.total_timesteps=1152"], panel=False)
    lines = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    steps = {line["epoch"]: line["agent_steps"] for line in lines if "evaluation" not in line}
    judged = {line["epoch"]: line["agent_steps"] for line in lines if "evaluation" in line}
    assert list(steps.values()) == [128, 256, 384, 640, 896, 1152]
    assert judged == {epoch: steps[epoch] for epoch in (1, 2, 3, 4, 5)}


# ---- the end of a run


def lines_of(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]


def judged(folder: Path) -> list[int]:
    """The epochs that were evaluated."""
    return [line["epoch"] for line in lines_of(folder) if "evaluation" in line]


def test_the_last_checkpoint_of_a_run_is_evaluated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a run too short for its clocks, too: in metrics, log and report before the run ends."""
    run = tiny(3, evaluation__enabled=True, evaluation__episodes=2, evaluation__epochs=100)
    result = session.train(run, tmp_path, panel=False)
    assert (result.exit_code, judged(result.folder)) == (0, [3])
    (found,) = (line for line in lines_of(result.folder) if "evaluation" in line)
    assert found["agent_steps"] == 384
    log = (result.folder / "log.txt").read_text()
    assert "evaluating epoch-00000003, for at most 600 s (Ctrl-C skips it)\nevaluation, epoch 3: score " in log
    assert "(2 episodes)\nreport " in log
    assert log.endswith("\nended: finished\n")
    assert f"{found['evaluation']['score']['mean']:.3g}" in (result.folder / "report.html").read_text()
    # A resume that finds nothing to do does not evaluate it again; without the old line it does.
    assert session.resume(result.folder, panel=False).exit_code == 0
    assert judged(result.folder) == [3]
    (result.folder / "metrics.jsonl").write_text("")
    monkeypatch.setattr(tool, "subprocess", FORKED)
    session.resume(result.folder, panel=False)
    assert judged(result.folder) == [3]


def test_what_runs_at_the_end_is_waited_for_and_then_the_last_checkpoint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_policy(monkeypatch, pause=0.02)
    monkeypatch.setattr(tool, "subprocess", FORKED)
    run = a_run(epochs=1)
    first, last = a_folder(tmp_path, run, 1, 2)
    with Evaluator(run, tmp_path) as judge:
        assert judge.start_when_due(1, 0.0, first)
        assert not judge.has_evaluated(first)
        assert [found["epoch"] for found in judge.finish(2, last, 60.0, lambda: False)] == [1, 2]
        assert judge.has_evaluated(last)
        assert list(judge.finish(2, last, 60.0, lambda: False)) == []


def test_the_wait_at_the_end_has_a_limit_and_an_exit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with_policy(monkeypatch, pause=100)
    run = a_run()
    (last,) = a_folder(tmp_path, run, 7)
    with Evaluator(run, tmp_path) as judge:
        assert list(judge.finish(9, last, 0.2, lambda: False)) == [
            {"epoch": 7, "error": "evaluation: not finished 0.2 s after the run's end"}
        ]
        pid = pid_of(judge)
        began = time.monotonic()
        assert list(judge.finish(9, last, 1e6, lambda: time.monotonic() - began > 0.2)) == []
    assert not lives(pid)
    monkeypatch.setattr(sys, "executable", str(tmp_path / "no_python"))
    (result,) = Evaluator(run, tmp_path).finish(7, last, 1e6, lambda: False)
    assert result["error"].startswith("evaluation: [Errno 2] ")


def test_ctrl_c_leaves_the_last_evaluation(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The run is over and saved; the signal ends the wait at once, and its exit code says so."""
    with_policy(monkeypatch, pause=1000)
    begin = Evaluator._begin

    def interrupted(judge: Evaluator, epoch: int, checkpoint: Path) -> None:
        begin(judge, epoch, checkpoint)
        os.kill(os.getpid(), signal.SIGINT)

    monkeypatch.setattr(Evaluator, "_begin", interrupted)
    run = tiny(2, evaluation__enabled=True, evaluation__epochs=100)
    result = session.train(run, tmp_path, panel=False)
    assert (result.exit_code, result.epochs, judged(result.folder)) == (130, 2, [])
    assert (result.folder / "checkpoints" / "epoch-00000002").exists()
    log = (result.folder / "log.txt").read_text()
    assert log.endswith("ended: finished; the last evaluation was stopped by SIGINT\n")


def test_a_resumed_run_goes_on_with_the_clocks_of_its_evaluations(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was evaluated is not evaluated again at once, and replays keep their distance."""
    started: list[tuple[int, bool]] = []

    def start(judge: Evaluator, epoch: int, checkpoint: Path) -> None:
        often = judge.run.evaluation.replays_every_epochs
        started.append((epoch, epoch - judge._last_replay >= often))
        raise OSError("not now")

    monkeypatch.setattr(Evaluator, "_start", start)
    settings = {"evaluation__epochs": 4, "evaluation__replays_every_epochs": 6, "evaluation__final_seconds": 0.0}
    run = tiny(6, evaluation__enabled=True, checkpoint__epochs=1, checkpoint__keep=10, **settings)
    folder = session.train(run, tmp_path, panel=False).folder
    (folder / "replays").mkdir()
    (folder / "replays" / "epoch-00000004.replay").touch()
    session.resume(folder, ["trainer.total_timesteps=1792"], panel=False)
    assert started == [(4, False), (10, True), (14, True)]


def test_a_run_that_is_stopped_does_not_wait(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Evaluator, "finish", lambda *_: pytest.fail("waited"))
    run = tiny(50, evaluation__enabled=True, evaluation__epochs=100)
    plain = loop.Session.epoch

    def epoch(self: Any) -> Any:
        self.signal = signal.SIGTERM
        return plain(self)

    monkeypatch.setattr(loop.Session, "epoch", epoch)
    assert session.train(run, tmp_path, panel=False).exit_code == 143
