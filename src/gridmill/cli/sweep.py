"""The command of searches: `gridmill sweep`, a part of the command line in `cli`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gridmill.cli import complete
from gridmill.cli.groups import TakesSettings
from gridmill.cli.named import RUNS

app = typer.Typer(rich_markup_mode=None)


@app.command(cls=TakesSettings)
def sweep(
    recipe: Annotated[
        str,
        typer.Argument(
            metavar="RECIPE|FOLDER", help="The recipe to train; or a sweep, to show it.", autocompletion=complete.recipe
        ),
    ],
    change: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="KEY=VALUE...",
            help="Settings to search, KEY=log(LOW,HIGH), range(LOW,HIGH[,STEP]), int(LOW,HIGH[,STEP]) or choice(A,B), "
            "in quotes; other values apply to all trials. run=NAME names the sweep.",
            autocompletion=complete.setting,
        ),
    ] = None,
    trials: Annotated[int, typer.Option(help="Number of trials.")] = 30,
    storage: Annotated[
        str,
        typer.Option(
            metavar="FILE.journal|URL",
            help="Where trials are stored: a file in a shared directory, or postgresql://USER@HOST/DATABASE.",
            show_default="SQLite in its folder",
        ),
    ] = "",
    workers: Annotated[int, typer.Option(help="Processes on this machine; other hosts can join.")] = 1,
    seeds: Annotated[int, typer.Option(help="Runs per trial; its score is their mean.")] = 1,
    prune: Annotated[bool, typer.Option("--prune", help="Stop trials whose score is below the median.")] = False,
    cost: Annotated[bool, typer.Option("--cost", help="Optimize the score per second of training.")] = False,
    runs_dir: Annotated[Path, typer.Option(metavar="DIR", help="Folder in which to create the sweep.")] = RUNS,
) -> None:
    """Search for settings that learn well, with Optuna.

    `gridmill sweep ci 'optimizer.learning_rate=log(1e-4,1e-2)' --trials 20`. The same command continues a sweep that
    was stopped, and joins one from another host. Exit codes: 0 done, 1 no trial has a score, 2 bad input, 130 stopped.
    """
    from gridmill.workshop.sweep import command as tool
    from gridmill.workshop.sweep import record

    if not change:
        for folder in (Path(recipe), runs_dir / recipe):
            if record.is_sweep(folder):
                raise typer.Exit(tool.show(folder))
    settings = tool.Settings(recipe, tuple(change or ()), trials, storage, workers, seeds, prune, cost, runs_dir)
    raise typer.Exit(tool.run(settings))
