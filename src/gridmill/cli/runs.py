"""The commands that look at training runs: `gridmill runs | report`, a part of the command line in `cli`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gridmill.cli import complete
from gridmill.cli.groups import Command
from gridmill.cli.inspect import as_json
from gridmill.cli.named import expect_run, run_folder
from gridmill.cli.say import say

app = typer.Typer(rich_markup_mode=None)


@app.command(cls=Command)
def runs(
    word: Annotated[
        list[str] | None, typer.Argument(help="Only runs with this word in name, recipe or state; seed=N for a seed.")
    ] = None,
    runs_dir: Annotated[Path, typer.Option(metavar="DIR", help="The folder that holds the runs.")] = Path("runs"),
    sort: Annotated[str, typer.Option(help="age, name, recipe, seed, state, score, speed or steps.")] = "age",
    json: Annotated[bool, typer.Option("--json", help="Print one JSON record instead of text.")] = False,
) -> None:
    """List training runs: recipe, seed, state, steps, speed, score, age."""
    from gridmill.config import did_you_mean
    from gridmill.config.text import count
    from gridmill.runs import listing as tool

    there = tool.rows(runs_dir)
    found = tool.ordered(tool.matching(there, word or ()), sort)
    if there and not found and not json:
        name = next((one for one in word or () if "=" not in one), "")
        hint = did_you_mean(name, [row.name for row in there])
        are = f"{'is' if len(there) == 1 else 'are'} {count(len(there), 'run')}"
        say(f"no run matches `{' '.join(word or ())}`{hint or f'; there {are}'}", err=True)
    say(as_json({"runs": found}) if json else tool.text(found))


@app.command(cls=Command)
def report(
    run: Annotated[
        list[str], typer.Argument(metavar="RUN...", help="Runs by name or folder.", autocompletion=complete.run)
    ],
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Where to write it.", show_default="beside the run or runs")
    ] = None,
    baselines: Annotated[
        bool, typer.Option(help="First play random and scripts for runs that have no baselines yet.")
    ] = True,
) -> None:
    """Write the report page of a run, or a page that compares several runs.

    Runs that differ only in their seed are drawn as a mean with its 95 % interval.
    """
    from gridmill.config.files import kind_of

    folders = []
    for text in run:
        is_other = Path(text).is_dir() and run_folder(text) is None  # it is said below what such a folder lacks
        folders.append(Path(text) if is_other else expect_run(text))
    for folder in folders:
        if kind_of(folder / "metrics.jsonl") != "a plain file":
            raise ValueError(f"expected the folder of a run, got `{folder}`, which has no metrics.jsonl")
    if baselines:
        _measure(folders)
    if len(folders) == 1:
        from gridmill.runs.report import page

        written = page.write(folders[0], out=out)
    else:
        from gridmill.runs.report import compare

        written = compare.write(folders, out)
    say(f"wrote {written}")


EPISODES = 10  # what evaluation.episodes is unless said otherwise


def _measure(folders: list[Path]) -> None:
    """What random play and scripts get, for the first run of each game; the others are given the same figures."""
    from gridmill import evaluate as tool
    from gridmill.config.files import kind_of, read_plain, write_whole
    from gridmill.evaluate import others
    from gridmill.runs.report.folder import BASELINES, MOST_JSON

    known: dict[tuple[str, str], bytes] = {}
    for folder in folders:
        file = folder / BASELINES
        try:
            played = tool.run_of(folder)
        except ValueError as error:  # an older or damaged run.json: the page does without
            say(f"no baselines: {error}", err=True)
            continue
        key = (played.played_game.fingerprint(), played.score)
        if not kind_of(file):
            if key in known:
                write_whole(file, known[key])
            else:
                say(f"playing {', '.join(tool.baselines(played))} for {file}")
                others.write_baselines(file, played, EPISODES, played.seed)
        known.setdefault(key, read_plain(file, MOST_JSON))
