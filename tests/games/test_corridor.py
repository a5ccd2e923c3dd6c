"""Corridor, the third kind of game: whatever a run does with a game it does with it, and nothing else names it."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import numpy as np
import pytest
from random_games import Digest, scripted_actions
from tiny import difference, epochs_of

import gridmill
from gridmill import _native, games
from gridmill.config import ConfigError
from gridmill.evaluate import evaluate
from gridmill.games.corridor import Corridor
from gridmill.replay import read
from gridmill.run import CheckpointConfig, PolicyConfig, Run, TrainerConfig
from gridmill.runs import resume, train

ROOT = Path(__file__).resolve().parents[2]
# What makes it a game, with a test; and what the viewer's page takes to draw it.
GAME = {
    "native/corridor/corridor.hpp",
    "native/corridor/corridor.cpp",
    "native/bind/module.cpp",
    "src/gridmill/games/corridor.py",
    "src/gridmill/games/kinds.py",
}
PICTURE = {
    "native/wasm/show_corridor.cpp",
    "native/wasm/show.hpp",
    "native/wasm/world.cpp",
    "src/gridmill/viewer/page/corridor.js",
    "src/gridmill/viewer/page/pane.js",
}
EPOCH = 64  # agent-steps: 4 worlds x 16 ticks


def tiny(epochs: int, **changes: object) -> Run:
    run = Run(
        recipe="corridor",
        game=games.corridor(length=4, max_steps=12),
        policy=PolicyConfig(hidden=16),
        trainer=TrainerConfig(
            total_timesteps=epochs * EPOCH,
            num_worlds=4,
            threads=1,
            batch_size=EPOCH,
            minibatch_size=32,
            bptt_horizon=8,
            device="cpu",
        ),
        checkpoint=CheckpointConfig(seconds=0, epochs=1, keep=9),
    )
    return run.replace_all(list(changes.items()))


def test_native_and_python_describe_the_same_game() -> None:
    native = {name: default for name, (_, default, _) in _native.CorridorBatch.schema().items()}
    assert list(native.items()) == list(Corridor().core_tree().items())


def test_the_far_end_is_worth_one() -> None:
    with gridmill.make(games.corridor(length=3, max_steps=4), num_worlds=1, masks=True) as env:
        env.reset()
        assert env.obs.tolist() == [[0, 1, 1]]
        assert env.masks.tolist() == [[True, False, True]]
        env.step([env.action_names.index("right")])
        assert (env.rewards[0], env.terminals[0]) == (0, False)
        env.step([env.action_names.index("right")])
        assert (env.rewards[0], env.terminals[0]) == (1, True)
        for _ in range(4):
            env.step([0])
        assert env.truncations[0]
        found = env.take_episodes()
    assert found["reached"].tolist() == [1, 0]
    assert found["length"].tolist() == [2, 4]


def test_wrong_settings_are_refused_with_their_path() -> None:
    with pytest.raises(ConfigError) as caught:
        Corridor.load({"length": 1})
    assert str(caught.value) == "expected greater than or equal to 2, got 1 - at `$.length`"


@pytest.mark.D4
def test_golden_hashes() -> None:
    """What agents see, and the engine's memory: its saved bytes are part of replays and snapshots."""
    digest = Digest()
    with gridmill.make("corridor", num_worlds=2, seed=2026, masks=True) as env:
        env.reset()
        digest.add_arrays(env)
        for step in range(120):
            env.step(scripted_actions(step, env.num_rows, env.num_actions))
            digest.add_arrays(env)
        digest.add_episodes(env)
        state = [f"{int(world):016x}" for world in env.state_hash()]
    assert digest.hex()[:16] == "85d3f2e1f4efb43c"
    assert state == ["c6da3ba8f7f3b573", "9dd5e03eef110b8d"]


def test_a_run_is_trained_evaluated_saved_and_resumed_to_the_bit(tmp_path: Path) -> None:
    whole, again = (train(tiny(2, run=name), tmp_path, panel=False).folder for name in ("whole", "again"))
    assert len(epochs_of(whole)) == 2
    found = evaluate(games.corridor(length=4, max_steps=12), str(whole), episodes=4, seed=0)
    assert 0 <= found.score.mean <= 1
    assert Run.load(tiny(2).tree()) == tiny(2)
    newest = sorted((again / "checkpoints").iterdir())[-1]
    shutil.rmtree(newest)
    assert resume(again, panel=False).exit_code == 0
    assert difference(whole, again) == 0


def test_an_episode_is_recorded_and_plays_again(tmp_path: Path) -> None:
    file = tmp_path / "one.replay"
    evaluate(games.corridor(), "random", episodes=1, seed=3, replay=file)
    tape = read(file)
    assert tape.game == games.corridor()
    assert sum(1 for _ in tape.play()) == len(tape.actions) > 0


def test_a_snapshot_goes_on_as_it_did() -> None:
    with gridmill.make("corridor", num_worlds=3) as env:
        env.reset()
        env.step([2, 2, 0])
        saved = env.save()
        env.step([2, 1, 2])
        then = env.state_hash().copy()
        env.restore(saved)
        env.step([2, 1, 2])
        np.testing.assert_array_equal(env.state_hash(), then)


def test_nothing_else_names_it() -> None:
    """Five files and a test make a kind of game (docs/add-a-game.md); the stub of the extension is generated."""
    word = re.compile(r"games[./]corridor|\bCorridor(?:Batch|Env|Map)?\b|\bcorridor(?:::|/|\.js)")
    quoted = re.compile(r"[\"']corridor[\"']")  # in C++ mazes have a setting of this name
    files = [path for folder in ("src/gridmill", "native") for path in (ROOT / folder).rglob("*") if path.is_file()]
    found = set()
    for path in files:
        if path.suffix in (".py", ".pyi", ".js", ".hpp", ".cpp", ".html", ".css"):
            text = path.read_text()
            if word.search(text) or (path.suffix in (".py", ".js") and quoted.search(text)):
                found.add(path.relative_to(ROOT).as_posix())
    assert found == GAME | PICTURE | {"src/gridmill/_native.pyi"}
    lines = (ROOT / "src/gridmill/games/kinds.py").read_text().splitlines()
    assert sum(bool(word.search(line)) for line in lines) == 1


def test_the_page_says_what_a_picture_costs() -> None:
    """The viewer's files are no part of the six: a game is trained, evaluated and replayed without them."""
    page = (ROOT / "docs" / "add-a-game.md").read_text()
    section = page.partition("### A picture in the viewer")[2].partition("\n## ")[0]
    assert set(re.findall(r"^\| `(\S+)` \|", section, re.MULTILINE)) == PICTURE
