"""`gridmill sweep`: spaces and refusals, tiny sweeps from beginning to end, pruning, costs, workers, the page."""

from __future__ import annotations

import contextlib
import json
import math
import os
import re
import socket
import threading
import types
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from tiny import SUPPORT, tiny
from typer.testing import CliRunner, Result

from gridmill.cli import app
from gridmill.config import ConfigError
from gridmill.runs import overrides, place
from gridmill.workshop.sweep import beside, command, pictures, record, space, storage, study, worker

pytest.importorskip("optuna")

TINY = f"{SUPPORT / 'tiny.py'}:tiny"
RATE, GAMMA = "optimizer.learning_rate=log(1e-4,1e-2)", "trainer.gamma=range(0.9,0.999)"


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def sweep(*words: str) -> Result:
    return CliRunner().invoke(app, ["sweep", *words])


def state(name: str = "tiny-sweep") -> record.State:
    return record.read(Path("runs") / name)


# ---- spaces


def test_every_form_of_a_space_is_read() -> None:
    texts = [
        RATE,
        "trainer.update_epochs=int(1,4)",
        "policy.core=choice(none, scan)",
        "trainer.gamma=range(0.9,0.99,0.03)",
    ]
    found, plain = space.read([*texts, "seed=3"], tiny())
    assert plain == ("seed=3",)
    assert [(d.path, d.word, d.whole) for d in found] == [
        ("optimizer.learning_rate", "log", False),
        ("trainer.update_epochs", "int", True),
        ("policy.core", "choice", False),
        ("trainer.gamma", "range", False),
    ]
    assert (found[0].low, found[0].high, found[2].choices, found[3].step) == (1e-4, 1e-2, ("none", "scan"), 0.03)


def test_log_and_range_give_whole_numbers_where_the_setting_is_one() -> None:
    (found,), _ = space.read(["trainer.update_epochs=log(1,16)"], tiny())
    assert found.whole
    assert found.written(4) == "trainer.update_epochs=4"


def test_values_are_short_and_inside_of_the_space() -> None:
    (found,), _ = space.read([RATE], tiny())
    assert found.written(0.00123456789) == "optimizer.learning_rate=0.0012346"
    assert found.written(0.01) == "optimizer.learning_rate=0.01"
    for wrong in (1.0, None, "x", True):  # what a storage of somebody else's may hold
        with pytest.raises(ValueError, match=r"expected 0.0001 to 0.01 for optimizer.learning_rate"):
            found.written(wrong)


def test_choices_may_be_json() -> None:
    (found,), _ = space.read(['players=choice({},{"script:random": 0.5})'], tiny())
    assert found.choices == ("{}", '{"script:random": 0.5}')


REFUSED = {
    "optimizer.learning_rat=log(1e-4,1e-2)": "did you mean `learning_rate`",
    "learning_rate=log(1e-4,1e-2)": "did you mean `optimizer.learning_rate`?",
    "optimizer.learning_rate=lgo(1e-4,1e-2)": "did you mean `log`",
    "optimizer.learning_rate=log(0,1e-2)": "expected LOW above 0 in a log space, got `optimizer.",
    "optimizer.learning_rate=log(1e-2,1e-4)": "expected LOW below HIGH",
    "optimizer.learning_rate=log(1e-2)": "expected log(LOW,HIGH), got",
    "trainer.gamma=range(0.5,2.0)": "at `$.trainer.gamma`",
    "trainer.gamma=range(a,b)": "expected range(LOW,HIGH[,STEP]), got",
    "trainer.gamma=range(0.1,0.2,0.5)": "expected STEP above 0 and at most HIGH - LOW",
    "trainer.update_epochs=int(1.5,3)": "expected whole numbers, got",
    "trainer.update_epochs=range(1,2.5)": "expected whole numbers, because the setting is one, got 1, 2.5",
    "policy.core=choice(none,scna)": "`$.policy.core`",
    "policy.core=choice(none)": "expected two or more different values",
    "seed=int(1,5)": "--seeds N trains every trial with several seeds",
    "run=choice(a,b)": "run=NAME",
}


