"""Recipes and their commands: what ships is pinned, every one can be planned, people's own work like ours."""

from __future__ import annotations

import functools
import json
import re
import subprocess
import sys
import types
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from gridmill import cli, games, recipes, sizing
from gridmill.config import Config, flatten
from gridmill.config.install import command, pip_install
from gridmill.env import GameConfig
from gridmill.grid import Game
from gridmill.run import PolicyConfig, Run, Schedule, TrainerConfig
from gridmill.runs import presets

ROOT = Path(__file__).resolve().parents[1]
GOLDEN = Path(__file__).parent / "golden" / "recipes"
OWN = ROOT / "examples" / "own_game.py"


def call(*arguments: str) -> Result:
    return CliRunner().invoke(cli.app, list(arguments))


def golden(name: str) -> Any:
    """What a recipe changes; of the game its fingerprint, its own golden file has the rest."""
    run = recipes.build(name)
    return {"game": changed(run.game, None)} | changed(run, Run(recipe="", game=run.game))


def changed(mine: Any, usual: Any) -> Any:
    """What differs, as plain data without what is left at its default."""
    if isinstance(mine, Schedule):
        return mine.model_dump(exclude_defaults=True)
    if isinstance(mine, GameConfig):
        return f"{mine.name} {mine.fingerprint()}"
    if isinstance(mine, tuple):
        return [item.tree() if isinstance(item, Config) else item for item in mine]
    if not isinstance(mine, Config | Mapping):
        return mine
    mine, usual = (dict(each) for each in (mine, usual))
    return {name: changed(value, usual.get(name, {})) for name, value in mine.items() if value != usual.get(name)}


def defaults() -> dict[str, Any]:
    """All settings that a run has if nobody changes them, but for the game."""
    tree = Run(recipe="", game=games.toy()).tree()
    del tree["game"]
    return flatten(tree)


# A recipe has a golden file if somebody wrote one: `python tests/test_recipes.py --write` writes that of every recipe.
GOLDENS: dict[str, Callable[[], dict[str, Any]]] = {
    "defaults": defaults,
    **{name: functools.partial(golden, name) for name in recipes.names() if (GOLDEN / f"{name}.json").exists()},
}


@pytest.mark.parametrize("name", GOLDENS)
def test_golden(name: str) -> None:
    assert GOLDENS[name]() == json.loads((GOLDEN / f"{name}.json").read_text()), (
        "if this is meant, run `python tests/test_recipes.py --write`"
    )


def test_every_golden_file_belongs_to_a_recipe() -> None:
    assert sorted(path.stem for path in GOLDEN.glob("*.json")) == sorted(GOLDENS)


@pytest.mark.parametrize("name", recipes.names())
def test_every_recipe_is_planned(name: str) -> None:
    result = call("train", name, "--dry-run")
    assert result.exit_code == 0, result.output
    run = recipes.build(name)
    assert f"recipe   {name}, " in result.stdout
    assert f"trainer.batch_size = {run.trainer.batch_size:_}\n" in result.stdout
    assert f" ticks = {run.trainer.batch_size:,} agent-steps" in result.stdout
    assert re.search(r"^  together +[\d,]+ MiB$", result.stdout, re.MULTILINE)
    assert max(map(len, result.stdout.splitlines())) <= 80
    assert result.stdout.isascii()
    assert recipes.maker(name).__doc__


def test_ci_is_two_worlds_of_24_agents() -> None:
    fits = sizing.sizes(recipes.build("ci"))
    assert (fits.num_worlds, fits.num_agents) == (2, 24)
    assert recipes.build("ci").game == games.arena_basic_easy_shaped()


@pytest.mark.parametrize("name", recipes.names())
@pytest.mark.parametrize("preset", presets.names())
def test_every_preset_fits_every_recipe(name: str, preset: str) -> None:
    run, rounded = presets.fitted(presets.merged(recipes.build(name), preset))
    sizing.sizes(run)
    assert presets.apply(recipes.build(name), preset) == run
    if rounded:
        assert all(line.startswith("trainer.") for line in rounded)


def test_a_rounded_preset_says_so() -> None:
    said = call("train", "ci", "--preset", "baseline", "--dry-run")
    assert said.exit_code == 0, said.output
    text = " ".join(said.stdout.split())
    assert "preset baseline, to fit 24 agents: trainer.batch_size = 98_304, not 16_384" in text
    exact = call("train", "prospector", "--preset", "baseline", "--dry-run")
    assert "to fit" not in exact.stdout


