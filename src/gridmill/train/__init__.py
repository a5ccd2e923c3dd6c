"""Training: `train(run)` and `resume(folder)`. They are loaded on first use, so that what needs no torch (the log, the
list of runs) does not import it; what oneDNN may use is settled before."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gridmill import onednn

if TYPE_CHECKING:
    from gridmill.train.session import Result as Result
    from gridmill.train.session import resume as resume
    from gridmill.train.session import train as train

__all__ = ["Result", "resume", "train"]

onednn.settle()


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'gridmill.train' has no attribute {name!r}")
    from gridmill.train import session

    return getattr(session, name)
