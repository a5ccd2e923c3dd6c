"""The how-to pages, followed to the letter in a copy of the tree: how many files each costs, and that it works.

A page says where a block of code goes in a comment before it: a new file, or an edit before, after or in place of a
line that the file has once. Changes that docs/why.md counts and no page describes are in trials/, in the same form.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from gridmill import _native, cli

ROOT = Path(__file__).resolve().parents[2]
BLOCK = re.compile(
    r"^<!-- (new|edit) (\S+?)(?: (before|after|replace) `(.+?)`)? -->\n```\w+\n(.*?)^```", re.MULTILINE | re.DOTALL
)
COPIED = ["CMakeLists.txt", "pyproject.toml", "README.md", "LICENSE", "native", "src", "examples", "tests/conftest.py"]
COPIED += ["tests/support", "tests/contracts", "tests/games", "tests/native", "tests/test_recipes.py", "tests/golden"]
COPIED += ["scripts", "tests/policy/test_parts.py", "tests/reliability/test_observations_equal_reference.py"]
# Takes the installed package out of the way of the copy, in processes that are started from it too.
HIDE = "import sys\nsys.meta_path[:] = [f for f in sys.meta_path if 'ScikitBuild' not in type(f).__name__]\n"
# The third kind of game and its tests: a tree without it is where docs/add-a-game.md begins.
CORRIDOR = [
    "native/corridor/corridor.hpp",
    "native/corridor/corridor.cpp",
    "src/gridmill/games/corridor.py",
    "tests/games/test_corridor.py",
    "tests/native/corridor/test_corridor.cpp",
]
CORRIDOR_LINES = {"native/bind/module.cpp": 2, "src/gridmill/games/kinds.py": 1}


def tree(folder: Path) -> dict[str, str]:
    """The text of every file that somebody writes, by its path."""
    found = [path for path in folder.rglob("*") if path.suffix in (".py", ".pyi", ".cpp", ".hpp", ".md", ".txt")]
    return {path.relative_to(folder).as_posix(): path.read_text() for path in found}


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """The tree as it stands, with the compiled extension of this environment in the package."""
    listed = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard", *COPIED],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    folder = tmp_path / "copy"
    for name in listed.stdout.splitlines():
        if (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, folder / name)  # with its time, by which Python knows what it compiled of it
    for file in (ROOT / "src").rglob("__pycache__/*.pyc"):
        (folder / file.relative_to(ROOT)).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(file, folder / file.relative_to(ROOT))
    extension = Path(str(_native.__file__))
    shutil.copyfile(extension, folder / "src" / "gridmill" / extension.name)
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "sitecustomize.py").write_text(HIDE)
    return folder


def follow(page: str, folder: Path) -> list[str]:
    """Does what a page says; the files it touched."""
    before = tree(folder)
    blocks = BLOCK.findall((ROOT / page).read_text())
    assert blocks, page
    for what, name, where, line, code in blocks:
        file = folder / name
        if what == "new":
            assert not file.exists(), name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(code)
            continue
        lines = file.read_text().splitlines(keepends=True)
        places = [place for place, text in enumerate(lines) if text.strip() == line]
        assert len(places) == 1, f"{name}: `{line}` is there {len(places)} times"
        first, last = {"before": (0, 0), "after": (1, 1), "replace": (0, 1)}[where]
        lines[places[0] + first : places[0] + last] = [code]
        file.write_text("".join(lines))
    after = tree(folder)
    return sorted(name for name in after.keys() | before.keys() if after.get(name) != before.get(name))


def python(folder: Path, *arguments: str) -> str:
    """Python with the package of the copy; what it said."""
    paths = os.pathsep.join(map(str, (folder / "src", folder.parent / "site", folder / "tests" / "support")))
    done = subprocess.run(
        [sys.executable, *arguments],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": paths, "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def passes(folder: Path, *names: str) -> str:
    return python(folder, "-m", "pytest", "-q", "-n", "0", "-p", "no:cacheprovider", *names)


def build(folder: Path) -> None:
    """Compiles the extension of the copy into its package."""
    options = ["-G", "Ninja", "-DGRIDMILL_PYTHON=ON", "-DGRIDMILL_NATIVE_TESTS=OFF", "-DCMAKE_BUILD_TYPE=Release"]
    options += ["-DCMAKE_CXX_FLAGS_RELEASE=-O1", f"-DPython_EXECUTABLE={sys.executable}"]
    environment = os.environ | {"PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    for command in (["cmake", "-S", ".", "-B", "build", *options], ["cmake", "--build", "build"]):
        done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
    made = next((folder / "build").glob("_native*.so"))
    shutil.copyfile(made, folder / "src" / "gridmill" / made.name)


def syntax(folder: Path, *files: str) -> None:
    """Whether the compiler takes some files, without what it would make of them."""
    command = ["c++", "-std=c++20", "-Inative", "-Wall", "-Wextra", "-Wshadow", "-Werror", "-fsyntax-only", *files]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


# ---- a mechanic


def test_a_mechanic_is_three_files(copy: Path) -> None:
    assert follow("docs/add-a-mechanic.md", copy) == [
        "native/grid/rules/effects.hpp",
        "src/gridmill/grid/effects.py",
        "tests/grid/test_double.py",
    ]
    syntax(copy, "native/grid/rules/effects.cpp")
    passes(copy, "tests/grid/test_double.py", "-k", "says_what_it_does")


def test_without_a_word_about_itself_an_effect_stops_no_analysis(copy: Path) -> None:
    """The game is read from end to end: its text, its productions, the shortest first episode."""
    follow("docs/add-a-mechanic.md", copy)
    model = copy / "src" / "gridmill" / "grid" / "effects.py"
    text = model.read_text()
    start, end = text.index("class Double("), text.index("class AddStat(")
    silent = text[start:end].split("    def text")[0].replace("InnerEffect", "EffectBase") + "\n"
    model.write_text(text[:start] + silent + text[end:])
    code = (
        "from tiny import berries; from gridmill.grid import Double, ObjectType, Rule\n"
        "from gridmill.grid.analysis.reachability import out_of_reach\n"
        "from gridmill.grid.analysis.rule_text import rule_text\n"
        "rule = Rule(then=(Double(resource='berry'),))\n"
        "game = berries()\n"
        "game = game.replace('objects', {**game.objects, 'rock': ObjectType(on_use=(rule,))})\n"
        "game = game.replace('map.objects', {'rock': 1, 'bush': 2})\n"
        "print(game.min_first_episode() > 0, out_of_reach(game), rule_text(rule, {}))\n"
    )
    assert python(copy, "-c", code) == "True Counter() double, who actor, resource berry\n"


@pytest.mark.long
def test_the_mechanic_works(copy: Path) -> None:
    follow("docs/add-a-mechanic.md", copy)
    build(copy)
    passes(copy, "tests/grid/test_double.py", "tests/contracts/test_schema.py", "tests/contracts/test_stub.py")


# ---- a loss


def test_a_loss_is_two_files(copy: Path) -> None:
    assert follow("docs/add-a-loss.md", copy) == ["src/gridmill/losses/z_loss.py", "tests/losses/test_z_loss.py"]
    assert "2 passed" in passes(copy, "tests/losses/test_z_loss.py")


@pytest.mark.long
def test_the_commands_of_the_loss_are_planned(copy: Path) -> None:
    """Both lines of the page, as they stand, but trained not at all."""
    page = (ROOT / "docs" / "add-a-loss.md").read_text()
    shipped, own = re.findall(r"^gridmill (train .*)$", page, re.MULTILINE)
    follow("docs/add-a-loss.md", copy)
    shutil.copy(copy / "src" / "gridmill" / "losses" / "z_loss.py", copy / "z_loss.py")
    code = (
        "import sys; from typer.testing import CliRunner; from gridmill import cli\n"
        "for command in sys.argv[1:]:\n"
        "    done = CliRunner().invoke(cli.app, [*command.split(), '--dry-run'])\n"
        "    assert done.exit_code == 0, done.output\n"
        "    print(done.output)\n"
    )
    said = python(copy, "-c", code, shipped, own)
    assert said.count("losses.z_loss.weight = 0.01") == said.count("losses.z.weight = 0.01") == 1


def test_a_loss_of_ones_own_is_one_file(tmp_path: Path) -> None:
    from tiny import tiny

    from gridmill.train.trainer import Trainer

    code = next(code for _, name, _, _, code in BLOCK.findall((ROOT / "docs" / "add-a-loss.md").read_text()) if name)
    (tmp_path / "z_loss.py").write_text(code)
    trainer = Trainer(tiny(1).replace("losses.z", {"kind": f"{tmp_path / 'z_loss.py'}:ZLoss", "weight": 0.01}))
    metrics = trainer.epoch()
    trainer.close()
    assert metrics["loss/z"] > 0


# ---- a recipe

SHORT = ["trainer.total_timesteps=256", "trainer.device=cpu", "--runs-dir", "runs"]


@pytest.mark.long
def test_a_recipe_is_one_file(copy: Path) -> None:
    assert follow("docs/add-a-recipe.md", copy) == ["src/gridmill/recipes/walkers.py"]
    assert "walkers" in python(copy, "-m", "gridmill", "recipes")
    python(copy, "-m", "gridmill", "train", "walkers", *SHORT)
    assert len(list((copy / "runs").rglob("metrics.jsonl"))) == 1
    passes(copy, "tests/test_recipes.py", "-k", "walkers or golden")


def test_a_recipe_of_ones_own_is_one_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    [(_, _, _, _, code)] = BLOCK.findall((ROOT / "docs" / "add-a-recipe.md").read_text())
    (tmp_path / "walkers.py").write_text(code)
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(cli.app, ["train", "walkers.py", *SHORT])
    assert done.exit_code == 0, done.output
    assert len(list((tmp_path / "runs").rglob("metrics.jsonl"))) == 1


# ---- a kind of game


def without_corridor(folder: Path) -> dict[str, str]:
    """Takes the third kind of game out of a tree; the files that had it, as they were."""
    was = {}
    for name in CORRIDOR:
        was[name] = (folder / name).read_text()
        (folder / name).unlink()
    for name, count in CORRIDOR_LINES.items():
        was[name] = (folder / name).read_text()
        lines = was[name].splitlines(keepends=True)
        rest = [line for line in lines if "corridor" not in line]
        assert len(lines) - len(rest) == count
        (folder / name).write_text("".join(rest))
    return was


def test_a_kind_of_game_is_six_files(copy: Path) -> None:
    was = without_corridor(copy)
    python(copy, "-c", "from gridmill import games; assert 'corridor' not in games.names()")
    touched = follow("docs/add-a-game.md", copy)
    assert len(touched) == 6
    assert set(touched) == was.keys() - {"tests/native/corridor/test_corridor.cpp"}
    code = set(touched) - {"tests/games/test_corridor.py"}
    assert {name: (copy / name).read_text() for name in code} == {name: was[name] for name in code}
    assert "3 passed" in passes(copy, "tests/games/test_corridor.py")  # with the extension that has this very code


@pytest.mark.long
def test_the_kind_of_game_works(copy: Path) -> None:
    without_corridor(copy)
    follow("docs/add-a-game.md", copy)
    build(copy)
    passes(copy, "tests/games/test_corridor.py", "tests/contracts/test_stub.py")


# ---- trials: what else a change costs

TRIALS = {  # rows of the table in docs/why.md
    "action": "a kind of action",
    "value": "a reward value",
    "core": "a policy core or encoder",
    "token": "a feature token",
}


@pytest.mark.parametrize("trial", TRIALS)
def test_a_trial_costs_what_the_table_says(trial: str, copy: Path) -> None:
    table = (ROOT / "docs" / "why.md").read_text()
    [said] = re.findall(rf"^\| {TRIALS[trial]} \|[^|]*\| (\d+) \|", table, re.MULTILINE)
    assert len(follow(f"tests/howto/trials/{trial}.md", copy)) == int(said)


def test_the_core_works(copy: Path) -> None:
    follow("tests/howto/trials/core.md", copy)
    passes(copy, "tests/policy/test_ema.py", "tests/policy/test_parts.py", "-k", "ema")


@pytest.mark.long
def test_the_native_trials_work(copy: Path) -> None:
    """All three in one tree, for one build."""
    for trial in ("action", "value", "token"):
        follow(f"tests/howto/trials/{trial}.md", copy)
    build(copy)
    passes(copy, "tests/grid/test_drop.py", "tests/grid/test_load.py", "tests/contracts/test_schema.py")
    passes(copy, "tests/reliability/test_observations_equal_reference.py", "-m", "not long")