def test_ultra_fast_has_the_values_of_its_name() -> None:
    run = presets.apply(recipes.build("prospector"), "ultra_fast")
    t = run.trainer
    assert (t.batch_size, t.minibatch_size, t.num_worlds, t.async_factor, t.bptt_horizon) == (
        262_144,
        32_768,
        512,
        8,
        32,
    )
    assert t.compile == ("reduce-overhead" if presets.has_gpu() else "off")
    assert (run.checkpoint.epochs, run.evaluation.epochs, run.evaluation.replays_every_epochs) == (100, 500, 500)
    assert (run.analysis.gradient_epochs, run.monitor.epochs, run.profiler.enabled) == (300, 50, False)
    contrasted = recipes.build("prospector").replace_all([("losses", {"contrastive": {"kind": "contrastive"}})])
    assert presets.apply(contrasted, "ultra_fast").losses["contrastive"].weight == 0


def test_the_plan_marks_what_differs() -> None:
    text = call("train", "ci", "seed=3", "game.max_steps=500", "optimizer.learning_rate.end=0", "--dry-run").stdout
    marked = {line[2:].split(" =")[0] for line in text.splitlines() if line.startswith("* ")}
    assert marked == {"seed", "game", "optimizer.learning_rate", "trainer.device", "trainer.async_factor"}
    assert "optimizer.learning_rate = 0.002 -> 0, linear over steps" in text


def test_recipes_are_listed() -> None:
    result = call("recipes")
    assert result.exit_code == 0
    for name in recipes.names():
        assert re.search(rf"^{name} +\d", result.stdout, re.MULTILINE)
    assert max(map(len, result.stdout.splitlines())) <= 80


# ---- people's own


def test_a_recipe_from_a_file() -> None:
    run = recipes.build(str(OWN))
    assert run.recipe == "own_game"
    assert run == recipes.build(f"{OWN}:own_game")
    assert len(OWN.read_text().splitlines()) < 60


def test_a_bare_game_is_trained_with_the_defaults() -> None:
    run = recipes.build(f"{OWN}:harvest")
    assert isinstance(run.game, Game)
    assert (run.game.name, run.trainer) == ("harvest", TrainerConfig())
    assert recipes.build("gridmill.games:prospector").policy == PolicyConfig()


def test_a_recipe_from_a_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "mypack").mkdir()
    (tmp_path / "mypack" / "__init__.py").write_text("")
    (tmp_path / "mypack" / "mine.py").write_text(
        "from gridmill import games\nfrom gridmill.run import Run\n"
        "def small(): return Run(recipe='small', game=games.toy(2))\n"
    )
    monkeypatch.chdir(tmp_path)
    before = list(sys.path)
    run = recipes.build("mypack.mine:small")
    assert (run.recipe, run.game.num_agents) == ("small", 2)
    assert sys.path == before


