"""The commands that look at games and policies: games, eval, explain, diff, doctor."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Annotated, Any

import typer

from gridmill.cli import complete
from gridmill.cli.code import Code, take_code
from gridmill.cli.groups import Command
from gridmill.cli.named import folder_of, game_of, own_policy, played, policy_name, run_tree, split
from gridmill.cli.say import say

app = typer.Typer(rich_markup_mode=None)


@app.command(cls=Command)
def games() -> None:
    """List the games that ship."""
    import gridmill
    from gridmill.config.text import hang, table

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
    say(header)
    for line, said in zip(lines, says, strict=True):
        say(line)
        say("\n".join(hang("    ", said)))


@app.command("eval", cls=Command)
def evaluate(
    game: Annotated[
        list[str],
        typer.Argument(
            help="Game names or path/to/file.py[:function]; or a run or RUN@best, to play its game.",
            autocompletion=complete.game_or_run,
        ),
    ],
    policy: Annotated[
        list[str] | None,
        typer.Option(
            help="random, script:NAME, a run or checkpoint (runs/x@best) or FILE.py:function; repeatable.",
            show_default="the run's own, or random",
            autocompletion=complete.policy,
        ),
    ] = None,
    episodes: Annotated[int, typer.Option(help="Episodes of each policy on each game.")] = 100,
    seed: Annotated[int, typer.Option(help="Seed of the worlds.")] = 0,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON record instead of tables.")] = False,
    replay: Annotated[Path | None, typer.Option(metavar="FILE", help="Save the first episode as a replay.")] = None,
    replays: Annotated[int, typer.Option(metavar="N", help="Save N episodes, ranging from the best to the worst.")] = 0,
    replay_dir: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Folder for these replays.", show_default="replays")
    ] = None,
    replay_weights: Annotated[
        bool, typer.Option("--replay-weights", help="Store the policy in the replays, to continue playing with it.")
    ] = False,
    replay_values: Annotated[
        bool, typer.Option("--replay-values", help="Store its values and action probabilities in the replays.")
    ] = False,
    players: Annotated[
        list[str] | None,
        typer.Option(
            metavar="WHO=WHICH",
            help="Another player (script, folder or file) for a share (0.5), agents (0,1) or a team; repeatable.",
        ),
    ] = None,
    greedy: Annotated[bool, typer.Option("--greedy", help="Trained policies take their most likely action.")] = False,
    temperature: Annotated[float, typer.Option(help="Sampling temperature of trained policies, 1e-30 to 1e30.")] = 1.0,
    code: Code = None,
) -> None:
    """Evaluate policies on games: means with standard errors.

    For a trained policy, tables also show random play and the game's script.
    """
    from gridmill import evaluate as tool

    take_code(code)
    own = list(dict.fromkeys(filter(None, map(own_policy, game))))
    for text in game if not policy and not own else ():
        if folder_of(text) is not None:
            say(f"`{text}` has no checkpoint: random actions are played", err=True)
    asked = [policy_name(name) for name in policy or own or ["random"]]
    names = _games(game)
    kept = None
    if replay is not None or replays:
        if len(names) > 1 or len(asked) > 1:
            raise ValueError("--replay and --replays need exactly one game and one policy")
        folder = replay_dir or Path("replays")
        kept = tool.ReplayOptions(replay, folder if replays else None, replays, replay_weights, replay_values)
    elif replay_dir or replay_weights or replay_values:
        raise ValueError("--replay-dir, --replay-weights and --replay-values need --replay or --replays")
    parts = [_part(text) for text in players or ()]
    beside = dict(parts)
    if len(beside) < len(parts):
        twice = next(name for i, (name, _) in enumerate(parts) if name in dict(parts[:i]))
        raise ValueError(f"--players: expected every player once, got `{twice}` again")
    how: dict[str, Any] = {"players": beside, "greedy": greedy, "temperature": temperature}
    for name in names:  # whatever is wrong is said before anything is played
        for each in asked:
            tool.refuse_wrong(played(name), each, episodes, kept, **how)
    # Every pair gets a game built for it alone, so that no two can share a config.
    if json:
        results = [tool.evaluate(played(g), p, episodes, seed, g, kept, **how) for g in names for p in asked]
        say(as_json(tool.as_record(results, seed, beside)))
    else:
        _tables(names, asked, episodes, seed, kept, how)


def _games(typed: list[str]) -> list[str]:
    """What is played, each once: `first@best first@12` are two policies of one game."""
    found = dict[Path | str, str]()
    for text in typed:
        folder = folder_of(text)
        found.setdefault(folder or text, text if folder is None or folder.name == Path(text).name else split(text)[0])
    return list(found.values())


def _tables(names: list[str], asked: list[str], episodes: int, seed: int, kept: Any, how: dict[str, Any]) -> None:
    """Play everything, a table for each game; nothing is printed before there is something to show."""
    from gridmill import evaluate as tool
    from gridmill.config.text import count, table
    from gridmill.policy.pin import SHOWN

    heading = [f"{count(episodes, 'episode')} each from seed {seed}; standard errors over worlds"]
    for name, part in how["players"].items():
        heading.append(f"{_middle(name, 24)} plays {_whom(part)}; the figures are those of the others")
    for name in names:
        others = tool.baselines(played(name)) if any(map(tool.is_trained, asked)) else []
        compared = list(dict.fromkeys([*asked, *others]))
        saved = {asked[0]: kept}
        results = []
        for place, each in enumerate(compared):
            with _Ticks(f"{each}, {place + 1} of {len(compared)} policies", episodes) as ticks:
                kept_here = saved.get(each)
                results.append(tool.evaluate(played(name), each, episodes, seed, name, kept_here, on_tick=ticks, **how))
        rows = tool.rows_of(results)
        shown = _apart(compared, max(12, 42 - max(len(row[0]) for row in rows)))
        rows = [(title, shown[player], *figures) for title, player, *figures in rows]
        heading += ["", name, *table(("statistic", "policy", "mean", "std. error", "median"), rows, left=2)]
        say("\n".join(heading))
        heading = []
        for result in results:
            if result.sha256:
                say(f"{_middle(result.policy, 50)}: sha256 {result.sha256[:SHOWN]}")
    if kept is not None and kept.file is not None:
        say(f"\nwrote {kept.file}")
    if kept is not None and kept.folder is not None:
        say(f"\nwrote {count(kept.count, 'replay')} in {kept.folder}")


class _Ticks:
    """A line on a terminal while a policy plays, written over; elsewhere nothing."""

    PAUSE = 0.2  # seconds between two of them

    def __init__(self, who: str, episodes: int) -> None:
        from gridmill.config.text import ascii_only

        self.who, self.episodes, self.said = ascii_only(who), episodes, 0.0
        self.watched = sys.stderr.isatty()

    def __enter__(self) -> _Ticks:
        return self

    def __call__(self, tick: int, ended: int) -> None:
        now = time.monotonic()
        if self.watched and now - self.said >= self.PAUSE:
            self.said = now
            at = f": tick {tick}, {ended} of {self.episodes} episodes"
            typer.echo(f"\r{_middle(self.who, 79 - len(at)) + at:<79}", err=True, nl=False)

    def __exit__(self, *_: object) -> None:
        if self.said:
            typer.echo(f"\r{'':<79}\r", err=True, nl=False)


def _part(text: str) -> tuple[str, float | tuple[int, ...] | str]:
    """`arena=0.25`, also `script:arena=0.25`; `runs/x=0,2` for agents, `runs/x=red` for a team."""
    name, _, part = text.removeprefix("script:").rpartition("=")
    if not name or not part:
        raise ValueError(f"--players takes NAME=SHARE such as arena=0.25, NAME=0,2 or NAME=TEAM, got `{text}`")
    try:
        return name, tuple(map(int, part.rstrip(",").split(","))) if "," in part else float(part)
    except ValueError:
        return name, part


def _whom(part: float | tuple[int, ...] | str) -> str:
    if isinstance(part, float):
        return f"{part:g} of the agents"
    return f"the team {part}" if isinstance(part, str) else f"agents {', '.join(map(str, part))}"


def _apart(names: list[str], width: int) -> dict[str, str]:
    """Names that fit into a column if they still differ then, else as they are."""
    short = {name: _middle(name, width) for name in names}
    return short if len(set(short.values())) == len(names) else {name: name for name in names}


def _middle(text: str, width: int) -> str:
    """Without its middle, if it is too long: a path's first and last names say most."""
    end = (width - 2) * 2 // 3
    return text if len(text) <= width else f"{text[: width - 2 - end]}..{text[-end:]}"


