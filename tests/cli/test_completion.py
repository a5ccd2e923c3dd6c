"""What the Tab key offers, as a shell asks for it; and that asking is cheap."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from gridmill import cli
from gridmill.cli import complete
from gridmill.run import Run


def offered(words: list[str], folder: Path, shell: str = "bash") -> list[str]:
    """What completes the last word."""
    ask = {"COMP_WORDS": " ".join(["gridmill", *words]), "COMP_CWORD": str(len(words))}
    if shell != "bash":
        ask = {"_TYPER_COMPLETE_ARGS": " ".join(["gridmill", *words])}
    done = CliRunner().invoke(cli.app, [], prog_name="gridmill", env={"_GRIDMILL_COMPLETE": f"complete_{shell}"} | ask)
    return done.stdout.split("\n")[:-1] if done.stdout.strip() else []


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "runs" / "first").mkdir(parents=True)
    (tmp_path / "runs" / "first" / "run.json").write_text("{}")
    (tmp_path / "runs" / "no run").mkdir()
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("words", "wanted"),
    [
        (["tra"], ["train"]),
        (["train", "arena_"], ["arena_basic_easy_shaped", "arena_curriculum", "arena_easy_moves"]),
        (["tune", "prosp"], ["prospector"]),
        (["train", "ci", "--preset", "ul"], ["ultra_fast"]),
        (["resume", "f"], ["first"]),
        (["report", "f"], ["first"]),
        (["explain", "cogs"], ["cogsguard", "cogsguard_arena"]),
        (["show", "f"], ["first"]),
        (["eval", "toy", "--policy", "ra"], ["random"]),
        (["eval", "toy", "--policy", "script:a"], ["script:arena"]),
        (["train", "ci", "trainer.gam"], ["trainer.gamma=", "trainer.gamma=0.99"]),
        (["train", "ci", "trainer.ga"], ["trainer.gamma=", "trainer.gae_lambda="]),
        (["train", "ci", "seed=1", "track.w"], ["track.wandb=", "track.wandb=off"]),
        (["resume", "first", "guard.st"], ["guard.stop=", "guard.stop=false"]),
        (["train", "ci", "optimizer.kind=ad"], ["optimizer.kind=adam", "optimizer.kind=adamw"]),
        # bash takes words apart at an equals sign
        (["train", "ci", "optimizer.kind", "=", "ad"], ["adam", "adamw"]),
        (["train", "ci", "trainer.masks", "="], ["true", "false"]),
        (["train", "ci", "nothing.such"], []),
        (["train", "ci", "nothing.such=x"], []),
    ],
    ids=" ".join,
)
def test_what_is_offered(words: list[str], wanted: list[str], folder: Path) -> None:
    assert offered(words, folder) == wanted


def test_zsh_and_fish_are_told_the_meaning(folder: Path) -> None:
    (line,) = (line for line in offered(["train", "ci", "trainer.ga"], folder, "zsh") if "gamma" in line)
    assert "the weight of the next tick" in line


def test_asking_imports_no_torch(folder: Path) -> None:
    """The shell waits for the answer: neither torch nor NumPy for recipes, no torch for settings."""
    code = (
        "import sys, json\n"
        "from gridmill.cli import main\n"
        "try: main([])\n"
        "except SystemExit: pass\n"
        "print('\\n' + json.dumps(sorted(sys.modules)))"
    )
    for words, forbidden in (("train ar", {"torch", "numpy", "gridmill.run"}), ("train ci trainer.", {"torch"})):
        ask = {"COMP_WORDS": f"gridmill {words}", "COMP_CWORD": str(len(words.split()))}
        env = os.environ | {"_GRIDMILL_COMPLETE": "complete_bash"} | ask
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=env, timeout=120)
        loaded = json.loads(done.stdout.splitlines()[-1])
        assert done.stderr == ""
        assert len(done.stdout.split()) > 2, words
        assert forbidden.isdisjoint(loaded), words


def test_the_script_for_the_shell_names_the_command() -> None:
    done = CliRunner().invoke(cli.app, [], prog_name="gridmill", env={"_GRIDMILL_COMPLETE": "source_bash"})
    assert "complete -o default -F _gridmill_completion gridmill" in done.stdout


def test_names_that_a_shell_would_run_are_not_offered(folder: Path) -> None:
    """A stranger's folder may be called anything; what is offered is put into the line as it is."""
    for name in ("f$(touch x)", "f;ls", "f`id`", "f\nls", "f g", "f'", "f|x", "-f"):
        (folder / "runs" / name).mkdir()
        (folder / "runs" / name / "run.json").write_text("{}")
    assert offered(["resume", "f"], folder) == ["first"]
    names = Run.model_fields["run"].metadata
    assert any(complete._RUN.pattern in str(one) for one in names)  # those that `run=` takes
