"""Merged files: where branches part, and what a merge of deep trees costs."""

from __future__ import annotations

from dataclasses import replace
from itertools import takewhile

import numpy as np
import pytest
from tapes import moves, small
from tiny import berries

from gridmill import replay
from gridmill.replay.tape import Actions, Replay
from gridmill.replay.tools import merge


def chain(branches: int, action: int) -> Replay:
    """Forks of two ticks, each of the one before at its second tick."""
    tape = replay.record(berries(), 7, np.full((2, 2), action), {})
    own = tape.branches[0]
    forks = [replace(own, parent=number, fork_tick=number + 1) for number in range(branches - 1)]
    return replace(tape, branches=(own, *forks))


def test_actions_of_deep_branches_are_put_together_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A small file may have a thousand branches, each behind all others: pair by pair, a merge took minutes."""
    deep, asked, along = chain(300, 1), list[int](), Replay.actions_along

    def counted(tape: Replay, branch: int = 0) -> Actions:
        asked.append(branch)
        return along(tape, branch)

    monkeypatch.setattr(Replay, "actions_along", counted)
    assert len(merge([deep, deep]).branches) == 300
    assert len(asked) == 300


def test_more_branches_than_a_file_may_have_are_refused() -> None:
    with pytest.raises(
        replay.ReplayError, match=r"^replay: expected at most 1024 branches in one file, got more; merge fewer files$"
    ):
        merge([chain(1024, 1), chain(1, 2)])


def test_a_branch_leaves_where_nobody_goes_the_same_way() -> None:
    """As the actions along all branches say, compared from tick 0 on."""
    first = small(60, 0)
    second, third = (replay.record(first.game, 7, moves(60, 2, seed, 2), {}) for seed in (1, 2))
    for number, (parent, tick) in enumerate([(0, 9), (1, 11), (0, 30), (3, 33), (0, 55)]):
        second = replay.fork(second, parent, tick, moves(4, 2, number, 2), {})
        third = replay.fork(third, 0, 1, second.actions_along(number)[1:], {})
    merged = merge([first, second, third])
    everywhere = [merged.actions_along(number).tolist() for number in range(len(merged.branches))]
    assert len(everywhere) > 8
    for number, own in enumerate(everywhere[1:], 1):
        pairs = [zip(own, other, strict=False) for other in everywhere[:number]]
        shared = [len(list(takewhile(lambda pair: pair[0] == pair[1], pair))) for pair in pairs]
        assert merged.branches[number].fork_tick == max(shared)
    for tape in (second, third):
        for number in range(len(tape.branches)):
            own = tape.actions_along(number).tolist()
            assert any(other[: len(own)] == own for other in everywhere)
