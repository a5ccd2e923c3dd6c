"""Training in memory: `trainer.Trainer` is a run without files; `gridmill.runs` runs it with logs and checkpoints.

What oneDNN may use is settled before torch comes.
"""

from typing import NoReturn

from gridmill.policy import onednn

onednn.settle()


def __getattr__(name: str) -> NoReturn:
    """Where people look for what trains with files; this room lies below it and cannot have it."""
    if name in ("train", "resume", "epochs", "resume_epochs"):
        # Not an AttributeError, whose text `from gridmill.train import train` would not show.
        raise ImportError(f"gridmill.train has no `{name}`: use gridmill.runs.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
