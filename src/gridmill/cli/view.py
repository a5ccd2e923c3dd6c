"""The commands for watching and playing: view, play."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gridmill.cli import complete
from gridmill.cli.groups import Command
from gridmill.cli.named import built, run_folder
from gridmill.cli.say import say

if TYPE_CHECKING:
    from gridmill.env import GameConfig

app = typer.Typer(rich_markup_mode=None)

Export = Annotated[
    Path | None, typer.Option(metavar="FILE", help="Write one self-contained HTML file instead of starting a server.")
]
Seed = Annotated[int, typer.Option(help="Seed of a new world.")]
Host = Annotated[str, typer.Option(help="Address to listen on.")]
Port = Annotated[int, typer.Option(help="Port; 0 = any free port.")]
AllowRemote = Annotated[
    bool, typer.Option("--allow-remote", help="Let other machines connect if they know the address.")
]
NoBrowser = Annotated[bool, typer.Option("--no-browser", help="Print the address without opening a browser.")]
Others = Annotated[
    str,
    typer.Option(
        metavar="WHO",
        help="Who plays the other agents: script:NAME, random or noop.",
        show_default="the game's first script",
    ),
]


@app.command(cls=Command)
def view(
    what: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[FILE|RUN|GAME]",
            help="A replay, a run or a game; or two replays.",
            autocompletion=complete.game_or_run,
        ),
    ] = None,
    export: Export = None,
    seed: Seed = 0,
    others: Others = "",
    host: Host = "127.0.0.1",
    port: Port = 0,
    allow_remote: AllowRemote = False,
    no_browser: NoBrowser = False,
) -> None:
    """Open replays in a web page that plays them again and lets you take over at any tick."""
    start, files, root = _opened(what or [], seed, others)
    _shown(start, files, root, export, (host, port, allow_remote, no_browser))


@app.command(cls=Command)
def play(
    game: Annotated[
        str, typer.Argument(help="A game's name, or path/to/file.py[:function].", autocompletion=complete.game)
    ],
    agent: Annotated[int, typer.Option(help="The agent you play.")] = 0,
    seed: Seed = 0,
    others: Others = "",
    terminal: Annotated[bool, typer.Option("--terminal", help="Play in this terminal, as text.")] = False,
    save: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="With --terminal: file for the replay.", show_default="GAME.replay"),
    ] = None,
    export: Export = None,
    host: Host = "127.0.0.1",
    port: Port = 0,
    allow_remote: AllowRemote = False,
    no_browser: NoBrowser = False,
) -> None:
    """Play a game yourself and save a replay of it."""
    from gridmill import games
    from gridmill.viewer.start import new_game

    config = games.build(game)
    start = new_game(config, seed, agent, others)
    if terminal:
        if export is not None:
            raise ValueError("--terminal and --export cannot be combined")
        _at_terminal(config, seed, agent, start["play"]["others"], save)
        return
    if save is not None:
        raise ValueError("--save needs --terminal; the page has a button for it")
    _shown(start, {}, _runs(), export, (host, port, allow_remote, no_browser))


def _at_terminal(game: GameConfig, seed: int, agent: int, others: str, save: Path | None) -> None:
    from gridmill import replay
    from gridmill.viewer.terminal import Table, play_in_terminal

    place = save or Path(f"{game.name}{replay.SUFFIX}")
    if place.exists():
        raise ValueError(f"expected a new file to save to, got `{place}`, which exists: use --save FILE")
    table = Table(game, seed, agent, others)
    played = play_in_terminal(table)
    if played is None:
        say("nothing was played")
        return
    replay.write(place, played)
    say(f"played {len(table.actions)} ticks, reward {table.reward:.3f}; wrote {place}")


def _opened(what: list[str], seed: int, others: str) -> tuple[dict[str, Any], dict[str, Path], Path | None]:
    """What the page begins with, its files by name, and the folder that a server shows, if any."""
    from gridmill import games, replay
    from gridmill.config.install import command
    from gridmill.viewer.start import new_game, replays_of

    if len(what) > 2:
        raise ValueError(f"expected at most two replays side by side, got {len(what)}")
    paths = []
    for name in what:
        path = Path(name)
        if not path.exists() and name not in games.names():
            path = run_folder(name) or path
        if path.is_dir():
            found = replays_of(path)
            if not found:
                raise ValueError(f"no replays in `{name}`: `{command('eval', name, '--replay', 'FILE')}` writes one")
            path = found[0]
        elif not path.is_file() or (path.suffix == ".py" and not replay.is_replay(path)):
            if len(what) > 1:
                raise ValueError(f"expected two replays, got `{name}`")
            return new_game(built(name), seed, None, others), {}, _runs()
        replay.read(path)  # whoever types a wrong name hears it here, not in a page
        paths.append(path)
    files = {f"open-{number}.replay": path for number, path in enumerate(paths)}
    named = [{"name": path.name, "url": url} for url, path in files.items()]
    opened = run_folder(what[0]) if what else None
    root = opened or (Path(what[0]) if what and Path(what[0]).is_dir() else paths[0].parent if paths else _runs())
    return {"files": named}, files, root


def _runs() -> Path | None:
    """What a server shows if no file was named: runs, and never all that lies where the command is started."""
    folder = Path("runs")
    return folder if folder.is_dir() else None


def _shown(
    start: dict[str, Any],
    files: dict[str, Path],
    root: Path | None,
    export: Path | None,
    server: tuple[str, int, bool, bool],
) -> None:
    if not 0 <= server[1] < 2**16:
        raise ValueError(f"--port must be 0 to 65535, got {server[1]}")
    from gridmill.config.files import refuse_unwritable, write_named
    from gridmill.replay.blocks import read_bytes
    from gridmill.viewer import engine
    from gridmill.viewer.export import exported, page_files
    from gridmill.viewer.serve import address, serve

    host, port, allow_remote, no_browser = server
    host = address(host, allow_remote)
    if export is not None:
        refuse_unwritable(export)
    module = engine.read()  # built first, if need be: minutes
    if export is not None:
        inside = [(entry["name"], read_bytes(files[entry["url"]])) for entry in start["files"]]
        page = exported(start, module, inside).encode()
        write_named(export, page)
        say(f"wrote {export} ({len(page) / 1000:.0f} kB)")
        return
    import tempfile
    import webbrowser

    page_by_name = page_files(start, module, files)
    with (
        tempfile.TemporaryDirectory(prefix="gridmill-") as empty,
        serve(page_by_name, root or Path(empty), host=host, port=port, allow_remote=allow_remote) as running,
    ):
        say(f"open {running.url}")
        say("Ctrl-C ends it.")
        if not no_browser:
            webbrowser.open(running.url)
        try:
            running.wait()
        except KeyboardInterrupt:
            say("")
