"""The commands of training: `gridmill train | resume | recipes`, a part of the command line in `cli`.

They resolve a recipe, a preset and overrides into one `Run` and hand it over. Torch is needed only from there on.
"""

from __future__ import annotations

import os
from pathlib import Path
from types import ModuleType
from typing import Annotated

import typer

from gridmill.cli import complete
from gridmill.cli.code import Code, take_code
from gridmill.cli.groups import Command, TakesSettings
from gridmill.cli.named import RUNS
from gridmill.cli.say import say

app = typer.Typer(rich_markup_mode=None)
NEEDED = ("torch", "safetensors", "schedulefree")


@app.command("train", cls=TakesSettings)
def train(
    recipe: Annotated[
        str,
        typer.Argument(
            help="A name, path/to/file.py[:function] or package.module:function.", autocompletion=complete.recipe
        ),
    ],
    change: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="KEY=VALUE...",
            help="Settings that override the recipe; `gridmill settings` lists them. seeds=1,2,3 trains each.",
            autocompletion=complete.setting,
        ),
    ] = None,
    preset: Annotated[
        str | None,
        typer.Option(
            metavar="NAME|FILE.toml",
            help="Settings to merge over the recipe.",
            show_default="by machine",
            autocompletion=complete.preset,
        ),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print settings, sizes and memory without training.")] = (
        False
    ),
    runs_dir: Annotated[Path, typer.Option(metavar="DIR", help="Folder in which to create the run.")] = RUNS,
    fresh: Annotated[
        bool, typer.Option("--fresh", help="Start over if a run with this name exists; it is kept under another name.")
    ] = False,
    or_resume: Annotated[
        bool, typer.Option("--or-resume", help="Resume if a run with this name has been saved, else start it.")
    ] = False,
    code: Code = None,
) -> None:
    """Train a recipe: a built-in one or your own.

    Any setting can be overridden: `gridmill train ci seed=1 trainer.gamma=0.99`. Several processes train one run:
    `torchrun --nproc-per-node 2 -m gridmill train ci`.
    """
    if dry_run and _follows():
        return
    if _follows():
        take_code(code)
        raise typer.Exit(_trainer().follow().exit_code)
    if fresh and or_resume:
        raise typer.BadParameter("expected one of them, got both", param_hint="--fresh, --or-resume")
    from gridmill import recipes, sizing
    from gridmill.config.text import hang
    from gridmill.runs import dry_run as tool
    from gridmill.runs import overrides, presets
    from gridmill.runs.heading import Origin

    take_code(code)
    plain = recipes.build(recipe)
    run, rounded = (presets.fill(plain), []) if preset is None else presets.fitted(presets.merged(plain, preset))
    if rounded:
        say("\n".join(hang(f"preset {preset}, to fit {plain.game.num_agents} agents: ", ", ".join(rounded))))
    changes, seeds = overrides.without_seeds(change or ())
    by = preset or f"{presets.detected()}, where the recipe says nothing"
    merged, run = run, overrides.apply(run, changes)
    if dry_run:
        say(tool.page(run, plain, by))
        return
    sizing.refuse_unfit(run)
    trainer = _trainer()
    origin = Origin(plain, by, merged)
    if seeds and (or_resume or _launched()[1] > 1):
        raise ValueError("seeds: expected one seed with --or-resume or torchrun, got several; use seed=")
    if or_resume:
        found = trainer.begin_or_resume(run, changes, runs_dir, recipe=origin, code=code or ())
        raise typer.Exit(found.exit_code)
    if seeds:
        from gridmill.runs import seeds as several

        typed = [recipe, *(text for text in changes if not text.startswith("run="))]
        typed += [
            *(["--fresh"] if fresh else []),
            *(["--preset", preset] if preset else []),
            *(["--runs-dir", str(runs_dir)] if runs_dir != RUNS else []),
        ]
        typed += [word for each in code or () for word in ("--code", each)]
        raise typer.Exit(several.train(run, seeds, runs_dir, fresh, origin, typed))
    raise typer.Exit(trainer.train(run, runs_dir=runs_dir, fresh=fresh, recipe=origin).exit_code)


@app.command("resume", cls=TakesSettings)
def resume(
    run: Annotated[
        str,
        typer.Argument(metavar="RUN", help="A run's name, its folder, or a checkpoint.", autocompletion=complete.run),
    ],
    change: Annotated[
        list[str] | None,
        typer.Argument(metavar="KEY=VALUE...", help="Settings to change.", autocompletion=complete.setting),
    ] = None,
    runs_dir: Annotated[Path, typer.Option(metavar="DIR", help="The folder that holds the runs.")] = RUNS,
    code: Code = None,
) -> None:
    """Resume a run from its newest checkpoint."""
    if _follows():
        take_code(code)
        raise typer.Exit(_trainer().follow().exit_code)
    from gridmill.cli.named import expect_run
    from gridmill.runs import overrides

    for text in change or ():
        overrides.split(text)
    take_code(code)
    folder = expect_run(run, runs_dir)
    raise typer.Exit(_trainer().resume(folder, list(change or ())).exit_code)


@app.command("recipes", cls=Command)
def recipes() -> None:
    """List the recipes that ship."""
    from gridmill.runs import dry_run as tool

    say(tool.listing())


def _launched() -> tuple[int, int]:
    """The number of this process among those that torchrun has started for this run, and how many there are."""
    if "WORLD_SIZE" not in os.environ:  # nobody started several: nothing needs torch yet
        return 0, 1
    from gridmill.train.ranks import launched

    return launched()


def _follows() -> bool:
    """Whether another process is told what is trained, and this one will hear it from there."""
    return _launched()[0] > 0


def _trainer() -> ModuleType:
    """Where `train` and `resume` are; a missing torch is one line."""
    try:
        import gridmill.runs.session as tool
    except ModuleNotFoundError as error:
        if (error.name or "").split(".")[0] in NEEDED:
            from gridmill.config.install import pip_install

            raise ValueError(f"training needs {error.name}: {pip_install('gridmill[train]')}") from None
        raise
    return tool
