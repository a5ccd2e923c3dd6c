"""Watch: who wants to know when the parts of an epoch run, for a trace. Nobody does unless somebody traces."""

from __future__ import annotations

from typing import Literal, Protocol

Kind = Literal["rollout", "minibatch"]


class Watch(Protocol):
    """Told by rollout and learner; times are seconds of time.perf_counter()."""

    def step(self, kind: Kind) -> None:
        """A step of the rollout, or a minibatch, begins."""

    def finish(self, kind: Kind) -> None:
        """The last of them is over."""

    def span(self, name: str, began: float, ended: float) -> None:
        """The calling thread did something from then until then."""
