"""What a run says when it is over: where its report and films are, and the commands that show more of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from gridmill import games
from gridmill.config import user_code
from gridmill.config.files import kind_of
from gridmill.config.install import command
from gridmill.runs.figures import count, number

NAMED = 12  # columns of what a line is about


def lines(folder: Path, reported: bool, evaluation: Mapping[str, Any] | None, code: Sequence[str] = ()) -> list[str]:
    """A line each; of what is not there, the command that makes it. `code` is what it takes to have the policy."""
    run = [word(folder), *options(code)]
    judge = command("eval", *run)
    replays = [path for path in folder.glob("replays/*.replay") if kind_of(path) == "a plain file"]
    film = [str(max(replays, key=lambda path: path.lstat().st_mtime))] if replays else run
    found = {
        "report": str(folder / "report.html") if reported else command("report", word(folder)),
        "evaluation": judge if evaluation is None else f"{_score(evaluation)}; against random play: {judge}",
        "video": command("show", *film, "--gif", f"{folder.name}.gif"),
        "watch": command("watch", *film),
    }
    return [f"{name:<{NAMED}}{text}" for name, text in found.items()]


def options(code: Sequence[str]) -> list[str]:
    """Code that a run names, as commands take it; each file or module once."""
    return [word for place in dict.fromkeys(map(user_code.place_of, code)) for word in ("--code", place)]


def word(folder: Path) -> str:
    """A run as commands take it: its name where runs usually are, if no game or file is called so, else its folder."""
    taken = folder.name in games.names() or kind_of(Path(folder.name))
    return folder.name if folder.parent == Path("runs") and not taken else str(folder)


def finished(folder: Path, last: Mapping[str, Any], total: int) -> str:
    """What is said of a run that has nothing left to do."""
    steps = int(last["agent_steps"])
    score = f", score {number(last['score_recent'])}" if "score_recent" in last else ""
    longer = command("resume", word(folder), f"trainer.total_timesteps={2 * max(steps, total)}")
    return f"{folder} is finished: {count(steps)} of {count(total)} steps{score}; to continue training: {longer}"


def _score(evaluation: Mapping[str, Any]) -> str:
    score = evaluation["score"]
    return f"score {number(score['mean'])} +- {number(score['se'])}, epoch {evaluation['epoch']}"
