"""Some sixty runs of strangers, each made to do harm, and every command on each: links, pipes, ways out, code by name,
bombs, numbers that are none, wrong shapes, deep JSON, names that are no names.

No code runs, nothing is written outside, nothing takes two seconds of CPU or waits as long, and there is no traceback.
"""

from __future__ import annotations

import json
import os
import shutil
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from strangers import ARTEFACT, REPLAY, ask, changed_record, commands, honest, one_line, resave, tape_with
from tapes import joined, parts

from gridmill.policy import checkpoint

pytestmark = [pytest.mark.X8, pytest.mark.X9]

NEWEST = "checkpoints/epoch-00000002"
DEEP = "[" * 100_000
MOST = 2.0  # seconds of CPU of a command, and of waiting
MOST_EXPORT = 8.0  # torch.export takes 3 for an honest run
Harm = Callable[[Path], None]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return honest(tmp_path_factory.mktemp("runs"))


def outside(folder: Path) -> Path:
    return folder.parents[1] / "outside"


def gone(path: Path) -> Path:
    shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink(missing_ok=True)
    return path


def link(name: str, target: str = "") -> Harm:
    return lambda folder: gone(folder / name).symlink_to(target or outside(folder) / Path(name).name)


def pipe(name: str) -> Harm:
    return lambda folder: os.mkfifo(gone(folder / name))


def text(name: str, content: str) -> Harm:
    def harm(folder: Path) -> None:
        gone(folder / name).write_text(content)

    return harm


def endless(name: str) -> Harm:
    def harm(folder: Path) -> None:
        gone(folder / name).touch()
        os.truncate(folder / name, 1 << 36)

    return harm


def record(path: str, value: Any) -> Harm:
    """Another entry in the record of the run and of its checkpoints; EVIL is a file of code in the folder."""

    def harm(folder: Path) -> None:
        def change(tree: dict[str, Any]) -> None:
            *above, last = path.split(".")
            for name in above:
                tree = tree[name]
            tree[last] = json.loads(json.dumps(value).replace("EVIL", str(folder / "evil.py")))

        changed_record(folder, change)

    return harm


def tensors(part: str, change: Callable[[torch.Tensor], torch.Tensor]) -> Harm:
    """Another tensor in every checkpoint: the largest one of the policy or of the trainer."""

    def harm(folder: Path) -> None:
        for path in sorted((folder / "checkpoints").iterdir()):
            found = checkpoint.load(path)
            inside = getattr(found, part)
            name = max(inside, key=lambda each: (inside[each].is_floating_point(), inside[each].numel()))
            inside[name] = change(inside[name])
            resave(found, found.policy, found.trainer)

    return harm


def replay(change: Callable[[dict[str, Any]], None]) -> Harm:
    return lambda folder: tape_with(folder, change)


def replay_bomb(folder: Path) -> None:
    """Zeros that unpack to much more than the file."""
    head, _ = parts((folder / REPLAY).read_bytes())
    packed = zlib.compress(bytes(60_000_000), 9)
    head["branches"][0] |= {"ticks": 30_000_000, "actions": {"at": 0, "size": len(packed), "raw": 60_000_000}}
    (folder / REPLAY).write_bytes(joined(head, packed))


def header_bomb(folder: Path) -> None:
    """A file of weights whose header claims more than there is."""
    for path in (folder / "checkpoints").iterdir():
        (path / "policy.safetensors").write_bytes((1 << 60).to_bytes(8, "little") + b"{}")


def crowded(names: int, lines: int) -> Harm:
    """So many metrics in so many epochs."""

    def harm(folder: Path) -> None:
        with (folder / "metrics.jsonl").open("w") as file:
            for epoch in range(lines):
                numbers = ", ".join(f'"{name}": {epoch % (7 + name % 5)}' for name in range(names))
                file.write(f'{{"epoch": {epoch}, "agent_steps": {epoch}, {numbers}}}\n')

    return harm


def many_files(folder: Path) -> None:
    for number in range(3000):
        (folder / "replays" / f"{number}.replay").touch()


def hostile_names(folder: Path) -> None:
    for name in ("\x1b[2J\n.replay", "-rf.replay", "..replay", "x" * 240 + ".replay", "<script>alert(1)<.replay"):
        shutil.copy(folder / REPLAY, folder / "replays" / name)


def spec_of(**changes: Any) -> Harm:
    return lambda folder: changed_record(folder, lambda tree: tree["spec"].update(changes))


