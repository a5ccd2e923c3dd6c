"""The commands of training: `gridmill train | resume | recipes`, a part of the command line in `cli`.

They resolve a recipe, a preset and overrides into one `Run` and hand it over. Torch is needed only from there on.
"""

from __future__ import annotations

from pathlib import Path
from types import ModuleType
from typing import Annotated

import typer

app = typer.Typer(rich_markup_mode=None)
NEEDED = ("torch", "safetensors", "schedulefree")


@app.command("train")
def train(
    recipe: Annotated[str, typer.Argument(help="A name, path/to/file.py[:function] or package.module:function.")],
    change: Annotated[list[str] | None, typer.Argument(metavar="KEY=VALUE...", help="Overrides; they win.")] = None,
    preset: Annotated[
        str | None, typer.Option(metavar="NAME|FILE.toml", help="Merged over the recipe.", show_default="by machine")
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print settings, arithmetic, memory; train nothing.")] = (
        False
    ),
    runs_dir: Annotated[Path, typer.Option(metavar="DIR", help="Where the folder of the run goes.")] = Path("runs"),
    fresh: Annotated[bool, typer.Option("--fresh", help="Begin anew if a run of this name exists.")] = False,
) -> None:
    """Train a recipe, one that ships or your own.

    Any setting can be overridden: `gridmill train ci seed=1 trainer.gamma=0.99`.
    """
    from gridmill import recipes, sizing
    from gridmill.config.text import hang
    from gridmill.runs import dry_run as tool
    from gridmill.runs import overrides, presets

    plain = recipes.build(recipe)
    run, rounded = (presets.fill(plain), []) if preset is None else presets.fitted(presets.merged(plain, preset))
    if rounded:
        typer.echo("\n".join(hang(f"preset {preset}, to fit {plain.game.num_agents} agents: ", ", ".join(rounded))))
    run = overrides.apply(run, change or ())
    if dry_run:
        typer.echo(tool.page(run, plain, preset or f"{presets.detected()}, where the recipe says nothing"))
        return
    sizing.refuse_unfit(run)
    raise typer.Exit(_trainer().train(run, runs_dir=runs_dir, fresh=fresh, recipe=plain).exit_code)


@app.command("resume")
def resume(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="Folder of a run, or one of its checkpoints.")],
    change: Annotated[list[str] | None, typer.Argument(metavar="KEY=VALUE...", help="Settings to change.")] = None,
) -> None:
    """Resume a run from its newest checkpoint."""
    from gridmill.runs import overrides

    for text in change or ():
        overrides.split(text)
    raise typer.Exit(_trainer().resume(run, list(change or ())).exit_code)


@app.command("recipes")
def recipes() -> None:
    """List the recipes that ship."""
    from gridmill.runs import dry_run as tool

    typer.echo(tool.listing())


def _trainer() -> ModuleType:
    """Where `train` and `resume` are; a missing torch is one line."""
    try:
        import gridmill.runs.session as tool
    except ModuleNotFoundError as error:
        if (error.name or "").split(".")[0] in NEEDED:
            raise ValueError(f"training needs {error.name}: pip install gridmill[train]") from None
        raise
    return tool