@pytest.mark.parametrize("text", REFUSED)
def test_a_wrong_space_is_refused_in_one_line_before_anything_starts(text: str) -> None:
    result = sweep(TINY, text)
    assert result.exit_code == 2
    assert REFUSED[text] in result.stderr
    assert result.stderr.startswith("gridmill: ")
    assert result.stderr.count("\n") == 1
    assert not Path("runs").exists()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([TINY], "expected a setting to search, such as 'optimizer.learning_rate=log(1e-4,1e-2)', got none"),
        ([TINY, RATE, "optimizer.learning_rate=0.1"], "expected one space or one value, got several"),
        ([TINY, RATE, "trainer.gama=0.9"], "did you mean `gamma`"),
        ([TINY, RATE, "trainer.batch_size=7"], "at `$.trainer."),
        ([TINY, RATE, "--trials", "0"], "--trials must be at least 1, got 0"),
        ([TINY, RATE, "--workers", "100000"], "8 for each core, got 100000"),
        ([TINY, RATE, "--storage", "mysql://a:secret@b/c"], "--storage takes FILE.journal in a shared directory or"),
        ([TINY, RATE, "--storage", "postgresql://a:secret@127.0.0.1:1/c"], "127.0.0.1:1/c`"),
        (["no_such_recipe", RATE], "no_such_recipe"),
    ],
)
def test_wrong_words_are_refused_too(words: list[str], said: str) -> None:
    result = sweep(*words)
    assert result.exit_code == 2, result.output
    assert said in result.stderr
    assert "secret" not in result.output
    assert result.stderr.count("\n") == 1


# ---- whole sweeps


def test_a_sweep_leaves_runs_a_page_and_the_best_command_line() -> None:
    result = sweep(TINY, RATE, "policy.core=choice(none,scan)", "trainer.total_timesteps=384", "--trials", "3")
    assert result.exit_code == 0, result.output
    found = state()
    assert [(t.number, t.state) for t in found.trials] == [(k, "done") for k in range(3)]
    assert found.best is not None
    best = max(found.trials, key=lambda t: (t.value, -t.number))
    assert (found.best.number, found.best.score) == (best.number, best.value)
    words = ["train", TINY, "trainer.total_timesteps=384", *best.changes()]
    assert all(word in result.stdout for word in words)
    assert [line for line in result.stdout.splitlines() if len(line) > 80 and TINY not in line] == []
    for trial in found.trials:
        own = json.loads((Path("runs/tiny-sweep") / f"trial-{trial.number:04}" / "run.json").read_text())["run"]
        rate, core = trial.settings.values()
        assert (own["optimizer"]["learning_rate"], own["policy"]["core"]) == (float(rate), core)
        assert own["trainer"]["total_timesteps"] == 384
    page = Path("runs/tiny-sweep/sweep.html").read_text()
    assert "gridmill train" in page
    assert page.count("trial-0002/report.html") == 1
    assert "All settings at once" in page
    # A trial is a run like any other.
    assert CliRunner().invoke(app, ["report", "runs/tiny-sweep/trial-0000", "--no-baselines"]).exit_code == 0
    shown = sweep("tiny-sweep")
    assert shown.exit_code == 0
    assert "3 of 3 trials: 3 done" in shown.stdout


def test_the_same_command_adds_trials_and_repeats_none() -> None:
    words = [TINY, RATE, "trainer.total_timesteps=256", "--trials"]
    assert sweep(*words, "2").exit_code == 0
    first = state().trials
    result = sweep(*words, "3")
    assert "continues: 2 of 3 trials: 2 done" in result.stdout
    assert list(state().trials[:2]) == list(first)
    assert len(state().trials) == 3
    again = sweep(*words, "3")
    assert again.exit_code == 0
    assert len(state().trials) == 3


def test_another_space_under_the_same_name_is_refused() -> None:
    assert sweep(TINY, RATE, "trainer.total_timesteps=256", "--trials", "1").exit_code == 0
    result = sweep(TINY, GAMMA, "trainer.total_timesteps=256", "--trials", "1")
    assert result.exit_code == 2
    assert (
        "a different sweep named `tiny-sweep` already exists (its space: optimizer.learning_rate=log" in result.stderr
    )
    assert sweep(TINY, GAMMA, "trainer.total_timesteps=256", "run=other", "--trials", "1").exit_code == 0
    assert Path("runs/other/sweep.html").is_file()


def test_a_folder_of_something_else_is_refused() -> None:
    Path("runs/mine").mkdir(parents=True)
    Path("runs/mine/thesis.txt").write_text("x")
    result = sweep(TINY, RATE, "run=mine")
    assert result.exit_code == 2
    assert "exists and is not a sweep; choose another name with run=NAME" in result.stderr


