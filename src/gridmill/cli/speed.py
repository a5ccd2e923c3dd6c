"""The commands that measure speed: `gridmill bench | profile | throughput`, a part of the command line in `cli`."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gridmill.cli import complete
from gridmill.cli.groups import Command, Listed, TakesSettings
from gridmill.cli.judging import Judging

if TYPE_CHECKING:
    from gridmill.workshop.bench.train import Settings as BenchSettings


class Profiles(Listed):
    """A group that answers what its name alone used to be."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if args and args[0].startswith("-") and args[0] != "--help":
            raise ValueError(f"`gridmill profile` has two parts now: gridmill profile step {' '.join(args)}")
        parsed: list[str] = super().parse_args(ctx, args)
        return parsed


app = typer.Typer(rich_markup_mode=None)
profile = typer.Typer(
    cls=Profiles, no_args_is_help=True, rich_markup_mode=None, help="Show where the time of a step or of training goes."
)
bench = typer.Typer(cls=Listed, no_args_is_help=True, rich_markup_mode=None, help="Measure speed.")


Resume = Annotated[Path | None, typer.Option(metavar="FILE", help="Continue a measurement that was stopped.")]


class WindowShape(StrEnum):
    """Shapes of what an agent sees."""

    square = "square"
    disc = "disc"


class Mode(StrEnum):
    """What throughput measures."""

    env_only = "env_only"
    rollout = "rollout"
    trainer = "trainer"
    trainer_eval = "trainer_eval"


class Implementation(StrEnum):
    """Which Prospector."""

    auto = "auto"
    native = "native"
    reference = "reference"


@bench.command("step", cls=Judging)
def bench_step(
    agents: Annotated[int | None, typer.Option(help="Agents per world.", show_default="20")] = None,
    map_size: Annotated[int | None, typer.Option(help="Width and height of the map.", show_default="40")] = None,
    density: Annotated[float | None, typer.Option(help="Walls, as a fraction of the map.", show_default="0.04")] = None,
    iterations: Annotated[int, typer.Option(help="Steps per round.")] = 20_000,
    rounds: Annotated[int, typer.Option(help="Measured rounds.")] = 20,
    warmup: Annotated[int, typer.Option(help="Steps before measuring.")] = 150_000,
    seed: Annotated[int, typer.Option(help="Seed of worlds and actions.")] = 42,
    game: Annotated[str, typer.Option(help="A game's or recipe's name, or path/to/file.py[:function].")] = "toy",
    window: Annotated[
        WindowShape | None, typer.Option(help="Shape of the view.", show_default="the game's own")
    ] = None,
    worlds: Annotated[int, typer.Option(help="Worlds in the batch.")] = 1,
    threads: Annotated[int, typer.Option(help="Threads of the core.")] = 1,
    lanes: Annotated[int, typer.Option(help="Lanes; with more than 1, uses send and recv.")] = 1,
    profile: Annotated[bool, typer.Option("--profile", help="Break the time down by phase.")] = False,
    output: Annotated[Path | None, typer.Option(metavar="FILE", help="Save the run as JSON.")] = None,
    baseline: Annotated[
        list[Path] | None, typer.Option(metavar="FILE...", help="Compare with saved runs, including phases.")
    ] = None,
    phase: Annotated[str | None, typer.Option(metavar="LABEL", help="Label of this measurement.")] = None,
    report: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Summarize the saved runs of a folder without measuring."),
    ] = None,
    peers: Annotated[
        bool, typer.Option("--peers", help="Also measure the same world in every installed peer, interleaved.")
    ] = False,
    sweep: Annotated[
        str | None, typer.Option(metavar="NAME=N,N,...", help="Compare worlds, agents, threads, lanes or games.")
    ] = None,
    overhead: Annotated[bool, typer.Option("--overhead", help="Compare profiling off and on, interleaved.")] = False,
    instructions: Annotated[
        bool, typer.Option("--instructions", help="Count instructions, with valgrind if perf is not available.")
    ] = False,
    resume: Resume = None,
    more: Annotated[list[Path] | None, typer.Argument(metavar="FILE", help="More files for --baseline.")] = None,
) -> None:
    """Measure the environment alone, with random actions drawn in advance.

    Exit codes: 0 fine, 1 unstable (CV above 20 %), 2 validation mismatches, 64 bad
    input, 130 stopped.
    """
    if more and not baseline:
        raise ValueError(f"unexpected argument `{more[0]}`; only --baseline takes several files")
    from gridmill.workshop.bench import step as tool
    from gridmill.workshop.runner import Load

    if report is not None:
        if output or baseline or peers or sweep or overhead or resume:
            raise ValueError("--report measures nothing, so it cannot be combined with other options")
        from gridmill.workshop.bench import saved

        raise typer.Exit(saved.report(report))
    load = Load(
        game=game,
        agents=agents,
        map_size=map_size,
        density=density,
        window=None if window is None else window.value,
        worlds=worlds,
        threads=threads,
        lanes=lanes,
        seed=seed,
        profiling=True if profile else None,
    )
    settings = tool.Settings(
        load=load,
        iterations=iterations,
        rounds=rounds,
        warmup=warmup,
        output=output,
        baseline=(*(baseline or ()), *(more or ())),
        phase=phase,
        peers=peers,
        sweep=sweep,
        overhead=overhead,
        instructions=instructions,
        resume=resume,
    )
    raise typer.Exit(tool.run(settings))


