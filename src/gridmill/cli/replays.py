"""The commands for replay files: `gridmill replay check | info | cut | merge` and `gridmill whatif`."""

from __future__ import annotations

import json as plain_json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gridmill.cli.code import Code, take_code
from gridmill.cli.groups import Command, Listed
from gridmill.cli.say import say

if TYPE_CHECKING:
    from gridmill.replay import Finding, Replay

app = typer.Typer(rich_markup_mode=None)
replay = typer.Typer(
    cls=Listed, no_args_is_help=True, rich_markup_mode=None, help="Check, inspect, cut and merge replay files."
)

Files = Annotated[list[Path], typer.Argument(metavar="FILE...", help="Replay files, with any suffix.")]
File = Annotated[Path, typer.Argument(metavar="FILE", help="A replay file.")]
Output = Annotated[Path, typer.Option("--output", "-o", metavar="FILE", help="The file to write.")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON record instead of text.")]
DIFFERS = 2


@replay.command("check", cls=Command)
def check(files: Files, json: Json = False) -> None:
    """Play replays again and report the first tick that differs.

    Exit codes: 0 all equal, 2 one differs or cannot be read.
    """
    from gridmill import replay as tool

    records, code = [], 0
    for file in files:
        try:
            tape = tool.read(file)
            found = tool.check(tape)
        except tool.ReplayError as error:
            records.append({"file": str(file), "equal": False, "error": str(error)})
            lines = [f"{file}: {error}"]
            code = DIFFERS
        else:
            equal = all(finding.equal for finding in found)
            code = code if equal else DIFFERS
            records.append({"file": str(file), "equal": equal, "branches": [_finding(f) for f in found]})
            lines = _said(file, tape, found)
        if not json:
            say("\n".join(lines))
    if json:
        say(plain_json.dumps({"files": records}))
    raise typer.Exit(code)


def _said(file: Path, tape: Replay, found: list[Finding]) -> list[str]:
    """What was found in a file: one line if it is equal, one for each branch that differs."""
    if all(finding.equal for finding in found):
        sums = {name: sum(getattr(f, name) for f in found) for name in ("ticks", "hashes", "checks", "keyframes")}
        branches = "" if len(found) == 1 else f"{len(found)} branches, "
        counted = ", ".join(f"{count} {name}" for name, count in sums.items())
        end = "" if tape.format > 1 else "; format 1 has no hash of the end"
        return [f"{file}: equal, {branches}{counted}{end}"]
    return [f"{file}: branch {f.branch} differs {f.where}: {f.difference}" for f in found if not f.equal]


def _finding(finding: Finding) -> dict[str, Any]:
    return {
        "branch": finding.branch,
        "equal": finding.equal,
        "ticks": finding.ticks,
        **({} if finding.equal else {"tick": finding.tick, "since": finding.since, "difference": finding.difference}),
    }


@replay.command("info", cls=Command)
def info(files: Files, json: Json = False) -> None:
    """Show the contents of replays: game, players, branches, results. Nothing is played."""
    from gridmill.replay import read, tools

    found = [(file, tools.info(read(file))) for file in files]
    if json:
        say(plain_json.dumps({"files": [{"file": str(file)} | record for file, record in found]}))
        return
    for place, (file, record) in enumerate(found):
        lines = tools.text(record)
        say("\n".join([*([""] if place else []), *([str(file)] if len(found) > 1 else []), *lines]))


@replay.command("cut", cls=Command)
def cut(
    file: File,
    to: Annotated[int, typer.Option(help="Ticks to keep.")],
    output: Output,
    branch: Annotated[int, typer.Option(help="The branch to take.")] = 0,
) -> None:
    """Write the first ticks of a branch to a new file."""
    from gridmill.replay import read, tools, write

    write(output, tools.cut(read(file), to, branch))
    say(f"wrote {output}")


@replay.command("merge", cls=Command)
def merge(files: Files, output: Output) -> None:
    """Merge replays of one game and seed into one file, one branch each."""
    from gridmill.replay import read, tools, write

    whole = tools.merge([read(file) for file in files])
    write(output, whole)
    say(f"wrote {output}, {len(whole.branches)} branches")


@app.command(cls=Command)
def whatif(
    file: File,
    tick: Annotated[int, typer.Option(help="The tick before which the world is forked.")],
    agent: Annotated[int, typer.Option(help="The agent whose actions are tried.")],
    rollouts: Annotated[int, typer.Option(help="Rollouts per action.")] = 32,
    policy: Annotated[
        str | None,
        typer.Option(
            help="Who continues after the action: random, script:NAME or a folder.", show_default="as in the file"
        ),
    ] = None,
    horizon: Annotated[int, typer.Option(help="Ticks per rollout.", show_default="to the episode's end")] = 0,
    branch: Annotated[int, typer.Option(help="The branch of the replay.")] = 0,
    seed: Annotated[int, typer.Option(help="Seed of the rollouts.")] = 0,
    threads: Annotated[int, typer.Option(help="Threads of the core.", show_default="all cores")] = 0,
    code: Code = None,
    json: Json = False,
) -> None:
    """Try every action of an agent at one tick of a replay, many times each.

    Shows the returns of each action, the regret of the action that was taken and, for a trained policy,
    the error of its critic.
    """
    from gridmill import whatif as tool
    from gridmill.replay import read

    take_code(code)
    found = tool.what_if(read(file), tick, agent, policy or "", rollouts, horizon, branch, seed, threads)
    say(plain_json.dumps(found.record()) if json else "\n".join(tool.lines(found)))