def test_several_seeds_are_runs_of_their_own_and_their_mean_counts() -> None:
    assert sweep(TINY, RATE, "trainer.total_timesteps=256", "seed=5", "--trials", "1", "--seeds", "2").exit_code == 0
    (trial,) = state().trials
    assert len(trial.scores) == 2
    assert trial.value == pytest.approx(sum(trial.scores) / 2)
    seeds = [
        json.loads((run / "run.json").read_text())["run"]["seed"] for run in sorted(Path("runs").glob("*/trial-*"))
    ]
    assert seeds == [5, 6]


def test_cost_searches_for_the_score_per_second() -> None:
    assert sweep(TINY, RATE, "trainer.total_timesteps=256", "--trials", "1", "--cost").exit_code == 0
    (trial,) = state().trials
    assert trial.value == pytest.approx(trial.scores[0] / trial.seconds)
    assert state().sweep.searched == "score per second"


def test_a_score_below_zero_is_not_made_better_by_taking_longer() -> None:
    searched = record.Sweep("s", "tiny", (), (), (0,), cost=True)
    holder = type("Holder", (), {"study": type("Study", (), {"sweep": searched})})
    values = [worker.Worker._value(holder, *pair) for pair in ((-2.0, 10.0), (-2.0, 99.0), (0.5, 99.0), (0.5, 10.0))]  # type: ignore[arg-type]
    assert values == sorted(values)


def test_a_trial_that_does_not_fit_fails_alone_and_counts() -> None:
    result = sweep(TINY, "trainer.batch_size=choice(128,100)", "trainer.total_timesteps=256", "--trials", "4")
    assert result.exit_code == 0, result.output
    states = Counter(trial.state for trial in state().trials)
    assert sum(states.values()) == 4
    assert states["failed"]
    assert states["done"]
    assert all("batch_size" in trial.trouble for trial in state().trials if trial.state == "failed")
    assert "failed: ConfigError" in result.stdout


def test_no_score_at_all_is_an_exit_code_of_its_own() -> None:
    result = sweep(TINY, RATE, "trainer.total_timesteps=128", "trainer.desync_episodes=false", "--trials", "1")
    assert result.exit_code == 1
    assert "no episode ended; increase trainer.total_timesteps" in " ".join(result.stdout.split())