Changes = Annotated[
    list[str] | None,
    typer.Argument(metavar="KEY=VALUE...", help="Settings to change.", autocompletion=complete.setting),
]
Measured = Annotated[str | None, typer.Option("--game", help="A game's name or file.", show_default="prospector")]
RecipeOption = Annotated[str | None, typer.Option(help="A recipe instead of the benchmark's own run.")]
ThreadCounts = Annotated[str, typer.Option(metavar="N,N", help="Numbers of threads to measure.")]
Rounds = Annotated[int, typer.Option(help="Measured rounds.")]
Epochs = Annotated[int, typer.Option(help="Epochs per round.")]
Warmup = Annotated[int, typer.Option(help="Epochs before measuring.")]
Peers = Annotated[bool, typer.Option("--peers", help="Also measure pufferlib-core's trainer, interleaved.")]
Output = Annotated[Path | None, typer.Option(metavar="FILE", help="Save the run as JSON.")]


@bench.command("rollout", cls=TakesSettings)
def bench_rollout(
    changes: Changes = None,
    game: Measured = None,
    recipe: RecipeOption = None,
    threads: ThreadCounts = "1",
    rounds: Rounds = 10,
    epochs: Epochs = 1,
    warmup: Warmup = 1,
    peers: Peers = False,
    output: Output = None,
    resume: Resume = None,
) -> None:
    """Measure collecting steps with a policy, compared with torch's own forward pass.

    Exit codes: 0 fine, 1 unstable (CV above 20 %), 2 bad input, 130 stopped.
    """
    from gridmill.workshop.bench import rollout as tool

    settings = _training(changes, game, recipe, threads, rounds, epochs, warmup, peers, output, resume)
    raise typer.Exit(tool.run(settings))


@bench.command("train", cls=TakesSettings)
def bench_train(
    changes: Changes = None,
    game: Measured = None,
    recipe: RecipeOption = None,
    threads: ThreadCounts = "1",
    rounds: Rounds = 10,
    epochs: Epochs = 1,
    warmup: Warmup = 1,
    peers: Peers = False,
    output: Output = None,
    resume: Resume = None,
) -> None:
    """Measure whole epochs of training, compared with torch's own act + learn.

    Exit codes: 0 fine, 1 unstable (CV above 20 %), 2 bad input, 130 stopped.
    """
    from gridmill.workshop.bench import train as tool

    settings = _training(changes, game, recipe, threads, rounds, epochs, warmup, peers, output, resume)
    raise typer.Exit(tool.run(settings))


def _training(
    changes: list[str] | None, game: str | None, recipe: str | None, threads: str, *rest: Any
) -> BenchSettings:
    from gridmill.workshop.bench import train as tool

    numbers = [text.strip() for text in threads.split(",")]
    if not all(text.isdigit() for text in numbers) or len(set(numbers)) < len(numbers):
        raise ValueError(f"--threads takes different numbers like 1,2, got `{threads}`")
    return tool.Settings(tool.run_of(game, recipe, changes or ()), tuple(map(int, numbers)), *rest)


