"""SignalTerm: what is learned from, apart from what a game pays (`make(signal=...)`, `trainer.signal`)."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from gridmill.config import Config
from gridmill.grid.values import GameValue


class SignalTerm(Config):
    """`weight` x what `value` changed by in a step, for each agent.

    `value` is a statistic by the name it has in episode records, such as `battery.put`, or in games of the grid a game
    value. Prospector's `step.` values are parts of its last step and count as they are.
    """

    value: str | GameValue
    weight: Annotated[float, Field(ge=-1e12, le=1e12)]

    def text(self) -> str:
        """In words, for people who read a log."""
        return f"{self.weight:g} x {self.value if isinstance(self.value, str) else self.value.text()}"