@app.command(cls=Command)
def explain(
    game: Annotated[
        str,
        typer.Argument(
            help="A game's name, path/to/file.py[:function], or a run.", autocompletion=complete.game_or_run
        ),
    ],
    first_episode: Annotated[
        int | None,
        typer.Option(
            "--min-first-episode", help="Check this value of min_first_episode.", show_default="the game's own"
        ),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON record instead of text.")] = False,
) -> None:
    """Explain a game before training: production chains, earliest rewards, upper bounds, warnings."""
    if first_episode is not None and first_episode < 1:
        raise ValueError(f"--min-first-episode must be at least 1, got {first_episode}")

    said = game_of(game).explain(first_episode)
    if said is None:
        raise ValueError(f"expected a game that can be explained, got `{game}`")
    record, text = said
    say(as_json(record) if json else text)


@app.command(cls=Command)
def diff(
    a: Annotated[
        str,
        typer.Argument(
            metavar="A",
            help="A game's name, path/to/file.py[:function], or a run.",
            autocompletion=complete.game_or_run,
        ),
    ],
    b: Annotated[
        str, typer.Argument(metavar="B", help="What to compare it with.", autocompletion=complete.game_or_run)
    ],
    json: Annotated[bool, typer.Option("--json", help="Print one JSON record instead of text.")] = False,
) -> None:
    """List every field in which two games, or two runs, differ.

    The exit code is 0 whether they differ or not.
    """
    from gridmill.grid.analysis import diff as tool

    trees = [run_tree(text) for text in (a, b)]
    if trees[0] is not None and trees[1] is not None:
        names, found = (a, b), tool.differences(trees[0], trees[1])
    else:
        first, second = game_of(a), game_of(b)
        names, found = (first.name, second.name), tool.differences(first, second)
    if json:
        say(as_json({"a": names[0], "b": names[1], "differences": found}))
    else:
        say(tool.text(found, *names))


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


@app.command(cls=Command)
def doctor() -> None:
    """Show what is installed, what is missing, and the command to install it."""
    from gridmill.config.install import pip_install
    from gridmill.policy import onednn
    from gridmill.workshop import machine

    works, found = _try_the_base()
    lines = [*machine.headline(machine.describe()), *(f"{k}: {v}" for k, v in machine.native_build().items())]
    say("\n".join(line[:80] for line in lines) + "\n")
    say(f"{'ok' if works else 'BROKEN':<9}base: {found}")
    bf16 = onednn.settle()
    say(_finding("careful" if bf16.state in ("broken", "unknown") else "ok", "onednn", bf16.text))
    for extra, needs in machine.extras().items():
        missing = [need for need, version in needs.items() if version is None]
        present = ", ".join(f"{machine.name_of(need)} {v}" for need, v in needs.items() if v is not None)
        text = pip_install(*missing) if missing else present
        say(_finding("missing" if missing else "ok", extra, text))
    for tool, (said, command) in machine.tools().items():
        say(_finding("missing" if said is None else "ok", tool, said or command))
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
