"""What lies in a run's folder and is not the run's: links to somebody's files, pipes, devices, files without end.

Commands that read leave it unread and do not wait for it; a resume, which would write there, refuses by name. Nothing
outside of the folder changes.
"""

from __future__ import annotations

import os
import shutil
import socket
import stat
from collections.abc import Callable
from pathlib import Path

import pytest
from strangers import REPLAY, Answer, ask, commands, honest, one_line

from gridmill.config import files
from gridmill.runs import lines, listing, place, resume
from gridmill.runs.report import page

pytestmark = pytest.mark.X9


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return honest(tmp_path_factory.mktemp("runs"))


def link(name: str, target: str) -> Callable[[Path, Path], None]:
    """A link in place of a file or folder of the run, to one of somebody's."""

    def plant(folder: Path, outside: Path) -> None:
        gone(folder / name)
        (folder / name).symlink_to(outside / target)

    return plant


def made(name: str, make: Callable[[Path], None]) -> Callable[[Path, Path], None]:
    def plant(folder: Path, outside: Path) -> None:
        gone(folder / name)
        make(folder / name)

    return plant


def gone(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def endless(path: Path) -> None:
    path.write_bytes(b"x")
    os.truncate(path, 1 << 36)


def a_socket(path: Path) -> None:
    where = os.getcwd()
    os.chdir(path.parent)  # the names of sockets are short
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(path.name)
    os.chdir(where)


def device(path: Path) -> None:
    """/dev/zero by another name."""
    try:
        os.mknod(path, 0o666 | stat.S_IFCHR, os.makedev(1, 5))
    except PermissionError:
        pytest.skip("only root makes devices")


def hard_link(folder: Path, outside: Path) -> None:
    gone(folder / "log.txt")
    os.link(outside / "a.txt", folder / "log.txt")


NEWEST = "checkpoints/epoch-00000002"
CASES: dict[str, Callable[[Path, Path], None]] = {
    "metrics are a link": link("metrics.jsonl", "a.txt"),
    "the log is a link": link("log.txt", "a.txt"),
    "the log is another's file too": hard_link,
    "run.json is a link": link("run.json", "a.txt"),
    "the report is a link": link("report.html", "a.txt"),
    "baselines are a link": link("baselines.json", "a.txt"),
    "the curriculum is a link": link("curriculum.json", "a.txt"),
    "checkpoints are a link": link("checkpoints", "inner"),
    "a checkpoint is a link": link(NEWEST, "inner"),
    "weights are a link": link(f"{NEWEST}/policy.safetensors", "a.txt"),
    "unfinished is a link": link("checkpoints/epoch-00000003.tmp", "inner"),
    "replays are a link": link("replays", "inner"),
    "a replay is a link": link(REPLAY, "a.txt"),
    "a replay is endless": link(REPLAY, "../../../../../../../../../../dev/zero"),
    "the dump is a link": link("dump", "inner"),
    "traces are a link": link("traces", "inner"),
    "metrics are a pipe": made("metrics.jsonl", os.mkfifo),
    "the log is a pipe": made("log.txt", os.mkfifo),
    "run.json is a pipe": made("run.json", os.mkfifo),
    "the manifest is a pipe": made(f"{NEWEST}/manifest.json", os.mkfifo),
    "a replay is a pipe": made(REPLAY, os.mkfifo),
    "metrics are a device": made("metrics.jsonl", device),
    "run.json is a device": made("run.json", device),
    "a replay is a device": made(REPLAY, device),
    "baselines are a socket": made("baselines.json", a_socket),
    "metrics are endless": made("metrics.jsonl", endless),
    "the log is endless": made("log.txt", endless),
    "run.json is endless": made("run.json", endless),
    "a replay is of many gigabytes": made(REPLAY, endless),
}
# A resume takes no notice of what it does not open; what it would write to is refused.
GOES_ON = {"a checkpoint is a link", "weights are a link", "unfinished is a link", "the manifest is a pipe"}
GOES_ON |= {name for name in CASES if name.startswith("a replay")}
GOES_ON |= {"metrics are endless", "the log is endless", "run.json is endless"}


def state(outside: Path) -> dict[str, tuple[bytes, int]]:
    """Everything outside, with the times of changes."""
    return {
        str(path): (b"" if path.is_dir() else path.read_bytes(), path.stat().st_mtime_ns)
        for path in [outside, *sorted(outside.rglob("*"))]
    }


def opened(run: Path, tmp_path: Path, name: str, which: list[str]) -> dict[str, Answer]:
    folder, out, outside = (tmp_path / name for name in ("runs/mine", "out", "outside"))
    shutil.copytree(run, folder)
    out.mkdir()
    (outside / "inner" / "epoch-00000009.tmp").mkdir(parents=True)
    (outside / "inner" / "epoch-00000001").mkdir()
    for file in ("a.txt", "inner/b.txt", "inner/epoch-00000001/c.txt"):
        (outside / file).write_text("somebody's\n")
    CASES[name](folder, outside)
    before, found = state(outside), {}
    for command in which:
        found[command] = ask(commands(folder, out)[command], tmp_path, out)
        one_line(found[command])
        assert state(outside) == before, command
    return found


@pytest.mark.parametrize("name", CASES)
def test_nobodys_files_but_the_runs(run: Path, tmp_path: Path, name: str) -> None:
    found = opened(run, tmp_path, name, ["runs", "resume", *(["show"] if name in GOES_ON else [])])
    assert found["runs"].code == 0
    assert found["resume"].code == (0 if name in GOES_ON else 2)
    if name not in GOES_ON:
        assert "expected a" in found["resume"].err


@pytest.mark.long
@pytest.mark.parametrize("name", CASES)
def test_nobodys_files_in_any_command(run: Path, tmp_path: Path, name: str) -> None:
    found = opened(run, tmp_path, name, list(commands(run, tmp_path)))
    assert (found["resume"].code == 0) == (name in GOES_ON), found["resume"]


def test_what_is_refused_is_said(run: Path, tmp_path: Path) -> None:
    folder = tmp_path / "mine"
    shutil.copytree(run, folder)
    (folder / "metrics.jsonl").unlink()
    os.mkfifo(folder / "metrics.jsonl")
    with pytest.raises(ValueError) as caught:
        resume(folder, panel=False)
    assert str(caught.value) == f"expected a plain file of the run itself, got a pipe: `{folder / 'metrics.jsonl'}`"
    shutil.move(folder / "checkpoints", tmp_path / "checkpoints")
    (folder / "checkpoints").symlink_to(tmp_path / "checkpoints")
    (folder / "metrics.jsonl").unlink()
    with pytest.raises(ValueError, match=r"^expected a folder, got a link - in `"):
        resume(folder, panel=False)
    os.link(folder / "log.txt", tmp_path / "other.txt")
    said = f"expected a file that belongs only to the run, got one with 2 names: `{folder / 'log.txt'}`"
    (folder / "checkpoints").unlink()
    with pytest.raises(ValueError) as caught:
        place.refuse_foreign(folder)
    assert str(caught.value) == said


def test_a_checkpoint_outside_of_a_run_is_not_resumed(run: Path, tmp_path: Path) -> None:
    """Around it lie somebody's files: a log and a report would come among them."""
    copy = tmp_path / "downloads" / "epoch-00000002"
    shutil.copytree(run / NEWEST, copy)
    with pytest.raises(ValueError) as caught:
        resume(copy, panel=False)
    assert str(caught.value) == f"expected a run or RUN/checkpoints/epoch-00000002, got `{copy}`"
    assert sorted(tmp_path.rglob("*.txt")) == []


def test_a_run_may_be_called_by_a_link(run: Path, tmp_path: Path) -> None:
    shutil.copytree(run, tmp_path / "mine")
    (tmp_path / "latest").symlink_to("mine")
    assert {row.name: row.state for row in listing.rows(tmp_path)} == {"mine": "finished", "latest": "finished"}
    assert resume(tmp_path / "latest", panel=False).exit_code == 0


def test_files_that_are_written_whole_follow_no_trap(tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.write_text("somebody's")
    file = tmp_path / "file"
    (tmp_path / f"file.{os.getpid()}.tmp").symlink_to(other)
    file.symlink_to(other)
    files.write_whole(file, b"ours")
    assert (file.read_bytes(), other.read_text()) == (b"ours", "somebody's")
    assert not file.is_symlink()


def test_kinds_have_names(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    a_socket(tmp_path / "socket")
    (tmp_path / "link").symlink_to("pipe")
    (tmp_path / "file").write_bytes(b"12345")
    kinds = {"pipe": "a pipe", "socket": "a socket", "link": "a link", "file": "a plain file", "nothing": ""}
    assert {name: files.kind_of(tmp_path / name) for name in kinds} == kinds
    assert (files.kind_of(tmp_path), files.kind_of(Path("/dev/null"))) == ("a folder", "a device")
    assert files.read_plain(tmp_path / "file", 5) == b"12345"
    assert files.read_plain(tmp_path / "file", 2, tail=True) == b"45"
    with pytest.raises(OSError, match="expected at most 4 bytes, got 5"):
        files.read_plain(tmp_path / "file", 4)
    with pytest.raises(OSError, match="expected a plain file, got a link"):
        files.open_plain(tmp_path / "link")


def test_a_report_says_that_it_left_something_out(run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "mine"
    shutil.copytree(run, folder)
    said = "not all epochs are read, metrics.jsonl is too large"
    assert said not in page.write(folder).read_text()
    monkeypatch.setattr(lines, "MOST_RECORDS", 1)
    assert said in page.write(folder).read_text()
    monkeypatch.setattr(lines, "MOST_RECORDS", 9)
    monkeypatch.setattr(lines, "MOST_READ", 9)
    assert said in page.write(folder).read_text()