HOSTILE: dict[str, Harm] = {
    # links
    "the log is a link": link("log.txt"),
    "metrics are a link": link("metrics.jsonl"),
    "the record is a link": link("run.json", "/etc/passwd"),
    "the record is a link to itself": link("run.json", "run.json"),
    "checkpoints are a link": link("checkpoints"),
    "a checkpoint is a link": link(NEWEST),
    "replays are a link": link("replays", "/"),
    "baselines are a link to zeros": link("baselines.json", "/dev/zero"),
    "a replay is a link to zeros": link(REPLAY, "/dev/zero"),
    # pipes
    "metrics are a pipe": pipe("metrics.jsonl"),
    "the record is a pipe": pipe("run.json"),
    "a manifest is a pipe": pipe(f"{NEWEST}/manifest.json"),
    "a replay is a pipe": pipe(REPLAY),
    "an artefact is a pipe": pipe(ARTEFACT),
    "a sweep is a pipe": pipe("sweep.json"),
    # ways out
    "its name leads out": record("run.run", "../../../outside/x"),
    "it begins elsewhere": record("run.policy.init_from", "../../../../../../etc"),
    "it learns from elsewhere": record("run.losses.kickstart", {"kind": "kickstart", "teacher": "/etc"}),
    "it plays with elsewhere": record("run.players", {"../../../etc": 0.5}),
    "it reads replays elsewhere": record("run.losses.clone", {"kind": "clone", "replays": "/etc/*"}),
    # code
    "its recipe is code": record("run.recipe", "EVIL:evil"),
    "its recipe is of the library": record("run.recipe", "os:abort"),
    "its loss is code": record("run.losses.evil", {"kind": "EVIL:Evil"}),
    "its encoder is code": record("run.policy.encoder", "EVIL:Evil"),
    "its core is a module": record("run.policy.core", "evil:Evil"),
    "its hashes are of modules": record("code", {"evil.inner:x": "0"}),
    "the network of a replay is code": replay(lambda head: head["policy"]["config"].update(core="evil:Evil")),
    # bombs
    "metrics are endless": endless("metrics.jsonl"),
    "the record is endless": endless("run.json"),
    "a replay is endless": endless(REPLAY),
    "an artefact is endless": endless(ARTEFACT),
    "a replay unpacks to much more": replay_bomb,
    "weights claim to be large": header_bomb,
    "a network claims to be large": record("run.policy.hidden", 4096),
    "words claim to be many": spec_of(window=[10**9, 10**9]),
    "worlds claim to be many": record("run.trainer.num_worlds", 10**9),
    "metrics have millions of lines": text("metrics.jsonl", "{}\n" * 3_000_000),
    "metrics have millions of numbers": crowded(50, 20_000),
    "metrics have thousands of names": crowded(20_000, 50),
    "there are thousands of evaluations": text("metrics.jsonl", '{"agent_steps": 1, "evaluation": {}}\n' * 500_000),
    "there are thousands of replays": many_files,
    # numbers
    "metrics are no numbers": text("metrics.jsonl", '{"agent_steps": NaN, "score": Infinity, "epoch": NaN}\n' * 9),
    "metrics are of the wrong kind": text("metrics.jsonl", '{"agent_steps": [], "evaluation": 3, "window": "x"}\n' * 9),
    "weights are no numbers": tensors("policy", lambda tensor: torch.full_like(tensor, float("nan"))),
    "moments are infinite": tensors("trainer", lambda tensor: torch.full_like(tensor, float("inf"))),
    # shapes
    "weights have another shape": tensors("policy", lambda tensor: tensor.reshape(-1)[:-1].clone()),
    "moments are too short": tensors("trainer", lambda tensor: tensor.reshape(-1)[:-1].clone()),
    "words are missing": spec_of(features=["tag"], normalizers=[]),
    # deep JSON, and none
    "the record is deep": text("run.json", DEEP),
    "a manifest is deep": text(f"{NEWEST}/manifest.json", DEEP),
    "metrics are deep": text("metrics.jsonl", f"{DEEP}\n"),
    "baselines are deep": text("baselines.json", DEEP),
    "the curriculum is deep": text("curriculum.json", DEEP),
    "an artefact is deep": text(ARTEFACT, DEEP),
    "a sweep is deep": text("sweep.json", DEEP),
    "a replay is deep": text(REPLAY, f"gridmill-replay 2\n{DEEP}\n"),
    # names
    "its recipe has megabytes": record("run.recipe", "x" * 5_000_000),
    "its recipe commands the terminal": record("run.recipe", "\x1b[2J\x1b]0;x\x07\nrm -rf"),
    "names of files are no names": hostile_names,
}


