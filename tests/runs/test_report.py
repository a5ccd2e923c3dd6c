"""The report: one page that needs nothing else, from whatever files a run has, and that no name can break out of."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from gridmill import games
from gridmill.evaluate.others import baseline_record
from gridmill.run import Run
from gridmill.runs.log import RunLog
from gridmill.runs.report import page as report
from gridmill.runs.report.chart import Level, Line, Point, chart, ticks
from gridmill.runs.report.document import POLICY
from gridmill.runs.report.script import SCRIPT

RUN = Run(recipe="toy", game=games.toy())
ARENA = Run(recipe="arena", game=games.arena_basic_easy_shaped())
EMPTY = {"meta"}  # elements without an end


class Page(HTMLParser):
    """Which elements a page has, whether they nest, and its text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.text = ""
        self.open: list[str] = []
        self.source = text
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


def made(folder: Path, epochs: int = 30, header: list[str] | None = None, run: Run = RUN, **more: Any) -> Page:
    with RunLog(folder, run, header or ["recipe: toy"], panel=False) as log:
        (folder / "run.json").write_text(json.dumps({"run": run.tree(), "spec": {}}))
        for epoch in range(1, epochs + 1):
            known = {
                "epoch": epoch,
                "agent_steps": 1000 * epoch,
                "total_timesteps": 100_000,
                "sps": 5e4,
                "seconds": epoch,
            }
            scored = {"score": epoch / 2, "reward": epoch / 10, "kl": 0.004, "loss/policy": -0.01, "loss/entropy": 2.0}
            grown = {name: value * epoch for name, value in more.items() if not isinstance(value, str)}
            log.epoch({**known, **(scored if epoch > 2 else {}), "time/env": 1.0, "time/learn": 3.0, **more, **grown})
        result = {"game": "toy", "episodes": 10, "score": {"mean": 9.0, "se": 0.5}, "reward": {"mean": 1.0, "se": 0.1}}
        log.evaluation(20, 20_000, {"version": 1, "results": [result]})
    return Page((folder / "report.html").read_text())


def test_it_has_everything(tmp_path: Path) -> None:
    page = made(tmp_path / "first", **{"heart.get": 3.0, "loss/value": 0.5})
    words = " ".join(page.text.split())
    for said in (
        "first",
        "recipe toy, game toy, seed 0",
        "9.00 ± 0.500",
        "30 % of 100 k",
        "Where the time went",
        "75 %",
    ):
        assert said in words, said
    for said in ("value loss", "heart.get", "agent steps", "per agent and episode", "recipe: toy"):
        assert said in words, said
    assert "not drawn: policy loss = -0.0100, entropy = 2.00, KL = 0.0040" in words
    assert "bptt_horizon 64" in re.sub(r"(?<=horizon)(?=\d)", " ", words)
    # Score (wide, and small for narrow screens), reward, value loss, one of the game: what does not move is not drawn.
    assert page.tags.count("svg") == 5
    assert ("class", "dot") in page.attributes


def test_the_score_is_that_of_the_log_or_of_an_evaluation(tmp_path: Path) -> None:
    evaluated = " ".join(made(tmp_path / "first", score_recent=0.25).text.split())
    assert "9.00 ± 0.500evaluated at 20 k steps" in evaluated
    records = (tmp_path / "first" / "metrics.jsonl").read_text().splitlines(keepends=True)
    (tmp_path / "first" / "metrics.jsonl").write_text("".join(line for line in records if "evaluation" not in line))
    alone = " ".join(Page(report.write(tmp_path / "first").read_text()).text.split())
    assert "score7.50newest episodes, as in the log, best 7.50" in alone  # the last epoch's is 15


def titles(page: Page) -> list[str]:
    text = page.source
    return [re.sub(r"<.*?>", "", found) for found in re.findall(r"<figcaption><b>(.*?)</b>", text)]


def test_the_ingredients_of_the_score_come_first(tmp_path: Path) -> None:
    """Not 24 curves of actions before the first heart."""
    actions = {f"action.move_{k}.success": k + 0.5 for k in range(30)}
    figures = {"armor.get": 0.0, "battery.get": 2.0, "ore.get": 3.0, "heart.get": 1.0, "episode_return": 4.0}
    page = made(tmp_path / "run", run=ARENA, **actions, **figures, **{"cell.visited": 7.0, "length": 0.0})
    found = titles(page)
    assert found[:5] == ["score: heart.get", "battery.get", "ore.get", "episode return", "reward"]
    assert "heart.get" not in found  # it is the score
    assert found.index("cell.visited") < found.index("action.move_0.success")
    assert "armor.get" not in found
    assert "armor.get = 0" in page.text
    assert "7 more" in page.text  # actions, behind a click


def test_figures_of_the_machine_are_none_of_the_game(tmp_path: Path) -> None:
    machine = {"cpu/threads": 4.0, "cpu/util": 0.5, "memory/rss": 1e8, "memory/free": 1e9, "gpu/memory": 1e9}
    page = made(tmp_path / "run", run=ARENA, **machine, **{"cell.visited": 7.0})
    game, _, rest = page.source.partition("<h2>The game</h2>")[2].partition("<h2>Machine</h2>")
    assert re.findall(r"<figcaption><b>(.*?)</b>", game) == ["cell.visited"]
    assert re.findall(r"<figcaption><b>(.*?)</b>", rest) == ["memory", "CPU", "threads"]


