"""The commands that compare and judge: `gridmill ab | artifacts | compare-presets | gate | tune | validate`.

A part of the command line in `cli`; what measures one thing is in `speed`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gridmill.cli import complete
from gridmill.cli.groups import TakesSettings
from gridmill.cli.judging import Judging

app = typer.Typer(rich_markup_mode=None)

Changes = Annotated[
    list[str] | None,
    typer.Argument(metavar="KEY=VALUE...", help="Changes of the run.", autocompletion=complete.setting),
]
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


@app.command()
def gate(
    game: Annotated[list[str] | None, typer.Option(help="A game; may be repeated.", show_default="all")] = None,
    rounds: Annotated[int, typer.Option(help="Rounds of the time ratio.")] = 30,
    record: Annotated[bool, typer.Option("--record", help="Make what is found the floor, where it is higher.")] = False,
    reason: Annotated[str, typer.Option(metavar="TEXT", help="With --record: why a floor may be lowered.")] = "",
    planted: Annotated[float, typer.Option(metavar="SHARE", help="Extra work, to see the gate fail.")] = 0.0,
    target: Annotated[bool, typer.Option("--target", help="Also how far Prospector's trainer is.")] = False,
    floors: Annotated[
        Path | None, typer.Option(metavar="FILE", help="The floors.", show_default="bench/floors.json")
    ] = None,
    resume: Resume = None,
) -> None:
    """Fail if the engine became slower than the floors in the tree.

    Exit codes: 0 not slower, 1 slower, 2 bad input, 130 stopped.
    """
    from gridmill.workshop import gate as tool

    settings = tool.Settings(tuple(game or ()), rounds, record, reason, planted, target, floors, resume)
    raise typer.Exit(tool.run(settings))


@app.command(cls=Judging)
def validate(
    length: Annotated[str, typer.Argument(metavar="smoke|soak|N", help="How long; N agent-steps.")] = "smoke",
    changes: Changes = None,
    recipe: Annotated[str, typer.Option(help="What is trained.")] = "ci",
    runs_dir: RunsDir = Path("runs"),
    resume: Resume = None,
) -> None:
    """Train with both ways to observe compared at every step.

    Exit codes: 0 equal, 1 too little compared, 2 a mismatch, 64 bad input, 130 or
    143 stopped.
    """
    from gridmill.workshop import validate as tool

    raise typer.Exit(tool.run(tool.Settings(length, recipe, tuple(changes or ()), runs_dir, resume)))


@app.command(cls=TakesSettings)
def tune(
    recipe: Annotated[str, typer.Argument(help="What is trained.", autocompletion=complete.recipe)],
    changes: Changes = None,
    space: Annotated[
        list[str] | None,
        typer.Option("--try", metavar="KEY=V,V", help="Values to try; may be repeated.", show_default="by machine"),
    ] = None,
    preset: Annotated[str, typer.Option(metavar="NAME|FILE", help="The reference.", show_default="by machine")] = "",
    trials: Annotated[int, typer.Option(help="Search with Optuna, so often.", show_default="the whole grid")] = 0,
    blocks: Annotated[int, typer.Option(help="Measured epochs of a candidate.")] = 4,
    check_epochs: Annotated[int, typer.Option(help="Epochs of the check that it still learns.")] = 20,
    seeds: Annotated[str, typer.Option(metavar="N,N", help="Of that check.")] = "0,1,2,3,4",
    finalists: Annotated[int, typer.Option(help="So many of the fastest are checked until one still learns.")] = 3,
    output: Annotated[Path | None, typer.Option(metavar="FILE.toml", help="The preset.", show_default="artifacts/")] = (
        None
    ),
    resume: Resume = None,
    largest_batch: Annotated[bool, typer.Option("--largest-batch", help="Only say which batch fits.")] = False,
) -> None:
    """Find the settings that train fastest here; writes a preset.

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
    recipe: Annotated[str, typer.Argument(help="What is trained.", autocompletion=complete.recipe)] = "prospector",
    changes: Changes = None,
    preset: Annotated[list[str] | None, typer.Option(help="Two of them.", show_default="baseline ultra_fast")] = None,
    seconds: Annotated[float, typer.Option(help="Of training, for each and with every seed.")] = 60.0,
    seeds: Annotated[str, typer.Option(metavar="N,N", help="Both begin anew with each.")] = "0,1,2",
    output: Output = None,
    resume: Resume = None,
) -> None:
    """Train one recipe with two presets in turns.

    Exit codes: 0 done, 2 bad input, 130 stopped.
    """
    from gridmill.workshop import compare_presets as tool

    both = tuple(preset or ("baseline", "ultra_fast"))
    if len(both) != 2:
        raise ValueError(f"--preset is given twice, got {len(both)}")
    many = _numbers(seeds, "--seeds")
    settings = tool.Settings(recipe, tuple(changes or ()), (both[0], both[1]), seconds, many, output, resume)
    raise typer.Exit(tool.run(settings))


@app.command()
def artifacts(
    folder: Annotated[list[Path] | None, typer.Argument(help="Folders of artefacts.", show_default="artifacts")] = None,
    page: Annotated[Path | None, typer.Option(metavar="FILE.html", help="Draw them all on one page.")] = None,
) -> None:
    """List what the tools have found, and draw it."""
    from gridmill.workshop import gallery as tool

    raise typer.Exit(tool.run(folder or (), page))
