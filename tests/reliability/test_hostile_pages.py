"""Every page that is written from files of a stranger: the report of a run, a comparison, a sweep, the artefacts.

Markup is put in place of every value and every key of those files, one after the other and all at once. None of it
becomes an element or an attribute, and there is no script but the page's own.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from html.parser import HTMLParser
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from gridmill.runs.report import compare
from gridmill.runs.report import page as report
from gridmill.runs.report.folder import read
from gridmill.workshop import artefact, gallery
from gridmill.workshop.sweep import page as sweep_page
from gridmill.workshop.sweep import record as sweep_record

pytestmark = pytest.mark.X2

EVIL = "\"'></title></style></script><script>alert(1)</script><evil onerror=alert(1)>\ud800"
KEPT = ("schema", "finished")  # of an artefact: without them it is none, or another


class Elements(HTMLParser):
    """The elements of a page, the names of their attributes, and where addresses lead."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags, self.attributes, self.addresses = list[str](), set[str](), list[str]()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes |= {name for name, _ in attrs}
        self.addresses += [str(value) for name, value in attrs if name in ("href", "src")]


def changed(tree: Any, kept: tuple[str, ...] = ()) -> Iterator[Any]:
    """The tree with EVIL in place of one value, or as one more key beside it, for each of them."""
    if isinstance(tree, dict):
        for key, value in tree.items():
            if key not in kept:
                yield from ({**tree, key: inner} for inner in changed(value))
        yield {**tree, EVIL: next(iter(tree.values()), EVIL)}
    elif isinstance(tree, list):
        for place, value in enumerate(tree):
            yield from ([*tree[:place], inner, *tree[place + 1 :]] for inner in changed(value))
    yield EVIL


def all_texts(tree: Any) -> Any:
    """The tree with EVIL in place of every text, so that what needs numbers still has them."""
    if isinstance(tree, dict):
        return {key: all_texts(value) for key, value in tree.items()}
    if isinstance(tree, list):
        return [all_texts(value) for value in tree]
    return EVIL if isinstance(tree, str) else tree


def harmless(text: str, scripts: int) -> None:
    page = Elements(text)
    assert "evil" not in page.tags
    assert page.tags.count("script") == scripts
    assert not [name for name in page.attributes if name.startswith("on")]
    assert all(address.startswith(("#a", "replays/", "trial-")) for address in page.addresses)


# ---- artefacts


def made() -> dict[str, Any]:
    found = artefact.record("ab", 7, {"blocks": 2}, {"rate": artefact.sample([2.0], "steps/s")})
    found["machine"]["switches"] = {"GRIDMILL_ISA": "portable"}
    return dict(json.loads(json.dumps(found)))


def gallery_of(file: Path, tree: Any) -> str:
    """The page of this artefact, if it is one, and a list for a terminal."""
    file.write_text(json.dumps(tree))
    known, _ = gallery.found([file.parent])
    for line in gallery.lines_of(known):
        assert line.isascii()
        assert line.isprintable()
    return gallery.page(known)


def test_artefacts(tmp_path: Path) -> None:
    whole, shown = made(), 0
    for tree in changed(whole, KEPT):
        text = gallery_of(tmp_path / "a.json", tree)
        harmless(text, scripts=0)
        shown += "&lt;script&gt;" in text
    assert shown > 10  # of the others some are no artefact, and some change what no page has
    texts = all_texts(whole) | {"exit_code": EVIL, "seed": EVIL}
    for finished in (True, False):
        harmless(gallery_of(tmp_path / "a.json", texts | {"finished": finished}), scripts=0)
    gallery.run([tmp_path], tmp_path / "page.html")  # what cannot be encoded is written too
    harmless((tmp_path / "page.html").read_text(), scripts=0)


# ---- runs

METRICS = {"epoch": 1, "agent_steps": 100, "total_timesteps": 900, "score": 1.0, "sps": 9.0, "seconds": 3.0,
           "skipped_updates": 1, "loss/policy": 0.5, "time/rollout": 1.0, "player/random": 1.0, "berry.get": 2.0,
           "curriculum/pool": 1.0, "memory/rss": 5.0, "last": "x"}  # fmt: skip
MEAN = {"mean": 1.0, "se": 0.5}
EVALUATION = {"epoch": 1, "agent_steps": 100, "evaluation": {
    "results": [{"game": "toy", "policy": "x", "episodes": 3, "score": MEAN, "reward": MEAN,
                 "stats": {"berry.get": MEAN}}]}}  # fmt: skip
BASELINES = {"episodes": 3, "policies": {"random": {"score": MEAN, "reward": MEAN, "stats": {"berry.get": MEAN}}},
             "ceilings": {"score": 9.0}}  # fmt: skip
