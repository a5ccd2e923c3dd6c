"""SignalTerm: what is learned from, apart from what a game pays (`make(signal=...)`, `trainer.signal`)."""

from __future__ import annotations

from typing import Any

from gridmill.config import Config
from gridmill.config.schedule import BoundedNumber, Schedule
from gridmill.grid.values import GameValue


class SignalTerm(Config):
    """`weight` x the change of `value` in a step, for each agent.

    `value` is a statistic by the name it has in episode records, such as `battery.put`, or in games of the grid a game
    value. Prospector's `step.` values are parts of its last step; they are used directly, not as changes.
    """

    value: str | GameValue
    weight: BoundedNumber

    def core_tree(self, weight: float) -> dict[str, Any]:
        """What the core compiles, with the weight of now."""
        return self.tree() | {"weight": weight}

    def text(self) -> str:
        """In words, for people who read a log."""
        w = self.weight
        weight = f"{w.start:g}..{w.end:g}" if isinstance(w, Schedule) else f"{w:g}"
        return f"{weight} x {self.value if isinstance(self.value, str) else self.value.text()}"
