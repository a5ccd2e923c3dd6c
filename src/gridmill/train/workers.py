"""The threads that run torch on a CPU. Each item of work is done by one worker with one thread of torch's own, so teams
of threads inside an operation, which stall on a disturbed machine, are not needed.

Items have sizes of their own, whatever the number of workers, and results are used in the order of the items: training
gives the same bytes for any number of threads.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

Item = TypeVar("Item")
Returned = TypeVar("Returned")


class WorkerPool:
    """`count` workers; the caller is the first of them."""

    def __init__(self, count: int) -> None:
        self.count = count
        self._pool = ThreadPoolExecutor(count - 1, "worker") if count > 1 else None

    def map(self, work: Callable[[Item], Returned], items: Sequence[Item]) -> list[Returned]:
        """`work` on every item, in any order; the results in theirs. The first failure is raised when all are done."""
        if self._pool is None or len(items) == 1:
            return [work(item) for item in items]
        results: list[Returned | None] = [None] * len(items)
        turn = itertools.count()

        def take_turns() -> None:
            while (index := next(turn)) < len(items):
                results[index] = work(items[index])

        others = [self._pool.submit(take_turns) for _ in range(min(self.count, len(items)) - 1)]
        try:
            take_turns()
        finally:
            failures = [other.exception() for other in others]
        for failure in failures:
            if failure is not None:
                raise failure
        return results  # type: ignore[return-value]

    def close(self) -> None:
        if self._pool is not None:
            self._pool.shutdown()