CURRICULUM = {"choose": "uniform", "epoch": 1, "drawn": 3, "refusal": "no room",
              "sets": {"easy": {"game": "toy", "share": 0.5, "target": 1.0, "all": 3, "tasks": 2,
                                "vary": {"agents": "1 to 4"}}},
              "tasks": [{"chance": 0.5, "id": 1, "task": "easy", "score": 1.0, "why": "new"}],
              "evicted": [{"id": 2, "task": "easy", "why": "learned"}]}  # fmt: skip
SETTINGS = {"run": {"recipe": "toy", "seed": 1, "score": "", "game": {"name": "toy", "score": {"stat": "berry.get",
            "per": "tick", "title": "berries"}, "beside": ["berry.get"], "rewards": [{"resource": "berry"}]},
            "trainer": {"gamma": 0.9, "signal": [{"name": "x"}]}, "curriculum": {"sets": {"easy": {}}}}}  # fmt: skip
FILES: dict[str, Any] = {"run.json": SETTINGS, "baselines.json": BASELINES, "curriculum.json": CURRICULUM}
LINES = (METRICS, EVALUATION)


def folder_of(folder: Path, lines: tuple[Any, Any] = LINES, **files: Any) -> Path:
    (folder / "replays").mkdir(parents=True, exist_ok=True)
    (folder / "replays" / "<b onclick=x>.replay").touch()
    later = lines[0] | {"epoch": 2, "agent_steps": 200, "score": 3.0} if isinstance(lines[0], dict) else lines[0]
    (folder / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in (*lines, later)))
    for name, tree in (FILES | files).items():
        (folder / name).write_text(json.dumps(tree))
    (folder / "log.txt").write_text(f"{EVIL.encode('ascii', 'replace').decode()}\n epoch\n")
    return folder


def pages(folder: Path, other: Path) -> list[str]:
    """The run's report, and a page that compares it with another run, if it has an epoch to compare."""
    found = [report.write(folder).read_text()]
    if read(folder).epochs:
        found.append(compare.write([folder, other], folder.parent / "compare.html").read_text())
    return found


def reports_of(file: str, tmp_path: Path, every: int) -> None:
    """With one in so many of the changes, and with all texts changed at once."""
    folder, other = tmp_path / "run", folder_of(tmp_path / "other", **{"run.json": {"run": {"recipe": "x"}}})
    honest = {"metrics": METRICS, "evaluation": EVALUATION, **FILES}[file]
    for tree in [*islice(changed(honest), 0, None, every), all_texts(honest)]:
        if file in FILES:
            folder_of(folder, **{file: tree})
        else:
            folder_of(folder, (tree, EVALUATION) if file == "metrics" else (METRICS, tree))
        for text in pages(folder, other):
            harmless(text, scripts=1)


KINDS = [*FILES, "metrics", "evaluation"]


@pytest.mark.parametrize("file", KINDS)
def test_reports(file: str, tmp_path: Path) -> None:
    reports_of(file, tmp_path, 8)


@pytest.mark.long
@pytest.mark.parametrize("file", KINDS)
def test_reports_with_every_change(file: str, tmp_path: Path) -> None:
    reports_of(file, tmp_path, 1)


# ---- sweeps


def sweep_of(folder: Path, tree: Any) -> str:
    folder.mkdir(exist_ok=True)
    (folder / sweep_record.FILE).write_text(json.dumps(tree))
    try:
        sweep_page.write(folder, sweep_record.read(folder))
    except ValueError:
        return ""
    return (folder / sweep_record.PAGE).read_text()


def test_sweeps(tmp_path: Path) -> None:
    rate = "optimizer.learning_rate=log(1e-4,1e-2)"
    of = sweep_record.Sweep("theirs", "ci", ("seed=1",), (rate,), (1, 2), False)
    settings = {"optimizer.learning_rate": "0.001"}
    trials = [
        sweep_record.Trial(0, "done", settings, 2.0, (1.5, 2.5), 3.0, 1_000, ((500.0, 1.0), (900.0, 2.0)), "", "a"),
        sweep_record.Trial(1, "pruned", settings, 1.0, (1.0,), 3.0, 1_000, ((500.0, 1.0),), "", "b"),
        sweep_record.Trial(2, "failed", {}, None, (), 0.0, 0, (), "too large", "b"),
    ]
    folder = tmp_path / "theirs"
    (folder / "trial-0000-seed-1").mkdir(parents=True)
    (folder / "trial-0000-seed-1" / "report.html").touch()
    sweep_record.write(folder, sweep_record.State(of, 4, "", trials, {"optimizer.learning_rate": 1.0}))
    whole = json.loads((folder / sweep_record.FILE).read_text())
    shown = 0
    for tree in [*changed(whole), all_texts(whole)]:
        text = sweep_of(folder, tree)
        harmless(text, scripts=bool(text))
        shown += "&lt;script&gt;" in text
    assert shown > 5