def test_a_file_may_import_its_neighbour(tmp_path: Path) -> None:
    (tmp_path / "neighbour_of_mine.py").write_text("AGENTS = 3\n")
    (tmp_path / "mine.py").write_text(
        "from __future__ import annotations\nfrom dataclasses import dataclass\nimport neighbour_of_mine\n"
        "from gridmill import games\n"
        "@dataclass\nclass Sizes:\n    agents: int = neighbour_of_mine.AGENTS\n"
        "def mine(): return games.toy(Sizes().agents)\n"
    )
    assert games.build(str(tmp_path / "mine.py")).num_agents == 3


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("def x(: pass", r"`.*mine\.py` failed in line 1: SyntaxError: "),
        ("\n\nimport nowhere_to_be_found", r"failed in line 3: ModuleNotFoundError: No module named 'nowhere_"),
        ("def mine():\n    return {}['a']", r"failed in line 2: KeyError: 'a'"),
        ("def mine(): return 3", r"expected a function that returns a Run or a Game, got int"),
        ("def mine(): raise ValueError('too\\nbad')", r"mine\.py` failed in line 1: ValueError: too bad$"),
        ("def mien(): pass", r"no function `mine` in `mine\.py`; did you mean `mien`\?"),
        ("def other(): pass", r"no function `mine` in `mine\.py`; it has: other"),
    ],
)
def test_what_is_wrong_in_a_file_is_one_line(source: str, said: str, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(source)
    result = call("train", str(tmp_path / "mine.py"), "--dry-run")
    assert result.exit_code == 2
    (line,) = result.stderr.splitlines()
    assert re.search(said, line), line


# ---- the commands


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["train", "areno"], "unknown recipe `areno`; did you mean `arena`?"),
        (
            ["train", "arena_basic"],
            f"unknown recipe `arena_basic`, but a game: `{command('train', 'arena', 'game=arena_basic')}`",
        ),
        (["train", "nowhere.py"], "no recipe file `nowhere.py`"),
        (["train", "ci", "total_timesteps=1"], "did you mean `trainer.total_timesteps`?"),
        (
            ["train", "ci", "trainer.num_worlds=3", "trainer.async_factor=2"],
            "is not a multiple of async_factor = 2; add: ",
        ),
        (["train", "ci", "trainer.num_worlds=1e9"], "not enough memory: "),
        (["train", "ci", "game.num_agents=4096"], "free cells for agents and objects"),
        (["train", "ci", "--preset", "latop"], "did you mean `laptop`?"),
        (["resume", "runs/x", "seed"], "expected key=value, got `seed`"),
    ],
)
def test_errors_are_one_line(arguments: list[str], said: str) -> None:
    for more in ([], ["--dry-run"])[: 1 + (arguments[0] == "train")]:
        result = call(*arguments, *more)
        assert result.exit_code == 2, result.output
        (line,) = result.stderr.splitlines()
        assert line.startswith("gridmill: ")
        assert said in line


def test_the_trainer_gets_the_resolved_run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    seen: list[Any] = []

    def told(*arguments: Any, **options: Any) -> Any:
        seen.append((arguments, options))
        return types.SimpleNamespace(exit_code=5)

    monkeypatch.setattr("gridmill.cli.train._trainer", lambda: types.SimpleNamespace(train=told, resume=told))
    assert call("train", "ci", "seed=3", "--runs-dir", str(tmp_path), "--fresh").exit_code == 5
    ((run,), options) = seen.pop()
    assert run == presets.fill(recipes.build("ci")).replace("seed", 3)
    origin = options.pop("recipe")
    assert (origin.recipe, origin.merged.replace("seed", 3)) == (recipes.build("ci"), run)
    assert options == {"runs_dir": tmp_path, "fresh": True}
    (tmp_path / "x" / "checkpoints").mkdir(parents=True)
    for run_named in (["x", "--runs-dir", str(tmp_path)], [str(tmp_path / "x")]):
        assert call("resume", *run_named, "seed=4").exit_code == 5
        assert seen.pop() == ((tmp_path / "x", ["seed=4"]), {})


def test_without_torch_everything_but_training_works(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A package `train` that wants torch is put where the real one is looked for last."""
    monkeypatch.chdir(tmp_path)  # a hint names the interpreter as seen from here
    (tmp_path / "train").mkdir()
    (tmp_path / "train" / "__init__.py").write_text("import torch\n")
    code = (
        "import sys, gridmill\n"
        "sys.modules['torch'] = None\n"
        f"gridmill.__path__.append({str(tmp_path)!r})\n"
        "from gridmill.cli import main\n"
        "main(sys.argv[1:])"
    )
    unknown = (
        r"memory, about\n  experience +\d+ MiB\n  policy +needs torch\n  worlds +\d+ MiB\n  together +needs torch\n"
    )
    for arguments, status, output, error in (
        (["recipes"], 0, "arena_basic_easy_shaped", ""),
        (["train", "ci", "--dry-run"], 0, unknown, ""),
        (["explain", "toy"], 0, "toy: ", ""),
        (["train", "ci"], 2, "", f"gridmill: training needs torch: {pip_install('gridmill[train]')}\n"),
    ):
        done = subprocess.run(
            [sys.executable, "-c", code, *arguments], capture_output=True, text=True, timeout=120, cwd=tmp_path
        )
        assert (done.returncode, done.stderr) == (status, error), arguments
        assert re.search(output, done.stdout), arguments


if __name__ == "__main__" and "--write" in sys.argv:
    GOLDEN.mkdir(exist_ok=True)
    for each, made in GOLDENS.items():
        (GOLDEN / f"{each}.json").write_text(json.dumps(made(), indent=1) + "\n")