def made(run: Path, place: Path, name: str) -> Path:
    folder = place / "runs" / f"{list(HOSTILE).index(name):02}"
    shutil.copytree(run, folder)
    for file in ("evil.py", "numpy.py"):
        (folder / file).write_text(f"open({str(place / 'canary')!r}, 'w').close()\ndef evil(): pass\nEvil = object\n")
    HOSTILE[name](folder)
    return folder


def somebody(place: Path) -> Path:
    """Somebody's files, with the names that links lead to."""
    there = place / "outside"
    (there / "checkpoints" / "epoch-00000001.tmp").mkdir(parents=True)
    (there / "epoch-00000002").mkdir()
    for name in ("log.txt", "metrics.jsonl", "checkpoints/a.txt", "epoch-00000002/b.txt"):
        (there / name).write_text("somebody's\n")
    return there


def state(there: Path) -> dict[str, tuple[bytes, int]]:
    return {
        str(path): (path.read_bytes() if path.is_file() else b"", path.stat().st_mtime_ns)
        for path in [there, *sorted(there.rglob("*"))]
    }


def attacked(run: Path, place: Path, name: str, which: list[str]) -> tuple[dict[str, float], float]:
    """The CPU seconds of each command, none of which ran code or wrote elsewhere, and the longest that one waited."""
    took, waited = {}, 0.0
    there, out, here = somebody(place), place / "out", place / "here"
    out.mkdir()
    here.mkdir()
    folder, before = made(run, place, name), state(there)
    for command in which:
        shutil.rmtree(out / "next", ignore_errors=True)
        answer = ask(commands(folder, out)[command], here, out)
        one_line(answer)
        took[command] = answer.cpu
        waited = max(waited, answer.waited)
        assert not (place / "canary").exists(), command
        assert state(there) == before, command
        assert list(here.iterdir()) == [], command
        assert sorted(path.name for path in place.iterdir()) == ["here", "out", "outside", "runs"], command
    return took, waited


@pytest.mark.parametrize("name", HOSTILE)
def test_a_command_on_each(run: Path, tmp_path: Path, name: str) -> None:
    """Each with one command, another for each; all of them are the long test's."""
    known = list(commands(run, tmp_path))
    _, waited = attacked(run, tmp_path, name, [known[list(HOSTILE).index(name) % len(known)]])
    assert waited < 5 * MOST  # other tests may keep the disk busy


@pytest.mark.long
@pytest.mark.parametrize("name", HOSTILE)
def test_every_command_on_each(
    run: Path, tmp_path: Path, name: str, record_property: Callable[[str, object], None]
) -> None:
    """Nothing takes longer than 2 s of CPU or waits 2 s; what did is asked once more, because machines are not always
    quiet.
    """
    for place in ("first", "again"):
        (tmp_path / place).mkdir()
        took, waited = attacked(run, tmp_path / place, name, list(commands(run, tmp_path)))
        exported = took.pop("policy export")
        if max(*took.values(), waited) < MOST and exported < MOST_EXPORT:
            break
    assert max(took.values()) < MOST, took
    assert exported < MOST_EXPORT
    assert waited < MOST
    told = f"slowest {max(took.values()):.1f} s, export {exported:.1f} s, waits {waited:.1f} s at most"
    record_property("figure", f"{len(took) + 1} commands, {told}")


def test_all_of_them_in_one_list(run: Path, tmp_path: Path, record_property: Callable[[str, object], None]) -> None:
    """`gridmill runs` in a folder of all of them: every one has its line, and none keeps the others out."""
    somebody(tmp_path)
    for name in HOSTILE:
        made(run, tmp_path, name)
    (tmp_path / "out").mkdir()
    answer = ask(["runs", "--runs-dir", str(tmp_path / "runs"), "--json"], tmp_path / "out", tmp_path / "out")
    one_line(answer)
    found = {row["name"]: row["state"] for row in json.loads(answer.out)["runs"]}
    assert sorted(found) == [f"{number:02}" for number in range(len(HOSTILE))]
    table = ask(["runs", "--runs-dir", str(tmp_path / "runs")], tmp_path / "out", tmp_path / "out")
    assert "\x1b" not in table.out
    compared = [str(tmp_path / "runs" / name) for name in sorted(found)]
    words = ["report", *compared, "--no-baselines", "--out", str(tmp_path / "out" / "compare.html")]
    one_line(ask(words, tmp_path / "out", tmp_path / "out"))
    assert not (tmp_path / "canary").exists()
    record_property("figure", f"{len(HOSTILE)} runs listed")