@profile.command("step", cls=Command)
def profile_step(
    game: Annotated[
        list[str] | None, typer.Option(help="A game or recipe to profile; may be repeated.", show_default="all")
    ] = None,
    steps: Annotated[int, typer.Option(help="Measured steps.")] = 15_000,
    warmup: Annotated[int, typer.Option(help="Steps before measuring.")] = 5_000,
    worlds: Annotated[int, typer.Option(help="Worlds in the batch.")] = 1,
    threads: Annotated[int, typer.Option(help="Threads of the core.")] = 1,
    teacher: Annotated[
        str | None, typer.Option(metavar="NAME", help="A script that runs in every row and whose actions are used.")
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON record instead of tables.")] = False,
    output: Annotated[
        Path | None, typer.Option(metavar="FILE", help="File to save the result in.", show_default="artifacts/")
    ] = None,
    resume: Resume = None,
) -> None:
    """Show where the time of a step goes, by phase, for each game.

    Exit codes: 0 fine, 2 bad input, 130 stopped.
    """
    from gridmill.workshop import profile as tool
    from gridmill.workshop.runner import Load

    load = Load(worlds=worlds, threads=threads, teacher=teacher)
    raise typer.Exit(tool.run(tool.Settings(tuple(game or ()), load, steps, warmup, json, output, resume)))


@profile.command("train", cls=TakesSettings)
def profile_train(
    recipe: Annotated[str, typer.Argument(help="A recipe, as for train.", autocompletion=complete.recipe)],
    changes: Changes = None,
    steps: Annotated[int, typer.Option(help="Agent-steps to train; at least two epochs.")] = 10_000,
    rollout_timing: Annotated[int, typer.Option(metavar="K", help="Show every K-th rollout as a tree.")] = 10,
    torch: Annotated[bool, typer.Option("--torch/--no-torch", help="Write a trace with torch's operators.")] = True,
    native: Annotated[
        bool, typer.Option("--native/--no-native", help="Include the core's phases in the trace.")
    ] = True,
    wait: Annotated[int, typer.Option(help="Steps, and minibatches, to wait before the trace.")] = 2,
    warmup: Annotated[int, typer.Option(help="Steps, and minibatches, to warm up after that.")] = 2,
    active: Annotated[int, typer.Option(help="Steps, and minibatches, to trace after that.")] = 4,
    shapes: Annotated[bool, typer.Option("--shapes", help="Record tensor shapes.")] = False,
    memory: Annotated[
        bool, typer.Option("--memory", help="Record tensor allocations, of the trainer's thread only.")
    ] = False,
    stacks: Annotated[
        bool, typer.Option("--stacks", help="Record Python call stacks; the trace becomes large.")
    ] = False,
    expected_sps: Annotated[float | None, typer.Option(help="Report if the speed is below half of this.")] = None,
    runs_dir: Annotated[Path, typer.Option(metavar="DIR", help="Folder in which to create the run.")] = Path("runs"),
    resume: Resume = None,
) -> None:
    """Show where the time of training goes: timing tree, trace, operators, advice."""
    from gridmill.workshop import profile_train as tool

    traced = tool.Traced(torch, native, wait, warmup, active, shapes, memory, stacks)
    settings = tool.Settings(
        recipe, tuple(changes or ()), steps, rollout_timing, traced, expected_sps, runs_dir, resume
    )
    raise typer.Exit(tool.run(settings))


@app.command(cls=Command)
def throughput(
    mode: Annotated[Mode, typer.Option(help="What to measure.")] = Mode.env_only,
    env_impl: Annotated[Implementation, typer.Option(help="Which implementation of Prospector.")] = Implementation.auto,
    worlds: Annotated[int, typer.Option(help="Worlds in the batch.")] = 64,
    threads: Annotated[int, typer.Option(help="Threads of the core.")] = 1,
    steps: Annotated[int, typer.Option(help="Steps per repeat, over all worlds.")] = 200_000,
    repeats: Annotated[int, typer.Option(help="Measured repeats.")] = 10,
    warmup: Annotated[int, typer.Option(help="Steps before measuring.")] = 50_000,
    seed: Annotated[int, typer.Option(help="Seed of worlds and actions.")] = 0,
    target_steps_per_sec: Annotated[float | None, typer.Option(help="Report the distance to this target.")] = None,
    enforce_target: Annotated[
        bool, typer.Option("--enforce-target", help="Exit with code 1 if below the target.")
    ] = False,
    output: Annotated[Path, typer.Option(metavar="DIR", help="Folder for the artifacts.")] = Path(
        "artifacts/throughput"
    ),
    resume: Resume = None,
) -> None:
    """Measure steps per second of Prospector and save an artifact.

    Exit codes: 0 fine, 1 below an enforced target, 2 bad input, 130 stopped.
    """
    from gridmill.workshop import throughput as tool

    settings = tool.Settings(
        mode=mode.value,
        env_impl=env_impl.value,
        worlds=worlds,
        threads=threads,
        steps=steps,
        repeats=repeats,
        warmup=warmup,
        seed=seed,
        target=target_steps_per_sec,
        enforce=enforce_target,
        folder=output,
        resume=resume,
    )
    raise typer.Exit(tool.run(settings))
