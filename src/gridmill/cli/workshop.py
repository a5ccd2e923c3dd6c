"""The commands that compare and judge: `gridmill ab | validate`, a part of the command line in `cli`.

What measures one thing is in `speed`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gridmill.cli.judging import Judging

app = typer.Typer(rich_markup_mode=None)

Changes = Annotated[list[str] | None, typer.Argument(metavar="KEY=VALUE...", help="Changes of the run.")]
RunsDir = Annotated[Path, typer.Option(metavar="DIR", help="Where the folder of the run goes.")]


Output = Annotated[Path | None, typer.Option(metavar="FILE", help="Where to save it.", show_default="artifacts/")]
Resume = Annotated[Path | None, typer.Option(metavar="FILE", help="Go on with one that was stopped.")]


def _numbers(text: str, option: str) -> tuple[int, ...]:
    """`0,1,2` as numbers."""
    words = [word.strip() for word in text.split(",")]
    if not all(word.isdigit() for word in words):
        raise ValueError(f"{option} takes numbers like 0,1,2, got `{text}`")
    return tuple(map(int, words))


@app.command()
def ab(
    a: Annotated[str, typer.Argument(metavar="A", help="Recipe, KEY=VALUE, SWITCH=VALUE, @REVISION, in quotes.")],
    b: Annotated[str, typer.Argument(metavar="B", help="The same.")],
    seeds: Annotated[str, typer.Option(metavar="N,N", help="Both sides begin anew with each.")] = "0,1,2",
    blocks: Annotated[int, typer.Option(help="Blocks of each side, for a seed.")] = 4,
    epochs: Annotated[int, typer.Option(help="Epochs of a block.")] = 1,
    warmup: Annotated[int, typer.Option(help="Epochs before the first block.")] = 1,
    phases: Annotated[bool, typer.Option(help="Time the phases of the core too.")] = True,
    output: Output = None,
    resume: Resume = None,
) -> None:
    """Train two settings side by side; SPS and score as ratios.

    `gridmill ab "ci GRIDMILL_OBS_USE_OPTIMIZED=0" ci`, `gridmill ab ci@HEAD~1 ci`.
    Exit codes: 0 done, 2 bad input, 130 stopped.
    """
    from gridmill.workshop import ab as tool

    sides = tool.side_of(a), tool.side_of(b)
    many = _numbers(seeds, "--seeds")
    raise typer.Exit(tool.run(tool.Settings(*sides, many, blocks, epochs, warmup, phases, output, resume)))


@app.command(cls=Judging)
def validate(
    length: Annotated[str, typer.Argument(metavar="smoke|soak|N", help="How long; N agent-steps.")] = "smoke",
    changes: Changes = None,
    recipe: Annotated[str, typer.Option(help="What is trained.")] = "ci",
    runs_dir: RunsDir = Path("runs"),
) -> None:
    """Train with both ways to observe compared at every step.

    Exit codes: 0 equal, 1 too little compared, 2 a mismatch, 64 bad input.
    """
    from gridmill.workshop import validate as tool

    raise typer.Exit(tool.run(tool.Settings(length, recipe, tuple(changes or ()), runs_dir)))
