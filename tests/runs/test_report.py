"""The report: one page that needs nothing else, from whatever files a run has, and that no name can break out of."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from gridmill import games
from gridmill.run import Run
from gridmill.runs.log import RunLog
from gridmill.runs.report import page as report
from gridmill.runs.report.chart import Point, curve, ticks

RUN = Run(recipe="toy", game=games.toy())
EMPTY = {"meta"}  # elements without an end


class Page(HTMLParser):
    """Which elements a page has, whether they nest, and its text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.text = ""
        self.open: list[str] = []
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.tags.append(tag)
        self.attributes += attrs
        if tag not in EMPTY:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: Any) -> None:
        self.tags.append(tag)
        self.attributes += attrs

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def made(folder: Path, epochs: int = 30, header: list[str] | None = None, **more: Any) -> Page:
    with RunLog(folder, RUN, header or ["recipe: toy"], panel=False) as log:
        (folder / "run.json").write_text(json.dumps({"run": RUN.tree(), "spec": {}}))
        for epoch in range(1, epochs + 1):
            known = {
                "epoch": epoch,
                "agent_steps": 1000 * epoch,
                "total_timesteps": 100_000,
                "sps": 5e4,
                "seconds": epoch,
            }
            scored = {"score": epoch / 2, "reward": epoch / 10, "kl": 0.004, "loss/policy": -0.01, "loss/entropy": 2.0}
            log.epoch({**known, **(scored if epoch > 2 else {}), "time/env": 1.0, "time/learn": 3.0, **more})
        result = {"game": "toy", "episodes": 10, "score": {"mean": 9.0, "se": 0.5}, "reward": {"mean": 1.0, "se": 0.1}}
        log.evaluation(20, 20_000, {"version": 1, "results": [result]})
    return Page((folder / "report.html").read_text())


def test_it_has_everything(tmp_path: Path) -> None:
    page = made(tmp_path / "first", **{"heart.get": 3.0, "loss/value": 0.5})
    words = " ".join(page.text.split())
    for said in ("first", "recipe toy, game toy, seed 0", "best 15.0", "30 % of 100 k", "Where the time went", "75 %"):
        assert said in words, said
    for said in ("policy loss", "value loss", "entropy", "KL", "speed", "heart.get", "9.00 ± 0.500", "recipe: toy"):
        assert said in words, said
    assert "bptt_horizon 64" in re.sub(r"(?<=horizon)(?=\d)", " ", words)
    assert page.tags.count("svg") == 8  # score, reward, speed, four of learning, one of the game
    assert ("class", "dot") in page.attributes


def test_it_needs_nothing_else(tmp_path: Path) -> None:
    page = made(tmp_path / "run")
    assert not {"script", "link", "img", "iframe", "object"} & set(page.tags)
    assert not {"src", "href", "onload", "onclick"} & {name for name, _ in page.attributes}
    text = (tmp_path / "run" / "report.html").read_text()
    assert "default-src 'none'" in text
    assert "://" not in text
    assert "@import" not in text
    assert "url(" not in text
    assert "prefers-color-scheme:dark" in text


def test_names_are_escaped(tmp_path: Path) -> None:
    evil = "<script>alert('\"&</script>"
    folder = tmp_path / "a<b>&'\"run"
    page = made(folder, header=[evil], **{evil: 1.0, "last_checkpoint": evil})
    assert "script" not in page.tags
    assert "b" not in {name for name, _ in page.attributes}
    assert page.text.count(evil) == 2  # the heading and the game's statistic
    assert "a<b>&'\"run" in page.text


@pytest.mark.parametrize("epochs", [0, 1, 2])
def test_a_young_run_has_one_too(tmp_path: Path, epochs: int) -> None:
    page = made(tmp_path, epochs=epochs)
    assert ("No epoch has ended yet." in page.text) == (epochs == 0)


def test_an_empty_folder_and_odd_files_make_a_page(tmp_path: Path) -> None:
    Page(report.write(tmp_path).read_text())
    (tmp_path / "run.json").write_text("[1, 2")
    odd = [
        '{"agent_steps": 5, "score": null, "kl": "x"}',
        "[]",
        "null",
        '{"evaluation": 3}',
        '{"evaluation": {"score": 1}}',
    ]
    (tmp_path / "metrics.jsonl").write_text("\n".join([*odd, '{"agent_steps": 0, "score": 1e308}', "{torn"]))
    Page(report.write(tmp_path).read_text())


def test_a_long_run_makes_a_small_page(tmp_path: Path) -> None:
    lines = [json.dumps({"epoch": k, "agent_steps": k, "score": k % 7, "sps": 1.0}) for k in range(5_000)]
    (tmp_path / "metrics.jsonl").write_text("\n".join(lines) + "\n")
    text = report.write(tmp_path).read_text()
    assert len(text) < 60_000
    assert 'class="range"' in text  # what the means hide


def test_a_resumed_run_shows_its_newest_heading(tmp_path: Path) -> None:
    RunLog(tmp_path, RUN, ["recipe: old"], panel=False).close()
    RunLog(tmp_path, RUN, ["recipe: new"], panel=False, append=True, from_epoch=3).close()
    text = Page((tmp_path / "report.html").read_text()).text
    assert "after epoch 3\nrecipe: new" in text
    assert "recipe: old" not in text


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        (0.0, 1.0, [0.0, 0.25, 0.5, 0.75, 1.0]),
        (3.0, 17.0, [0.0, 5.0, 10.0, 15.0, 20.0]),
        (0.0, 0.0, [-0.5, -0.25, 0.0, 0.25, 0.5]),
        (2.0, 2.0, [1.0, 1.5, 2.0, 2.5, 3.0]),
    ],
)
def test_ticks_are_round(low: float, high: float, expected: list[float]) -> None:
    assert ticks(low, high, 4) == pytest.approx(expected)


def test_a_curve_stays_inside_its_picture() -> None:
    drawn = curve([10.0, 20.0, 30.0], [-5.0, 1e6, 3.0], "x", [Point(40.0, 2e6, 1e5)])
    pairs = re.findall(r"(-?[\d.]+),(-?[\d.]+)", drawn)
    assert len(pairs) == 3
    assert all(0 <= float(x) <= 360 and 0 <= float(y) <= 190 for x, y in pairs)
