"""The commands that compare and judge: `gridmill ab | artifacts | compare-presets | gate | tune | validate`.

A part of the command line in `cli`; what measures one thing is in `speed`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gridmill.cli import complete
from gridmill.cli.groups import Command, TakesSettings
from gridmill.cli.judging import Judging

app = typer.Typer(rich_markup_mode=None)

Changes = Annotated[
    list[str] | None,
    typer.Argument(metavar="KEY=VALUE...", help="Settings to change.", autocompletion=complete.setting),
]
RunsDir = Annotated[Path, typer.Option(metavar="DIR", help="Folder in which to create the run.")]


Output = Annotated[
    Path | None, typer.Option(metavar="FILE", help="File to save the result in.", show_default="artifacts/")
]
Resume = Annotated[Path | None, typer.Option(metavar="FILE", help="Continue a measurement that was stopped.")]


def _numbers(text: str, option: str) -> tuple[int, ...]:
    """`0,1,2` as numbers."""
    words = [word.strip() for word in text.split(",")]
    if not all(word.isdigit() for word in words):
        raise ValueError(f"{option} takes numbers like 0,1,2, got `{text}`")
    return tuple(map(int, words))


@app.command(cls=Command)
def ab(
    a: Annotated[
        str, typer.Argument(metavar="A", help="Recipe, KEY=VALUE, SWITCH=VALUE and @REVISION, in one quoted text.")
    ],
    b: Annotated[str, typer.Argument(metavar="B", help="The other side, in the same form.")],
    seeds: Annotated[str, typer.Option(metavar="N,N", help="Seeds; both sides start over with each.")] = "0,1,2",
    blocks: Annotated[int, typer.Option(help="Blocks per side and seed.")] = 4,
    epochs: Annotated[int, typer.Option(help="Epochs per block.")] = 1,
    warmup: Annotated[int, typer.Option(help="Epochs before the first block.")] = 1,
    phases: Annotated[bool, typer.Option(help="Also time the phases of the core.")] = True,
    output: Output = None,
    resume: Resume = None,
) -> None:
    """Train two settings side by side and compare speed and score as ratios.

    `gridmill ab "ci GRIDMILL_OBS_USE_OPTIMIZED=0" ci`, `gridmill ab ci@HEAD~1 ci`.
    Exit codes: 0 done, 2 bad input, 130 stopped.
    """
    from gridmill.workshop import ab as tool

    sides = tool.side_of(a), tool.side_of(b)
    many = _numbers(seeds, "--seeds")
    raise typer.Exit(tool.run(tool.Settings(*sides, many, blocks, epochs, warmup, phases, output, resume)))


@app.command(cls=Command)
def gate(
    game: Annotated[list[str] | None, typer.Option(help="A game; may be repeated.", show_default="all")] = None,
    rounds: Annotated[int, typer.Option(help="Rounds for the time ratio.")] = 30,
    record: Annotated[
        bool, typer.Option("--record", help="Record the results as new floors where they are higher.")
    ] = False,
    reason: Annotated[
        str, typer.Option(metavar="TEXT", help="With --record: allow lower floors, for this reason.")
    ] = "",
    planted: Annotated[
        float, typer.Option(metavar="SHARE", help="Share of extra work, to check that the gate fails.")
    ] = 0.0,
    target: Annotated[
        bool, typer.Option("--target", help="Also show how far Prospector's trainer is from its target.")
    ] = False,
    floors: Annotated[
        Path | None, typer.Option(metavar="FILE", help="The file of floors.", show_default="bench/floors.json")
    ] = None,
    resume: Resume = None,
) -> None:
    """Fail if the engine has become slower than the recorded floors.

    Exit codes: 0 not slower, 1 slower, 2 bad input, 130 stopped.
    """
    from gridmill.workshop import gate as tool

    settings = tool.Settings(tuple(game or ()), rounds, record, reason, planted, target, floors, resume)
    raise typer.Exit(tool.run(settings))


@app.command(cls=Judging)
def validate(
    length: Annotated[str, typer.Argument(metavar="smoke|soak|N", help="Length; N = agent-steps.")] = "smoke",
    changes: Changes = None,
    recipe: Annotated[str, typer.Option(help="The recipe to train.")] = "ci",
    runs_dir: RunsDir = Path("runs"),
    resume: Resume = None,
) -> None:
    """Train with both observation paths and compare them at every step.

    Exit codes: 0 equal, 1 too little compared, 2 a mismatch, 64 bad input, 130 or
    143 stopped.
    """
    from gridmill.workshop import validate as tool

    raise typer.Exit(tool.run(tool.Settings(length, recipe, tuple(changes or ()), runs_dir, resume)))


@app.command(cls=TakesSettings)
def tune(
    recipe: Annotated[str, typer.Argument(help="The recipe to train.", autocompletion=complete.recipe)],
    changes: Changes = None,
    space: Annotated[
        list[str] | None,
        typer.Option("--try", metavar="KEY=V,V", help="Values to try; may be repeated.", show_default="by machine"),
    ] = None,
    preset: Annotated[
        str, typer.Option(metavar="NAME|FILE", help="The preset to compare with.", show_default="by machine")
    ] = "",
    trials: Annotated[
        int, typer.Option(help="Number of trials to search with Optuna.", show_default="the whole grid")
    ] = 0,
    blocks: Annotated[int, typer.Option(help="Measured epochs per candidate.")] = 4,
    check_epochs: Annotated[int, typer.Option(help="Epochs of the check that the winner still learns.")] = 20,
    seeds: Annotated[str, typer.Option(metavar="N,N", help="Seeds of that check.")] = "0,1,2,3,4",
    finalists: Annotated[
        int, typer.Option(help="How many of the fastest candidates to check until one still learns.")
    ] = 3,
    output: Annotated[
        Path | None, typer.Option(metavar="FILE.toml", help="The preset to write.", show_default="artifacts/")
    ] = (None),
    resume: Resume = None,
    largest_batch: Annotated[
        bool, typer.Option("--largest-batch", help="Only show which batch fits into memory.")
    ] = False,
) -> None:
    """Find the settings that train fastest on this machine and write a preset.

    Exit codes: 0 done, 1 nothing was stable, 2 bad input, 130 stopped.
    """
    from gridmill.workshop import tune as tool

    if largest_batch:
        raise typer.Exit(tool.largest(recipe, changes or (), preset))
    many = _numbers(seeds, "--seeds")
    settings = tool.Settings(
        recipe,
        tuple(changes or ()),
        tuple(space or ()),
        preset,
        trials,
        blocks,
        check_epochs,
        many,
        finalists,
        output,
        resume,
    )
    raise typer.Exit(tool.run(settings))


@app.command("compare-presets", cls=TakesSettings)
def compare_presets(
    recipe: Annotated[str, typer.Argument(help="The recipe to train.", autocompletion=complete.recipe)] = "prospector",
    changes: Changes = None,
    preset: Annotated[
        list[str] | None, typer.Option(help="A preset; give two.", show_default="baseline ultra_fast")
    ] = None,
    seconds: Annotated[float, typer.Option(help="Seconds of training per preset and seed.")] = 60.0,
    seeds: Annotated[str, typer.Option(metavar="N,N", help="Seeds; both presets start over with each.")] = "0,1,2",
    output: Output = None,
    resume: Resume = None,
) -> None:
    """Train one recipe with two presets in turns and compare them.

    Exit codes: 0 done, 2 bad input, 130 stopped.
    """
    from gridmill.workshop import compare_presets as tool

    both = tuple(preset or ("baseline", "ultra_fast"))
    if len(both) != 2:
        raise ValueError(f"--preset must be given twice, got {len(both)}")
    many = _numbers(seeds, "--seeds")
    settings = tool.Settings(recipe, tuple(changes or ()), (both[0], both[1]), seconds, many, output, resume)
    raise typer.Exit(tool.run(settings))


@app.command(cls=Command)
def artifacts(
    folder: Annotated[list[Path] | None, typer.Argument(help="Folders of artifacts.", show_default="artifacts")] = None,
    page: Annotated[Path | None, typer.Option(metavar="FILE.html", help="Draw them all on one page.")] = None,
) -> None:
    """List the results of the performance tools, and draw them."""
    from gridmill.workshop import gallery as tool

    raise typer.Exit(tool.run(folder or (), page))
