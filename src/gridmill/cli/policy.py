"""The commands about a trained policy: `gridmill policy info | export`, a part of the command line in `cli`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gridmill.cli import complete
from gridmill.cli.code import Code, take_code
from gridmill.cli.groups import Command, Listed
from gridmill.cli.inspect import as_json
from gridmill.cli.named import policy_name
from gridmill.cli.say import say

policy = typer.Typer(
    cls=Listed, rich_markup_mode=None, no_args_is_help=True, help="Inspect or export a trained policy."
)
Which = Annotated[
    str,
    typer.Argument(
        metavar="RUN|CHECKPOINT",
        help="A run's name or folder (optionally followed by @best, @EPOCH or #HASH), or a checkpoint.",
        autocompletion=complete.run,
    ),
]


@policy.command(cls=Command)
def info(
    which: Which,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON record instead of text.")] = False,
) -> None:
    """Describe a policy: network, parameters, game, vocabulary, hash, score.

    No code that the policy names is run.
    """
    from gridmill.policy import about

    typed = policy_name(which)
    found = about.of(typed)
    say(as_json(found | {"next": about.next_commands(found, typed)}) if json else about.text(found, typed))


@policy.command(cls=Command)
def export(
    which: Which,
    out: Annotated[
        Path, typer.Argument(metavar="FILE.onnx|FILE.pt2", help="The file to write: ONNX, or a torch.export program.")
    ],
    code: Code = None,
) -> None:
    """Export a policy for other programs, as ONNX or torch.export.

    The file accepts any number of rows and contains the names of actions and features.
    """
    from gridmill.config.text import hang
    from gridmill.policy import exporting as tool

    take_code(code)
    written = tool.export(policy_name(which), out)
    say(f"wrote {out}: {out.stat().st_size / 1e6:.1f} MB")
    for name in ("inputs", "outputs"):
        shapes = {each: f"{kind} [{', '.join(map(str, shape))}]" for each, (kind, shape) in written[name].items()}
        listed = ", ".join(f"{each} {shape}" for each, shape in shapes.items())
        say("\n".join(hang(f"{name:<9}", listed, 9)))
    difference = f"{written['largest_difference']:.1g}"
    say("\n".join(hang("checked  ", f"outputs differ from the policy's own by at most {difference}", 9)))
