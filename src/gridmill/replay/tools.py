"""What can be done with replay files: a page about one, a part of one, several as one tree."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from gridmill.config.files import write_whole
from gridmill.config.text import printable
from gridmill.replay.blocks import ReplayError
from gridmill.replay.reader import MOST_BRANCHES, read
from gridmill.replay.recording import fork, record, upgraded
from gridmill.replay.tape import Branch, Replay
from gridmill.replay.writer import readable

MOST_NAMES = 16  # of players that a page names; the others are counted


def info(tape: Replay) -> dict[str, Any]:
    """Plain data about a replay; nothing is played."""
    return {
        "format": tape.format,
        "gridmill": tape.version,
        "commit": tape.commit,
        "kind": tape.kind,
        "game": str(tape.tree.get("name", tape.kind)),
        "seed": str(tape.seed),
        "agents": tape.agents,
        "actions": len(tape.action_names),
        "policy": tape.policy,
        "weights": tape.played_by is not None and tape.played_by.weights is not None,
        "branches": [_branch_info(tape, number) for number in range(len(tape.branches))],
    }


def _branch_info(tape: Replay, number: int) -> dict[str, Any]:
    branch = tape.branches[number]
    return {
        "name": branch.name,
        "parent": branch.parent,
        "fork_tick": branch.fork_tick,
        "ticks": branch.ticks,
        "ended": branch.ended,
        "who": _counted(tape, number),
        "keyframes": len(branch.keyframes),
        "checks": branch.checks is not None,
        "values": branch.values is not None,
        "result": dict(branch.result),
        "tags": list(branch.tags),
    }


def _counted(tape: Replay, number: int) -> dict[str, int]:
    """How many agents each player has, those with the most first."""
    named = tape.who_by_key(number)
    rest = named.pop("*", "")
    counts = Counter(named.values())
    if len(named) < tape.agents:
        counts[rest] += tape.agents - len(named)
    most = dict(counts.most_common(MOST_NAMES))
    others = tape.agents - sum(most.values())
    return most | ({"others": others} if others else {})


def text(found: dict[str, Any]) -> list[str]:
    """The same as lines of at most 80 columns, if names are not longer."""
    commit = printable(found["commit"], 10)
    seen = f"format {found['format']}, gridmill {printable(found['gridmill'])}, commit {commit}"
    lines = [
        f"game      {printable(found['game'])} ({printable(found['kind'])}), seed {found['seed']}",
        f"agents    {found['agents']}, {found['actions']} actions",
        f"policy    {printable(found['policy']) or '-'}{', weights inside' if found['weights'] else ''}",
        f"written   {seen}",
    ]
    for number, branch in enumerate(found["branches"]):
        start = "" if branch["parent"] is None else f"from branch {branch['parent']} at tick {branch['fork_tick']}, "
        who = ", ".join(f"{printable(name) or '?'} x {count}" for name, count in branch["who"].items())
        lines.append(f"branch {number}  {start}{branch['ticks']} ticks{', ended' if branch['ended'] else ''}: {who}")
        named = [branch["name"], *branch["tags"]]
        if any(named):
            lines.append(f"          {printable(', '.join(filter(None, named)))}")
        score = branch["result"].get("score")
        if isinstance(score, float):
            lines.append(f"          {printable(branch['result'].get('score_name', 'score'))} {score:.4g}")
    return lines


def cut(tape: Replay, ticks: int, branch: int = 0) -> Replay:
    """The first ticks of a branch as a replay of their own, without its forks.

    A world begins at tick 0, so a cut cannot begin later.
    """
    actions = tape.actions_along(branch)
    if not 1 <= ticks <= len(actions):
        raise ReplayError(f"replay: expected a cut at a tick in [1, {len(actions)}], got {ticks}")
    own = tape.branch(branch)
    who = {str(agent): name for agent, name in enumerate(tape.who(branch))}
    who = {"*": who["0"]} if len(set(who.values())) == 1 else who
    short = record(tape.game, tape.seed, actions[:ticks], who, tape.played_by, own.name)
    return replace(short, names=dict(tape.names) or short.names, more=tape.more)


def merge(tapes: Sequence[Replay]) -> Replay:
    """Replays of one game and seed as one tree: what they have in common is there once."""
    if not tapes:
        raise ReplayError("replay: expected replays to merge, got none")
    tapes = [upgraded(tape) for tape in tapes]
    whole = tapes[0]
    for number, other in enumerate(tapes[1:], 1):
        if (other.game.fingerprint(), other.seed) != (whole.game.fingerprint(), whole.seed):
            raise ReplayError(
                f"replay: expected replays of the same game and seed, got {printable(other.game.name)} seed "
                f"{other.seed} in file {number + 1}, but {printable(whole.game.name)} seed {whole.seed} in the first"
            )
        for branch in range(len(other.branches)):
            whole = _grafted(whole, other, branch)
    return whole


def _grafted(whole: Replay, other: Replay, number: int) -> Replay:
    """With a branch of another replay, from the tick on at which nobody here goes the same way."""
    actions = other.actions_along(number)
    common = list[int]()  # ticks that each branch of the whole shares with it, from tick 0 on
    for known in whole.branches:
        before = 0 if known.parent is None else common[known.parent]
        if before >= known.fork_tick:  # it goes as far as this branch's own ticks, which are compared once
            rest = actions[known.fork_tick : known.end]
            apart = (known.actions[: len(rest)] != rest).any(1).nonzero()[0]
            before = known.fork_tick + (int(apart[0]) if len(apart) else len(rest))
        common.append(before)
    shared = max(common)
    if shared == len(actions):
        return whole
    if len(whole.branches) == MOST_BRANCHES:
        raise ReplayError(f"replay: expected at most {MOST_BRANCHES} branches in one file, got more; merge fewer files")
    parent = common.index(shared)
    own: Branch = other.branches[number]
    who = {str(agent): name for agent, name in enumerate(other.who(number))}
    name = own.name or (other.policy if own.parent is None else "")
    return fork(whole, parent, shared, actions[shared:], who, name, own.tags)


def append_branch(
    path: Path,
    parent: int,
    fork_tick: int,
    actions: Any,
    who: dict[str, str],
    name: str = "",
    most: int = MOST_BRANCHES,
) -> int:
    """Play a fork of a branch in a file and put it into the file; the number of the new branch.

    What whoever lets people play calls: `actions` are [ticks, agents] from `fork_tick` on.
    """
    tape = read(path)
    if len(tape.branches) >= most:
        raise ReplayError(f"replay: expected a file with fewer than {most} branches, got {len(tape.branches)}")
    write_whole(path, readable(fork(tape, parent, fork_tick, actions, who, name)))
    return len(tape.branches)
