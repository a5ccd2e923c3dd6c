"""The viewer in a real browser: games are opened, scrubbed and followed, played by keyboard, forked, saved."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import chromium
import numpy as np
import pytest
import viewed
from typer.testing import CliRunner

from gridmill import cli, games, replay
from gridmill.viewer import start

GRIDS = games.names("grid")


@pytest.fixture(scope="module")
def running(request: pytest.FixtureRequest) -> Iterator[Any]:
    chromium.require(
        fail="long" in str(request.config.getoption("-m")) and "not" not in str(request.config.getoption("-m"))
    )
    with chromium.browser() as found:
        yield found


@pytest.fixture(scope="module")
def arena() -> replay.Replay:
    return viewed.tape_of(games.arena(), 320)


def test_a_replay_opens_and_is_verified(running: Any, tmp_path: Path) -> None:
    tape = viewed.tape_of(games.arena(), 40)
    with viewed.shown(running, tape, tmp_path) as (page, faults):
        viewed.verified(page)
        viewed.seek(page, 25)
        page.evaluate("() => gridmill.select(3)")
        page.wait_for_selector("#agent-name:has-text('Agent 3')")
        place = page.evaluate("() => { const t = gridmill.pane.scene.byAgent.get(3); return [t.row, t.col]; }")
        there = next(t for t in viewed.truth(tape, 25)["objects"] if t["agent"] == 3)
        assert place == [there["row"], there["column"]]
        assert not faults


@pytest.mark.long
@pytest.mark.parametrize("name", GRIDS)
def test_a_grid_game_is_scrubbed_and_an_agent_followed(running: Any, name: str, tmp_path: Path) -> None:
    tape = viewed.tape_of(viewed.small_game(name), 260)
    with viewed.shown(running, tape, tmp_path) as (page, faults):
        viewed.verified(page)
        chromium.picture(page, f"{name}-open")
        box = page.locator(".timeline").bounding_box()
        page.mouse.click(box["x"] + box["width"] * 0.6, box["y"] + 20)
        page.wait_for_function("() => gridmill.arrived && gridmill.pane.drawnTick === gridmill.tick")
        assert 140 < page.evaluate("() => gridmill.tick") < 172
        page.keyboard.press("n")
        page.keyboard.press("f")
        for tick in (37, 201, 120):
            viewed.seek(page, tick)
            expect_inventory(page, viewed.truth(tape, tick), 0)
        page.wait_for_timeout(700)
        chromium.picture(page, f"{name}-follow")
        centre = page.evaluate(
            "() => { const p = gridmill.pane; return [p.camera.x, p.camera.y, p.scene.byAgent.get(0)]; }"
        )
        assert abs(centre[0] - centre[2]["col"] - 0.5) < 1
        assert abs(centre[1] - centre[2]["row"] - 0.5) < 1
        page.keyboard.press("2")
        page.wait_for_selector("#tokens tr")
        page.wait_for_timeout(300)
        chromium.picture(page, f"{name}-sees")
        assert not faults


def expect_inventory(page: Any, world: dict[str, Any], agent: int) -> None:
    """What the panel says is what the native engine says."""
    held = next(t for t in world["objects"] if t["agent"] == agent)["inventory"]
    page.evaluate("() => { gridmill.commands.tab(0); }")
    page.wait_for_function(
        "(want) => { const found = {}; for (const li of document.querySelectorAll('#inventory li[data-name]'))"
        " found[li.dataset.name] = Number(li.querySelector('b').textContent.replace(/\\D/g, ''));"
        " return JSON.stringify(Object.entries(found).sort()) === want; }",
        arg=json.dumps(sorted([name, amount] for name, amount in held.items()), separators=(",", ":")),
    )


def test_every_game_is_opened_here() -> None:
    assert sorted([*GRIDS, "corridor", "prospector"]) == sorted(games.names())


@pytest.mark.long
def test_prospector_shows_its_ship_and_market(running: Any, tmp_path: Path) -> None:
    tape = viewed.tape_of(games.prospector(), 220)
    with viewed.shown(running, tape, tmp_path) as (page, faults):
        viewed.verified(page)
        viewed.seek(page, tape.branches[0].end // 2)
        page.keyboard.press("1")
        page.wait_for_selector(".gauge")
        with replay.Playback(tape) as playback:
            playback.seek(tape.branches[0].end // 2)
            fuel = float(playback.env.obs[0][0]) * 1000
        assert abs(page.evaluate("() => gridmill.pane.seen.ship.fuel") - fuel) < 0.01
        chromium.picture(page, "prospector")
        assert not faults


@pytest.mark.long
def test_a_corridor_opens(running: Any, tmp_path: Path) -> None:
    with viewed.shown(running, viewed.tape_of(games.corridor(), 40), tmp_path) as (page, faults):
        viewed.verified(page)
        chromium.picture(page, "corridor")
        assert not faults


@pytest.mark.long
def test_keys_go_by_their_letters(running: Any, tmp_path: Path) -> None:
    """On a keyboard where Y and Z have changed places, with capitals locked, and on one without Latin letters.

    Signs and digits too where they need another key or Shift: on a Russian, a German and a French keyboard.
    """
    begin = start.new_game(games.arena(), 5, 2, "")
    pressed = [("y", "KeyZ"), ("Y", "KeyY"), ("\u043d", "KeyY"), ("m", "Semicolon"), ("1", "Numpad1")]
    with viewed.served(begin, {}, tmp_path) as url, chromium.page_of(running, url) as (page, faults):
        for key, code in pressed:
            page.evaluate(
                "([key, code]) => document.dispatchEvent(new KeyboardEvent('keydown', {key, code, bubbles: true}))",
                [key, code],
            )
        names = page.evaluate(
            "() => [0,1,2,3,4].map((t) => gridmill.track.info.actionNames[gridmill.track.branch.action(t, 2)])"
        )
        assert names == ["move_northwest"] * 3 + ["move_southeast", "move_southwest"]
        seen = "() => [gridmill.speed, gridmill.tick, gridmill.commands.sidebar.shown]"
        speed, tick, _ = page.evaluate(seen)
        for key, code, more in [
            ("\u0445", "BracketLeft", {}),
            ("[", "Digit8", {"ctrlKey": True, "altKey": True, "modifierAltGraph": True}),
            ("&", "Digit1", {}),
        ]:
            page.evaluate(
                "([key, code, more]) => document.dispatchEvent("
                "new KeyboardEvent('keydown', {key, code, bubbles: true, ...more}))",
                [key, code, more],
            )
        assert page.evaluate(seen) == [speed / 4, tick, 0]
        page.keyboard.press("Control+BracketLeft")  # the browser's
        assert page.evaluate(seen) == [speed / 4, tick, 0]
        assert not faults


@pytest.mark.long
def test_everything_is_reached_by_keyboard_and_seen_to_be(running: Any, arena: replay.Replay, tmp_path: Path) -> None:
    """Tab goes through all controls that are shown, each with an outline; arrows go from tab to tab."""
    focused = """() => { const node = document.activeElement;
      const {outlineStyle, outlineWidth} = getComputedStyle(node);
      const isSeen = outlineStyle !== "none" && parseFloat(outlineWidth) >= 2;
      return [node.id || node.ariaLabel || node.textContent, isSeen]; }"""
    shown = """() => [...document.querySelectorAll("button, select, input, canvas[tabindex]")]
      .filter((node) => node.checkVisibility() && !node.disabled && node.tabIndex >= 0)
      .map((node) => node.id || node.ariaLabel || node.textContent)"""
    with viewed.shown(running, arena, tmp_path) as (page, faults):
        viewed.verified(page)
        page.evaluate("() => gridmill.select(1)")
        for panel in range(5):
            page.evaluate("(panel) => gridmill.commands.tab(panel)", panel)
            page.wait_for_timeout(300)
            wanted = set(page.evaluate(shown))
            page.evaluate("() => document.activeElement.blur()")
            reached: dict[str, bool] = {}
            for _ in range(len(wanted) + 10):
                page.keyboard.press("Tab")
                name, outlined = page.evaluate(focused)
                reached[name] = outlined
            assert wanted - set(reached) == set()
            assert [name for name in wanted if not reached[name]] == []
        page.focus("#tab-4")
        page.keyboard.press("ArrowRight")
        assert page.evaluate("() => [gridmill.commands.sidebar.shown, document.activeElement.id]") == [0, "tab-0"]
        page.evaluate("() => document.activeElement.blur()")
        place = page.evaluate("() => [gridmill.pane.camera.x, gridmill.pane.camera.y]")
        page.keyboard.press("l")
        page.keyboard.press("k")
        moved = page.evaluate("() => [gridmill.pane.camera.x, gridmill.pane.camera.y]")
        assert moved[0] > place[0]
        assert moved[1] > place[1]
        assert not faults


@pytest.mark.long
def test_fingers_pan_pinch_and_choose(running: Any, arena: replay.Replay, tmp_path: Path) -> None:
    phone = {"viewport": {"width": 400, "height": 800}, "has_touch": True, "is_mobile": True}
    camera = "() => { const {x, y, scale} = gridmill.pane.camera; return [x, y, scale, gridmill.following]; }"
    with viewed.shown(running, arena, tmp_path, **phone) as (page, faults):
        session = page.context.new_cdp_session(page)

        def touch(kind: str, *points: tuple[float, float]) -> None:
            places = [{"x": x, "y": y, "id": number} for number, (x, y) in enumerate(points)]
            session.send("Input.dispatchTouchEvent", {"type": f"touch{kind}", "touchPoints": places})

        x, y, scale, _ = page.evaluate(camera)
        touch("Start", (150, 200), (250, 200))
        for step in range(1, 6):
            touch("Move", (150 - 12 * step, 200), (250 + 12 * step, 200))
        touch("End")
        page.wait_for_timeout(100)
        x, y, pinched, _ = page.evaluate(camera)
        assert pinched == pytest.approx(scale * 2.2, rel=0.05)
        page.evaluate("() => { gridmill.select(2); gridmill.commands.follow(); }")
        page.wait_for_timeout(600)
        x, y, scale, following = page.evaluate(camera)
        assert following
        touch("Start", (200, 200))
        for step in range(1, 6):
            touch("Move", (200 - 10 * step, 200 + 6 * step))
        touch("End")
        page.wait_for_timeout(300)
        after = page.evaluate(camera)
        assert after[0] == pytest.approx(x + 50 / scale, abs=0.5)  # the first pixels decide whether it is a tap
        assert after[1] == pytest.approx(y - 30 / scale, abs=0.5)
        assert after[2:] == [scale, False]  # the map stays where it was put
        page.evaluate("() => gridmill.select(-1)")
        place = page.evaluate(
            "() => { const {camera, scene} = gridmill.pane; const {row, col} = scene.byAgent.get(2);"
            " const box = gridmill.pane.canvas.getBoundingClientRect();"
            " const at = camera.toScreen(col + 0.5, row + 0.5);"
            " return [at.x + box.left, at.y + box.top]; }"
        )
        page.touchscreen.tap(*place)
        page.wait_for_function("() => gridmill.selected === 2")
        assert not faults


@pytest.mark.long
def test_the_first_picture_waits_for_no_saved_states(running: Any, tmp_path: Path) -> None:
    """What the file brought is read behind it, and then makes far ticks near; panels are filled behind it."""
    look = """const mark = performance.mark.bind(performance);
      performance.mark = (name) => {
        window.brought = window.states();
        window.filled = document.querySelectorAll("#legend li").length;
        gridmill.playAhead = () => {}; // the engine goes nowhere by itself
        return mark(name);
      };
      window.states = () => gridmill.track.states.list.filter((frame) => !frame.own).length;"""
    tape = viewed.tape_of(games.arena(num_agents=6), 400)
    tape = replay.record(tape.game, tape.seed, tape.actions, {"*": "random"}, keyframes_every=100)
    begin = {"files": [{"name": "a.replay", "url": "a.replay"}]}
    context = running.new_context()
    context.add_init_script(look)
    page = context.new_page()
    try:
        with viewed.served(begin, {"a.replay": replay.encode(tape)}, tmp_path) as url:
            page.goto(url)
            page.wait_for_function("() => window.brought !== undefined")
            assert page.evaluate("() => [window.brought, window.filled]") == [0, 0]
            page.wait_for_selector("#legend li")
            page.wait_for_function("() => window.states() === 3")
    finally:
        context.close()


@pytest.mark.long
def test_the_end_of_an_episode_is_shown(running: Any, tmp_path: Path) -> None:
    """What the last tick left, as the native engine shows it; nobody can take over there."""
    tape = viewed.tape_of(games.arena().replace("max_steps", 40), 40)
    assert tape.branches[0].ended
    with viewed.shown(running, tape, tmp_path) as (page, faults):
        viewed.verified(page)
        viewed.seek(page, 40)
        page.evaluate("() => gridmill.select(3)")
        expect_inventory(page, viewed.truth(tape, 40), 3)
        places = (
            "() => gridmill.pane.seen.objects.filter((o) => o.agent !== undefined).map((o) => [o.agent, o.row, o.col])"
        )
        native = [
            (t["agent"], t["row"], t["column"]) for t in viewed.truth(tape, 40)["objects"] if t["agent"] is not None
        ]
        assert sorted(map(tuple, page.evaluate(places))) == sorted(native)
        page.keyboard.press("t")
        assert page.evaluate("() => [gridmill.tick, gridmill.track.branch.forkTick]") == [39, 39]
        assert not faults


@pytest.mark.long
def test_five_moves_by_keyboard(running: Any, tmp_path: Path) -> None:
    begin = start.new_game(games.arena(), 5, 2, "")
    with viewed.served(begin, {}, tmp_path) as url, chromium.page_of(running, url) as (page, faults):
        for key in ("ArrowUp", "ArrowLeft", "ArrowDown", "ArrowRight", " "):
            page.keyboard.press(key)
        names = page.evaluate(
            "() => [0,1,2,3,4].map((t) => gridmill.track.info.actionNames[gridmill.track.branch.action(t, 2)])"
        )
        assert names == ["move_north", "move_west", "move_south", "move_east", "noop"]
        assert page.evaluate("() => gridmill.tick") == 5
        chromium.picture(page, "play")
        tape = saved(page, tmp_path / "played.replay")
        assert tape.who(0)[2] == "human"
        assert tape.who(0)[3] == "script:arena"
        assert all(finding.equal for finding in replay.check(tape))
        assert not faults


def saved(page: Any, place: Path) -> replay.Replay:
    with page.expect_download() as waiting:
        page.click("#save")
    waiting.value.save_as(place)
    return replay.read(place)


@pytest.mark.long
def test_a_fork_is_taken_saved_opened_and_checked(running: Any, arena: replay.Replay, tmp_path: Path) -> None:
    with viewed.shown(running, arena, tmp_path) as (page, faults):
        viewed.verified(page)
        viewed.seek(page, 200)
        page.evaluate("() => gridmill.select(4)")
        page.keyboard.press("t")
        for key in ("ArrowUp", "ArrowUp", "ArrowLeft", "y", "x"):
            page.keyboard.press(key)
        assert page.evaluate("() => [gridmill.tick, gridmill.track.branch.forkTick]") == [205, 200]
        page.select_option("#who", "script:arena")
        page.evaluate("() => { for (let i = 0; i < 150; i++) gridmill.playOn(); }")
        page.keyboard.press("5")
        page.wait_for_selector("#parting:has-text('diverge at tick')")
        chromium.picture(page, "fork")
        tape = saved(page, tmp_path / "fork.replay")
    assert not faults
    first, second = tape.branches[1:]
    assert (first.parent, first.fork_tick, first.ticks) == (0, 200, 5)
    assert (second.parent, second.fork_tick, second.ticks) == (1, 205, 150)
    names = tape.action_names
    wanted = ["move_north", "move_north", "move_west", "move_northwest", "attack_nearest"]
    assert [names[a] for a in first.actions[:, 4]] == wanted
    assert (first.actions[:, :4] == arena.actions[200:205, :4]).all()
    assert all(finding.equal for finding in replay.check(tape))
    result = CliRunner().invoke(cli.app, ["replay", "check", str(tmp_path / "fork.replay")])
    assert result.exit_code == 0, result.output
    with viewed.shown(running, tape, tmp_path) as (page, faults):
        page.evaluate("() => gridmill.showBranch(gridmill.recording.branches[2])")
        viewed.verified(page)
        viewed.seek(page, 300)
        page.evaluate("() => gridmill.select(4)")
        expect_inventory(page, viewed.truth(tape, 300, 2), 4)
        page.keyboard.press("c")
        page.wait_for_timeout(600)
        chromium.picture(page, "compare")
        assert not faults


@pytest.mark.long
def test_forks_of_both_panes_are_saved(running: Any, tmp_path: Path) -> None:
    tape = viewed.tape_of(games.arena(num_agents=6), 60)
    with viewed.shown(running, tape, tmp_path) as (page, faults):
        page.evaluate(
            """() => { const app = gridmill;
            app.seek(20); app.takeOver(1, "random"); for (let i = 0; i < 5; i++) app.playOn();
            app.commands.compare(); }"""
        )
        page.wait_for_function("() => gridmill.panes.length === 2 && gridmill.active === 0")
        page.evaluate(
            """() => { const app = gridmill;
            app.active = 1; app.seek(30); app.takeOver(2, "random"); for (let i = 0; i < 4; i++) app.playOn(); }"""
        )
        both = saved(page, tmp_path / "both.replay")
        assert [(branch.fork_tick, branch.ticks) for branch in both.branches[1:]] == [(20, 5), (30, 4)]
        assert all(finding.equal for finding in replay.check(both))
        assert not faults


@pytest.mark.long
def test_files_are_dropped_and_two_are_shown_side_by_side(running: Any, tmp_path: Path) -> None:
    """On one clock, each as the native engine plays it."""
    tapes = [viewed.tape_of(games.arena(num_agents=6), 60, seed) for seed in (3, 4)]
    with viewed.served({"files": []}, {}, tmp_path) as url, chromium.page_of(running, url) as (page, faults):
        assert viewed.dropped(page, tapes[:1]) == [True, False]  # while it is held over the page, and then
        page.wait_for_function("() => gridmill.panes.length === 1")
        viewed.verified(page)
        viewed.dropped(page, tapes)
        page.wait_for_function("() => gridmill.panes.length === 2")
        viewed.seek(page, 40)
        places = """() => gridmill.panes.map((pane) => [pane.drawnTick,
          ...[...pane.scene.byAgent.values()].map(({agent, row, col}) => [agent, row, col])])"""
        page.wait_for_function("() => gridmill.panes.every((pane) => pane.track.check.state === 'verified')")
        for tape, (tick, *found) in zip(tapes, page.evaluate(places), strict=True):
            there = [t for t in viewed.truth(tape, 40)["objects"] if t["agent"] is not None]
            assert tick == 40
            assert sorted(found) == sorted([t["agent"], t["row"], t["column"]] for t in there)
        chromium.picture(page, "two-files")
        assert not faults


@pytest.mark.long
def test_branches_are_compared_by_reward_and_score(running: Any, tmp_path: Path) -> None:
    game = games.arena().replace("max_steps", 400)
    tape = replay.record(game, 5, np.zeros((400, 24), np.int32), {"*": "noop"}, name="recorded")
    with viewed.shown(running, tape, tmp_path) as (page, faults):
        viewed.verified(page)
        page.evaluate("() => { gridmill.seek(0); gridmill.commands.tab(4); }")
        page.evaluate("() => gridmill.takeOver('*', 'script:arena')")
        page.evaluate("() => { for (let i = 0; i < 400; i++) gridmill.playOn(); }")
        page.wait_for_function("() => document.querySelectorAll('#branches .figures b').length === 4")
        played = saved(page, tmp_path / "score.replay")
        hearts = replay.record(game, 5, played.branches[1].actions, {"*": "script:arena"}).branches[0].result["score"]
        assert hearts > 0
        shown = page.inner_text("#parting")
        assert f"heart.get {hearts:.3f} here, 0 in recorded" in shown
        chromium.picture(page, "compare-scores")
        assert not faults


@pytest.mark.long
def test_what_if_shows_rollouts_and_the_critics_error(running: Any, tmp_path: Path) -> None:
    """Quantiles as numpy computes them; value and discounted returns as `gridmill whatif` defines them."""
    record = replace(viewed.new_policy(), gamma=0.9, reward_scale=2.0)
    tape = replace(viewed.tape_of(games.arena(num_agents=6), 120), played_by=record)
    with viewed.shown(running, tape, tmp_path) as (page, faults):
        viewed.seek(page, 80)
        page.evaluate("() => gridmill.select(2)")
        page.select_option("#whatif-by", "policy")
        page.select_option("#whatif-ticks", "10")
        page.evaluate(
            """() => { const panel = gridmill.commands.sidebar.panel.whatIf; const stop = panel.stop.bind(panel);
            panel.stop = () => { window.job = panel.job ?? window.job; stop(); }; }"""
        )
        page.click("#whatif")
        page.wait_for_function("() => window.job && window.job.queue.length === 0")
        rows = page.evaluate(
            "() => Object.fromEntries([...document.querySelectorAll('.whatif li[data-action]')].map((li) =>"
            " [li.dataset.action, [...li.querySelectorAll('b')].map((b) => "
            " Number(b.textContent.replace('\u2212', '-')))]))"
        )
        runs = page.evaluate(
            "() => [...job.rollouts].map(([action, runs]) => [action, runs.map((run) => run.sum),"
            " runs.map((run) => run.discounted), job.thought.probs[action]])"
        )
        assert len(runs) > 2
        for action, paid, _, _ in runs:
            assert len(paid) == 6
            wanted = [np.mean(paid), *np.quantile(paid, (0.05, 0.5, 0.95))]
            assert rows[str(action)] == pytest.approx(wanted, abs=6e-4)
        value = 2.0 * page.evaluate("() => job.thought.value")
        expected = sum(share * np.mean(discounted) for _, _, discounted, share in runs)
        assert sum(share for *_, share in runs) == pytest.approx(1, abs=1e-4)
        said = page.inner_text("p:has-text('The critic says')").replace("\u2212", "-")
        figures = [float(number) for number in re.findall(r"-?\d+\.\d+(?:e-?\d+)?", said.partition("critic")[2])]
        assert figures == pytest.approx([value, expected, 0.9, value - expected], abs=6e-4)
        chromium.picture(page, "what-if")
        assert not faults


@pytest.mark.long
def test_the_policy_of_a_file_plays_on(running: Any, tmp_path: Path) -> None:
    with viewed.shown(running, replace(viewed.tape_of(games.arena(), 60), played_by=viewed.new_policy()), tmp_path) as (
        page,
        faults,
    ):
        viewed.seek(page, 40)
        page.evaluate("() => gridmill.select(2)")
        page.wait_for_selector("#who option[value=policy]", state="attached")
        page.select_option("#who", "policy")
        page.wait_for_function("() => gridmill.track.players.policy")
        page.evaluate("() => { for (let i = 0; i < 10; i++) gridmill.playOn(); }")
        page.evaluate("() => gridmill.commands.giveTo(3, 'human')")
        page.wait_for_function("() => gridmill.track.players.policy && gridmill.track.players.human === 3")
        page.keyboard.press("ArrowUp")
        page.evaluate("() => { for (let i = 0; i < 10; i++) gridmill.playOn(); }")
        tape = saved(page, tmp_path / "policy.replay")
        assert tape.who(2)[2:4] == ["policy", "human"]
        assert len(set(tape.branches[2].actions[:, 2].tolist())) > 1
        assert all(finding.equal for finding in replay.check(tape))
        assert not faults


@pytest.mark.long
def test_a_changed_action_is_named_by_its_tick(running: Any, arena: replay.Replay, tmp_path: Path) -> None:
    changed = arena.branches[0].actions.copy()
    changed[137, 5] = (changed[137, 5] + 1) % 4
    tape = replace(arena, branches=(replace(arena.branches[0], actions=changed),))
    with viewed.shown(running, tape, tmp_path) as (page, faults):
        page.wait_for_selector("#badge.differs")
        tick = page.evaluate("() => gridmill.track.check.tick")
        assert 137 <= tick < 150  # the first state that differs: a blocked move changes nothing at once
        assert not faults


@pytest.mark.long
def test_an_exported_page_opens_from_disk(running: Any, arena: replay.Replay, tmp_path: Path) -> None:
    replay.write(tmp_path / "a.replay", arena)
    page_file = tmp_path / "a.html"
    result = CliRunner().invoke(cli.app, ["view", str(tmp_path / "a.replay"), "--export", str(page_file)])
    assert result.exit_code == 0, result.output
    asked: list[str] = []
    with chromium.page_of(running, f"{page_file.as_uri()}#tick=100&agent=3") as (page, faults):
        page.on("request", lambda request: asked.append(request.url))
        viewed.verified(page)
        assert page.evaluate("() => [gridmill.tick, gridmill.selected]") == [100, 3]
        expect_inventory(page, viewed.truth(arena, 100), 3)
        page.keyboard.press("t")
        page.keyboard.press("ArrowUp")
        tape = saved(page, tmp_path / "b.replay")
        assert all(finding.equal for finding in replay.check(tape))
        assert not faults
    assert [url for url in asked if not url.startswith("blob:")] == []


@pytest.mark.long
@pytest.mark.parametrize("scheme", ["dark", "light"])
def test_themes_phones_and_the_keyboard(running: Any, arena: replay.Replay, scheme: str, tmp_path: Path) -> None:
    with viewed.shown(running, arena, tmp_path, color_scheme=scheme) as (page, faults):
        viewed.verified(page)
        before = page.evaluate("() => getComputedStyle(document.body).backgroundColor")
        page.keyboard.press("d")
        assert page.evaluate("() => getComputedStyle(document.body).backgroundColor") != before
        page.keyboard.press("d")
        page.keyboard.press("?")
        page.wait_for_selector("dialog[open]")
        chromium.picture(page, f"keys-{scheme}")
        page.keyboard.press("Escape")
        for overlay in "whr":
            page.keyboard.press(overlay)
        page.keyboard.press("n")
        viewed.seek(page, 150)
        chromium.picture(page, f"overlays-{scheme}")
        names = page.evaluate(
            "() => [...document.querySelectorAll('button, select, input')].filter((node) => !node.closest('[hidden]')"
            " && !(node.textContent.trim() || node.ariaLabel || node.labels?.length)).map((node) => node.outerHTML)"
        )
        assert names == []
        assert not faults
    phone = {"viewport": {"width": 390, "height": 800}, "has_touch": True, "is_mobile": True, "device_scale_factor": 2}
    with viewed.shown(running, arena, tmp_path, color_scheme=scheme, **phone) as (page, faults):
        viewed.verified(page)
        page.evaluate("() => gridmill.select(1)")
        viewed.seek(page, 90)
        wide = page.evaluate("() => document.documentElement.scrollWidth")
        assert wide <= 390
        chromium.picture(page, f"phone-{scheme}")
        assert not faults
