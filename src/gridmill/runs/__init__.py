"""Runs: `train(run)` and `resume(folder)`, with their folders, logs, reports and evaluations; `epochs(run)` and
`resume_epochs(folder)` are the same as loops for the caller.

They are loaded on first use, so that what needs no torch (the log, the list of runs) does not import it; what oneDNN
may use is settled before.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gridmill.policy import onednn

if TYPE_CHECKING:
    from gridmill.runs.epoch import CallbackFailed as CallbackFailed
    from gridmill.runs.epoch import Epoch as Epoch
    from gridmill.runs.epoch import Result as Result
    from gridmill.runs.session import epochs as epochs
    from gridmill.runs.session import resume as resume
    from gridmill.runs.session import resume_epochs as resume_epochs
    from gridmill.runs.session import train as train

__all__ = ["CallbackFailed", "Epoch", "Result", "epochs", "resume", "resume_epochs", "train"]

onednn.settle()


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'gridmill.runs' has no attribute {name!r}")
    from gridmill.runs import epoch, session

    return getattr(session if hasattr(session, name) else epoch, name)
