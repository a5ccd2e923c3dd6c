"""Callbacks after every epoch, and the run as a loop of the program's own: one loop, whoever goes through it."""

from __future__ import annotations

import os
import shutil
import signal
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tiny import difference, epochs_of, tiny, without_times

import gridmill.train
from gridmill.policy import checkpoint
from gridmill.runs import CallbackFailed, Epoch, epochs, resume, resume_epochs, train


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Four epochs that nobody looked at."""
    return train(tiny(4, run="plain"), tmp_path_factory.mktemp("plain"), panel=False).folder


def ended(folder: Path) -> str:
    return (folder / "log.txt").read_text().splitlines()[-1]


def saved(folder: Path) -> int:
    return checkpoint.newest(folder)[0].epoch


def test_callbacks_that_only_look_change_nothing(plain: Path, tmp_path: Path) -> None:
    seen: list[tuple[Any, ...]] = []

    def look(epoch: Epoch) -> None:
        weight = float(next(epoch.trainer.policy.parameters()).detach().sum())
        seen.append((epoch.number, epoch.checkpoint, epoch.metrics["agent_steps"], weight))
        epoch.metrics.clear()  # a copy

    folder = train(tiny(4, run="plain"), tmp_path, panel=False, callbacks=[look]).folder
    assert [entry[:3] for entry in seen] == [(n, None, 128 * n) for n in (1, 2, 3, 4)]
    assert len({entry[3] for entry in seen}) == 4
    assert difference(plain, folder) == 0
    records = [[without_times(record) for record in epochs_of(each)] for each in (plain, folder)]
    assert records[0] == records[1]
    assert ended(folder) == "ended: finished"


def test_a_loop_of_ones_own_is_the_same_run(plain: Path, tmp_path: Path) -> None:
    with epochs(tiny(4, run="plain"), tmp_path, panel=False) as loop:
        assert loop.result is None
        assert not (tmp_path / "plain").exists()  # nothing begins before it is asked for
        shown = [repr(epoch) for epoch in loop]
    assert shown[0] == f"<Epoch 1 of {tmp_path}/plain: 128 of 512 steps>"
    assert loop.result is not None
    assert (loop.result.epochs, loop.result.exit_code, loop.result.folder) == (4, 0, tmp_path / "plain")
    assert difference(plain, tmp_path / "plain") == 0
    assert list(loop) == []


def test_the_newest_checkpoint_is_named_and_can_be_asked_for(tmp_path: Path) -> None:
    found = []
    for epoch in epochs(tiny(3, run="x", checkpoint__epochs=2), tmp_path, panel=False):
        if epoch.number == 1:
            assert epoch.checkpoint is None
            assert epoch.save() == tmp_path / "x" / "checkpoints" / "epoch-00000001"
        epoch.log(f"seen {epoch.number}")
        found.append(epoch)
    names = [path.name for epoch in found if (path := epoch.checkpoint) is not None]
    assert names == ["epoch-00000003"] * 3  # now that it is over
    log = (tmp_path / "x" / "log.txt").read_text().splitlines()
    assert [line for line in log if line.startswith("seen")] == ["seen 1", "seen 2", "seen 3"]


def test_a_run_can_be_asked_to_stop_and_goes_on_later(plain: Path, tmp_path: Path) -> None:
    def enough(epoch: Epoch) -> None:
        if epoch.number == 2:
            epoch.stop("score is high enough")

    done = train(tiny(4, run="plain"), tmp_path, panel=False, callbacks=[enough])
    assert (done.epochs, done.exit_code, saved(done.folder)) == (2, 0, 2)
    assert ended(done.folder) == "ended: stopped by the program: score is high enough"
    assert "resume with: " in (done.folder / "log.txt").read_text()
    numbers: list[int] = []
    assert resume(done.folder, panel=False, callbacks=[lambda epoch: numbers.append(epoch.number)]).exit_code == 0
    assert numbers == [3, 4]
    assert difference(plain, done.folder) == 0
    assert list(resume_epochs(done.folder, panel=False)) == []  # it is finished


def test_a_wish_to_stop_after_the_last_epoch(tmp_path: Path) -> None:
    done = train(tiny(1, run="x"), tmp_path, panel=False, callbacks=[lambda epoch: epoch.stop()])
    assert ended(done.folder) == "ended: finished"


@pytest.mark.parametrize("how", ["break", "error", "closed"])
def test_a_loop_that_is_left_is_saved(how: str, plain: Path, tmp_path: Path) -> None:
    def leave() -> None:
        for epoch in epochs(tiny(4, run="plain"), tmp_path, panel=False):
            if epoch.number == 2 and how == "break":
                break
            if epoch.number == 2:
                raise KeyError("mine")

    if how == "closed":
        loop = epochs(tiny(4, run="plain"), tmp_path, panel=False)
        next(loop), next(loop)
        loop.close()
        assert loop.result is not None
        assert loop.result.epochs == 2
    elif how == "break":
        leave()
    else:
        with pytest.raises(KeyError, match="mine"):
            leave()
    folder = tmp_path / "plain"
    assert saved(folder) == 2
    assert ended(folder) == "ended: stopped by the program: it left the loop"
    assert [epoch.number for epoch in resume_epochs(folder, panel=False)] == [3, 4]
    assert difference(plain, folder) == 0


def test_a_callback_that_fails_ends_the_run_and_is_named(plain: Path, tmp_path: Path) -> None:
    class Fragile:
        def __call__(self, epoch: Epoch) -> None:
            assert epoch.number < 3, "too\nmuch"

    with pytest.raises(CallbackFailed) as caught:
        train(tiny(4, run="plain"), tmp_path, panel=False, callbacks=[Fragile()])
    name = f"{test_a_callback_that_fails_ends_the_run_and_is_named.__name__}.<locals>.Fragile"
    assert str(caught.value).startswith(f"callback `{name}` failed after epoch 3, in test_callbacks.py line ")
    assert ": AssertionError: too much" in str(caught.value)
    assert "\n" not in str(caught.value)
    assert isinstance(caught.value.__cause__, AssertionError)
    folder = tmp_path / "plain"
    assert saved(folder) == 3
    assert ended(folder).startswith(f"ended: CallbackFailed: callback `{name}` failed after epoch 3")
    assert resume(folder, panel=False).epochs == 4  # nobody holds the folder any more
    assert difference(plain, folder) == 0


def test_numbers_that_a_callback_ruins_are_not_saved(tmp_path: Path) -> None:
    def ruin(epoch: Epoch) -> None:
        if epoch.number == 2:
            next(epoch.trainer.policy.parameters()).data.fill_(float("nan"))
            epoch.save()

    done = train(tiny(4, run="x", checkpoint__epochs=1), tmp_path, panel=False, callbacks=[ruin])
    assert (done.exit_code, saved(done.folder)) == (4, 2)  # of before it
    assert ended(done.folder) == "ended: non-finite values"


def test_signals_come_through(tmp_path: Path) -> None:
    """Ctrl-C while a callback runs ends the run after it, as at any other moment."""

    def interrupted(epoch: Epoch) -> None:
        os.kill(os.getpid(), signal.SIGINT)

    before = signal.getsignal(signal.SIGINT)  # a shell's job in the background ignores it
    done = train(tiny(4, run="x"), tmp_path, panel=False, callbacks=[interrupted])
    assert (done.exit_code, done.epochs, saved(done.folder)) == (130, 1, 1)
    assert signal.getsignal(signal.SIGINT) is before
    shutil.rmtree(done.folder)
    for _ in epochs(tiny(4, run="x"), tmp_path, panel=False):
        os.kill(os.getpid(), signal.SIGTERM)
    assert ended(tmp_path / "x") == "ended: stopped by SIGTERM"
    assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL


def test_what_cannot_be_called_is_refused_before_anything_is_made(tmp_path: Path) -> None:
    with pytest.raises(TypeError) as caught:
        train(tiny(1, run="x"), tmp_path, panel=False, callbacks=[print, 3])  # type: ignore[list-item]
    assert str(caught.value) == "callbacks: expected functions that take one Epoch, got 3"
    assert not (tmp_path / "x").exists()


def test_with_several_ranks_no_callback_saves() -> None:
    session: Any = SimpleNamespace(together=True)
    with pytest.raises(RuntimeError, match=r"^with several ranks, checkpoints are agreed on once per epoch; set check"):
        Epoch(session, {"epoch": 1}).save()


@pytest.mark.parametrize("name", ["train", "resume", "epochs", "resume_epochs"])
def test_who_looks_for_it_beside_the_trainer_is_told_where_it_is(name: str) -> None:
    with pytest.raises(ImportError, match=rf"^gridmill\.train has no `{name}`: use gridmill\.runs\.{name}$"):
        exec(f"from gridmill.train import {name}")
    with pytest.raises(AttributeError, match=r"^module 'gridmill\.train' has no attribute 'nothing'$"):
        _ = gridmill.train.nothing