def test_pruning_ends_what_is_below_the_median(monkeypatch: pytest.MonkeyPatch) -> None:
    """Six trials that get worse: the first four are trained to their end, the others are cut early."""
    metrics_of = iter(range(6))

    def train(self: Any, run: Any, look: Any) -> Any:
        worth, total = 10 - next(metrics_of), run.trainer.total_timesteps
        for epoch in range(1, 11):
            metrics = {"agent_steps": total * epoch // 10, "score_recent": worth * epoch / 10, "seconds": epoch}
            if look(metrics):
                return worker.Result(Path(), 0, epoch, 1.0, epoch, 0), True
        return worker.Result(Path(), total, 10, float(worth), 10.0, 0), False

    monkeypatch.setattr(worker.Worker, "_train", train)
    assert sweep(TINY, RATE, "--trials", "6", "--prune").exit_code == 0
    assert [trial.state for trial in state().trials] == ["done"] * 4 + ["pruned"] * 2
    assert [len(trial.curve) for trial in state().trials] == [10] * 4 + [3] * 2  # always 4 of 20 looks
    page = Path("runs/tiny-sweep/sweep.html").read_text()
    assert page.count('class="mark pruned"') == 4  # trial by trial, and over the one setting


def test_a_pruned_run_is_saved_and_can_be_resumed() -> None:
    working: Any = types.SimpleNamespace(folder=Path("runs"))
    run = tiny(epochs=4, run="cut")
    done, pruned = worker.Worker._train(working, run, lambda metrics: "pruned: x" if metrics["epoch"] == 2 else "")
    assert (done.exit_code, done.epochs, pruned) == (0, 2, True)
    assert Path("runs/cut/log.txt").read_text().rstrip().endswith("ended: stopped by the program: pruned: x")
    again, pruned = worker.Worker._train(working, run, lambda metrics: "")
    assert (again.exit_code, again.epochs, pruned) == (0, 4, False)


# ---- several workers


def study_of(url: str = "", name: str = "s") -> study.Study:
    found, _ = space.read([RATE, GAMMA], tiny())
    sweep_ = record.Sweep(name, "tiny", (), (RATE, GAMMA), (0,), False)
    return study.Study(sweep_, found, storage.open_storage(url, Path("s"), name), url, seed=0)


@pytest.mark.parametrize("url", ["", "shared/s.journal"], ids=["SQLite", "journal"])
def test_workers_at_once_make_every_trial_once(url: str) -> None:
    many, told, faults = 24, list[int](), list[BaseException]()
    Path("s").mkdir()

    def work() -> None:
        try:
            mine = study_of(url)
            while (trial := mine.next(many)) is not None:
                told.append(trial.number)
                mine.tell(trial, "done", 1.0)
            mine.storage.close()
        except BaseException as fault:
            faults.append(fault)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert faults == []
    assert sorted(told) == list(range(many))
    assert [t.state for t in study_of(url).state(many).trials] == ["done"] * many


@pytest.mark.parametrize("url", ["", "shared/s.journal"], ids=["SQLite", "journal"])
def test_a_trial_of_a_living_worker_is_left_alone_and_one_of_a_dead_worker_taken_up(url: str) -> None:
    Path("s").mkdir()
    first, second = study_of(url), study_of(url)
    trial = first.next(1)
    assert second.next(1) is None
    assert second.unfinished()
    settings = first.changes(trial)
    first.storage.claims.close()  # what the system does when a process ends
    again = second.next(1)
    assert again.number == trial.number
    assert second.changes(again) == settings
    assert study_of(url).next(1) is None


def test_a_setting_that_kills_its_workers_is_given_up() -> None:
    Path("s").mkdir()
    for _ in range(study.MOST_DEATHS):
        mine = study_of()
        assert mine.next(1).number == 0
        mine.storage.claims.close()
    last = study_of()
    assert last.next(1) is None
    (trial,) = last.state(1).trials
    assert (trial.state, trial.trouble) == ("failed", "its worker died 3 times without an error message")


def test_a_stop_is_no_death() -> None:
    Path("s").mkdir()
    for _ in range(study.MOST_DEATHS + 2):
        mine = study_of()
        mine.leave(mine.next(1))
    assert study_of().next(1).number == 0


# ---- the page


def test_what_decides_matters() -> None:
    """Values that follow from the first setting alone."""
    Path("s").mkdir()
    mine = study_of()
    while (trial := mine.next(12)) is not None:
        mine.tell(trial, "done", -abs(math.log10(trial.params["optimizer.learning_rate"]) + 3))
    found = mine.save(Path("s"), 12).importance
    assert found["optimizer.learning_rate"] > 2 * found["trainer.gamma"]
    assert sum(found.values()) == pytest.approx(1)
    assert "What matters" in Path("s/sweep.html").read_text()


def test_axes_have_places_and_marks() -> None:
    found, _ = space.read([RATE, "policy.core=choice(none,scan)", "trainer.update_epochs=int(1,3)"], tiny())
    rate, core, epochs = map(pictures.Axis.of, found)
    assert rate.at("0.001") == pytest.approx(0.5)
    assert rate.at("x") is rate.at("-1") is core.at("lstm") is None
    assert core.at("none") == 0.25
    assert [text for _, text in rate.marks()] == ["0.0001", "0.001", "0.01"]
    assert [text for _, text in epochs.marks()] == ["1", "2", "3"]


@pytest.mark.parametrize("last", [3, 9, 17, 20, 99, 250])
def test_no_trial_has_a_broken_number(last: int) -> None:
    trials = [record.Trial(number, "done", {}, float(number)) for number in range(last + 1)]
    drawn = pictures.history(trials, "score", last)
    marks = re.findall(r'class="tick middle"[^>]*>([^<]*)<', drawn)
    assert (marks[0], marks[-1]) == ("0", str(last))
    assert all(mark.isdigit() for mark in marks)


def test_a_sweep_whose_worker_was_killed_is_not_running() -> None:
    folder = Path("runs/s")
    folder.mkdir(parents=True)
    trials = [record.Trial(0, "running", {}, host=socket.gethostname()), record.Trial(1, "running", {}, host="other")]
    of = record.Sweep("s", "ci", (), (GAMMA,), (0,), False)
    record.write(folder, record.State(of, 3, "", trials))
    with contextlib.closing(place.Lock(folder, shared=True)):
        assert "2 of 3 trials: 2 under way" in sweep("s").stdout
        assert not (folder / "sweep.html").exists()  # whoever works there writes it
    said = sweep("s").stdout
    assert "2 of 3 trials: 1 under way, 1 unfinished" in said
    assert "not all trials have ended; the command that started the sweep continues it" in said
    assert '<span class="live">running' in (folder / "sweep.html").read_text()  # on the other host, as far as is known
    record.write(folder, record.State(of, 3, "", trials[:1]))
    assert "1 of 3 trials: 1 unfinished" in sweep("s").stdout
    assert '<span class="live">' not in (folder / "sweep.html").read_text()
    assert [trial.state for trial in record.read(folder).trials] == ["running"]  # for whoever continues it


def test_names_of_strangers_are_only_text_on_the_page() -> None:
    evil = "<script>alert(1)</script>"
    trial = record.Trial(0, "done", {"trainer.gamma": evil}, 1.0, (1.0,), 1.0, 10, ((1.0, 1.0),), evil, evil)
    of = record.Sweep(evil, evil, (evil,), (GAMMA,), (0, 1), False)
    Path("s").mkdir()
    from gridmill.workshop.sweep import page

    page.write(Path("s"), record.State(of, 1, "", [trial], {evil: 1.0}))
    assert evil not in Path("s/sweep.html").read_text()


def test_a_best_command_line_trains() -> None:
    assert sweep(TINY, RATE, "trainer.total_timesteps=256", "--trials", "1").exit_code == 0
    best = state().best
    assert best is not None
    result = CliRunner().invoke(app, [*state().words_of(best), "run=again"])
    assert result.exit_code == 0, result.output
    again = json.loads(Path("runs/again/run.json").read_text())["run"]
    first = json.loads(Path("runs/tiny-sweep/trial-0000/run.json").read_text())["run"]
    assert {**again, "run": ""} == {**first, "run": ""}


def test_what_is_typed_goes_to_the_other_workers_unchanged() -> None:
    settings = command.Settings(TINY, (RATE, "a.b=c d"), 3, "x.journal", 2, 3, True, True, Path("somewhere"))
    assert command.Settings.read(settings.written()) == settings
    assert overrides.split(settings.texts[1]) == ("a.b", "c d")


def test_passwords_are_not_kept() -> None:
    assert storage.without_password("postgresql://me:secret@db:5432/x?a=b") == "postgresql://me@db:5432/x?a=b"
    assert storage.without_password("postgresql://db/x") == "postgresql://db/x"


def test_a_missing_driver_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "psycopg", None)
    with pytest.raises(ValueError, match=r"PostgreSQL needs psycopg: .*gridmill\[postgresql\]"):
        storage.open_storage("postgresql://me@db/x", Path("s"), "s")


