"""The commands that show a game or a replay without a browser: `gridmill show | watch`: text, pictures, films."""

from __future__ import annotations

import os
from collections.abc import Generator
from contextlib import closing
from itertools import islice
from pathlib import Path
from typing import Annotated, Any

import typer

from gridmill.cli import complete
from gridmill.cli.code import Code, take_code
from gridmill.cli.groups import Command
from gridmill.cli.named import folder_of, game_of, own_policy, run_of
from gridmill.cli.say import say

app = typer.Typer(rich_markup_mode=None)
FILM_TICKS = 300  # of a film that is no replay, unless --to says otherwise
MOST_TICKS = 1_000_000  # of a game that is played to be shown; more would be minutes without a picture
MOST_FPS, MOST_SCALE = 1000, 256
Shown = Annotated[
    str,
    typer.Argument(
        help="A replay, a run (its policy plays; RUN@best), or a game (random actions).",
        autocompletion=complete.game_or_run,
    ),
]
First = Annotated[int, typer.Option("--from", help="The first tick to show.")]
To = Annotated[
    int | None, typer.Option(help="The tick to stop before.", show_default=f"{FILM_TICKS} later; of a replay, all")
]
Every = Annotated[int, typer.Option(help="Ticks per frame.")]
Fps = Annotated[float, typer.Option(help="Frames per second.")]


@app.command(cls=Command)
def show(
    game: Shown,
    png: Annotated[Path | None, typer.Option(metavar="FILE", help="Write a picture instead of text.")] = None,
    gif: Annotated[Path | None, typer.Option(metavar="FILE", help="Write a video (extra `video`).")] = None,
    mp4: Annotated[Path | None, typer.Option(metavar="FILE", help="Write a video (extra `video`).")] = None,
    seed: Annotated[int, typer.Option(help="Seed of the worlds and of the random steps.")] = 0,
    steps: Annotated[int, typer.Option(help="Ticks to play first; in a replay, the tick to show.")] = 0,
    first: First = 0,
    to: To = None,
    every: Every = 1,
    fps: Fps = 10.0,
    world: Annotated[int, typer.Option(help="Which world of the batch.")] = 0,
    scale: Annotated[int, typer.Option(help="Pixels per cell of a picture.")] = 16,
    plain: Annotated[bool, typer.Option("--plain", help="Without legend and inventories.")] = False,
    code: Code = None,
) -> None:
    """Show a game, a run or a replay as text, picture or video."""
    from gridmill.config.files import refuse_unwritable

    take_code(code)
    _refuse_outside("--steps", steps, 0)
    _refuse_outside("--world", world, 0)
    _refuse_outside("--scale", scale, 1, MOST_SCALE)
    films = {ending: file for ending, file in ((".gif", gif), (".mp4", mp4)) if file is not None}
    for ending, file in films.items():
        if file.suffix.lower() != ending:
            raise ValueError(f"--{ending[1:]}: expected a file whose name ends with {ending}, got `{file}`")
    for file in [*films.values(), *([png] if png is not None else [])]:
        refuse_unwritable(file)
    for file in films.values():
        _film(file, _Source(game, seed, world), (first, to, every, fps), scale, not plain)
    if films:
        return
    source = _Source(game, seed, world)
    if source.ticks is not None and steps > source.ticks:
        raise ValueError(f"--steps must be at most {source.ticks}, the ticks of the replay, got {steps}")
    if source.ticks is None:
        _refuse_outside("--steps", steps, 0, MOST_TICKS)
    with closing(source.play()) as shown:
        env = next(islice(shown, steps, None))
        if png is None:
            say(env.render(world, "ansi"))
            return
        from gridmill.env.picture import write_png

        write_png(png, env.picture(world, scale, not plain))
        say(f"wrote {png}")


@app.command(cls=Command)
def watch(
    game: Shown,
    seed: Annotated[int, typer.Option(help="Seed of the worlds and of the random steps.")] = 0,
    first: First = 0,
    to: To = None,
    every: Every = 1,
    fps: Fps = 8.0,
    agent: Annotated[int, typer.Option(help="The agent to follow where the world is larger than the terminal.")] = 0,
    code: Code = None,
) -> None:
    """Watch a replay, a run or a game in the terminal.

    Space pauses, arrows step, q quits. Without a terminal the frames are printed one after another.
    """
    from gridmill.viewer import watch as tool

    take_code(code)
    source = _Source(game, seed, 0)
    last = _end(source, first, to, every, fps)
    if not 0 <= agent < source.game.num_agents:
        raise ValueError(f"--agent must be 0 to {source.game.num_agents - 1} in {source.game.name}, got {agent}")
    colour = "NO_COLOR" not in os.environ
    tool.watch(tool.Watch(source.play, last, fps, agent, first, colour), last, every)


class _Source:
    """What is shown: a replay, which has an end, or a game that a run's policy plays, or chance."""

    def __init__(self, game: str, seed: int, world: int) -> None:
        from gridmill import replay

        self.name, self.seed, self.world = game, seed, world
        self.tape = replay.read(Path(game)) if replay.is_replay(Path(game)) else None
        if self.tape is not None and (seed or world):
            raise ValueError("--seed and --world are for games; a replay has its own world")
        self.ticks = None if self.tape is None else len(self.tape.actions)
        self.run = None if self.tape is not None else run_of(game)
        self.game: Any = game_of(game) if self.tape is None else self.tape.game
        if not self.game.has_picture:
            raise ValueError(f"expected a game with a picture, got `{game}`, which has none")

    def play(self) -> Generator[Any, None, None]:
        """The world before each tick, and after the last of a replay."""
        if self.tape is not None:
            return self.tape.moments()
        from gridmill.viewer import film

        if self.run is not None:
            return film.policy_moments(
                self.run, own_policy(self.name) or str(folder_of(self.name)), self.seed, self.world
            )
        return film.random_moments(self.game, self.seed, self.world)


def _film(file: Path, source: _Source, span: tuple[int, int | None, int, float], scale: int, legend: bool) -> None:
    from gridmill.viewer import film

    first, to, every, fps = span
    last = _end(source, first, to, every, fps)
    count = film.write(file, film.frames(source.play(), first, last, every, scale, legend, source.world), fps)
    say(f"wrote {file}: {count} frames, {file.stat().st_size // 1000} kB")


def _end(source: _Source, first: int, to: int | None, every: int, fps: float) -> int:
    """The tick before which a film ends."""
    _refuse_outside("--from", first, 0)
    _refuse_outside("--every", every, 1, MOST_TICKS)
    _refuse_outside("--fps", fps, 1, MOST_FPS)
    most = MOST_TICKS if source.ticks is None else source.ticks + 1
    last = (min(first + FILM_TICKS, most) if source.ticks is None else most) if to is None else to
    if to is None and first >= most:
        raise ValueError(f"--from must be below {most}, got {first}")
    if not first < last <= most:
        raise ValueError(f"--from must be below --to, --to at most {most}, got {first} and {last}")
    return last


def _refuse_outside(name: str, value: float, lowest: int, most: int | None = None) -> None:
    if value < lowest:
        raise ValueError(f"{name} must be at least {lowest}, got {value:.15g}")
    if most is not None and value > most:
        raise ValueError(f"{name} must be at most {most}, got {value:.15g}")
