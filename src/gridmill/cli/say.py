"""What commands print: names of strangers' games, files and folders are in it, and a terminal obeys none of them."""

from __future__ import annotations

import typer


def say(text: str, err: bool = False) -> None:
    """Print lines, whatever is in them."""
    from gridmill.config.text import harmless  # its package loads pydantic, which --help does without

    typer.echo(harmless(text), err=err)
