"""The commands that look at games and policies: games, eval, explain, diff, doctor."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

app = typer.Typer(rich_markup_mode=None)


@app.command()
def games() -> None:
    """List the games that ship."""
    import textwrap

    import gridmill
    from gridmill.config.text import table

    rows, says = [], []
    for name in gridmill.games.names():
        with gridmill.make(name, num_worlds=1) as env:
            env.reset()
            world = env.inspect(0) if env.games[0].has_map else None
            size = "-" if world is None else f"{world['height']}x{world['width']}"
            rows.append((name, env.num_agents, size, env.num_actions))
        text = (gridmill.games.maker(name).__doc__ or "").strip()
        says.append(text.splitlines()[0] if text else "")
    header, *lines = table(("game", "agents", "map", "actions"), rows)
    typer.echo(header)
    for line, said in zip(lines, says, strict=True):
        typer.echo(f"{line}  {textwrap.shorten(said, 77 - len(line), placeholder='...')}".rstrip())


@app.command("eval")
def evaluate(
    game: Annotated[
        list[str],
        typer.Argument(help="Names, path/to/file.py[:function], or a run's or checkpoint's folder: its game."),
    ],
    policy: Annotated[
        list[str] | None,
        typer.Option(help="random, script:NAME, or a checkpoint's or run's folder; may be repeated."),
    ] = None,
    episodes: Annotated[int, typer.Option(help="Episodes of each policy on each game.")] = 100,
    seed: Annotated[int, typer.Option(help="Seed of the worlds.")] = 0,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON record instead of tables.")] = False,
    replay: Annotated[Path | None, typer.Option(metavar="FILE", help="Save the first episode, to `show` it.")] = None,
    replays: Annotated[int, typer.Option(metavar="N", help="Save N episodes, from the best to the worst.")] = 0,
    replay_dir: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Where they go.", show_default="replays")
    ] = None,
    replay_weights: Annotated[
        bool, typer.Option("--replay-weights", help="Put the policy into the files, to play on with it.")
    ] = False,
    replay_values: Annotated[
        bool, typer.Option("--replay-values", help="Put its values and probabilities into the files.")
    ] = False,
    players: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=SHARE", help="A script that plays a share of the agents; may be repeated."),
    ] = None,
) -> None:
    """Play games with policies: means with standard errors.

    Tables put chance and a script beside a trained policy.
    """
    from gridmill import evaluate as tool

    asked = policy or ["random"]
    kept = None
    if replay is not None or replays:
        if len(game) > 1 or len(asked) > 1:
            raise ValueError("--replay and --replays go with one game and one policy")
        folder = replay_dir or Path("replays")
        kept = tool.ReplayOptions(replay, folder if replays else None, replays, replay_weights, replay_values)
    elif replay_dir or replay_weights or replay_values:
        raise ValueError("--replay-dir, --replay-weights and --replay-values go with --replay or --replays")
    beside = dict(map(_share, players or ()))
    # Every pair gets a game built for it alone, so that no two can share a config.
    if json:
        results = [tool.evaluate(_played(g), p, episodes, seed, g, kept, beside) for g in game for p in asked]
        typer.echo(as_json(tool.as_record(results, seed, beside)))
        return
    from gridmill.config.text import count, table

    typer.echo(f"{count(episodes, 'episode')} each from seed {seed}; standard errors over worlds")
    for name, share in beside.items():
        typer.echo(f"script:{name} plays {share:g} of the agents; the figures are those of the others")
    for name in game:
        others = tool.baselines(_played(name)) if any(map(tool.is_trained, asked)) else []
        compared = list(dict.fromkeys([*asked, *others]))
        saved = {asked[0]: kept}
        rows = tool.rows_of(
            [tool.evaluate(_played(name), p, episodes, seed, name, saved.get(p), beside) for p in compared]
        )
        wide = max(12, 42 - max(len(row[0]) for row in rows))
        rows = [(title, _tail(player, wide), *figures) for title, player, *figures in rows]
        typer.echo(f"\n{_tail(name, 80)}")
        typer.echo("\n".join(table(("statistic", "policy", "mean", "std. error", "median"), rows, left=2)))
    if replay is not None:
        typer.echo(f"\nwrote {replay}")
    if kept is not None and kept.folder is not None:
        typer.echo(f"\nwrote {count(replays, 'replay')} in {kept.folder}")


def _played(name: str) -> Any:
    """What eval plays: a game, or a run with its game and score."""
    from gridmill import games as shipped

    if (Path(name) / "run.json").is_file():
        from gridmill.evaluate import run_of

        return run_of(Path(name))
    return shipped.build(name)


def _share(text: str) -> tuple[str, float]:
    """`arena=0.25`, also `script:arena=0.25`."""
    name, _, share = text.removeprefix("script:").rpartition("=")
    try:
        return name, float(share)
    except ValueError:
        raise ValueError(f"--players takes NAME=SHARE such as arena=0.25, got `{text}`") from None


def _tail(text: str, width: int) -> str:
    """The end of a path says more than its beginning."""
    return text if len(text) <= width else f"...{text[3 - width :]}"


@app.command()
def explain(
    game: Annotated[str, typer.Argument(help="A game's name, or path/to/file.py[:function].")],
    first_episode: Annotated[
        int | None,
        typer.Option("--min-first-episode", help="Evaluator this min_first_episode.", show_default="the game's own"),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON record instead of text.")] = False,
) -> None:
    """What a game means for learning: chains, first rewards, ceilings, warnings."""
    if first_episode is not None and first_episode < 1:
        raise ValueError(f"--min-first-episode must be at least 1, got {first_episode}")
    from gridmill import games

    said = games.build(game).explain(first_episode)
    if said is None:
        raise ValueError(f"expected a game that can be explained, got `{game}`")
    record, text = said
    typer.echo(as_json(record) if json else text)


@app.command()
def diff(
    a: Annotated[str, typer.Argument(metavar="GAME_A", help="A game's name, or path/to/file.py[:function].")],
    b: Annotated[str, typer.Argument(metavar="GAME_B", help="The game to compare it with.")],
    json: Annotated[bool, typer.Option("--json", help="Print one JSON record instead of text.")] = False,
) -> None:
    """Every field in which two games differ.

    Exit code 0 whether they differ or not.
    """
    from gridmill import games
    from gridmill.grid.analysis import diff as tool

    first, second = games.build(a), games.build(b)
    found = tool.differences(first, second)
    if json:
        typer.echo(as_json({"a": first.name, "b": second.name, "differences": found}))
    else:
        typer.echo(tool.text(found, first.name, second.name))


def as_json(record: Any) -> str:
    """Records and mappings as one line of JSON."""
    import json
    from collections.abc import Mapping
    from dataclasses import fields, is_dataclass

    def plain(value: Any) -> Any:
        if is_dataclass(value):
            return {field.name: getattr(value, field.name) for field in fields(value)}
        if isinstance(value, Mapping):
            return dict(value)
        raise TypeError(f"expected a record, got {type(value).__name__}")

    return json.dumps(record, default=plain)


@app.command()
def doctor() -> None:
    """Say what is installed, what is missing, and the command to get it."""
    from gridmill.policy import onednn
    from gridmill.workshop import machine

    works, found = _try_the_base()
    lines = [*machine.headline(machine.describe()), *(f"{k}: {v}" for k, v in machine.native_build().items())]
    typer.echo("\n".join(line[:80] for line in lines) + "\n")
    typer.echo(f"{'ok' if works else 'BROKEN':<9}base: {found}")
    bf16 = onednn.settle()
    typer.echo(_finding("careful" if bf16.state in ("broken", "unknown") else "ok", "onednn", bf16.text))
    for extra, needs in machine.extras().items():
        missing = [need for need, version in needs.items() if version is None]
        present = ", ".join(f"{machine.name_of(need)} {v}" for need, v in needs.items() if v is not None)
        text = machine.install_command(missing) if missing else present
        typer.echo(_finding("missing" if missing else "ok", extra, text))
    for tool, (said, command) in machine.tools().items():
        typer.echo(_finding("missing" if said is None else "ok", tool, said or command))
    raise typer.Exit(0 if works else 1)


def _finding(state: str, name: str, text: str) -> str:
    from gridmill.config.text import hang

    return "\n".join(hang(f"{state:<9}{name}: ", text, 11))


def _try_the_base() -> tuple[bool, str]:
    """Step a small world: the proof that the package works here."""
    try:
        import gridmill

        with gridmill.make("toy", num_worlds=2, seed=1) as env:
            env.reset()
            env.step()
            return True, f"toy steps, {env.num_rows} rows of {env.num_tokens} tokens"
    except Exception as reason:
        return False, f"{type(reason).__name__}: {reason}"