def test_a_space_is_checked_against_the_settings_beside_it() -> None:
    with pytest.raises(ConfigError, match=r"gamma"):
        space.read([RATE, "trainer.gamma=2"], tiny())


def refusing(*_: Any) -> None:
    """What SQLAlchemy raises on a full disk."""
    from sqlalchemy.exc import OperationalError

    raise OperationalError("INSERT INTO trials VALUES (?)", ("x" * 1000,), OSError("database or disk is full"))


def test_a_full_disk_is_one_line_with_the_storage(monkeypatch: pytest.MonkeyPatch) -> None:
    said = "a sweep cannot be stored in `runs/tiny-sweep/study.sqlite3`: database or disk is full"
    monkeypatch.setattr(study.Study, "next", refusing)
    result = sweep(TINY, RATE, "--trials", "1")
    assert (result.exit_code, result.stderr) == (2, f"gridmill: {said}\n")
    settings = command.Settings(TINY, (RATE,), 1)
    with pytest.raises(ValueError) as caught:  # as a further worker
        beside.main(os.getppid(), settings.written())
    assert str(caught.value) == said


def test_a_damaged_database_is_one_line_with_the_storage() -> None:
    Path("s").mkdir()
    Path("s/study.sqlite3").write_bytes(b"no database" * 1000)
    with pytest.raises(ValueError) as caught:
        storage.open_storage("", Path("s"), "s")
    assert str(caught.value) == "a sweep cannot be stored in `s/study.sqlite3`: file is not a database"