def test_a_wide_chart_has_a_small_one_for_narrow_screens(tmp_path: Path) -> None:
    source = made(tmp_path / "run").source
    wide = re.findall(r'<figure class="wide">.*?</figure>', source)
    assert [re.findall(r'viewBox="0 0 (\d+) ', figure) for figure in wide] == [["1120", "360"]]
    assert ".wide svg+svg{display:none}" in source
    assert "@media (max-width:700px){.wide svg{display:none}.wide svg+svg{display:block}}" in source


def test_an_evaluation_lies_beside_what_is_measured_like_it(tmp_path: Path) -> None:
    """What an evaluation calls reward is a whole episode's: its dots belong to the return, not to a step's reward."""
    source = made(tmp_path / "run", run=ARENA, episode_return=0.1).source
    figures = dict(re.findall(r"<figcaption><b>(.*?)</b>(.*?)</figure>", source))
    assert 'class="dot"' in figures["score: heart.get"]
    assert 'class="dot"' in figures["episode return"]
    assert 'class="dot"' not in figures["reward"]


def test_others_and_the_ceiling_are_drawn(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    folder.mkdir()
    (folder / "baselines.json").write_text(json.dumps(baseline_record(ARENA, 1, 0)))
    page = made(folder, run=ARENA, **{"battery.get": 1.0})
    assert "random" in page.text
    assert "script arena" in page.text
    assert "ceiling 30.8" in page.text  # as `gridmill explain arena_basic_easy_shaped` says
    assert ("class", "level") in page.attributes


def test_it_needs_nothing_else(tmp_path: Path) -> None:
    page = made(tmp_path / "run")
    assert not {"link", "img", "iframe", "object"} & set(page.tags)
    assert not {"src", "href", "onload", "onclick"} & {name for name, _ in page.attributes}
    text = (tmp_path / "run" / "report.html").read_text()
    assert "default-src 'none'" in text
    assert "://" not in text.replace(SCRIPT, "")
    assert "@import" not in text
    assert "url(" not in text
    assert "prefers-color-scheme:dark" in text


def test_its_policy_allows_its_own_script_and_no_other(tmp_path: Path) -> None:
    source = made(tmp_path / "run").source
    [script] = re.findall(r"<script>(.*?)</script>", source, re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}'" in POLICY
    assert POLICY in source
    assert "unsafe-inline" not in POLICY.partition("style-src")[0]
    assert "innerHTML" not in script


def test_replays_are_linked(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    (folder / "replays").mkdir(parents=True)
    for name in ("epoch-00000002.replay", '"><img src=x onerror=alert(1)>.replay', "javascript:alert(1)"):
        (folder / "replays" / name).write_bytes(b"")
    page = made(folder)
    links = [value for name, value in page.attributes if name == "href"]
    assert "replays/epoch-00000002.replay" in links
    assert all(link is not None and link.startswith("replays/") for link in links)
    assert "img" not in page.tags


def test_it_is_written_while_the_run_goes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gridmill.runs.log.REPORT_EVERY", 0.0)
    monkeypatch.setattr("gridmill.runs.log.REPORT_SHARE", 1e9)
    log = RunLog(tmp_path, RUN, panel=False)
    log.epoch({"epoch": 1, "agent_steps": 10, "score": 1.0})
    text = (tmp_path / "report.html").read_text()
    assert 'http-equiv="refresh"' in text
    assert ">running<" in text
    log.close()
    text = (tmp_path / "report.html").read_text()
    assert 'http-equiv="refresh"' not in text
    assert ">running<" not in text


def test_names_are_escaped(tmp_path: Path) -> None:
    evil = "<script>alert('\"&</script>"
    folder = tmp_path / "a<b>&'\"run"
    page = made(folder, header=[evil], **{evil: 1.0, "last_checkpoint": evil})
    assert page.tags.count("script") == 1  # the page's own
    assert "b" not in {name for name, _ in page.attributes}
    assert page.text.count(evil) == 2  # the heading and the game's statistic
    assert ("data-name", evil) in page.attributes
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
    assert 'class="range c0"' in text  # what the means hide


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
    wild = Line("x", [10.0, 20.0, 30.0], [-5.0, 1e6, 3.0], [-1e9] * 3, [1e9] * 3)
    drawn = chart([wild], "x", "y", [Point(40.0, 2e6, 1e5)], [Level("far", 1e12), Level("near", 1e6)])
    pairs = re.findall(r"(-?[\d.]+),(-?[\d.]+)", drawn)
    assert len(pairs) == 9
    assert all(0 <= float(x) <= 360 and 0 <= float(y) <= 206 for x, y in pairs)
    assert drawn.count('class="level"') == 1
    assert "far 1 T \u2191" in drawn  # named at the edge: it would flatten the rest


def test_values_can_be_read_from_the_picture() -> None:
    """What the page's script does: points and frame give back the numbers."""
    drawn = chart([Line("x", [1e6, 2e6], [1.25, 3.5])], "x")
    left, right, top, bottom, most, low, high = map(float, re.findall(r'data-frame="(.*?)"', drawn)[0].split())
    points = [tuple(map(float, pair.split(","))) for pair in re.findall(r'points="(.*?)"', drawn)[-1].split()]
    found = [((x - left) / (right - left) * most, high - (y - top) / (bottom - top) * (high - low)) for x, y in points]
    assert found == [pytest.approx((1e6, 1.25), rel=1e-3), pytest.approx((2e6, 3.5), rel=1e-3)]
