"""The run's log: what its files say, that they outlive crashes and resumptions, and that nothing in it stops a run."""

from __future__ import annotations

import errno
import json
import os
import resource
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

from gridmill import games
from gridmill.run import Run
from gridmill.runs import console as panel_room
from gridmill.runs import lines as lines_room
from gridmill.runs.lines import Lines, read_records
from gridmill.runs.log import RunLog
from gridmill.runs.log_lines import TITLES, epoch_line
from gridmill.runs.place import is_being_written

RUN = Run(recipe="toy", game=games.toy())
HEADER = ["recipe: toy, seed 0", "game: toy"]


def metrics(epoch: int, **more: object) -> dict[str, object]:
    return {"epoch": epoch, "agent_steps": epoch * 100, "total_timesteps": 1000, "sps": 1e5, "score": 1.5, **more}


def opened(folder: Path, **options: object) -> RunLog:
    return RunLog(folder, RUN, HEADER, **{"panel": False, **options})  # type: ignore[arg-type]


def epochs_of(folder: Path) -> list[int]:
    return [record["epoch"] for record in read_records(folder / "metrics.jsonl")]


def test_files_say_what_happened(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with opened(tmp_path) as log:
        log.epoch(metrics(1, **{"loss/policy": -0.0123, "loss/value": 0.31, "loss/entropy": 1.92, "eta": 75}))
        log.note("checkpoint epoch-00000001")
    lines = (tmp_path / "log.txt").read_text().splitlines()
    assert lines[:4] == [*HEADER, "", TITLES]
    assert lines[4].split() == ["1", "100", "100", "k", "1.50", "-", "-0.0123", "0.310", "1.92", "1:15"]
    assert lines[5:] == ["checkpoint epoch-00000001", "ended: finished"]
    assert capsys.readouterr().out.splitlines() == lines
    assert (tmp_path / "report.html").exists()
    [record] = read_records(tmp_path / "metrics.jsonl")
    assert record["loss/policy"] == -0.0123


def test_any_metric_may_be_missing_or_strange(tmp_path: Path) -> None:
    with opened(tmp_path) as log:
        log.epoch({})
        log.epoch({"epoch": np.int64(2), "score": float("nan"), "reward": np.float32("inf"), "sps": np.zeros(2)})
    first, second = (tmp_path / "metrics.jsonl").read_text().splitlines()
    assert json.loads(first) == {}
    assert json.loads(second) == {"epoch": 2, "score": None, "reward": None, "sps": "[0. 0.]"}


def test_lines_fit_80_columns_and_stay_ascii(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    big = {"sps": 123456.7, "score": -123456.7, "reward": -1.23e-9, "loss/policy": -1.2e300, "eta": 9e6}
    assert len(TITLES) <= 80
    assert len(epoch_line(metrics(999_999, agent_steps=10**15, **big))) <= 80
    with opened(tmp_path) as log:
        log.note("Größe ✓ " + "word " * 40)
    out = capsys.readouterr().out
    assert out.isascii()
    assert max(map(len, out.splitlines())) <= 80
    assert "Größe ✓" in (tmp_path / "log.txt").read_text()


def test_an_evaluation_is_a_line_of_its_own(tmp_path: Path) -> None:
    result = {"results": [{"game": "toy", "episodes": 8, "score": {"mean": 2.0, "se": 0.5}, "reward": {"mean": 1}}]}
    with opened(tmp_path) as log:
        log.epoch(metrics(3))
        log.evaluation(2, 200, result)
    assert read_records(tmp_path / "metrics.jsonl")[1] == {"epoch": 2, "agent_steps": 200, "evaluation": result}
    said = "evaluation, epoch 2: score 2.00 +- 0.500, reward 1.00 +- - (8 episodes)"
    assert said in (tmp_path / "log.txt").read_text().splitlines()


# ---- crashes and resumptions


def test_a_killed_run_loses_no_epoch(tmp_path: Path) -> None:
    code = f"""
import os, signal
from pathlib import Path
from gridmill import games
from gridmill.run import Run
from gridmill.runs.log import RunLog
log = RunLog(Path({str(tmp_path)!r}), Run(recipe="toy", game=games.toy()), [], panel=False)
for epoch in range(5): log.epoch({{"epoch": epoch}})
os.kill(os.getpid(), signal.SIGKILL)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, timeout=60)
    assert done.returncode == -9, done.stderr
    assert epochs_of(tmp_path) == [0, 1, 2, 3, 4]


def test_a_torn_last_line_is_not_read_and_not_continued(tmp_path: Path) -> None:
    path = tmp_path / "metrics.jsonl"
    path.write_text('{"epoch": 1}\n{"epoch": 2, "sc')
    assert epochs_of(tmp_path) == [1]
    with opened(tmp_path, append=True) as log:
        log.epoch(metrics(2))
    assert epochs_of(tmp_path) == [1, 2]


def test_resuming_cuts_what_will_be_done_again(tmp_path: Path) -> None:
    with opened(tmp_path) as log:
        for epoch in range(1, 7):
            log.epoch(metrics(epoch))
        log.evaluation(3, 300, {"score": {"mean": 1.0}})  # came late: it belongs to an epoch that stays
    with opened(tmp_path, append=True, from_epoch=4) as log:
        log.epoch(metrics(5))
    records = read_records(tmp_path / "metrics.jsonl")
    assert [r["epoch"] for r in records if "evaluation" not in r] == [1, 2, 3, 4, 5]
    assert [r["epoch"] for r in records if "evaluation" in r] == [3]
    lines = (tmp_path / "log.txt").read_text().splitlines()
    assert "resumed after epoch 4" in lines
    assert lines.count(HEADER[0]) == 2


def test_a_fresh_log_forgets_the_old_one(tmp_path: Path) -> None:
    opened(tmp_path).close()
    with opened(tmp_path) as log:
        log.epoch(metrics(1))
    assert (tmp_path / "log.txt").read_text().count(HEADER[0]) == 1
    assert epochs_of(tmp_path) == [1]


def test_one_run_has_one_writer(tmp_path: Path) -> None:
    log = opened(tmp_path)
    log.epoch(metrics(1))
    assert is_being_written(tmp_path)
    with pytest.raises(RuntimeError, match=rf"^`{tmp_path}` is being trained by another process$"):
        opened(tmp_path)
    log.close()
    log.close()  # twice does no harm
    assert epochs_of(tmp_path) == [1]
    assert not is_being_written(tmp_path)


def test_the_last_line_says_what_broke_the_run(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="boom"), opened(tmp_path):
        raise ValueError("boom\nand more")
    assert (tmp_path / "log.txt").read_text().endswith("ended: ValueError: boom and more\n")


# ---- R10: a full disk never stops training


@contextmanager
def files_no_longer_than(size: int) -> Iterator[None]:
    """The system refuses to make files longer, as a full disk does: a write may stop in the middle of a line."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.mark.R10
def test_a_full_disk_is_said_once_and_tried_again(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = opened(tmp_path)
    for epoch in range(1, 4):
        log.epoch(metrics(epoch))
    before = (tmp_path / "metrics.jsonl").stat().st_size
    with files_no_longer_than(before + 40):  # less than a line: what is half written is taken back
        for epoch in range(4, 50):
            log.epoch(metrics(epoch))
        assert (tmp_path / "metrics.jsonl").stat().st_size == before
    out = " ".join(capsys.readouterr().out.split())
    said = "warning: metrics.jsonl cannot be written: File too large; training continues, lines are kept in memory"
    assert out.count(said) == 1
    log.epoch(metrics(50))
    log.close()
    assert epochs_of(tmp_path) == list(range(1, 51))
    assert "metrics.jsonl can be written again, 46 waiting lines were written" in " ".join(
        capsys.readouterr().out.split()
    )


@pytest.mark.R10
def test_a_disk_that_stays_full(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with files_no_longer_than(0), opened(tmp_path) as log:
        for epoch in range(200):
            log.epoch(metrics(epoch))
    out = " ".join(capsys.readouterr().out.split())
    for name in ("metrics.jsonl", "log.txt", "report.html"):
        assert out.count(f"warning: {name} cannot be written") == 1
    assert "metrics.jsonl: 200 writes failed, 200 lines are lost" in out
    assert sorted(path.name for path in tmp_path.iterdir()) == ["log.txt", "metrics.jsonl"]


def test_a_file_that_was_removed_is_written_again(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """With all it had: the run still holds the file that nobody can see any more."""
    with opened(tmp_path) as log:
        log.epoch(metrics(1))
        (tmp_path / "log.txt").unlink()
        (tmp_path / "metrics.jsonl").rename(tmp_path / "moved.jsonl")
        log.epoch(metrics(2))
        log.epoch(metrics(3))
    assert epochs_of(tmp_path) == [1, 2, 3]
    assert (tmp_path / "log.txt").read_text().splitlines()[:4] == [*HEADER, "", TITLES]
    out = " ".join(capsys.readouterr().out.split())
    for name in ("log.txt", "metrics.jsonl"):
        assert out.count(f"warning: {name} was removed or replaced; it is written again") == 1


def test_a_file_that_was_replaced_is_continued(tmp_path: Path) -> None:
    """As an editor does it: what it left stays, also what does not end as a line, and the run goes on behind it."""
    with opened(tmp_path) as log:
        log.epoch(metrics(1))
        log.epoch(metrics(2))
        edited = tmp_path / "edited"
        edited.write_text((tmp_path / "metrics.jsonl").read_text().splitlines(keepends=True)[1] + '{"torn')
        edited.rename(tmp_path / "metrics.jsonl")
        log.epoch(metrics(3))
    assert [record["epoch"] for record in read_records(tmp_path / "metrics.jsonl")] == [2, 3]
    assert '\n{"torn\n{' in (tmp_path / "metrics.jsonl").read_text()


def test_a_file_that_was_removed_and_made_anew_has_all_again(tmp_path: Path) -> None:
    with opened(tmp_path) as log:
        for epoch in (1, 2, 3):
            log.epoch(metrics(epoch))
        (tmp_path / "metrics.jsonl").unlink()
        (tmp_path / "metrics.jsonl").touch()
        log.epoch(metrics(4))
    assert epochs_of(tmp_path) == [1, 2, 3, 4]


def test_a_file_that_was_removed_at_the_end_is_there_again(tmp_path: Path) -> None:
    with opened(tmp_path) as log:
        log.epoch(metrics(1))
        (tmp_path / "metrics.jsonl").unlink()
        (tmp_path / "log.txt").unlink()
    assert epochs_of(tmp_path) == [1]
    assert (tmp_path / "log.txt").read_text().splitlines()[-1] == "ended: finished"


def test_a_line_after_the_end_is_appended(tmp_path: Path) -> None:
    """Of a program that still has a word to say: it emptied the log."""
    with opened(tmp_path) as log:
        log.epoch(metrics(1))
    before = (tmp_path / "log.txt").read_text()
    log.note("my own figure: 3.2")
    assert (tmp_path / "log.txt").read_text() == before + "my own figure: 3.2\n"


def test_half_a_copy_does_not_pass_for_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The disk is full while a file that was made anew is given what the old one had."""
    with opened(tmp_path) as log:
        for epoch in (1, 2, 3):
            log.epoch(metrics(epoch))
        (tmp_path / "metrics.jsonl").unlink()
        (tmp_path / "metrics.jsonl").touch()
        real, left = os.write, [1]

        def full(file: int, data: bytes) -> int:
            if not left:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            left.pop()
            return real(file, data[:10])

        with monkeypatch.context() as disk:
            disk.setattr(lines_room.os, "write", full)
            log._look_for_files()
        assert (tmp_path / "metrics.jsonl").read_bytes() == b""
        log.epoch(metrics(4))
    assert epochs_of(tmp_path) == [1, 2, 3, 4]


def test_what_cannot_be_made_again_is_said_at_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The file was removed, and no new one can be made."""
    real = lines_room.open_plain

    def open_no_metrics(path: Path, *arguments: int) -> int:
        if path.name == "metrics.jsonl":
            raise OSError(errno.EACCES, os.strerror(errno.EACCES), str(path))
        return real(path, *arguments)

    with opened(tmp_path) as log:
        log.epoch(metrics(1))
        (tmp_path / "metrics.jsonl").unlink()
        monkeypatch.setattr(lines_room, "open_plain", open_no_metrics)
    out = " ".join(capsys.readouterr().out.split())
    assert "warning: metrics.jsonl cannot be written: Permission denied" in out
    assert "metrics.jsonl was removed or replaced and cannot be written again: what it had is lost" in out


def test_a_file_of_somebody_else_is_not_written_to(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A second name of it lies where the log was."""
    folder, diary = tmp_path / "run", tmp_path / "diary.txt"
    diary.write_text("a line\nanother without an end")
    with opened(folder) as log:
        log.epoch(metrics(1))
        (folder / "log.txt").unlink()
        os.link(diary, folder / "log.txt")
        log.epoch(metrics(2))
        log.epoch(metrics(3))
    assert diary.read_text() == "a line\nanother without an end"
    out = " ".join(capsys.readouterr().out.split())
    assert (
        out.count("log.txt cannot be written: expected a file that belongs only to the run, got one with 2 names") == 1
    )
    assert "log.txt was removed or replaced and cannot be written again: what it had is lost" in out
    assert epochs_of(folder) == [1, 2, 3]


def test_a_link_in_place_of_a_file_is_not_followed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder, other = tmp_path / "run", tmp_path / "other"
    other.write_text("somebody's\n")
    with opened(folder) as log:
        log.epoch(metrics(1))
        (folder / "log.txt").unlink()
        (folder / "log.txt").symlink_to(other)
        log.epoch(metrics(2))
    assert other.read_text() == "somebody's\n"
    said = "warning: log.txt cannot be written: expected a plain file, got a link"
    assert " ".join(capsys.readouterr().out.split()).count(said) == 1


@pytest.mark.R10
def test_what_waits_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(file: int, data: bytes) -> int:
        raise OSError(28, "No space left on device")

    lines = Lines(tmp_path / "x", append=False)
    with monkeypatch.context() as patch:
        patch.setattr("gridmill.runs.lines.os.write", full)
        for k in range(10_050):
            assert lines.write(str(k)) == "No space left on device"
    assert (lines.waiting, lines.missed) == (10_000, 10_050)
    lines.close()
    assert (tmp_path / "x").read_text().splitlines()[0] == "50"


@pytest.mark.R10
def test_a_terminal_that_has_gone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Gone:
        def write(self, text: str) -> int:
            raise BrokenPipeError

        def flush(self) -> None:
            raise BrokenPipeError

    monkeypatch.setattr("sys.stdout", Gone())
    with opened(tmp_path) as log:
        log.epoch(metrics(1))
    monkeypatch.undo()
    assert epochs_of(tmp_path) == [1]


@pytest.mark.R10
def test_a_broken_panel_gives_way_to_lines(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken(*_: object) -> None:
        raise KeyError("colour")

    monkeypatch.setattr(panel_room.Panel, "epoch", broken)
    with opened(tmp_path, panel=True) as log:
        log.epoch(metrics(1))
        log.epoch(metrics(2))
    assert epochs_of(tmp_path) == [1, 2]
    out = " ".join(capsys.readouterr().out.split())
    assert out.count("warning: panel cannot be written: KeyError: 'colour'; continuing with plain lines") == 1
    assert " ".join(epoch_line(metrics(2)).split()) in out


def test_an_epoch_costs_little(tmp_path: Path) -> None:
    """Counted in calls, which no busy machine changes: 2 000 take about a millisecond, an epoch 500."""
    log, calls = opened(tmp_path), 0
    record = metrics(1) | {f"stat.{k}": k / 7 for k in range(60)}

    def count(_frame: object, event: str, _argument: object) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    sys.setprofile(count)
    try:
        for _ in range(100):
            log.epoch(record)
    finally:
        sys.setprofile(None)
    log.close()
    assert calls < 100 * 2_000, calls


@pytest.mark.parametrize("size", [17, 40, 1 << 20])
def test_resuming_looks_only_at_the_newest_lines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    """The last lines, whatever the blocks in which they are looked for."""
    monkeypatch.setattr(lines_room, "MOST_LINES", 20)
    monkeypatch.setattr(lines_room, "TAIL", size)
    path = tmp_path / "metrics.jsonl"
    texts = [json.dumps({"epoch": epoch}) + "\n" for epoch in range(100)]
    path.write_text("".join(texts))
    assert lines_room.cut_after(path, 85) == []
    assert path.read_text() == "".join(texts[:86])
    assert lines_room.cut_after(path, 5) == []  # what is out of sight stays
    assert path.read_text() == "".join(texts[:66])
    path.write_bytes(b"\0" * 300)
    monkeypatch.setattr(lines_room, "MOST_LOOKED", 100)
    monkeypatch.setattr(lines_room, "MOST_LINE", 50)
    lines_room.cut_after(path, 5)
    assert path.read_bytes() == b""


def test_of_a_large_file_some_lines_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Spread over all of it, the newest among them; `having` looks only at lines with that key."""
    path = tmp_path / "metrics.jsonl"
    texts = [json.dumps({"epoch": epoch} | ({"evaluation": 1} if epoch % 10 == 0 else {})) for epoch in range(100)]
    path.write_text("\n".join(texts) + "\n")
    assert lines_room.is_read_whole(path)
    monkeypatch.setattr(lines_room, "MOST_RECORDS", 30)
    assert not lines_room.is_read_whole(path)
    assert [record["epoch"] for record in read_records(path)] == list(range(3, 100, 4))
    assert [record["epoch"] for record in read_records(path, having="evaluation")] == list(range(0, 100, 10))
    monkeypatch.setattr(lines_room, "MOST_RECORDS", 1_000)
    monkeypatch.setattr(lines_room, "MOST_READ", 700)
    assert not lines_room.is_read_whole(path)
    assert [record["epoch"] for record in read_records(path)] == list(range(0, 100, 3))
    monkeypatch.setattr(lines_room, "MOST_LINES", 10)
    assert [record["epoch"] for record in read_records(path)] == list(range(90, 100))
    assert lines_room.is_read_whole(tmp_path / "none")


@pytest.mark.parametrize("foreign", ["3", "[1]", "{}, {}", '{"epoch": [1', "]", "\x00", "[" * 100_000, ""])
@pytest.mark.parametrize("block", [1, 2, 256])
def test_foreign_lines_are_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, foreign: str, block: int) -> None:
    """However many lines are read at a time."""
    monkeypatch.setattr(lines_room, "BLOCK", block)
    path = tmp_path / "metrics.jsonl"
    path.write_text("".join(f'{{"epoch": {epoch}}}\n' for epoch in range(5)) + f'{foreign}\n{{"epoch": 5}}\n{{"epo')
    assert epochs_of(tmp_path) == list(range(6))


def test_millions_of_lines_are_few_calls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of what reads JSON: resuming and reporting a run whose metrics somebody has filled."""
    path = tmp_path / "metrics.jsonl"
    path.write_text('{"epoch": 1, "evaluation": {"score": 1}}\n' * 300_000)
    calls, real = 0, json.loads

    def counted(text: bytes) -> object:
        nonlocal calls
        calls += 1
        return real(text)

    monkeypatch.setattr(lines_room.json, "loads", counted)
    assert len(read_records(path)) <= lines_room.MOST_RECORDS
    assert calls <= lines_room.MOST_RECORDS / lines_room.BLOCK + 1
    lines_room.cut_after(path, 1)
    assert calls <= lines_room.MOST_RECORDS / lines_room.BLOCK + 1
